"""Spectral measures with steps: mixtures of CVaRs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tailpath.errors import OptionError
from tailpath.options import check_alpha, check_amount
from tailpath.risk.curves import Curve
from tailpath.risk.measure import Measure, Sum, parse_number_or_percent
from tailpath.risk.measures import CVaR, Mean

#: Weights may miss 1 by so much.
OF_ONE = 1e-9


@dataclass(frozen=True)
class Spectral(Measure):
    """A mixture of CVaRs: the mean of Z under a weight that rises with the cost, in steps.

    It can be minimised if it mixes the mean, which is the CVaR at 1, and one other CVaR.

    Parameters
    ----------
    weights : mapping, or sequence of pairs
        The weight of the CVaR at each alpha; 0 or more, with the sum 1.

    Examples
    --------
    >>> mixed = tp.Spectral({1: 0.5, 0.1: 0.3, 0.5: 0.2})
    >>> round(mixed(costs), 9), str(mixed)
    (35.6, 'spectral(1:0.5, 0.1:0.3, 0.5:0.2)')
    """

    weights: tuple[tuple[float, float], ...]
    word = "spectral"
    moves_with_costs = True

    def __post_init__(self) -> None:
        given = self.weights.items() if isinstance(self.weights, Mapping) else self.weights
        try:
            pairs = [(alpha, weight) for alpha, weight in given]
        except (TypeError, ValueError):
            raise OptionError("spectral weights are pairs of an alpha and its weight") from None
        known = tuple(
            (check_alpha(alpha), check_amount(weight, "a weight", finite=True))
            for alpha, weight in pairs
        )
        total = math.fsum(weight for _, weight in known)
        if abs(total - 1) > OF_ONE:
            raise OptionError(f"the weights of a spectral measure must sum to 1, not {total:g}")
        object.__setattr__(self, "weights", known)

    @cached_property
    def mixture(self) -> Sum:
        """The same as a sum."""
        return Sum(
            tuple((weight, Mean() if a == 1 else CVaR(a)) for a, weight in self.weights if weight)
        )

    @property
    def terms(self) -> tuple[tuple[float, Measure], ...]:
        return self.mixture.terms

    @property
    def curve(self) -> Curve | None:
        return self.mixture.curve if self._is_solved else None

    @property
    def tail(self) -> tuple[float, float] | None:
        return self.mixture.tail if self._is_solved else None

    @property
    def _is_solved(self) -> bool:
        return len({part.finest_alpha for _, part in self.terms if part.tail is not None}) < 2

    @property
    def finest_alpha(self) -> float:
        return self.mixture.finest_alpha

    @property
    def farthest_cost(self) -> float:
        return self.mixture.farthest_cost

    def __call__(self, costs: Any) -> float:
        return self.mixture(costs)

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        return self.mixture.bounds_of(costs)

    @classmethod
    def parsed(cls, words: list[str]) -> Measure:
        """Make a spectral measure from the words between the brackets of its text.

        Parameters
        ----------
        words : list of str
            Pairs `alpha:weight`.

        Returns
        -------
        Spectral
            The measure.
        """
        pairs = [word.split(":") for word in words]
        if not all(len(pair) == 2 for pair in pairs):
            raise OptionError("spectral is written spectral(alpha:weight, ...)")
        return cls(tuple((number(alpha), number(weight)) for alpha, weight in pairs))

    def __str__(self) -> str:
        return f"spectral({', '.join(f'{a:.12g}:{weight:.12g}' for a, weight in self.weights)})"


def number(word: str) -> float:
    return parse_number_or_percent(word.strip())
