"""The recursion over the budget left for models that fit a rectangle: every choice has the same number of outcomes.

What `budget.py` computes, for one or several prices at once, several times as fast. Four things make it so:

- Outcomes stand in a rectangle, choices by `width`, filled up with outcomes of probability 0. The width is a constant of the compiled loop, so there
  are no inner loops left whose ends must be guessed.
- Level v of node s, `table[(v + shift) * n + s]`, is a plain place in a window of rows, and those with v <= 0 are rows like all others. So an
  outcome is one number, `offset = target - cost * n`, added to the place of its own row: nothing wraps, and no cost is compared with the budget.
- What has no row is apart, and summed up once per level, while it changes. *Last* outcomes end at a goal: p (base + slope * (cost - w)) while
  w <= cost, and nothing afterwards. *Far* outcomes, from a cost D on, are too dear for any budget asked:

      rest * far_mean + base * far_mass + slope * (far_excess + far_mass * (D - w)),     far_excess = sum p (cost - D).

- Where no policy can arrive below a budget of w, w <= nearest(s), lateness is 1 and the risk-neutral policy is best: rows come in so.

Two ways to choose. *Lexicographic*: the least value of account 0, and among choices that tie, of account 1. *Priced*: the least
`account 0 + price * account 1`, for `lanes` prices side by side: entry (s, account, lane) is `table[place * 2 * lanes + account * lanes + lane]`, and
one outcome serves all lanes. Accounts are those of `budget.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.budget import BASE, OWN, REST, SLOPE
from tailpath.kernels.jit import kernel, prange
from tailpath.kernels.lanes import LANES, add_product, add_scaled, everywhere, first_lane, load, store, where_less
from tailpath.kernels.rounding import TINY

Array = NDArray[Any]


class Padded(NamedTuple):
    """The model as this recursion sees it; see the module's docstring. `worth` is V* by node, `dear` the least cost that is far."""

    block_start: Array
    least: Array
    nearest: Array
    worth: Array
    node_choices: Array
    choice_label: Array
    choice_cost: Array
    offset: Array
    probability: Array
    dear: int
    far_mass: Array
    far_mean: Array
    far_excess: Array
    last_choice: Array
    last_cost: Array
    last_mass: Array


@kernel
def still_active(least: Array, first: int, active: int, room: float) -> int:
    """The end of those nodes of a block, sorted by `least`, that the start can still reach with the budget left; it only ever falls."""
    while active > first and least[active - 1] > room:
        active -= 1
    return active


@kernel
def own_parts(padded: Padded, accounts: Array, w: int, out_own: Array) -> None:
    """What every choice is worth without the outcomes in its rectangle, at budget w, by account."""
    for i in range(len(accounts)):
        base, slope, rest, own = accounts[i, BASE], accounts[i, SLOPE], accounts[i, REST], accounts[i, OWN]
        for k in range(len(padded.choice_cost)):
            beyond = padded.far_excess[k] + padded.far_mass[k] * (padded.dear - w)
            out_own[i, k] = own * padded.choice_cost[k] + rest * padded.far_mean[k] + base * padded.far_mass[k] + slope * beyond
        for g in range(len(padded.last_choice)):
            if w <= padded.last_cost[g]:
                out_own[i, padded.last_choice[g]] += padded.last_mass[g] * (base + slope * (padded.last_cost[g] - w))


