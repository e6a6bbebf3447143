"""What all figures share: panels, signs that differ in black and white, legends that fit, files
that repeat byte for byte; and the figures of times, expanded nodes and Monte Carlo errors.
"""

from __future__ import annotations

import io
import math
import pathlib
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, cast

import numpy as np

from forpecvar.results import Key, Results, planner, title
from forpecvar.store import ENGINES, Run
from tailpath.formats import write_bytes
from tailpath.pictures import look

PERCENT = "above the optimum (%)"
OPTIMUM = {"linestyle": ":", "color": "black", "linewidth": 2.2, "label": "optimum"}
#: Inches of a panel; and of a legend's entry: its line, and each letter of its name.
WIDTH, HEIGHT = 4.6, 3.3
LINE, LETTER = 0.75, 0.075


def panels(titles: Sequence[str], columns: int = 2) -> tuple[Any, list[Any]]:
    """A figure with one panel per title, row by row; a single one is wider, to have room for its
    legend.
    """
    from matplotlib.figure import Figure

    columns = max(1, min(columns, len(titles)))
    rows = math.ceil(len(titles) / columns)
    width = WIDTH * columns if columns > 1 else 1.35 * WIDTH
    figure = Figure(figsize=(width, HEIGHT * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax, text in zip(axes, titles):
        ax.set_title(text, fontsize=11)
        ax.grid(True, color="0.88", linewidth=0.6)
        ax.set_axisbelow(True)
    for ax in axes[len(titles) :]:
        ax.remove()
    return figure, axes[: len(titles)]


def problem_panels(problems: Sequence[Key], columns: int = 2, rows: int = 1) -> Any:
    """The same with a panel for each problem; for several rows of them, a row for all problems."""
    titles = [heading(problem) for problem in problems] * rows
    return panels(titles, columns if rows == 1 else len(problems))


def heading(problem: Key) -> str:
    """A problem's title as it is written: between two dollar signs it would be mathematics."""
    return title(problem).replace("$", r"\$")


def style(k: int) -> dict[str, Any]:
    return {"marker": look(k).marker, "color": look(k).colour}


def legend_below(figure: Any, axes: Sequence[Any], columns: int) -> None:
    """One legend for all panels, each series once, in as many columns as there is room for."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, name in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(name, handle)
    if not entries:
        return
    widest = LINE + LETTER * max(
        len(name.replace("$", "").replace("\\alpha_0", "a0")) for name in entries
    )
    fitting = max(1, int(figure.get_size_inches()[0] / widest))
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=min(columns, fitting, len(entries)),
        fontsize=8.5,
        frameon=False,
        handlelength=3.5,
    )


def integer_ticks(ax: Any, numbers: Sequence[int]) -> None:
    ax.set_xticks(list(numbers), [str(n) for n in numbers])
    ax.set_xlabel("number of atoms |Y|")
    if len(numbers) == 1:
        ax.set_xlim(numbers[0] - 1, numbers[0] + 1)


def tens(value: float) -> str:
    """A power of ten as mathematics writes it, other numbers as they are."""
    exponent = round(math.log10(value))
    return f"$10^{{{exponent}}}$" if math.isclose(value, 10.0**exponent) else f"{value:g}"


def save(figure: Any, stem: pathlib.Path) -> None:
    """Write PDF and PNG, without a date: equal rows give equal files."""
    pdf, png = io.BytesIO(), io.BytesIO()
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    figure.set_layout_engine(None)  # the layout is found once
    figure.savefig(png, format="png", dpi=150)
    for suffix, content in ((".pdf", pdf), (".png", png)):
        write_bytes(stem.with_suffix(suffix), content.getvalue())


# ---------------------------------------------------------------------- times, nodes and errors

COLOUR_OF = {"quantile": look(0).colour, "interpolation": look(1).colour, "optimum": look(2).colour}
STYLE_OF = {"quantile": "-", "interpolation": "--"}
#: Beyond so many expanded nodes they are counted in thousands.
THOUSANDS = 5000


#: The median, the least and the largest of what a run took, if it is known.
Measured = tuple[float, float, float]
Quantity = Callable[[Run], Measured | None]


def planning_seconds(run: Run) -> Measured | None:
    seconds, answer = run.planning_seconds, run.answer
    if seconds is None:
        return None
    return seconds, answer.plan_least or seconds, answer.plan_most or seconds


def evaluation_seconds(run: Run) -> Measured | None:
    """The time of ForPECVaR, by the queue engine, for the atom alpha_target = alpha0."""
    first = run.points[0]
    times = (first.queue_seconds, first.queue_least, first.queue_most)
    return None if None in times else cast(Measured, times)


def expanded(run: Run) -> Measured | None:
    nodes = run.points[0].queue_expanded
    return None if nodes is None else (float(nodes),) * 3


def against_atoms(
    results: Results, methods: Sequence[str], rows: Sequence[tuple[Quantity, str]], scale: str
) -> Any:
    """Quantities of a run against the number of atoms, a row of panels for each; one series per
    method and alpha0.
    """
    if not results.settings("quantile") or len(results.atoms) < 2:
        return None
    figure, axes = problem_panels(results.shown, len(results.shown), len(rows))
    for ax, ((quantity, label), problem) in zip(axes, product(rows, results.shown)):
        for method in methods:
            for k, low in enumerate(results.alpha0):
                _series(ax, results, method, problem, low, k, quantity)
        if "optimum" in results.methods and quantity is planning_seconds:
            _optimum(ax, results, problem)
        ax.set_yscale(scale)
        if scale == "linear":
            ax.set_ylim(bottom=0)
            if quantity is expanded and ax.get_ylim()[1] > THOUSANDS:
                ax.yaxis.set_major_formatter(lambda nodes, _: f"{nodes / 1000:g}")
                label = f"{label} (thousands)"
        integer_ticks(ax, results.atoms)
        ax.set_ylabel(label)
    legend_below(figure, axes, 3)
    return figure


def _series(
    ax: Any, results: Results, method: str, problem: Key, low: float, k: int, quantity: Quantity
) -> None:
    every = (results.get(method, problem, n, low) for n in results.atoms)
    runs = [(run, value) for run in every if run is not None and (value := quantity(run))]
    if not runs:
        return
    atoms = np.array([run.task.atoms for run, _ in runs])
    middle, least, most = np.array([value for _, value in runs]).T
    marker, colour = look(k).marker, COLOUR_OF[method]
    ax.errorbar(
        atoms,
        middle,
        yerr=[middle - least, most - middle],
        label=rf"{planner(method)}, $\alpha_0$ = {tens(low)}",
        linestyle=STYLE_OF[method],
        marker=marker,
        color=colour,
        markersize=6,
        capsize=2,
        elinewidth=0.8,
    )


def _optimum(ax: Any, results: Results, problem: Key) -> None:
    """The optimum needs no atoms: a level for each alpha0."""
    for k, low in enumerate(results.alpha0):
        settings = results.settings("optimum", problem=problem, alpha0=low)
        times = [results.of("optimum", setting).answer.plan_seconds for setting in settings]
        known = sorted(seconds for seconds in times if seconds is not None)
        if known:
            of = {"color": COLOUR_OF["optimum"], "linestyle": ":", "linewidth": 1 + 0.7 * k}
            label = rf"optimum, $\alpha$ ≥ {tens(low)}"
            ax.axhline(known[len(known) // 2], label=label, **of)


def planning_time(results: Results) -> Any:
    return against_atoms(
        results, ("interpolation", "quantile"), [(planning_seconds, "planning time (s)")], "log"
    )


def draw_evaluation_time(results: Results) -> Any:
    rows: list[tuple[Quantity, str]] = [
        (evaluation_seconds, "evaluation time (s)"),
        (expanded, "expanded nodes"),
    ]
    return against_atoms(results, ("quantile", "interpolation"), rows, "linear")


def draw_monte_carlo(results: Results) -> Any:
    """The error of every Monte Carlo run at alpha_target = alpha0: a group of columns per number of
    atoms, a column per alpha0.
    """
    settings = results.settings("simulation")
    if not settings:
        return None
    shown = list(dict.fromkeys(setting.problem for setting in settings))
    figure, axes = problem_panels(shown)
    for ax, problem in zip(axes, shown):
        atoms = sorted({setting.atoms for setting in settings if setting.problem == problem})
        for k, low in enumerate(results.alpha0):
            shift = 0.22 * (k - (len(results.alpha0) - 1) / 2)
            dots = [
                (atoms.index(setting.atoms) + shift, abs(row.simulated - row.deployed))
                for setting in results.settings("simulation", problem=problem, alpha0=low)
                for row in results.of("simulation", setting).simulations
                if row.alpha == low and row.engine == ENGINES[0]
            ]
            hollow = {**style(k), "markerfacecolor": "none", "linestyle": "none"}
            ax.plot(*np.reshape(dots, (-1, 2)).T, label=rf"$\alpha_0$ = {tens(low)}", **hollow)
        ax.set_yscale("log")
        ax.set_xticks(range(len(atoms)), [str(n) for n in atoms])
        ax.set_xlim(-0.6, len(atoms) - 0.4)
        ax.set_xlabel("number of atoms |Y|")
        ax.set_ylabel("|simulated − exact CVaR|")
    legend_below(figure, axes, 3)
    return figure
