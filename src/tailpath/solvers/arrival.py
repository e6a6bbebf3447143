"""Goals that are not sure: the largest probability of arriving, and the model of the runs that do arrive.

Let H(s) be the largest probability, over all policies, of ever arriving from state s: 1 at sure states, 0 at dead ends. In between, 1 - H is the
least expected number of losses in a model that ends, at a cost of 1, where a run enters a dead end and, free of cost, where it enters a sure
state: a risk-neutral problem like any other, with free components and verified bounds like any other (`solvers/expectation.py`). Where that
problem is small it is solved in rationals; otherwise the best policy's arrival is summed up without a subtraction, so that small H keep
their digits.

`given_arrival` keeps the choices with sum P H(s') = H(s), drops the states with H = 0, and sets P'(s'|s, a) = P(s'|s, a) H(s') / H(s). The runs of
the new model are those of the old one given that they arrive; a policy that surely arrives in it arrives in the old one with the largest
probability. So "arrive as surely as possible, and among those with the least CVaR given arrival" is the usual solver on the new model.
From exact H the new probabilities are correctly rounded, so that all bounds hold as they stand; otherwise a note says how far they may be off.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import expected_total
from tailpath.analysis.core import core_of
from tailpath.analysis.reachability import dead_ends, sure_states
from tailpath.errors import GoalUnreachableError
from tailpath.model.cost_units import as_fraction
from tailpath.model.ragged import members_of, offsets_from_lengths, offsets_of, owners
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray, Geometry, Name, Origin
from tailpath.solvers.expectation import ExpectedSolution, solve_expected
from tailpath.solvers.rational_expectation import rational_optimum

#: Problems of up to this many nodes are solved in rationals.
LARGEST_EXACT = 150
#: A choice counts as one of the best if it is worse by no more than this, relatively, where H is not known exactly.
SAME_CHANCE = 1e-11


@dataclass(frozen=True, eq=False, repr=False)
class Arrival(Record):
    """The largest probability of arriving from every state, with verified bounds; `exact` holds it in rationals where they are known."""

    ssp: SSP
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    exact: tuple[Fraction, ...] | None

    def __post_init__(self) -> None:
        self._freeze()

    def probability(self, state: Name | None = None) -> float:
        """The largest probability of arriving from a state, by name; from the start if none is given."""
        return float(self.value[self.ssp.start_index if state is None else self.ssp.state_index(state)])

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the probability from the start."""
        return float(self.lower[self.ssp.start_index]), float(self.upper[self.ssp.start_index])

    def __repr__(self) -> str:
        return f"<Arrival {self.probability():.6g} from {self.ssp.start!r}>"


def solve_arrival(ssp: SSP) -> Arrival:
    """The largest probability of arriving, found once and kept with the model."""
    return ssp.kept("arrival", lambda: _find(ssp))


def _find(ssp: SSP) -> Arrival:
    sure, dead = sure_states(ssp)[0], dead_ends(ssp)
    between = np.flatnonzero(~sure & ~dead)
    known = sure.astype(np.float64)
    if not len(between):
        return Arrival(ssp, known, known, known, tuple(Fraction(int(s)) for s in sure) if ssp.n_states <= LARGEST_EXACT else None)
    losses = _losses(ssp, between, sure)
    least = solve_expected(losses)
    core = core_of(losses)
    if core.n <= LARGEST_EXACT:
        _, node_value = rational_optimum(core, core.core_choices(least.choices))
        lost = [node_value[node] for node in core.node_of[: len(between)].tolist()]
        exact = [Fraction(int(s)) for s in sure]
        for state, loss in zip(between.tolist(), lost):
            exact[state] = 1 - loss
        value = np.array([float(h) for h in exact])
        return Arrival(ssp, value, np.nextafter(value, 0.0), np.minimum(np.nextafter(value, 2.0), 1.0), tuple(exact))
    inner = _arrival_of(losses, least)
    value, lower, upper = known.copy(), known.copy(), known.copy()
    value[between], lower[between] = inner.value, inner.lower
    upper[between] = np.maximum(np.minimum(np.nextafter(1 - least.lower[: len(between)], 2.0), 1.0), inner.value)
    return Arrival(ssp, value, lower, upper, None)


def _losses(ssp: SSP, between: NDArray[np.int64], sure: NDArray[np.bool_]) -> SSP:
    """The model of losses on the states in between, which keep their order; after them come the two ends, arrived and lost."""
    count = len(between)
    place = np.where(sure, count, count + 1)
    place[between] = np.arange(count)
    choice, state_choices = members_of(ssp.state_choices, between)
    outcome, choice_outcomes = members_of(ssp.choice_outcomes, choice)
    target = place[ssp.outcome_target[outcome]]
    return SSP(
        state_choices=np.append(state_choices, [state_choices[-1]] * 2),
        choice_outcomes=choice_outcomes,
        outcome_target=target,
        outcome_probability=ssp.outcome_probability[outcome],
        outcome_cost=(target == count + 1).astype(np.float64),
        choice_action=ssp.choice_action[choice],
        is_goal=np.arange(count + 2) >= count,
        start_index=0,
        states=range(count + 2),
        actions=ssp.actions,
    )


