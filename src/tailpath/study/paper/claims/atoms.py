"""CVaRVIQ with more atoms and the same alpha0 (section 5.2)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from tailpath.model.ssp import FloatArray
from tailpath.study.paper.boxes import deployed_by_optimum, predicted_by_deployed
from tailpath.study.paper.claims.claim import (
    TOLERANCE,
    Claim,
    judge,
    listed,
    numbers_listed,
    percents,
    share,
)
from tailpath.study.results import Results, Setting, at, below_deployed
from tailpath.study.store import AtomPoint


def common(results: Results) -> list[tuple[Setting, list[AtomPoint]]]:
    """The atoms that all grids with one alpha0 share, with the points of CVaRVIQ from the coarsest
    to the finest grid.
    """
    found = []
    for setting in results.settings("quantile"):
        if setting.atoms != min(results.atoms) or len(results.atoms) < 2:
            continue
        finer = [results.get("quantile", setting.problem, n, setting.alpha0) for n in results.atoms]
        if any(run is None for run in finer):
            continue
        for point in results.of("quantile", setting).points:
            series = [at(run, point.alpha) for run in finer if run is not None]
            if all(other is not None for other in series):
                found.append((setting, [other for other in series if other is not None]))
    return found


def more_atoms(results: Results) -> Claim | None:
    series = [points for _, points in common(results)]
    if not series:
        return None
    up, up_part = share(
        all(b.prediction >= a.prediction - TOLERANCE for a, b in itertools.pairwise(points))
        for points in series
    )
    down, down_part = share(
        all(b.deployed <= a.deployed + TOLERANCE for a, b in itertools.pairwise(points))
        for points in series
    )
    first_to_last, _ = share(
        points[-1].deployed <= points[0].deployed + TOLERANCE for points in series
    )
    near, near_part = share(
        all(
            b.deployed - b.prediction <= a.deployed - a.prediction + TOLERANCE
            for a, b in itertools.pairwise(points)
        )
        for points in series
    )
    worst = max(b.deployed - a.deployed for points in series for a, b in itertools.pairwise(points))
    ours = (
        f"predicted rises at {up} common atoms; deployed falls at every step at {down}, from the"
        f" coarsest to the finest grid at {first_to_last}; the distance shrinks at {near}"
    )
    remark = (
        f"The largest rise of a deployed value with more atoms is {worst:.2g}. No theorem forbids"
        " it: a finer grid is another policy."
    )
    verdict = judge(min(up_part, down_part, near_part))
    return Claim(
        "With more atoms predicted values rise, deployed ones fall and the distance shrinks, in all"
        " experiments",
        "all",
        ours,
        verdict,
        "" if verdict == "holds" else remark,
    )


def worse_near_alpha0(results: Results) -> Claim | None:
    hits, gaps = [], []
    for setting in results.settings("quantile"):
        gap = below_deployed(results.points("quantile", settings=[setting]))
        half = len(gap) // 2
        if gap.max() > TOLERANCE:
            hits.append(bool(gap[:half].mean() > gap[half + 1 :].mean()))
        gaps.append((gap[0], gap[-1]))
    if not hits:
        return None
    text, part = share(hits)
    first, last = (float(np.mean([pair[k] for pair in gaps])) for k in (0, 1))
    ours = (
        f"in {text} runs the lower half of the atoms is further off; mean distance {first:.1%} at"
        f" alpha0, {last:.2%} at alpha = 1"
    )
    return Claim(
        "Points near alpha0 are further off than points near 1, in general",
        "yes",
        ours,
        judge(1.0 if part >= 0.9 else part),
    )


def boxes_by_domain(
    results: Results, ratio: Callable[..., FloatArray]
) -> dict[str, list[FloatArray]]:
    """For every domain the ratios with the smallest alpha0, from the fewest atoms to the most;
    nothing if any are missing.
    """
    low = min(results.alpha0, default=0.0)
    boxes = {
        domain: [ratio(results, domain, n, low) for n in results.atoms]
        for domain in results.domains
    }
    return (
        boxes
        if len(results.atoms) > 1 and all(box.size for row in boxes.values() for box in row)
        else {}
    )


def boxes_narrow(results: Results) -> Claim | None:
    ours, hits = [], []
    for domain, boxes in boxes_by_domain(results, predicted_by_deployed).items():
        quartiles = [float(np.percentile(box, 25)) for box in boxes]
        medians = [float(np.median(box)) for box in boxes]
        hits.append(bool(np.all(np.diff(medians) >= 0) and np.all(np.diff(quartiles) >= 0)))
        ours.append(
            f"{domain}: medians {listed(medians)}, first quartiles {listed(quartiles)} with"
            f" {numbers_listed(results.atoms)} atoms"
        )
    if not hits:
        return None
    return Claim(
        "Box plots: predicted / deployed comes closer to 1 with more atoms",
        "yes",
        "; ".join(ours),
        judge(float(np.mean(hits))),
    )


def outliers_near_alpha0(results: Results) -> Claim | None:
    low, hits = min(results.alpha0, default=0.0), []
    boxes = 0
    for domain, n in itertools.product(results.domains, results.atoms):
        points = results.points("quantile", domain=domain, atoms=n, alpha0=low)
        ratio = predicted_by_deployed(results, domain, n, low)
        if not ratio.size:
            continue
        boxes += 1
        first, third = np.percentile(ratio, [25, 75])
        outside = ratio < first - 1.5 * (third - first)
        hits += [point.alpha < low ** (2 / 3) for (point,) in itertools.compress(points, outside)]
    if not boxes or not hits:  # none of none is no verdict
        return None
    text, part = share(hits)
    ours = f"{text} outliers lie in the third of the (logarithmic) range next to alpha0"
    return Claim(
        "The outliers of the box plots are atoms near alpha0, for every |Y|",
        "yes",
        ours,
        judge(part),
    )


def towards_optimum(results: Results) -> Claim | None:
    ours, hits = [], []
    for domain, boxes in boxes_by_domain(results, deployed_by_optimum).items():
        means, most = (
            [float(np.mean(box)) - 1 for box in boxes],
            [float(box.max()) - 1 for box in boxes],
        )
        hits.append(bool(np.all(np.diff(means) <= 0)))
        ours.append(
            f"{domain}: deployed value above the optimum by {percents(means)} on average,"
            f" {percents(most)} at most"
        )
    if not hits:
        return None
    remark = (
        "The distance to the optimum does not vanish: the fixed point of the dual decomposition is"
        " not the optimum, with any number of atoms."
    )
    says = "Value and policy move towards the optimal value with more atoms"
    return Claim(
        says,
        "yes (inferred)",
        f"{'; '.join(ours)}, with {numbers_listed(results.atoms)} atoms",
        judge(float(np.mean(hits))),
        remark,
    )
