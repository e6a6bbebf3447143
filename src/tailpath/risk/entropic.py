"""Entropic risk, the certainty equivalent of an exponential utility: ln E[exp(beta Z)] / beta.

It rises with beta, from the mean towards the worst cost. Runs of any length count, so it is found
on the chain, in logarithms; of tails that fall too slowly it is infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailpath.certify.rounding import AFTERWARDS
from tailpath.options import check_amount
from tailpath.risk.measure import Measure


@dataclass(frozen=True)
class Entropic(Measure):
    """The entropic risk ln E[exp(beta Z)] / beta; at 0 the mean, towards infinity the worst cost.

    Parameters
    ----------
    beta : float
        The aversion to risk, per unit of cost; 0 or more, and finite.

    Examples
    --------
    >>> round(tp.Entropic(0.1)(costs), 6)
    38.499993
    """

    beta: float
    word = "entropic"
    moves_with_costs = True
    solver = "tailpath.solvers.objectives.entropic:least_entropic"

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", check_amount(self.beta, "a beta", finite=True))

    def __call__(self, costs: Any) -> float:
        return entropic(costs, self.beta)[0]

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        return entropic(costs, self.beta)[1:]


def entropic(costs: Any, beta: float) -> tuple[float, float, float]:
    """The entropic risk of a distribution, and bounds on it."""
    least, most = costs.mean_bounds
    if beta == 0 or is_free(costs):
        return float(costs.mean), least, most
    chains = costs.chains
    found = [(chain.start, chain.expected_exponential(beta)) for _, chain in chains]

    def end(name: str, side: int) -> float:
        logs = [float(np.append(getattr(log, name), 0.0)[start]) for start, log in found]
        mean = _log_mean([weight for weight, _ in chains], logs, side) / beta
        return mean + side * AFTERWARDS * abs(mean) if math.isfinite(mean) else mean

    return end("value", 0), max(end("lower", -1), least), end("upper", 1)


def is_free(costs: Any) -> bool:
    """Whether nothing costs anything."""
    return not any(chain.cost.any() for _, chain in costs.chains)


def _log_mean(weights: list[float], logs: list[float], side: int) -> float:
    """ln of the mean of some exponentials, by their logarithms, rounded to a side."""
    most, far = max(logs), max(logs) - min(logs)
    if len(logs) == 1 or math.isinf(most):
        return most
    if far < 1:  # of numbers near 0 all digits are kept
        found = math.log1p(math.fsum(w * math.expm1(x - most) for w, x in zip(weights, logs)))
    else:
        found = math.log(math.fsum(w * math.exp(x - most) for w, x in zip(weights, logs)))
    return most + found + side * AFTERWARDS * (min(far, 1.0) + max(map(abs, logs)))
