"""The figures of the paper's section 4, from stored runs alone, and those that variants and other
methods add.

Every figure is a function of the results; it returns nothing where the runs it shows are missing.
Series differ in marker and line style, so that the figures survive a black and white printer: solid
with filled markers is predicted, dashed with open ones is deployed, dotted without markers is the
optimum, which needs no atoms. Figures of times, evaluations and simulations are in
`forpecvar.canvas`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from forpecvar.atoms import TARGET
from forpecvar.canvas import (
    OPTIMUM,
    PERCENT,
    draw_evaluation_time,
    draw_monte_carlo,
    heading,
    legend_below,
    panels,
    planning_time,
    problem_panels,
    save,
    style,
    tens,
)
from forpecvar.design import OWN
from forpecvar.results import Key, Results, planner, quotient
from forpecvar.store import Run
from tailpath.pictures import look as look_of

#: What is divided, by what the last of some methods has deployed.
QUOTIENTS = {
    "predicted / deployed\n(approximate / exact)": ("prediction", ["quantile"]),
    "deployed / optimum": ("deployed", ["quantile", "optimum"]),
}
#: Parts below this are rounding; and an axis of percents reaches at least so far.
ROUNDING, LEAST_PERCENT = 1e-9, 0.1
Drawing = Callable[[Results], Any]


def draw_all(
    results: Results, folder: pathlib.Path, update: Callable[[str], None] = lambda text: None
) -> dict[str, str]:
    """Write every figure as PDF and PNG, those of other variants under names of their own; returns
    the caption of each by its name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked = [
        (variant, name)
        for variant in dict.fromkeys([results.variant, *results.judged])
        for name, figure in FIGURES.items()
        if variant == results.variant or figure.of_variants
    ]
    drawn = {}
    for k, (variant, name) in enumerate(asked):
        first, (draw, caption, _) = variant == results.variant, FIGURES[name]
        label = name if first else f"{name}_{variant}"
        update(f"{k} of {len(asked)} figures, now: {label}")
        made = draw(results if first else results.of_variant(variant))
        if made is not None:
            if name.startswith("figure"):
                caption += f" As the paper's Figure {name[6]}."
            save(made, folder / label)
            many = len(results.variants) > 1 and draw is not draw_variants
            drawn[label] = f"{caption} Variant: {variant}." if many else caption
    return drawn


# ---------------------------------------------------------------------- values against alpha


HOLLOW = {"linestyle": "--", "markersize": 4.5, "markerfacecolor": "none"}


def curve(axes: Any, run: Run | None, field: str, **look: Any) -> None:
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
    curve(
        axes,
        run,
        "prediction",
        **{**look, "linestyle": "-", "label": f"{name}, predicted (approximate)"},
    )
    curve(axes, run, "deployed", **{**HOLLOW, **look, "label": f"{name}, deployed (exact)"})


def finest(results: Results) -> tuple[int, float]:
    """The grid with the most atoms and the smallest alpha0."""
    return max(results.atoms), min(results.alpha0)


def against_alpha(
    results: Results,
    problems: Sequence[Key],
    draw: Callable[[Any, Key], None],
    columns: int = 2,
    legend: int = 3,
    label: str = "CVaR",
) -> Any:
    """Values against alpha, a panel for each problem: what `draw` puts there, and the optimum with
    the finest grid.
    """
    figure, axes = problem_panels(problems, columns)
    for ax, problem in zip(axes, problems):
        draw(ax, problem)
        curve(ax, results.get("optimum", problem, *finest(results)), "deployed", **OPTIMUM)
    label_axes(axes, label)
    legend_below(figure, axes, legend)
    return figure


def label_axes(axes: Iterable[Any], label: str) -> None:
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlabel(r"$\alpha$")
        ax.set_ylabel(label)
        if label == PERCENT:  # last, because it ends matplotlib's own choice
            ax.set_ylim(top=max(LEAST_PERCENT, ax.get_ylim()[1]))


