"""Tables of times, expanded nodes and Monte Carlo errors, from stored runs."""

from __future__ import annotations

from typing import Any

from tailpath.study.paper.captioned_table import CaptionedTable
from tailpath.study.paper.claims.evaluation import PAPER_ERRORS, greatest, simulation_errors
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
    records: list[dict[str, Any]] = []
    for setting in results.settings("quantile", "optimum"):
        quick, best = (results.of(method, setting).answer for method in ("quantile", "optimum"))
        slow = results.get("interpolation", *setting)
        seconds = slow.planning_seconds if slow is not None else None
        how = "estimated" if slow is not None and slow.answer.estimated else "measured"
        records.append(
            {
                "problem": title(setting.problem),
                "atoms": setting.atoms,
                "alpha0": setting.alpha0,
                "CVaRVILI (s)": seconds,
                "CVaRVILI's time is": None if seconds is None else how,
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
    """From where to where the planning time spreads."""
    least, most = answer.plan_least, answer.plan_most
    return None if least is None or most is None else f"{least:.3g} to {most:.3g}"


def evaluation_times(results: Results) -> CaptionedTable:
    """Table 1 of the paper."""
    nodes = greatest(results, "expanded")
    records = [
        {
            "policy of": planner(method),
            "problem": title(problem),
            "paper (s)": PAPER_SECONDS[method].get("/".join(problem)),
            "here (s)": seconds,
            "with": f"{setting.atoms} atoms, alpha0 = {setting.alpha0:g}",
            "most expanded nodes": nodes[method, problem][0],
        }
        for (method, problem), (seconds, setting) in greatest(results, "seconds").items()
    ]
    caption = "Table 1: maximum time of ForPECVaR at alpha_target = alpha0."
    return CaptionedTable("evaluation_times", caption, records)


def monte_carlo(results: Results) -> CaptionedTable:
    rows: list[tuple[Any, ...]] = []
    for domain in results.domains:
        for every_atom, where in ((False, "alpha_target = alpha0"), (True, "all atoms")):
            errors = simulation_errors(results, domain, every_atom)
            if errors is not None:
                rows.append((domain, "here", where, *errors))
        if rows and rows[-1][0] == domain and domain in PAPER_ERRORS:
            rows.append((domain, "paper", "not said", *PAPER_ERRORS[domain]))
    headers = ["domain", "who", "points", "mean", "median", "maximum"]
    caption = (
        "Monte Carlo in the time of ForPECVaR: |simulated − deployed CVaR|, averaged over 5 runs."
    )
    return CaptionedTable("monte_carlo", caption, [dict(zip(headers, row)) for row in rows])
