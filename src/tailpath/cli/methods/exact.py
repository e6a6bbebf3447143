"""`tailpath solve --method exact`: the least CVaR over all policies. Also its policy's own mean, by exact evaluation."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tailpath.cli.common import number, pairs
from tailpath.cli.methods import ALPHA, Answer, Method
from tailpath.cli.progress import progress_line

if TYPE_CHECKING:
    from tailpath.model import SSP

OPTIONS = (
    ALPHA,
    click.Option(["--lexicographic"], is_flag=True, help="Of all policies with the least CVaR, the one with the least expected cost."),
    click.Option(["--weight"], type=float, default=1.0, show_default=True, metavar="W", help="Minimise (1 - W) * mean + W * CVaR."),
    click.Option(["--delta"], metavar="D", help="Round costs to multiples of D; the optimum is then bracketed."),
)


def run(ssp: SSP, alpha: float | None, lexicographic: bool, weight: float, delta: str | None) -> Answer:
    if alpha is None:
        raise click.UsageError("--method exact needs --alpha, the mass of the worst tail; for the mean alone use --method expected")
    import tailpath

    begin = perf_counter()
    with progress_line() as tell:
        solution = tailpath.solve_cvar_exact(
            ssp,
            alpha,
            lexicographic,
            weight=weight,
            delta=delta,
            progress=lambda budget, best: tell(f"budget {budget}, best value so far {best:.6g}"),
        )
    seconds = perf_counter() - begin
    policy = solution.policy(alpha)
    costs = tailpath.evaluate(ssp, policy, alpha)
    low, high = solution.bounds(alpha)
    record: dict[str, Any] = {
        "alpha": alpha,
        "weight": weight,
        "cvar": costs.cvar(alpha),
        "var": costs.var(alpha),
        "mean": costs.mean,
        "objective": (1 - weight) * costs.mean + weight * costs.cvar(alpha),
        "bounds": [low, high],
        "seconds": seconds,
    }
    rows = [
        ("least CVaR" if weight == 1 and delta is None else "CVaR", number(record["cvar"], 10)),
        ("VaR", number(record["var"], 10)),
        ("expected cost", number(record["mean"], 10)),
    ]
    if lexicographic:
        record["plain_mean"] = solution.plain_mean(alpha)
        rows.append(("  without --lexicographic", number(record["plain_mean"], 10)))
    if weight != 1:
        rows.insert(0, (f"{1 - weight:g} * mean + {weight:g} * CVaR", number(record["objective"], 10)))
    if delta is not None:
        record["delta"] = delta
        rows.insert(0, ("optimum between", f"{number(low, 10)} and {number(high, 10)}, with costs rounded to {delta}"))
    else:
        rows.append(("verified bounds", f"{number(low, 15)} to {number(high, 15)}"))
    return Answer(record, pairs([("alpha", number(alpha)), *rows, ("time", f"{seconds:.3g} s")]), policy)


METHOD = Method(OPTIONS, run)
