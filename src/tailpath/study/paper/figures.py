"""The figures of the paper's section 5, from stored runs alone, and those that variants and other
methods add.

Every figure is a function of the results; it returns nothing where the runs it shows are missing.
Series differ in marker and line style, so that the figures survive a black and white printer: solid
with filled markers is predicted, dashed with open ones is deployed, dotted without markers is the
optimum, which needs no atoms. Figures of times, evaluations and simulations are in
`tailpath.study.paper.timing_figures`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from tailpath.pictures.style import without_mathematics
from tailpath.study.paper.boxes import box_alpha0, box_atoms
from tailpath.study.paper.canvas import (
    OPTIMUM,
    ORDINAL,
    PERCENT,
    legend_below,
    panels,
    problem_panels,
    save,
    style,
    tens,
)
from tailpath.study.paper.timing_figures import (
    draw_evaluation_time,
    draw_monte_carlo,
    planning_time,
)
from tailpath.study.results import Key, Results, above, planner, title
from tailpath.study.store import Run

#: Parts below this are rounding; and an axis of percents reaches at least so far.
ROUNDING, LEAST_PERCENT = 1e-9, 0.1
Drawing = Callable[[Results], Any]


def draw_all(results: Results, folder: pathlib.Path) -> dict[str, str]:
    """Write every figure as PDF and PNG, those of other variants under names of their own; returns
    the caption of each by its name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for variant in dict.fromkeys([results.variant, *results.judged]):
        these = results if variant == results.variant else results.of_variant(variant)
        chosen = (
            FIGURES
            if these is results
            else {name: FIGURES[name] for name in OF_VARIANTS if name in FIGURES}
        )
        for name, (draw, caption) in chosen.items():
            figure = draw(these)
            if figure is not None:
                label = name if these is results else f"{name}_{variant}"
                save(figure, folder / label)
                drawn[label] = (
                    caption
                    if len(results.variants) < 2 or name in ACROSS
                    else f"{caption} Variant: {variant}."
                )
    return drawn


# ---------------------------------------------------------------------- values against alpha

HOLLOW = {"linestyle": "--", "markersize": 4.5, "markerfacecolor": "none"}


def curve(axes: Any, run: Run | None, field: str, **look: Any) -> None:
    """One series over the atoms of a run, as initial alpha."""
    if run is not None:
        values = [getattr(point, field) for point in run.points]
        axes.plot([point.alpha for point in run.points], values, **look)


def draw_predicted_and_deployed(
    axes: Any, run: Run | None, name: str, k: int, size: float = 4.5
) -> None:
    """The two series of a planner, in the k-th marker and colour: solid and filled, dashed and
    open.
    """
    look = {**style(k), "markersize": size}
    curve(axes, run, "prediction", **{**look, "linestyle": "-", "label": f"{name}, predicted"})
    curve(axes, run, "deployed", **{**HOLLOW, **look, "label": f"{name}, deployed"})


def finest(results: Results) -> tuple[int, float]:
    """The grid with the most atoms and the smallest alpha0."""
    return max(results.atoms), min(results.alpha0)


def finest_optimum(axes: Any, results: Results, problem: Key) -> None:
    curve(axes, results.get("optimum", problem, *finest(results)), "deployed", **OPTIMUM)


def both_planners(results: Results, problems: Sequence[Key], columns: int = 2) -> Any:
    """Predicted and deployed values of both planners, and the optimum, with the finest grid."""
    figure, axes = problem_panels(problems, columns)
    for ax, problem in zip(axes, problems):
        for k, (method, size) in enumerate((("interpolation", 8.0), ("quantile", 3.5))):
            run = results.get(method, problem, *finest(results))
            draw_predicted_and_deployed(ax, run, planner(method), 1 - k, size)
        finest_optimum(ax, results, problem)
    against_alpha(axes)
    legend_below(figure, axes, 3)
    return figure


