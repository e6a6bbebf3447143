"""Other authors' planners as methods: CVaRVIQ and CVaRVILI, on one grid of atoms; and nested
CVaR, which is solved for one alpha at a time, on demand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from tailpath.errors import TailpathWarning
from tailpath.methods.method import GAMMA, Method, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Option, Progress
from tailpath.policies.atoms import log_atoms
from tailpath.policies.policy import Policy
from tailpath.solvers.published.planners import solve_cvar_interpolation, solve_cvar_quantile
from tailpath.solvers.published.solution import AtomSolution
from tailpath.solvers.published.sweeps import FACTORS, STARTS
from tailpath.solvers.related import solve_nested_cvar
from tailpath.texts import count

ATOMS = Option("atoms", int, 25, "Number of atoms.", "N", least=1)
ALPHA0 = Option(
    "alpha0", float, None, "The first atom.  [default: a tenth of alpha]", "A", mass=True
)
START = "Start from the values of the risk-neutral policy, or from 0 as published."
TOLERANCE = Option(
    "tolerance", float, 1e-3, "Stop when a sweep moves no value by more than E.", "E"
)
ADAPT = "Add atoms to a state where interpolation makes a value wrong by more than E."
TIES = "How a policy splits the mass at the VaR among outcomes that tie."
INNER = "Inner problems: linear programs by HiGHS, or their closed form."
OPTIONS = (
    ATOMS,
    ALPHA0,
    Option("adapt", float, None, ADAPT, "E"),
    TOLERANCE,
    Option("max_sweeps", int, 10_000, "Give up after N sweeps.", "N", least=1),
    Option("values_from", str, "neutral", START, choices=STARTS),
    GAMMA,
)
#: The planners as published: their operators and factors are the defaults here, their values start
#: at 0.
PUBLISHED = {"values_from": "zero"}
#: Attributes of a solution that go into the record for programs.
FACTS = ("gamma", "sweeps", "residual", "converged", "detours", "factor_sum")
DOING = "sweep {steps}, residual {reached:.3g}"


def plan(
    solve: Callable[..., AtomSolution],
    ssp: SSP,
    alpha: float,
    *,
    progress: Progress,
    atoms: int = 25,
    alpha0: float | None = None,
    values_from: str = "neutral",
    **options: Any,
) -> Plan:
    """Run a planner on log-spaced atoms, by default from a tenth of alpha."""
    first = alpha / 10 if alpha0 is None else alpha0
    grid = log_atoms(first if atoms > 1 else 1.0, atoms)
    if alpha0 is not None and atoms > 1 and first >= alpha:
        warnings.warn(
            f"alpha0 = {first:g} is not below alpha = {alpha:g}; planners do poorly near their"
            " first atom",
            TailpathWarning,
            stacklevel=2,
        )
    solution = solve(ssp, grid, start=values_from, progress=progress, **options)
    facts = {
        "atoms": len(solution.atoms),
        "alpha0": float(solution.atoms[0]),
        **{name: getattr(solution, name) for name in FACTS},
        "seconds": None,
        "linear_programs": solution.linear_programs,
        "lp_seconds": solution.lp_seconds,
    }
    number, which = f"{atoms}", f"from {grid[0]:g}"
    if solution.grids is not None:
        number, which = f"{len(solution.atoms)}", "in all, by state"
    ended = "" if solution.converged else ", not converged"
    rows = {
        "atoms": f"{number}{',' if which.startswith('from') else ''} {which}",
        "sweeps": f"{solution.sweeps}, residual {solution.residual:.3g}{ended}",
        "time": "",
    }
    if solution.linear_programs:
        rows["linear programs"] = f"{solution.linear_programs}, {solution.lp_seconds:.3g} s"
    note = f"{number} atoms {which}, {count(solution.sweeps, 'sweep')}"
    return Plan(solution.policy, solution.cvar, None, note, facts, rows, solution.gamma, solution)


QUANTILE = Method(
    name="quantile",
    title="CVaRVIQ",
    summary="CVaR value iteration by quantiles (Stanko and Macek 2019)",
    plan=partial(plan, solve_cvar_quantile),
    options=(*OPTIONS, Option("factors", str, "shared", TIES, choices=tuple(FACTORS))),
    variants={"published": PUBLISHED, "printed": {**PUBLISHED, "factors": "printed"}},
    doing=DOING,
)
INTERPOLATION = Method(
    name="interpolation",
    title="CVaRVILI",
    summary="CVaR value iteration by linear interpolation (Chow et al. 2015)",
    plan=partial(plan, solve_cvar_interpolation),
    options=(
        *OPTIONS,
        Option("inner", str, "lp", INNER, choices=("lp", "greedy")),
        Option("factors", str, "vertex", TIES, choices=tuple(FACTORS)),
    ),
    variants={"published": PUBLISHED},
    doing=DOING,
)


def _nested(ssp: SSP, alpha: float, *, progress: Progress) -> Plan:
    """It predicts its own measure, which is not the CVaR of the total cost."""

    @cache
    def solved(a: float) -> tuple[float, Policy]:
        value, policy, _ = solve_nested_cvar(ssp, a, progress)
        return float(value[ssp.start_index]), policy

    solved(alpha)  # refuses now what it cannot solve
    note = "CVaR taken anew at every step"
    return Plan(lambda a: solved(a)[1], lambda a: solved(a)[0], note=note)


NESTED = Method(
    name="nested",
    title="nested CVaR",
    summary="nested CVaR, for contrast: the tail is taken again at every step",
    plan=_nested,
    doing="sweep {steps}, relative change {reached:.3g}",
)
