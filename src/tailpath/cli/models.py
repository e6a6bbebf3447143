"""`tailpath info MODEL`, and `tailpath convert MODEL TARGET`."""

from __future__ import annotations

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
    facts, rows = _with_intervals(ssp) if isinstance(ssp, IntervalSSP) else _certain(ssp)
    scheme, colon, text = source.partition(":")
    domain = find_domain(scheme) if colon else None
    about = domain.about(text) if domain is not None and domain.about is not None else None
    goals = list(ssp.goals)
    record = {
        "model": source,
        "states": ssp.n_states,
        "choices": ssp.n_choices,
        "outcomes": ssp.n_outcomes,
        "start": ssp.start,
        "goals": goals,
        "cost_unit": ssp.cost_unit,
        "notes": list(ssp.notes),
        "about": about,
        **facts,
    }
    everything = {
        "model": source,
        "what it is": about,
        **rows,
        "cost unit": str(ssp.cost_unit or "none: the costs have no usable common unit"),
        "start": name(ssp.start),
        "goals": f"{len(goals)}: {some(goals)}",
    }
    return record, pairs((what, text) for what, text in everything.items() if text)


#: A record for programs, and rows for people.
Facts = tuple[dict[str, Any], dict[str, str]]


def _certain(ssp: SSP) -> Facts:
    almost_sure, _ = almost_sure_states(ssp)
    sure, proper = bool(almost_sure[ssp.start_index]), every_policy_is_proper(ssp)
    arrival = 1.0 if sure else tailpath.solve_arrival(ssp).probability()
    dead = [ssp.states[s] for s in np.flatnonzero(dead_ends(ssp)).tolist()]
    costs, cost_text = _costs(ssp.outcome_cost)
    per_state, state_text = _spread(np.diff(ssp.state_choices)[~ssp.is_goal])
    per_choice, choice_text = _spread(np.diff(ssp.choice_outcomes))
    facts = {
        "dead_ends": dead,
        "start_surely_reaches_a_goal": sure,
        "largest_probability_of_arriving": arrival,
        "every_policy_is_proper": proper,
        "costs": costs,
        "choices_per_state": per_state,
        "outcomes_per_choice": per_choice,
        "grid": None,
    }
    grid = ""
    if ssp.geometry is not None:
        size = {"rows": ssp.geometry.rows, "columns": ssp.geometry.columns}
        facts["grid"] = size
        grid = f" on a grid of {size['rows']} rows and {size['columns']} columns"
    rows = {
        "states": f"{ssp.n_states}{grid}",
        "choices": f"{ssp.n_choices}; per state {state_text}",
        "outcomes": f"{ssp.n_outcomes}; per choice {choice_text}",
        "costs": cost_text,
        "dead ends": f"{len(dead)}: {some(dead)}" if dead else "none",
        "goal is certain": "yes, by some policy",
    }
    if not sure:
        rows["goal is certain"] = f"no: with probability {number(arrival)} at most"
        rows["ways forward"] = "--give-up C, --given-arrival, --within N"
    rows["every policy proper"] = "yes" if proper else "no: some policy may never arrive"
    return facts, rows


def _spread(counts: Any) -> tuple[dict[str, Any] | None, str]:
    """The least, the mean and the largest of some numbers."""
    if not len(counts):
        return None, "none"
    low, mean, high = int(counts.min()), float(counts.mean()), int(counts.max())
    text = f"{low}" if low == high else f"{low} to {high}, {number(mean, 3)} on average"
    return {"min": low, "mean": mean, "max": high}, text


def _costs(cost: Any) -> tuple[dict[str, Any] | None, str]:
    if not len(cost):
        return None, "none"
    low, high, free = float(cost.min()), float(cost.max()), int((cost == 0).sum())
    least = float(cost[cost > 0].min(initial=np.inf))  # of what is not free
    parts = []
    if high > 0 or low < 0:
        ends = number(min(low, 0.0) or least), number(high)
        parts.append(" to ".join(dict.fromkeys(ends)))  # once, if all cost the same
    parts += [f"{count(free, 'outcome')} free"] if free else []
    record = {"min": low, "least_paid": least, "max": high, "free_outcomes": free}
    return record, ", ".join(parts) or "none"


def _with_intervals(model: IntervalSSP) -> Facts:
    is_open = np.repeat(model.rest > 0, np.diff(model.inside.choice_outcomes))
    width, confidence = (model.high - model.low)[is_open], model.confidence
    withheld = int(np.count_nonzero(model.low == 0))
    sure = {
        nature: bool(almost_sure_under_nature(model, side)[0][model.inside.start_index])
        for nature, side in NATURES.items()
    }
    facts = {
        "uncertain_choices": model.n_uncertain,
        "width": {"mean": float(width.mean()), "max": float(width.max())} if len(width) else None,
        "may_be_withheld": withheld,
        "confidence": confidence,
        "start_surely_reaches_a_goal": sure,
    }
    answers = (f"{'yes' if holds else 'no'} ({nature} nature)" for nature, holds in sure.items())
    rows = {
        "states": str(model.n_states),
        "choices": f"{model.n_choices}, of which {model.n_uncertain} have intervals",
        "outcomes": f"{model.n_outcomes}; {withheld} may have probability 0",
        "intervals": "none",
        "goal is certain": ", ".join(answers),
    }
    if len(width):
        mean, most = number(float(width.mean()), 3), number(float(width.max()), 3)
        rows["intervals"] = f"{mean} wide on average, {most} at most"
    if confidence is not None:
        rows["confidence"] = f"{100 * confidence:g} % that all intervals hold"
    return facts, rows


@click.command(cls=ModelCommand)
@click.argument("target", type=out_file())
@reported
def convert_command(ssp: SSP, source: str, target: str) -> Output:
    """Read a MODEL and write it to the file TARGET, whose suffix decides the format; an existing
    file is replaced.

    If the format of TARGET cannot hold the model, nothing is written.

    Examples
    --------
    tailpath convert river:5x5 river.npz
    tailpath convert roads.csv roads.drn --start home --goals work
    """
    tailpath.write(ssp, target)
    sizes = {"states": ssp.n_states, "choices": ssp.n_choices, "outcomes": ssp.n_outcomes}
    text = ", ".join(f"{size} {what}" for what, size in sizes.items())
    return {"model": source, "written": target, **sizes}, f"{target}: {text}"
