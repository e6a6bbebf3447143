"""The figures of the paper's section 5, from stored runs alone.

Every figure is a function of the results; it returns nothing where the runs it shows are missing. Series differ in marker and line style, so that
the figures survive a black and white printer: solid is predicted, dashed is exact, dotted without markers is the optimum. A hollow marker is a
time that was estimated.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tailpath.study.boxes import box_alpha0, box_atoms
from tailpath.study.canvas import COLOUR_OF, COLOURS, MARKERS, ORDINAL, PERCENT, STYLE_OF, legend_below, panels, save, tens
from tailpath.study.results import PLANNERS, Problem, Results, title
from tailpath.study.store import Run

Drawing = Callable[[Results], Any]
Quantity = Callable[[Run], float | None]


def draw_all(results: Results, folder: pathlib.Path) -> dict[str, str]:
    """Write every figure as PDF and PNG; returns the caption of each by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name, (draw, caption) in FIGURES.items():
        figure = draw(results)
        if figure is not None:
            save(figure, folder / name)
            drawn[name] = caption
    return drawn


# ---------------------------------------------------------------------- values against alpha


def curve(axes: Any, run: Run | None, field: str, **style: Any) -> None:
    """One series over the atoms of a run, as initial alpha."""
    if run is not None:
        axes.plot([point.alpha for point in run.points], [getattr(point, field) for point in run.points], **style)


def both_planners(results: Results, problems: Sequence[Problem], columns: int = 2) -> Any:
    """Predicted and exact values of both planners, and the optimum, with the finest grid of the paper."""
    atoms, low = max(results.atoms), min(results.alpha0)
    figure, axes = panels([title(problem) for problem in problems], columns)
    for ax, problem in zip(axes, problems):
        for method, marker, size, face in (("interpolation", "s", 8, "none"), ("quantile", "o", 3.5, COLOUR_OF["quantile"])):
            run = results.get(method, problem, atoms, low)
            look = {"marker": marker, "markersize": size, "color": COLOUR_OF[method], "markerfacecolor": face}
            curve(ax, run, "predicted", linestyle="-", label=f"{PLANNERS[method]}, predicted", **look)
            curve(ax, run, "exact", linestyle="--", label=f"{PLANNERS[method]}, exact", **look)
        curve(ax, results.get("optimum", problem, atoms, low), "exact", **OPTIMUM)
    against_alpha(axes)
    legend_below(figure, axes[0], 3)
    return figure


OPTIMUM = {"linestyle": ":", "color": "black", "linewidth": 2.2, "label": "optimum"}


def against_alpha(axes: Iterable[Any], label: str = "CVaR") -> None:
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlabel(r"$\alpha$")
        ax.set_ylabel(label)


def values(results: Results) -> Any:
    return both_planners(results, results.shown) if _has_plans(results, results.shown) else None


def values_all(results: Results) -> Any:
    return both_planners(results, results.problems, 3) if _has_plans(results, results.problems) and len(results.problems) > 2 else None


def varying(results: Results, series: Sequence[tuple[int, float]], name: Callable[[int, float], str]) -> Any:
    """Predicted and exact values of CVaRVIQ for several grids, and the optimum for the widest."""
    if not _has_plans(results, results.shown) or len(series) < 2:
        return None
    figure, axes = panels([title(problem) for problem in results.shown])
    for ax, problem in zip(axes, results.shown):
        for k, (atoms, low) in enumerate(series):
            run = results.get("quantile", problem, atoms, low)
            look = {"marker": MARKERS[k], "markersize": 4.5, "color": COLOURS[k]}
            curve(ax, run, "predicted", linestyle="-", label=f"{name(atoms, low)}, predicted", **look)
            curve(ax, run, "exact", linestyle="--", label=f"{name(atoms, low)}, exact", markerfacecolor="none", **look)
        curve(ax, results.get("optimum", problem, max(results.atoms), min(results.alpha0)), "exact", **OPTIMUM)
    against_alpha(axes)
    legend_below(figure, axes[0], 4)
    return figure


def varying_atoms(results: Results) -> Any:
    return varying(results, [(n, min(results.alpha0)) for n in results.atoms], lambda n, low: f"|Y| = {n}")


def varying_alpha0(results: Results) -> Any:
    return varying(results, [(max(results.atoms), low) for low in results.alpha0], lambda n, low: rf"$\alpha_0$ = {tens(low)}")


def beyond_optimum(results: Results) -> Any:
    """By how much the exact value of CVaRVIQ's policy exceeds the optimum."""
    if not results.settings("quantile", "optimum"):
        return None
    rows = [
        [(n, min(results.alpha0), f"|Y| = {n}") for n in results.atoms],
        [(max(results.atoms), low, rf"$\alpha_0$ = {tens(low)}") for low in results.alpha0],
    ]
    what = (rf"$\alpha_0$ = {tens(min(results.alpha0))}", f"|Y| = {max(results.atoms)}")
    figure, axes = panels([f"{title(problem)}, {fixed}" for fixed in what for problem in results.shown], len(results.shown))
    for ax, (series, problem) in zip(axes, [(series, problem) for series in rows for problem in results.shown]):
        for k, (atoms, low, name) in enumerate(series):
            run, best = results.get("quantile", problem, atoms, low), results.get("optimum", problem, atoms, low)
            if run is not None and best is not None:
                excess = [100 * (point.exact / other.exact - 1) for point, other in zip(run.points, best.points)]
                ax.plot([p.alpha for p in run.points], excess, marker=MARKERS[k], linestyle=ORDINAL[k], color=COLOURS[k], label=name)
        ax.legend(fontsize=8)
    against_alpha(axes, PERCENT)
    return figure


