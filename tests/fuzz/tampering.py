"""Results changed after the fact, each in a way that makes it false: the checker must refuse every
one of them.

A change is made only where it must show: the value is positive and finite, and its bounds are much
narrower than the change.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import tailpath as tp
from tailpath.errors import OptionError, RefutedError

#: Each number is moved by this share of itself.
BY = 1e-6


Change = tuple[str, Callable[[], Any]]


def one_of(draw: random.Random, changes: list[Change]) -> Iterator[str]:
    """Try one of the changes; yields what was refused, or that it is beyond the checker, and raises
    where the checker believes it.
    """
    if not changes:
        return
    what, verify = draw.choice(changes)
    try:
        verify()
    except RefutedError:
        yield f"refused: {what}"
    except OptionError:
        yield f"tampered, beyond the checker: {what}"
    else:
        raise AssertionError(f"the checker believes a result that was tampered with: {what}")


def narrow(low: float, high: float) -> bool:
    """Whether bounds are narrow enough for a change to show."""
    return 0 < low <= high < math.inf and high - low <= BY / 1000 * low


def moved(array: Any, at: Any, factor: float) -> Any:
    changed = np.array(array, dtype=np.float64)
    changed[at] *= factor
    return changed


def expected(solution: Any) -> list[Change]:
    """The least expected cost: its value moved, its bounds narrowed past the truth."""
    start = solution.ssp.start_index
    if not narrow(float(solution.lower[start]), float(solution.upper[start])):
        return []
    ways = (("value", 1 + BY), ("lower", 1 + BY), ("upper", 1 - BY))
    changed = {
        field: replace(solution, **{field: moved(getattr(solution, field), start, factor)})
        for field, factor in ways
    }
    return [(f"the expected cost, {field}", tampered.verify) for field, tampered in changed.items()]


def with_mean(found: Any, bounds: tuple[float, float]) -> Any:
    """What is proved of a distribution, with other bounds on its mean."""
    known = found.enclosure
    low, high = replace(known.low, mean=bounds[0]), replace(known.high, mean=bounds[1])
    return replace(known, low=low, high=high)


def distribution(found: Any, check: Callable[[Any], Any]) -> list[Change]:
    """A distribution: mean, bounds, tail and probabilities; `check(found)` holds it against the
    model and the policy.
    """
    changes: list[tuple[str, dict[str, Any]]] = []
    if narrow(*found.mean_bounds):
        bounds = (found.mean * (1 + BY), found.mean * (1 + 2 * BY))
        changes += [
            ("the mean", {"mean": bounds[0]}),
            ("the mean and its bounds", {"mean": bounds[0], "proof": with_mean(found, bounds)}),
        ]
    known = found.enclosure
    # Where costs are sums of floats, the last cost and the tail are checked together.
    if known.cost_error == 0 and found.tail_mass > 1e-250 and narrow(*known.tail_mass):
        changes.append(("the mass of the tail", {"tail_mass": found.tail_mass * (1 + BY)}))
    if len(found.probabilities) and found.probabilities.max() > 1e-3:
        at = int(found.probabilities.argmax())
        low, high = (float(side.masses[at]) for side in (known.low, known.high))
        if narrow(low, high):
            changes += [
                ("a probability", {"probabilities": moved(found.probabilities, at, 1 - by)})
                for by in (BY, 2 * (high - low) / high)
            ]
    return [
        (what, lambda fields=fields: check(replace(found, **fields))) for what, fields in changes
    ]


def decision(
    ssp: tp.SSP, found: Any, policy: Any, alpha: float, check: Callable[[Any], Any]
) -> list[Change]:
    """Another decision at the start, where it changes what the policy costs; `check(policy)` holds
    the same distribution against it.
    """
    if not isinstance(policy, tp.MarkovPolicy) or not isinstance(policy.decisions, dict):
        return []
    changes = []
    for choice in range(
        int(ssp.state_choices[ssp.start_index]), int(ssp.state_choices[ssp.start_index + 1])
    ):
        other = tp.MarkovPolicy({**policy.decisions, ssp.start: ssp.choice_name(choice)})
        try:
            costs = tp.evaluate(ssp, other, alpha, max_nodes=3_000)
        except tp.TailpathError:
            continue
        (low, high), (other_low, other_high) = found.bounds(alpha), costs.bounds(alpha)
        if costs.unreached == 0 and (high < other_low * (1 - BY) or other_high < low * (1 - BY)):
            changes.append(("a decision", lambda other=other: check(other)))
    return changes


def optimum(solution: Any, alpha: float) -> list[Change]:
    """The least CVaR: what is left over at the best budget, moved both ways."""
    position = int(np.searchsorted(solution.budgets, solution.budget(alpha)))
    low, high = solution.bounds(alpha)
    if not (narrow(low, high) and solution.excess[position] * BY > 1e-9 * low * alpha):
        return []
    changed = [
        replace(solution, excess=moved(solution.excess, position, factor))
        for factor in (1 + BY, 1 - BY)
    ]
    # Where another budget is as good, or nearly so, what is claimed may still be true.
    claims = [(tampered, *tampered.bounds(alpha)) for tampered in changed]
    false = [tampered for tampered, least, most in claims if least > high or most < low]
    return [
        ("the least CVaR", lambda tampered=tampered: tampered.verify(alpha)) for tampered in false
    ]
