"""Nodes that reach one another by zero-cost outcomes: at one and the same budget their values
need each other.

Within a level a joint block is a small problem of its own, x_i = min over choices of (gain + sum of
inner probabilities * x_j), where `gain` is all that leaves the block or costs something. Zero-cost
end components are drawn together beforehand, so every policy leaves the block with probability 1,
the solution is unique, and policy iteration with strict gains ends with it. Each policy is solved
by elimination without subtraction, which keeps the relative accuracy however seldom the block is
left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailpath.dp.backup import row_value
from tailpath.dp.elimination import eliminate_dense
from tailpath.kernels.jit import Array, frozen, kernel
from tailpath.kernels.rounding import TINY

#: A choice must be better by this much, relatively, to replace another: well above rounding, so
#: that policy iteration ends.
MARGIN = 1e-14
MAX_POLICIES = 1_000


class Joint(NamedTuple):
    """The zero-cost outcomes inside joint blocks, by choice: targets count from the block's first
    node. `leave` is the probability of leaving.
    """

    inner_start: Array
    inner_target: Array
    inner_probability: Array
    leave: Array


#: No block is joint.
NO_JOINT = Joint(
    *frozen(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
)


@kernel
def joint_values(
    joint: Joint,
    node_choices: Array,
    first: int,
    last: int,
    policy: Array,
    gain: Array,
    out_value: Array,
) -> float:
    """The values of a fixed policy in the block of nodes first .. last - 1, infinite where it
    leaves with too small a probability; returns by how much they miss their own backup at most,
    relatively.

    `gain` is indexed by choice, counted from the first choice of the block.
    """
    m, offset = last - first, node_choices[first]
    inner = np.zeros((m, m))
    leave, value = np.empty(m), np.empty((m, 1))
    residual = 0.0
    for i in range(m):
        choice = policy[first + i]
        leave[i] = joint.leave[choice]
        value[i, 0] = gain[choice - offset]
        for position in range(joint.inner_start[choice], joint.inner_start[choice + 1]):
            inner[i, joint.inner_target[position]] += joint.inner_probability[position]
    ends = eliminate_dense(inner, leave, value)
    for i in range(m):
        out_value[i] = value[i, 0] if ends else np.inf
    for i in range(m):
        choice = policy[first + i]
        if out_value[i] < np.inf:
            missed = abs(
                joint_backup(joint, choice, gain[choice - offset], out_value) - out_value[i]
            )
            residual = max(residual, missed / max(abs(out_value[i]), TINY))
    return residual


@kernel
def joint_backup(joint: Joint, choice: int, gain: float, value: Array) -> float:
    ahead: float = row_value(
        joint.inner_start, joint.inner_target, joint.inner_probability, choice, 0, value
    )
    return gain + ahead


@kernel
def joint_optimum(
    joint: Joint,
    node_choices: Array,
    first: int,
    last: int,
    gain: Array,
    allowed: Array,
    out_policy: Array,
    out_value: Array,
) -> float:
    """Policy iteration over the allowed choices of a block, from the policy given; returns by how
    much values miss their backup, relatively: at most `MARGIN` if all went well.
    """
    offset = node_choices[first]
    residual = 0.0
    for _ in range(MAX_POLICIES):
        residual = joint_values(joint, node_choices, first, last, out_policy, gain, out_value)
        moved = False
        for i in range(last - first):
            value = out_value[i]
            best, best_choice = value, -1
            for choice in range(node_choices[first + i], node_choices[first + i + 1]):
                if allowed[choice - offset]:
                    total = joint_backup(joint, choice, gain[choice - offset], out_value)
                    if total < best:
                        best, best_choice = total, choice
            if best_choice >= 0:
                missed = (value - best) / max(abs(value), TINY) if value < np.inf else 1.0
                residual = max(residual, missed)
                if missed > MARGIN:
                    out_policy[first + i] = best_choice
                    moved = True
        if not moved:
            break
    return residual


@kernel
def leave_out(
    joint: Joint,
    node_choices: Array,
    first: int,
    last: int,
    gain: Array,
    out_allowed: Array,
    out_policy: Array,
    out_lost: Array,
) -> None:
    """Forbid choices with an infinite gain, and those that may lead to a *lost* node, one whose
    choices are all forbidden. At every other node the policy takes an allowed choice.
    """
    offset, moved = node_choices[first], True
    for k in range(len(gain)):
        out_allowed[k] = gain[k] < np.inf
    while moved:
        moved = False
        for i in range(last - first):
            taken = -1
            for choice in range(node_choices[first + i], node_choices[first + i + 1]):
                for position in range(joint.inner_start[choice], joint.inner_start[choice + 1]):
                    if out_lost[joint.inner_target[position]]:
                        out_allowed[choice - offset] = False
                if out_allowed[choice - offset] and (taken < 0 or choice == out_policy[first + i]):
                    taken = choice
            if taken >= 0:
                out_policy[first + i] = taken
            elif not out_lost[i]:
                out_lost[i] = moved = True


@kernel
def longest_ways(source: Array, target: Array, out_depth: Array) -> None:
    """The most edges on a way from each component; edges come sorted by source and lead to the same
    or a lower number.
    """
    for edge in range(len(source)):
        if source[edge] != target[edge]:
            out_depth[source[edge]] = max(out_depth[source[edge]], out_depth[target[edge]] + 1)
