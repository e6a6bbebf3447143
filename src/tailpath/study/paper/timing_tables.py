"""Tables of times, expanded nodes and Monte Carlo errors, from stored runs."""

from __future__ import annotations

from typing import Any

from tailpath.study.paper.captioned_table import CaptionedTable
from tailpath.study.paper.claims.evaluation import (
    PAPER_ERRORS,
    longest_evaluations,
    simulation_errors,
)
from tailpath.study.results import Results, planner, title
from tailpath.study.store import Answer

#: The paper's Table 1, in seconds.
PAPER_TABLE = (
    "gridworld/5x5",
    "gridworld/8x9",
    "gridworld/14x16",
    "river/10x3",
    "river/16x6",
    "river/30x10",
)
PAPER_SECONDS = {
    "interpolation": dict(zip(PAPER_TABLE, (6.79, 122.52, 3244.18, 0.02, 2.27, 79.67))),
    "quantile": dict(zip(PAPER_TABLE, (7.95, 130.12, 3344.86, 0.02, 2.29, 81.32))),
}


def planning_times(results: Results) -> CaptionedTable:
    rows = []
    for setting in results.settings("quantile", "optimum"):
        times = {
            method: _spread(results.of(method, setting).answer)
            for method in ("quantile", "optimum")
        }
        slow = results.get("interpolation", setting.problem, setting.atoms, setting.alpha0)
        known = slow is not None and slow.task.inner != "greedy"
        rows.append(
            [
                title(setting.problem),
                setting.atoms,
                setting.alpha0,
                slow.answer.plan_seconds if slow is not None and known else None,
                (
                    ("estimated" if slow.answer.estimated else "measured")
                    if slow is not None and known
                    else None
                ),
                *times["quantile"],
                *times["optimum"],
                results.of("quantile", setting).answer.sweeps,
            ]
        )
    headers = [
        "problem",
        "atoms",
        "alpha0",
        "CVaRVILI (s)",
        "CVaRVILI's time is",
        "CVaRVIQ (s)",
        "least to most",
        "optimum (s)",
        "least to most ",
        "sweeps of CVaRVIQ",
    ]
    return CaptionedTable(
        "planning_times",
        "Planning time in seconds, one core: the median of several calls, and how far they spread.",
        headers,
        rows,
    )


def _spread(answer: Answer) -> tuple[float | None, str | None]:
    """The median planning time, and from where to where it spreads."""
    least, most = answer.plan_least, answer.plan_most
    return (
        answer.plan_seconds,
        f"{least:.3g} to {most:.3g}" if least is not None and most is not None else None,
    )


def evaluation_times(results: Results) -> CaptionedTable:
    """Table 1 of the paper."""
    found = longest_evaluations(results)
    rows = []
    for method in ("interpolation", "quantile"):
        for problem in results.problems:
            if (method, problem) in found:
                seconds, setting = found[method, problem]
                where = f"{setting.atoms} atoms, alpha0 = {setting.alpha0:g}"
                paper = PAPER_SECONDS[method].get("/".join(problem))
                nodes = max(
                    results.of(method, s).points[0].expanded
                    for s in results.settings(method)
                    if s.problem == problem
                )
                rows.append([planner(method), title(problem), paper, seconds, where, nodes])
    headers = ["policy of", "problem", "paper (s)", "here (s)", "with", "most expanded nodes"]
    return CaptionedTable(
        "evaluation_times",
        "Table 1: maximum time of ForPECVaR at alpha_target = alpha0.",
        headers,
        rows,
    )


def monte_carlo(results: Results) -> CaptionedTable:
    rows: list[list[Any]] = []
    for domain in results.domains:
        for every_atom, where in ((False, "alpha_target = alpha0"), (True, "all atoms")):
            errors = simulation_errors(results, domain, every_atom)
            if errors is not None:
                rows.append([domain, "here", where, *errors])
        if rows and rows[-1][0] == domain and domain in PAPER_ERRORS:
            rows.append([domain, "paper", "not said", *PAPER_ERRORS[domain]])
    headers = ["domain", "who", "points", "mean", "median", "maximum"]
    return CaptionedTable(
        "monte_carlo",
        "Monte Carlo in the time of ForPECVaR: |simulated − deployed CVaR|, averaged over 5 runs.",
        headers,
        rows,
    )
