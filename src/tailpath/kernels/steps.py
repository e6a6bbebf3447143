"""Decisions as step functions of the remaining budget, as kernels look them up;
`policies/budget.py` explains the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailpath.kernels.jit import Array, kernel


class Steps(NamedTuple):
    """Row s has the steps `first[s] : first[s + 1]`; from `from_budget[k]` on it takes `choice[k]`,
    below them all `risk_neutral[s]`.

    A `budget` of -1 says that nothing is chosen.
    """

    budget: int
    first: Array
    from_budget: Array
    choice: Array
    risk_neutral: Array


@kernel
def step_choice(steps: Steps, row: int, remaining: int) -> int:
    """The choice of a row with so much budget remaining."""
    low, high = steps.first[row], steps.first[row + 1]
    begin = low
    while low < high:
        middle = (low + high) >> 1
        if steps.from_budget[middle] <= remaining:
            low = middle + 1
        else:
            high = middle
    return int(steps.choice[low - 1] if low > begin else steps.risk_neutral[row])


@kernel
def sort_steps(
    row: Array,
    from_budget: Array,
    choice: Array,
    risk_neutral: Array,
    out_first: Array,
    out_budget: Array,
    out_choice: Array,
) -> int:
    """Steps by row and rising budget, from changes in any order, those of a row mostly rising;
    without the ones that change nothing. Returns how many there are.
    """
    n, size = len(risk_neutral), 0
    begin = 0
    out_first[:] = 0
    for k in range(len(row)):
        out_first[row[k] + 1] += 1
    for r in range(n):
        out_first[r + 1] += out_first[r]
    end = out_first[:-1].copy()
    for k in range(len(row)):
        at = end[row[k]]
        while at > out_first[row[k]] and out_budget[at - 1] > from_budget[k]:
            out_budget[at], out_choice[at] = out_budget[at - 1], out_choice[at - 1]
            at -= 1
        out_budget[at], out_choice[at] = from_budget[k], choice[k]
        end[row[k]] += 1
    for r in range(n):
        before = risk_neutral[r]
        out_first[r] = size
        for k in range(begin, end[r]):
            if out_choice[k] != before:
                before = out_choice[k]
                out_budget[size], out_choice[size] = out_budget[k], before
                size += 1
        begin = end[r]
    out_first[n] = size
    return size


_NONE, _NO_CHOICE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
for _array in (_NONE, _NO_CHOICE):
    _array.setflags(write=False)
#: Nothing is chosen; to the compiler it looks like the steps of a policy.
NO_STEPS = Steps(-1, _NONE, _NONE, _NO_CHOICE, _NO_CHOICE)
