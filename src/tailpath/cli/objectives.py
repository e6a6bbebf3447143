"""Measures on the command line: `--minimise`, `--subject-to`, `--deadline`, `--measure`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import click

import tailpath
from tailpath.cli.application import print_message
from tailpath.cli.output import fitted_table
from tailpath.cli.planning import Solved
from tailpath.errors import LimitExceededError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.methods.method import bounds_row
from tailpath.model.ssp import SSP
from tailpath.options import Flag, confidence_note
from tailpath.risk.measure import Measure
from tailpath.risk.measures import parse, parse_limit

#: Without a cost unit the evaluation of a policy may branch without end; after so many nodes the
#: bracket of the optimum has to do.
MAX_NODES = 1_000_000


def measure(text: str) -> Measure:
    """The type of an option that takes a measure."""
    found = parse(text)
    note = confidence_note(found.finest_alpha)
    if note is not None:
        print_message("note", note)
    return found


#: The options of `solve` that ask for any measure, under limits on others.
OBJECTIVES = (
    Flag(
        "minimise",
        measure,
        None,
        "Minimise mean, cvar(A), var(A), late(T), shortfall(B) or a sum.",
        "MEASURE",
    ),
    Flag(
        "limits",
        parse_limit,
        None,
        "Such as 'late(35) <= 0.05' (repeatable).",
        "LIMIT",
        flag="--subject-to",
        several=True,
    ),
    Flag("deadline", float, None, "Short for --minimise 'late(T)'.", "T"),
    Flag(
        "no_mix", bool, False, "A single policy, even where a coin between several would be better."
    ),
)


def asked_for(asked: SimpleNamespace) -> Measure | None:
    """What is to be minimised, or None if a method is to plan as ever."""
    if asked.minimise is None and asked.deadline is None and not asked.limits:
        return None
    if asked.alpha is not None:
        raise click.UsageError(
            "--alpha does not go with --minimise, --subject-to and --deadline; say cvar(A) instead"
        )
    if asked.deadline is None:
        return asked.minimise or tailpath.Mean()
    if asked.minimise is not None:
        raise click.UsageError(
            "give either --minimise or --deadline, which is short for --minimise 'late(T)'"
        )
    return tailpath.Late(asked.deadline)


def solve_for(ssp: SSP, objective: Measure, asked: SimpleNamespace) -> Solved:
    """Any measure, under limits on others."""
    if asked.gamma is not None:
        raise click.UsageError(
            "with --minimise, --subject-to and --deadline a discount is exact over a bounded"
            " number of steps: give --within N"
        )
    begin, delta = perf_counter(), asked.delta
    found = tailpath.solve(ssp, objective, asked.limits, mix=not asked.no_mix, delta=delta)
    seconds = perf_counter() - begin
    shown = dict.fromkeys([tailpath.Mean(), objective, *(each.measure for each in asked.limits)])
    values = _delivered(ssp, found.policy, list(shown), asked.max_nodes)
    weights = list(getattr(found.policy, "weights", [1.0]))
    record = {
        "objective": str(objective),
        "delta": delta,
        "limits": [str(each) for each in asked.limits],
        "value": found.value,
        "bounds": list(found.bounds),
        "risks": values,
        "multipliers": list(found.multipliers),
        "members": len(getattr(found.policy, "members", [0])),
        "weights": weights,
        "seconds": seconds,
    }
    least = {f"least {objective}": found.value} if delta is None else {}
    others = values if delta is not None else {**values, str(objective): None}
    rows = {
        what: f"{value:.10g}" for what, value in {**least, **others}.items() if value is not None
    }
    rows |= bounds_row(found.bounds, delta)
    if len(weights) > 1:
        rows["policy"] = f"a coin at the start: {', '.join(f'{weight:.6g}' for weight in weights)}"
    rows["time"] = f"{seconds:.3g} s"
    mean = values.get(str(tailpath.Mean()))
    return Solved(found.policy, record, rows, words=list(found.words), mean=mean)


def _delivered(
    ssp: SSP, policy: tailpath.Policy, measures: Sequence[Measure], max_nodes: int | None
) -> dict[str, float]:
    """What the policy makes of the measures; nothing, with a warning, where evaluating it is given
    up.
    """
    if max_nodes is None and ssp.cost_unit is None:
        max_nodes = MAX_NODES
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
    lines = []
    for alpha in alphas:
        least_var = tailpath.solve(ssp, tailpath.VaR(alpha), delta=delta).policy
        everyone = {name: policy(alpha) for name, policy in policies}
        for name, policy in {**everyone, "least VaR": least_var, **best}.items():
            costs = evaluate_for(ssp, policy, [*measures, tailpath.VaR(alpha)])
            values = {str(each): each(costs) for each in measures}
            line = {"alpha": alpha, "method": name, **values}
            lines.append({**line, "var": costs.var(alpha), "mean": costs.mean})
    headers = ["alpha", "policy", *map(str, measures), "VaR", "mean"]
    return lines, fitted_table(headers, [list(line.values()) for line in lines])
