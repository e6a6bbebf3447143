"""Expected totals in numbers of any size: long decimals where doubles fall below the smallest of
them or are too coarse, rationals where nothing else proves enough.

Elimination is as in `dp/elimination.py`, nodes with few neighbours first. Policy iteration in
rationals ends with the optimum: probabilities and costs are read as the decimals that they stand
for, rows scaled to sum to 1. The bounds are its value, widened for rows that were scaled before: by
the matrix-tree theorem a relative change of eps in all probabilities moves the value of any policy
on n nodes by at most (2 n + 2) eps, hence their minimum too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import Decisions
from tailpath.dp.bounds import Bounds, unproved
from tailpath.kernels.rounding import PER_EDGE, PER_ROW, ROUNDOFF
from tailpath.model.cost_units import as_fraction

#: The digits of decimals: far more than what doubles are charged for.
DIGITS = 50
#: Values of long decimals that differ by less, relatively, count as equal; how far below them a
#: bound for all policies is looked for, as a share of the weights on the way; and what that may
#: come to, relatively.
SAME, BELOW = Decimal("1e-40"), Decimal("1e-35")
FINE = 1e-20
#: Products after which an elimination is given up, since it would take minutes; and how many are
#: worth the last bits of values that are known well: a few seconds.
MAX_PRODUCTS, WORTH_IT = 3_000_000, 1_000_000

#: A row: the probability of every target.
SparseRow = dict[int, Any]
P = TypeVar("P")
Value = TypeVar("Value")


def policy_iteration(
    policy: P,
    evaluate: Callable[[P], Value],
    improve: Callable[[P, Value], P | None],
) -> tuple[P, Value, int]:
    """Evaluate and improve in turn, until nothing improves; the last policy, its value, and how
    many were evaluated.
    """
    count = 0
    while True:
        value, count = evaluate(policy), count + 1
        better = improve(policy, value)
        if better is None:
            return policy, value, count
        policy = better


def elimination_order(rows: Sequence[Iterable[int]], end: int, most: int) -> list[int] | None:
    """The nodes in the order of their elimination, those with few neighbours first; None if it
    would take more than `most` products.

    Only who leads where is looked at, which costs next to nothing beside numbers of any size.
    """
    out = [{to for to in row if to not in (node, end)} for node, row in enumerate(rows)]
    into: list[set[int]] = [set() for _ in out]
    for node, row in enumerate(out):
        for to in row:
            into[to].add(node)
    waiting = [(len(row) * len(before), node) for node, (row, before) in enumerate(zip(out, into))]
    heapify(waiting)
    order: dict[int, None] = {}
    products = 0
    while waiting:
        work, gone = heappop(waiting)
        now = len(out[gone]) * len(into[gone])
        if gone in order:
            continue
        if work < now:
            heappush(waiting, (now, gone))
            continue
        order[gone] = None
        products += now
        # What is left fills up, so that no later node takes less, until the last few.
        if products + now * (len(out) - len(order)) > most:
            return None
        ahead, behind = out[gone], into[gone]
        for node in behind:
            out[node] |= ahead
            out[node].discard(node)
            out[node].discard(gone)
        for to in ahead:
            into[to] |= behind
            into[to].discard(to)
            into[to].discard(gone)
    return list(order)


def eliminate_rows(
    rows: Sequence[SparseRow], gains: Sequence[SparseRow], end: int
) -> list[SparseRow] | None:
    """Expected totals of several gains at once, v = g + P v, of nodes that leave surely: by node
    the total of each; None if it would take too long.

    Rows and gains are sparse, in numbers of any kind; a target `end` is outside. Nothing is
    subtracted.
    """
    order = elimination_order(rows, end, MAX_PRODUCTS)
    if order is None:
        return None
    out = [
        {to: p for to, p in row.items() if to not in (node, end)} for node, row in enumerate(rows)
    ]
    leave = [row.get(end, 0) for row in rows]
    total = [dict(gain) for gain in gains]
    into: list[set[int]] = [set() for _ in rows]
    for node, row in enumerate(out):
        for to in row:
            into[to].add(node)
    away: list[Any] = [None] * len(out)
    for gone in order:
        away[gone] = leave[gone] + sum(out[gone].values())
        if not away[gone]:
            return None
        for node in into[gone]:
            share = out[node].pop(gone) / away[gone]
            leave[node] += share * leave[gone]
            for to, gain in total[gone].items():
                total[node][to] = total[node].get(to, 0) + share * gain
            for to, p in out[gone].items():
                if to != node:
                    out[node][to] = out[node].get(to, 0) + share * p
                    into[to].add(node)
        for to in out[gone]:
            into[to].discard(gone)
    for node in reversed(order):
        for to, p in out[node].items():
            for column, gain in total[to].items():
                total[node][column] = total[node].get(column, 0) + p * gain
        total[node] = {column: gain / away[node] for column, gain in total[node].items()}
    return total


def can_eliminate(chain: Decisions) -> bool:
    """Whether the elimination of a chain in numbers of any size would end within seconds."""
    n = len(chain.rate)
    before = np.bincount(chain.target, minlength=n + 1)[:n]
    # Where half of the nodes have that many neighbours, none need be eliminated to know.
    if n * float(np.median(np.diff(chain.choice_outcomes) * before)) > WORTH_IT:
        return False
    target, offsets = chain.target.tolist(), chain.choice_outcomes.tolist()
    rows = [target[begin:end] for begin, end in pairwise(offsets)]
    return elimination_order(rows, n, WORTH_IT) is not None


def long_decimals() -> Any:
    """Decimals that neither run out of digits nor of exponents, for a `with`."""
    return localcontext(Context(prec=DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN))


def eliminated(chain: Decisions) -> Bounds:
    """Expected totals of a chain in long decimals; a value below the smallest double is 0, with an
    upper bound above it.
    """
    n = len(chain.rate)
    with long_decimals():
        found = eliminate_rows(
            decimal_rows(chain), [{0: Decimal(rate)} for rate in chain.rate.tolist()], n
        )
        if found is None:
            return unproved(np.zeros(n), "elimination")
        longest = int(np.diff(chain.choice_outcomes).max())
        return rounded_bounds(
            [total[0] for total in found],
            ((PER_EDGE + 1) * longest + PER_ROW + 3) * ROUNDOFF + chain.error,
            "elimination",
        )


def eliminated_exits(
    steps: tuple[Any, ...], exits: tuple[Any, ...], out_leave: NDArray[np.float64]
) -> bool:
    """With which probability each node leaves by which exit, in long decimals; whether that could
    be found.

    Steps lead from node to node and exits from a node to a column of `out_leave` (nodes, exits):
    each a source, a target and a probability.
    """
    end = len(out_leave)
    rows: list[SparseRow] = [{} for _ in out_leave]
    gains: list[SparseRow] = [{} for _ in out_leave]
    with long_decimals():
        for table, leads, (source, target, probability) in (
            (rows, False, steps),
            (gains, True, exits),
        ):
            for node, to, p in zip(source.tolist(), target.tolist(), probability.tolist()):
                table[node][to] = table[node].get(to, 0) + Decimal(p)
                if leads:
                    rows[node][end] = rows[node].get(end, 0) + Decimal(p)
        found = eliminate_rows(rows, gains, end)
    for node, leaves in enumerate(found or ()):
        out_leave[node] = 0.0
        out_leave[node, list(leaves)] = [float(p) for p in leaves.values()]
    return found is not None


def rounded_bounds(exact: Sequence[Any], error_bound: float, method: str) -> Bounds:
    """Doubles around the values of n nodes in numbers of any size, and around what a relative
    `error_bound` about all probabilities may make of them.
    """
    error_bound *= 2 * len(exact) + 2
    value, low, high = (
        np.array([_float(v * (1 + type(v)(side))) for v in exact])
        for side in (0.0, -min(error_bound, 1.0), error_bound)
    )
    low, high = np.minimum(low, high), np.maximum(low, high)
    zero = np.array([not v for v in exact])
    return Bounds(
        value,
        np.where(zero, 0.0, np.nextafter(low, -np.inf)),
        np.where(zero, 0.0, np.nextafter(high, np.inf)),
        method,
    )


def _float(value: Any) -> float:
    """The nearest double, or infinity beyond them."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def exact_rows(decisions: Decisions) -> list[SparseRow]:
    """Every row as the decimals as written, scaled to sum to 1."""
    offsets, target = decisions.choice_outcomes.tolist(), decisions.target.tolist()
    probability = decisions.probability.tolist()
    rows = []
    for begin, end in pairwise(offsets):
        weight = [as_fraction(p) for p in probability[begin:end]]
        in_all, row = sum(weight), dict.fromkeys(target[begin:end], Fraction(0))
        for to, w in zip(target[begin:end], weight):
            row[to] += w / in_all
        rows.append(row)
    return rows


