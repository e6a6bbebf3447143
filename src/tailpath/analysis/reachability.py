"""What the graph of a model alone decides: where a goal can be reached, surely or at all, and which choices keep it so.

- A state is *sure* if some policy reaches a goal from it with probability 1; a choice is *safe* if all its outcomes are sure. Every finite
  expected cost lives on sure states and safe choices.
- A *dead end* is a state from which no policy reaches a goal at all.
- Every policy is proper exactly if no policy can avoid the goals for ever, that is, if no set of states without goals can be kept by a
  suitable choice in each.
- A *free component* is a maximal set of states that can be left alone, visited all over and at no cost: an end component of the choices whose
  every outcome is free. Inside it any state is as good as any other, and a value iteration from below may be fooled by it.

Probabilities only matter by being positive, so all of this is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import GoalUnreachableError
from tailpath.kernels import forward, graph
from tailpath.kernels.jit import Kernel, compiler_loaded, frozen
from tailpath.model.ragged import grouped, offsets_of
from tailpath.model.ssp import SSP

BoolArray = NDArray[np.bool_]
#: What to do where arriving is not sure.
WAYS = "end runs at a price (give_up, --give-up C), look at those that arrive (given_arrival, --given-arrival) or limit steps (within, --within N)"
#: Up to this many arrows a search runs as plain Python, faster than the compiler loads, unless it is loaded already.
SMALL = 20_000
#: Sweeps through all nodes before a search gives up on them and sorts the arrows.
SWEEPS = 8


def _fit(search: Kernel, size: int) -> Callable[..., Any]:
    return search.plain if size <= SMALL and not compiler_loaded() else search


def strong_components(row_start: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[np.int32], int]:
    """The strongly connected component of every node, numbered so that arrows never lead to a higher number, and their count."""
    component = np.empty(len(row_start) - 1, dtype=np.int32)
    count = _fit(graph.strong_components, len(target))(*frozen(row_start, target), component)
    return component, int(count)


def free_arrow_order(source: NDArray[Any], target: NDArray[Any], n: int) -> tuple[NDArray[np.int32], int] | None:
    """For arrows among n nodes, sorted by source: a rank that falls along every arrow, and the most arrows in a row. None if they form a cycle."""
    if len(target) == 0:
        return np.arange(n, dtype=np.int32), 0
    row_start = offsets_of(source, n)
    rank, count = strong_components(row_start, target)
    if count < n or np.any(source == target):
        return None
    length = np.zeros(n, dtype=np.int64)
    _fit(graph.longest_paths, len(target))(np.argsort(rank), row_start, target, length)
    return rank, int(length.max(initial=0))


def is_one_component(row_start: NDArray[Any], target: NDArray[Any]) -> bool:
    """Whether every node reaches every other, as far as a quick look can tell: it may overlook it, but never feigns it."""
    n = len(row_start) - 1
    reached = np.zeros(n, dtype=np.bool_)
    reached[-1:] = True
    _fit(graph.sweep_back, len(target))(*frozen(row_start, target), SWEEPS, reached)
    return n > 0 and bool(reached.all()) and bool(reachable_nodes(row_start, target, n - 1).all())


def reachable_nodes(row_start: NDArray[Any], target: NDArray[Any], start: int) -> BoolArray:
    """The nodes that can be reached from `start`; targets beyond the last row are passed over."""
    reached = np.zeros(len(row_start) - 1, dtype=np.bool_)
    _fit(graph.forward_reach, len(target))(*frozen(row_start, target), start, reached)
    return reached


def fewest_steps(source: NDArray[Any], target: NDArray[Any], n: int) -> NDArray[np.int32]:
    """The least number of arrows from each of n nodes to any target >= n; -1 where there is no way."""
    into, into_start = grouped(np.minimum(target, n), n + 1)
    steps = np.full(n + 1, -1, dtype=np.int32)
    forward.fewest_steps(into_start, source[into], steps)
    return steps[:n]


def reachable_states(ssp: SSP) -> BoolArray:
    """The states that can be reached from the start under some policy."""
    return reachable_nodes(ssp.choice_outcomes[ssp.state_choices], ssp.outcome_target, ssp.start_index)


class _Backward:
    """Searches against the arrows. The outcomes that lead into each state are sorted once for several, and only where sweeps do not do."""

    def __init__(self, ssp: SSP) -> None:
        self.ssp = ssp

    @cached_property
    def into(self) -> tuple[NDArray[Any], ...]:
        outcome, start = grouped(self.ssp.outcome_target, self.ssp.n_states)
        return start, outcome.astype(np.int32, copy=False), self.ssp.outcome_choice, self.ssp.choice_state

    def reach(self, reached: BoolArray, allowed: BoolArray) -> None:
        ssp = self.ssp
        row_start = ssp.choice_outcomes[ssp.state_choices]
        if allowed.all() and _fit(graph.sweep_back, ssp.n_outcomes)(*frozen(row_start, ssp.outcome_target), SWEEPS, reached):
            return
        _fit(graph.backward_reach, ssp.n_outcomes)(*self.into, allowed, reached)

    def close(self, inside: BoolArray, allowed: BoolArray) -> None:
        _fit(graph.close_under_choices, self.ssp.n_outcomes)(*self.into, inside, allowed)


def dead_ends(ssp: SSP) -> BoolArray:
    """The states from which no policy reaches a goal with positive probability."""
    reached = ssp.is_goal.copy()
    _Backward(ssp).reach(reached, np.ones(ssp.n_choices, dtype=np.bool_))
    return ~reached


def sure_states(ssp: SSP) -> tuple[BoolArray, BoolArray]:
    """The states from which some policy surely reaches a goal, and the choices all of whose outcomes are such states."""
    return ssp.kept("sure states", lambda: _sure_by(ssp, np.ones(ssp.n_choices, dtype=np.bool_)))


def surely_free_states(ssp: SSP) -> BoolArray:
    """The states from which some policy surely reaches a goal at no cost at all."""
    if ssp.n_choices == 0:
        return ssp.is_goal
    return _sure_by(ssp, np.logical_and.reduceat(ssp.outcome_cost == 0, ssp.choice_outcomes[:-1]))[0]


def _sure_by(ssp: SSP, allowed: BoolArray) -> tuple[BoolArray, BoolArray]:
    """The states from which a goal can surely be reached by allowed choices alone, and the allowed choices that keep it so."""
    backward = _Backward(ssp)
    sure, safe = np.ones(ssp.n_states, dtype=np.bool_), allowed
    while True:
        reached = ssp.is_goal.copy()
        backward.reach(reached, safe)
        if np.array_equal(reached, sure):
            return sure, safe
        sure = reached
        safe = np.logical_and.reduceat(sure[ssp.outcome_target], ssp.choice_outcomes[:-1]) if ssp.n_choices else np.ones(0, dtype=np.bool_)
        safe &= sure[ssp.choice_state] & allowed


def every_policy_is_proper(ssp: SSP) -> bool:
    """Whether no policy, from any state, can fail to reach a goal with probability 1."""
    inside = ~ssp.is_goal
    allowed = np.ones(ssp.n_choices, dtype=np.bool_)
    _Backward(ssp).close(inside, allowed)
    return not bool(inside.any())


def require_sure_start(ssp: SSP) -> tuple[BoolArray, BoolArray]:
    """`sure_states`, or an error that names the states that trap the start."""
    sure, safe = sure_states(ssp)
    if not sure[ssp.start_index]:
        traps = np.flatnonzero(dead_ends(ssp) & reachable_states(ssp))
        shown = ", ".join(repr(ssp.states[s]) for s in traps[:5].tolist())
        more = f" and {traps.size - 5} more" if traps.size > 5 else ""
        raise GoalUnreachableError(
            f"from the start {ssp.start!r} no policy surely reaches a goal, so every expected cost is infinite; the dead ends are {shown}{more};"
            f" {WAYS}"
        )
    return sure, safe


def free_components(ssp: SSP, choice_allowed: BoolArray) -> NDArray[np.int32]:
    """The free component of each state, or -1: end components of the allowed choices whose every outcome costs nothing.

    Standard refinement: split into strong components, drop choices that leave theirs, repeat until nothing changes.
    """
    component = np.full(ssp.n_states, -1, dtype=np.int32)
    if ssp.n_choices == 0:
        return component
    free = np.logical_and.reduceat(ssp.outcome_cost == 0, ssp.choice_outcomes[:-1]) & choice_allowed
    inside = np.zeros(ssp.n_states, dtype=np.bool_)
    while True:
        inside[:] = False
        inside[ssp.choice_state[free]] = True
        if not inside.any():
            return component
        arrow = free[ssp.outcome_choice]
        source = ssp.choice_state[ssp.outcome_choice[arrow]]
        label, _ = strong_components(offsets_of(source, ssp.n_states), ssp.outcome_target[arrow])
        stays = label[ssp.choice_state[ssp.outcome_choice]] == label[ssp.outcome_target]
        kept = free & np.logical_and.reduceat(stays, ssp.choice_outcomes[:-1])
        if np.array_equal(kept, free):
            component[inside] = np.unique(label[inside], return_inverse=True)[1]
            return component
        free = kept
