"""`tailpath evaluate MODEL POLICY --alpha A...`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

import tailpath
from tailpath.analysis.reachability import WAYS
from tailpath.cli import intervals
from tailpath.cli.alphas import ManyAlphas, alphas_option
from tailpath.cli.application import INTERRUPTED, print_message
from tailpath.cli.common import complete_file, loose_option, out_file, policy_argument, takes_model
from tailpath.cli.output import PICTURES, fitted_table, json_option, save_picture, show, with_gains
from tailpath.errors import EvaluationInterrupted, OptionError
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.pictures.progress import progress_line
from tailpath.texts import name, number, pairs


@click.command(cls=ManyAlphas)
@takes_model
@click.argument("policy", shell_complete=complete_file)
@alphas_option(required=True)
@click.option(
    "--engine",
    type=click.Choice(["auto", "lattice", "queue"]),
    default="auto",
    show_default=True,
    help="How to search.",
)
@click.option(
    "--heuristic",
    type=click.Choice(["min", "zero"]),
    default="min",
    show_default=True,
    help="Lower bound on the cost to go.",
)
@click.option(
    "--from",
    "state",
    metavar="STATE",
    help="Start from this state, by its name as `tailpath info` writes it.",
)
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Give up after N expanded pairs, with the bounds reached so far.",
)
@click.option(
    "--plot",
    "picture",
    type=out_file(*PICTURES),
    metavar="FILE",
    help="Draw the distribution, marked at the smallest alpha (.png, .pdf, .svg).",
)
@loose_option
@json_option
def command(
    ssp: SSP,
    source: str,
    policy: str,
    alphas: tuple[float, ...],
    state: str | None,
    gamma: Fraction | None,
    picture: str | None,
    loose: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """The exact mean, VaR and CVaR of a POLICY on a MODEL, with rigorous bounds.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the
    least expected cost. Ctrl-C ends the search with the bounds reached so far.
    """
    if isinstance(ssp, IntervalSSP):
        if (
            gamma is not None
            or state is not None
            or options["engine"] != "auto"
            or options["heuristic"] != "min"
        ):
            raise OptionError(
                "--gamma, --from, --engine and --heuristic are not for models with intervals"
            )
        show(*intervals.evaluate_intervals(ssp, source, policy, alphas, loose, picture), as_json)
        return 0
    followed, factor = policy_argument(policy, ssp, loose), float(gamma or 1)
    try:
        with progress_line() as update:
            costs = tailpath.evaluate(
                ssp,
                followed,
                min(alphas),
                start=None if state is None else named_state(ssp, state),
                gamma=factor,
                progress=lambda expanded, arrived: update(
                    f"{arrived:.9f} of the probability has arrived, {expanded} pairs expanded"
                ),
                **options,
            )
    except EvaluationInterrupted as interrupt:
        print_message("error", str(interrupt))
        return INTERRUPTED
    if costs.stuck:
        print_message(
            "note",
            f"the goal is missed with probability {number(costs.unreached)}; runs get stuck in, for"
            f" example, {costs.stuck}; {WAYS}",
        )
    record = evaluation_record(costs, alphas)
    show(
        {"model": source, "policy": policy, "gamma": factor, **record},
        with_gains(evaluation_text(record), ssp, costs.mean, costs, min(alphas)),
        as_json,
    )
    if picture is not None:
        save_picture(costs.plot(min(alphas)), picture)
    return 0


def named_state(ssp: SSP, text: str) -> Any:
    """The state that is written like this."""
    found = next((state for state in ssp.states if name(state) == text), None)
    if found is None:
        raise OptionError(f"the model has no state {text!r}; its start is {name(ssp.start)}")
    return found


def evaluation_record(
    costs: tailpath.CostDistribution, alphas: tuple[float, ...]
) -> dict[str, Any]:
    """What `evaluate` tells, for programs."""
    return {
        "results": [
            {
                "alpha": a,
                "var": costs.var(a),
                "cvar": costs.cvar(a),
                "bounds": list(costs.bounds(a)),
            }
            for a in alphas
        ],
        "mean": costs.mean,
        "mean_bounds": list(costs.mean_bounds),
        "std": costs.std,
        "unreached": costs.unreached,
        "engine": costs.engine,
        "expanded": costs.expanded,
    }


def evaluation_text(record: dict[str, Any]) -> str:
    """What `evaluate` tells, for people."""
    rows = [
        (r["alpha"], r["var"], r["cvar"], *(number(bound, 15) for bound in r["bounds"]))
        for r in record["results"]
    ]
    facts = [
        ("mean", number(record["mean"], 10)),
        ("standard deviation", number(record["std"], 10)),
        ("never arrives", number(record["unreached"])),
        ("engine", f"{record['engine']}, {record['expanded']} pairs of state and cost expanded"),
    ]
    return (
        fitted_table(["alpha", "VaR", "CVaR", "CVaR at least", "CVaR at most"], rows, digits=10)
        + "\n\n"
        + pairs(facts)
    )
