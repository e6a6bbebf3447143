"""Goals that are not sure: the largest probability of arriving, and the model of the runs that do arrive.

Let H(s) be the largest probability, over all policies, of ever arriving from state s: 1 at sure states, 0 at dead ends. In between, 1 - H is the
least expected number of losses in a model that ends, at a cost of 1, where a run enters a dead end and, free of cost, where it enters a sure
state: a risk-neutral problem like any other, with free components and verified bounds like any other (`solvers/expectation.py`). Where that
problem is small it is solved in rationals; otherwise H is enclosed to some hundred digits (`solvers/arrival_enclosure.py`), from the best policy's
arrival, summed up without a subtraction, so that small H keep their digits.

`given_arrival` keeps the choices with sum P H(s') = H(s), drops the states with H = 0, and sets P'(s'|s, a) = P(s'|s, a) H(s') / H(s). The runs of
the new model are those of the old one given that they arrive; a policy that surely arrives in it arrives in the old one with the largest
probability. So "arrive as surely as possible, and among those with the least CVaR given arrival" is the usual solver on the new model.
From H, known so well, the new probabilities are correctly rounded, so that all bounds hold as they stand. A choice that loses less than the
enclosure can tell, mostly 10^-80 of H, counts as losing nothing. Only where floats must do, in problems of more than 200,000 states that are neither
sure nor lost, or slow ones of tens of thousands, a note says how far the probabilities may be off.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import expected_total
from tailpath.analysis.core import core_of
from tailpath.analysis.reachability import dead_ends, sure_states
from tailpath.errors import GoalUnreachableError
from tailpath.graph import members_of, offsets_of, places
from tailpath.model.cost_units import as_fraction
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray, Geometry, Name, Origin
from tailpath.solvers.arrival_enclosure import LARGEST, Enclosure, enclose_arrival
from tailpath.solvers.expectation import ExpectedSolution, solve_expected
from tailpath.solvers.rational_expectation import rational_optimum

#: Problems of up to this many nodes are solved in rationals.
LARGEST_EXACT = 150
#: Problems of up to this many nodes are enclosed in about a second; larger ones only for those who compute with the result.
LARGEST_QUICK = 2_000
#: A choice counts as one of the best if it is worse by no more than this, relatively, where H is not known exactly.
SAME_CHANCE = 1e-11


@dataclass(frozen=True, eq=False, repr=False)
class Arrival(Record):
    """The largest probability of arriving from every state, with verified bounds.

    `enclosure` has bounds far finer than floats for every state that is neither sure nor lost, where they were found; in rationals they agree.
    """

    ssp: SSP
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    enclosure: dict[int, tuple[Fraction, Fraction]] | None

    def __post_init__(self) -> None:
        self._freeze()

    def probability(self, state: Name | None = None) -> float:
        """The largest probability of arriving from a state, by name; from the start if none is given."""
        return float(self.value[self.ssp.start_index if state is None else self.ssp.state_index(state)])

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the probability from the start."""
        return float(self.lower[self.ssp.start_index]), float(self.upper[self.ssp.start_index])

    @property
    def exact(self) -> tuple[Fraction, ...] | None:
        """The probability from every state in rationals, where they are known."""
        if self.enclosure is None or any(low != high for low, high in self.enclosure.values()):
            return None
        return tuple(self.enclosure[s][0] if s in self.enclosure else Fraction(int(h)) for s, h in enumerate(self.value.tolist()))

    def __repr__(self) -> str:
        return f"<Arrival {self.probability():.6g} from {self.ssp.start!r}>"


def solve_arrival(ssp: SSP, *, rationals: int = LARGEST_EXACT, enclosed: int = LARGEST_QUICK) -> Arrival:
    """The largest probability of arriving, found once and kept with the model.

    Where up to `rationals` states are neither sure nor lost it is found in rationals, up to `enclosed` states enclosed to some hundred digits, and
    beyond that in floats with verified bounds.
    """
    return ssp.kept(f"arrival by {rationals} and {enclosed}", lambda: _find(ssp, rationals, enclosed))


def _find(ssp: SSP, rationals: int, enclosed: int) -> Arrival:
    sure, dead = sure_states(ssp)[0], dead_ends(ssp)
    between = np.flatnonzero(~sure & ~dead)
    known = sure.astype(np.float64)
    if not len(between):
        return Arrival(ssp, known, known, known, {})
    losses = _losses(ssp, between, sure)
    least = solve_expected(losses)
    core = core_of(losses)
    chosen = core.core_choices(least.choices)
    inner = _arrival_of(losses, least)
    nodes: Enclosure | None = None
    if core.n <= rationals:
        nodes = [(1 - lost, 1 - lost) for lost in rational_optimum(core, chosen)[1]]
    elif core.n <= enclosed:
        arrives = losses.outcome_target[core.outcome] == len(between)
        nodes = enclose_arrival(core, arrives, chosen, core.gather(np.append(inner.value, [0.0, 0.0])))
    value, lower, upper = known.copy(), known.copy(), known.copy()
    if nodes is not None:
        bounds = [nodes[node] for node in core.node_of[: len(between)].tolist()]
        value[between] = [float((low + high) / 2) for low, high in bounds]
        lower[between], upper[between] = np.nextafter(value[between], 0.0), np.minimum(np.nextafter(value[between], 2.0), 1.0)
        return Arrival(ssp, value, lower, upper, dict(zip(between.tolist(), bounds)))
    value[between], lower[between] = inner.value, inner.lower
    upper[between] = np.maximum(np.minimum(np.nextafter(1 - least.lower[: len(between)], 2.0), 1.0), inner.value)
    return Arrival(ssp, value, lower, upper, None)


