"""The recursion over the budget left, one level of whole cost units at a time.

`U(s, w)` is the least value of node s with budget w, say the least E[(Z - w)+]. A level w > 0 needs the levels w - c for the costs c that occur, so
they live in a ring of `capacity` rows, flat: level v of node s is `ring[(v % capacity) * n + s]`. At w <= 0 nothing is stored.

*Accounts* say what is counted: row i of `accounts` is (base, slope, rest, own). With the budget spent, w <= 0, a node is worth

    base + slope * (-w) + rest * V*(s),         and `own` times the expected cost of a choice is added at every step.

So (0, 1, 1, 0) is the excess E[(Z - w)+], (1, 0, 0, 0) the probability of a cost of w or more, and (0, 0, 1, 1) the expected cost. Account 0 is
what is minimised; the others are carried along for the choices taken, each in a ring of its own behind the first.

The outcomes of a choice are grouped by cost into *segments*. While w <= cost, a whole segment is its closed form,

    sum p (base + slope * (cost - w) + rest * V*(t)) = rest * segment_mean + segment_mass * (base + slope * (cost - w)),

and afterwards its gathered sum over targets that are no goals (a goal with budget left is worth 0, unless a `loss` says otherwise: then the
goals are the last node, and `loss[w, i]` is what arriving with budget w is worth in account i). So neither a goal nor a cost beyond the
budget ever needs a row. Counters are unsigned: numba then leaves out the test for negative indices, which is a third of the time.

Nodes come in *blocks*, in an order in which free outcomes only lead back: the nodes of a plain block do not need one another at the same level,
the nodes of a joint block do, and are solved together (`free_moves.py`). Of a plain block only the nodes *alive* are looked at. Up to a budget of
`sure(s)` every run exceeds the budget, the risk-neutral policy is best, and the closed form of a spent budget still holds, since slope + own = rest
for all accounts: nobody computes it, and it is put down from level `begin(s)` on, the first that somebody reads. And at level w only nodes with
least + w <= cutoff can matter, where `least` is the least cost at which the start can reach them; the cutoff falls as better values are found.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.free_moves import Joint, joint_backup, joint_optimum, joint_values
from tailpath.kernels.jit import kernel, prange
from tailpath.kernels.rounding import TINY

Array = NDArray[Any]
#: The columns of `accounts`.
BASE, SLOPE, REST, OWN = 0, 1, 2, 3


class Levels(NamedTuple):
    """The model as the recursion sees it; see the module's docstring. `value` is V* by node, `choice_cost` what a choice costs on average."""

    block_start: Array
    block_joint: Array
    least: Array
    sure: Array
    begin: Array
    value: Array
    node_choices: Array
    choice_segments: Array
    choice_label: Array
    choice_cost: Array
    segment_level: Array
    segment_outcomes: Array
    segment_mass: Array
    segment_mean: Array
    target: Array
    probability: Array


class Steps(NamedTuple):
    """Changes of choice, in the order in which they are found: the node, the first budget, the label; and the `last` label of every node."""

    node: Array
    budget: Array
    label: Array
    last: Array


class Aim(NamedTuple):
    """What is minimised at the start node, `weight * w + price * U`, with U the value of account 0.

    Levels matter up to `limit`, and until `weight * w + floor` exceeds the best value found.
    `tie` is the relative difference within which two choices count as equal, and then the smaller value of account 1 decides; 0 for none.
    """

    start: int
    weight: float
    price: float
    floor: float
    limit: float
    tie: float


@kernel
def choice_value(levels: Levels, accounts: Array, i: int, choice: int, w: int, slot: int, capacity: int, ring: Array) -> float:
    """The value of a choice in account i at budget w, whose row is `slot`."""
    n = len(levels.least)
    total = 0.0
    if accounts[i, OWN] != 0.0:
        total = accounts[i, OWN] * levels.choice_cost[choice]
    segment, last = np.uint64(levels.choice_segments[choice]), np.uint64(levels.choice_segments[choice + 1])
    outcome = np.uint64(levels.segment_outcomes[segment])
    while segment < last:
        end = np.uint64(levels.segment_outcomes[segment + np.uint64(1)])
        cost = levels.segment_level[segment]
        if w > cost:
            back = slot - cost
            row = np.uint64((i * capacity + (back if back >= 0 else back + capacity)) * n)
            while outcome < end:
                total += levels.probability[outcome] * ring[row + np.uint64(levels.target[outcome])]
                outcome += np.uint64(1)
        else:
            spent = accounts[i, BASE] + accounts[i, SLOPE] * (cost - w)
            total += accounts[i, REST] * levels.segment_mean[segment] + levels.segment_mass[segment] * spent
            outcome = end
        segment += np.uint64(1)
    return total