def values(results: Results, problems: Sequence[Key] | None = None, columns: int = 2) -> Any:
    """Predicted and deployed values of both planners, and the optimum, with the finest grid."""

    def draw(ax: Any, problem: Key) -> None:
        for k, (method, size) in enumerate((("interpolation", 8.0), ("quantile", 3.5))):
            run = results.get(method, problem, *finest(results))
            draw_predicted_and_deployed(ax, run, planner(method), 1 - k, size)

    chosen = results.shown if problems is None else problems
    return against_alpha(results, chosen, draw, columns) if has_plans(results, chosen) else None


def has_plans(results: Results, problems: Sequence[Key]) -> bool:
    return any(setting.problem in problems for setting in results.settings("quantile"))


def values_all(results: Results) -> Any:
    return values(results, results.problems, 3) if len(results.problems) > 2 else None


def varying(grids: Callable[[Results], Mapping[tuple[int, float], str]], results: Results) -> Any:
    """Predicted and deployed values of CVaRVIQ for several grids, each with its name, and the
    optimum.
    """
    series = grids(results) if has_plans(results, results.shown) else {}

    def draw(ax: Any, problem: Key) -> None:
        for k, (grid, name) in enumerate(series.items()):
            draw_predicted_and_deployed(ax, results.get("quantile", problem, *grid), name, k)

    return against_alpha(results, results.shown, draw, legend=4) if len(series) > 1 else None


def by_atoms(results: Results) -> dict[tuple[int, float], str]:
    return {(n, min(results.alpha0)): f"|Y| = {n}" for n in results.atoms}


def by_alpha0(results: Results) -> dict[tuple[int, float], str]:
    return {(max(results.atoms), low): rf"$\alpha_0$ = {tens(low)}" for low in results.alpha0}


def beyond_optimum(results: Results) -> Any:
    if not results.settings("quantile", "optimum"):
        return None
    most, least = finest(results)
    rows = {rf"$\alpha_0$ = {tens(least)}": by_atoms(results)}
    if len(results.alpha0) > 1:
        rows[f"|Y| = {most}"] = by_alpha0(results)
    every = list(product(rows, results.shown))
    titles = [f"{heading(problem)}, {fixed}" for fixed, problem in every]
    figure, axes = panels(titles, len(results.shown))
    for ax, (fixed, problem) in zip(axes, every):
        for k, (grid, name) in enumerate(rows[fixed].items()):
            look = {"linestyle": look_of(k).line, "label": name, **style(k)}
            excess(ax, results, problem, *grid, **look)
        if ax.get_legend_handles_labels()[1]:
            ax.legend(fontsize=8)
    label_axes(axes, PERCENT)
    return figure


def excess(axes: Any, results: Results, problem: Key, atoms: int, low: float, **look: Any) -> None:
    """How far, in percent, CVaRVIQ's policies lie above the optimum."""
    run, best = (results.get(of, problem, atoms, low) for of in ("quantile", "optimum"))
    if run is not None and best is not None:
        parts = (quotient(zip(run.points, best.points), "deployed") - 1).tolist()
        percents = [100 * part if abs(part) > ROUNDING else 0.0 for part in parts]
        axes.plot([point.alpha for point in run.points], percents, **look)


# ---------------------------------------------------------------------- box plots of quotients


def box_atoms(results: Results) -> Any:
    low = min(results.alpha0, default=0.0)
    groups = [(n, low, str(n)) for n in results.atoms]
    return _boxes(results, groups, "number of atoms |Y|", 0.0)


def box_alpha0(results: Results) -> Any:
    middle = len(results.alpha0) // 2
    groups = [
        (n, low, f"{tens(low)}\n|Y| = {n}" if k == middle else tens(low))
        for n in results.atoms
        for k, low in enumerate(results.alpha0)
    ]
    return _boxes(results, groups, r"$\alpha_0$", TARGET)


