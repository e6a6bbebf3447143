"""CVaRVIQ with more atoms and the same alpha0 (section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress, product

import numpy as np

from tailpath.study.paper.claims.claim import TOLERANCE, Finding, by_domain, percents, rises, share
from tailpath.study.results import FloatArray, Results, at, quotient
from tailpath.study.store import AtomPoint


def common(results: Results) -> list[list[AtomPoint]]:
    """The points of CVaRVIQ at the atoms that all grids with one alpha0 share, from the coarsest to
    the finest grid.
    """
    found = []
    for problem, low in product(results.problems, results.alpha0):
        every = (results.get("quantile", problem, n, low) for n in results.atoms)
        runs = [run for run in every if run is not None]
        if len(runs) == len(results.atoms) > 1:
            for first in runs[0].points:
                series = [point for run in runs if (point := at(run, first.alpha)) is not None]
                found += [series] if len(series) == len(runs) else []
    return found


def more_atoms(results: Results) -> Finding | None:
    series = common(results)
    if not series:
        return None
    predicted, deployed = (
        [np.array([getattr(point, field) for point in points]) for points in series]
        for field in ("prediction", "deployed")
    )
    up, up_part = share(rises(values, TOLERANCE) for values in predicted)
    down, down_part = share(rises(-values, TOLERANCE) for values in deployed)
    near, near_part = share(rises(a - b, TOLERANCE) for a, b in zip(predicted, deployed))
    first_to_last, _ = share(values[-1] <= values[0] + TOLERANCE for values in deployed)
    ours = (
        f"predicted rises at {up} common atoms; deployed falls at every step at {down}, from the"
        f" coarsest to the finest grid at {first_to_last}; the distance shrinks at {near}"
    )
    return Finding(ours, min(up_part, down_part, near_part)).unless_it_holds(
        f"The largest rise of a deployed value with more atoms is {np.diff(deployed).max():.2g}. No"
        " theorem forbids it: a finer grid is another policy."
    )


def worse_near_alpha0(results: Results) -> Finding | None:
    hits, ends = [], []
    for setting in results.settings("quantile"):
        gap = 1 - quotient(results.points("quantile", settings=[setting]), "prediction")
        half = len(gap) // 2
        if gap.max() > TOLERANCE:
            hits.append(bool(gap[:half].mean() > gap[half + 1 :].mean()))
        ends.append((gap[0], gap[-1]))
    if not hits:
        return None
    text, part = share(hits)
    first, last = np.mean(ends, axis=0)
    ours = (
        f"in {text} runs the lower half of the atoms is further off; mean distance {first:.1%} at"
        f" alpha0, {last:.2%} at alpha = 1"
    )
    return Finding(ours, 1.0 if part >= 0.9 else part)


def boxes_narrow(results: Results) -> Finding | None:
    def look(boxes: Sequence[FloatArray]) -> tuple[str, bool]:
        medians = [float(np.median(box)) for box in boxes]
        quartiles = [float(np.percentile(box, 25)) for box in boxes]
        texts = (", ".join(f"{value:.4f}" for value in of) for of in (medians, quartiles))
        holds = rises(medians, 0.0) and rises(quartiles, 0.0)
        return "medians {}, first quartiles {}".format(*texts), holds

    low = min(results.alpha0, default=0.0)
    return by_domain(results, look, "prediction", "quantile", alpha0=low)


def outliers_near_alpha0(results: Results) -> Finding | None:
    low, hits = min(results.alpha0, default=0.0), []
    for domain, n in product(results.domains, results.atoms):
        points = results.points("quantile", domain=domain, atoms=n, alpha0=low)
        if points:
            ratio = quotient(points, "prediction")
            first, third = np.percentile(ratio, [25, 75])
            outside = ratio < first - 1.5 * (third - first)
            hits += [point.alpha < low ** (2 / 3) for (point,) in compress(points, outside)]
    if not hits:  # none of none is no verdict
        return None
    text, part = share(hits)
    ours = f"{text} outliers lie in the third of the (logarithmic) range next to alpha0"
    return Finding(ours, part)


def towards_optimum(results: Results) -> Finding | None:
    def look(boxes: Sequence[FloatArray]) -> tuple[str, bool]:
        means, most = ([float(of(box)) - 1 for box in boxes] for of in (np.mean, np.max))
        ours = (
            f"deployed value above the optimum by {percents(means)} on average, {percents(most)} at"
            " most"
        )
        return ours, rises(np.negative(means), 0.0)

    low = min(results.alpha0, default=0.0)
    found = by_domain(results, look, "deployed", "quantile", "optimum", alpha0=low)
    return found and replace(found, remark=DISTANCE)


DISTANCE = (
    "The distance to the optimum does not vanish: the fixed point of the dual decomposition is not"
    " the optimum, with any number of atoms."
)
