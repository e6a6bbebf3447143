"""Measures on the command line: `--minimise`, `--subject-to`, `--deadline`, `--measure`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

import click

import tailpath
from tailpath.cli.application import print_message
from tailpath.cli.output import fitted_table, with_gains
from tailpath.errors import LimitExceededError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.model.ssp import SSP
from tailpath.options import confidence_note
from tailpath.risk.measure import Limit, Measure
from tailpath.risk.text import parse, parse_limit
from tailpath.texts import pairs

#: Without a cost unit the evaluation of a policy may branch without end; after so many nodes the
#: bracket of the optimum has to do.
MOST_NODES = 1_000_000


def measure(text: str) -> Measure:
    """The type of an option that takes a measure."""
    found = parse(text)
    note = confidence_note(found.finest_alpha)
    if note is not None:
        print_message("note", note)
    return found


def limit(text: str) -> Limit:
    """The type of an option that takes a limit."""
    return parse_limit(text)


def objective_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `solve` that ask for any measure, under limits on others."""
    options = [
        click.option(
            "--minimise",
            type=measure,
            metavar="MEASURE",
            help="Minimise mean, cvar(A), var(A), late(T), shortfall(B) or a sum.",
        ),
        click.option(
            "--subject-to",
            "limits",
            type=limit,
            multiple=True,
            metavar="LIMIT",
            help="Such as 'late(35) <= 0.05' (repeatable).",
        ),
        click.option("--deadline", type=float, metavar="T", help="Short for --minimise 'late(T)'."),
        click.option(
            "--no-mix",
            is_flag=True,
            help="A single policy, even where a coin between several would be better.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def asked_for(
    minimise: Measure | None, limits: Sequence[Limit], deadline: float | None, alpha: float | None
) -> Measure | None:
    """What is to be minimised, or None if a method is to plan as ever."""
    if minimise is None and deadline is None and not limits:
        return None
    if alpha is not None:
        raise click.UsageError(
            "--alpha does not go with --minimise, --subject-to and --deadline; say cvar(A) instead"
        )
    if minimise is not None and deadline is not None:
        raise click.UsageError(
            "give either --minimise or --deadline, which is short for --minimise 'late(T)'"
        )
    if deadline is not None:
        return tailpath.Late(deadline)
    return minimise or tailpath.Mean()


def solve_for(
    ssp: SSP,
    objective: Measure,
    limits: Sequence[Limit],
    mix: bool,
    delta: str | None,
    max_nodes: int | None,
) -> tuple[tailpath.Policy, dict[str, Any], str]:
    """The policy, the record for programs and the text for people."""
    begin = perf_counter()
    found = tailpath.solve(ssp, objective, limits, mix=mix, delta=delta)
    seconds = perf_counter() - begin
    shown: list[Measure] = list(
        dict.fromkeys([tailpath.Mean(), objective, *(each.measure for each in limits)])
    )
    values = _delivered(ssp, found.policy, shown, max_nodes)
    record: dict[str, Any] = {
        "objective": str(objective),
        "delta": delta,
        "limits": [str(each) for each in limits],
        "value": found.value,
        "bounds": list(found.bounds),
        "risks": values,
        "multipliers": list(found.multipliers),
        "members": len(getattr(found.policy, "members", [0])),
        "weights": list(getattr(found.policy, "weights", [1.0])),
        "seconds": seconds,
    }
    rows = {f"least {objective}": f"{found.value:.10g}"} if delta is None else {}
    rows |= {
        text: f"{value:.10g}"
        for text, value in values.items()
        if text != str(objective) or delta is not None
    }
    if delta is None:
        rows["verified bounds"] = f"{found.bounds[0]:.15g} to {found.bounds[1]:.15g}"
    else:
        rows["optimum between"] = (
            f"{found.bounds[0]:.10g} and {found.bounds[1]:.10g}, with costs rounded to {delta}"
        )
    if record["members"] > 1:
        rows["policy"] = (
            f"a coin at the start: {', '.join(f'{weight:.6g}' for weight in record['weights'])}"
        )
    text = pairs([*rows.items(), ("time", f"{seconds:.3g} s")])
    text = "\n".join([text, *(f"{words}" for words in found.words)])
    return found.policy, record, with_gains(text, ssp, values.get(str(tailpath.Mean())))


def _delivered(
    ssp: SSP, policy: tailpath.Policy, measures: Sequence[Measure], max_nodes: int | None
) -> dict[str, float]:
    """What the policy makes of the measures; nothing, with a warning, where evaluating it is given
    up.
    """
    if max_nodes is None and ssp.cost_unit is None:
        max_nodes = MOST_NODES
    try:
        costs = evaluate_for(ssp, policy, measures, max_nodes=max_nodes)
    except LimitExceededError as error:
        print_message("warning", f"the policy was not evaluated to the end: {error}")
        return {}
    return {str(each): each(costs) for each in measures}


def measured(
    ssp: SSP,
    policies: Iterable[tuple[str, Callable[[float], tailpath.Policy]]],
    measures: Sequence[Measure],
    alphas: Sequence[float],
    delta: str | None,
) -> tuple[list[dict[str, Any]], str]:
    """Measures of every policy at every alpha, with the policies that have the least of each, and
    the least VaR, beside them.
    """
    best = {f"least {each}": tailpath.solve(ssp, each, delta=delta).policy for each in measures}
    lines, rows = [], []
    for alpha in alphas:
        least_var = tailpath.solve(ssp, tailpath.VaR(alpha), delta=delta).policy
        everyone = {
            **{name: policy(alpha) for name, policy in policies},
            "least VaR": least_var,
            **best,
        }
        for name, policy in everyone.items():
            costs = evaluate_for(ssp, policy, [*measures, tailpath.VaR(alpha)])
            values = {str(each): each(costs) for each in measures}
            lines.append(
                {
                    "alpha": alpha,
                    "method": name,
                    **values,
                    "var": costs.var(alpha),
                    "mean": costs.mean,
                }
            )
            rows.append([alpha, name, *values.values(), costs.var(alpha), costs.mean])
    return lines, fitted_table(
        ["alpha", "policy", *(str(each) for each in measures), "VaR", "mean"], rows
    )
