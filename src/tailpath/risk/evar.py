"""Entropic value at risk: EVaR_alpha(Z) = min over beta > 0 of the entropic risk at beta plus
ln(1 / alpha) / beta, the closest bound of Chernoff's on VaR and CVaR.

With t = 1 / beta it is the minimum of g(t) = t ln E[exp(Z / t)] + t ln(1 / alpha), which is convex:
any t gives an upper bound, and lines through two values at t, extended beyond them, lie below
g. Entropic risk rises with beta, so that g is at least the risk at the largest beta before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from tailpath.certify.rounding import AFTERWARDS
from tailpath.model.cost_units import as_fraction
from tailpath.options import check_alpha, takes_alpha
from tailpath.risk.entropic import entropic, is_free
from tailpath.risk.measure import Measure

#: How closely beta is searched for, as a share; where lines are drawn around it; and how far from
#: the first guess it may lie, as logarithms.
CLOSE, AROUND, FARTHEST = 1e-6, (1e-5, 1e-3, 0.1), 25.0
#: More than any value in units of the first 1 / beta, for a search among numbers.
BEYOND = 1e100


class Value(NamedTuple):
    """The entropic risk at a beta, with bounds."""

    beta: float
    value: float
    low: float
    high: float

    def plus(self, penalty: float) -> Value:
        """The value, and bounds, of what EVaR is the minimum of; `penalty` is ln(1 / alpha)."""
        more = penalty / self.beta
        off = AFTERWARDS * more
        ends = self.value + more, self.low + (more - off), self.high + (more + off)
        return Value(self.beta, ends[0], _less(ends[1]), -_less(-ends[2]))


def _less(number: float) -> float:
    return math.nextafter(number, -math.inf) if math.isfinite(number) else number


@takes_alpha
@dataclass(frozen=True)
class EVaR(Measure):
    """The entropic value at risk, no less than CVaR; at 1 the mean, towards 0 the worst cost.

    Parameters
    ----------
    alpha : float in (0, 1]
        The mass of the worst tail.

    Examples
    --------
    >>> round(tp.EVaR(0.1)(costs), 6), round(tp.EVaR(0.5)(costs), 6)
    (60.0, 43.099611)
    """

    alpha: float
    word = "evar"
    moves_with_costs = True
    solver = "tailpath.solvers.objectives.entropic:least_evar"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))

    @property
    def penalty(self) -> float:
        """ln(1 / alpha), which is divided by beta, of the alpha as written."""
        rest = 1 - as_fraction(self.alpha)
        return -math.log1p(-float(rest)) if rest < 0.5 else -math.log(self.alpha)

    def __call__(self, costs: Any) -> float:
        found = tried(costs, self)
        return min((value.plus(self.penalty).value for value in found), default=float(costs.mean))

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = costs.mean_bounds
        found = tried(costs, self, AROUND)
        if not found:
            return low, high
        least = min(_least_parts(found, self.penalty, low))
        return max(low, least), min(value.plus(self.penalty).high for value in found)


def tried(costs: Any, goal: EVaR, around: tuple[float, ...] = ()) -> list[Value]:
    """The entropic risks that were looked at, by falling beta, up to these shares around the best;
    none at alpha = 1, if nothing costs anything, or if the mean is infinite.
    """
    if goal.alpha == 1 or is_free(costs) or not math.isfinite(costs.mean):
        return []
    penalty = goal.penalty
    at = least_over_beta(lambda beta: entropic(costs, beta), penalty, first_beta(costs))
    best = min(at.values(), key=lambda value: value.plus(penalty).value).beta
    for share in around if best < max(at) else ():
        for beta in (best * (1 - share), best * (1 + share)):
            at[beta] = Value(beta, *entropic(costs, beta))
    return sorted(at.values(), reverse=True)


def first_beta(costs: Any) -> float:
    """A guess of the best beta, far enough from the ends of the floats."""
    mean, spread = abs(float(costs.mean)), float(costs.std)
    return 1 / max(spread if math.isfinite(spread) else mean, 1e-3 * mean, 1e-290)


def least_over_beta(
    entropic_at: Callable[[float], tuple[float, float, float]], penalty: float, first: float
) -> dict[float, Value]:
    """What was tried in the search for the best beta: outwards from the first, by doubling steps,
    until a lowest value was passed, and then around that.
    """
    tried: dict[float, Value] = {}

    def at(log: float) -> float:
        beta = first * math.exp(log)
        tried[beta] = found = Value(beta, *entropic_at(beta))
        value = found.plus(penalty).value
        # Beyond where the risk is finite, less is nearer to it.
        return value * first if math.isfinite(value) else BEYOND * (2 * FARTHEST + log)

    points, step = {log: at(log) for log in (-1.0, 0.0, 1.0)}, 1.0
    while True:
        ordered = sorted(points)
        best = min(ordered, key=points.__getitem__)
        low, *_, high = ordered
        if low < best < high:
            break
        step *= 2
        edge = min(best + step, FARTHEST) if best == high else max(best - step, -FARTHEST)
        if edge in points:
            return tried
        points[edge] = at(edge)
    from scipy.optimize import minimize_scalar

    place = ordered.index(best)
    between = ordered[place - 1], ordered[place + 1]
    minimize_scalar(at, bounds=between, method="bounded", options={"xatol": CLOSE})
    return tried


def _least_parts(found: list[Value], penalty: float, mean: float) -> Iterator[float]:
    """Lower bounds on a convex g(t), t = 1 / beta, on every part between values at rising t, and
    beyond them.
    """
    ends = [tried.plus(penalty) for tried in found]
    t = [1 / Fraction(tried.beta) for tried in found]
    last = len(t) - 1

    def line(first: int, second: int) -> tuple[Fraction, Fraction] | None:
        """The slope and the value at 0 of the line through two of them, which lies below g beyond
        the second.
        """
        if not 0 <= first <= last or not math.isfinite(ends[first].high - ends[second].low):
            return None
        low = Fraction(ends[second].low)
        slope = (low - Fraction(ends[first].high)) / (t[second] - t[first])
        return slope, low - slope * t[second]

    def least(
        begin: Fraction, end: Fraction, lines: list[tuple[Fraction, Fraction] | None]
    ) -> float:
        """The least of the largest of some lines, at an end or where two of them meet."""
        known = [own for own in lines if own is not None]
        at = [begin, end]
        if len(known) == 2 and known[0][0] != known[1][0]:
            (a, b), (c, d) = known
            at.append(min(max((d - b) / (a - c), begin), end))
        lows = [max(slope * x + zero for slope, zero in known) for x in at] if known else []
        return _less(float(min(lows))) if lows else -math.inf

    def rising(risk: float, beta: float) -> float:
        """Where the entropic risk is at least so much, up to a beta."""
        return _less(risk + penalty / beta * (1 - AFTERWARDS))

    yield max(found[0].low, least(Fraction(0), t[0], [line(1, 0)]))
    for k in range(last):
        between = least(t[k], t[k + 1], [line(k - 1, k), line(k + 2, k + 1)])
        yield max(between, rising(found[k + 1].low, found[k].beta))
    behind = line(last - 1, last)
    falls = behind is None or behind[0] < 0
    yield max(rising(mean, found[-1].beta), -math.inf if falls else ends[-1].low)
