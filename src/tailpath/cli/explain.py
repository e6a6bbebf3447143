"""`tailpath explain MODEL POLICY --alpha A`: the worst runs of a policy, and what is to blame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import click

import tailpath
from tailpath.cli.common import alpha as alpha_type
from tailpath.cli.common import json_option, name, number, pairs, read_policy, show, table, takes_model
from tailpath.model.ssp import SSP
from tailpath.show.runs import Step, Trace, WorstRuns
from tailpath.texts import count

#: Of a run that is too long to be told: its first steps, and the states it is in most often.
BEGINNING, MET_MOST = 10, 5


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
        "typical": None if found.typical is None else _shape(found.typical),
        "blame": [row._asdict() for row in found.blame],
    }
    show(record, _as_text(found, runs, most), as_json)


def _shape(run: Trace) -> dict[str, Any]:
    """A long run by its length, its beginning and the states it is in most often."""
    met = Counter(step.state for step in run)
    return {
        "cost": run.cost,
        "length": len(run),
        "beginning": [step._asdict() for step in run[:BEGINNING]],
        "states": len(met),
        "met_most": [{"state": state, "times": times} for state, times in met.most_common(MET_MOST)],
    }


def _as_text(found: WorstRuns, asked: int, most: int) -> str:
    facts = [
        (f"VaR at {number(found.alpha)}", number(found.var)),
        (f"CVaR at {number(found.alpha)}", number(found.cvar)),
        ("probability of more than VaR", number(found.chance)),
        ("expected excess over VaR", number(found.excess)),
    ]
    parts = [pairs(facts), *(_run(place, run) for place, run in enumerate(found, 1))]
    if not len(found):
        parts.append(_without_runs(found, asked))
    if found.blame:
        parts += [_blame("where runs turn bad", found, "setback", most), _blame("where the excess is paid", found, "share", most)]
    return "\n\n".join(parts)


def _without_runs(found: WorstRuns, asked: int) -> str:
    """Why no run is told; where each is too improbable, the shape of one."""
    if found.chance == 0:
        return "no run costs more than VaR"
    if asked == 0:
        return "no runs asked for"
    why = "runs beyond VaR are so long that each is less probable than floating point can tell"
    if found.typical is None:
        return why
    shape = _shape(found.typical)
    met = ", ".join(f"{name(row['state'])} ({row['times']} times)" for row in shape["met_most"])
    return (
        f"{why}\none of them, drawn at random: cost {number(shape['cost'])} in {count(shape['length'], 'step')}"
        f" through {count(shape['states'], 'state')}, most often in {met}\n\nits beginning\n{_steps(found.typical[:BEGINNING])}"
    )


def _run(place: int, run: Trace) -> str:
    cost = "never arrives" if run.cost == float("inf") else f"cost {number(run.cost)}"
    return f"worst run {place}: probability {number(run.probability)}, {cost}\n{_steps(run)}"


def _steps(run: Iterable[Step]) -> str:
    """The steps of a run, and what was paid after each."""
    rows: list[list[Any]] = []
    paid = 0.0
    for step in run:
        paid += step.cost
        rows.append([name(step.state), step.memory, name(step.action), step.cost, name(step.next_state), float(number(paid, 12))])
    headers = ["state", "memory", "action", "cost", "next state", "paid so far"]
    kept = [k for k in range(len(headers)) if headers[k] != "memory" or any(row[k] for row in rows)]
    return table([headers[k] for k in kept], [[row[k] for k in kept] for row in rows])


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
