"""`tailpath info MODEL`, and `tailpath convert MODEL TARGET`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click
import numpy as np

import tailpath
from tailpath.analysis.reachability import (
    NATURES,
    almost_sure_states,
    almost_sure_under_nature,
    dead_ends,
    every_policy_is_proper,
)
from tailpath.cli.common import ModelCommand, out_file
from tailpath.cli.output import Output, reported, some
from tailpath.domains.register import find_domain
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.progress import progress_line
from tailpath.texts import count, name, number, pairs


@click.command(cls=ModelCommand)
@reported
def info_command(ssp: SSP, source: str) -> Output:
    """Show sizes, cost unit, start, goals, dead ends and branching of a MODEL, and whether every
    policy is proper.

    Examples
    --------
    tailpath info gridworld:14x16
    tailpath info roads.csv --start home --goals work --json
    """
    if isinstance(ssp, IntervalSSP):
        record = interval_record(ssp, source)
        return record, interval_text(record)
    record = info_record(ssp, source)
    return record, info_text(record)


def _common(ssp: SSP | IntervalSSP, source: str) -> dict[str, Any]:
    """What is told of every model."""
    return {
        "model": source,
        "states": ssp.n_states,
        "choices": ssp.n_choices,
        "outcomes": ssp.n_outcomes,
        "start": ssp.start,
        "goals": list(ssp.goals),
        "cost_unit": ssp.cost_unit,
        "notes": list(ssp.notes),
    }


def info_record(ssp: SSP, source: str) -> dict[str, Any]:
    def spread(counts: Any) -> dict[str, Any] | None:
        return (
            {"min": int(counts.min()), "mean": float(counts.mean()), "max": int(counts.max())}
            if len(counts)
            else None
        )

    almost_sure, _ = almost_sure_states(ssp)
    cost = ssp.outcome_cost
    return {
        **_common(ssp, source),
        "about": about(source),
        "dead_ends": [ssp.states[s] for s in np.flatnonzero(dead_ends(ssp)).tolist()],
        "start_surely_reaches_a_goal": bool(almost_sure[ssp.start_index]),
        "largest_probability_of_arriving": (
            1.0 if almost_sure[ssp.start_index] else tailpath.solve_arrival(ssp).probability()
        ),
        "every_policy_is_proper": every_policy_is_proper(ssp),
        "costs": (
            {
                "min": float(cost.min()),
                "least_paid": float(cost[cost > 0].min(initial=np.inf)),  # of what is not free
                "max": float(cost.max()),
                "free_outcomes": int((cost == 0).sum()),
            }
            if len(cost)
            else None
        ),
        "choices_per_state": spread(np.diff(ssp.state_choices)[~ssp.is_goal]),
        "outcomes_per_choice": spread(np.diff(ssp.choice_outcomes)),
        "grid": (
            {"rows": ssp.geometry.rows, "columns": ssp.geometry.columns} if ssp.geometry else None
        ),
    }


def about(source: str) -> str | None:
    """What a bundled problem is, in a sentence, if its domain says so."""
    scheme, colon, text = source.partition(":")
    domain = find_domain(scheme) if colon else None
    return domain.about(text) if domain is not None and domain.about is not None else None


def info_text(record: dict[str, Any]) -> str:
    goals, dead = record["goals"], record["dead_ends"]
    size = record["grid"]
    grid = f" on a grid of {size['rows']} rows and {size['columns']} columns" if size else ""
    per_state, per_choice = map(
        _spread_text, (record["choices_per_state"], record["outcomes_per_choice"])
    )
    rows = {
        "model": record["model"],
        "what it is": record["about"] or None,
        "states": f"{record['states']}{grid}",
        "choices": f"{record['choices']}; per state {per_state}",
        "outcomes": f"{record['outcomes']}; per choice {per_choice}",
        "costs": _costs_text(record["costs"]),
        "cost unit": _unit_text(record["cost_unit"]),
        "start": name(record["start"]),
        "goals": f"{len(goals)}: {some(goals)}",
        "dead ends": f"{len(dead)}: {some(dead)}" if dead else "none",
        "goal surely reached": "yes, by some policy",
    }
    if not record["start_surely_reaches_a_goal"]:
        most = number(record["largest_probability_of_arriving"])
        rows["goal surely reached"] = f"no: with probability {most} at most"
        rows["ways forward"] = "--give-up C, --given-arrival, --within N"
    rows["every policy proper"] = (
        "yes" if record["every_policy_is_proper"] else "no: some policy may never arrive"
    )
    return pairs((what, text) for what, text in rows.items() if text is not None)


def _unit_text(unit: Fraction | None) -> str:
    return str(unit or "none: the costs have no usable common unit")


def _spread_text(spread: dict[str, Any] | None) -> str:
    if not spread:
        return "none"
    if spread["min"] == spread["max"]:
        return f"{spread['min']}"
    return f"{spread['min']} to {spread['max']}, {number(spread['mean'], 3)} on average"


def _costs_text(costs: dict[str, Any] | None) -> str:
    parts = []
    if costs and (costs["max"] > 0 or costs["min"] < 0):
        ends = number(min(costs["min"], 0.0) or costs["least_paid"]), number(costs["max"])
        parts.append(" to ".join(dict.fromkeys(ends)))  # once, if all cost the same
    if costs and costs["free_outcomes"]:
        parts.append(f"{count(costs['free_outcomes'], 'outcome')} free")
    return ", ".join(parts) or "none"


# ---------------------------------------------------------------------- intervals


def interval_record(model: IntervalSSP, source: str) -> dict[str, Any]:
    is_open = np.repeat(model.rest > 0, np.diff(model.inside.choice_outcomes))
    width = (model.high - model.low)[is_open]
    start = model.inside.start_index
    return {
        **_common(model, source),
        "uncertain_choices": model.n_uncertain,
        "width": {"mean": float(width.mean()), "max": float(width.max())} if len(width) else None,
        "may_be_withheld": int(np.count_nonzero(model.low == 0)),
        "confidence": model.confidence,
        "start_surely_reaches_a_goal": {
            nature: bool(almost_sure_under_nature(model, side)[0][start])
            for nature, side in NATURES.items()
        },
    }


def interval_text(record: dict[str, Any]) -> str:
    width, confidence = record["width"], record["confidence"]
    choices, uncertain = record["choices"], record["uncertain_choices"]
    rows = {
        "model": record["model"],
        "states": str(record["states"]),
        "choices": f"{choices}, of which {uncertain} have intervals",
        "outcomes": f"{record['outcomes']}; {record['may_be_withheld']} may have probability 0",
        "intervals": "none",
        "confidence": None,
        "cost unit": _unit_text(record["cost_unit"]),
        "start": name(record["start"]),
        "goals": f"{len(record['goals'])}: {some(record['goals'])}",
        "goal surely reached": ", ".join(
            f"{'yes' if holds else 'no'} ({nature} nature)"
            for nature, holds in record["start_surely_reaches_a_goal"].items()
        ),
    }
    if width is not None:
        mean, most = number(width["mean"], 3), number(width["max"], 3)
        rows["intervals"] = f"{mean} wide on average, {most} at most"
    if confidence is not None:
        rows["confidence"] = f"{100 * confidence:g} % that all intervals hold"
    return pairs((what, text) for what, text in rows.items() if text is not None)


@click.command(cls=ModelCommand)
@click.argument("target", type=out_file())
@reported
def convert_command(ssp: SSP, source: str, target: str) -> Output:
    """Read a MODEL and write it to the file TARGET, whose suffix decides the format; an existing
    file is replaced.

    What the format of TARGET cannot hold is refused, and nothing is written.

    Examples
    --------
    tailpath convert river:5x5 river.npz
    tailpath convert roads.csv roads.drn --start home --goals work
    """
    with progress_line() as update:
        tailpath.write(
            ssp,
            target,
            progress=lambda outcomes, share: update(
                f"writing {target}: {share:.0%}, {outcomes} outcomes"
            ),
        )
    sizes = {"states": ssp.n_states, "choices": ssp.n_choices, "outcomes": ssp.n_outcomes}
    text = ", ".join(f"{size} {what}" for what, size in sizes.items())
    return {"model": source, "written": target, **sizes}, f"{target}: {text}"
