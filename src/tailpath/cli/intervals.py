"""What the commands do with a model whose probabilities are intervals."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import click

import tailpath
from tailpath.analysis.reachability import NATURES
from tailpath.cli.common import policy_argument
from tailpath.cli.output import Output, fitted_table
from tailpath.cli.planning import Solved, require_alpha, solved_by
from tailpath.errors import OptionError
from tailpath.kernels.compile_time import compiling_seconds
from tailpath.methods import Method
from tailpath.methods.method import bounds_row
from tailpath.model.interval import IntervalSSP
from tailpath.options import Flag
from tailpath.risk.measure import Measure
from tailpath.show.plans import planned_lines
from tailpath.texts import number

NATURE = Flag(
    "nature",
    str,
    None,
    "Of a model with intervals: who picks the probabilities inside them.  [default: adversarial]",
    choices=tuple(NATURES),
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


def solve_intervals(model: IntervalSSP, objective: Measure, asked: SimpleNamespace) -> Solved:
    """What `solve` finds for a model whose probabilities are intervals."""
    if asked.gamma is not None or asked.delta is not None:
        raise click.UsageError("--gamma and --delta are not for models with intervals")
    begin, before = perf_counter(), compiling_seconds()
    nature = asked.nature or "adversarial"
    found: Any = tailpath.solve(model, objective, asked.limits, nature=nature)
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
        **bounds_row(found.bounds),
        "mean of the policy": " to ".join(number(end, 10) for end in band.mean),
        "time": f"{seconds:.3g} s",
    }
    checks = [_checkable(model, objective, nature).verify] if asked.verify else []
    words = [] if model.is_certain else [found.words()]
    record |= {"words": words[0]} if words else {}
    return Solved(found.policy, record, rows, checks, words, compiling)


def _checkable(model: IntervalSSP, objective: Measure, nature: str) -> Any:
    """The solution behind an objective, if it is the mean or a CVaR."""
    if isinstance(objective, tailpath.Mean):
        return tailpath.solve_expected(model, nature=nature)
    if objective.tail is not None and objective.tail[0] == 1 and objective.curve is None:
        return tailpath.solve_cvar_exact(model, objective.tail[1], nature=nature)
    raise click.UsageError("on a model with intervals --verify checks the mean and CVaR")


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
        line = {"alpha": alpha, "policy": label, "predicted": predicted, "least": low, "most": high}
        lines.append({**line, "mean": list(band.mean)})
        predicted_text = "" if predicted is None else number(predicted)
        rows.append((alpha, label, predicted_text, low, high, *band.mean))
    ends = (f"{end} {what}" for what in ("CVaR", "mean") for end in ("least", "most"))
    table = fitted_table(["alpha", "planned for", "predicted", *ends], rows)
    explained = (
        "predicted: what the plan expects; least and most: what the policy may really cost, over"
        " all that intervals allow"
    )
    return {"model": source, "rows": lines}, f"CVaR of {source}\n\n{table}\n\n{explained}"
