"""Planning on the command line: flags made from the options of methods, measures (`--minimise`,
`--subject-to`, `--deadline`, `--measure`), models whose probabilities are intervals, and `--mpi`.

With `--mpi` every rank of MPI runs the command, and only rank 0 prints. A MODEL in parts is a
folder made by `tailpath split`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import click
from click.shell_completion import CompletionItem

import tailpath
from tailpath.cli.application import print_message
from tailpath.cli.common import ModelCommand, WholeNumber, flag, limit, measure
from tailpath.cli.output import Output, print_result, reported
from tailpath.errors import LimitExceededError, OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.kernels.compile_time import compiling_seconds
from tailpath.methods import Method, find_method
from tailpath.methods.comparison import BEST
from tailpath.methods.method import all_methods, bounds_row, method_names, shared_options
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.registers import module_of
from tailpath.risk.measure import Measure
from tailpath.texts import number, pairs

#: Without a cost unit the evaluation of a policy may branch without end; after so many nodes the
#: bracket of the optimum has to do.
MAX_NODES = 1_000_000


@dataclass(frozen=True)
class Solved:
    """What `solve` found. Of `costs`, or `mean` alone, a sentence may tell gains; the notes go with
    the policy when it is saved.
    """

    policy: Any
    record: Mapping[str, Any]
    rows: Mapping[str, str]
    checks: Sequence[Callable[[], Any]] = ()
    words: Sequence[str] = ()
    compiling: float = 0.0
    mean: float | None = None
    costs: tailpath.CostDistribution | None = None
    notes: Sequence[str] = ()


class MethodOption(click.Option):
    heading = "Of some methods"


def flags_of(methods: Iterable[Method]) -> dict[str, tuple[click.Option, list[str]]]:
    """The flags of all options of these methods, each once, with the names of the methods that take
    it.
    """
    return {
        name: (flag(option, MethodOption), those)
        for name, (option, those) in shared_options(methods).items()
    }


def require_alpha(method: Method, alpha: float | None) -> None:
    """Refuse to plan for a tail without its mass."""
    if method.risk and alpha is None:
        plain = " or ".join(f"--method {each.name}" for each in all_methods() if not each.risk)
        raise click.UsageError(
            f"--method {method.name} needs --alpha, the mass of the worst tail; for the mean alone"
            f" use {plain}"
        )


def solved_by(wanted: Callable[[Method], Any]) -> str:
    """The methods that can do something, for a message."""
    return " and ".join(method.name for method in all_methods() if wanted(method))


def method_option(*names: str, **settings: Any) -> Callable[..., Any]:
    """The option `--method`, by which shells complete the names of methods."""
    return click.option(
        "--method", *names, metavar="NAME", shell_complete=_complete_method, **settings
    )


def _complete_method(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(name) for name in method_names() if name.startswith(incomplete)]


# ---------------------------------------------------------------------- measures


#: The options of `solve` that ask for any measure, under limits on others.
OBJECTIVES = (
    click.option(
        "--minimise", type=measure, help="mean, cvar(A), var(A), late(T), shortfall(B) or a sum."
    ),
    click.option(
        "--subject-to",
        "limits",
        type=limit,
        multiple=True,
        help="Such as 'late(35) <= 0.05' (repeatable).",
    ),
    click.option("--deadline", type=float, help="T is short for --minimise 'late(T)'."),
)


def asked_for(asked: SimpleNamespace) -> Measure | None:
    """What is to be minimised, or None if a method is to plan as ever."""
    if asked.minimise is None and asked.deadline is None and not asked.limits:
        return None
    if asked.alpha is not None:
        raise click.UsageError(
            "--alpha does not go with --minimise, --subject-to and --deadline; say cvar(A) instead"
        )
    if asked.deadline is None:
        return asked.minimise or tailpath.Mean()
    if asked.minimise is not None:
        raise click.UsageError(
            "give either --minimise or --deadline, which is short for --minimise 'late(T)'"
        )
    return tailpath.Late(asked.deadline)


def solve_for(ssp: SSP, objective: Measure, asked: SimpleNamespace) -> Solved:
    """Any measure, under limits on others."""
    if asked.gamma is not None:
        raise click.UsageError(
            "with --minimise, --subject-to and --deadline a discount is exact over a bounded"
            " number of steps: give --within N"
        )
    begin, delta = perf_counter(), asked.delta
    found = tailpath.solve(ssp, objective, asked.limits, delta=delta)
    seconds = perf_counter() - begin
    shown = dict.fromkeys([tailpath.Mean(), objective, *(each.measure for each in asked.limits)])
    values = _delivered(ssp, found.policy, list(shown), asked.max_nodes)
    weights = list(getattr(found.policy, "weights", [1.0]))
    record = {
        "objective": str(objective),
        "delta": delta,
        "limits": [str(each) for each in asked.limits],
        "value": found.value,
        "bounds": list(found.bounds),
        "risks": values,
        "multipliers": list(found.multipliers),
        "members": len(getattr(found.policy, "members", [0])),
        "weights": weights,
        "seconds": seconds,
    }
    least = {f"least {objective}": found.value} if delta is None else {}
    others = values if delta is not None else {**values, str(objective): None}
    rows = {
        what: f"{value:.10g}" for what, value in {**least, **others}.items() if value is not None
    }
    rows |= bounds_row(found.bounds, delta)
    if len(weights) > 1:
        rows["policy"] = (
            f"mixture of {len(weights)} policies, weights"
            f" {' and '.join(f'{weight:.6g}' for weight in weights)}"
        )
    rows["time"] = f"{seconds:.3g} s"
    mean = values.get(str(tailpath.Mean()))
    return Solved(found.policy, record, rows, words=list(found.words), mean=mean)


def _delivered(
    ssp: SSP, policy: tailpath.Policy, measures: Sequence[Measure], max_nodes: int | None
) -> dict[str, float]:
    """What the policy makes of the measures; nothing, with a warning, where evaluating it is given
    up.
    """
    if max_nodes is None and ssp.cost_unit is None:
        max_nodes = MAX_NODES
    try:
        costs = evaluate_for(ssp, policy, measures, max_nodes=max_nodes)
    except LimitExceededError as error:
        print_message("warning", f"the policy was not evaluated to the end: {error}")
        return {}
    return {str(each): each(costs) for each in measures}


# ---------------------------------------------------------------------- intervals


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
    words = [] if model.is_certain else list(found.words)
    record |= {"words": words[0]} if words else {}
    return Solved(found.policy, record, rows, checks, words, compiling)


def _checkable(model: IntervalSSP, objective: Measure, nature: str) -> Any:
    """The solution behind an objective, if it is the mean or a CVaR."""
    if isinstance(objective, tailpath.Mean):
        return tailpath.solve_expected(model, nature=nature)
    if objective.tail is not None and objective.tail[0] == 1 and objective.curve is None:
        return tailpath.solve_cvar_exact(model, objective.tail[1], nature=nature)
    raise click.UsageError("on a model with intervals --verify checks the mean and CVaR")


# ---------------------------------------------------------------------- ranks of MPI


def ranks(module: str) -> Any:
    """A module of what works on ranks, which nobody imports."""
    return module_of(f"tailpath.distributed.{module}", "mpi")


def all_ranks() -> Any:
    """The communicator of `--mpi`. Only rank 0 prints."""
    comm = ranks("ranks").world()
    if comm.rank > 0:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    return comm


def solve_part(part: Any, comm: Any, asked: dict[str, Any], ssp: SSP | None = None) -> None:
    """Solve a model in parts, and show what was found at the start; `ssp` is the model, if every
    rank has it.
    """
    begin, alpha, method = perf_counter(), asked["alpha"], find_method(asked["method"])
    if asked["verify"] or asked_for(SimpleNamespace(**asked)) is not None:
        raise click.UsageError("--mpi can only be combined with --alpha")
    if method.name != BEST:
        raise OptionError(
            f"--method {method.name} needs one process; ranks of MPI solve by {BEST}, where --alpha"
            " 1 is the mean"
        )
    require_alpha(method, alpha)
    options = {each.name: asked.get(each.name) for each in method.options}
    given = {name: value for name, value in options.items() if value is not None}
    best: Any = tailpath.solve_cvar_exact(part, alpha, comm=comm, **given)
    bounds, seconds = best.bounds(alpha), perf_counter() - begin
    record = {
        "model": asked["model"],
        "ranks": comm.size,
        "states": part.n_states,
        "alpha": alpha,
        "cvar": best.cvar(alpha),
        "bounds": list(bounds),
        "budget": best.budget(alpha),
        "seconds": seconds,
    }
    rows = {
        "states": f"{part.n_states} in {comm.size} parts",
        "alpha": f"{alpha:.6g}",
        "least CVaR": f"{best.cvar(alpha):.10g}",
        **bounds_row(bounds),
        "time": f"{seconds:.3g} s",
    }
    print_result(record, pairs(rows.items()), asked["as_json"])
    if asked["output"] is not None:
        gathered = best.policy(alpha).gather(ssp)
        if comm.rank == 0:
            tailpath.write_policy(gathered, asked["output"])


@click.command(cls=ModelCommand)
@click.option("--parts", type=WholeNumber(1), required=True, help="How many, one per rank.")
@click.option("-o", "--output", metavar="FOLDER", required=True, help="Where the parts go.")
@reported
def split_command(ssp: SSP, source: str, parts: int, output: str) -> Output:
    """Cut a MODEL into parts for as many ranks of MPI, one file each, in a FOLDER.

    The parts are then solved with mpiexec -n N tailpath solve FOLDER --alpha A --mpi, where no rank
    holds more than its own.

    Examples
    --------
    tailpath split river:30x10 --parts 4 --output parts
    mpiexec -n 4 tailpath solve parts --alpha 0.05 --mpi
    """
    files = ranks("files").write_parts(ssp, parts, output)
    record = {"model": source, "parts": list(map(str, files)), "states": ssp.n_states}
    return record, f"{output}: {ssp.n_states} states in {parts} parts"
