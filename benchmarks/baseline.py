"""Daily tasks against a stored baseline, as ratios: `python -m benchmarks.baseline [--store]`.

A machine's speed cancels out: every time is divided by that of a yardstick, a plain compiled loop
of this package over the same arrays every time, measured in turns with the task. The ratios of
`baseline.json` were measured on a quiet machine. A task that takes more than `ALLOWED` times its
stored ratio fails; `--store` writes the ratios found as the new baseline.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np

import tailpath as tp
from tailpath.kernels.jit import Array, kernel

STORED = pathlib.Path(__file__).with_name("baseline.json")
#: How much slower than its baseline a task may be; ratios vary by a fifth between machines.
ALLOWED = 1.5
#: How often each task is measured, in turns with the yardstick; the least time counts.
TURNS = 30


def tasks() -> dict[str, Callable[[], Any]]:
    """What is measured, by name; everything that can be known before is."""
    grid, river = tp.read("gridworld:14x16"), tp.read("river:30x10")
    policy = tp.solve_expected(grid).policy
    atoms = tp.solve_cvar_quantile(grid, tp.log_atoms(1e-3, 25)).policy(0.01)
    budget = tp.solve_cvar_exact(grid, 0.01).policy(0.01)
    rows = [
        ("s", "safe", "g", 1, 22),
        ("s", "risky", "g", 0.6, 17),
        ("s", "risky", "g", 0.2, 24),
        ("s", "risky", "g", 0.2, 33),
    ]
    lotteries = tp.SSP.from_outcomes(rows, "s", ["g"])
    around = tp.IntervalSSP.around(river, 0.2)
    deadline = tp.solve(grid, tp.VaR(0.001)).value
    return {
        "evaluate a Markov policy": lambda: tp.evaluate(grid, policy, 0.01),
        "evaluate 25 atoms": lambda: tp.evaluate(grid, atoms, 0.01),
        "evaluate a budget policy": lambda: tp.evaluate(grid, budget, 0.01),
        "expected cost, new model": lambda: tp.solve_expected(tp.read("gridworld:14x16")),
        "CVaR optimum": lambda: tp.solve_cvar_exact(grid, 0.01),
        "deadlines": lambda: tp.solve_on_time(grid, deadline),
        "a limit": lambda: tp.solve(lotteries, tp.Mean(), [tp.CVaR(0.2) <= 29.86]),
        "robust CVaR optimum": lambda: tp.solve_cvar_exact(around, 0.01),
    }


@kernel
def open_sums(
    node: Array, overshoot: Array, mass: Array, value: Array, lower: Array, upper: Array
) -> tuple[float, ...]:
    """Compensated sums (Neumaier) over masses: the loop that the ratios were stored with."""
    total, correction = np.empty(5), np.empty(5)
    part = np.empty(5)
    for k in range(5):
        total[k] = correction[k] = 0.0
    for begin in range(0, len(node), 16):
        for k in range(5):
            part[k] = 0.0
        for i in range(begin, min(begin + 16, len(node))):
            x, p = node[i], mass[i]
            over = overshoot[i]
            inside = x < len(value)
            high = upper[x] if inside else 0.0
            part[0] += p
            part[1] += p * max(over + (value[x] if inside else 0.0), 0.0)
            part[2] += p * max(over + (lower[x] if inside else 0.0), 0.0)
            part[3] += p * max(over + high, 0.0)
            part[4] += p * (abs(over) + (high if high < np.inf else 0.0))
        for k in range(5):
            after = total[k] + part[k]
            # Exact, for the larger of the two less what it became.
            small, large = min(total[k], part[k]), max(total[k], part[k])
            correction[k] += (large - after) + small if after < np.inf else 0.0
            total[k] = after
    for k in range(5):
        total[k] += correction[k]
    return total[0], total[1], total[2], total[3], total[4]


def yardstick() -> Callable[[], Any]:
    """About a millisecond of additions and comparisons."""
    rng = np.random.default_rng(1)
    node, mass, ahead = rng.integers(0, 1000, 100_000), rng.random(100_000), rng.random(100_000)
    values = rng.random(1000)
    return lambda: open_sums(node, ahead, mass, values, values, values)


def ratios() -> dict[str, float]:
    """The least time of every task over the least time of the yardstick beside it."""
    unit, found = yardstick(), {}
    for name, task in tasks().items():
        task(), unit()  # compiled now
        times: list[tuple[float, float]] = []
        for _ in range(TURNS):
            begin = thread_time()
            task()
            middle = thread_time()
            unit()
            times.append((middle - begin, thread_time() - middle))
        found[name] = min(first for first, _ in times) / min(second for _, second in times)
    return found


def compare(found: dict[str, float], stored: dict[str, float]) -> list[str]:
    """Print both; the names of the tasks that are too slow."""
    for name, ratio in found.items():
        change = f"{ratio / stored[name]:.2f} times" if name in stored else "new"
        print(f"{name:30}{ratio:10.3f}{stored.get(name, float('nan')):10.3f}   {change}")
    return [name for name, ratio in found.items() if ratio > ALLOWED * stored.get(name, ratio)]


def run(small: bool = False) -> None:
    """The table of `python -m benchmarks`."""
    del small
    compare(ratios(), json.loads(STORED.read_text()))


def main(words: list[str]) -> None:
    found = ratios()
    slow = compare(found, json.loads(STORED.read_text()) if STORED.exists() else {})
    if "--store" in words:
        rounded = {name: round(ratio, 3) for name, ratio in found.items()}
        STORED.write_text(json.dumps(rounded, indent=2) + "\n")
    elif slow:
        sys.exit(f"slower than the baseline by more than {ALLOWED} times: {', '.join(slow)}")


if __name__ == "__main__":
    main(sys.argv[1:])
