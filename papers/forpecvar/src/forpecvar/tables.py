"""The tables of a study: those of the paper, and those that only the optimum makes possible. All
from stored runs, as Markdown and as CSV.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isclose
from typing import Any

import numpy as np

from forpecvar.claims import (
    LIMITS,
    PAPER_ERRORS,
    PLANNERS,
    absolute_differences,
    greatest,
    paper,
    simulation_errors,
)
from forpecvar.results import FloatArray, Results, at, planner, quotient, title
from forpecvar.store import ENGINES, Answer, write_rows

#: The paper's Table 1, in seconds, in the order of its problems.
PAPER_SECONDS = {
    "interpolation": (6.79, 122.52, 3244.18, 0.02, 2.27, 79.67),
    "quantile": (7.95, 130.12, 3344.86, 0.02, 2.29, 81.32),
}
#: Differences below this many percent are rounding.
SAME_PERCENT = 1e-7
BELOW, ABOVE = "predicted below deployed", "deployed above optimum"
Records = list[dict[str, Any]]


@dataclass(frozen=True)
class CaptionedTable:
    """A table with its caption. Its records all have the same keys, the headers; cells are texts or
    numbers, `None` where there is nothing to say.
    """

    name: str
    caption: str
    records: Sequence[Mapping[str, Any]]

    @property
    def headers(self) -> list[str]:
        return list(self.records[0]) if self.records else []

    @property
    def rows(self) -> list[list[Any]]:
        return [list(record.values()) for record in self.records]

    def markdown(self) -> str:
        cells = [
            self.headers,
            ["---"] * len(self.headers),
            *([_cell(value) for value in row] for row in self.rows),
        ]
        # A bar within a cell, as in |Y|, would end it.
        return "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells
        )

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        path = folder / f"{self.name}.csv"
        write_rows(path, [self.headers, *self.rows])
        return path


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def planning_times(results: Results) -> CaptionedTable:
    records: list[dict[str, Any]] = []
    for setting in results.settings("quantile", "optimum"):
        quick, best = (results.of(method, setting).answer for method in ("quantile", "optimum"))
        slow = results.get("interpolation", *setting)
        seconds = slow.planning_seconds if slow is not None else None
        records.append(
            {
                "problem": title(setting.problem),
                "atoms": setting.atoms,
                "alpha0": setting.alpha0,
                "CVaRVILI (s)": seconds,
                "CVaRVIQ (s)": quick.plan_seconds,
                "least to most": _spread(quick),
                "optimum (s)": best.plan_seconds,
                "least to most ": _spread(best),
                "sweeps of CVaRVIQ": quick.sweeps,
            }
        )
    caption = (
        "Planning time in seconds, one core: the median of several calls, and how far they spread."
    )
    return CaptionedTable("planning_times", caption, records)


def _spread(answer: Answer) -> str | None:
    least, most = answer.plan_least, answer.plan_most
    return None if least is None or most is None else f"{least:.3g} to {most:.3g}"


def evaluation_times(results: Results) -> CaptionedTable:
    """Table 1 of the paper."""
    nodes, known = greatest(results, "queue_expanded"), [of.key for of in paper().problems]
    records = [
        {
            "policy of": planner(method),
            "problem": title(problem),
            "paper (s)": dict(zip(known, PAPER_SECONDS[method])).get(problem),
            "here (s)": seconds,
            "with": f"{setting.atoms} atoms, alpha0 = {setting.alpha0:g}",
            "compiled (ms)": 1000 * results.of(method, setting).points[0].seconds,
            "most expanded nodes": nodes[method, problem][0],
        }
        for (method, problem), (seconds, setting) in greatest(results, "queue_least").items()
    ]
    caption = (
        "Table 1: maximum time of ForPECVaR at alpha_target = alpha0, by the queue engine, which is"
        " Algorithm 1, each the least of several calls, and the time of the compiled one beside it."
    )
    return CaptionedTable("evaluation_times", caption, records)


def monte_carlo(results: Results) -> CaptionedTable:
    rows: list[tuple[Any, ...]] = []
    for domain in results.domains:
        for engine, (every_atom, where) in product(
            ENGINES, ((False, "alpha_target = alpha0"), (True, "all atoms"))
        ):
            errors = simulation_errors(results, domain, every_atom, engine)
            if errors is not None:
                rows.append((domain, f"here, {engine}", where, *errors))
        if rows and rows[-1][0] == domain and domain in PAPER_ERRORS:
            rows.append((domain, "paper", "not said", *PAPER_ERRORS[domain]))
    headers = ["domain", "who", "points", "mean", "median", "maximum"]
    caption = (
        "Monte Carlo in the time of ForPECVaR: |simulated − deployed CVaR|, averaged over 5 runs."
    )
    return CaptionedTable("monte_carlo", caption, [dict(zip(headers, row)) for row in rows])


def all_tables(results: Results) -> list[CaptionedTable]:
    makers = (
        checks,
        variants,
        methods,
        gaps,
        alpha0_choice,
        planning_times,
        evaluation_times,
        planner_differences,
        monte_carlo,
    )
    return [table for make in makers if (table := make(results)).records]


def by_grid(results: Results) -> Iterable[dict[str, Any]]:
    for domain, n, low in product(results.domains, results.atoms, results.alpha0):
        yield {"domain": domain, "atoms": n, "alpha0": low}


def checks(results: Results) -> CaptionedTable:
    """What must be so if the program is right, whatever the planners do."""
    records: Records = []

    def add(what: str, measured: str, quotients: FloatArray, value: Any) -> None:
        if quotients.size:
            cells = (what, measured, quotients.size, float(value(quotients - 1)))
            records.append(dict(zip(("what", "measured", "points", "value"), cells)))

    add(
        "the optimum is what its policy exactly has",
        "largest relative difference",
        quotient(results.points("optimum"), "prediction"),
        lambda parts: np.abs(parts).max(),
    )
    for method in PLANNERS:
        name, pairs = planner(method), results.points(method, "optimum")
        beats, less = f"no policy of {name} beats the", f"{name} predicts less than the"
        for what, which, of, field in (
            (beats, "least deployed", np.min, "deployed"),
            (less, "largest predicted", np.max, "prediction"),
        ):
            add(f"{what} optimum", f"{which} / optimum − 1", quotient(pairs, field), of)
    return CaptionedTable("checks", "Checks: deployed values against the optimum.", records)


def variants(results: Results) -> CaptionedTable:
    """How far each variant's deployed values lie above the optimum, and at how many points it is
    worse and better than the first.
    """
    records: Records = []
    those = dict(results.of_variants()) if len(results.variants) > 1 else {}
    for grid in by_grid(results) if those else ():
        settings = [
            setting
            for setting in results.settings("optimum", **grid)
            if all(setting in of.settings("quantile") for of in those.values())
        ]
        if not settings:
            continue
        first = None
        for name, of in those.items():
            points = of.points("quantile", "optimum", settings=settings)
            percent = 100 * (quotient(points, "deployed") - 1)
            cells = {f"{name} above optimum, mean %": float(percent.mean())}
            if first is None:
                first, record = percent, {**grid, "points": len(points)}
            else:
                for word, more in (("worse", percent - first), ("better", first - percent)):
                    cells[f"{name} {word} than {results.variants[0]} at"] = int(
                        np.sum(more > SAME_PERCENT)
                    )
            sweeps = sum(of.of("quantile", setting).answer.sweeps or 0 for setting in settings)
            record |= {**cells, f"sweeps, {name}": sweeps}
        records.append(record)
    caption = "CVaRVIQ in its variants: deployed values above the optimum."
    return CaptionedTable("variants", caption, records)


def methods(results: Results) -> CaptionedTable:
    """Every method and variant at the points of the optimum, for studies with methods
    of their own.
    """
    records: Records = []
    for _, these in results.of_variants():
        for method in these.methods:
            settings = these.settings(method)
            kinds = {these.of(method, setting).task.variant for setting in settings}
            below = 100 * (1 - quotient(these.points(method), "prediction"))
            over = 100 * (quotient(these.points(method, "optimum"), "deployed") - 1)
            record = {
                "method": planner(method),
                "variant": "/".join(sorted(kinds)),
                "points": below.size,
                f"{BELOW}, mean %": _mean(below),
                f"{ABOVE}, mean %": _mean(over),
                "max %": float(over.max()) if over.size else None,
            }
            if record not in records:
                records.append(record)
    return CaptionedTable("methods", "All methods at all points.", records)


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if values.size and np.isfinite(values).all() else None


def gaps(results: Results) -> CaptionedTable:
    records: Records = []
    for grid in by_grid(results):
        points = results.points("quantile", "optimum", **grid)
        if points:
            parts = {
                BELOW: 1 - quotient((those[:1] for those in points), "prediction"),
                "predicted below optimum": 1 - quotient(points, "prediction"),
                ABOVE: quotient(points, "deployed") - 1,
            }
            cells = {
                f"{what}, {name} %": float(of(100 * part))
                for what, part in parts.items()
                for name, of in (("mean", np.mean), ("max", np.max))
            }
            records.append({**grid, "points": len(points), **cells})
    caption = (
        "CVaRVIQ: predicted, deployed and optimal values, all problems of a domain and all atoms as"
        " initial alpha."
    )
    return CaptionedTable("gaps", caption, records)


def alpha0_choice(results: Results) -> CaptionedTable:
    records: Records = []
    for target, low, n in product(results.alpha0, results.alpha0, results.atoms):
        asked = (("quantile", target), ("quantile", low), ("optimum", target))
        found = []
        for problem in results.problems if isclose(low, target / 10) else ():
            runs = [results.get(method, problem, n, first) for method, first in asked]
            points = [point for run in runs if run and (point := at(run, target))]
            found += [points] if len(points) == len(asked) else []
        if found:
            record = {"alpha target": target, "atoms": n, "problems": len(found)}
            which = {"target": 0, "target / 10": 1}
            for name, of in ((f"{ABOVE}, mean %", np.mean), (f"{ABOVE}, max %", np.max)):
                for word, k in which.items():
                    above = quotient(((points[k], points[2]) for points in found), "deployed") - 1
                    record[f"{name}, alpha0 = {word}"] = 100 * float(of(above))
            for word, k in which.items():
                below = 1 - quotient(([points[k]] for points in found), "prediction")
                record[f"{BELOW}, mean %, alpha0 = {word}"] = 100 * float(np.mean(below))
            records.append(record)
    caption = "CVaRVIQ at the target, all problems: alpha0 at the target, and at a tenth of it."
    return CaptionedTable("alpha0_choice", caption, records)


def planner_differences(results: Results) -> CaptionedTable:
    records: Records = []
    for variant, these in results.of_variants():
        for field, what in (("prediction", "predicted values"), ("deployed", "deployed values")):
            values = absolute_differences(these, field)
            if values.size:
                record = {"|CVaRVILI − CVaRVIQ|": what, "variant": variant, "points": values.size}
                shares = {
                    f"below {limit:g}, %": 100 * float(np.mean(values < limit)) for limit in LIMITS
                }
                records.append({**record, **shares, "largest": float(values.max())})
    caption = "Differences between the two planners."
    return CaptionedTable("planner_differences", caption, records)