def decimal_rows(decisions: Decisions) -> list[SparseRow]:
    """The same in decimals."""
    return [
        {to: Decimal(p.numerator) / p.denominator for to, p in row.items()}
        for row in exact_rows(decisions)
    ]


def reading_error(decisions: Decisions) -> float:
    """How far probabilities that were rounded when rows were read, and scaled then, may be off;
    exact rows are scaled exactly.
    """
    return (int(np.diff(decisions.choice_outcomes).max(initial=0)) + 3) * ROUNDOFF


def rational_optimum(
    decisions: Decisions, rates: Sequence[Fraction], chosen: NDArray[np.int64], error_bound: float
) -> tuple[NDArray[np.int64], Bounds] | None:
    """The best policy, from a proper one on, and bounds on its value by state; None if it would
    take too long. `rates` are those of all rows, and `error_bound` is how far probabilities may be
    off.
    """
    policy, value = _improved(decisions, exact_rows(decisions), rates, chosen, 0)
    return (
        None
        if value is None
        else (
            np.array(policy, dtype=np.int64),
            rounded_bounds(value[:-1], error_bound, "rationals"),
        )
    )


def decimal_optimum(
    decisions: Decisions,
    rates: Sequence[Fraction],
    chosen: NDArray[np.int64],
    error_bound: float,
    weight: NDArray[np.float64],
) -> tuple[NDArray[np.int64], Bounds] | None:
    """The same in long decimals, far finer than doubles; None also if no lower bound for all
    policies could be proved.

    If v is the value of the policy found and `weight` the expected total of what steps weigh, L = v
    - e `weight` is looked at, for a tiny e: where L <= r + P L for every row, no policy costs less.
    """
    with long_decimals():
        rows = decimal_rows(decisions)
        rate = [Decimal(r.numerator) / r.denominator for r in rates]
        policy, value = _improved(decisions, rows, rate, chosen, SAME)
        if value is None or not np.isfinite(weight).all():
            return None
        below = [v - BELOW * Decimal(w) for v, w in zip(value, [*weight.tolist(), 0.0])]
        for node, (begin, end) in enumerate(pairwise(decisions.state_choices.tolist())):
            least, room = below[node] - SAME * below[node], Decimal(FINE) * abs(value[node])
            if value[node] - below[node] > room or any(
                _row_total(rows[k], rate[k], below) < least for k in range(begin, end)
            ):
                return None
        return np.array(policy, dtype=np.int64), rounded_bounds(
            value[:-1], error_bound + FINE, "decimals"
        )