def _losses(ssp: SSP, between: NDArray[np.int64], sure: NDArray[np.bool_]) -> SSP:
    """The model of losses on the states in between, which keep their order; after them come the two ends, arrived and lost."""
    count = len(between)
    place = np.where(sure, count, count + 1)
    place[between] = np.arange(count)
    choice, state_choices = members_of(ssp.state_choices, between)
    rows = ssp.transitions.restrict(choice).renumber(place)
    return SSP(
        state_choices=np.append(state_choices, [state_choices[-1]] * 2),
        choice_outcomes=rows.row_start,
        outcome_target=rows.target,
        outcome_probability=rows.probability,
        outcome_cost=(rows.target == count + 1).astype(np.float64),
        choice_action=ssp.choice_action[choice],
        is_goal=np.arange(count + 2) >= count,
        start_index=0,
        states=range(count + 2),
        actions=ssp.actions,
    )


def _arrival_of(losses: SSP, least: ExpectedSolution) -> Any:
    """The probability that the best policy arrives, summed up without a subtraction."""
    count = losses.n_states - 2
    rows = losses.transitions.restrict(least.choices[:count])
    return expected_total(rows.row_start, rows.target, rows.probability, rows.replaced(cost=rows.target == count).rate)


def given_arrival(ssp: SSP, *, rationals: int = LARGEST_EXACT) -> SSP:
    """The model of the runs that arrive, for policies that arrive as surely as possible. States from which none arrives are left out.

    `rationals` is the number of states, neither sure nor lost, up to which the probability of arriving is found in rationals; beyond it is enclosed.
    """
    arrival = solve_arrival(ssp, rationals=rationals, enclosed=LARGEST)
    if arrival.probability() == 0:
        raise GoalUnreachableError(
            f"from the start {ssp.start!r} no policy reaches a goal at all, so nothing is known about runs that arrive"
        )
    alive = arrival.value > 0
    kept, probability = _finely(arrival) if arrival.enclosure is not None else _nearly(arrival)
    choice, state, place = np.flatnonzero(kept), np.flatnonzero(alive), places(alive)
    rows = ssp.transitions.replaced(probability=probability).restrict(choice)
    rows = rows.only(rows.probability > 0).renumber(place)
    return SSP(
        state_choices=offsets_of(place[ssp.choice_state[choice]], len(state)),
        choice_outcomes=rows.row_start,
        outcome_target=rows.target,
        outcome_probability=rows.probability,
        outcome_cost=rows.cost,
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


def _finely(arrival: Arrival) -> tuple[NDArray[np.bool_], FloatArray]:
    """The choices of which no loss can be told, and the probabilities given arrival, correctly rounded."""
    ssp, bounds = arrival.ssp, arrival.enclosure
    assert bounds is not None
    sure = arrival.value == 1
    sure[list(bounds)] = False  # nearly sure is not sure, even where floats cannot tell
    kept = sure[ssp.choice_state] & np.logical_and.reduceat(sure[ssp.outcome_target], ssp.choice_outcomes[:-1])
    probability = ssp.outcome_probability.copy()
    exact = cache(as_fraction)
    for state, (least, _) in bounds.items():
        for choice in range(int(ssp.state_choices[state]), int(ssp.state_choices[state + 1])):
            outcomes = slice(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1]))
            weight = [exact(p) for p in ssp.outcome_probability[outcomes].tolist()]
            ends = [bounds.get(to, (Fraction(int(sure[to])),) * 2) for to in ssp.outcome_target[outcomes].tolist()]
            most = sum(w * high for w, (_, high) in zip(weight, ends))
            kept[choice] = most >= least * sum(weight)
            arriving = [w * low for w, (low, _) in zip(weight, ends)]
            probability[outcomes] = [float(share / sum(arriving)) for share in arriving] if kept[choice] else 0.0
    return kept, probability


def _nearly(arrival: Arrival) -> tuple[NDArray[np.bool_], FloatArray]:
    """The same from floats: choices that may lose a little less than can be told are kept."""
    ssp, value = arrival.ssp, arrival.value
    arriving = ssp.outcome_probability * value[ssp.outcome_target]
    total = np.add.reduceat(arriving, ssp.choice_outcomes[:-1])
    kept = (total > 0) & (total >= value[ssp.choice_state] * (1 - SAME_CHANCE))
    return kept, arriving / np.maximum(total, np.finfo(np.float64).tiny)[ssp.outcome_choice]


def _notes(arrival: Arrival) -> list[str]:
    notes = [f"given arrival, which has a probability of {arrival.probability():.6g} at most; costs are those of the runs that arrive"]
    if arrival.enclosure is None:
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
