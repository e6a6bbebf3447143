"""The measures of risk: `Mean`, `CVaR`, `VaR`, `Late`, `Shortfall` and `Loss`; and measures and
limits from text, as they print: `mean`, `cvar(0.05)`, `0.7 * mean + 0.3 * cvar(5%)`, `late(35) <=
0.05`.

| text | what it is |
| --- | --- |
| `word(number, ...)` | a measure; `mean` needs no brackets |
| `number * measure`, `a + b`, `a - b` | a sum |
| `measure <= number` | a limit |

Numbers may be written as percentages. Every `Measure` is known by its `word` (`REGISTER` in
`measure.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tailpath.errors import OptionError
from tailpath.model.border import less
from tailpath.options import check_alpha, check_amount, takes_alpha
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import REGISTER, Limit, Measure, Sum, parse_number_or_percent
from tailpath.texts import did_you_mean

_TERM = re.compile(
    r"\s*(?P<sign>[+-]?)\s*(?:(?P<factor>[\d.][\d.eE]*(?:[eE][+-]?\d+)?%?)\s*\*)?"
    r"\s*(?P<word>[A-Za-z_]\w*)\s*(?:\((?P<inside>[^()]*)\))?\s*"
)


@dataclass(frozen=True)
class Mean(Measure):
    """The expected total cost E[Z]; infinite if the goal may be missed.

    Examples
    --------
    >>> tp.Mean()(costs)
    24.0
    """

    word = "mean"
    moves_with_costs = True
    solver = "tailpath.solvers.objectives.unconstrained:least_mean"

    @property
    def curve(self) -> Curve:
        return curve_of([(0, 0)], 1)

    @property
    def farthest_cost(self) -> float:
        return -math.inf

    def __call__(self, costs: Any) -> float:
        return float(costs.mean)

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = costs.mean_bounds
        return float(low), float(high)


@takes_alpha
@dataclass(frozen=True)
class CVaR(Measure):
    """The mean of the worst `alpha` of all runs; at 1 the mean, towards 0 the worst cost.

    Parameters
    ----------
    alpha : float in (0, 1]
        The mass of the worst tail.

    Examples
    --------
    >>> tp.CVaR(0.1)(costs)
    60.0
    >>> print(0.5 * tp.Mean() + 0.5 * tp.CVaR(0.1), "and", tp.CVaR(0.1) <= 45)
    0.5 * mean + 0.5 * cvar(0.1) and cvar(0.1) <= 45
    """

    alpha: float
    word = "cvar"
    moves_with_costs = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))

    @property
    def tail(self) -> tuple[float, float]:
        return 1.0, self.alpha

    @property
    def finest_alpha(self) -> float:
        return self.alpha

    def __call__(self, costs: Any) -> float:
        return float(costs.cvar(self.alpha))

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = costs.bounds(self.alpha)
        return float(low), float(high)


@takes_alpha
@dataclass(frozen=True)
class VaR(Measure):
    """The least cost that is exceeded with probability `alpha` at most.

    In a sum with other measures it can be evaluated, but not minimised or limited.

    Parameters
    ----------
    alpha : float in (0, 1]
        The mass of the worst tail.

    Examples
    --------
    >>> tp.VaR(0.1)(costs), tp.VaR(0.05)(costs)
    (20.0, 60.0)
    """

    alpha: float
    word = "var"
    moves_with_costs = True
    solver = "tailpath.solvers.objectives.unconstrained:least_var"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))

    @property
    def finest_alpha(self) -> float:
        return self.alpha

    def as_limit(self, bound: float) -> tuple[Measure, float]:
        return Late(bound), self.alpha  # VaR_alpha <= t exactly if P(Z > t) <= alpha

    def __call__(self, costs: Any) -> float:
        return float(costs.var(self.alpha))

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        """Proved bounds on the VaR: one cost twice, unless a tail mass may be alpha.

        Parameters
        ----------
        costs : CostDistribution
            The distribution of the total cost.

        Returns
        -------
        tuple (low, high)
            The VaR lies between them.

        Examples
        --------
        >>> tp.VaR(0.05).bounds_of(costs), tp.VaR(0.1).bounds_of(costs)
        ((60.0, 60.0), (20.0, 60.0))
        """
        low, high = costs.var_bounds(self.alpha)
        return float(low), float(high)


@dataclass(frozen=True)
class Late(Measure):
    """The probability P(Z > deadline) of being late.

    A cost of exactly the deadline is on time. `Late(inf)` is not arriving at all.

    Parameters
    ----------
    deadline : float
        The largest cost that is on time; may be infinite.

    Examples
    --------
    >>> tp.Late(30)(costs), tp.Late(60)(costs)
    (0.1, 0.0)
    """

    deadline: float
    word = "late"
    solver = "tailpath.solvers.objectives.unconstrained:least_lateness"

    def __post_init__(self) -> None:
        object.__setattr__(self, "deadline", check_amount(self.deadline, "a deadline", signed=True))

    @property
    def curve(self) -> Curve | None:
        finite = math.isfinite(self.deadline)
        return curve_of([(self.deadline, 0), (self.deadline, 1)], 0) if finite else None

    def moved(self, by: Fraction, unit: Fraction | None) -> tuple[Measure, Fraction]:
        if math.isinf(self.deadline):
            return self, Fraction(0)
        # Costs are whole units, so a broken one does not count, and none may be rounded up to.
        allowed = less(self.deadline, by, unit)
        limit = allowed if unit is None else math.floor(allowed / unit) * unit
        return Late(float(limit)), Fraction(0)

    def __call__(self, costs: Any) -> float:
        return float(costs.unreached) if math.isinf(self.deadline) else super().__call__(costs)

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        never = math.isinf(self.deadline)
        low, high = costs.unreached_bounds if never else super().bounds_of(costs)
        return max(float(low), 0.0), min(float(high), 1.0)


@dataclass(frozen=True)
class Shortfall(Measure):
    """The expected cost beyond a budget, E[(Z - budget)+], over all runs.

    Parameters
    ----------
    budget : float
        What may be paid; finite.

    Examples
    --------
    >>> tp.Shortfall(30)(costs)
    3.0
    """

    budget: float
    word = "shortfall"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "budget", check_amount(self.budget, "a budget", finite=True, signed=True)
        )

    @property
    def curve(self) -> Curve:
        return curve_of([(self.budget, 0)], 1)

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = super().bounds_of(costs)
        return max(low, 0.0), high


@dataclass(frozen=True)
class Loss(Measure):
    """The expectation E[h(Z)] of a piecewise linear loss h of the total cost.

    h is constant before the first point. Two points at one cost are a jump just behind it; h may
    fall and need not be convex.

    Parameters
    ----------
    points : sequence of pairs (cost, value)
        Points of h, by rising cost, at most two at one cost.
    slope : float, 0 or more
        How steeply h rises behind the last point.

    Examples
    --------
    >>> tp.Loss([(30, 0), (30, 5)], 1)(costs)
    3.5
    """

    points: tuple[tuple[float, float], ...]
    slope: float = 0.0
    word = "loss"

    def __post_init__(self) -> None:
        try:
            pairs = tuple((float(x), float(y)) for x, y in self.points)
            object.__setattr__(self, "slope", float(self.slope))
        except (TypeError, ValueError, OverflowError):
            raise OptionError(
                "a loss takes points (cost, value) and a slope, all numbers"
            ) from None
        object.__setattr__(self, "points", pairs)
        self.curve  # noqa: B018  the check

    @cached_property
    def curve(self) -> Curve:
        """The loss h."""
        return curve_of(self.points, self.slope)

    @classmethod
    def parsed(cls, words: list[str]) -> Measure:
        """Make a loss from the words between the brackets of its text.

        Parameters
        ----------
        words : list of str
            Points `0:0`, `35:0`, `35:1`, ..., and at the end, if it is not 0, `slope 2`.

        Returns
        -------
        Loss
            The loss.
        """
        slope: Any = 0.0
        if words and words[-1].startswith("slope"):
            slope = parse_number_or_percent(words[-1].removeprefix("slope").strip())
            words = words[:-1]
        return cls(tuple(_pair(word) for word in words), slope)

    def __str__(self) -> str:
        points = ", ".join(f"{x:.12g}:{y:.12g}" for x, y in self.points)
        return f"loss({points}{f', slope {self.slope:.12g}' if self.slope else ''})"


def _pair(word: str) -> tuple[float, float]:
    cost, colon, value = word.partition(":")
    if not colon:
        raise OptionError(f"a point of a loss is written cost:value, not {word!r}")
    return parse_number_or_percent(cost.strip()), parse_number_or_percent(value.strip())


def parse(text: Any) -> Measure:
    """A measure from its text; a measure is itself."""
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        raise OptionError(f"a measure is written like 'cvar(0.05)', not {text!r}")
    if re.fullmatch(r"\s*\d*\.?\d+%?\s*", text):
        word = "cvar" if parse_number_or_percent(text.strip()) <= 1 else "late"
        raise OptionError(f"{text.strip()} is no measure; write for example {word}({text.strip()})")
    if text.count("(") != text.count(")"):
        raise OptionError(f"the brackets of {text!r} do not match")
    terms = list(_terms(text))
    return terms[0][1] if len(terms) == 1 and terms[0][0] == 1 else Sum(tuple(terms))


def parse_limit(text: Any) -> Limit:
    """A limit from its text; a limit is itself."""
    if isinstance(text, Limit):
        return text
    sides = re.split(r"<=|≤", text) if isinstance(text, str) else []
    if len(sides) != 2:
        raise OptionError(f"a limit is written like 'late(35) <= 0.05', not {text!r}")
    return parse(sides[0]) <= parse_number_or_percent(sides[1].strip())


def _terms(text: str) -> Iterator[tuple[float, Measure]]:
    position = 0
    while position < len(text) or position == 0:
        match = _TERM.match(text, position)
        if match is None or (position > 0 and not match["sign"]):
            raise OptionError(
                f"cannot read {text[position:].strip() or text!r} as a measure; write for example"
                " 0.7 * mean + 0.3 * cvar(0.05)"
            )
        position, word = match.end(), match["word"].lower()
        measure = REGISTER.find(word)
        if measure is None:
            known = ", ".join(sorted(REGISTER.names()))
            hint = did_you_mean(word, REGISTER.names()) or f"; known are {known}"
            raise OptionError(f"unknown measure {match['word']!r}{hint}")
        words = [part.strip() for part in (match["inside"] or "").split(",") if part.strip()]
        factor = parse_number_or_percent(match["factor"]) if match["factor"] else 1.0
        yield (-factor if match["sign"] == "-" else factor), measure.parsed(words)