def _arrival_of(losses: SSP, least: ExpectedSolution) -> Any:
    """The probability that the best policy arrives, summed up without a subtraction."""
    count = losses.n_states - 2
    outcome, row_start = members_of(losses.choice_outcomes, least.choices[:count])
    target, probability = losses.outcome_target[outcome], losses.outcome_probability[outcome]
    rate = np.bincount(owners(row_start), weights=probability * (target == count), minlength=count)
    return expected_total(row_start, target, probability, rate.astype(np.float64))


def given_arrival(ssp: SSP) -> SSP:
    """The model of the runs that arrive, for policies that arrive as surely as possible. States from which none arrives are left out."""
    arrival = solve_arrival(ssp)
    if arrival.probability() == 0:
        raise GoalUnreachableError(
            f"from the start {ssp.start!r} no policy reaches a goal at all, so nothing is known about runs that arrive"
        )
    alive = arrival.value > 0
    kept, probability = _exactly(ssp, arrival.exact) if arrival.exact is not None else _nearly(ssp, arrival)
    choice = np.flatnonzero(kept)
    outcome, _ = members_of(ssp.choice_outcomes, choice)
    outcome = outcome[probability[outcome] > 0]
    state = np.flatnonzero(alive)
    place = np.cumsum(alive) - 1
    numbers = np.full(ssp.n_choices, -1)
    numbers[choice] = np.arange(len(choice))
    return SSP(
        state_choices=offsets_of(place[ssp.choice_state[choice]], len(state)),
        choice_outcomes=offsets_from_lengths(np.bincount(numbers[ssp.outcome_choice[outcome]], minlength=len(choice))),
        outcome_target=place[ssp.outcome_target[outcome]],
        outcome_probability=probability[outcome],
        outcome_cost=ssp.outcome_cost[outcome],
        choice_action=ssp.choice_action[choice],
        is_goal=ssp.is_goal[state],
        start_index=int(place[ssp.start_index]),
        states=tuple(ssp.states[s] for s in state.tolist()),
        actions=ssp.actions,
        exact_unit=ssp.exact_unit,
        geometry=_places(ssp.geometry, state),
        notes=(*ssp.notes, *_notes(arrival)),
        origin=None if ssp.origin is None else Origin(ssp.origin.states, ssp.origin.index[state]),
    )


def _exactly(ssp: SSP, exact: tuple[Fraction, ...]) -> tuple[NDArray[np.bool_], FloatArray]:
    """The choices that lose nothing, and the probabilities given arrival, from the same rationals that H was found from."""
    kept = np.zeros(ssp.n_choices, dtype=np.bool_)
    probability = np.zeros(ssp.n_outcomes)
    for choice, state in enumerate(ssp.choice_state.tolist()):
        outcomes = range(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1]))
        weights = [as_fraction(float(ssp.outcome_probability[o])) for o in outcomes]
        arriving = [weight * exact[int(ssp.outcome_target[o])] for weight, o in zip(weights, outcomes)]
        total = sum(arriving, Fraction(0))
        if exact[state] > 0 and total == exact[state] * sum(weights):
            kept[choice] = True
            probability[outcomes.start : outcomes.stop] = [float(share / total) for share in arriving]
    return kept, probability


def _nearly(ssp: SSP, arrival: Arrival) -> tuple[NDArray[np.bool_], FloatArray]:
    """The same from floats: choices that may lose a little less than can be told are kept."""
    value = arrival.value
    arriving = ssp.outcome_probability * value[ssp.outcome_target]
    total = np.add.reduceat(arriving, ssp.choice_outcomes[:-1])
    kept = (total > 0) & (total >= value[ssp.choice_state] * (1 - SAME_CHANCE))
    return kept, arriving / np.maximum(total, np.finfo(np.float64).tiny)[ssp.outcome_choice]


def _notes(arrival: Arrival) -> list[str]:
    notes = [f"given arrival, which has a probability of {arrival.probability():.6g} at most; costs are those of the runs that arrive"]
    if arrival.exact is None:
        inside = arrival.value > 0
        off = float(np.max((arrival.upper[inside] - arrival.lower[inside]) / arrival.value[inside]))
        if off > 0:
            notes.append(
                f"the probabilities given arrival may be off by a relative {2 * off:.1g}, which the bounds of later results leave out"
            )
    return notes


def _places(geometry: Geometry | None, state: NDArray[np.int64]) -> Geometry | None:
    if geometry is None:
        return None
    row, column, kind = (tuple(column[s] for s in state.tolist()) for column in (geometry.row, geometry.column, geometry.kind))
    return Geometry(geometry.rows, geometry.columns, row, column, kind)
