"""The Bellman backup: what a row is worth, and the best row of a state. The only home of inner
products with values.

    state s has rows      first_row[s] .. first_row[s + 1] - 1
    row k has outcomes    row_start[k] .. row_start[k + 1] - 1, and an expected cost rate[k]
    outcome o leads to    target[o] with probability[o]

Kernels take them as `Transitions.columns`, which are `Rows`.

Probabilities may be known as intervals only: `Slack` has what is to be handed out above the least
ones, and *nature* hands it out, to the worst outcomes first (`ADVERSARIAL`) or to the best
(`COOPERATIVE`): the greatest and the least expected value of a row.

The end is state n, worth 0: values that are read with it have n + 1 entries, the last of them 0. A
chain is the case of one row per state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.graph import Rows as Rows
from tailpath.kernels.jit import Array, frozen, kernel
from tailpath.kernels.rounding import ROUNDING_NOISE

#: Who hands out what is not known: nobody, against us, for us. As numbers: the sign of the values
#: that come first.
CERTAIN, ADVERSARIAL = 0, 1
COOPERATIVE = -1
#: So many outcomes of a row are summed up without a loop.
AT_ONCE = 4


class Slack(NamedTuple):
    """What intervals leave open: by outcome how much it may have above its low probability, `gap`;
    by row how much probability is free, `free_mass`.

    Kernels that hand it out order the outcomes of a row, target, low probability and gap, by what
    they are worth (O-maximisation): the next order is much the same.
    """

    gap: Array  # float64 (outcomes,)
    free_mass: Array  # float64 (rows,)


#: All probabilities are known.
NO_SLACK = Slack(np.zeros(0), np.zeros(0))


@kernel(inline=True)
def row_value(
    row_start: Array, target: Array, probability: Array, row: int, value_start: int, value: Array
) -> float:
    """The expected value of where a row leads; values are those from index `value_start` on.

    Indices without a sign are quicker, and so are four outcomes without a loop around them.
    """
    total, here = 0.0, np.uint64(row)
    outcome, last = np.uint64(row_start[here]), np.uint64(row_start[here + np.uint64(1)])
    if outcome + np.uint64(AT_ONCE) <= last:
        for k in range(np.uint64(AT_ONCE)):
            total += probability[outcome + k] * value[np.uint64(value_start + target[outcome + k])]
        outcome += np.uint64(AT_ONCE)
    for k in range(outcome, last):
        total += probability[k] * value[np.uint64(value_start + target[k])]
    return total


@kernel(inline=True)
def add_row_values(
    row_start: Array,
    target: Array,
    probability: Array,
    row: int,
    value_start: int,
    value: Array,
    out_total: Array,
) -> None:
    """Add to `out_total` (m,) the expected values of where a row leads, of m values side by side:
    `value` (positions, m). Loops over them alone are what becomes vectors.
    """
    here = np.uint64(row)
    for outcome in range(np.uint64(row_start[here]), np.uint64(row_start[here + np.uint64(1)])):
        p, ahead = probability[outcome], value[np.uint64(value_start + target[outcome])]
        for i in range(len(out_total)):
            out_total[i] += p * ahead[i]


@kernel(inline=True)
def ordered_value(
    row_start: Array,
    target: Array,
    low: Array,
    slack: Slack,
    nature: int,
    row: int,
    value_start: int,
    value: Array,
) -> tuple[float, float, bool]:
    """The expected value of where a row leads if free mass goes to outcomes as they stand, the
    value of the last one that gets any, and whether nature would take them in another order.
    """
    gap, free_mass = slack
    total, marginal = 0.0, 0.0
    remaining = free_mass[row]
    before, disordered = np.inf, False
    for outcome in range(np.uint64(row_start[row]), np.uint64(row_start[row + 1])):
        ahead = value[np.uint64(value_start + target[outcome])]
        disordered |= nature * ahead > before
        before = nature * ahead
        share = min(gap[outcome], remaining)
        marginal = ahead if share > 0.0 else marginal
        remaining -= share
        total += (low[outcome] + share) * ahead
    return total, marginal, disordered


@kernel(inline=True)
def sorted_value(
    row_start: Array,
    target: Array,
    low: Array,
    slack: Slack,
    nature: int,
    row: int,
    value_start: int,
    value: Array,
) -> tuple[float, float]:
    """`extreme_value` of a row whose outcomes are first brought into the order in which nature
    takes them. Called and not put into the loops, it would slow them down where it is not needed.
    """
    first, last = row_start[row], row_start[row + 1]
    gap = slack.gap
    for i in range(first + 1, last):
        to, least = target[i], low[i]
        more, j = gap[i], i
        key = nature * value[value_start + to]
        while j > first and nature * value[value_start + target[j - 1]] < key:
            target[j] = target[j - 1]
            low[j] = low[j - 1]
            gap[j] = gap[j - 1]
            j -= 1
        target[j] = to
        low[j] = least
        gap[j] = more
    total, marginal, _ = ordered_value(
        row_start, target, low, slack, nature, row, value_start, value
    )
    return total, marginal


@kernel(inline=True)
def extreme_value(
    row_start: Array,
    target: Array,
    low: Array,
    slack: Slack,
    nature: int,
    row: int,
    value_start: int,
    value: Array,
) -> tuple[float, float]:
    """The greatest or least expected value of where a row leads, and the value of the last outcome
    that got free mass.

    A share that is off by e, since the rest is rounded, moves the result by no more than e times
    that value. Outcomes stand in the order of the last visit, which as a rule still holds.
    """
    total, marginal, disordered = ordered_value(
        row_start, target, low, slack, nature, row, value_start, value
    )
    if disordered and slack.free_mass[row] > 0.0:
        found: tuple[float, float] = sorted_value(
            row_start, target, low, slack, nature, row, value_start, value
        )
        return found
    return total, marginal


@kernel
def improve_shares(
    rows: tuple[Array, Array, Array, Slack, int],
    worth: Array,
    present: Array,
    margin: float,
    out_probability: Array,
) -> int:
    """Give rows the probabilities by which nature gains more than `margin` on what they are worth
    at `present`, relatively; how many rows there were.

    `rows` are the first arguments of `extreme_value`. `worth` is by outcome, and so is
    `out_probability`: the target of an outcome is its own number.
    """
    row_start, target, low, slack, nature = rows
    improved = 0
    for row in range(np.uint64(len(row_start) - 1)):
        best, _ = extreme_value(row_start, target, low, slack, nature, row, 0, worth)
        if nature * (best - present[row]) > margin * abs(best):
            remaining = slack.free_mass[row]
            for i in range(row_start[row], row_start[row + np.uint64(1)]):
                share = min(slack.gap[i], remaining)
                out_probability[target[i]] = low[i] + share
                remaining -= share
            improved += 1
    return improved


@kernel(inline=True)
def best_row(
    first_row: Array,
    row_start: Array,
    target: Array,
    probability: Array,
    rate: Array,
    state: int,
    value: Array,
) -> tuple[float, int]:
    """The least r + P v of a state, and the first row that has it; infinite and -1 where there is
    no row. Arrays come one by one: out of their group in a loop they take longer than a row.
    """
    best = np.inf
    best_choice: Any = np.int64(-1)
    for row in range(np.uint64(first_row[state]), np.uint64(first_row[state + 1])):
        total = rate[row] + row_value(row_start, target, probability, row, 0, value)
        best_choice = np.int64(row) if total < best else best_choice
        best = min(best, total)
    return best, best_choice


@kernel
def first_best(rows: Rows, value: Array, margin: float, out_chosen: Array) -> None:
    """The first row of every state that no other beats by more than `margin`, as a share of what it
    costs and of the differences between a state and where it leads.

    Probabilities sum to 1, so that a row is told by these differences, which stay small however
    long the way is.
    """
    first_row, row_start, target, probability, rate = rows
    for state in range(len(out_chosen)):
        here, least, best = value[state], np.inf, first_row[state]
        for row in range(first_row[state], first_row[state + 1]):
            total, size = rate[row], abs(rate[row])
            for outcome in range(row_start[row], row_start[row + 1]):
                ahead = probability[outcome] * (value[target[outcome]] - here)
                total += ahead
                size += abs(ahead)
            if total < least - margin * size:
                least, best = total, row
        out_chosen[state] = best


def best_rows(rows: Rows, value: Array) -> NDArray[np.int64]:
    """The first row of every state that is best for these values, but for rounding."""
    chosen = np.empty(len(rows.first_row) - 1, dtype=np.int64)
    first_best(rows, next(frozen(value)), ROUNDING_NOISE, chosen)
    return chosen
