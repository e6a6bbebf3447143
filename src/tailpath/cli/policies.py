"""What a POLICY costs on a MODEL, by `tailpath evaluate` exactly and by `simulate` from random
runs; and what it does: `show` (decisions in words), `diff` (where two policies part), `explain`
(the worst runs, and what is to blame).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import click

import tailpath
from tailpath.analysis.reachability import WAYS
from tailpath.cli.application import print_message
from tailpath.cli.common import (
    ALPHA,
    Decorator,
    ManyAlphas,
    ModelCommand,
    WholeNumber,
    given_policy,
    out_file,
    picture,
    policy_argument,
    several_alphas,
    under,
)
from tailpath.cli.output import (
    Output,
    fitted_table,
    reported,
    save_picture,
    terminal_width,
    with_gains,
)
from tailpath.errors import OptionError
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.progress import progress_line
from tailpath.show.decisions import decision_in_words, decision_table
from tailpath.texts import Table, count, name, number, pairs

#: The alpha of the numbers beside decisions.
ONE_ALPHA = click.option("--alpha", type=ALPHA, default=0.05, help="Mass of the worst tail.")

#: What `simulate` reports of all runs, and for each alpha.
OF_ALL = ("confidence", "runs", "mean", "mean_interval", "unreached")
OF_EACH = ("alpha", "var", "var_interval", "cvar", "cvar_interval")


def most_option(default: int, text: str) -> Decorator:
    return click.option("--most", type=WholeNumber(1), default=default, help=text)


@click.command(cls=ManyAlphas)
@given_policy
@several_alphas()
@click.option(
    "--from", "state", help="Start from this state, written as `tailpath info` prints it."
)
@under(
    "How it is computed",
    click.option("--engine", type=click.Choice(("auto", "lattice", "queue")), default="auto"),
    click.option("--heuristic", type=click.Choice(("min", "zero")), default="min"),
    click.option(
        "--max-nodes",
        type=WholeNumber(1),
        help="Stop after N pairs of state and cost, and report the bounds.",
    ),
)
@under("Output", click.option("--plot", type=picture, help="Draw the distribution."))
@reported
def evaluate_command(
    ssp: SSP,
    source: str,
    policy: str,
    alphas: tuple[float, ...],
    state: str | None,
    gamma: Fraction | None,
    plot: str | None,
    **options: Any,
) -> Output:
    """Compute the exact mean, VaR and CVaR of a POLICY on a MODEL, with rigorous bounds.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the
    least expected cost. Ctrl-C ends the search with the bounds reached so far.

    Examples
    --------
    tailpath evaluate river:5x5 policy.json --alpha 0.05 0.01
    tailpath evaluate river:5x5 expected --alpha 0.05 --plot costs.png
    """
    followed, factor = policy_argument(policy, ssp), float(gamma or 1)
    least, facts = min(alphas), {}
    has_intervals = isinstance(ssp, IntervalSSP)
    if has_intervals:
        plain = gamma is None and state is None
        if not plain or options["engine"] != "auto" or options["heuristic"] != "min":
            raise OptionError(
                "--gamma, --from, --engine and --heuristic do not apply to models with intervals"
            )
        costs: Any = tailpath.evaluate(ssp, followed, least)
        text = band_text(costs, alphas)
    else:
        options |= {"gamma": factor, "start": None if state is None else named_state(ssp, state)}
        with progress_line() as update:
            costs = tailpath.evaluate(
                ssp,
                followed,
                least,
                progress=lambda expanded, arrived: update(
                    f"{arrived:.9f} of the probability has arrived, {expanded} pairs expanded"
                ),
                **options,
            )
        if costs.stuck:
            print_message(
                "note",
                f"the goal is missed with probability {number(costs.unreached)}; runs get stuck in,"
                f" for example, {costs.stuck}; {WAYS}",
            )
        facts = {key: getattr(costs, key) for key in ("std", "unreached", "engine", "expanded")}
        text = with_gains(costs_text(costs, alphas), ssp, costs.mean, costs, least)
    if plot is not None:
        save_picture(costs.plot(*[] if has_intervals else [least]), plot)
    record = {
        "model": source,
        "policy": policy,
        **({} if has_intervals else {"gamma": factor}),
        "results": [
            {"alpha": a, "var": costs.var(a), "cvar": costs.cvar(a), "bounds": costs.bounds(a)}
            for a in alphas
        ],
        "mean": costs.mean,
        "mean_bounds": costs.mean_bounds,
        **facts,
    }
    return record, text


def named_state(ssp: SSP, text: str) -> Any:
    found = next((state for state in ssp.states if name(state) == text), None)
    if found is None:
        raise OptionError(f"the model has no state {text!r}; its start is {name(ssp.start)}")
    return found


def costs_text(costs: tailpath.CostDistribution, alphas: Sequence[float]) -> str:
    rows = [
        (a, costs.var(a), costs.cvar(a), *(number(bound, 15) for bound in costs.bounds(a)))
        for a in alphas
    ]
    facts = {
        "mean": number(costs.mean, 10),
        "standard deviation": number(costs.std, 10),
        "never arrives": number(costs.unreached),
        "engine": f"{costs.engine}, {count(costs.expanded, 'pair')} of state and cost expanded",
    }
    headers = ["alpha", "VaR", "CVaR", "CVaR at least", "CVaR at most"]
    return fitted_table(headers, rows, digits=10) + "\n\n" + pairs(facts.items())


def band_text(band: tailpath.CostBand, alphas: Sequence[float]) -> str:
    rows = [(a, *band.var(a), *band.cvar(a)) for a in alphas]
    facts = {"mean": " to ".join(number(end, 10) for end in band.mean)}
    if all(map(math.isfinite, band.mean)) and band.nature:
        worst = band.nature[0]
        facts["hurts most"] = (
            f"{name(worst.state)}, {name(worst.action)} -> {name(worst.next_state)}:"
            f" {number(worst.worst, 4)}"
        )
    headers = ["alpha", "least VaR", "most VaR", "least CVaR", "most CVaR"]
    return fitted_table(headers, rows, digits=10) + "\n\n" + pairs(facts.items())


@click.command(cls=ManyAlphas)
@given_policy
@several_alphas()
@click.option("--runs", type=WholeNumber(1), required=True, help="Number of runs.")
@click.option("--seed", type=WholeNumber(0), default=0, help="The same seed gives the same runs.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Confidence of every interval.",
)
@reported
def simulate_command(
    ssp: SSP,
    source: str,
    policy: str,
    runs: int,
    seed: int,
    alphas: tuple[float, ...],
    confidence: float,
) -> Output:
    """Estimate mean, VaR and CVaR of a POLICY on a MODEL from random runs, with confidence
    intervals.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the
    least expected cost. The exact values come from `tailpath evaluate`.

    Examples
    --------
    tailpath simulate river:5x5 policy.json --runs 10000 --alpha 0.05
    tailpath simulate river:5x5 expected --runs 1000 --seed 7 --alpha 0.1 --json
    """
    costs = tailpath.simulate(ssp, policy_argument(policy, ssp), runs, seed)
    found = [tailpath.estimate(costs, a, confidence, least=float(ssp.shift)) for a in alphas]
    record = {
        "model": source,
        "policy": policy,
        "seed": seed,
        **{key: getattr(found[0], key) for key in OF_ALL},
        "results": [{key: getattr(each, key) for key in OF_EACH} for each in found],
    }
    rows = [(e.alpha, e.var, span(e.var_interval), e.cvar, span(e.cvar_interval)) for e in found]
    facts = [
        ("mean", f"{number(found[0].mean)}, interval {span(found[0].mean_interval)}"),
        ("never arrives", number(found[0].unreached)),
        ("runs", f"{runs} with seed {seed}"),
        ("confidence", number(confidence)),
    ]
    table = fitted_table(["alpha", "VaR", "interval", "CVaR", "interval"], rows)
    return record, f"{table}\n\n{pairs(facts)}"


def span(interval: tuple[float, float]) -> str:
    return f"{number(interval[0])} to {number(interval[1])}"


@click.command(cls=ModelCommand)
@given_policy
@ONE_ALPHA
@most_option(40, "Rows to show.")
@click.option("--state", metavar="STATE", help="Show only the rows of this state.")
@click.option(
    "-o",
    "--output",
    type=out_file(".csv", ".mmd", ".dot"),
    help="Write the rows as a table or a flow chart (Mermaid, Graphviz).",
)
@reported
def show_command(
    ssp: SSP,
    source: str,
    policy: str,
    alpha: float,
    most: int,
    state: str | None,
    output: str | None,
) -> Output:
    """Show what a POLICY does on a MODEL: state, memory, action, how often a run visits them, and
    the cost from there.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the
    least expected cost. The most visited rows come first; budgets left that lead to the same
    decision share a row.

    Examples
    --------
    tailpath show river:5x5 policy.json
    tailpath show river:5x5 expected --state '(2, 1)' --output plan.mmd
    """
    with progress_line() as update:
        rows = decision_table(
            ssp,
            policy_argument(policy, ssp),
            alpha,
            most + 1,
            lambda levels, share: update(f"costs up to {count(levels, 'unit')}, {share:.0%}"),
            None if state is None else named_state(ssp, state),
        )
    if not rows and state is not None:
        raise click.ClickException(f"the policy never reaches a state named {state!r}")
    if output is not None:
        rows.write(output)
    shown = rows[:most]
    headers = ("state", "memory", "action", "visits", "mean to go")
    cells = [
        (name(row.state), row.memory, decision_in_words(row.action), row.visits, row.mean, row.cvar)
        for row in shown
    ]
    table = Table([*headers, f"CVaR to go at {number(alpha)}"], cells)
    text = table.in_use().as_text(terminal_width())
    if len(rows) > most:
        text += f"\n\nthe {most} most visited rows; --most shows more"
    record = {
        "model": source,
        "policy": policy,
        "alpha": alpha,
        "complete": len(rows) <= most,
        "simulated_runs": rows.estimated,
        "rows": [row._asdict() for row in shown],
    }
    return record, text


@click.command(cls=ModelCommand)
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@ONE_ALPHA
@most_option(20, "Places to show.")
@reported
def diff_command(ssp: SSP, source: str, first: str, second: str, alpha: float, most: int) -> Output:
    """Show where the policies FIRST and SECOND part ways on a MODEL, with what probability, and
    what each costs from there.

    A policy is a file made by `tailpath solve --output`, or the word expected for the policy with
    the least expected cost.

    Examples
    --------
    tailpath diff river:5x5 expected policy.json
    tailpath diff river:5x5 expected policy.json --alpha 0.01 --most 5
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


@click.command(cls=ModelCommand)
@given_policy
@click.option("--alpha", type=ALPHA, required=True, help="Mass of the worst tail.")
@click.option(
    "--runs",
    type=WholeNumber(0),
    default=3,
    help="How many of the most probable runs beyond VaR to show.",
)
@most_option(10, "How many outcomes to show.")
@click.option("--steps", is_flag=True, help="Show all steps of every run.")
@reported
def explain_command(
    ssp: SSP, source: str, policy: str, alpha: float, runs: int, most: int, steps: bool
) -> Output:
    """Show the most probable runs of a POLICY that cost more than VaR, with exact numbers, and what
    causes the excess.

    POLICY is a file made by `tailpath solve --output`, or the word expected for the policy with the
    least expected cost.

    Examples
    --------
    tailpath explain river:5x5 policy.json --alpha 0.05
    tailpath explain river:5x5 expected --alpha 0.01 --runs 1
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
        "typical": None if found.typical is None else found.typical._summary,
        "blame": [row._asdict() for row in found.blame],
    }
    every = [run.as_text(terminal_width(), len(run)) for run in found] if steps else []
    return record, "\n\n".join([found.as_text(terminal_width(), most), *every])
