"""`tailpath show MODEL POLICY`: the decisions of a policy, in words."""

from __future__ import annotations

from typing import Any

import click

from tailpath.cli.common import ModelCommand, flags, policy_argument
from tailpath.cli.output import Output, fitted_table, reported
from tailpath.model.ssp import SSP
from tailpath.options import Flag
from tailpath.pictures.progress import progress_line
from tailpath.policies.display import decision_in_words, decision_table
from tailpath.texts import count, name, number


@click.command(cls=ModelCommand)
@click.argument("policy")
@flags(
    Flag("alpha", float, 0.05, "Mass of the worst tail, for the CVaR to go.", "A", mass=True),
    Flag("most", int, 40, "Rows to show.", "N", least=1),
    Flag("state", str, None, "Only the rows of this state.", "NAME"),
)
@reported
def command(
    ssp: SSP, source: str, policy: str, alpha: float, most: int, state: str | None
) -> Output:
    """What a POLICY does on a MODEL: state, memory, action, how likely a run is ever there, and the
    cost from there.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the
    least expected cost. The likeliest rows come first; budgets left with the same decision are one
    row.
    """
    with progress_line() as update:
        rows = decision_table(
            ssp,
            policy_argument(policy, ssp),
            alpha,
            None if state is not None else most + 1,
            lambda levels, share: update(f"costs up to {count(levels, 'unit')}, {share:.0%}"),
        )
    if state is not None:
        rows = [row for row in rows if name(row.state) == state]
        if not rows:
            raise click.ClickException(f"the policy never comes to a state called {state!r}")
    shown = rows[:most]
    columns: dict[str, list[Any]] = {
        "state": [name(row.state) for row in shown],
        "memory": [row.memory for row in shown],
        "action": [decision_in_words(row.action) for row in shown],
        "probability": [row.probability for row in shown],
        "mean to go": [row.mean for row in shown],
        f"CVaR to go at {number(alpha)}": [row.cvar for row in shown],
    }
    if not any(columns["memory"]):
        del columns["memory"]
    text = fitted_table(list(columns), zip(*columns.values()))
    if len(rows) > most:
        text += f"\n\nthe {most} rows that are met most often; --most shows more"
    record = {
        "model": source,
        "policy": policy,
        "alpha": alpha,
        "complete": len(rows) <= most,
        "rows": [row._asdict() for row in shown],
    }
    return record, text
