"""`tailpath diff MODEL POLICY POLICY`: where two policies part ways, and what each choice costs from there."""

from __future__ import annotations

from typing import Any

import click

import tailpath
from tailpath.cli.common import alpha as alpha_type
from tailpath.cli.common import json_option, name, number, read_policy, show, table, takes_model
from tailpath.model.ssp import SSP
from tailpath.policies.words import decision_in_words
from tailpath.show.differences import Differences, Parting


@click.command()
@takes_model
@click.argument("first")
@click.argument("second")
@click.option("--alpha", type=alpha_type, default=0.05, show_default=True, metavar="A", help="Mass of the worst tail, for the CVaR.")
@click.option("--most", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Places to show.")
@json_option
def command(ssp: SSP, source: str, first: str, second: str, alpha: float, most: int, as_json: bool) -> None:
    """Where the policies FIRST and SECOND first decide differently on a MODEL, how probable that is, and the cost of each from there.

    A policy is a file made by `tailpath solve --output`, or the word expected for the policy with the least expected cost.
    """
    found = tailpath.differences(ssp, read_policy(first, ssp), read_policy(second, ssp), alpha)
    record = {
        "model": source,
        "policies": [first, second],
        "alpha": alpha,
        "means": found.means,
        "cvars": found.cvars,
        "probability": found.probability,
        "partings": [part._asdict() for part in found[:most]],
    }
    show(record, _as_text(found, (first, second), most), as_json)


def _as_text(found: Differences, names: tuple[str, str], most: int) -> str:
    at = number(found.alpha)
    totals = [[f"{which}, {name_}", *values] for which, name_, *values in zip(("first", "second"), names, found.means, found.cvars)]
    parts = [table(["", "mean", f"CVaR at {at}"], totals)]
    if not len(found):
        return "\n\n".join([*parts, "the two policies never decide differently"])
    headers = ["state", "probability", "policy", "action", "memory", "mean to go", f"CVaR to go at {at}"]
    rows = [row for part in found[:most] for row in _rows(part)]
    parts += [f"they part with probability {number(found.probability)}", table(headers, rows)]
    if len(found) > most:
        parts.append(f"the {most} likeliest of {len(found)} places; --most shows more")
    return "\n\n".join(parts)


def _rows(part: Parting) -> list[list[Any]]:
    """Two lines: what the first does, and what the second does."""
    where = [name(part.state), number(part.probability)]
    return [
        [*where, "first", decision_in_words(part.first_action), part.first_memory, part.first_mean, part.first_cvar],
        ["", "", "second", decision_in_words(part.second_action), part.second_memory, part.second_mean, part.second_cvar],
    ]
