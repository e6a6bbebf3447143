"""The clock, and the problems that several tables share."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import tailpath as tp


def best_of(function: Callable[[], Any], repeats: int = 5) -> tuple[float, Any]:
    """The least wall time of several calls, and the last result."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - begin)
    return min(times), result


def best_on_new(name: str, work: Callable[[tp.SSP], Any], repeats: int = 10) -> tuple[float, Any]:
    """As `best_of`, each call on a model of its own: what is once found out about a model is kept
    with it.
    """
    models = iter([tp.read(name) for _ in range(repeats)])
    return best_of(lambda: work(next(models)), repeats)


def find_grid(small: bool) -> tuple[str, tp.SSP]:
    """The large grid of most tables, or a small one in its place, with its name."""
    size = 20 if small else 300
    return f"{size} x {size}", large_grid(size)


def gridworld(small: bool) -> str:
    """The paper's largest Gridworld, or its smallest."""
    return "5x5" if small else "14x16"


def large_grid(size: int = 300, share: float = 0.03, obstacle_cost: int = 1000) -> tp.SSP:
    """A square Gridworld with random obstacles, the same on every machine; start and goal at the
    bottom corners.
    """
    draw = random.Random(1)
    cells = [["#" if draw.random() < share else "." for _ in range(size)] for _ in range(size)]
    cells[-1][0], cells[-1][-1] = "G", "S"
    return tp.domains.gridworld(
        "\n".join("".join(row) for row in cells), obstacle_cost=obstacle_cost
    )