def against_alpha(axes: Iterable[Any], label: str = "CVaR") -> None:
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlabel(r"$\alpha$")
        ax.set_ylabel(label)
        if label == PERCENT:  # last, because it ends matplotlib's own choice
            ax.set_ylim(top=max(LEAST_PERCENT, ax.get_ylim()[1]))


def values(results: Results) -> Any:
    return both_planners(results, results.shown) if _has_plans(results, results.shown) else None


def values_all(results: Results) -> Any:
    several = _has_plans(results, results.problems) and len(results.problems) > 2
    return both_planners(results, results.problems, 3) if several else None


def varying(results: Results, series: Mapping[tuple[int, float], str]) -> Any:
    """Predicted and deployed values of CVaRVIQ for several grids, each with its name, and the
    optimum.
    """
    if not _has_plans(results, results.shown) or len(series) < 2:
        return None
    figure, axes = problem_panels(results.shown)
    for ax, problem in zip(axes, results.shown):
        for k, (grid, name) in enumerate(series.items()):
            draw_predicted_and_deployed(ax, results.get("quantile", problem, *grid), name, k)
        finest_optimum(ax, results, problem)
    against_alpha(axes)
    legend_below(figure, axes, 4)
    return figure


def by_atoms(results: Results) -> dict[tuple[int, float], str]:
    """The grids with the smallest alpha0, by their numbers of atoms."""
    return {(n, min(results.alpha0)): f"|Y| = {n}" for n in results.atoms}


def by_alpha0(results: Results) -> dict[tuple[int, float], str]:
    """The grids with the most atoms, by alpha0."""
    return {(max(results.atoms), low): rf"$\alpha_0$ = {tens(low)}" for low in results.alpha0}


def varying_atoms(results: Results) -> Any:
    return varying(results, by_atoms(results))


def varying_alpha0(results: Results) -> Any:
    return varying(results, by_alpha0(results))


def beyond_optimum(results: Results) -> Any:
    """By how much the deployed value of CVaRVIQ's policy exceeds the optimum: with more atoms, and
    with different alpha0.
    """
    if not results.settings("quantile", "optimum"):
        return None
    most, least = finest(results)
    rows = {rf"$\alpha_0$ = {tens(least)}": by_atoms(results)}
    if len(results.alpha0) > 1:
        rows[f"|Y| = {most}"] = by_alpha0(results)
    every = list(product(rows, results.shown))
    titles = [f"{without_mathematics(title(problem))}, {fixed}" for fixed, problem in every]
    figure, axes = panels(titles, len(results.shown))
    for ax, (fixed, problem) in zip(axes, every):
        for k, (grid, name) in enumerate(rows[fixed].items()):
            look = {"linestyle": ORDINAL[k % len(ORDINAL)], "label": name, **style(k)}
            excess(ax, results, problem, *grid, **look)
        if ax.get_legend_handles_labels()[1]:
            ax.legend(fontsize=8)
    against_alpha(axes, PERCENT)
    return figure


def excess(axes: Any, results: Results, problem: Key, atoms: int, low: float, **look: Any) -> None:
    """How far, in percent, CVaRVIQ's policies lie above the optimum."""
    run, best = (results.get(of, problem, atoms, low) for of in ("quantile", "optimum"))
    if run is not None and best is not None:
        parts = above(zip(run.points, best.points)).tolist()
        percents = [100 * part if abs(part) > ROUNDING else 0.0 for part in parts]
        axes.plot([point.alpha for point in run.points], percents, **look)


def _has_plans(results: Results, problems: Iterable[Key]) -> bool:
    return any(setting.problem in problems for setting in results.settings("quantile"))


# ---------------------------------------------------------------------- variants and other methods


