"""What the graph of a model alone decides: where a goal can be reached, surely or at all, and which
choices keep it so.

- A state is *sure* if some policy reaches a goal from it with probability 1; a choice is *safe* if
  all its outcomes are sure. Every finite expected cost lives on sure states and safe choices.
- A *dead end* is a state from which no policy reaches a goal at all.
- Every policy is proper exactly if no policy can avoid the goals for ever, that is, if no set of
  states without goals can be kept by a suitable choice in each.
- A *free component* is a maximal set of states that can be left alone, visited all over and at no
  cost: an end component of the choices whose every outcome is free. Inside it any state is as good
  as any other, and a value iteration from below may be fooled by it.

Probabilities only matter by being positive, so all of this is exact.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import GoalUnreachableError
from tailpath.graph import SWEEPS, BoolArray, Transitions, fit, offsets_of
from tailpath.kernels import graph
from tailpath.model.findings import found_once
from tailpath.model.ssp import SSP

#: What to do where arriving is not sure.
WAYS = (
    "end runs at a price (give_up, --give-up C), look at those that arrive (given_arrival,"
    " --given-arrival) or limit steps (within, --within N)"
)


def _unweighted(row_start: NDArray[Any], target: NDArray[Any]) -> Transitions:
    nothing = np.broadcast_to(0.0, len(target))
    return Transitions(row_start, target, nothing, nothing, None)


def components_of(row_start: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[np.int32], int]:
    """`Transitions.components` of rows and targets alone."""
    return _unweighted(row_start, target).components()


def zero_cost_edge_order(
    source: NDArray[Any], target: NDArray[Any], n: int
) -> tuple[NDArray[np.int32], int] | None:
    """`Transitions.acyclic_order` of edges sorted by source."""
    return _unweighted(offsets_of(source, n), target).acyclic_order()


def reachable_states(ssp: SSP) -> BoolArray:
    """The states that can be reached from the start under some policy."""
    return ssp.by_state.reachable(ssp.start_index)


class _Backward:
    """Searches against the edges. The choices that lead into each state are sorted once for
    several, and only where sweeps do not do.
    """

    def __init__(self, ssp: SSP) -> None:
        self.ssp = ssp

    @cached_property
    def into(self) -> tuple[NDArray[Any], ...]:
        into = self.ssp.transitions.transpose(self.ssp.n_states)
        return into.row_start, into.target, self.ssp.choice_state

    def reach(self, reached: BoolArray, allowed: BoolArray) -> None:
        by_state = self.ssp.by_state
        if allowed.all() and fit(graph.sweep_back, self.ssp.n_outcomes)(
            by_state.row_start, by_state.target, SWEEPS, reached
        ):
            return
        fit(graph.backward_reach, self.ssp.n_outcomes)(*self.into, allowed, reached)

    def close(self, inside: BoolArray, allowed: BoolArray) -> None:
        fit(graph.close_under_choices, self.ssp.n_outcomes)(*self.into, inside, allowed)


def dead_ends(ssp: SSP) -> BoolArray:
    """The states from which no policy reaches a goal with positive probability."""
    reached = ssp.is_goal.copy()
    _Backward(ssp).reach(reached, np.ones(ssp.n_choices, dtype=np.bool_))
    return ~reached


@found_once
def almost_sure_states(ssp: SSP) -> tuple[BoolArray, BoolArray]:
    """The states from which some policy surely reaches a goal, and the choices all of whose
    outcomes are such states.
    """
    return _almost_sure_by(ssp, np.ones(ssp.n_choices, dtype=np.bool_))


def surely_zero_cost_states(ssp: SSP) -> BoolArray:
    """The states from which some policy surely reaches a goal at no cost at all."""
    if ssp.n_choices == 0:
        return ssp.is_goal
    return _almost_sure_by(
        ssp, np.logical_and.reduceat(ssp.outcome_cost == 0, ssp.choice_outcomes[:-1])
    )[0]


def _almost_sure_by(ssp: SSP, allowed: BoolArray) -> tuple[BoolArray, BoolArray]:
    """The states from which a goal can surely be reached by allowed choices alone, and the allowed
    choices that keep it so.
    """
    backward = _Backward(ssp)
    almost_sure, safe = np.ones(ssp.n_states, dtype=np.bool_), allowed
    while True:
        reached = ssp.is_goal.copy()
        backward.reach(reached, safe)
        if np.array_equal(reached, almost_sure):
            return almost_sure, safe
        almost_sure = reached
        safe = (
            np.logical_and.reduceat(almost_sure[ssp.outcome_target], ssp.choice_outcomes[:-1])
            if ssp.n_choices
            else np.ones(0, dtype=np.bool_)
        )
        safe &= almost_sure[ssp.choice_state] & allowed


def every_policy_is_proper(ssp: SSP) -> bool:
    """Whether no policy, from any state, can fail to reach a goal with probability 1."""
    inside = ~ssp.is_goal
    allowed = np.ones(ssp.n_choices, dtype=np.bool_)
    _Backward(ssp).close(inside, allowed)
    return not bool(inside.any())


def require_almost_sure_start(ssp: SSP) -> tuple[BoolArray, BoolArray]:
    """`almost_sure_states`, or an error that names the states that trap the start."""
    almost_sure, safe = almost_sure_states(ssp)
    if not almost_sure[ssp.start_index]:
        traps = np.flatnonzero(dead_ends(ssp) & reachable_states(ssp))
        shown = ", ".join(repr(ssp.states[s]) for s in traps[:5].tolist())
        more = f" and {traps.size - 5} more" if traps.size > 5 else ""
        raise GoalUnreachableError(
            f"from the start {ssp.start!r} no policy surely reaches a goal, so every expected cost"
            f" is infinite; the dead ends are {shown}{more}; {WAYS}"
        )
    return almost_sure, safe


def zero_cost_components(ssp: SSP, choice_allowed: BoolArray) -> NDArray[np.int32]:
    """The free component of each state, or -1: end components of the allowed choices whose every
    outcome costs nothing.

    Standard refinement: split into strong components, drop choices that leave theirs, repeat until
    nothing changes.
    """
    component = np.full(ssp.n_states, -1, dtype=np.int32)
    if ssp.n_choices == 0:
        return component
    zero_cost = (
        np.logical_and.reduceat(ssp.outcome_cost == 0, ssp.choice_outcomes[:-1]) & choice_allowed
    )
    inside = np.zeros(ssp.n_states, dtype=np.bool_)
    by_state = ssp.by_state
    while True:
        inside[:] = False
        inside[ssp.choice_state[zero_cost]] = True
        if not inside.any():
            return component
        label, _ = by_state.only(zero_cost[ssp.outcome_choice]).components()
        mask = zero_cost & np.logical_and.reduceat(by_state.within(label), ssp.choice_outcomes[:-1])
        if np.array_equal(mask, zero_cost):
            component[inside] = np.unique(label[inside], return_inverse=True)[1]
            return component
        zero_cost = mask
