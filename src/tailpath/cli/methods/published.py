"""What `--method quantile` and `--method interpolation` share: the planner's prediction beside the exact value of the policy it returns."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tailpath.cli.application import say
from tailpath.cli.common import alpha as tail_mass
from tailpath.cli.common import number, pairs
from tailpath.cli.methods import ALPHA, Answer
from tailpath.cli.progress import progress_line

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP

OPTIONS = (
    ALPHA,
    click.Option(["--atoms"], type=click.IntRange(min=1), default=25, show_default=True, metavar="N", help="Number of atoms."),
    click.Option(["--alpha0"], type=tail_mass, metavar="A", help="The first atom.  [default: a tenth of alpha]"),
    click.Option(
        ["--tolerance"], type=float, default=1e-3, show_default=True, metavar="E", help="Stop when a sweep moves no value by more."
    ),
    click.Option(
        ["--max-sweeps"], type=click.IntRange(min=1), default=10_000, show_default=True, metavar="N", help="Give up after N sweeps."
    ),
    click.Option(["--gamma"], type=float, default=1.0, show_default=True, metavar="G", help="Discount: costs at step t count G^t times."),
)


def plan(
    ssp: SSP,
    solve: Callable[..., Any],
    alpha: float | None,
    atoms: int,
    alpha0: float | None,
    gamma: float,
    **options: Any,
) -> Answer:
    """Run a planner, evaluate its policy exactly, and say how far the two are apart."""
    if alpha is None:
        raise click.UsageError("the published planners need --alpha, the mass of the worst tail; for the mean alone use --method expected")
    import tailpath

    first = alpha / 10 if alpha0 is None else alpha0
    grid = tailpath.log_atoms(first if atoms > 1 else 1.0, atoms)
    if atoms > 1 and first >= alpha:
        say("warning", f"alpha0 = {first:g} is not below alpha = {alpha:g}; planners do badly near their first atom")
    begin = perf_counter()
    with progress_line() as tell:
        solution = solve(
            ssp, grid, gamma=gamma, progress=lambda sweeps, residual: tell(f"sweep {sweeps}, residual {residual:.3g}"), **options
        )
        seconds = perf_counter() - begin
        policy = solution.policy(alpha)
        costs = tailpath.evaluate(
            ssp,
            policy,
            alpha,
            gamma=gamma,
            progress=lambda expanded, arrived: tell(f"evaluating: {arrived:.9f} of the probability has arrived"),
        )
    predicted, deployed = solution.cvar(alpha), costs.cvar(alpha)
    record = {
        "alpha": alpha,
        "predicted": predicted,
        "deployed": deployed,
        "gap": deployed - predicted,
        "deployed_bounds": list(costs.bounds(alpha)),
        "var": costs.var(alpha),
        "mean": costs.mean,
        "atoms": atoms,
        "alpha0": float(grid[0]),
        "gamma": gamma,
        "sweeps": solution.sweeps,
        "residual": solution.residual,
        "converged": solution.converged,
        "detours": solution.detours,
        "seconds": seconds,
        "linear_programs": solution.linear_programs,
        "lp_seconds": solution.lp_seconds,
    }
    rows = [
        ("alpha", number(alpha)),
        ("CVaR predicted by the planner", number(predicted, 10)),
        ("CVaR of its policy, exact", number(deployed, 10)),
        ("gap", number(_difference(deployed - predicted, deployed))),
        ("VaR of its policy", number(record["var"], 10)),
        ("expected cost of its policy", number(record["mean"], 10)),
        ("atoms", f"{atoms}, from {grid[0]:g}"),
        ("sweeps", f"{solution.sweeps}, residual {number(solution.residual, 3)}" + ("" if solution.converged else ", not converged")),
        ("time", f"{seconds:.3g} s"),
    ]
    if solution.linear_programs:
        rows.append(("linear programs", f"{solution.linear_programs}, {solution.lp_seconds:.3g} s"))
    return Answer(record, pairs(rows), policy)


def _difference(value: float, scale: float) -> float:
    """A difference for people: what is below the ninth digit is rounding."""
    return value if abs(value) > 1e-9 * scale else 0.0
