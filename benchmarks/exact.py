"""The exact optimum: against one CVaRVIQ solve in the same run, throughput of the recursion, and a
large grid with its evaluation.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import tailpath as tp
from benchmarks.measure import best_of, best_on_new, find_grid, gridworld, large_grid
from tailpath.analysis.tables import ModelLayout, fill_table
from tailpath.dp.budget_model import EXCESS
from tailpath.solvers.exact.layout import layout_of


def run(small: bool = False) -> None:
    problem = f"gridworld:{gridworld(small)}"
    ssp = tp.read(problem)
    tp.solve_cvar_exact(ssp, 1e-3)
    tp.solve_cvar_quantile(ssp, tp.log_atoms(1e-3, 25))
    exact, best = best_on_new(problem, lambda new: tp.solve_cvar_exact(new, 1e-3))
    again, _ = best_of(lambda: tp.solve_cvar_exact(ssp, 1e-3), 20)
    quantile, plan = best_on_new(
        problem, lambda new: tp.solve_cvar_quantile(new, tp.log_atoms(1e-3, 25))
    )
    costs = tp.evaluate(ssp, plan.policy(1e-3), 1e-3)
    print(
        f"{problem}, alpha from 1e-3 up: optimum {1e3 * exact:.1f} ms, {1e3 * again:.1f} ms where"
        f" V* is known ({best.cvar(1e-3):.3f} at 1e-3);"
    )
    print(
        f"  CVaRVIQ, 25 atoms {1e3 * quantile:.1f} ms (predicts {plan.cvar(1e-3):.3f}, delivers"
        f" {costs.cvar(1e-3):.3f})"
    )
    solves: dict[str, Callable[[tp.SSP], Any]] = {
        "lexicographic": lambda model: tp.solve_cvar_exact(model, 1e-3, lexicographic=True),
        "the mean as well": lambda model: tp.solve(model, "0.5 * mean + 0.5 * cvar(0.001)"),
    }
    for name, solve in solves.items():
        solve(ssp)
        print(f"  with {name} {1e3 * best_on_new(problem, solve)[0]:.1f} ms")

    alpha = 0.01
    other = large_grid(20 if small else 90)  # compiles, or loads what was compiled
    tp.evaluate(other, tp.solve_cvar_exact(other, alpha).policy(alpha), alpha)
    size, grid = find_grid(small)
    begin = time.perf_counter()
    tp.solve_expected(grid)
    neutral = time.perf_counter() - begin
    begin = time.perf_counter()
    best = tp.solve_cvar_exact(grid, alpha)
    seconds = neutral + time.perf_counter() - begin
    policy = best.policy(alpha)
    tp.evaluate(grid, policy, alpha)
    evaluation, costs = best_of(lambda: tp.evaluate(grid, policy, alpha), 2)
    print(
        f"{size} grid, alpha {alpha}: optimum {best.cvar(alpha):.4f} in {seconds:.2f} s,"
        f" {neutral:.2f} s of it for the expected optimum;"
    )
    print(
        f"  evaluating its policy {evaluation:.2f} s ({costs.expanded:,} pairs), the values differ"
        f" by {abs(costs.cvar(alpha) - best.cvar(alpha)):.1e}"
    )
    layout = layout_of(grid)
    print(f"  sweep: {throughput(layout) / 1e6:.0f} million outcome updates per second")
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def throughput(layout: ModelLayout, levels: int = 100) -> float:
    """Outcome updates per second over the first `levels` budgets, with every state taking part."""
    everywhere = replace(
        layout,
        nodes=layout.nodes._replace(cost_from_start=np.zeros_like(layout.nodes.cost_from_start)),
    )

    def once() -> None:
        fill_table(everywhere, everywhere.objective(EXCESS, limit=float(levels)))

    once()
    return len(layout.target) * levels / best_of(once, 5)[0]
