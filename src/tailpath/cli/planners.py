"""The methods that `compare` sets side by side, behind one face: a prediction and a policy for every alpha."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Planner:
    """A solved method. `predict` gives the CVaR it predicts, None where it predicts none; `seconds` is the time of planning, for all alphas."""

    name: str
    predict: Callable[[float], float | None]
    policy: Callable[[float], Any]
    seconds: float
    note: str


def expected(ssp: SSP) -> Planner:
    """The risk-neutral policy: the same for every alpha, and no word about CVaR."""
    import tailpath

    begin = perf_counter()
    solution = tailpath.solve_expected(ssp)
    policy = solution.policy
    return Planner("expected", lambda alpha: None, lambda alpha: policy, perf_counter() - begin, "least expected cost")


def published(ssp: SSP, name: str, alpha0: float, atoms: int, tolerance: float, tell: Tell) -> Planner:
    """CVaRVIQ (`quantile`) or CVaRVILI (`interpolation`), one table for all alphas."""
    import tailpath

    solve = tailpath.solve_cvar_quantile if name == "quantile" else tailpath.solve_cvar_interpolation
    begin = perf_counter()
    solution = solve(
        ssp,
        tailpath.log_atoms(alpha0, atoms),
        tolerance,
        progress=lambda sweeps, residual: tell(f"{name}: sweep {sweeps}, residual {residual:.3g}"),
    )
    seconds = perf_counter() - begin
    return Planner(name, solution.cvar, solution.policy, seconds, f"{atoms} atoms from {alpha0:g}, {solution.sweeps} sweeps")


def optimum(ssp: SSP, alpha: float, delta: str | None, tell: Tell) -> tuple[Planner, Any]:
    """The exact solver from `alpha` up, and its solution, for the bounds."""
    import tailpath

    begin = perf_counter()
    solution = tailpath.solve_cvar_exact(
        ssp, alpha, delta=delta, progress=lambda budget, best: tell(f"optimum: budget {budget}, CVaR at most {best:.6g}")
    )
    seconds = perf_counter() - begin
    note = f"{len(solution.excess)} budgets" + ("" if delta is None else f", costs rounded up to {delta}")
    return Planner("optimum", solution.cvar, solution.policy, seconds, note), solution


def improved(ssp: SSP, planner: Planner) -> Planner:
    """Policy iteration from the policy of a planner. It plans per alpha, so its time is part of asking for the policy."""
    import tailpath

    return Planner(
        f"{planner.name}, improved", lambda alpha: None, lambda alpha: tailpath.improve(ssp, planner.policy(alpha), alpha).policy, 0.0, ""
    )


def warm_up(names: list[str]) -> None:
    """Load, or on the first run compile, what the methods need, so that the times shown are those of the methods."""
    import tailpath

    tiny = tailpath.read("textbook:counter-example")
    solved = [expected(tiny), optimum(tiny, 0.5, None, lambda text: None)[0]]
    solved += [published(tiny, name, 0.1, 3, 1e-3, lambda text: None) for name in names]
    for planner in solved:
        tailpath.evaluate(tiny, planner.policy(0.5), 0.5)
