"""`tailpath explain MODEL POLICY --alpha A`: the worst runs of a policy, and what is to blame."""

from __future__ import annotations

from typing import Any

import click

import tailpath
from tailpath.cli.common import alpha as alpha_type
from tailpath.cli.common import json_option, name, number, pairs, read_policy, show, table, takes_model
from tailpath.model.ssp import SSP
from tailpath.show.runs import Trace, WorstRuns


@click.command()
@takes_model
@click.argument("policy")
@click.option("--alpha", type=alpha_type, required=True, metavar="A", help="Mass of the worst tail.")
@click.option("--runs", type=click.IntRange(min=0), default=3, show_default=True, metavar="K", help="The most probable runs beyond VaR.")
@click.option("--most", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="Outcomes to blame.")
@json_option
def command(ssp: SSP, source: str, policy: str, alpha: float, runs: int, most: int, as_json: bool) -> None:
    """The most probable runs of a POLICY that cost more than VaR, exactly, and what is to blame for the excess.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the least expected cost.
    """
    found = tailpath.worst_runs(ssp, read_policy(policy, ssp), alpha, runs)
    record = {
        "model": source,
        "policy": policy,
        **{key: getattr(found, key) for key in ("alpha", "var", "cvar", "chance", "excess")},
        "runs": [{"probability": run.probability, "cost": run.cost, "steps": [step._asdict() for step in run]} for run in found],
        "blame": [row._asdict() for row in found.blame],
    }
    show(record, _as_text(found, most), as_json)


def _as_text(found: WorstRuns, most: int) -> str:
    facts = [
        (f"VaR at {number(found.alpha)}", number(found.var)),
        (f"CVaR at {number(found.alpha)}", number(found.cvar)),
        ("probability of more than VaR", number(found.chance)),
        ("expected excess over VaR", number(found.excess)),
    ]
    parts = [pairs(facts), *(_run(place, run) for place, run in enumerate(found, 1))]
    if not len(found):
        parts.append("no run costs more than VaR" if found.chance == 0 else "no runs asked for")
    if found.blame:
        parts += [_blame("where runs turn bad", found, "setback", most), _blame("where the excess is paid", found, "share", most)]
    return "\n\n".join(parts)


def _run(place: int, run: Trace) -> str:
    """One run, with steps that repeat drawn together."""
    rows: list[list[Any]] = []
    paid = 0.0
    for step in run:
        paid += step.cost
        rows.append([name(step.state), step.memory, name(step.action), step.cost, name(step.next_state), float(number(paid, 12))])
    headers = ["state", "memory", "action", "cost", "next state", "paid so far"]
    kept = [k for k in range(len(headers)) if headers[k] != "memory" or any(row[k] for row in rows)]
    text = table([headers[k] for k in kept], [[row[k] for k in kept] for row in rows])
    cost = "never arrives" if run.cost == float("inf") else f"cost {number(run.cost)}"
    return f"worst run {place}: probability {number(run.probability)}, {cost}\n{text}"


def _blame(title: str, found: WorstRuns, key: str, most: int) -> str:
    rows = sorted(found.blame, key=lambda row: -getattr(row, key))[:most]
    cells = [
        [
            name(row.state),
            name(row.action),
            name(row.next_state),
            row.cost,
            getattr(row, key),
            round(100 * getattr(row, key) / found.excess, 1),
        ]
        for row in rows
        if getattr(row, key) > 0
    ]
    text = f"{title}\n" + table(["state", "action", "next state", "cost", "excess", "%"], cells)
    lucky = sum(getattr(row, key) < 0 for row in found.blame)
    if sum(cell[-1] for cell in cells) <= 100 or not lucky:
        return text
    others = "1 outcome that makes" if lucky == 1 else f"{lucky} outcomes that make"
    return f"{text}\nmore than 100 % in all: {others} the same runs better, though not enough, count against these"
