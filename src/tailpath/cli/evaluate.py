"""`tailpath evaluate MODEL POLICY --alpha A...`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

import tailpath
from tailpath.analysis.reachability import WAYS
from tailpath.cli.alphas import ManyAlphas, alphas_option
from tailpath.cli.application import INTERRUPTED, print_message
from tailpath.cli.common import LOOSE, complete_file, flags, out_file, policy_argument
from tailpath.cli.output import PICTURES, fitted_table, json_option, save_picture, show, with_gains
from tailpath.errors import EvaluationInterrupted, OptionError
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import Flag
from tailpath.pictures.progress import progress_line
from tailpath.texts import count, name, number, pairs


@click.command(cls=ManyAlphas)
@click.argument("policy", shell_complete=complete_file)
@alphas_option(required=True)
@flags(
    Flag(
        "engine",
        str,
        "auto",
        "How to search.",
        choices=(
            "auto",
            "lattice",
            "queue",
        ),
    ),
    Flag(
        "heuristic",
        str,
        "min",
        "Lower bound on the cost to go.",
        choices=(
            "min",
            "zero",
        ),
    ),
    Flag(
        "state",
        str,
        None,
        "Start from this state, by its name as `tailpath info` writes it.",
        "STATE",
        flag="--from",
    ),
    Flag(
        "max_nodes",
        int,
        None,
        "Give up after N expanded pairs, with the bounds reached so far.",
        "N",
        least=1,
    ),
    Flag(
        "picture",
        out_file(*PICTURES),
        None,
        "Draw the distribution, marked at the smallest alpha (.png, .pdf, .svg).",
        "FILE",
        flag="--plot",
    ),
    LOOSE,
)
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
    followed, factor = policy_argument(policy, ssp, loose), float(gamma or 1)
    has_intervals, facts = isinstance(ssp, IntervalSSP), {}
    if has_intervals:
        plain = gamma is None and state is None
        if not plain or options["engine"] != "auto" or options["heuristic"] != "min":
            raise OptionError(
                "--gamma, --from, --engine and --heuristic are not for models with intervals"
            )
        costs: Any = tailpath.evaluate(ssp, followed, min(alphas))
        text = band_text(costs, alphas)
    else:
        try:
            costs = _evaluated(ssp, followed, min(alphas), state, factor, options)
        except EvaluationInterrupted as interrupt:
            print_message("error", str(interrupt))
            return INTERRUPTED
        facts = {key: getattr(costs, key) for key in ("std", "unreached", "engine", "expanded")}
        text = with_gains(costs_text(costs, alphas), ssp, costs.mean, costs, min(alphas))
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
    }
    show({**record, **facts}, text, as_json)
    if picture is not None:
        save_picture(costs.plot(*[] if has_intervals else [min(alphas)]), picture)
    return 0


def _evaluated(
    ssp: SSP,
    policy: tailpath.Policy,
    alpha: float,
    state: str | None,
    gamma: float,
    options: dict[str, Any],
) -> tailpath.CostDistribution:
    """The costs of a policy; where it may miss the goal, a note says where runs get stuck."""
    with progress_line() as update:
        costs = tailpath.evaluate(
            ssp,
            policy,
            alpha,
            start=None if state is None else named_state(ssp, state),
            gamma=gamma,
            progress=lambda expanded, arrived: update(
                f"{arrived:.9f} of the probability has arrived, {expanded} pairs expanded"
            ),
            **options,
        )
    if costs.stuck:
        print_message(
            "note",
            f"the goal is missed with probability {number(costs.unreached)}; runs get stuck in, for"
            f" example, {costs.stuck}; {WAYS}",
        )
    return costs


def named_state(ssp: SSP, text: str) -> Any:
    """The state that is written like this."""
    found = next((state for state in ssp.states if name(state) == text), None)
    if found is None:
        raise OptionError(f"the model has no state {text!r}; its start is {name(ssp.start)}")
    return found


def costs_text(costs: tailpath.CostDistribution, alphas: Sequence[float]) -> str:
    """What `evaluate` tells, for people."""
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
    """The same for a model with intervals."""
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
