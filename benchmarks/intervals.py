"""Models with intervals: the greedy step against the plain backup, optima against the worst nature,
and Storm on the same models.
"""

from __future__ import annotations

import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import tailpath as tp
from benchmarks.measure import find_grid, gridworld
from benchmarks.peers import installed
from tailpath.analysis.robust import Robust, robust
from tailpath.dp.backup import ADVERSARIAL, Slack, extreme_value, row_value
from tailpath.kernels.jit import kernel

#: How far slips may be off, relatively.
MARGIN = 0.2
LEAST = 'R{"cost"}min=? [F "goal"]'


def run(small: bool = False) -> None:
    steps(small)
    problem = f"gridworld:{gridworld(small)}"
    optima(problem, 3 if small else 10)
    large(small)
    storm = installed("stormpy")
    if storm:
        against_storm(storm, [problem, "river:6x4" if small else "river:30x10"], small)


def processor(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor time of several calls, which other work on the machine disturbs least,
    and the last result.
    """
    times, result = [], None
    for _ in range(repeats):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
    return min(times), result


# ---------------------------------------------------------------------- the inner step


@kernel
def plain_rows(row_start: Any, target: Any, probability: Any, value: Any, out: Any) -> None:
    for row in range(len(row_start) - 1):
        out[row] = row_value(row_start, target, probability, row, 0, value)


@kernel
def extreme_rows(
    row_start: Any, target: Any, low: Any, slack: Any, nature: int, value: Any, out: Any
) -> None:
    for row in range(len(row_start) - 1):
        out[row] = extreme_value(row_start, target, low, slack, nature, row, 0, value)[0]


def steps(small: bool, states: int = 20_000) -> None:
    """Sweeps over the rows of a random model, of k outcomes each, while values change a little from
    sweep to sweep, as they do.
    """
    draw, states = np.random.default_rng(1), 200 if small else states
    rows = 4 * states
    for k in (2, 3, 4, 8):
        target = draw.integers(0, states, rows * k).astype(np.int32)
        p = draw.dirichlet(np.ones(k), rows).ravel()
        low, width = p * (1 - MARGIN), 2 * MARGIN * p
        row_start, out, value = np.arange(0, rows * k + 1, k), np.empty(rows), draw.random(states)
        slack = Slack(width, np.full(rows, MARGIN))
        moved = [value + 1e-3 * i * draw.random(states) for i in range(10)]

        one = processor(partial(swept, plain_rows, (row_start, target, p), moved, out), 7)[0]
        other = processor(
            partial(swept, extreme_rows, (row_start, target, low, slack, ADVERSARIAL), moved, out),
            7,
        )[0]
        print(
            f"rows of {k} outcomes: plain {1e9 * one / rows / k / 10:.2f} ns per outcome, extreme"
            f" {other / one:.1f} times as long"
        )


def swept(sweep: Any, rows: tuple[Any, ...], values: list[Any], out: Any) -> None:
    for each in values:
        sweep(*rows, each, out)


# ---------------------------------------------------------------------- optima


def around(name: str) -> tp.IntervalSSP:
    return tp.IntervalSSP.around(tp.read(name), MARGIN)


def whole(model: tp.IntervalSSP, alpha: float) -> Robust:
    """The table of whole budgets, expected costs included."""
    problem = robust(model, ADVERSARIAL)
    _ = problem.excess(alpha).first
    return problem


def optima(problem: str, repeats: int, alpha: float = 1e-3) -> None:
    """Every alpha by whole budgets, and real budgets at three of them, each time on a new model."""
    models = iter([around(problem) for _ in range(2 * repeats + 2)])
    whole(next(models), alpha)
    seconds, _ = processor(lambda: whole(next(models), alpha), repeats)
    print(
        f"{problem}, slips +-20 %: every alpha >= {alpha:g} by whole budgets {1e3 * seconds:.1f} ms"
    )

    def real() -> Any:
        best = tp.solve_cvar_exact(next(models), alpha)
        best.curve([alpha, 0.01, 0.1])
        return best

    real()
    seconds, best = processor(real, repeats)
    width = max(1 - low / high for low, high in map(best.bounds, (alpha, 0.01, 0.1)))
    print(
        f"  by real budgets at 0.001, 0.01 and 0.1: {1e3 * seconds:.1f} ms, width of the bounds"
        f" {width:.0e}"
    )


def large(small: bool, alpha: float = 0.01) -> None:
    size, ssp = find_grid(small)
    model = tp.IntervalSSP.around(ssp, MARGIN)
    wall, begin = time.perf_counter(), time.process_time()
    best = tp.solve_cvar_exact(model, alpha)
    spent = time.process_time() - begin
    low, high = best.bounds(alpha)
    print(
        f"{size} grid, slips +-20 %, alpha {alpha}: {best.cvar(alpha):.6f}, width of the bounds"
        f" {1 - low / high:.0e},",
        end=" ",
    )
    print(
        f"{spent:.1f} s ({time.perf_counter() - wall:.1f} by the clock), expected costs included",
        flush=True,
    )


# ---------------------------------------------------------------------- Storm


def against_storm(storm: Any, problems: list[str], small: bool) -> None:
    """Expected costs against the worst nature, and with the best; Storm has its model built, and
    its own precision of 1e-6.
    """
    size, grid = find_grid(small)
    models = {name: around(name) for name in problems} | {size: tp.IntervalSSP.around(grid, MARGIN)}
    modes = storm.UncertaintyResolutionMode
    for name, model in models.items():
        theirs = built(storm, model)
        for nature, mode in (("adversarial", modes.ROBUST), ("cooperative", modes.COOPERATIVE)):
            fresh = iter([tp.IntervalSSP(model.inside, model.low, model.high) for _ in range(3)])
            ours, found = processor(partial(expected, fresh, nature), 3)
            seconds, value = processor(partial(ask, storm, theirs, LEAST, mode), 3)
            off = abs(value / found.cost() - 1)
            print(
                f"{name}, {nature}: {1e3 * ours:.1f} ms with proved bounds, Storm"
                f" {1e3 * seconds:.1f} ms, {seconds / ours:.1f} times as long; off by {off:.0e}",
                flush=True,
            )


def expected(models: Iterator[tp.IntervalSSP], nature: str) -> Any:
    return tp.solve_expected(next(models), nature=nature)


def built(storm: Any, model: tp.IntervalSSP) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.umb"
        tp.write(model, path)
        return storm.build_model_from_umb(str(path))


def ask(storm: Any, model: Any, formula: str, mode: Any) -> float:
    found = storm.model_checking(
        model,
        storm.parse_properties(formula)[0],
        only_initial_states=True,
        uncertainty_resolution_mode=mode,
    )
    return float(found.get_value(model.initial_states[0]))