def _boxes(
    results: Results, groups: Sequence[tuple[int, float, str]], label: str, least: float
) -> Any:
    """A box for each group, which has atoms, alpha0 and a name, in a panel for each quotient and
    domain.
    """
    kinds = [what for what, (_, methods) in QUOTIENTS.items() if results.settings(*methods)]
    if not kinds:
        return None
    every = list(product(kinds, results.domains))
    titles = [domain.capitalize() if domain != OWN else "own models" for _, domain in every]
    figure, axes = panels(titles, len(results.domains))
    for ax, (what, domain) in zip(axes, every):
        field, methods = QUOTIENTS[what]
        data = [
            quotient(
                results.points(*methods, domain=domain, atoms=n, alpha0=low, least=least), field
            )
            for n, low, _ in groups
        ]
        black = {"color": "black"}
        ax.boxplot(
            data,
            medianprops={**black, "linewidth": 2},
            flierprops={"marker": "x", "markersize": 5},
            whiskerprops=black,
            capprops=black,
        )
        ax.axhline(1.0, color="0.4", linewidth=0.8, linestyle="--")
        ax.set_xticks(range(1, len(groups) + 1), [name for *_, name in groups])
        ax.set_xlabel(label)
        ax.set_ylabel(what)
    return figure


# ---------------------------------------------------------------------- variants and other methods


def draw_variants(results: Results) -> Any:
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
            look = {**HOLLOW, "linestyle": look_of(1 + k).line, **style(k)}
            curve(ax, run, "deployed", label=f"{variant}, deployed", **look)
            excess(below, these, problem, *grid, **look)
        curve(ax, results.get("optimum", problem, *grid), "deployed", **OPTIMUM)
    label_axes(axes[:half], "CVaR")
    label_axes(axes[half:], PERCENT)
    legend_below(figure, axes, 4)
    return figure


def draw_methods(results: Results) -> Any:
    """The deployed values of all methods, where there are others than the paper's."""
    if set(results.methods) <= {"quantile", "interpolation", "optimum"}:
        return None

    def draw(ax: Any, problem: Key) -> None:
        for k, method in enumerate(method for method in results.methods if method != "optimum"):
            run = results.get(method, problem, *finest(results))
            curve(ax, run, "deployed", label=planner(method), **HOLLOW, **style(k))

    return against_alpha(results, results.shown, draw, label="CVaR, deployed")


class Figure(NamedTuple):
    """Who draws it, its caption, and whether each variant that claims are about has one."""

    draw: Drawing
    caption: str
    of_variants: bool = False


#: Every figure by the name of its files; those of the paper have its number.
FIGURES = {
    "figure1_values": Figure(
        values,
        "Predicted and deployed values of both planners, and the optimum, on the largest problem of"
        " each domain.",
        True,
    ),
    "values_all": Figure(values_all, "The same for all problems."),
    "variants": Figure(
        draw_variants,
        "CVaRVIQ in its variants: deployed values beside the optimum, and by how much they exceed"
        " it.",
    ),
    "methods": Figure(draw_methods, "Deployed values of all methods, and the optimum."),
    "figure2_planning_time": Figure(
        planning_time, "Planning time: medians, with bars from the least to the largest.", True
    ),
    "figure3_varying_atoms": Figure(
        partial(varying, by_atoms),
        "Predicted and deployed values of CVaRVIQ with a fixed alpha0 and more atoms.",
        True,
    ),
    "figure4_box_atoms": Figure(
        box_atoms,
        "Values of CVaRVIQ with the smallest alpha0: predicted by deployed, and deployed by the"
        " optimum, all problems of a domain.",
        True,
    ),
    "figure5_varying_alpha0": Figure(
        partial(varying, by_alpha0),
        "Predicted and deployed values of CVaRVIQ with a fixed number of atoms and different"
        " alpha0.",
        True,
    ),
    "figure6_box_alpha0": Figure(
        box_alpha0,
        "Values of CVaRVIQ at the atoms from alpha_target = 0.1 up: predicted by deployed, and"
        " deployed by the optimum.",
    ),
    "beyond_optimum": Figure(
        beyond_optimum,
        "By how much the deployed value of CVaRVIQ's policy exceeds the optimum.",
        True,
    ),
    "figure7_evaluation_time": Figure(
        draw_evaluation_time,
        "Time of ForPECVaR (the queue engine, which is Algorithm 1) at alpha_target = alpha0,"
        " medians with their spread, and the nodes it expands.",
    ),
    "monte_carlo": Figure(
        draw_monte_carlo,
        "Error of Monte Carlo in the time that ForPECVaR takes by the queue engine, at alpha_target"
        " = alpha0; five runs each.",
    ),
}
