"""What the commands do with a model whose probabilities are intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import click
import numpy as np

import tailpath
from tailpath.analysis.nature import NATURES, sure_states
from tailpath.cli.common import name, number, pairs, read_policy, some, table
from tailpath.cli.pictures import save_picture
from tailpath.errors import OptionError
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.risk.measure import Limit, Measure

Told = tuple[dict[str, Any], str]
nature_option = click.option(
    "--nature",
    type=click.Choice(list(NATURES)),
    help="Of a model with intervals: who picks the probabilities inside them.  [default: adversarial]",
)


def refuse_nature(nature: str | None) -> None:
    """Only intervals have a nature."""
    if nature is not None:
        raise click.UsageError("--nature is for models with intervals, and all probabilities of this one are known")


def info(model: IntervalSSP, source: str) -> Told:
    """What `info` tells."""
    width = (model.high - model.low)[np.repeat(model.rest > 0, np.diff(model.inside.choice_outcomes))]
    start = model.inside.start_index
    record: dict[str, Any] = {
        "model": source,
        "states": model.n_states,
        "choices": model.n_choices,
        "outcomes": model.n_outcomes,
        "uncertain_choices": model.n_uncertain,
        "width": {"mean": float(width.mean()), "max": float(width.max())} if len(width) else None,
        "may_be_withheld": int(np.count_nonzero(model.low == 0)),
        "confidence": model.confidence,
        "start": model.start,
        "goals": list(model.goals),
        "cost_unit": model.cost_unit,
        "start_surely_reaches_a_goal": {nature: bool(sure_states(model, side)[0][start]) for nature, side in NATURES.items()},
        "notes": list(model.notes),
    }
    sure = record["start_surely_reaches_a_goal"]
    wide = f"{number(float(width.mean()), 3)} wide on average, {number(float(width.max()), 3)} at most" if len(width) else "none"
    rows = [
        ("model", source),
        ("states", str(model.n_states)),
        ("choices", f"{model.n_choices}, of which {model.n_uncertain} have intervals"),
        ("outcomes", f"{model.n_outcomes}; {record['may_be_withheld']} may have probability 0"),
        ("intervals", wide),
        *([("confidence", f"{100 * model.confidence:g} % that all intervals hold")] if model.confidence is not None else []),
        ("cost unit", str(model.cost_unit) if model.cost_unit is not None else "none: the costs have no usable common unit"),
        ("start", name(model.start)),
        ("goals", f"{len(model.goals)}: {some(list(model.goals))}"),
        ("goal surely reached", ", ".join(f"{'yes' if holds else 'no'} ({nature} nature)" for nature, holds in sure.items())),
    ]
    return record, pairs(rows)


def solve(
    model: IntervalSSP,
    source: str,
    objective: Measure | None,
    limits: Sequence[Limit],
    alpha: float | None,
    method: str,
    nature: str | None,
) -> tuple[dict[str, Any], str, Any]:
    """What `solve` tells, and the policy."""
    begin, nature = perf_counter(), nature or "adversarial"
    if method not in ("exact", "expected"):
        raise OptionError(f"--method {method} needs known probabilities; models with intervals are solved by exact and expected")
    if objective is None:
        if method == "exact" and alpha is None:
            raise click.UsageError("--method exact needs --alpha, the mass of the worst tail; for the mean alone use --method expected")
        objective = tailpath.Mean() if method == "expected" or alpha is None else tailpath.CVaR(alpha)
    found = tailpath.solve(model, objective, limits, nature=nature)
    seconds = perf_counter() - begin
    band = tailpath.evaluate(model, found.policy, objective.tail[1] if objective.tail is not None else 1.0)
    record: dict[str, Any] = {
        "model": source,
        "objective": str(objective),
        "nature": nature,
        "value": found.value,
        "bounds": list(found.bounds),
        "mean": list(band.mean),
        "seconds": seconds,
    }
    rows = {
        f"least {objective}": f"{found.value:.10g} ({nature} nature)",
        "verified bounds": f"{found.bounds[0]:.15g} to {found.bounds[1]:.15g}",
        "mean of the policy": _span(band.mean),
    }
    text = pairs([*rows.items(), ("time", f"{seconds:.3g} s")])
    if objective.tail is not None and objective.tail[0] == 1:
        best = tailpath.solve_cvar_exact(model, objective.tail[1], nature=nature)
        if hasattr(best, "words"):
            record["words"] = best.words(objective.tail[1])
            text += f"\n{record['words']}"
    return record, text, found.policy


def evaluate(model: IntervalSSP, source: str, policy: str, alphas: Sequence[float], loose: bool, picture: str | None) -> Told:
    """What `evaluate` tells."""
    band = tailpath.evaluate(model, read_policy(policy, model, loose), min(alphas))
    results: list[dict[str, Any]] = [
        {"alpha": a, "var": list(band.var(a)), "cvar": list(band.cvar(a)), "bounds": list(band.bounds(a))} for a in alphas
    ]
    record = {"model": source, "policy": policy, "results": results, "mean": list(band.mean), "mean_bounds": list(band.mean_bounds)}
    rows = [(r["alpha"], *r["var"], *r["cvar"]) for r in results]
    text = table(["alpha", "least VaR", "most VaR", "least CVaR", "most CVaR"], rows, digits=10)
    if picture is not None:
        save_picture(band.plot(), picture)
    facts = [("mean", _span(band.mean))]
    if all(map(math.isfinite, band.mean)) and band.nature:
        worst = band.nature[0]
        facts.append(("hurts most", f"{name(worst.state)}, {name(worst.action)} -> {name(worst.next_state)}: {number(worst.worst, 4)}"))
    return record, text + "\n\n" + pairs(facts)


def compare(model: IntervalSSP, source: str, alphas: Sequence[float], files: Sequence[str], loose: bool) -> Told:
    """What `compare` tells: policies planned on the nominal model and on the intervals, and what each may really cost."""
    least, nominal = min(alphas), model.nominal()
    plain = tailpath.solve_cvar_exact(nominal, least)
    found = {nature: tailpath.solve_cvar_exact(model, least, nature=nature) for nature in NATURES}
    own = {file: read_policy(file, model, loose) for file in files}
    lines, rows = [], []
    for alpha in alphas:
        plans: list[tuple[str, float | None, Any]] = [("nominal", plain.cvar(alpha), _on(model, nominal, plain.policy(alpha)))]
        plans += [(nature, each.cvar(alpha), each.policy(alpha)) for nature, each in found.items()]
        plans += [(file, None, policy) for file, policy in own.items()]
        for label, predicted, policy in plans:
            band = tailpath.evaluate(model, policy, alpha)
            low, high = band.cvar(alpha)
            lines.append({"alpha": alpha, "policy": label, "predicted": predicted, "least": low, "most": high, "mean": list(band.mean)})
            rows.append((alpha, label, "" if predicted is None else number(predicted), low, high, *band.mean))
    headers = ["alpha", "planned for", "predicted", "least CVaR", "most CVaR", "least mean", "most mean"]
    explained = "predicted: what the plan expects; least and most: what the policy may really cost, over all that intervals allow"
    return {"model": source, "rows": lines}, f"CVaR of {source}\n\n{table(headers, rows)}\n\n{explained}"


def _on(model: IntervalSSP, nominal: SSP, policy: Any) -> Any:
    """A policy for the nominal model on the model with intervals, which may have outcomes that were never seen."""
    inside = model.inside
    if nominal is inside:
        return policy
    return tailpath.BudgetPolicy(
        inside, policy.budget, policy.first, policy.from_budget, policy.choice, policy.risk_neutral, inside.outcome_level, inside.cost_unit
    )


def _span(pair: Sequence[float]) -> str:
    return f"{number(pair[0], 10)} to {number(pair[1], 10)}"
