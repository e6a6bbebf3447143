"""The core of a model: the part on which expected costs are finite, cut once and stored with
the model.

Only almost sure states and safe choices are in it (elsewhere every expected cost is infinite), and
every *zero-cost component*, a set of states that can be walked at no cost for ever, is merged
into one node. In the core every policy that never arrives pays infinitely much, so that
the equation V = min (r + P V) has one solution only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import (
    all_outcomes,
    require_almost_sure_start,
    zero_cost_components,
)
from tailpath.graph import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Transitions,
    grouped,
    members_of,
    positions,
)
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP


@dataclass(frozen=True, eq=False, repr=False)
class Core:
    """The part of a model on which expected costs are finite. Node n stands for the goals.

    `node_of[s]` is the node of state s (n at goals, -1 where every expected cost is infinite);
    `zero_cost[s]` its zero-cost component, or -1. `choice[k]` is the model's choice behind choice
    k, and `transitions` have its outcomes in row k, rows by node.
    """

    ssp: SSP
    zero_cost: NDArray[np.int32]
    node_of: NDArray[np.int32]
    choice: IntArray
    transitions: Transitions

    @property
    def n(self) -> int:
        return len(self.transitions.state_rows) - 1

    def renumbered(self, order: IntArray) -> Core:
        """Nodes in another order: what is used together should lie together."""
        rank = np.empty(self.n + 2, dtype=np.int32)
        rank[order] = np.arange(self.n)
        rank[self.n] = self.n
        rank[-1] = -1
        choice, first_row = members_of(self.transitions.state_rows, order)
        rows = self.transitions.restrict(choice).renumber(rank).replaced(first_row=first_row)
        return Core(self.ssp, self.zero_cost, rank[self.node_of], self.choice[choice], rows)

    @property
    def outcome(self) -> IntArray:
        """The model's outcome behind each of the core."""
        return self.ssp.transitions.edges(self.choice)

    @property
    def level(self) -> IntArray:
        return self.ssp.outcome_level[self.outcome]

    def to_states(self, per_node: FloatArray) -> FloatArray:
        """Node values, one row each, to states: 0 at goals, infinite where there is no node."""
        end = np.zeros((2, *per_node.shape[1:]))
        end[1] = np.inf
        values = np.concatenate([per_node, end])[self.node_of]
        values.flags.writeable = False
        return values

    def _inside(self) -> IntArray:
        return np.flatnonzero((self.node_of >= 0) & (self.node_of < self.n))

    def to_nodes(self, per_state: Array) -> Array:
        """State values to nodes: those of any member, which must agree."""
        state = self._inside()
        values = np.empty(self.n, dtype=per_state.dtype)
        values[self.node_of[state]] = per_state[state]
        return values

    def model_choices(self, chosen: IntArray) -> NDArray[np.int32]:
        """Core choices, one per node, as choices of the model."""
        return self.walks_to(self.choice[chosen])

    def walks_to(self, leaving: IntArray) -> NDArray[np.int32]:
        """These choices of the model, -1 at all other states, but that members of zero-cost
        components walk to the one that leaves theirs.
        """
        ssp = self.ssp
        choices = np.full(ssp.n_states, -1, dtype=np.int32)
        choices[ssp.choice_state[leaving]] = leaving
        has_exit = np.zeros(self.zero_cost.max(initial=-1) + 2, dtype=np.bool_)
        has_exit[self.zero_cost[ssp.choice_state[leaving]]] = True
        pending = has_exit[self.zero_cost] & (self.zero_cost >= 0) & (choices < 0)
        if not pending.any():
            return choices
        internal = _internal_choices(ssp, self.zero_cost)
        # A component is strongly connected: stepping ever nearer to a settled member gets there
        # surely.
        number = np.where(pending, np.arange(ssp.n_states), ssp.n_states)
        walk = ssp.by_state.renumber(number)
        steps = np.append(walk.only(internal[ssp.outcome_choice]).steps(), 0)
        nearest = np.minimum.reduceat(
            np.where(steps[walk.target] < 0, ssp.n_states, steps[walk.target]),
            ssp.choice_outcomes[:-1],
        )
        ready = np.flatnonzero(
            internal & pending[ssp.choice_state] & (nearest < steps[ssp.choice_state])
        )
        choices[ssp.choice_state[ready][::-1]] = ready[::-1]
        return choices

    def core_choices(self, choices: Array) -> IntArray:
        """The way back from `model_choices`: the core choice of every node."""
        number = np.full(self.ssp.n_choices + 1, -1, dtype=np.int64)
        number[self.choice] = np.arange(len(self.choice))
        state = self._inside()
        chosen = number[choices[state]]
        # Members of a zero-cost component walk to the one that leaves; only that one's choice is
        # part of the core.
        result = np.empty(self.n, dtype=np.int64)
        result[self.node_of[state[chosen >= 0]]] = chosen[chosen >= 0]
        return result


@found_once
def core_of(ssp: SSP) -> Core:
    """The core of a model, or an error that names the states that trap the start."""
    return _cut(ssp, zero_cost_components(ssp, require_almost_sure_start(ssp)[1]))


@found_once
def loose_core_of(ssp: SSP) -> Core:
    """The core without zero-cost components: with a discount, walking for nothing is worth
    something.
    """
    return _cut(ssp, np.full(ssp.n_states, -1, dtype=np.int32))


def _internal_choices(ssp: SSP, zero_cost: NDArray[np.int32]) -> BoolArray:
    """The choices that only walk inside their own zero-cost component at no cost."""
    if zero_cost.max(initial=-1) < 0:
        return np.zeros(ssp.n_choices, dtype=np.bool_)
    home = zero_cost[ssp.choice_state][ssp.outcome_choice]
    stays = (home >= 0) & (zero_cost[ssp.outcome_target] == home) & (ssp.outcome_cost == 0)
    return all_outcomes(ssp, stays)


def _cut(ssp: SSP, zero_cost: NDArray[np.int32]) -> Core:
    """Keep almost sure states and safe choices; draw zero-cost components together."""
    almost_sure, safe = require_almost_sure_start(ssp)
    transient = almost_sure & ~ssp.is_goal
    # One representative per node: every state outside zero-cost components, and the first member of
    # each component.
    representative = np.arange(ssp.n_states)
    if zero_cost.max(initial=-1) >= 0:
        first, inside = np.unique(zero_cost, return_index=True, return_inverse=True)[1:]
        representative = np.where(zero_cost >= 0, first[inside], representative)
    mask = transient & (representative == np.arange(ssp.n_states))
    n = int(mask.sum())
    node_of = np.where(
        transient, positions(mask)[representative], np.where(ssp.is_goal, n, -1)
    ).astype(np.int32)

    choice = np.flatnonzero(safe & ~_internal_choices(ssp, zero_cost))
    by_node, state_choices = grouped(node_of[ssp.choice_state[choice]], n)
    choice = choice[by_node]
    rows = ssp.transitions.restrict(choice).renumber(node_of).replaced(first_row=state_choices)
    return Core(ssp, zero_cost, node_of, choice, rows)
