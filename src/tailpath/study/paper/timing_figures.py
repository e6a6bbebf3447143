"""Figures of times, expanded nodes and Monte Carlo errors, from stored runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tailpath.study.paper.canvas import (
    COLOURS,
    MARKERS,
    integer_ticks,
    legend_below,
    problem_panels,
    style,
    tens,
)
from tailpath.study.results import Key, Results, planner
from tailpath.study.store import Run

COLOUR_OF = {"quantile": COLOURS[0], "interpolation": COLOURS[1], "optimum": COLOURS[2]}
STYLE_OF = {"quantile": "-", "interpolation": "--", "optimum": ":"}
#: Beyond so many expanded nodes they are counted in thousands.
THOUSANDS = 5000


class Measured(NamedTuple):
    """A number with how far it spreads."""

    value: float
    least: float
    most: float


Quantity = Callable[[Run], Measured | None]


def planning_seconds(run: Run) -> Measured | None:
    answer = run.answer
    if (
        answer.plan_seconds is None or run.task.inner == "greedy"
    ):  # without linear programs it is not the planner's time
        return None
    return Measured(
        answer.plan_seconds,
        answer.plan_least or answer.plan_seconds,
        answer.plan_most or answer.plan_seconds,
    )


def evaluation_milliseconds(run: Run) -> Measured:
    """The time of ForPECVaR for the atom alpha_target = alpha0."""
    first = run.points[0]
    return Measured(1000 * first.seconds, 1000 * first.least, 1000 * first.most)


def expanded(run: Run) -> Measured:
    nodes = float(run.points[0].expanded)
    return Measured(nodes, nodes, nodes)


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
    atoms = [run.task.atoms for run, _ in runs]
    middle, least, most = np.array([value for _, value in runs]).T
    name = rf"{planner(method)}, $\alpha_0$ = {tens(low)}"
    look = {"marker": MARKERS[k % len(MARKERS)], "color": COLOUR_OF.get(method, COLOURS[3])}
    line = {"linestyle": STYLE_OF.get(method, "-."), "label": name, "markersize": 6}
    spread = [middle - least, most - middle]
    ax.errorbar(atoms, middle, yerr=spread, capsize=2, elinewidth=0.8, **look, **line)
    hollow = [
        (run.task.atoms, value.value)
        for run, value in runs
        if run.answer.estimated and quantity is planning_seconds
    ]
    if hollow:
        empty = {"color": look["color"], "markerfacecolor": "white"}
        ax.plot(*zip(*hollow), marker=look["marker"], linestyle="none", zorder=3, **empty)
        ax.plot([], [], "o", label="hollow: estimated", **empty)


def _optimum(ax: Any, results: Results, problem: Key) -> None:
    """The optimum needs no atoms: a level for each alpha0."""
    for k, low in enumerate(results.alpha0):
        times = [
            run.answer.plan_seconds
            for n in results.atoms
            if (run := results.get("optimum", problem, n, low)) is not None
            and run.answer.plan_seconds is not None
        ]
        if times:
            level = sorted(times)[len(times) // 2]
            look = {"color": COLOUR_OF["optimum"], "linestyle": ":", "linewidth": 1 + 0.7 * k}
            ax.axhline(level, label=rf"optimum, $\alpha$ ≥ {tens(low)}", **look)


def planning_time(results: Results) -> Any:
    return against_atoms(
        results, ("interpolation", "quantile"), [(planning_seconds, "planning time (s)")], "log"
    )


def draw_evaluation_time(results: Results) -> Any:
    rows: list[tuple[Quantity, str]] = [
        (evaluation_milliseconds, "evaluation time (ms)"),
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
                if row.alpha == low
            ]
            look = {**style(k), "markerfacecolor": "none", "linestyle": "none"}
            ax.plot(*np.reshape(dots, (-1, 2)).T, label=rf"$\alpha_0$ = {tens(low)}", **look)
        ax.set_yscale("log")
        ax.set_xticks(range(len(atoms)), [str(n) for n in atoms])
        ax.set_xlim(-0.6, len(atoms) - 0.4)
        ax.set_xlabel("number of atoms |Y|")
        ax.set_ylabel("|simulated − exact CVaR|")
    legend_below(figure, axes, 3)
    return figure
