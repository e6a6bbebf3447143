"""What the methods CVaRVIQ and CVaRVILI share: their grid of atoms, their options, and what they say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tailpath.errors import TailpathWarning
from tailpath.methods.method import GAMMA, Option, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.policies.atoms import log_atoms
from tailpath.solvers.published.solution import AtomSolution
from tailpath.solvers.published.sweeps import FACTORS, STARTS

ATOMS = Option("atoms", int, 25, "Number of atoms.", "N", least=1)
ALPHA0 = Option("alpha0", float, None, "The first atom.  [default: a tenth of alpha]", "A", mass=True)
TOLERANCE = Option("tolerance", float, 1e-3, "Stop when a sweep moves no value by more.", "E")
OPTIONS = (
    ATOMS,
    ALPHA0,
    TOLERANCE,
    Option("max_sweeps", int, 10_000, "Give up after N sweeps.", "N", least=1),
    Option("start", str, "neutral", "Values start at those of the risk-neutral policy, or at 0 as published.", choices=STARTS),
    GAMMA,
    Option("threads", int, None, "Threads of a planner.  [default: all processors]", "N", least=1),
)
#: The planners as published, beside today's defaults: for CVaRVIQ its own factors F(VaR) / y, for CVaRVILI the linear programs' own vertices.
PUBLISHED = {"start": "zero"}
DOING = "sweep {steps}, residual {reached:.3g}"


def factors(default: str) -> Option:
    return Option("factors", str, default, "How a policy shares the mass at the VaR among outcomes that tie.", choices=tuple(FACTORS))


def plan(
    solve: Callable[..., AtomSolution],
    ssp: SSP,
    alpha: float,
    *,
    progress: Progress,
    atoms: int = 25,
    alpha0: float | None = None,
    **options: Any,
) -> Plan:
    """Run a planner on log-spaced atoms, by default from a tenth of alpha."""
    first = alpha / 10 if alpha0 is None else alpha0
    grid = log_atoms(first if atoms > 1 else 1.0, atoms)
    if alpha0 is not None and atoms > 1 and first >= alpha:
        warnings.warn(
            f"alpha0 = {first:g} is not below alpha = {alpha:g}; planners do badly near their first atom", TailpathWarning, stacklevel=2
        )
    solution = solve(ssp, grid, progress=progress, **options)
    facts = {
        "atoms": atoms,
        "alpha0": float(grid[0]),
        "gamma": solution.gamma,
        "sweeps": solution.sweeps,
        "residual": solution.residual,
        "converged": solution.converged,
        "detours": solution.detours,
        "factor_sum": solution.factor_sum,
        "seconds": None,
        "linear_programs": solution.linear_programs,
        "lp_seconds": solution.lp_seconds,
    }
    rows = {
        "atoms": f"{atoms}, from {grid[0]:g}",
        "sweeps": f"{solution.sweeps}, residual {solution.residual:.3g}" + ("" if solution.converged else ", not converged"),
        "time": "",
    }
    if solution.linear_programs:
        rows["linear programs"] = f"{solution.linear_programs}, {solution.lp_seconds:.3g} s"
    note = f"{atoms} atoms from {grid[0]:g}, {solution.sweeps} sweeps"
    return Plan(solution.policy, solution.cvar, None, note, facts, rows, solution.gamma, solution)
