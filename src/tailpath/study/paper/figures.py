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
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tailpath.pictures.style import without_mathematics
from tailpath.study.paper.boxes import box_alpha0, box_atoms
from tailpath.study.paper.canvas import (
    OPTIMUM,
    ORDINAL,
    PERCENT,
    legend_below,
    panels,
    save,
    style,
    tens,
)
from tailpath.study.paper.timing_figures import (
    draw_evaluation_time,
    draw_monte_carlo,
    planning_time,
)
from tailpath.study.results import Key, Results, planner, title
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


def curve(axes: Any, run: Run | None, field: str, **look: Any) -> None:
    """One series over the atoms of a run, as initial alpha."""
    if run is not None:
        axes.plot(
            [point.alpha for point in run.points],
            [getattr(point, field) for point in run.points],
            **look,
        )


def draw_predicted_and_deployed(
    axes: Any, run: Run | None, name: str, k: int, size: float = 4.5
) -> None:
    """The two series of a planner, in the k-th marker and colour: solid and filled, dashed and
    open.
    """
    curve(
        axes,
        run,
        "prediction",
        linestyle="-",
        markersize=size,
        label=f"{name}, predicted",
        **style(k),
    )
    curve(
        axes,
        run,
        "deployed",
        linestyle="--",
        markersize=size,
        markerfacecolor="none",
        label=f"{name}, deployed",
        **style(k),
    )


def finest_optimum(axes: Any, results: Results, problem: Key) -> None:
    curve(
        axes,
        results.get("optimum", problem, max(results.atoms), min(results.alpha0)),
        "deployed",
        **OPTIMUM,
    )


def both_planners(results: Results, problems: Sequence[Key], columns: int = 2) -> Any:
    """Predicted and deployed values of both planners, and the optimum, with the finest grid."""
    atoms, low = max(results.atoms), min(results.alpha0)
    figure, axes = panels([without_mathematics(title(problem)) for problem in problems], columns)
    for ax, problem in zip(axes, problems):
        for k, (method, size) in enumerate((("interpolation", 8.0), ("quantile", 3.5))):
            draw_predicted_and_deployed(
                ax, results.get(method, problem, atoms, low), planner(method), 1 - k, size
            )
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
    return (
        both_planners(results, results.problems, 3)
        if _has_plans(results, results.problems) and len(results.problems) > 2
        else None
    )


def varying(
    results: Results, series: Sequence[tuple[int, float]], name: Callable[[int, float], str]
) -> Any:
    """Predicted and deployed values of CVaRVIQ for several grids, and the optimum."""
    if not _has_plans(results, results.shown) or len(series) < 2:
        return None
    figure, axes = panels([without_mathematics(title(problem)) for problem in results.shown])
    for ax, problem in zip(axes, results.shown):
        for k, (atoms, low) in enumerate(series):
            draw_predicted_and_deployed(
                ax, results.get("quantile", problem, atoms, low), name(atoms, low), k
            )
        finest_optimum(ax, results, problem)
    against_alpha(axes)
    legend_below(figure, axes, 4)
    return figure


def varying_atoms(results: Results) -> Any:
    return varying(
        results, [(n, min(results.alpha0)) for n in results.atoms], lambda n, low: f"|Y| = {n}"
    )


def varying_alpha0(results: Results) -> Any:
    return varying(
        results,
        [(max(results.atoms), low) for low in results.alpha0],
        lambda n, low: rf"$\alpha_0$ = {tens(low)}",
    )


def beyond_optimum(results: Results) -> Any:
    """By how much the deployed value of CVaRVIQ's policy exceeds the optimum: with more atoms, and
    with different alpha0.
    """
    if not results.settings("quantile", "optimum"):
        return None
    fewest, most = min(results.alpha0), max(results.atoms)
    rows = [([(n, fewest, f"|Y| = {n}") for n in results.atoms], rf"$\alpha_0$ = {tens(fewest)}")]
    if len(results.alpha0) > 1:
        rows.append(
            ([(most, low, rf"$\alpha_0$ = {tens(low)}") for low in results.alpha0], f"|Y| = {most}")
        )
    figure, axes = panels(
        [
            f"{without_mathematics(title(problem))}, {fixed}"
            for _, fixed in rows
            for problem in results.shown
        ],
        len(results.shown),
    )
    for ax, (series, problem) in zip(
        axes, [(series, problem) for series, _ in rows for problem in results.shown]
    ):
        for k, (atoms, low, name) in enumerate(series):
            excess(
                ax,
                results,
                problem,
                atoms,
                low,
                linestyle=ORDINAL[k % len(ORDINAL)],
                label=name,
                **style(k),
            )
        if ax.get_legend_handles_labels()[1]:
            ax.legend(fontsize=8)
    against_alpha(axes, PERCENT)
    return figure


def excess(axes: Any, results: Results, problem: Key, atoms: int, low: float, **look: Any) -> None:
    """How far, in percent, CVaRVIQ's policies lie above the optimum."""
    run, best = (
        results.get("quantile", problem, atoms, low),
        results.get("optimum", problem, atoms, low),
    )
    if run is not None and best is not None:
        ratio = [
            point.deployed / other.deployed - 1 for point, other in zip(run.points, best.points)
        ]
        axes.plot(
            [point.alpha for point in run.points],
            [100 * part if abs(part) > ROUNDING else 0.0 for part in ratio],
            **look,
        )


def _has_plans(results: Results, problems: Iterable[Key]) -> bool:
    return any(setting.problem in problems for setting in results.settings("quantile"))


# ---------------------------------------------------------------------- variants and other methods


def draw_variants(results: Results) -> Any:
    """CVaRVIQ in all its variants beside the optimum: values, and by how much they exceed it."""
    if len(results.variants) < 2 or not results.settings("quantile", "optimum"):
        return None
    atoms, low = max(results.atoms), min(results.alpha0)
    figure, axes = panels(
        [without_mathematics(title(problem)) for _ in range(2) for problem in results.shown],
        len(results.shown),
    )
    half = len(results.shown)
    for position, problem in enumerate(results.shown):
        for k, variant in enumerate(results.variants):
            these = results.of_variant(variant)
            run = these.get("quantile", problem, atoms, low)
            if k == 0:
                curve(
                    axes[position],
                    run,
                    "prediction",
                    linestyle="-",
                    color="0.5",
                    linewidth=1,
                    label="predicted, all variants",
                )
            look = {
                "linestyle": ORDINAL[1 + k],
                "markersize": 4.5,
                "markerfacecolor": "none",
                **style(k),
            }
            curve(axes[position], run, "deployed", label=f"{variant}, deployed", **look)
            excess(axes[half + position], these, problem, atoms, low, **look)
        finest_optimum(axes[position], results, problem)
    against_alpha(axes[:half])
    against_alpha(axes[half:], PERCENT)
    legend_below(figure, axes, 4)
    return figure


def draw_methods(results: Results) -> Any:
    """The deployed values of all methods, where there are others than the paper's."""
    if set(results.methods) <= {"quantile", "interpolation", "optimum"}:
        return None
    atoms, low = max(results.atoms), min(results.alpha0)
    figure, axes = panels([without_mathematics(title(problem)) for problem in results.shown])
    for ax, problem in zip(axes, results.shown):
        for k, method in enumerate(method for method in results.methods if method != "optimum"):
            look = {"linestyle": "--", "markersize": 4.5, "markerfacecolor": "none", **style(k)}
            curve(
                ax,
                results.get(method, problem, atoms, low),
                "deployed",
                label=planner(method),
                **look,
            )
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
