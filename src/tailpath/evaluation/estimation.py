"""What a sample of total costs says about mean, VaR and CVaR, with confidence intervals.

Let z_(1) <= ... <= z_(n) be the sorted costs and k = n - floor(n alpha), at least 1.

*VaR* is estimated by z_(k). Its interval [z_(l), z_(u)] is exact: the number of costs up to the
true VaR is at least binomial(n, 1 - alpha), and the number below it at most that, so l and u are
binomial quantiles. This holds for every distribution and every n; where n is too small for an end,
it is 0 or infinite.

*CVaR* is estimated by w + mean((z - w)+) / alpha at w = z_(k), the minimum of the definition over
the sample. Its influence function is (z - w)+ / alpha, up to a constant, so for large samples the
estimate is normal around the truth with variance Var((z - w)+) / (n alpha^2). The right skew of a
tail makes the plain normal interval miss above more often than it should; Hall's cubic
transformation takes the skew out of the studentised estimate and is inverted here in closed form.
With fewer than `MIN_TAIL_RUNS` runs in the tail no such theory holds, and the interval is [lower
end of VaR, infinity], which is sound, since CVaR >= VaR.

An infinite cost is a run that never arrives. One of them proves that mean and CVaR are infinite.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from tailpath.errors import OptionError
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import SAME_MASS
from tailpath.options import answering, check_alpha, takes_alpha

#: Fewer runs than this in the tail say nothing about its mean.
MIN_TAIL_RUNS = 30

Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """Mean, VaR and CVaR of a sample, each with an interval that holds the true value.

    Attributes
    ----------
    alpha : float
        The mass of the worst tail.
    confidence : float
        The probability with which each interval holds the true value.
    runs : int
        The size of the sample.
    mean : float
        The mean.
    mean_interval : tuple of float
        Its interval.
    var : float
        VaR at `alpha`.
    var_interval : tuple of float
        Its interval.
    cvar : float
        CVaR at `alpha`.
    cvar_interval : tuple of float
        Its interval; infinite above where fewer than 30 runs are in the tail.
    unreached : float
        The share of runs that never arrive.

    Examples
    --------
    >>> found = tp.estimate([1, 2, 3, 4], 0.5)
    >>> found.var_interval, found.unreached
    ((0.0, inf), 0.0)
    """

    alpha: float
    confidence: float
    runs: int
    mean: float
    mean_interval: Interval
    var: float
    var_interval: Interval
    cvar: float
    cvar_interval: Interval
    unreached: float


@answering
@takes_alpha
def estimate(
    costs: ArrayLike, alpha: float, confidence: float = 0.95, *, least: float = 0.0
) -> Estimate:
    """Estimate mean, VaR and CVaR from a sample of total costs, with confidence intervals.

    No interval of a sample can account for disasters too rare to be in it; `evaluate` does.

    Parameters
    ----------
    costs : array of float
        The sample, such as `simulate` returns; infinite for a run that never arrives.
    alpha : float in (0, 1]
        The mass of the worst tail.
    confidence : float in (0, 1)
        The probability with which each interval should hold the true value.
    least : float
        A lower bound on every run's cost, `float(ssp.shift)` for a model with negative costs; it
        is ignored if a cost of the sample is below it.

    Returns
    -------
    Estimate
        `mean`, `var`, `cvar` and their intervals.

    Raises
    ------
    OptionError
        If the sample is empty or an argument lies outside its range.

    Notes
    -----
    The interval of VaR is exact, from order statistics, for every distribution. That of CVaR is for
    large samples, with the skew of the tail taken out by Hall's transformation; with fewer than 30
    runs in the tail it is [lower end of VaR, infinity].

    Examples
    --------
    >>> found = tp.estimate([20] * 90 + [60] * 10, 0.2)
    >>> found.mean, found.var, round(found.cvar, 6)
    (24.0, 20.0, 40.0)
    """
    alpha = check_alpha(alpha)
    if not 0 < confidence < 1:
        raise OptionError(f"the confidence must lie between 0 and 1, not {confidence!r}")
    sample: FloatArray = np.sort(np.asarray(costs, dtype=np.float64).ravel())
    n = len(sample)
    if n == 0 or not sample[0] > -math.inf or np.isnan(sample[-1]):
        raise OptionError("an estimate needs one or more costs, none of them NaN or -inf")
    least = least if sample[0] >= least else -math.inf
    mean = _tail(sample, 1.0, confidence, least)[2:]
    tail = _tail(sample, alpha, confidence, least)
    return Estimate(alpha, confidence, n, *mean, *tail, float(np.mean(np.isinf(sample))))


def _tail(
    sample: FloatArray, alpha: float, confidence: float, least: float
) -> tuple[float, Interval, float, Interval]:
    """VaR and CVaR of a sorted sample, each with its interval."""
    n = len(sample)
    var = float(sample[max(n - math.floor(n * alpha * (1 + SAME_MASS)), 1) - 1])
    var_interval = _var_interval(sample, alpha, 1 - confidence, least)
    if math.isinf(sample[-1]):
        return var, var_interval, math.inf, (math.inf, math.inf)
    excess, around = _mean(np.maximum(sample - var, 0.0), confidence)
    cvar_interval = (
        (var + around[0] / alpha, var + around[1] / alpha)
        if n * alpha >= MIN_TAIL_RUNS
        else (var_interval[0], math.inf)
    )
    return var, var_interval, var + excess / alpha, cvar_interval


def _var_interval(sample: FloatArray, alpha: float, miss: float, least: float) -> Interval:
    """Order statistics that miss the VaR with probability `miss` / 2 at most on either side."""
    from scipy.special import bdtr, bdtrc

    n = len(sample)
    # Both conditions, once true, stay true.
    below = bisect_left(range(n), True, key=lambda k: bdtr(k, n, 1 - alpha) > miss / 2)
    above = bisect_left(range(n), True, key=lambda k: bdtrc(k, n, 1 - alpha) <= miss / 2) + 1
    low = float(sample[below - 1]) if below > 0 else least
    return low, float(sample[above - 1]) if above <= n else math.inf


def _mean(values: FloatArray, confidence: float) -> tuple[float, Interval]:
    """The mean and its interval by Hall's transformation (Annals of Statistics 20, 1992).

    With the studentised mean T and a = skewness / (6 sqrt(n)), g(T) = T + 2 a T^2 + 4/3 a^2 T^3 + a
    is normal up to 1/n; it rises in T, and (1 + 2 a T)^3 = 1 + 6 a (g - a) inverts it.
    """
    n, mean = len(values), float(np.mean(values))
    centred = values - mean
    squares = centred * centred
    deviation = math.sqrt(float(np.mean(squares)))
    if deviation == 0:
        return mean, (mean, mean)
    a = float(np.mean(squares * centred)) / deviation**3 / (6 * math.sqrt(n))
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)

    def studentised(g: float) -> float:
        return (math.cbrt(1 + 6 * a * (g - a)) - 1) / (2 * a) if abs(a) > 1e-9 else g

    error = deviation / math.sqrt(n)
    return mean, (mean - error * studentised(quantile), mean - error * studentised(-quantile))
