"""Building a large model from arrays, and its least expected cost with verified bounds."""

from __future__ import annotations

import resource

import numpy as np

import tailpath as tp
from benchmarks.measure import best_of, best_on_new, find_grid, large_grid


def run(small: bool = False) -> None:
    n = 1_000 if small else 1_000_000
    draw = np.random.default_rng(0)
    matrices = []
    from scipy.sparse import csr_array

    for _ in range(4):
        column = np.sort(draw.integers(0, n, (n, 4), dtype=np.int32), axis=1)
        column[-1] = n - 1
        matrices.append(
            csr_array(
                (np.full(4 * n, 0.25), column.ravel(), np.arange(0, 4 * n + 1, 4, dtype=np.int32)),
                shape=(n, n),
            )
        )
    cost = np.ones((n, 4))
    cost[-1] = 0
    seconds, ssp = best_of(
        lambda: tp.SSP.from_arrays(matrices, costs=cost, goals=[n - 1], start=0), 1
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"from_arrays, {ssp.n_states:,} states, {ssp.n_outcomes:,} outcomes: {seconds:.2f} s; peak"
        f" memory with the input {peak:.2f} GB"
    )
    for name in ("gridworld:14x16", "river:30x10"):
        seconds, solution = best_on_new(name, tp.solve_expected)
        low, high = solution.bounds
        print(
            f"solve_expected {name}: {1e3 * seconds:.1f} ms, relative width of the bounds"
            f" {(high - low) / high:.1e}"
        )
    tp.solve_expected(large_grid(20 if small else 90))
    size, grid = find_grid(small)
    seconds, solution = best_of(lambda: tp.solve_expected(grid), 1)
    low, high = solution.bounds
    print(
        f"solve_expected {size} grid: {seconds:.2f} s, relative width of the bounds"
        f" {(high - low) / high:.1e}"
    )
