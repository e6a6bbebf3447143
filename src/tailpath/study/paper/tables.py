"""The tables of a study: those of the paper, and those that only the optimum makes possible. All
from stored runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import isclose
from typing import Any

import numpy as np

from tailpath.study.paper.captioned_table import CaptionedTable
from tailpath.study.paper.claims.planners import LIMITS, absolute_differences
from tailpath.study.paper.timing_tables import evaluation_times, monte_carlo, planning_times
from tailpath.study.results import (
    FloatArray,
    Results,
    Setting,
    above,
    array,
    at,
    below_deployed,
    planner,
    title,
)

#: Differences below this many percent are rounding.
SAME_PERCENT = 1e-7


def all_tables(results: Results) -> list[CaptionedTable]:
    """Every table that has rows."""
    makers = (
        checks,
        variants,
        methods,
        gaps,
        alpha0_choice,
        below_target,
        planning_times,
        evaluation_times,
        planner_differences,
        monte_carlo,
    )
    return [table for make in makers if (table := make(results)).rows]


def checks(results: Results) -> CaptionedTable:
    """What must be so if the program is right, whatever the planners do."""
    best = results.points("optimum")
    rows: list[list[Any]] = []
    if best:
        off = float(np.abs(array(point.prediction / point.deployed - 1 for (point,) in best)).max())
        what = "the optimum is what its policy exactly has"
        rows.append([what, "largest relative difference", len(best), off])
    for method in ("quantile", "interpolation"):
        pairs, name = results.points(method, "optimum"), planner(method)
        if pairs:
            deployed = float(above(pairs).min())
            predicted = max(point.prediction / other.deployed - 1 for point, other in pairs)
            beats, less = f"no policy of {name} beats", f"{name} predicts less than"
            rows += [
                [f"{beats} the optimum", "least deployed / optimum − 1", len(pairs), deployed],
                [f"{less} the optimum", "largest predicted / optimum − 1", len(pairs), predicted],
            ]
    caption = "Checks: deployed values against the optimum."
    return CaptionedTable("checks", caption, ["what", "measured", "points", "value"], rows)


def variants(results: Results) -> CaptionedTable:
    """How far each variant's deployed values lie above the optimum, and at how many points it is
    worse and better than the first.
    """
    rows: list[list[Any]] = []
    those = [of for _, of in results.of_variants()]
    if len(those) > 1:
        for domain, n, low in product(results.domains, results.atoms, results.alpha0):
            settings = [
                setting
                for setting in results.settings("optimum", domain=domain, atoms=n, alpha0=low)
                if all(setting in of.settings("quantile") for of in those)
            ]
            if settings:
                rows.append([domain, n, low, *_variant_cells(those, settings)])
    headers = ["domain", "atoms", "alpha0", "points"]
    for position, name in enumerate(results.variants):
        headers.append(f"{name} above optimum, mean %")
        headers += (
            [f"{name} {word} than {results.variants[0]} at" for word in ("worse", "better")]
            if position
            else []
        )
        headers.append(f"sweeps, {name}")
    caption = "CVaRVIQ in its variants: deployed values above the optimum."
    return CaptionedTable("variants", caption, headers, rows)


def _variant_cells(those: Sequence[Results], settings: Sequence[Setting]) -> list[Any]:
    """How many points there are; for each variant the mean in percent, at how many it is worse and
    better than the first, and its sweeps.
    """
    percents = [100 * above(of.points("quantile", "optimum", settings=settings)) for of in those]
    cells: list[Any] = [percents[0].size]
    for position, (of, percent) in enumerate(zip(those, percents)):
        cells.append(float(percent.mean()))
        if position:
            more = percent - percents[0]
            cells += [int(np.sum(sign * more > SAME_PERCENT)) for sign in (1, -1)]
        cells.append(sum(of.of("quantile", setting).answer.sweeps or 0 for setting in settings))
    return cells


def methods(results: Results) -> CaptionedTable:
    """Every method and variant at the points of the optimum, for studies with methods
    of their own.
    """
    rows: list[list[Any]] = []
    for _, these in results.of_variants():
        for method in these.methods:
            settings = these.settings(method)
            kinds = {these.of(method, setting).task.variant for setting in settings}
            below = 100 * below_deployed(these.points(method))
            over = 100 * above(these.points(method, "optimum"))
            row = [
                planner(method),
                "/".join(sorted(kinds)),
                below.size,
                _mean(below),
                _mean(over),
                float(over.max()) if over.size else None,
            ]
            if row not in rows:
                rows.append(row)
    headers = [
        *("method", "variant", "points", "predicted below deployed, mean %"),
        *("deployed above optimum, mean %", "max %"),
    ]
    return CaptionedTable("methods", "All methods at all points.", headers, rows)


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if values.size and np.isfinite(values).all() else None


def gaps(results: Results) -> CaptionedTable:
    """How far predicted, deployed and optimal values lie apart, in percent of the last of two."""
    rows = []
    for domain, n, low in product(results.domains, results.atoms, results.alpha0):
        points = results.points("quantile", "optimum", domain=domain, atoms=n, alpha0=low)
        if points:
            below_best = array(1 - p.prediction / best.deployed for p, best in points)
            parts = (100 * part for part in (below_deployed(points), below_best, above(points)))
            cells = [float(of(part)) for part in parts for of in (np.mean, np.max)]
            rows.append([domain, n, low, len(points), *cells])
    lower, higher = "predicted below", "deployed above optimum"
    what = (f"{lower} deployed", f"{lower} optimum", higher)
    headers = ["domain", "atoms", "alpha0", "points"]
    headers += [f"{each}, {of}" for each in what for of in ("mean %", "max %")]
    caption = (
        "CVaRVIQ: predicted, deployed and optimal values, all problems of a domain and all atoms as"
        " initial alpha."
    )
    return CaptionedTable("gaps", caption, headers, rows)


def alpha0_choice(results: Results) -> CaptionedTable:
    """What alpha0 at a tenth of the target brings, against alpha0 at the target."""
    rows = []
    pairs = [
        (target, low)
        for target, low in product(results.alpha0, repeat=2)
        if isclose(low, target / 10)
    ]
    for (target, low), n in product(pairs, results.atoms):
        found = []
        for problem in results.problems:
            asked = (("quantile", target), ("quantile", low), ("optimum", target))
            runs = [results.get(method, problem, n, first) for method, first in asked]
            points = [point for run in runs if run and (point := at(run, target))]
            if len(points) == len(asked):
                found.append(points)
        if found:
            # The mean and the greatest excess, and how far predictions are off, at both alpha0.
            excess = [above((points[k], points[2]) for points in found) for k in (0, 1)]
            below = [below_deployed((points[k],) for points in found) for k in (0, 1)]
            means, most = ([of(part) for part in excess] for of in (np.mean, np.max))
            cells = [*means, *most, *map(np.mean, below)]
            rows.append([target, n, len(found), *(100 * float(cell) for cell in cells)])
    what = (
        "deployed above optimum, mean %",
        "deployed above optimum, max %",
        "predicted below deployed, mean %",
    )
    headers = [
        *("alpha target", "atoms", "problems"),
        *(f"{name}, alpha0 = {low}" for name in what for low in ("target", "target / 10")),
    ]
    caption = "CVaRVIQ at the target, all problems: alpha0 at the target, and at a tenth of it."
    return CaptionedTable("alpha0_choice", caption, headers, rows)


def below_target(results: Results) -> CaptionedTable:
    """How much an alpha0 below the target helps."""
    rows = []
    atoms = max(results.atoms, default=0)
    for problem, target in product(results.problems, (1e-2, 1e-1)):
        cells: list[float | None] = []
        optimum = None
        for low in results.alpha0:
            runs = [results.get(of, problem, atoms, low) for of in ("quantile", "optimum")]
            point, other = (at(run, target) if run and low <= target else None for run in runs)
            optimum = other.deployed if other else optimum
            excess = point.deployed / other.deployed - 1 if point and other else None
            cells.append(None if excess is None else 100 * excess)
        if optimum is not None:
            rows.append([title(problem), target, optimum, *cells])
    headers = [
        *("problem", "alpha target", "optimum"),
        *(f"above optimum with alpha0 = {low:g}, %" for low in results.alpha0),
    ]
    caption = f"Deployed value of CVaRVIQ's policy at the target, {atoms} atoms, by alpha0."
    return CaptionedTable("below_target", caption, headers, rows)


def planner_differences(results: Results) -> CaptionedTable:
    rows = []
    places = ("all points", "linear programs to convergence")
    for variant, these in results.of_variants():
        for field, what in (("prediction", "predicted values"), ("deployed", "deployed values")):
            for values, where in zip(absolute_differences(these, field), places):
                if values.size:
                    shares = [100 * float(np.mean(values < limit)) for limit in LIMITS]
                    rows.append([what, variant, where, values.size, *shares, float(values.max())])
    headers = [
        *("|CVaRVILI − CVaRVIQ|", "variant", "where", "points"),
        *(f"below {limit:g}, %" for limit in LIMITS),
        "largest",
    ]
    caption = "Differences between the two planners."
    return CaptionedTable("planner_differences", caption, headers, rows)