def _row_total(row: SparseRow, rate: Any, value: Sequence[Any]) -> Any:
    """r + P v in numbers of any kind."""
    return rate + sum(p * value[to] for to, p in row.items())


def _improved(
    decisions: Decisions,
    rows: Sequence[SparseRow],
    rates: Sequence[Any],
    chosen: NDArray[np.int64],
    margin: Any,
) -> tuple[list[int], list[Any] | None]:
    """Policy iteration in numbers of any kind, for gains beyond a relative margin: the last policy
    and its values, the end's 0 behind them.
    """
    n, first = len(decisions.state_choices) - 1, decisions.state_choices.tolist()

    def evaluate(policy: list[int]) -> list[Any] | None:
        found = eliminate_rows([rows[k] for k in policy], [{0: rates[k]} for k in policy], n)
        return None if found is None else [*(total[0] for total in found), 0 * rates[0]]

    def improve(policy: list[int], value: list[Any] | None) -> list[int] | None:
        if value is None:
            return None
        better = list(policy)
        for node, (begin, end) in enumerate(pairwise(first)):
            costs = [_row_total(rows[k], rates[k], value) for k in range(begin, end)]
            present = costs[policy[node] - begin]
            if min(costs) < present - margin * abs(present):
                better[node] = begin + costs.index(min(costs))
        return None if better == policy else better

    policy, value, _ = policy_iteration(chosen.tolist(), evaluate, improve)
    return policy, value
