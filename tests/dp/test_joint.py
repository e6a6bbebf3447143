"""Nodes joined by steps at no cost: which choice they take."""

from __future__ import annotations

import numpy as np

from tailpath.dp.joint import Joint, joint_optimum

#: One node, whose three choices all leave the block.
ALONE = Joint(np.zeros(4, np.int64), np.zeros(0, np.int64), np.zeros(0), np.ones(3))


def taken(gains: list[float]) -> tuple[int, float, float]:
    """The choice, its value, and by how much it misses its backup."""
    policy, value = np.zeros(1, np.int64), np.zeros(1)
    ends, allowed = np.array([0, 3]), np.ones(3, dtype=np.bool_)
    missed = joint_optimum(ALONE, ends, 0, 1, np.array(gains), allowed, policy, value)
    return int(policy[0]), float(value[0]), missed


def test_of_choices_that_tie_the_first_is_taken() -> None:
    assert taken([2.0, 1.0, 1.0]) == (1, 1.0, 0.0)
    assert taken([1.0, 1.0, 2.0]) == (0, 1.0, 0.0)
    assert taken([np.inf, np.inf, np.inf]) == (0, np.inf, 0.0)
