"""The total cost of a policy, enclosed: masses move forward in integer multiples of 2^-BITS,
rounded down for one side and up for the other.

A `CostDistribution` claims its head, what lies beyond, the mean, and bounds on every CVaR. Each
claim is held against the enclosure, which is some hundred digits tight; whatever does not hold is
refused by name.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tailpath.errors import OptionError, RefutedError
from tailpath.verify.chain import BITS as TOTAL_BITS
from tailpath.verify.chain import (
    GOAL,
    MAX_PAIRS,
    ExactChain,
    enclosed_totals,
    exact_chain,
    rate,
    with_trap,
    zero_cost_cycles_removed,
)

#: Masses count 2^-BITS, far below what any claim could rest on.
BITS = 1400
FINE = BITS + TOTAL_BITS
MAX_NODES = 2_000_000
EXCESS = "E[(Z - last cost)+]"


@dataclass(frozen=True)
class Proof:
    """What was proved, one line each, and the width of the widest bounds relative to their size."""

    proved: tuple[str, ...]
    width: float

    def __str__(self) -> str:
        return "\n".join(self.proved)


@dataclass(frozen=True)
class Truth:
    """Of a total cost, in integers: costs count `unit`, masses 2^-BITS, and the excess and the
    mean 2^-FINE units.

    `head[z]` encloses P(Z = z) for costs z up to `last`; then the mass beyond it, what never
    arrives included, and the excess and the mean, which count only what arrives; `missed`, in
    2^-TOTAL_BITS, encloses the probability of never arriving.
    """

    unit: Fraction
    head: dict[int, list[int]]
    last: int
    tail: tuple[int, int]
    excess: tuple[int, int]
    mean: tuple[int, int]
    missed: tuple[int, int]

    def cvar(self, alpha: Fraction) -> tuple[Fraction, Fraction]:
        """min over w of w + E[(Z - w)+] / alpha on either side, where the goal is sure.

        Where more than alpha lies beyond `last`, the best w may lie there, too: no w has less than
        the mean of what lies beyond.
        """
        up, down = alpha.numerator << FINE, alpha.denominator
        best = []
        for side in (0, 1):
            above, tail = self.excess[side], self.tail[side]
            after = self.last
            least = after * up + above * down
            for cost in sorted(self.head, reverse=True):
                above += (after - cost) * tail << FINE - BITS
                least = min(least, cost * up + above * down)
                tail, after = tail + self.head[cost][side], cost
            best.append(min(least, (above + (after * tail << FINE - BITS)) * down))
        low, high = (Fraction(side, up) for side in best)
        if self.tail_exceeds(alpha):
            low = min(low, self.last + Fraction(self.excess[0], self.tail[1] << FINE - BITS))
        return low * self.unit, high * self.unit

    def tail_exceeds(self, alpha: Fraction) -> bool:
        """Whether more than alpha may lie beyond `last`, which is then short of the VaR."""
        return probability(self.tail[1]) > alpha

    def total(self, of: tuple[int, int]) -> tuple[Fraction, Fraction]:
        return Fraction(of[0], 1 << FINE) * self.unit, Fraction(of[1], 1 << FINE) * self.unit


def enclose(ssp: Any, policy: Any, last: Fraction, most: int = MAX_NODES) -> Truth:
    """Follow the policy exactly up to the cost `last`, through at most `most` nodes, and pairs of
    node and cost.
    """
    chain, trap = with_trap(exact_chain(ssp, policy, min(most, MAX_PAIRS)))
    chain, rank = zero_cost_cycles_removed(chain)
    to_go = enclosed_totals(chain.rows, [rate(row) for row in chain.rows])
    missed = (0, 0)
    if chain.start == trap:
        missed = (1 << TOTAL_BITS, 1 << TOTAL_BITS)
    elif trap is not None:
        into = [
            Fraction(sum(w for to, w, _ in edges if to == trap), denominator)
            for denominator, edges in chain.rows
        ]
        missed = enclosed_totals(chain.rows, into)[chain.start]
    end = math.floor(last / chain.unit)
    head, beyond = _forward(chain, rank, end, most, trap)
    tail, excess = [0, 0], [0, 0]  # below and above
    for (node, cost), masses in beyond.items():
        for side in (0, 1):
            tail[side] += masses[side]
            excess[side] += masses[side] * (
                (cost - end << FINE - BITS) + (to_go[node][side] if node != GOAL else 0)
            )
    low, high = to_go[chain.start] if chain.start != GOAL else (0, 0)
    mean = low << BITS, high << BITS
    ends = (tail[0], tail[1]), (excess[0], excess[1])
    return Truth(chain.unit, head, end, *ends, mean, missed)


def _forward(
    chain: ExactChain, rank: list[int], last: int, most: int, trap: int | None
) -> tuple[dict[int, list[int]], dict[tuple[int, int], list[int]]]:
    """The masses that arrive, by cost up to `last`, and what remains beyond or in the trap, by node
    and cost.
    """
    arrived: dict[int, list[int]] = {}
    beyond: dict[tuple[int, int], list[int]] = {}
    denominator = 1 << BITS
    if chain.start == GOAL:
        return {0: [denominator, denominator]}, {}
    masses = {(0, chain.start): [denominator, denominator]}
    queue = [(0, -rank[chain.start], chain.start)]
    for _ in range(most):
        if not queue:
            return arrived, beyond
        cost, _, node = heapq.heappop(queue)
        low, high = masses.pop((cost, node))
        total, edges = chain.rows[node]
        for to, w, more in edges:
            there = cost + more
            share = (low * w // total, -(-high * w // total))
            if there > last or to == trap:
                bounds = beyond.setdefault((to, there), [0, 0])
            elif to == GOAL:
                bounds = arrived.setdefault(there, [0, 0])
            else:
                if (there, to) not in masses:
                    heapq.heappush(queue, (there, -rank[to], to))
                bounds = masses.setdefault((there, to), [0, 0])
            bounds[0] += share[0]
            bounds[1] += share[1]
    raise OptionError(f"the checker expands at most {most} pairs of node and cost")


def check_distribution(costs: Any, ssp: Any, policy: Any, most: int = MAX_NODES) -> Proof:
    """Hold every claim of a `CostDistribution` against the policy on the model as given."""
    if costs.gamma != 1:
        raise OptionError("the checker does not support a discount")
    if not len(costs.costs):
        raise OptionError("the checker checks policies that arrive; this one never does")
    last = _last(costs, ssp)
    truth = enclose(ssp, policy, last, most)
    if truth.missed[1]:
        return _may_miss(costs, truth)
    if costs.unreached:
        raise RefutedError(
            f"the policy is claimed to miss the goal with probability {costs.unreached!r}, but it"
            " is certain to arrive"
        )
    proved = [
        _head(costs, truth),
        _tail(costs, truth),
        proved_within(EXCESS, truth.total(truth.excess), _widened_excess(costs)),
        proved_within("the mean", truth.total(truth.mean), costs.mean_bounds),
    ]
    refuse_outside("the mean", costs.mean, costs.mean_bounds)
    refuse_outside(EXCESS, costs.tail_excess, costs.tail_excess_bounds)
    width = 0.0
    for alpha in sorted(
        {costs.alpha, *(a for a in (1e-3, 0.01, 0.1, 0.5, 1.0) if a > costs.alpha)}
    ):
        low, high = costs.bounds(alpha)
        proved.append(
            proved_within(f"CVaR at alpha {alpha:g}", truth.cvar(Fraction(alpha)), (low, high))
        )
        width = max(width, relative_width(low, high))
    return Proof(tuple(proved), width)


def _may_miss(costs: Any, truth: Truth) -> Proof:
    """The claims about a policy that may miss the goal: the probability of that, the head, and that
    nothing else is finite.
    """
    low, high = (Fraction(side, 1 << TOTAL_BITS) for side in truth.missed)
    what = "the probability of never arriving"
    proved = proved_within(what, (low, high), costs.unreached_bounds)
    refuse_outside(what, costs.unreached, costs.unreached_bounds)
    levels = (a for a in (costs.alpha, 0.5, 1.0) if a >= costs.alpha)
    claims = {f"CVaR at alpha {a:g}": costs.cvar(a) for a in levels} | {"mean": costs.mean}
    for what, claim in claims.items():
        if math.isfinite(claim):
            raise RefutedError(
                f"the {what} is claimed to be finite, but the policy may miss the goal"
            )
    lines = (_head(costs, truth), _tail(costs, truth), proved)
    return Proof((*lines, "the mean and every CVaR are infinite"), math.inf)


def _last(costs: Any, ssp: Any) -> Fraction:
    """The last cost of the head as a multiple of the unit, or a little more where costs have none:
    nothing new may come in between.
    """
    if ssp.cost_unit is not None:
        unit = Fraction(ssp.cost_unit)
        return round(Fraction(float(costs.costs[-1])) / unit) * unit
    return Fraction(float(costs.costs[-1])) * (1 + Fraction(costs.enclosure.cost_error))


def _head(costs: Any, truth: Truth) -> str:
    """Every cost and its probability; costs that agree within their own error count as one."""
    known = costs.enclosure
    if len(known.costs) != len(costs.costs):
        raise RefutedError(f"{len(costs.costs)} costs are claimed, and {len(known.costs)} bounded")
    # Probabilities below the smallest normal float lose digits.
    error, stray = Fraction(known.cost_error), Fraction(known.stray) + Fraction(1, 2**1070)
    found = sorted(truth.head.items())
    at = 0
    for first, last, claim_low, claim_high in _clusters(costs, error, truth.unit):
        low = high = 0
        while at < len(found) and found[at][0] <= last:
            if found[at][0] < first and probability(found[at][1][0]) > stray:
                missing = float(found[at][0] * truth.unit)
                raise RefutedError(
                    f"the total cost {missing!r} is missing, with probability"
                    f" {float(probability(found[at][1][0]))!r}"
                )
            low, high = low + found[at][1][0], high + found[at][1][1]
            at += 1
        # Of the last cost, where it is a float, other roundings may still be open.
        split = last >= truth.last and _rounded(costs, truth)
        if not (
            claim_low <= probability(high) + Fraction(1, 2**1070)
            and (split or probability(low) <= claim_high + stray)
        ):
            about = float(last * truth.unit)
            raise RefutedError(
                f"the probability of a total cost of about {about!r} is"
                f" {float(probability(low))!r}, not {float(claim_high)!r}"
            )
    columns = costs.costs, costs.probabilities, known.low.masses, known.high.masses
    for cost, claim, *within in zip(*(column.tolist() for column in columns)):
        refuse_outside(f"the probability of a total cost of {cost!r}", claim, within)
    return (
        f"every cost up to {float(costs.costs[-1]):.12g} ({len(costs.costs)} in all) and its"
        " probability, each within its bounds"
    )


def _tail(costs: Any, truth: Truth) -> str:
    """What lies beyond the head, or, where costs are floats, from the last of them on."""
    low, high = (probability(mass) for mass in truth.tail)
    known = costs.enclosure
    claim_low, claim_high = (Fraction(mass) for mass in known.tail_mass)
    refuse_outside("the probability of what lies beyond", costs.tail_mass, known.tail_mass)
    if _rounded(costs, truth):
        first, last, *there = _clusters(costs, Fraction(known.cost_error), truth.unit)[-1]
        near = [masses for cost, masses in truth.head.items() if first <= cost <= last]
        low += probability(sum(least for least, _ in near))
        high += probability(sum(most for _, most in near))
        claim_low += there[0]
        claim_high += there[1]
    return proved_within(
        "the probability of what lies beyond", (low, high), (claim_low, claim_high)
    )


def _rounded(costs: Any, truth: Truth) -> bool:
    """Whether the costs are sums of floats that rounding may have split. Up to 2^53 multiples of a
    power of two are added without rounding.
    """
    dyadic = truth.unit.denominator & (truth.unit.denominator - 1) == 0
    exact = dyadic and truth.last * truth.unit.numerator <= 2**53
    return not exact and Fraction(costs.enclosure.cost_error) > Fraction(1, 2**50)


def _clusters(
    costs: Any, error: Fraction, unit: Fraction
) -> list[tuple[int, int, Fraction, Fraction]]:
    """The head as (least cost, most cost, bounds on the probability): floats that their error
    cannot tell apart stand for costs that it may have split.
    """
    clusters: list[tuple[int, int, Fraction, Fraction]] = []
    known = costs.enclosure
    masses = zip(known.low.masses.tolist(), known.high.masses.tolist())
    for cost, (low, high) in zip(costs.costs.tolist(), masses):
        exact = Fraction(cost) / unit
        first, last = math.ceil(exact * (1 - error)), math.floor(exact * (1 + error))
        least, most = Fraction(low), Fraction(high)
        if clusters and first <= clusters[-1][1]:
            before = clusters.pop()
            first = before[0]
            least, most = before[2] + least, before[3] + most
        clusters.append((first, last, least, most))
    return clusters


def probability(mass: int) -> Fraction:
    return Fraction(mass, 1 << BITS)


def _widened_excess(costs: Any) -> tuple[Any, Any]:
    """Bounds on the excess, with what the last cost, a float, may add: it may be off by its error,
    and `_last` makes it that much higher.
    """
    low, high = costs.tail_excess_bounds
    share = Fraction(float(costs.costs[-1]) * costs.tail_mass) / Fraction(low) if low > 0 else 0
    off = 2 * Fraction(costs.enclosure.cost_error) * (1 + share)
    return Fraction(low) * (1 - off), Fraction(high) * (1 + off) if high < math.inf else high


def relative_width(low: float, high: float) -> float:
    return (high - low) / abs(high) if high != 0 else 0.0


def refuse_outside(what: str, value: float, bounds: Sequence[Any]) -> None:
    """Refuse a value outside of its own bounds."""
    low, high = bounds
    if not low <= value <= high:
        raise RefutedError(
            f"{what} is {value!r}, outside of its own bounds [{float(low)!r}, {float(high)!r}]"
        )


def proved_within(what: str, truth: tuple[Fraction, Fraction], claim: tuple[Any, Any]) -> str:
    """A line that says what was proved, or the refusal: the enclosure must lie inside the bounds
    claimed.

    What is smaller than any float counts as 0. An enclosure that is wide itself, because the
    numbers of a model lie too far apart, decides nothing where it only overlaps the claim.
    """
    if not (claim[0] <= truth[0] and truth[1] <= claim[1] + Fraction(1, 2**1070)):
        apart = truth[1] < claim[0] or claim[1] < truth[0]
        if not apart and truth[1] - truth[0] > truth[1] * Fraction(1, 10**25):
            raise OptionError(f"the checker encloses {what} too coarsely to decide about it")
        raise RefutedError(
            f"{what} is {float(truth[0])!r}, outside of the bounds claimed, [{float(claim[0])!r},"
            f" {float(claim[1])!r}]"
        )
    return f"{what} lies in [{float(claim[0]):.15g}, {float(claim[1]):.15g}]"
