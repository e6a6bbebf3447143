"""The tables of a study: those of the paper, and those that only the optimum makes possible. All
from stored runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Any

import numpy as np

from tailpath.study.paper.captioned_table import CaptionedTable
from tailpath.study.paper.claims.planners import LIMITS, absolute_differences
from tailpath.study.paper.timing_tables import evaluation_times, monte_carlo, planning_times
from tailpath.study.results import FloatArray, Results, Setting, array, at, planner, title

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
    best = [point for _, (point,) in results.pairs("optimum")]
    rows: list[list[Any]] = []
    if best:
        off = max(abs(point.prediction / point.deployed - 1) for point in best)
        rows.append(
            [
                "the optimum is what its policy exactly has",
                "largest relative difference",
                len(best),
                off,
            ]
        )
    for method in ("quantile", "interpolation"):
        pairs = [points for _, points in results.pairs(method, "optimum")]
        if pairs:
            deployed = min(point.deployed / other.deployed - 1 for point, other in pairs)
            predicted = max(point.prediction / other.deployed - 1 for point, other in pairs)
            name = planner(method)
            rows.append(
                [
                    f"no policy of {name} beats the optimum",
                    "least deployed / optimum − 1",
                    len(pairs),
                    deployed,
                ]
            )
            rows.append(
                [
                    f"{name} predicts less than the optimum",
                    "largest predicted / optimum − 1",
                    len(pairs),
                    predicted,
                ]
            )
    return CaptionedTable(
        "checks",
        "Checks: deployed values against the optimum.",
        ["what", "measured", "points", "value"],
        rows,
    )


def variants(results: Results) -> CaptionedTable:
    """How far each variant's deployed values lie above the optimum, and at how many points it is
    worse and better than the first.
    """
    rows: list[list[Any]] = []
    those = [results.of_variant(variant) for variant in results.variants]
    if len(those) > 1:
        common = [
            s
            for s in results.settings("optimum")
            if all(s in of.settings("quantile") for of in those)
        ]
        for domain in results.domains:
            for n in results.atoms:
                for low in results.alpha0:
                    settings = [
                        s for s in common if (s.problem[0], s.atoms, s.alpha0) == (domain, n, low)
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
    return CaptionedTable(
        "variants", "CVaRVIQ in its variants: deployed values above the optimum.", headers, rows
    )


def _variant_cells(those: Sequence[Results], settings: Sequence[Setting]) -> list[Any]:
    """How many points there are; for each variant the mean in percent, at how many it is worse and
    better than the first, and its sweeps.
    """
    cells: list[Any] = []
    for of in those:
        points = [pair for _, pair in of.pairs("quantile", "optimum", settings=settings)]
        above = 100 * array(point.deployed / best.deployed - 1 for point, best in points)
        if not cells:
            first, cells = above, [len(points), float(above.mean())]
        else:
            cells += [
                float(above.mean()),
                *(int(np.sum(sign * (above - first) > SAME_PERCENT)) for sign in (1, -1)),
            ]
        cells.append(sum(of.of("quantile", setting).answer.sweeps or 0 for setting in settings))
    return cells


def methods(results: Results) -> CaptionedTable:
    """Every method and variant at the points of the optimum, for studies with methods
    of their own.
    """
    rows: list[list[Any]] = []
    for variant in results.variants or [""]:
        these = results.of_variant(variant) if variant else results
        for method in these.methods:
            settings = these.settings(method)
            points = [point for setting in settings for point in these.of(method, setting).points]
            best = [
                pair
                for _, pair in these.pairs(
                    method,
                    "optimum",
                    settings=[s for s in settings if s in these.settings("optimum")],
                )
            ]
            kinds = {these.of(method, setting).task.variant for setting in settings}
            gap = 100 * array(1 - point.prediction / point.deployed for point in points)
            over = 100 * array(point.deployed / other.deployed - 1 for point, other in best)
            row = [
                planner(method),
                "/".join(sorted(kinds)),
                len(points),
                _mean(gap),
                _mean(over),
                float(over.max()) if over.size else None,
            ]
            if row not in rows:
                rows.append(row)
    headers = [
        "method",
        "variant",
        "points",
        "predicted below deployed, mean %",
        "deployed above optimum, mean %",
        "max %",
    ]
    return CaptionedTable("methods", "All methods at all points.", headers, rows)


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if values.size and np.isfinite(values).all() else None


def gaps(results: Results) -> CaptionedTable:
    """How far predicted, deployed and optimal values lie apart, in percent of the last of two."""
    rows = []
    for domain in results.domains:
        for n in results.atoms:
            for low in results.alpha0:
                settings = [
                    s
                    for s in results.settings("quantile", "optimum")
                    if (s.problem[0], s.atoms, s.alpha0) == (domain, n, low)
                ]
                points = [
                    pair for _, pair in results.pairs("quantile", "optimum", settings=settings)
                ]
                if points:
                    below_deployed = 100 * array(1 - p.prediction / p.deployed for p, _ in points)
                    below_best = 100 * array(1 - p.prediction / best.deployed for p, best in points)
                    above_best = 100 * array(p.deployed / best.deployed - 1 for p, best in points)
                    means = [float(np.mean(x)) for x in (below_deployed, below_best, above_best)]
                    most = [float(np.max(x)) for x in (below_deployed, below_best, above_best)]
                    rows.append(
                        [
                            domain,
                            n,
                            low,
                            len(points),
                            *(x for pair in zip(means, most) for x in pair),
                        ]
                    )
    headers = ["domain", "atoms", "alpha0", "points"]
    headers += [
        f"{what}, {of}"
        for what in (
            "predicted below deployed",
            "predicted below optimum",
            "deployed above optimum",
        )
        for of in ("mean %", "max %")
    ]
    return CaptionedTable(
        "gaps",
        "CVaRVIQ: predicted, deployed and optimal values, all problems of a domain and all atoms as"
        " initial alpha.",
        headers,
        rows,
    )


def alpha0_choice(results: Results) -> CaptionedTable:
    """What alpha0 at a tenth of the target brings, against alpha0 at the target."""
    rows = []
    pairs = [
        (target, low)
        for target in results.alpha0
        for low in results.alpha0
        if isclose(low, target / 10)
    ]
    for target, low in pairs:
        for n in results.atoms:
            same, tenth = [], []
            for problem in results.problems:
                runs = [results.get("quantile", problem, n, first) for first in (target, low)]
                best = results.get("optimum", problem, n, target)
                points = [at(run, target) for run in (*runs, best) if run is not None]
                if len(points) == 3 and points[0] and points[1] and points[2]:
                    same.append(
                        (
                            points[0].deployed / points[2].deployed - 1,
                            1 - points[0].prediction / points[0].deployed,
                        )
                    )
                    tenth.append(
                        (
                            points[1].deployed / points[2].deployed - 1,
                            1 - points[1].prediction / points[1].deployed,
                        )
                    )
            if same:
                cells = [
                    (np.mean(of, axis=0)[0], np.max(of, axis=0)[0], np.mean(of, axis=0)[1])
                    for of in (same, tenth)
                ]
                rows.append(
                    [
                        target,
                        n,
                        len(same),
                        *(100 * float(value) for pair in zip(*cells) for value in pair),
                    ]
                )
    what = (
        "deployed above optimum, mean %",
        "deployed above optimum, max %",
        "predicted below deployed, mean %",
    )
    headers = [
        "alpha target",
        "atoms",
        "problems",
        *(f"{name}, alpha0 = {low}" for name in what for low in ("target", "target / 10")),
    ]
    return CaptionedTable(
        "alpha0_choice",
        "CVaRVIQ at the target, all problems: alpha0 at the target, and at a tenth of it.",
        headers,
        rows,
    )


def below_target(results: Results) -> CaptionedTable:
    """How much an alpha0 below the target helps."""
    rows = []
    atoms = max(results.atoms, default=0)
    for problem in results.problems:
        for target in (1e-2, 1e-1):
            cells: list[float | None] = []
            optimum = None
            for low in results.alpha0:
                run, best = (
                    results.get(method, problem, atoms, low) for method in ("quantile", "optimum")
                )
                point, other = (
                    at(of, target) if of is not None and low <= target else None
                    for of in (run, best)
                )
                optimum = other.deployed if other is not None else optimum
                cells.append(
                    100 * (point.deployed / other.deployed - 1)
                    if point is not None and other is not None
                    else None
                )
            if optimum is not None:
                rows.append([title(problem), target, optimum, *cells])
    headers = [
        "problem",
        "alpha target",
        "optimum",
        *(f"above optimum with alpha0 = {low:g}, %" for low in results.alpha0),
    ]
    return CaptionedTable(
        "below_target",
        f"Deployed value of CVaRVIQ's policy at the target, {atoms} atoms, by alpha0.",
        headers,
        rows,
    )


def planner_differences(results: Results) -> CaptionedTable:
    rows = []
    for variant in results.variants or [""]:
        these = results.of_variant(variant) if variant else results
        for field, what in (("prediction", "predicted values"), ("deployed", "deployed values")):
            for values, where in zip(
                absolute_differences(these, field), ("all points", "linear programs to convergence")
            ):
                if values.size:
                    shares = [100 * float(np.mean(values < limit)) for limit in LIMITS]
                    rows.append([what, variant, where, values.size, *shares, float(values.max())])
    headers = [
        "|CVaRVILI − CVaRVIQ|",
        "variant",
        "where",
        "points",
        *(f"below {limit:g}, %" for limit in LIMITS),
        "largest",
    ]
    return CaptionedTable(
        "planner_differences", "Differences between the two planners.", headers, rows
    )