def draw_variants(results: Results) -> Any:
    """CVaRVIQ in all its variants beside the optimum: values, and by how much they exceed it."""
    if len(results.variants) < 2 or not results.settings("quantile", "optimum"):
        return None
    grid, half = finest(results), len(results.shown)
    figure, axes = problem_panels(results.shown, rows=2)
    grey = {"linestyle": "-", "color": "0.5", "linewidth": 1, "label": "predicted, all variants"}
    for ax, below, problem in zip(axes, axes[half:], results.shown):
        for k, (variant, these) in enumerate(results.of_variants()):
            run = these.get("quantile", problem, *grid)
            if k == 0:
                curve(ax, run, "prediction", **grey)
            look = {**HOLLOW, "linestyle": ORDINAL[1 + k], **style(k)}
            curve(ax, run, "deployed", label=f"{variant}, deployed", **look)
            excess(below, these, problem, *grid, **look)
        finest_optimum(ax, results, problem)
    against_alpha(axes[:half])
    against_alpha(axes[half:], PERCENT)
    legend_below(figure, axes, 4)
    return figure


def draw_methods(results: Results) -> Any:
    """The deployed values of all methods, where there are others than the paper's."""
    if set(results.methods) <= {"quantile", "interpolation", "optimum"}:
        return None
    figure, axes = problem_panels(results.shown)
    for ax, problem in zip(axes, results.shown):
        for k, method in enumerate(method for method in results.methods if method != "optimum"):
            run = results.get(method, problem, *finest(results))
            curve(ax, run, "deployed", label=planner(method), **HOLLOW, **style(k))
        finest_optimum(ax, results, problem)
    against_alpha(axes, "CVaR, deployed")
    legend_below(figure, axes, 3)
    return figure


#: Every figure by the name of its files, with its caption.
FIGURES: dict[str, tuple[Drawing, str]] = {
    "values": (
        values,
        (
            "Predicted and deployed values of both planners, and the optimum, on the largest"
            " problem of each domain."
        ),
    ),
    "values_all": (values_all, "The same for all problems."),
    "variants": (
        draw_variants,
        (
            "CVaRVIQ in its variants: deployed values beside the optimum, and by how much they"
            " exceed it."
        ),
    ),
    "methods": (draw_methods, "Deployed values of all methods, and the optimum."),
    "planning_time": (
        planning_time,
        (
            "Planning time: medians, with bars from the least to the largest. Hollow markers:"
            " linear programs timed on whole sweeps (estimated)."
        ),
    ),
    "varying_atoms": (
        varying_atoms,
        "Predicted and deployed values of CVaRVIQ with a fixed alpha0 and more atoms.",
    ),
    "box_atoms": (
        box_atoms,
        (
            "Values of CVaRVIQ with the smallest alpha0: predicted by deployed, and deployed by the"
            " optimum, all problems of a domain."
        ),
    ),
    "varying_alpha0": (
        varying_alpha0,
        (
            "Predicted and deployed values of CVaRVIQ with a fixed number of atoms and different"
            " alpha0."
        ),
    ),
    "box_alpha0": (
        box_alpha0,
        (
            "Values of CVaRVIQ at the atoms from alpha_target = 0.1 up: predicted by deployed, and"
            " deployed by the optimum."
        ),
    ),
    "beyond_optimum": (
        beyond_optimum,
        "By how much the deployed value of CVaRVIQ's policy exceeds the optimum.",
    ),
    "evaluation_time": (
        draw_evaluation_time,
        (
            "Time of ForPECVaR at alpha_target = alpha0, medians with their spread, and the nodes"
            " it expands."
        ),
    ),
    "monte_carlo": (
        draw_monte_carlo,
        (
            "Error of Monte Carlo in the time that ForPECVaR takes, at alpha_target = alpha0; five"
            " runs each."
        ),
    ),
}
#: Those that are drawn for every variant but those for contrast, and those that show all variants
#: at once.
OF_VARIANTS = (
    "values",
    "varying_atoms",
    "box_atoms",
    "varying_alpha0",
    "beyond_optimum",
    "planning_time",
)
ACROSS = ("variants",)