def _driver(width: int, threads: bool) -> Any:
    """Lexicographic choice. The arguments are constants of the closure, and each pair of them is compiled for itself."""

    def raise_lexicographic(
        padded: Padded,
        accounts: Array,
        start: int,
        limit: int,
        own: Array,
        changing: int,
        begin_level: int,
        end_level: int,
        shift: int,
        active: Array,
        tie: float,
        worth: Array,
        first: Array,
        second: Array,
        out_choice: Array,
        out_value: Array,
    ) -> None:
        n = len(padded.least)
        for w in range(begin_level, end_level):
            row, left, here = (w + shift) * n, float(limit - w), w - begin_level
            if w <= changing:
                own_parts(padded, accounts, w, own)
            for block in range(len(active)):
                begin = padded.block_start[block]
                active[block] = still_active(padded.least, begin, active[block], left)
                for node in prange(begin, active[block]):
                    if w <= padded.nearest[node]:
                        continue
                    choice, last = np.uint64(padded.node_choices[node]), np.uint64(padded.node_choices[node + 1])
                    least = np.inf
                    for k in range(choice, last):
                        total = own[0, k]
                        for j in range(width):
                            total += padded.probability[k, j] * first[np.uint64(row + padded.offset[k, j])]
                        worth[k] = total
                        least = min(least, total)
                    cut, kindest, picked = least * (1 + tie), np.inf, choice
                    for k in range(choice, last):
                        if worth[k] <= cut:
                            total = own[1, k]
                            for j in range(width):
                                total += padded.probability[k, j] * second[np.uint64(row + padded.offset[k, j])]
                            picked = np.uint64(k) if total < kindest else picked
                            kindest = min(kindest, total)
                    first[row + node] = worth[picked] if worth[picked] > TINY else 0.0
                    second[row + node] = kindest if kindest > TINY else 0.0
                    out_choice[here, node] = padded.choice_label[picked]
            out_value[here, 0], out_value[here, 1] = first[row + start], second[row + start]

    # The cache on disk knows functions by name and closure, not by the compiler's options.
    raise_lexicographic.__qualname__ += "_threads" if threads else ""
    return kernel(raise_lexicographic, parallel=threads)


def _priced_driver(width: int, threads: bool) -> Any:
    """Eight prices side by side. `out_choice` has the decisions of the first lane, unless it is empty."""

    def raise_priced(
        padded: Padded,
        accounts: Array,
        start: int,
        limit: int,
        own: Array,
        changing: int,
        begin_level: int,
        end_level: int,
        shift: int,
        active: Array,
        price: Array,
        table: Array,
        out_choice: Array,
        out_value: Array,
    ) -> None:
        n, pair, lanes = len(padded.least), np.uint64(2 * LANES), np.uint64(LANES)
        for w in range(begin_level, end_level):
            row, left, here = (w + shift) * n, float(limit - w), w - begin_level
            if w <= changing:
                own_parts(padded, accounts, w, own)
            for block in range(len(active)):
                begin = padded.block_start[block]
                active[block] = still_active(padded.least, begin, active[block], left)
                for node in prange(begin, active[block]):
                    prices = load(price, np.uint64(0))
                    best = everywhere(np.inf)
                    mean, risk, least, picked = best, best, np.inf, np.uint64(0)
                    for k in range(np.uint64(padded.node_choices[node]), np.uint64(padded.node_choices[node + 1])):
                        a = everywhere(own[0, k])
                        b = everywhere(own[1, k])
                        for j in range(width):
                            place = np.uint64(row + padded.offset[k, j]) * pair
                            a = add_scaled(a, padded.probability[k, j], load(table, place))
                            b = add_scaled(b, padded.probability[k, j], load(table, place + lanes))
                        total = add_product(a, prices, b)
                        mean, risk = where_less(total, best, a, mean), where_less(total, best, b, risk)
                        best = where_less(total, best, total, best)
                        if len(out_choice) > 0:
                            lowest = first_lane(best)
                            picked = np.uint64(k) if lowest < least else picked
                            least = lowest
                    place = np.uint64(row + node) * pair
                    risk = where_less(everywhere(TINY), risk, risk, everywhere(0.0))
                    store(table, place, mean)
                    store(table, place + lanes, risk)
                    if len(out_choice) > 0:
                        out_choice[here, node] = padded.choice_label[picked]
            for k in range(2 * LANES):
                out_value[here, k] = table[(row + start) * 2 * LANES + k]

    raise_priced.__qualname__ += "_threads" if threads else ""
    return kernel(raise_priced, parallel=threads)


@cache
def raise_lexicographic(width: int, threads: bool) -> Callable[..., Any]:
    """The compiled loop that raises the budget from `begin_level` to below `end_level`: the least of account 0, ties by account 1.

    `shift` is the row of level 0 in the window, `worth` room for one number per choice, `own` holds what is apart, which
    changes up to level `changing`. Fills the rows `out_choice[w - begin_level]` and the values at
    the start, `out_value[w - begin_level, account]`.
    """
    compiled: Callable[..., Any] = _driver(width, threads)
    return compiled


@cache
def raise_priced(width: int, threads: bool) -> Callable[..., Any]:
    """The same for the least `account 0 + price * account 1`, eight prices at once; `out_value[w - begin_level, account * 8 + lane]`."""
    compiled: Callable[..., Any] = _priced_driver(width, threads)
    return compiled
