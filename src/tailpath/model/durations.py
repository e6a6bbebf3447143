"""Laws of durations as outcomes: the probability of each cost, exactly or on a grid.

On a grid every duration is rounded to a multiple of `unit`, up or down, so that every run costs at
least, or at most, its true cost; measures that rise with the cost lie between the two. The mass of
an unbounded law beyond the quantiles `cut` and `1 - cut` goes to

| rounded | below | beyond |
| --- | --- | --- |
| up | the quantile | its own mean, rounded up: nothing is promised for tails of about this mass |
| down | the least that the law has, or 0 | the quantile |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.model.cost_units import as_fraction, exact_number

#: The most points of a grid.
MAX_POINTS = 200_000
#: The mass at either end that is put on one point.
CUT = 1e-9
Shares = dict[Fraction, Any]
Listed = list[tuple[float, Any]]
Masses = tuple[float, float]


def durations(law: Any, unit: Any = None, side: str = "up", *, cut: float = CUT) -> Listed:
    """Turn durations, or a distribution of them, into outcomes (probability, cost), by rising cost.

    Parameters
    ----------
    law : samples, weights, histogram or distribution
        Samples, equally probable: `[12, 13, 15, 40]`, an array, a Series, `"12;13;15;40"`. Weights
        by value: `{12: 30, 40: 2}`, `"12:30;40:2"`. A histogram `(counts, edges)`, as of
        `numpy.histogram`: each bin is rounded to one of its edges. A distribution of scipy.stats,
        continuous or discrete.
    unit : number, optional
        Costs are multiples of it. A continuous law needs one; samples and weights may do without.
    side : {"up", "down"}
        Which way costs are rounded: the result costs at least, or at most, as much as the law.
    cut : float in (0, 0.5)
        The mass at either end of a distribution that becomes one outcome.

    Returns
    -------
    list of tuple (probability, cost)
        No mass is left out.

    Raises
    ------
    OptionError
        If the law is invalid, is below 0, or needs a coarser grid.

    Examples
    --------
    >>> tp.durations([12, 13, 15, 40])
    [(0.25, 12), (0.25, 13), (0.25, 15), (0.25, 40)]
    >>> tp.durations({12: 3, 17: 1}, unit=5)
    [(0.75, 15), (0.25, 20)]
    """
    if side not in ("up", "down"):
        raise OptionError(f"side must be 'up' or 'down', not {side!r}")
    step, up = None if unit is None else exact_number(unit, "the unit"), side == "up"
    if step == 0:
        raise OptionError("the unit must be positive, not 0")
    law = _frozen(law) if hasattr(law, "iccdf") else law
    if hasattr(law, "pmf"):
        found = _discrete(law, up, cut)
    elif not hasattr(law, "cdf"):
        found = shares_of_law(law, up)
    elif step is None:
        raise OptionError("a continuous law needs a grid: give unit=")
    else:
        found = _continuous(law, step, up, cut)
    total = float(sum(found.values()))
    if not abs(total - 1) < 1e-6:
        remedy = "give weights by value, {value: weight}, if its values are not one apart"
        raise OptionError(f"the masses of the law sum to {total:.6g}, not 1; {remedy}")
    rounded: Shares = {}
    for value, mass in found.items():
        cost = value if step is None else (math.ceil if up else math.floor)(value / step) * step
        rounded[cost] = rounded.get(cost, 0) + mass
    return [(float(mass), plain_number(cost)) for cost, mass in sorted(rounded.items()) if mass > 0]


def shares_of_law(law: Any, up: bool = True) -> Shares:
    """The probability of each value of samples, weights or a histogram, exactly; sums to 1."""
    if hasattr(law, "cdf"):
        raise OptionError("a distribution needs a grid: durations(law, unit=) makes its outcomes")
    if isinstance(law, str):
        law = _parsed(law)
    if isinstance(law, tuple) and len(law) == 2 and np.ndim(law[1]) == 1:
        counts, edges = (np.asarray(part).ravel().tolist() for part in law)
        if len(edges) != len(counts) + 1:
            wanted = f"{len(counts)} counts needs {len(counts) + 1} edges"
            raise OptionError(f"a histogram of {wanted}, not {len(edges)}")
        pairs: Iterable[tuple[Any, Any]] = zip(edges[1:] if up else edges[:-1], counts)
    elif isinstance(law, Mapping):
        pairs = law.items()
    else:
        pairs = _counted(law if isinstance(law, Iterable) else [law]).items()
    found: Shares = {}
    for value, weight in pairs:
        exact, mass = exact_number(value, "a duration"), exact_number(weight, "a weight")
        found[exact] = found.get(exact, Fraction(0)) + mass
    total = sum(found.values())
    if not total:
        raise OptionError("a law of durations needs at least one value with a positive weight")
    return {value: mass / total for value, mass in found.items() if mass}


def _parsed(text: str) -> Any:
    """`12;13;15;40` as samples, `12:30;40:2` as weights by value."""
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not any(":" in part for part in parts):
        return parts
    if not all(part.count(":") == 1 for part in parts):
        raise OptionError(f"{text!r} is neither samples, a;b;c, nor values with weights, a:3;b:1")
    weights: dict[str, Fraction] = {}
    for value, _, weight in (part.partition(":") for part in parts):
        weights[value] = weights.get(value, Fraction(0)) + exact_number(weight, "a weight")
    return weights


def _counted(samples: Iterable[Any]) -> dict[Any, int]:
    values = samples.tolist() if hasattr(samples, "tolist") else list(samples)
    counts: dict[Any, int] = {}
    for value in values if isinstance(values, list) else [values]:
        try:
            counts[value] = counts.get(value, 0) + 1
        except TypeError:
            raise OptionError(f"a duration must be a number, not {value!r}") from None
    return counts


def plain_number(cost: Fraction) -> Any:
    """The cost as an integer or a float where that says it exactly."""
    if cost.denominator == 1:
        return cost.numerator
    return float(cost) if as_fraction(float(cost)) == cost else cost


# ---------------------------------------------------------------------- distributions


def _frozen(law: Any) -> Any:
    """A distribution of scipy's newer kind, with the method names of the older kind."""
    names = {"cdf": "cdf", "sf": "ccdf", "ppf": "icdf", "isf": "iccdf", "mean": "mean"}
    if any(kind.__name__ == "DiscreteDistribution" for kind in type(law).__mro__):
        names["pmf"] = "pmf"
    own = {name: getattr(law, other) for name, other in names.items()}
    return SimpleNamespace(support=law.support, **own)


