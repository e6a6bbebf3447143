"""`tailpath simulate MODEL POLICY --runs N --seed S --alpha A...`."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

import tailpath
from tailpath.cli.alphas import ManyAlphas, alphas_option
from tailpath.cli.common import LOOSE, complete_file, flags, policy_argument
from tailpath.cli.output import Output, fitted_table, reported
from tailpath.model.ssp import SSP
from tailpath.options import Flag
from tailpath.texts import number, pairs


@click.command(cls=ManyAlphas)
@click.argument("policy", shell_complete=complete_file)
@flags(
    Flag("runs", int, None, "Number of runs.", "N", least=1, required=True),
    Flag("seed", int, 0, "The same seed gives the same runs.", "S", least=0),
)
@alphas_option(required=True)
@flags(
    Flag(
        "confidence",
        click.FloatRange(0, 1, min_open=True, max_open=True),
        0.95,
        "Confidence of every interval.",
    ),
    LOOSE,
)
@reported
def command(
    ssp: SSP,
    source: str,
    policy: str,
    runs: int,
    seed: int,
    alphas: tuple[float, ...],
    confidence: float,
    loose: bool,
) -> Output:
    """Estimate mean, VaR and CVaR of a POLICY on a MODEL from random runs, with confidence
    intervals.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the
    least expected cost. The exact values come from `tailpath evaluate`.
    """
    costs = tailpath.simulate(ssp, policy_argument(policy, ssp, loose), runs, seed)
    estimates = [
        dataclasses.asdict(tailpath.estimate(costs, a, confidence, least=float(ssp.shift)))
        for a in alphas
    ]
    common = {
        key: estimates[0].pop(key)
        for key in ("confidence", "runs", "mean", "mean_interval", "unreached")
    }
    results = [
        {key: value for key, value in found.items() if key not in common} for found in estimates
    ]
    record = {"model": source, "policy": policy, "seed": seed, **common, "results": results}
    return record, simulation_text(record)


def simulation_text(record: dict[str, Any]) -> str:
    """What `simulate` tells, for people."""
    rows = [
        (r["alpha"], r["var"], span(r["var_interval"]), r["cvar"], span(r["cvar_interval"]))
        for r in record["results"]
    ]
    facts = [
        ("mean", f"{number(record['mean'])}, interval {span(record['mean_interval'])}"),
        ("never arrives", number(record["unreached"])),
        ("runs", f"{record['runs']} with seed {record['seed']}"),
        ("confidence", number(record["confidence"])),
    ]
    return (
        fitted_table(["alpha", "VaR", "interval", "CVaR", "interval"], rows) + "\n\n" + pairs(facts)
    )


def span(interval: tuple[float, float]) -> str:
    return f"{number(interval[0])} to {number(interval[1])}"
