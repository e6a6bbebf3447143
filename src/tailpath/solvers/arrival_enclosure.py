"""The largest probability of arriving, enclosed so finely that what is computed from it is correctly rounded; for problems of any size.

On the core of the model of losses (`solvers/arrival.py`) every policy leaves surely: to where it arrives, or to where it is lost. The largest
probability H of arriving solves H = max (r + P H), with r the probability of arriving at once.

*Below.* A policy's own probability is enclosed in whole multiples of a tiny unit, and the policy is improved until no choice is better by more
than can be told. Refinement of a guess in floats does that (`verify/totals.py`); where the policy needs so many steps that floats are of no help,
as policies do that avoid every risk, elimination without subtraction in long decimals does, whose relative error does not depend on the steps
(`kernels/absorption.py` has the reason).
*Above.* Let H' be the policy's upper bound, and t >= 1/2 + P t for every choice that ties with the policy's own. Then U = H' + e t satisfies
U >= r + P U for these choices as soon as e / 2 exceeds the largest gain of any of them over H', and for the others since e t is tiny, which is
checked; hence H <= U. For t serves the expected number of steps of the slowest policy that ties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import Core
from tailpath.errors import OptionError
from tailpath.model.cost_units import as_fraction
from tailpath.model.ssp import FloatArray
from tailpath.verify.chain import GOAL, Row
from tailpath.verify.totals import ONE, enclosed

#: Whole numbers take a microsecond or so per outcome, and memory: beyond so many nodes nothing is enclosed.
LARGEST = 200_000
#: Products of an elimination beyond which it would take minutes.
MOST_PRODUCTS = 50_000_000
MOST_POLICIES = 100
#: The digits of an elimination.
DIGITS = 160
#: Choices that differ by less than 2^-TIED of H need the proof for ties; an enclosure must agree in FINE bits.
TIED, FINE = 100, 60

Enclosure = list[tuple[Fraction, Fraction]]
Bounds = list[tuple[int, int]]


def enclose_arrival(core: Core, arrives: NDArray[np.bool_], chosen: NDArray[np.int64], guess: FloatArray) -> Enclosure | None:
    """Bounds on H per node, relatively closer than 2^-FINE; None where the problem is too large for that.

    `arrives` marks the outcomes of the core that arrive, `chosen` is a policy near the best, and `guess` its probability of arriving in floats.
    """
    if core.n > LARGEST or not guess.min() > 0:
        return None
    choices = _Choices(core, arrives, scale=1 << min(-math.floor(math.log2(guess.min())), 900))
    policy = chosen.tolist()
    for _ in range(MOST_POLICIES):
        bounds = choices.totals(policy, choices.rates)
        if bounds is None:
            return None
        ahead = choices.ahead(choices.rates, [low for low, _ in bounds])
        moved = [(node, k) for node, k in enumerate(choices.best(ahead)) if ahead[k] > bounds[node][1] + 1]
        if not moved:
            break
        for node, k in moved:
            policy[node] = k
    else:
        return None
    upper = _above(choices, policy, [high for _, high in bounds])
    if upper is None or any(low <= 0 or (high - low) << FINE > low for (low, _), high in zip(bounds, upper)):
        return None
    whole = ONE * choices.scale
    return [(Fraction(low, whole), min(Fraction(high, whole), Fraction(1))) for (low, _), high in zip(bounds, upper)]


def _above(choices: _Choices, policy: list[int], high: list[int]) -> list[int] | None:
    """U for a policy, from its own upper bounds, that no choice beats by more than can be told; or None."""
    ahead = choices.ahead(choices.rates, high)
    tied = [(high[node] - ahead[k]) << TIED <= high[node] for k, node in enumerate(choices.node)]
    steps = _slowest(choices, policy, tied)
    if steps is None:
        return None
    gain = max(0, *(ahead[k] - high[node] for k, node in enumerate(choices.node) if tied[k])) + 4
    more = [2 * (gain * t // ONE + 1) for t in steps]
    upper = [top + extra for top, extra in zip(high, more)]
    again = choices.ahead(choices.rates, upper)
    return upper if all(again[k] <= upper[node] for k, node in enumerate(choices.node)) else None


def _slowest(choices: _Choices, policy: list[int], tied: Sequence[bool]) -> list[int] | None:
    """Numbers t, in units of 1 / ONE, with t >= 1/2 + P t for every choice that ties: steps of the policy that takes most of them."""
    policy = list(policy)
    ones = [Fraction(1)] * len(choices.rows)
    for _ in range(MOST_POLICIES):
        bounds = choices.totals(policy, ones)
        if bounds is None:
            return None
        steps = [high for _, high in bounds]
        ahead = [after if tied[k] else 0 for k, after in enumerate(choices.ahead(ones, steps))]
        slower = [(node, k) for node, k in enumerate(choices.best(ahead)) if 4 * (ahead[k] - steps[node]) > ONE]
        if not slower:
            return steps
        for node, k in slower:
            policy[node] = k
    return None


class _Choices:
    """Every choice of the core in whole numbers, with its probability of arriving at once; values count 1 / ONE, and H counts 1 / (ONE scale)."""

    def __init__(self, core: Core, arrives: NDArray[np.bool_], scale: int) -> None:
        exact = cache(as_fraction)
        weight, target, home = [exact(p) for p in core.probability.tolist()], core.target.tolist(), arrives.tolist()
        self.scale, self.first = scale, core.state_choices.tolist()
        self.node = [node for node in range(core.n) for _ in range(self.first[node], self.first[node + 1])]
        self.rows: list[Row] = []
        self.rates: list[Fraction] = []
        offsets = core.choice_outcomes.tolist()
        for begin, end in pairwise(offsets):
            common = math.lcm(*(w.denominator for w in weight[begin:end]))
            whole = [w.numerator * (common // w.denominator) for w in weight[begin:end]]
            self.rows.append((sum(whole), [(to if to < core.n else GOAL, w, 0) for to, w in zip(target[begin:end], whole)]))
            self.rates.append(Fraction(scale * sum(w for w, at in zip(whole, home[begin:end]) if at), sum(whole)))

    def totals(self, policy: list[int], rates: list[Fraction]) -> Bounds | None:
        """The expected total of the rates under a policy, enclosed."""
        rows, collected = [self.rows[k] for k in policy], [rates[k] for k in policy]
        try:
            return enclosed(rows, collected)
        except OptionError:
            return eliminated(rows, collected)

    def ahead(self, rates: list[Fraction], value: list[int]) -> list[int]:
        """r + P v of every choice, rounded up."""
        return [
            -(-sum(w * value[to] for to, w, _ in arrows if to != GOAL) // whole) - (-rate.numerator * ONE // rate.denominator)
            for (whole, arrows), rate in zip(self.rows, rates)
        ]

    def best(self, ahead: list[int]) -> list[int]:
        """The choice with the greatest value in every node."""
        return [max(range(begin, end), key=ahead.__getitem__) for begin, end in pairwise(self.first)]


def eliminated(rows: Sequence[Row], rates: Sequence[Fraction]) -> Bounds | None:
    """Expected totals by elimination without subtraction, in long decimals, nodes with few neighbours first; None if it would take too long."""
    n = len(rows)
    with localcontext() as context:
        context.prec = DIGITS
        out: list[dict[int, Decimal]] = [{} for _ in rows]
        into: list[set[int]] = [set() for _ in rows]
        leave, gain = [Decimal(0)] * n, [Decimal(rate.numerator) / rate.denominator for rate in rates]
        for node, (whole, arrows) in enumerate(rows):
            for to, w, _ in arrows:
                if to == GOAL:
                    leave[node] += Decimal(w) / whole
                elif to != node:
                    out[node][to] = out[node].get(to, Decimal(0)) + Decimal(w) / whole
                    into[to].add(node)
        waiting = [(len(out[node]) * len(into[node]), node) for node in range(n)]
        heapify(waiting)
        order: list[int] = []
        away = [Decimal(0)] * n
        products, roundings = 0, 0
        while waiting:
            work, node = heappop(waiting)
            if away[node] or work < len(out[node]) * len(into[node]):
                if not away[node]:
                    heappush(waiting, (len(out[node]) * len(into[node]), node))
                continue
            order.append(node)
            away[node] = leave[node] + sum(out[node].values())
            products += work
            roundings += len(out[node]) + 10
            if products > MOST_PRODUCTS or not away[node]:
                return None
            for before in into[node]:
                share = out[before].pop(node) / away[node]
                leave[before] += share * leave[node]
                gain[before] += share * gain[node]
                for to, p in out[node].items():
                    if to != before:
                        out[before][to] = out[before].get(to, Decimal(0)) + share * p
                        into[to].add(before)
            for to in out[node]:
                into[to].discard(node)
        value = [Decimal(0)] * n
        for node in reversed(order):
            value[node] = (gain[node] + sum(p * value[to] for to, p in out[node].items())) / away[node]
    error = Fraction(4 * n * roundings, 10 ** (DIGITS - 1))
    found = [Fraction(v) * ONE for v in value]
    return [(math.floor(v * (1 - error)), math.ceil(v * (1 + error))) for v in found]
