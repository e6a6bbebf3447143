"""Goals that are not certain: the largest probability of arriving, and the model of the runs that
do arrive.

Let H(s) be the largest probability, over all policies, of ever arriving from state s: 1 at almost
sure states, 0 at dead ends. In between, cut the model off where a run enters one of these, and
merge each set of states in which a run can stay for ever without entering any. Every policy leaves
what remains, and H solves H = max (r + P H), with r the probability of entering an almost sure
state at once: -H is the least expected total of -r (`certify/values.py`), with bounds that are
relatively close also where H is small.

`given_arrival` keeps the choices with sum P H(s') = H(s) and drops the states with H = 0. A policy
that arrives with probability 1 in the new model arrives in the old one with the largest
probability. The new probabilities are off by no more than the distance between the bounds of H; the
new model keeps that error (`probability_error`), and all later bounds include it. A choice that
loses less than these bounds can tell counts as losing nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailpath.analysis.core import core_of
from tailpath.analysis.reachability import almost_sure_states, dead_ends
from tailpath.certify.rounding import AFTERWARDS, row_error
from tailpath.certify.values import least_total
from tailpath.errors import GoalUnreachableError, ModelError
from tailpath.graph import (
    BoolArray,
    FloatArray,
    IntArray,
    first_of,
    members_of,
    offsets_of,
    positions,
)
from tailpath.kernels.rounding import NEAR_UNDERFLOW
from tailpath.model.outcomes import outcomes_of_rows
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP, Name, Origin
from tailpath.options import takes_model
from tailpath.solvers.expectation import ByState

#: Probabilities given arrival that may be off by more, relatively, are worth a note; and are
#: refused.
NOTED, LARGEST_ERROR = 1e-9, 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Arrival(ByState):
    """The largest probability of arriving from every state, with verified bounds.

    Attributes
    ----------
    ssp : SSP
        The model.
    value : array of float64, shape (n_states,)
        The probability from each state.
    lower, upper : array of float64, shape (n_states,)
        Proved bounds on it.

    Examples
    --------
    >>> icy = tp.SSP.from_outcomes([("top", "ski", "hut", 0.9, 1), ("top", "ski", "lost", 0.1, 1),
    ...                             ("lost", "wait", "lost", 1, 1)], "top", ["hut"])
    >>> tp.solve_arrival(icy).value
    array([0.9, 1. , 0. ])
    """

    ssp: SSP
    value: FloatArray
    lower: FloatArray
    upper: FloatArray

    def probability(self, state: Name | None = None) -> float:
        """The largest probability of arriving from a state.

        Parameters
        ----------
        state : hashable, optional
            The name of a state; by default the start.

        Returns
        -------
        float
            The probability.

        Examples
        --------
        >>> tp.solve_arrival(ssp).probability("home")
        1.0
        """
        return self._from(state)

    def __repr__(self) -> str:
        return f"<Arrival {self.probability():.6g} from {self.ssp.start!r}>"


@takes_model
@found_once
def solve_arrival(ssp: SSP) -> Arrival:
    """Find the largest probability of arriving, over all policies, from every state.

    The result is stored with the model, and found once.

    Parameters
    ----------
    ssp : SSP
        The model.

    Returns
    -------
    Arrival
        `probability()` and `bounds`.

    Examples
    --------
    >>> tp.solve_arrival(ssp).probability()
    1.0
    """
    almost_sure, dead = almost_sure_states(ssp)[0], dead_ends(ssp)
    between = np.flatnonzero(~almost_sure & ~dead)
    value, lower, upper = (almost_sure.astype(np.float64) for _ in range(3))
    if len(between):
        losses = _losses(ssp, between, almost_sure)
        core = core_of(losses)
        arrives = losses.outcome_target[core.outcome] == len(between)
        rate = -core.transitions.sums(np.where(arrives, core.transitions.probability, 0.0))
        found = least_total(core.transitions, rate, ssp.probability_error).bounds
        node = core.node_of[: len(between)]
        lower[between] = np.clip(-found.upper, 0.0, 1.0)[node]
        upper[between] = np.clip(-found.lower, 0.0, 1.0)[node]
        value[between] = np.clip(-found.value[node], lower[between], upper[between])
    return Arrival(ssp, value, lower, upper)


def _losses(ssp: SSP, between: IntArray, almost_sure: BoolArray) -> SSP:
    """The model on the states in between, in their order; after them the two ends, arrived and
    lost.
    """
    count = len(between)
    position = np.where(almost_sure, count, count + 1)
    position[between] = np.arange(count)
    choice, state_choices = members_of(ssp.state_choices, between)
    rows = ssp.transitions.restrict(choice).renumber(position)
    return SSP(
        state_choices=np.append(state_choices, [state_choices[-1]] * 2),
        **outcomes_of_rows(rows.replaced(cost=rows.target == count + 1)),
        choice_action=ssp.choice_action[choice],
        is_goal=np.arange(count + 2) >= count,
        start_index=0,
        states=range(count + 2),
        actions=ssp.actions,
        probability_error=ssp.probability_error,
    )


@takes_model
def given_arrival(ssp: SSP) -> SSP:
    """The model conditioned on arriving, for policies with the largest probability of arriving.

    States from which no policy arrives are left out, and so are choices that lose some probability
    of arriving. Costs are those of the runs that arrive.

    Parameters
    ----------
    ssp : SSP
        The model.

    Returns
    -------
    SSP
        The new model, with `P'(s'|s, a) = P(s'|s, a) H(s') / H(s)`, H the largest probability
        of arriving.

    Raises
    ------
    GoalUnreachableError
        If no policy reaches a goal at all from the start.
    ModelError
        If a probability of arriving is too small or not known well enough to compute with.

    Examples
    --------
    >>> icy = tp.SSP.from_outcomes([("top", "ski", "hut", 0.9, 1), ("top", "ski", "lost", 0.1, 1),
    ...                             ("lost", "wait", "lost", 1, 1)], "top", ["hut"])
    >>> tp.solve_expected(tp.given_arrival(icy)).cost()
    1.0
    """
    arrival, alive = solve_arrival(ssp), ~dead_ends(ssp)
    if not alive[ssp.start_index]:
        raise GoalUnreachableError(
            f"from the start {ssp.start!r} no policy reaches a goal at all, so there are no"
            " runs that arrive"
        )
    mask = _mask(arrival)
    too_small = alive & (arrival.value < NEAR_UNDERFLOW)
    if too_small.any():
        # Their own probabilities are not known; they only matter where runs get there.
        onwards = mask[ssp.outcome_choice] & alive[ssp.outcome_target]
        alive &= ssp.transitions.only(onwards).joined(ssp.state_choices).reachable(ssp.start_index)
        _refuse(ssp, too_small & alive, "is too small to compute with")
    error_bound = _error_bound(arrival, alive)
    arriving = np.where(
        alive[ssp.outcome_target], ssp.outcome_probability * arrival.value[ssp.outcome_target], 0.0
    )
    total = np.add.reduceat(arriving, ssp.choice_outcomes[:-1])
    choice, state = np.flatnonzero(mask & alive[ssp.choice_state]), np.flatnonzero(alive)
    position = positions(alive)
    share = np.divide(
        arriving, total[ssp.outcome_choice], out=np.zeros_like(arriving), where=arriving > 0
    )
    rows = ssp.transitions.replaced(probability=share).restrict(choice)
    rows = rows.only(rows.probability > 0).renumber(position)
    return SSP(
        state_choices=offsets_of(position[ssp.choice_state[choice]], len(state)),
        **outcomes_of_rows(rows),
        choice_action=ssp.choice_action[choice],
        is_goal=ssp.is_goal[state],
        start_index=int(position[ssp.start_index]),
        states=tuple(ssp.states[s] for s in state.tolist()),
        actions=ssp.actions,
        exact_unit=ssp.exact_unit,
        geometry=ssp.geometry and ssp.geometry.of(state.tolist()),
        notes=(*ssp.notes, *_notes(arrival, error_bound)),
        origin=ssp.origin and Origin(ssp.origin.states, ssp.origin.index[state]),
        probability_error=error_bound,
    )


def _mask(arrival: Arrival) -> BoolArray:
    """The choices that are not known to lose anything."""
    ssp = arrival.ssp
    almost_sure, safe = almost_sure_states(ssp)
    most = np.add.reduceat(
        ssp.outcome_probability * arrival.upper[ssp.outcome_target], ssp.choice_outcomes[:-1]
    )
    rounded = row_error(np.diff(ssp.choice_outcomes), 0, ssp.probability_error)
    nothing_lost = most * (1 + rounded) >= arrival.lower[ssp.choice_state]
    return np.asarray(np.where(almost_sure[ssp.choice_state], safe, nothing_lost & (most > 0.0)))


def _error_bound(arrival: Arrival, alive: BoolArray) -> float:
    """How far a probability P H(s') / sum P H may be off, relatively."""
    ssp, value = arrival.ssp, np.where(alive, arrival.value, 1.0)
    relative_error = np.where(
        alive, np.maximum(arrival.upper - value, value - arrival.lower) / value, 0.0
    )
    _refuse(ssp, relative_error > LARGEST_ERROR, "is not known well enough to compute with")
    worst = float(relative_error.max()) * (1 + AFTERWARDS) + ssp.probability_error
    return 2 * worst / (1 - worst) * (1 + AFTERWARDS)


def _refuse(ssp: SSP, states: BoolArray, why: str) -> None:
    for state in first_of(states):
        raise ModelError(
            f"the probability of arriving from state {ssp.states[state]!r} {why}; allow giving"
            " up at a cost (give_up, --give-up C)"
        )


def _notes(arrival: Arrival, error_bound: float) -> list[str]:
    notes = [
        f"given arrival, which has a probability of {arrival.probability():.6g} at most; costs are"
        " those of the runs that arrive"
    ]
    if error_bound > NOTED:
        notes.append(
            f"the probabilities given arrival may be off by a relative {error_bound:.1g}, which the"
            " bounds of later results include"
        )
    return notes
