"""The expectation of any piecewise linear loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tailpath.errors import OptionError
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import Measure, number


@dataclass(frozen=True)
class Loss(Measure):
    """The expectation E[h(Z)] of a piecewise linear loss h of the total cost.

    h is constant before the first point. Two points at one cost are a jump just behind it; h may
    fall and need not be convex.

    Parameters
    ----------
    points : sequence of pairs (cost, value)
        Points of h, by rising cost from 0 on, at most two at one cost.
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
            raise OptionError("a loss takes points (cost, value) and a slope, all numbers") from None
        object.__setattr__(self, "points", pairs)
        self.curve  # noqa: B018  the check

    @cached_property
    def curve(self) -> Curve:
        """The loss h."""
        return curve_of(self.points, self.slope)

    @property
    def farthest_cost(self) -> float:
        return self.points[-1][0]

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
            slope = number(words[-1].removeprefix("slope").strip())
            words = words[:-1]
        return cls(tuple(_pair(word) for word in words), slope)

    def __str__(self) -> str:
        points = ", ".join(f"{x:.12g}:{y:.12g}" for x, y in self.points)
        return f"loss({points}{f', slope {self.slope:.12g}' if self.slope else ''})"


def _pair(word: str) -> tuple[float, float]:
    cost, colon, value = word.partition(":")
    if not colon:
        raise OptionError(f"a point of a loss is written cost:value, not {word!r}")
    return number(cost.strip()), number(value.strip())
