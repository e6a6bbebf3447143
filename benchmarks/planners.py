"""The published planners: compile time, the paper's largest Gridworld, quantiles against linear
programs, and a large grid.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial

import tailpath as tp
from benchmarks.measure import best_of, find_grid, gridworld

FIRST_CALL = """
import time
import tailpath as tp
ssp = tp.domains.gridworld("5x5")
begin = time.perf_counter()
tp.solve_cvar_quantile(ssp)
print(time.perf_counter() - begin)
"""


def run(small: bool = False) -> None:
    if not small:
        print(
            f"first call in a process, 5x5: {first_call(compiled=False):.1f} s with an empty cache,"
            f" {first_call(compiled=True):.2f} s after"
        )
    one_gridworld(gridworld(small))
    against_programs(
        ("gridworld:5x5",)
        if small
        else ("gridworld:5x5", "gridworld:8x9", "river:10x3", "river:16x6")
    )
    large(*find_grid(small))


def first_call(compiled: bool) -> float:
    """Seconds of the first solve in a process of its own, with the compiler's cache empty or
    filled.
    """
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2 if compiled else 1):
            found = subprocess.run(
                [sys.executable, "-c", FIRST_CALL],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            )
    return float(found.stdout)


def one_gridworld(problem: str) -> None:
    ssp, atoms = tp.domains.gridworld(problem), tp.log_atoms(1e-3, 25)
    tp.solve_cvar_quantile(ssp, atoms)
    seconds, plan = best_of(lambda: tp.solve_cvar_quantile(ssp, atoms), 10)
    print(
        f"{problem}, 25 atoms, tolerance 1e-3, one core: {1e3 * seconds:.0f} ms, {plan.sweeps}"
        " sweeps (at most 150 ms wanted)"
    )


def against_programs(problems: tuple[str, ...]) -> None:
    print("CVaRVIQ against CVaRVILI, 7 atoms from 1e-3, tolerance 1e-3:")
    for problem in problems:
        ssp, atoms = tp.read(problem), tp.log_atoms(1e-3, 7)
        quick, quantiles = best_of(partial(tp.solve_cvar_quantile, ssp, atoms), 5)
        slow, programs = best_of(partial(tp.solve_cvar_interpolation, ssp, atoms), 1)
        print(
            f"  {problem:<14} {1e3 * quick:6.1f} ms   {slow:6.2f} s for"
            f" {programs.linear_programs:,} programs ({programs.lp_seconds:.2f} s in the solver)  "
            f" {slow / quick:.0f} times; values differ by"
            f" {abs(quantiles.value - programs.value).max():.1e}"
        )


def large(size: str, grid: tp.SSP) -> None:
    atoms = tp.log_atoms(1e-3, 25)
    begin = time.perf_counter()
    plan = tp.solve_cvar_quantile(grid, atoms)
    seconds = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{size} grid, 25 atoms, one core: {seconds:.1f} s, {plan.sweeps} sweeps, residual"
        f" {plan.residual:.1e}, peak {memory:.2f} GB"
    )
