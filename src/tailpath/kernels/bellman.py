"""Loops of the risk-neutral problem: v(s) = min over choices of r + P v. Targets >= n are goals, worth 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import UNIT

Array = NDArray[Any]


@kernel
def min_sweeps(
    order: Array,
    state_choices: Array,
    choice_outcomes: Array,
    target: Array,
    probability: Array,
    rate: Array,
    discount: float,
    tolerance: float,
    most: int,
    out_value: Array,
) -> int:
    """Gauss-Seidel value iteration with every choice `discount` cheaper, until a sweep moves no value by more than `tolerance` relative.

    A choice that may stay where it is is solved for its own state. Returns the number of sweeps.
    """
    n = len(state_choices) - 1
    for sweep in range(1, most + 1):
        change = 0.0
        for state in order:
            best = np.inf
            for choice in range(state_choices[state], state_choices[state + 1]):
                total, leave = rate[choice] - discount, 0.0
                for outcome in range(choice_outcomes[choice], choice_outcomes[choice + 1]):
                    to = target[outcome]
                    if to != state:
                        leave += probability[outcome]
                        if to < n:
                            total += probability[outcome] * out_value[to]
                if leave > 0.0:
                    best = min(best, total / leave)
            change = max(change, abs(best - out_value[state]) / (abs(best) + 1e-300))
            out_value[state] = best
        if change <= tolerance:
            return sweep
    return most


@kernel
def improve_choices(
    state_choices: Array,
    choice_outcomes: Array,
    target: Array,
    probability: Array,
    rate: Array,
    value: Array,
    margin: float,
    out_choice: Array,
) -> int:
    """Howard's step: move to the best choice where it beats the present one by more than `margin` relative. Returns how many moved.

    Only strict gains count: a tie could close a loop that never arrives.
    """
    n = len(state_choices) - 1
    moved = 0
    for state in range(n):
        best, best_choice, present = np.inf, -1, np.inf
        for choice in range(state_choices[state], state_choices[state + 1]):
            total = rate[choice]
            for outcome in range(choice_outcomes[choice], choice_outcomes[choice + 1]):
                if target[outcome] < n:
                    total += probability[outcome] * value[target[outcome]]
            if choice == out_choice[state]:
                present = total
            if total < best:
                best, best_choice = total, choice
        if best_choice >= 0 and (out_choice[state] < 0 or best < present - margin * abs(present)):
            out_choice[state] = best_choice
            moved += 1
    return moved


@kernel
def lower_defect(state_choices: Array, choice_outcomes: Array, target: Array, probability: Array, rate: Array, value: Array) -> float:
    """The largest amount by which `value` may exceed its own backup, with all rounding charged to the bad side.

    A result <= 0 proves `value` a lower bound on the cost of every policy that arrives. The charge covers a relative error of 2 UNIT in every
    probability and rate.
    """
    n = len(state_choices) - 1
    worst = -np.inf
    for state in range(n):
        for choice in range(state_choices[state], state_choices[state + 1]):
            total, size = rate[choice], rate[choice]
            count = choice_outcomes[choice + 1] - choice_outcomes[choice]
            for outcome in range(choice_outcomes[choice], choice_outcomes[choice + 1]):
                if target[outcome] < n:
                    term = probability[outcome] * value[target[outcome]]
                    total += term
                    size += abs(term)
            charge = (2 * count + 10) * UNIT * (size + abs(value[state]))
            worst = max(worst, value[state] - total + charge)
    return worst