def _continuous(law: Any, step: Fraction, up: bool, cut: float) -> Shares:
    """The mass between the points of the grid, each at one end of its interval."""
    low, high = _quantiles(law, cut)
    first, last = math.floor(low / step), math.ceil(high / step)
    _refuse_many(last - first, f"a unit of {float(step):g} is too fine")
    edges = np.array([float(level * step) for level in range(first, max(last, first + 1) + 1)])
    below, beyond = np.asarray(law.cdf(edges)), np.asarray(law.sf(edges))
    # The difference of the smaller two has the more digits.
    mass = np.maximum(np.where(below[1:] < 0.5, np.diff(below), -np.diff(beyond)), 0.0)
    found: Shares = {(first + up + k) * step: share for k, share in enumerate(mass.tolist())}
    return _with_ends(found, law, up, edges[[0, -1]].tolist(), (float(below[0]), float(beyond[-1])))


def _discrete(law: Any, up: bool, cut: float) -> Shares:
    """The values one by one; they are whole numbers apart."""
    low, high = map(float, _quantiles(law, cut))
    _refuse_many(int(high - low), "the law is too wide")
    values = low + np.arange(int(high - low) + 1)
    found: Shares = dict(zip(map(as_fraction, values.tolist()), law.pmf(values).tolist()))
    return _with_ends(found, law, up, [low, high], (float(law.cdf(low - 0.5)), float(law.sf(high))))


def _with_ends(found: Shares, law: Any, up: bool, ends: list[float], masses: Masses) -> Shares:
    """The shares, with the mass beyond the two ends where the table of this module puts it."""
    least = max(float(law.support()[0]), 0.0)
    below, beyond = ends if not up else (ends[0], ends[1] + _mean_excess(law, ends[1], masses[1]))
    for value, mass in zip((below if up else least, beyond), masses):
        if mass > 0:
            found[as_fraction(value)] = found.get(as_fraction(value), 0.0) + mass
    return found


def _mean_excess(law: Any, end: float, mass: float) -> float:
    """An upper bound on the mean excess over an end that is exceeded with this mass."""
    if mass <= 0:
        return 0.0
    if not math.isfinite(float(law.mean())):
        raise OptionError("the law has no finite mean; cut it off first")
    last = float(law.support()[1])
    if hasattr(law, "pmf"):
        count = MAX_POINTS if math.isinf(last) else round(last - end)
        return float(law.sf(end + np.arange(count)).sum()) / mass
    width = float(law.isf(mass / 3)) - end
    # A sum from above of what falls: steps grow by a hundredth, up to where floats end.
    excess = (width if width > 0 else 1.0) * np.expm1(np.arange(68_000) * 0.01)
    points = np.minimum(end + excess, last)
    with np.errstate(all="ignore"):  # far out, powers may be beyond the floats
        return float(np.diff(points) @ law.sf(points[:-1])) / mass


def _quantiles(law: Any, cut: float) -> tuple[Fraction, Fraction]:
    """The points with mass `cut` below, but 0 at least, and with mass `cut` beyond."""
    if not 0 < cut < 0.5:
        raise OptionError(f"cut must lie between 0 and 0.5, not {cut!r}")
    negative = float(law.cdf(np.nextafter(0.0, -1.0)))
    if negative > cut:
        remedy = "cut it off (scipy.stats.truncnorm does it), or raise cut= to count it as 0"
        what = f"the law is below 0 with probability {negative:g}; a duration is not"
        raise OptionError(f"{what}: {remedy}")
    low, high = max(float(law.ppf(cut)), 0.0), float(law.isf(cut))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise OptionError(f"the law has no quantiles at {cut:g} and 1 - {cut:g}: {low:g}, {high:g}")
    return as_fraction(low), as_fraction(max(low, high))


def _refuse_many(points: int, what: str) -> None:
    if points > MAX_POINTS:
        raise OptionError(f"{what}: it would have {points} points, and the limit is {MAX_POINTS}")
