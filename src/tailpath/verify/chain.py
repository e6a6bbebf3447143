"""A policy on a model, in integers: the decimals as written, nothing rounded.

A probability is w / W with whole w and W, W being the sum of its row; a cost is a whole number of a
unit, however fine. Nodes are pairs (state, memory), found by the policy's own three functions;
goals are the node -1.

Zero-cost cycles are walked to their end beforehand: inside a strong component of zero-cost edges,
elimination in rationals says where a walker leaves it. What remains of zero-cost edges has no
cycle, and `rank` falls along them.

Expected totals are enclosed in integer multiples of 2^-BITS. The total V of a rate r >= 0 solves
v = r + P v. Floats guess v and the expected steps t, and each
residual, taken exactly, corrects v, until v is good to some forty digits. Then one look at every
node proves it: if v + e t >= r + P (v + e t) everywhere, V lies below; and above v - e t likewise.
Where floats are of no help, a small chain is solved in rationals instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.model.ssp import SSP

#: A row: the whole W, and (target, w, cost) for every edge.
IntegerRow = tuple[int, list[tuple[int, int, int]]]
#: By node, what a step leads to, with its probability: nodes, and whatever else.
Walk = dict[int, dict[Any, Fraction]]
GOAL = -1
MAX_PAIRS = 500_000
LARGEST_CYCLE = 60


def decimal(number: Any) -> Fraction:
    """The rational that a number stands for: a float is the shortest decimal that prints it."""
    return number if isinstance(number, Fraction) else Fraction(repr(float(number)))


def exact_costs(ssp: Any) -> list[Fraction]:
    """The cost of every outcome as it is meant."""
    if ssp.cost_unit is not None:
        return [ssp.cost_unit * level for level in ssp.outcome_level.tolist()]
    return [decimal(cost) for cost in ssp.outcome_cost.tolist()]


def rows_of(ssp: SSP) -> tuple[list[IntegerRow], Fraction]:
    """All choices of the model as given, rows over states, and what costs count: the unit, or the
    finest decimal place among them.
    """
    exact = exact_costs(ssp)
    unit = ssp.cost_unit or Fraction(1, math.lcm(*(cost.denominator for cost in exact)))
    level = [int(cost / unit) for cost in exact]
    probability = map(decimal, ssp.outcome_probability.tolist())
    edges = list(zip(ssp.outcome_target.tolist(), probability, level))
    rows = pairwise(ssp.choice_outcomes.tolist())
    return [integer_row(edges[first:end]) for first, end in rows], unit


def integer_row(edges: Sequence[tuple[int, Fraction, int]]) -> IntegerRow:
    """Edges (target, weight, cost) with weights in integers, and the sum of these."""
    scale = math.lcm(*(weight.denominator for _, weight, _ in edges))
    row = [(target, int(weight * scale), cost) for target, weight, cost in edges]
    return sum(w for _, w, _ in row), row


def same_but_costs(one: Any, other: Any) -> bool:
    """Whether two models have the same states, choices, outcomes and probabilities."""
    same = ("state_choices", "choice_outcomes", "outcome_target", "outcome_probability", "is_goal")
    return all(getattr(one, name).tolist() == getattr(other, name).tolist() for name in same)


@dataclass(frozen=True)
class ExactChain:
    """The reachable pairs; node 0 is the start unless that is a goal (`start` is GOAL then)."""

    rows: list[IntegerRow]
    start: int
    unit: Fraction


def exact_chain(ssp: SSP, policy: Any, most: int = MAX_PAIRS) -> ExactChain:
    """Unroll a policy by its own functions, as far as `most` pairs of state and memory, which take
    some seconds for every 100,000.
    """
    choices, unit = rows_of(ssp)
    goal = ssp.is_goal.tolist()
    if goal[ssp.start_index]:
        return ExactChain([], GOAL, unit)
    pairs = {(ssp.start_index, policy.start(ssp.start)): 0}
    queue = list(pairs)
    rows: list[IntegerRow] = []
    for state, memory in queue:  # grows while it is read
        name = ssp.states[state]
        decision = policy.action(name, memory)
        weights = decision if isinstance(decision, Mapping) else {decision: 1}
        taken = [
            (action, decimal(weight), ssp.choice_index(state, action))
            for action, weight in weights.items()
            if weight
        ]
        scale = math.lcm(*(choices[k][0] * weight.denominator for _, weight, k in taken))
        edges: dict[tuple[int, int], int] = {}
        for action, weight, choice in taken:
            denominator, outcomes = choices[choice]
            share = weight.numerator * scale // (denominator * weight.denominator)
            first = int(ssp.choice_outcomes[choice])
            for position, (target, w, cost) in enumerate(outcomes):
                node = GOAL
                if not goal[target]:
                    paid = float(ssp.observed[first + position])
                    pair = (target, policy.remember(memory, name, action, paid, ssp.states[target]))
                    if pair not in pairs:
                        pairs[pair] = len(pairs)
                        queue.append(pair)
                    node = pairs[pair]
                edges[node, cost] = edges.get((node, cost), 0) + share * w
        rows.append((sum(edges.values()), [(node, w, cost) for (node, cost), w in edges.items()]))
        if len(pairs) > most:
            raise OptionError(
                f"the checker follows at most {most} pairs of state and memory, and the policy"
                " reaches more"
            )
    return ExactChain(rows, 0, unit)


def leading_to(ends: Iterable[int], moves: Iterable[tuple[int, int]]) -> set[int]:
    """All from which moves (from, to) lead to one of the ends, and the ends themselves."""
    into: dict[int, list[int]] = {}
    for source, target in moves:
        into.setdefault(target, []).append(source)
    found = set(ends)
    waiting = list(found)
    while waiting:
        for node in into.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def moves_of(rows: list[IntegerRow]) -> Iterator[tuple[int, int]]:
    """From each node to each that an edge leads to."""
    return ((node, to) for node, (_, edges) in enumerate(rows) for to, _, _ in edges)


def with_trap(chain: ExactChain) -> tuple[ExactChain, int | None]:
    """The same chain with one node, the last, for all from which the goal is out of reach: it
    counts as arriving there. None if there are none.
    """
    reached = leading_to([GOAL], moves_of(chain.rows))
    if len(reached) == len(chain.rows) + 1:
        return chain, None
    trap, done = len(chain.rows), (1, [(GOAL, 1, 0)])
    rows = [
        (
            (denominator, [(to if to in reached else trap, w, cost) for to, w, cost in edges])
            if node in reached
            else done
        )
        for node, (denominator, edges) in enumerate(chain.rows)
    ]
    start = chain.start if chain.start in reached else trap
    return ExactChain([*rows, done], start, chain.unit), trap


def components(successors: list[list[int]]) -> list[int]:
    """The strong component of every node; edges lead to the same or a lower number (Tarjan, without
    recursion).
    """
    n = len(successors)
    index, low = [-1] * n, [0] * n
    label = [-1] * n
    stack: list[int] = []
    count = found = 0
    for root in range(n):
        work = [(root, 0)] if index[root] < 0 else []
        while work:
            node, position = work.pop()
            if index[node] < 0:
                index[node] = low[node] = count
                count += 1
                stack.append(node)
            for at in range(position, len(successors[node])):
                to = successors[node][at]
                if index[to] < 0:
                    work += [(node, at), (to, 0)]
                    break
                if label[to] < 0:
                    low[node] = min(low[node], low[to])
            else:
                if low[node] == index[node]:
                    while label[node] < 0:
                        label[stack.pop()] = found
                    found += 1
    return label


def zero_cost_cycles_removed(chain: ExactChain) -> tuple[ExactChain, list[int]]:
    """An equivalent chain whose zero-cost edges have no cycle, and a rank that falls along them."""
    zero_cost = [
        [to for to, _, cost in edges if cost == 0 and to != GOAL] for _, edges in chain.rows
    ]
    label = components(zero_cost)
    members: dict[int, list[int]] = {}
    for node, component in enumerate(label):
        if any(label[to] == component for to in zero_cost[node]):
            members.setdefault(component, []).append(node)
    rows = list(chain.rows)
    for group in members.values():
        if len(group) > LARGEST_CYCLE:
            raise OptionError(
                f"the checker solves cycles of at most {LARGEST_CYCLE} zero-cost moves, and"
                f" {len(group)} nodes are joined by them"
            )
        rows = _followed(rows, group)
    return ExactChain(rows, chain.start, chain.unit), label


def _followed(rows: list[IntegerRow], group: list[int]) -> list[IntegerRow]:
    """The rows of a component replaced by where a walker leaves it.

    A walk holds members of the component by number, and edges out of it as (target, cost).
    """
    members = set(group)
    walk: Walk = {}
    for node in group:
        denominator, edges = rows[node]
        walk[node] = {}
        for to, w, cost in edges:
            key = to if cost == 0 and to in members else (to, cost)
            walk[node][key] = walk[node].get(key, Fraction(0)) + Fraction(w, denominator)
    eliminate_exactly(walk)
    result = list(rows)
    for node in group:
        result[node] = integer_row([(to, p, cost) for (to, cost), p in walk[node].items()])
    return result


def eliminate_exactly(walk: Walk) -> None:
    """Take the nodes of a walk out of its rows, one after the other, in rationals: what is left of
    each is where a walker ends outside of them.
    """
    for gone, row in walk.items():
        leave = 1 - row.pop(gone, Fraction(0))
        for key in row:
            row[key] /= leave
        for other in walk.values():
            weight = other.pop(gone, None)
            if weight is not None:
                for key, p in row.items():
                    other[key] = other.get(key, Fraction(0)) + weight * p


# ---------------------------------------------------------------------- expected totals

BITS = 400
ONE = 1 << BITS
LARGEST_EXACT = 120
#: The share e of the expected steps counts 2^-SHARE.
SHARE = 500


def rate(row: IntegerRow) -> Fraction:
    """The expected cost of a step."""
    return Fraction(sum(w * cost for _, w, cost in row[1]), row[0])


def enclosed_totals(rows: list[IntegerRow], rates: list[Fraction]) -> list[tuple[int, int]]:
    """Lower and upper bound on the expected total from every node, in units of 2^-BITS. All rows
    must lead to the goal surely.
    """
    if not rows:
        return []
    # Everywhere else nothing is ever to pay, and the total is 0 exactly.
    paying = leading_to((node for node, rate in enumerate(rates) if rate > 0), moves_of(rows))
    if len(paying) < len(rows):
        position = {node: k for k, node in enumerate(sorted(paying))}
        remaining = [
            (rows[node][0], [(position.get(to, GOAL), w, c) for to, w, c in rows[node][1]])
            for node in position
        ]
        inner = enclosed_totals(remaining, [rates[node] for node in position])
        return [inner[position[k]] if k in paying else (0, 0) for k in range(len(rows))]
    guess = _guessed(rows, rates)
    if guess is not None:
        value, steps = guess
        bounds = _proved(rows, rates, value, steps)
        if bounds is not None:
            return bounds
    if len(rows) > LARGEST_EXACT:
        raise OptionError(
            f"the checker cannot enclose the expected costs of {len(rows)} nodes: the chain mixes"
            " too slowly for its size"
        )
    exact = solved(rows, rates)
    return [(_floor(v), -_floor(-v)) for v in exact]


def _floor(value: Fraction) -> int:
    return (value.numerator << BITS) // value.denominator


def _guessed(rows: list[IntegerRow], rates: list[Fraction]) -> tuple[list[int], list[int]] | None:
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    n = len(rows)
    entries = [
        (node, to, w / denominator)
        for node, (denominator, edges) in enumerate(rows)
        for to, w, _ in edges
        if to != GOAL
    ]
    source, target, p = zip(*entries) if entries else ((), (), ())
    matrix = eye_array(n, format="csc") - csc_array(
        (np.array(p, dtype=float), (source, target)), shape=(n, n)
    )
    try:
        factors = splu(matrix.tocsc())
        steps = factors.solve(np.ones(n))
        first = factors.solve(np.array([float(r) for r in rates]))
    except (RuntimeError, OverflowError):
        return None
    if not (np.all(np.isfinite(steps)) and np.all(np.isfinite(first)) and steps.min() >= 0.5):
        return None
    value = [_floor(Fraction(v)) for v in first.tolist()]
    integer_rates = [_floor(r) for r in rates]
    for _ in range(12):
        residual = [
            integer_rates[node] - value[node] + ahead(rows[node], value) for node in range(n)
        ]
        worst = max(abs(r) for r in residual)
        if worst <= 1 << 40:
            break
        scale = max(worst.bit_length() - 60, 0)
        change: Any = factors.solve(np.array([float(r >> scale) for r in residual]))
        if not np.all(np.isfinite(change)):
            return None
        value = [v + (int(c) << scale) for v, c in zip(value, change.tolist())]
    return value, [_floor(Fraction(1.01 * t)) for t in steps.tolist()]


def ahead(row: IntegerRow, value: list[int], unit: int = 0) -> int:
    """P v at one node, and, if the unit of costs is given, r + P v, rounded down."""
    denominator, edges = row
    total = sum(w * (cost * unit + (value[to] if to != GOAL else 0)) for to, w, cost in edges)
    return total // denominator


def _proved(
    rows: list[IntegerRow], rates: list[Fraction], value: list[int], steps: list[int]
) -> list[tuple[int, int]] | None:
    """Bounds v - e t and v + e t with the least e that the exact inequalities allow, or None."""
    share = 0
    for node, row in enumerate(rows):
        drift = steps[node] - ahead(row, steps) - 1
        if drift <= 0:
            return None
        n, d = rates[node].numerator, rates[node].denominator
        defect = abs((value[node] - ahead(row, value)) * d - n * ONE) + d
        share = max(share, -((-defect << SHARE) // (d * drift)))
    up = [-((-share * t) >> SHARE) for t in steps]
    return [(max(v - d, 0), v + d) for v, d in zip(value, up)]


def solved(rows: list[IntegerRow], rates: list[Fraction]) -> list[Fraction]:
    """Elimination in rationals; the rate is what every step comes to besides."""
    walk: Walk = {}
    for node, (denominator, edges) in enumerate(rows):
        walk[node] = {GOAL: rates[node]}
        for to, w, _ in edges:
            if to != GOAL:
                walk[node][to] = walk[node].get(to, Fraction(0)) + Fraction(w, denominator)
    eliminate_exactly(walk)
    return [row[GOAL] for row in walk.values()]
