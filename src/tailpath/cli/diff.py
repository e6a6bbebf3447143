"""`tailpath diff MODEL POLICY POLICY`: where two policies part ways, and what each choice costs
from there.
"""

from __future__ import annotations

from dataclasses import replace

import click

import tailpath
from tailpath.cli.common import ModelCommand, flags, policy_argument
from tailpath.cli.output import Output, reported, terminal_width
from tailpath.model.ssp import SSP
from tailpath.options import Flag


@click.command(cls=ModelCommand)
@click.argument("first")
@click.argument("second")
@flags(
    Flag("alpha", float, 0.05, "Mass of the worst tail, for the CVaR.", "A", mass=True),
    Flag("most", int, 20, "Places to show.", "N", least=1),
)
@reported
def command(ssp: SSP, source: str, first: str, second: str, alpha: float, most: int) -> Output:
    """Where the policies FIRST and SECOND first decide differently on a MODEL, how probable that
    is, and the cost of each from there.

    A policy is a file made by `tailpath solve --output`, or the word expected for the policy with
    the least expected cost.
    """
    found = tailpath.differences(
        ssp, policy_argument(first, ssp), policy_argument(second, ssp), alpha
    )
    record = {
        "model": source,
        "policies": [first, second],
        "alpha": alpha,
        "means": found.means,
        "cvars": found.cvars,
        "probability": found.probability,
        "partings": [part._asdict() for part in found[:most]],
    }
    named = replace(found, names=(f"first, {first}", f"second, {second}"))
    return record, named.as_text(terminal_width(), most)