def _has_plans(results: Results, problems: Iterable[Problem]) -> bool:
    return any(setting.problem in problems for setting in results.settings("quantile", "optimum"))


# ---------------------------------------------------------------------- times


def against_atoms(results: Results, methods: Sequence[str], rows: Sequence[tuple[Quantity, str]], scale: str) -> Any:
    """Quantities of a run against the number of atoms, a row of panels for each; one series per method and alpha0."""
    if not results.settings("quantile") or len(results.atoms) < 2:
        return None
    figure, axes = panels([title(problem) for _ in rows for problem in results.shown], len(results.shown))
    for ax, (quantity, label, problem) in zip(axes, [(quantity, label, problem) for quantity, label in rows for problem in results.shown]):
        for method in methods:
            guessed = False
            for k, low in enumerate(results.alpha0):
                runs = [run for n in results.atoms if (run := results.get(method, problem, n, low)) is not None]
                look = {"marker": MARKERS[k], "color": COLOUR_OF[method], "markersize": 6}
                name = rf"{PLANNERS[method]}, $\alpha_0$ = {tens(low)}"
                ax.plot([run.task.atoms for run in runs], [quantity(run) for run in runs], STYLE_OF[method], label=name, **look)
                hollow = [run for run in runs if run.answer.estimated and quantity is planning_seconds]
                guessed = guessed or bool(hollow)
                empty = {**look, "linestyle": "none", "markerfacecolor": "white", "zorder": 3}
                ax.plot([run.task.atoms for run in hollow], [quantity(run) for run in hollow], **empty)
            if guessed:
                ax.plot([], [], "o", color=COLOUR_OF[method], markerfacecolor="white", label="hollow: estimated")
        ax.set_yscale(scale)
        if scale == "linear":
            ax.set_ylim(bottom=0)
        ax.set_xticks(results.atoms)
        ax.set_xlabel("number of atoms |Y|")
        ax.set_ylabel(label)
    legend_below(figure, axes[0], len(methods))
    return figure


def planning_seconds(run: Run) -> float | None:
    return run.answer.plan_seconds


def evaluation_milliseconds(run: Run) -> float:
    """The time of ForPECVaR for the atom alpha_target = alpha0."""
    return 1000 * run.points[0].seconds


def expanded_thousands(run: Run) -> float:
    return run.points[0].expanded / 1000


def planning_time(results: Results) -> Any:
    return against_atoms(results, ("interpolation", "quantile", "optimum"), [(planning_seconds, "planning time (s)")], "log")


def evaluation_time(results: Results) -> Any:
    rows: list[tuple[Quantity, str]] = [
        (evaluation_milliseconds, "evaluation time (ms)"),
        (expanded_thousands, "expanded nodes (thousands)"),
    ]
    return against_atoms(results, ("quantile", "interpolation"), rows, "linear")


def monte_carlo(results: Results) -> Any:
    """The error of every Monte Carlo run at alpha_target = alpha0."""
    settings = results.settings("simulation")
    if not settings:
        return None
    shown = [problem for problem in results.shown if any(setting.problem == problem for setting in settings)]
    figure, axes = panels([title(problem) for problem in shown])
    for ax, problem in zip(axes, shown):
        here = [setting for setting in settings if setting.problem == problem]
        for k, low in enumerate(results.alpha0):
            places, errors = [], []
            for x, setting in enumerate(here):
                first = [row for row in results.of("simulation", setting).simulations if row.alpha == setting.alpha0]
                if setting.alpha0 == low:
                    places += [x] * len(first)
                    errors += [abs(row.simulated - row.exact) for row in first]
            look = {"marker": MARKERS[k], "color": COLOURS[k], "markerfacecolor": "none", "linestyle": "none"}
            ax.plot(places, errors, label=rf"$\alpha_0$ = {tens(low)}", **look)
        ax.set_yscale("log")
        ax.set_xticks(range(len(here)), [str(setting.atoms) for setting in here])
        ax.set_xlabel("number of atoms |Y|")
        ax.set_ylabel("|simulated − exact CVaR|")
    legend_below(figure, axes[0], 3)
    return figure


#: Every figure by the name of its files, with its caption.
FIGURES: dict[str, tuple[Drawing, str]] = {
    "values": (values, "Predicted and exact values of both planners, and the optimum, on the largest problem of each domain."),
    "values_all": (values_all, "The same for all problems."),
    "planning_time": (planning_time, "Planning time. Hollow markers: linear programs timed on whole sweeps and scaled (estimated)."),
    "varying_atoms": (varying_atoms, "Predicted and exact values of CVaRVIQ with a fixed alpha0 and more atoms."),
    "box_atoms": (
        box_atoms,
        "Values of CVaRVIQ with the smallest alpha0: predicted by exact, and exact by the optimum, all problems of a domain.",
    ),
    "varying_alpha0": (varying_alpha0, "Predicted and exact values of CVaRVIQ with a fixed number of atoms and different alpha0."),
    "box_alpha0": (box_alpha0, "Values of CVaRVIQ at the atoms from alpha_target = 0.1 up: predicted by exact, and exact by the optimum."),
    "beyond_optimum": (beyond_optimum, "By how much the exact value of CVaRVIQ's policy exceeds the optimum."),
    "evaluation_time": (evaluation_time, "Time of ForPECVaR at alpha_target = alpha0, and the nodes it expands."),
    "monte_carlo": (monte_carlo, "Error of Monte Carlo in the time that ForPECVaR takes, at alpha_target = alpha0; five runs each."),
}
