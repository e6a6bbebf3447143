"""The risk-neutral optimum on what is not a grid, a million states each: time, width of the proved
bounds, and how it was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import tailpath as tp

N = 1_000_000


def run(small: bool = False) -> None:
    n = 3_000 if small else N
    shapes: dict[str, Callable[[int], tp.SSP]] = {
        "a sure way of n steps": way,
        "layers of 1000 states": layers,
        "components of 10 states": lambda n: components(n, 10),
        "components of 1000 states": lambda n: components(n, 1000),
        "random targets": random_targets,
        "a walk that slips back with 0.4": lambda n: walk(n, 0.4),
    }
    tp.solve_expected(layers(min(n, 10_000)))  # compiles, or loads what was compiled
    for name, build in shapes.items():
        ssp = build(n)
        processor, wall = time.process_time(), time.perf_counter()
        found = tp.solve_expected(ssp)
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        low, high = found.bounds
        print(
            f"{name}: {ssp.n_states:,} states, {ssp.n_outcomes:,} outcomes, {processor:.1f} s"
            f" ({wall:.1f} s by the clock), relative width {(high - low) / high:.0e},"
            f" {found.method}",
            flush=True,
        )


def model(
    targets: NDArray[np.int64],
    probability: NDArray[np.float64],
    cost: NDArray[np.float64],
    choices: int,
) -> tp.SSP:
    """States 0 .. n - 1 with equally many choices, one row of targets and probabilities each, and
    the goal n; a cost per row.
    """
    rows, width = targets.shape
    n = rows // choices
    return tp.SSP(
        state_choices=np.append(np.arange(n + 1) * choices, rows),
        choice_outcomes=np.arange(rows + 1) * width,
        outcome_target=targets.reshape(-1).astype(np.int32),
        outcome_probability=probability.reshape(-1),
        outcome_cost=np.repeat(cost, width),
        choice_action=np.tile(np.arange(choices, dtype=np.int32), n),
        is_goal=np.append(np.zeros(n, dtype=np.bool_), True),
        start_index=0,
        states=range(n + 1),
        actions=[str(k) for k in range(choices)],
    )


def spread(draw: np.random.Generator, rows: int, width: int) -> NDArray[np.float64]:
    """Random probabilities, in 64ths so that they sum to exactly 1."""
    cuts = np.sort(draw.integers(1, 65 - width, size=(rows, width - 1)), axis=1) + np.arange(
        width - 1
    )
    return np.diff(cuts, axis=1, prepend=0, append=64) / 64


def way(n: int) -> tp.SSP:
    return model(np.arange(1, n + 1)[:, None], np.ones((n, 1)), np.ones(n), 1)


def walk(n: int, back: float) -> tp.SSP:
    targets = np.column_stack([np.arange(1, n + 1), np.maximum(np.arange(n) - 1, 0)])
    return model(targets, np.tile([1 - back, back], (n, 1)), np.ones(n), 1)


def layers(n: int, size: int = 1000, choices: int = 3, width: int = 3) -> tp.SSP:
    """From each layer to three states of the next; the last one goes to the goal."""
    draw = np.random.default_rng(1)
    following = np.repeat((np.arange(n) // size + 1) * size, choices)
    targets = np.minimum(following[:, None] + distinct(draw, len(following), width, size), n)
    targets[following >= n] = n
    return model(
        targets,
        spread(draw, len(targets), width),
        draw.integers(1, 10, len(targets)).astype(np.float64),
        choices,
    )


def components(n: int, size: int) -> tp.SSP:
    """Circles with a chord: each state to two others of its component, or on to the
    next component.
    """
    draw = np.random.default_rng(1)
    home = np.repeat(np.arange(n) // size * size, 2)
    inside = home[:, None] + distinct(draw, len(home), 2, size)
    onwards = np.minimum(home + size, n)
    targets = np.column_stack([inside, onwards])
    return model(
        targets,
        spread(draw, len(targets), 3),
        draw.integers(1, 10, len(targets)).astype(np.float64),
        2,
    )


def random_targets(n: int, choices: int = 4, width: int = 4) -> tp.SSP:
    """Targets anywhere; one state in a thousand can go to the goal."""
    draw = np.random.default_rng(1)
    targets = distinct(draw, n * choices, width, n)
    targets[:: 1000 * choices, 0] = n
    return model(
        targets,
        spread(draw, len(targets), width),
        draw.integers(1, 10, len(targets)).astype(np.float64),
        choices,
    )


def distinct(draw: np.random.Generator, rows: int, width: int, among: int) -> NDArray[np.int64]:
    """Different numbers below `among` in each row: one at random and others at random distances
    that add up to less than a cycle.
    """
    steps = draw.integers(1, max(among // width, 2), size=(rows, width - 1)).cumsum(axis=1)
    return np.asarray(
        (
            draw.integers(0, among, size=(rows, 1))
            + np.column_stack([np.zeros(rows, dtype=np.int64), steps])
        )
        % among
    )
