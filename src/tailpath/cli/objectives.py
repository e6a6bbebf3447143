"""Measures on the command line: `--minimise`, `--subject-to`, `--deadline`, `--measure`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

import click

import tailpath
from tailpath.cli.common import pairs, table
from tailpath.evaluation.measured import evaluate_for
from tailpath.model.ssp import SSP
from tailpath.risk.measure import Limit, Measure
from tailpath.risk.text import parse, parse_limit


def measure(text: str) -> Measure:
    """The type of an option that takes a measure."""
    return parse(text)


def limit(text: str) -> Limit:
    """The type of an option that takes a limit."""
    return parse_limit(text)


def objective_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `solve` that ask for any measure, under limits on others."""
    options = [
        click.option("--minimise", type=measure, metavar="MEASURE", help="Minimise mean, cvar(A), var(A), late(T), shortfall(B) or a sum."),
        click.option("--subject-to", "limits", type=limit, multiple=True, metavar="LIMIT", help="Such as 'late(35) <= 0.05' (repeatable)."),
        click.option("--deadline", type=float, metavar="T", help="Short for --minimise 'late(T)'."),
        click.option("--no-mix", is_flag=True, help="A single policy, even where a coin between several would be better."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def asked_for(minimise: Measure | None, limits: Sequence[Limit], deadline: float | None, alpha: float | None) -> Measure | None:
    """What is to be minimised, or None if a method is to plan as ever."""
    if minimise is None and deadline is None and not limits:
        return None
    if alpha is not None:
        raise click.UsageError("--alpha does not go with --minimise, --subject-to and --deadline; say cvar(A) instead")
    if minimise is not None and deadline is not None:
        raise click.UsageError("give either --minimise or --deadline, which is short for --minimise 'late(T)'")
    if deadline is not None:
        return tailpath.Late(deadline)
    return minimise or tailpath.Mean()


def solve_for(ssp: SSP, objective: Measure, limits: Sequence[Limit], mix: bool) -> tuple[tailpath.Policy, dict[str, Any], str]:
    """The policy, the record for programs and the text for people."""
    begin = perf_counter()
    found = tailpath.solve(ssp, objective, limits, mix=mix)
    seconds = perf_counter() - begin
    shown: list[Measure] = list(dict.fromkeys([tailpath.Mean(), objective, *(each.measure for each in limits)]))
    values = {str(each): found.risk(each) for each in shown}
    record: dict[str, Any] = {
        "objective": str(objective),
        "limits": [str(each) for each in limits],
        "value": found.value,
        "bounds": list(found.bounds),
        "risks": values,
        "multipliers": list(found.multipliers),
        "members": len(getattr(found.policy, "members", [0])),
        "weights": list(getattr(found.policy, "weights", [1.0])),
        "seconds": seconds,
    }
    rows = {f"least {objective}": f"{found.value:.10g}"}
    rows |= {text: f"{value:.10g}" for text, value in values.items() if text != str(objective)}
    rows["verified bounds"] = f"{found.bounds[0]:.15g} to {found.bounds[1]:.15g}"
    if record["members"] > 1:
        rows["policy"] = f"a coin at the start: {', '.join(f'{weight:.6g}' for weight in record['weights'])}"
    text = pairs([*rows.items(), ("time", f"{seconds:.3g} s")])
    return found.policy, record, "\n".join([text, *(f"{words}" for words in found.words)])


def measured(
    ssp: SSP, policies: Iterable[tuple[str, Callable[[float], tailpath.Policy]]], measures: Sequence[Measure], alphas: Sequence[float]
) -> tuple[list[dict[str, Any]], str]:
    """Measures of every policy at every alpha, with the policies that have the least of each, and the least VaR, beside them."""
    best = {f"least {each}": tailpath.solve(ssp, each).policy for each in measures}
    lines, rows = [], []
    for alpha in alphas:
        least_var = tailpath.solve(ssp, tailpath.VaR(alpha)).policy
        everyone = {**{name: policy(alpha) for name, policy in policies}, "least VaR": least_var, **best}
        for name, policy in everyone.items():
            costs = evaluate_for(ssp, policy, [*measures, tailpath.VaR(alpha)])
            values = {str(each): each(costs) for each in measures}
            lines.append({"alpha": alpha, "method": name, **values, "var": costs.var(alpha), "mean": costs.mean})
            rows.append([alpha, name, *values.values(), costs.var(alpha), costs.mean])
    return lines, table(["alpha", "policy", *(str(each) for each in measures), "VaR", "mean"], rows)
