"""Spectral measures with steps: mixtures of CVaRs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailpath.errors import OptionError
from tailpath.options import check_alpha, check_amount
from tailpath.risk.measure import Measure, Sum, parse_number_or_percent
from tailpath.risk.measures import CVaR, Mean

#: Weights may miss 1 by so much.
OF_ONE = 1e-9


@dataclass(frozen=True, init=False)
class Spectral(Sum):
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

    word = "spectral"

    def __init__(self, weights: Any) -> None:
        given = weights.items() if isinstance(weights, Mapping) else weights
        try:
            pairs = [(alpha, weight) for alpha, weight in given]
        except (TypeError, ValueError):
            raise OptionError("spectral weights are pairs of an alpha and its weight") from None
        known = [
            (check_amount(weight, "a weight", finite=True), check_alpha(alpha))
            for alpha, weight in pairs
        ]
        total = math.fsum(weight for weight, _ in known)
        if abs(total - 1) > OF_ONE:
            raise OptionError(f"the weights of a spectral measure must sum to 1, not {total:g}")
        mixed = tuple((weight, Mean() if a == 1 else CVaR(a)) for weight, a in known if weight)
        object.__setattr__(self, "parts", mixed)

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
        shown = (f"{part.finest_alpha:.12g}:{weight:.12g}" for weight, part in self.parts)
        return f"spectral({', '.join(shown)})"


def number(word: str) -> float:
    return parse_number_or_percent(word.strip())
