"""`tailpath solve --method exact`: the least CVaR over all policies. Also its policy's own mean, by exact evaluation."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tailpath.cli.application import say
from tailpath.cli.common import number, pairs
from tailpath.cli.methods import ALPHA, Answer, Method
from tailpath.cli.progress import progress_line
from tailpath.errors import BudgetExceededError

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP

OPTIONS = (
    ALPHA,
    click.Option(["--lexicographic"], is_flag=True, help="Of all policies with the least CVaR, the one with the least expected cost."),
    click.Option(["--weight"], type=float, default=1.0, show_default=True, metavar="W", help="Minimise (1 - W) * mean + W * CVaR."),
    click.Option(["--delta"], metavar="D", help="Round costs to multiples of D; the optimum is then bracketed."),
)


#: Without a cost unit the evaluation of the policy may branch without end; after so many nodes the bracket has to do.
MOST_NODES = 1_000_000


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
    low, high = solution.bounds(alpha)
    record: dict[str, Any] = {"alpha": alpha, "weight": weight, "delta": delta, "bounds": [low, high], "seconds": seconds}
    record |= _delivered(ssp, policy, alpha, weight)
    if lexicographic and delta is None:
        record["plain_mean"] = solution.plain_mean(alpha)
    return Answer(record, _as_text(record), policy)


def _delivered(ssp: SSP, policy: Any, alpha: float, weight: float) -> dict[str, float | None]:
    """What the policy costs, by exact evaluation; nothing where that was given up."""
    import tailpath

    try:
        costs = tailpath.evaluate(ssp, policy, alpha, max_nodes=MOST_NODES if ssp.cost_unit is None else None)
    except BudgetExceededError as error:
        say("warning", f"the policy was not evaluated to the end: {error}")
        return dict.fromkeys(("cvar", "var", "mean", "objective"))
    cvar, mean = costs.cvar(alpha), costs.mean
    return {"cvar": cvar, "var": costs.var(alpha), "mean": mean, "objective": (1 - weight) * mean + weight * cvar}


def _as_text(record: dict[str, Any]) -> str:
    low, high = record["bounds"]
    exact, weight = record["delta"] is None, record["weight"]
    rows = [("alpha", number(record["alpha"]))]
    if not exact:
        rows.append(("optimum between", f"{number(low, 10)} and {number(high, 10)}, with costs rounded to {record['delta']}"))
    wanted = [
        (f"{1 - weight:g} * mean + {weight:g} * CVaR", "objective" if weight != 1 else None),
        ("least CVaR" if exact and weight == 1 else "CVaR", "cvar"),
        ("VaR", "var"),
        ("expected cost", "mean"),
        ("  without --lexicographic", "plain_mean"),
    ]
    rows += [(what, number(record[key], 10)) for what, key in wanted if key is not None and record.get(key) is not None]
    if exact:
        rows.append(("verified bounds", f"{number(low, 15)} to {number(high, 15)}"))
    return pairs([*rows, ("time", f"{record['seconds']:.3g} s")])


METHOD = Method(OPTIONS, run)