@kernel
def best_choice(levels: Levels, accounts: Array, node: int, w: int, slot: int, capacity: int, ring: Array) -> tuple[float, int]:
    """The least value at a node, and the first choice that attains it."""
    least, picked = np.inf, 0
    for choice in range(levels.node_choices[node], levels.node_choices[node + 1]):
        value = choice_value(levels, accounts, 0, choice, w, slot, capacity, ring)
        picked = choice if value < least else picked
        least = min(least, value)
    return least if least > TINY else 0.0, picked


@kernel
def kindest_choice(
    levels: Levels, accounts: Array, tie: float, node: int, w: int, slot: int, capacity: int, ring: Array
) -> tuple[float, int]:
    """Of the choices whose values tie with the least, the one with the least value in account 1, and its value."""
    least, best, best_second, picked = np.inf, np.inf, np.inf, 0
    for choice in range(levels.node_choices[node], levels.node_choices[node + 1]):
        value = choice_value(levels, accounts, 0, choice, w, slot, capacity, ring)
        if value <= least * (1 + tie):
            second = choice_value(levels, accounts, 1, choice, w, slot, capacity, ring)
            if value < least * (1 - tie) or second < best_second:
                best, best_second, picked = value, second, choice
        least = min(least, value)
    return best if best > TINY else 0.0, picked


def _settle_plainly(threads: bool, several: bool) -> Any:
    """Nodes that do not need one another, one after the other or on all cores: one source, compiled for one account or several."""

    def settle_plainly(
        levels: Levels,
        accounts: Array,
        tie: float,
        alive: Array,
        first: int,
        last: int,
        w: int,
        slot: int,
        capacity: int,
        ring: Array,
        out_label: Array,
    ) -> None:
        n = len(levels.least)
        for k in prange(first, last):
            node = alive[k]
            picked = levels.node_choices[node]
            if w <= levels.sure[node]:
                for i in range(len(accounts)):
                    spent = accounts[i, BASE] + accounts[i, REST] * levels.value[node] - accounts[i, SLOPE] * w
                    ring[(i * capacity + slot) * n + node] = spent
            else:
                if several and tie > 0.0:
                    ring[slot * n + node], picked = kindest_choice(levels, accounts, tie, node, w, slot, capacity, ring)
                else:
                    ring[slot * n + node], picked = best_choice(levels, accounts, node, w, slot, capacity, ring)
                if several:
                    for i in range(1, len(accounts)):
                        value = choice_value(levels, accounts, i, picked, w, slot, capacity, ring)
                        ring[(i * capacity + slot) * n + node] = value if value > TINY else 0.0
            out_label[node] = levels.choice_label[picked]

    # The cache on disk knows functions by name and closure, not by the compiler's options.
    settle_plainly.__qualname__ += "_threads" if threads else ""
    return kernel(settle_plainly, parallel=threads)


settle_one, settle_several = _settle_plainly(False, False), _settle_plainly(False, True)
settle_one_threads, settle_several_threads = _settle_plainly(True, False), _settle_plainly(True, True)


@kernel
def settle_jointly(
    levels: Levels, joint: Joint, accounts: Array, tie: float, first: int, last: int, w: int, capacity: int, ring: Array, policy: Array
) -> tuple[float, float]:
    """A joint block at budget w. Returns what `joint_optimum` returns."""
    offset, slot = levels.node_choices[first], w % capacity
    gain = np.empty((len(accounts), levels.node_choices[last] - offset))
    for i in range(len(accounts)):
        for k in range(gain.shape[1]):
            gain[i, k] = choice_value(levels, accounts, i, offset + k, w, slot, capacity, ring)
    quality: tuple[float, float] = settle_gains(levels, joint, tie, first, last, gain, policy)
    for i in range(len(accounts)):
        row = (i * capacity + slot) * len(levels.least) + first
        for k in range(last - first):
            ring[row + k] = gain[i, k] if gain[i, k] > TINY else 0.0
    return quality


@kernel
def settle_gains(levels: Levels, joint: Joint, tie: float, first: int, last: int, gain: Array, policy: Array) -> tuple[float, float]:
    """A joint block, given what each choice gains by account: first account 0, then, among choices that tie, account 1.

    The first columns of `gain` become the values of the nodes. Returns what `joint_optimum` returns.
    """
    offset = levels.node_choices[first]
    allowed = np.ones(gain.shape[1], dtype=np.bool_)
    value = np.empty(last - first)
    quality: tuple[float, float] = joint_optimum(joint, levels.node_choices, first, last, gain[0], allowed, policy, value)
    if tie > 0:
        for i in range(last - first):
            for choice in range(levels.node_choices[first + i], levels.node_choices[first + i + 1]):
                total = joint_backup(joint, choice, gain[0, choice - offset], value)
                allowed[choice - offset] = choice == policy[first + i] or total <= value[i] * (1 + tie)
        joint_optimum(joint, levels.node_choices, first, last, gain[1], allowed, policy, value)
    for i in range(len(gain)):
        joint_values(joint, levels.node_choices, first, last, policy, gain[i], value)
        for k in range(last - first):
            gain[i, k] = value[k]
    return quality


