"""CVaRVIQ and CVaRVILI as methods, on one grid of atoms."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tailpath.errors import OptionError, TailpathWarning
from tailpath.methods.method import GAMMA, Method, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Option, Progress
from tailpath.policies.atoms import log_atoms
from tailpath.solvers.published.augmented import FACTORS, STARTS
from tailpath.solvers.published.interpolation import solve_cvar_interpolation
from tailpath.solvers.published.quantile import solve_cvar_quantile
from tailpath.solvers.published.solution import AtomSolution
from tailpath.texts import count, name

ATOMS = Option("atoms", int, 25, "Number of atoms.", "N", least=1)
ALPHA0 = Option(
    "alpha0", float, None, "The first atom.  [default: a tenth of alpha]", "A", mass=True
)
OWN_ATOMS = Option(
    "own_atoms",
    dict,
    None,
    "Atoms per state, from a file in TOML or JSON (docs/planners.md).",
    "FILE",
)
TOLERANCE = Option(
    "tolerance", float, 1e-3, "Stop when a sweep moves no value by more than E.", "E"
)
OPTIONS = (
    ATOMS,
    ALPHA0,
    OWN_ATOMS,
    TOLERANCE,
    Option("max_sweeps", int, 10_000, "Give up after N sweeps.", "N", least=1),
    Option(
        "values_from",
        str,
        "neutral",
        "Values start at those of the risk-neutral policy, or at 0 as published.",
        choices=STARTS,
    ),
    GAMMA,
    Option("threads", int, None, "Threads of a planner.  [default: all processors]", "N", least=1),
)
#: The planners as published: their operators and factors are the defaults here, their values start
#: at 0.
PUBLISHED = {"values_from": "zero"}
#: What a solution tells programs.
FACTS = ("gamma", "sweeps", "residual", "converged", "detours", "factor_sum")
DOING = "sweep {steps}, residual {reached:.3g}"


def _factors(default: str) -> Option:
    return Option(
        "factors",
        str,
        default,
        "How a policy shares the mass at the VaR among outcomes that tie.",
        choices=tuple(FACTORS),
    )


def plan(
    solve: Callable[..., AtomSolution],
    ssp: SSP,
    alpha: float,
    *,
    progress: Progress,
    atoms: int = 25,
    alpha0: float | None = None,
    own_atoms: Mapping[str, Any] | None = None,
    values_from: str = "neutral",
    **options: Any,
) -> Plan:
    """Run a planner on log-spaced atoms, by default from a tenth of alpha; with `own_atoms` only in
    states that are not named there.
    """
    first = alpha / 10 if alpha0 is None else alpha0
    grid = log_atoms(first if atoms > 1 else 1.0, atoms)
    if alpha0 is not None and atoms > 1 and first >= alpha:
        warnings.warn(
            f"alpha0 = {first:g} is not below alpha = {alpha:g}; planners do badly near their first"
            " atom",
            TailpathWarning,
            stacklevel=2,
        )
    chosen = grid if own_atoms is None else atoms_by_state(ssp, own_atoms, grid)
    solution = solve(ssp, chosen, start=values_from, progress=progress, **options)
    which = (
        f"{atoms} atoms from {grid[0]:g}"
        if own_atoms is None
        else f"{len(solution.atoms)} atoms in all, by state"
    )
    facts = {
        "atoms": len(solution.atoms),
        "alpha0": float(solution.atoms[0]),
        **{name: getattr(solution, name) for name in FACTS},
        "seconds": None,
        "linear_programs": solution.linear_programs,
        "lp_seconds": solution.lp_seconds,
    }
    rows = {
        "atoms": which.replace(" atoms", "," if own_atoms is None else "", 1),
        "sweeps": (
            f"{solution.sweeps}, residual {solution.residual:.3g}"
            + ("" if solution.converged else ", not converged")
        ),
        "time": "",
    }
    if solution.linear_programs:
        rows["linear programs"] = f"{solution.linear_programs}, {solution.lp_seconds:.3g} s"
    note = f"{which}, {count(solution.sweeps, 'sweep')}"
    return Plan(solution.policy, solution.cvar, None, note, facts, rows, solution.gamma, solution)


def atoms_by_state(ssp: SSP, table: Mapping[str, Any], usual: Any) -> Callable[[Any], Any]:
    """From a table `{"atoms": those of all states, "states": {text: those of a state}}`, states as
    they are written; `usual` is for all others.
    """
    for key in table:
        if key not in ("atoms", "states"):
            raise OptionError(f"own atoms: unknown key {key!r}; there are atoms and states")
    named = table.get("states", {})
    if not isinstance(named, Mapping):
        raise OptionError("own atoms: states must be a table of states and their atoms")
    known = {name(state): state for state in ssp.states}
    for text in named:
        if text not in known:
            raise OptionError(
                f"own atoms: the model has no state {text!r}; its start is {name(ssp.start)}"
            )
    found = {known[text]: _listed(given, f"state {text}") for text, given in named.items()}
    others = _listed(table["atoms"], "atoms") if "atoms" in table else usual
    return lambda state: found.get(state, others)


def _listed(given: Any, what: str) -> Any:
    """A list of atoms, or log-spaced ones from `{alpha0, atoms}`."""
    if isinstance(given, list):
        return given
    if (
        isinstance(given, Mapping)
        and set(given) == {"alpha0", "atoms"}
        and all(isinstance(value, (int, float)) for value in given.values())
    ):
        return log_atoms(given["alpha0"], given["atoms"])
    raise OptionError(
        f"own atoms: {what} must be a list of atoms, or alpha0 and atoms for log-spaced ones, not"
        f" {given!r}"
    )


INNER = Option(
    "inner",
    str,
    "lp",
    "Inner problems: linear programs by HiGHS, or their closed form.",
    choices=("lp", "greedy"),
)
QUANTILE = Method(
    name="quantile",
    title="CVaRVIQ",
    summary="CVaR value iteration by quantiles, as published",
    plan=partial(plan, solve_cvar_quantile),
    options=(*OPTIONS, _factors("shared")),
    variants={"published": PUBLISHED, "printed": {**PUBLISHED, "factors": "printed"}},
    doing=DOING,
)
INTERPOLATION = Method(
    name="interpolation",
    title="CVaRVILI",
    summary="CVaR value iteration by linear interpolation, as published",
    plan=partial(plan, solve_cvar_interpolation),
    options=(*OPTIONS, INNER, _factors("vertex")),
    variants={"published": PUBLISHED},
    doing=DOING,
)
