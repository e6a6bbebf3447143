"""What the commands do with a model whose probabilities are intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import click

import tailpath
from tailpath.analysis.nature import NATURES
from tailpath.cli.common import policy_argument
from tailpath.cli.output import Output, fitted_table, save_picture
from tailpath.cli.planning import require_alpha, solved_by
from tailpath.errors import OptionError
from tailpath.kernels.jit import compiling_seconds
from tailpath.methods import Method
from tailpath.model.interval import IntervalSSP
from tailpath.risk.measure import Limit, Measure
from tailpath.show.plans import planned_lines
from tailpath.texts import name, number, pairs

nature_option = click.option(
    "--nature",
    type=click.Choice(list(NATURES)),
    help=(
        "Of a model with intervals: who picks the probabilities inside them.  [default:"
        " adversarial]"
    ),
)


def refuse_nature(nature: str | None) -> None:
    """Only intervals have a nature."""
    if nature is not None:
        raise click.UsageError(
            "--nature is for models with intervals, and all probabilities of this one are known"
        )


def objective_of(method: Method, alpha: float | None) -> Measure:
    """What a method minimises, for a model with intervals."""
    if method.objective is None:
        able = solved_by(lambda method: method.objective)
        raise OptionError(
            f"--method {method.name} needs known probabilities; models with intervals are solved by"
            f" {able}"
        )
    require_alpha(method, alpha)
    return method.objective(1.0 if alpha is None else alpha)


def solve_intervals(
    model: IntervalSSP,
    objective: Measure,
    limits: Sequence[Limit],
    nature: str,
    *,
    verify: bool,
) -> tuple[dict[str, Any], str, Any]:
    """What `solve` tells, and the policy."""
    begin, before = perf_counter(), compiling_seconds()
    found: Any = tailpath.solve(model, objective, limits, nature=nature)
    seconds, compiling = perf_counter() - begin, compiling_seconds() - before
    band = tailpath.evaluate(
        model, found.policy, objective.tail[1] if objective.tail is not None else 1.0
    )
    record: dict[str, Any] = {
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
    if verify:
        best = _checkable(model, objective, nature)
        if best is None:
            raise click.UsageError("on a model with intervals --verify checks the mean and CVaR")
        record["proved"] = list(best.verify().proved)
        rows |= {
            "proved" if number == 0 else " " * number: line
            for number, line in enumerate(record["proved"])
        }
    rows["time"] = f"{seconds:.3g} s"
    if compiling > 0:
        rows["of which, once"] = f"{compiling:.1f} s of compiling"
    text = pairs([*rows.items()])
    if not model.is_certain:
        record["words"] = found.words()
        text += f"\n{record['words']}"
    return record, text, found.policy


def _checkable(model: IntervalSSP, objective: Measure, nature: str) -> Any:
    """The solution behind an objective, if it is the mean or a CVaR."""
    if isinstance(objective, tailpath.Mean):
        return tailpath.solve_expected(model, nature=nature)
    if objective.tail is not None and objective.tail[0] == 1 and objective.curve is None:
        return tailpath.solve_cvar_exact(model, objective.tail[1], nature=nature)
    return None


def evaluate_intervals(
    model: IntervalSSP,
    source: str,
    policy: str,
    alphas: Sequence[float],
    loose: bool,
    picture: str | None,
) -> Output:
    """What `evaluate` tells."""
    band = tailpath.evaluate(model, policy_argument(policy, model, loose), min(alphas))
    results: list[dict[str, Any]] = [
        {
            "alpha": a,
            "var": list(band.var(a)),
            "cvar": list(band.cvar(a)),
            "bounds": list(band.bounds(a)),
        }
        for a in alphas
    ]
    record = {
        "model": source,
        "policy": policy,
        "results": results,
        "mean": list(band.mean),
        "mean_bounds": list(band.mean_bounds),
    }
    rows = [(r["alpha"], *r["var"], *r["cvar"]) for r in results]
    text = fitted_table(
        ["alpha", "least VaR", "most VaR", "least CVaR", "most CVaR"], rows, digits=10
    )
    if picture is not None:
        save_picture(band.plot(), picture)
    facts = [("mean", _span(band.mean))]
    if all(map(math.isfinite, band.mean)) and band.nature:
        worst = band.nature[0]
        facts.append(
            (
                "hurts most",
                (
                    f"{name(worst.state)}, {name(worst.action)} -> {name(worst.next_state)}:"
                    f" {number(worst.worst, 4)}"
                ),
            )
        )
    return record, text + "\n\n" + pairs(facts)


def compare_plans(
    model: IntervalSSP, source: str, alphas: Sequence[float], files: Sequence[str], loose: bool
) -> Output:
    """What `compare` tells: policies planned on the nominal model and on the intervals, and what
    each may really cost.
    """
    given = {file: policy_argument(file, model, loose) for file in files}
    lines, rows = [], []
    for alpha, label, predicted, band in planned_lines(model, alphas, given):
        low, high = band.cvar(alpha)
        lines.append(
            {
                "alpha": alpha,
                "policy": label,
                "predicted": predicted,
                "least": low,
                "most": high,
                "mean": list(band.mean),
            }
        )
        rows.append(
            (alpha, label, "" if predicted is None else number(predicted), low, high, *band.mean)
        )
    headers = [
        "alpha",
        "planned for",
        "predicted",
        "least CVaR",
        "most CVaR",
        "least mean",
        "most mean",
    ]
    explained = (
        "predicted: what the plan expects; least and most: what the policy may really cost, over"
        " all that intervals allow"
    )
    return {
        "model": source,
        "rows": lines,
    }, f"CVaR of {source}\n\n{fitted_table(headers, rows)}\n\n{explained}"


def _span(pair: Sequence[float]) -> str:
    return f"{number(pair[0], 10)} to {number(pair[1], 10)}"
