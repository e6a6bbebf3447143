"""`tailpath explain MODEL POLICY --alpha A`: the worst runs of a policy, and what is to blame."""

from __future__ import annotations

from typing import Any

import click

import tailpath
from tailpath.cli.common import ModelCommand, flags, policy_argument
from tailpath.cli.output import Output, reported, terminal_width
from tailpath.model.ssp import SSP
from tailpath.options import Flag
from tailpath.show.traces import BEGINNING, MET_MOST, Trace


@click.command(cls=ModelCommand)
@click.argument("policy")
@flags(
    Flag("alpha", float, None, "Mass of the worst tail.", "A", mass=True, required=True),
    Flag("runs", int, 3, "How many of the most probable runs beyond VaR to show.", "K", least=0),
    Flag("most", int, 10, "How many outcomes to show.", "N", least=1),
)
@reported
def command(ssp: SSP, source: str, policy: str, alpha: float, runs: int, most: int) -> Output:
    """The most probable runs of a POLICY that cost more than VaR, exactly, and what is to blame for
    the excess.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the
    least expected cost.
    """
    found = tailpath.worst_runs(ssp, policy_argument(policy, ssp), alpha, runs)
    record = {
        "model": source,
        "policy": policy,
        **{key: getattr(found, key) for key in ("alpha", "var", "cvar", "chance", "excess")},
        "runs": [
            {
                "probability": run.probability,
                "cost": run.cost,
                "steps": [step._asdict() for step in run],
            }
            for run in found
        ],
        "typical": None if found.typical is None else _shape(found.typical),
        "blame": [row._asdict() for row in found.blame],
    }
    return record, found.as_text(terminal_width(), most)


def _shape(run: Trace) -> dict[str, Any]:
    """A long run by its length, its beginning and the states it is in most often."""
    return {
        "cost": run.cost,
        "length": len(run),
        "beginning": [step._asdict() for step in run[:BEGINNING]],
        "states": len(run.met),
        "met_most": [{"state": state, "times": times} for state, times in run.met[:MET_MOST]],
    }