@kernel
def cutoff_of(aim: Aim, best: float) -> float:
    """No level, and no node at a level, beyond this can matter; a little more than the exact bound, to be safe from rounding."""
    if aim.weight == 0:
        return aim.limit
    return min(aim.limit, (best - aim.floor) / aim.weight * (1 + 1e-12))


@kernel
def look_around(levels: Levels, block: int, w: int, room: float, alive: Array, entered: Array, out_count: Array) -> int:
    """Bring the list of nodes of a plain block that matter at budget w up to date; the start can reach them for `room` or less.

    Those of block b are `alive[block_start[b] :][: out_count[b]]`; nodes before `entered[b]` have begun. Returns where they end.
    """
    first = levels.block_start[block]
    end, node = first, entered[block]
    for k in range(first, first + out_count[block]):
        if levels.least[alive[k]] <= room:
            alive[end] = alive[k]
            end += 1
    while node < levels.block_start[block + 1] and levels.begin[node] <= w:
        if levels.least[node] <= room:
            alive[end] = node
            end += 1
        node += 1
    entered[block], out_count[block] = node, end - first
    return int(end)


@kernel
def note_steps(nodes: Array, first: int, last: int, w: int, label: Array, at: int, out_step: Steps) -> int:
    """Append a step for each of some nodes whose choice is another than with a unit less; returns how many steps there are then."""
    for k in range(first, last):
        node = nodes[k]
        if label[node] != out_step.last[node]:
            out_step.last[node] = label[node]
            out_step.node[at], out_step.budget[at], out_step.label[at] = node, w, label[node]
            at += 1
    return at


def _driver(threads: bool, several: bool, joints: bool) -> Callable[..., Any]:
    """The loop over levels. The flags are constants of the closure: the compiler drops the branches not taken and caches each by its flags."""

    def raise_budget(
        levels: Levels,
        joint: Joint,
        aim: Aim,
        accounts: Array,
        loss: Array,
        first: int,
        last: int,
        best: float,
        capacity: int,
        ring: Array,
        alive: Array,
        entered: Array,
        count: Array,
        policy: Array,
        label: Array,
        at: int,
        out_step: Steps,
        out_value: Array,
    ) -> tuple[int, int, float, float, float]:
        n = len(levels.least)
        error, left, w = 0.0, 0.0, first
        while w <= last and w <= cutoff_of(aim, best) and at + n <= len(out_step.node):
            room = cutoff_of(aim, best) - w
            slot = w % capacity
            if len(loss) > 0:
                for i in range(len(accounts)):
                    ring[(i * capacity + slot) * n + n - 1] = loss[w, i]
            for block in range(len(levels.block_joint)):
                begin, end = levels.block_start[block], levels.block_start[block + 1]
                if joints and levels.block_joint[block]:
                    if levels.least[begin] <= room:
                        quality = settle_jointly(levels, joint, accounts, aim.tie, begin, end, w, capacity, ring, policy)
                        error, left = max(error, quality[0]), max(left, quality[1])
                        for node in range(begin, end):
                            alive[node], label[node] = node, levels.choice_label[policy[node]]
                    else:
                        end = begin
                else:
                    end = look_around(levels, block, w, room, alive, entered, count)
                    if several:
                        if threads:
                            settle_several_threads(levels, accounts, aim.tie, alive, begin, end, w, slot, capacity, ring, label)
                        else:
                            settle_several(levels, accounts, aim.tie, alive, begin, end, w, slot, capacity, ring, label)
                    elif threads:
                        settle_one_threads(levels, accounts, 0.0, alive, begin, end, w, slot, capacity, ring, label)
                    else:
                        settle_one(levels, accounts, 0.0, alive, begin, end, w, slot, capacity, ring, label)
                at = note_steps(alive, begin, end, w, label, at, out_step)
            for i in range(len(accounts)):
                out_value[w - first, i] = ring[(i * capacity + slot) * n + aim.start]
            best = min(best, aim.weight * w + aim.price * out_value[w - first, 0])
            w += 1
        return w, at, best, error, left

    return raise_budget


@cache
def raise_budget(threads: bool, several: bool, joints: bool) -> Callable[..., Any]:
    """The compiled loop that raises the budget from level `first` to `last`, or until nothing beyond can matter, or there is no room for steps.

    It appends a step, from place `at` on, wherever a node's choice changes, and fills the values at the start, `out_value[w - first, i]`. It
    returns the first level not done, how many steps there are, the best value found, and the worst error bound and relative gain left of
    joint blocks. `several`: there is more than one account.
    """
    compiled: Callable[..., Any] = kernel(_driver(threads, several, joints))
    return compiled
