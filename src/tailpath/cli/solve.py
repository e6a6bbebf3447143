"""`tailpath solve MODEL`: one command for all methods of the register (`tailpath.methods`), each
with the options it declares, for any measure (`--minimise`, `--subject-to`, `--deadline`), and for
models whose probabilities are intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import click

import tailpath
from tailpath.analysis.reachability import NATURES
from tailpath.cli.application import print_message
from tailpath.cli.common import (
    ALPHA,
    ModelCommand,
    WholeNumber,
    flag,
    limit,
    measure,
    method_option,
    policy_output,
    refuse_same_file,
    timed,
    under,
)
from tailpath.cli.lazy import solve_lazily
from tailpath.cli.output import json_option, print_result, with_gains
from tailpath.cli.ranks import all_ranks, ranks, require_alpha, solve_part, solved_by
from tailpath.errors import LimitExceededError, OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.methods import Method, find_method, method_names
from tailpath.methods.comparison import progress_of
from tailpath.methods.method import all_methods, bounds_row
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import Option
from tailpath.progress import progress_line
from tailpath.risk.measure import REGISTER, Measure, is_cvar
from tailpath.texts import number, pairs

#: Without a cost unit the evaluation of a policy may branch without end; after this many nodes the
#: bounds of the optimum must do.
MAX_NODES = 1_000_000
#: Where a context has the chosen method, in a list.
CHOSEN = "tailpath.method"


class SolveCommand(ModelCommand):
    """Takes the options of the chosen method; the help lists those of every method, and a refusal
    names the methods that have an option.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        known, options = super().get_params(ctx), []
        names = {param.name for param in known}
        takers: dict[str, tuple[Option, list[str]]] = {}
        for method in ctx.meta.get(CHOSEN) or all_methods():
            for option in method.options:
                takers.setdefault(repr(option), (option, []))[1].append(method.name)
                if option.name in names - {"gamma"} and CHOSEN in ctx.meta:
                    raise OptionError(
                        f"the option {option.name} of the method {method.name} is also an option of"
                        " solve itself; rename it"
                    )
        for option, those in takers.values():
            made: Any = flag(option)
            made.heading = f"With --method {', '.join(those)}"
            options += [made] if option.name not in names else []
        return [*known, *options]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        asked = _asked_method(ctx, args)
        if asked is not None or not {*args} & {*ctx.help_option_names}:
            ctx.meta[CHOSEN] = [find_method(asked or method_names()[0])]
        try:
            remaining = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            self._refuse(ctx, error.option_name)
            raise
        method, given = find_method(ctx.params["method"]), ctx.params
        if given["alpha"] is not None and not method.risk:
            self._refuse(ctx, "--alpha", [each.name for each in all_methods() if each.risk])
        discounts = any(option.name == "gamma" for option in method.options)
        if given["gamma"] is not None and given["within"] is None and not discounts:
            self._refuse(ctx, "--gamma", more="; with --within N to every method")
        return remaining

    def _refuse(
        self, ctx: click.Context, word: str, takers: Sequence[str] = (), more: str = ""
    ) -> None:
        """Refuse a flag that belongs to other methods, if there are such."""
        (chosen,) = ctx.meta[CHOSEN]
        takers = takers or [
            method.name
            for method in all_methods()
            if any(word in flag(option).opts for option in method.options)
        ]
        if takers:
            raise click.UsageError(
                f"{word} does not apply to --method {chosen.name}, only to"
                f" {', '.join(takers)}{more}",
                ctx,
            )

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.params["lazy"]:
            return solve_lazily(ctx)
        for name in ("lazy", "gap", "max_states"):
            if ctx.params.pop(name):
                raise click.UsageError(f"--{name.replace('_', '-')} needs --lazy", ctx)
        ctx.obj = all_ranks() if ctx.params.pop("mpi") else None
        part = ctx.obj and ranks("files").part_of(ctx.params["model"], ctx.obj)
        if part is None:
            return super().invoke(ctx)
        _refuse_on_ranks(ctx.params)
        return solve_part(part, ctx.obj, ctx.params)


def _asked_method(ctx: click.Context, args: list[str]) -> str | None:
    """The method that the command line names, which decides how the rest of it is read."""
    only = click.Command(None, params=[click.Option(["--method"])], add_help_option=False)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    settings["resilient_parsing"] = ctx.resilient_parsing  # a shell completes what is not whole yet
    found = only.make_context(ctx.info_name, [*args], ctx.parent, **settings)
    method: str | None = found.params["method"]
    return method


def _known(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return find_method(value).name


@click.command(cls=SolveCommand)
@click.option("--alpha", type=ALPHA, help="Mass of the worst tail, in (0, 1].")
@method_option(
    default=method_names()[0], callback=_known, help=f"Method: {', '.join(method_names())}."
)
@click.option(
    "--variant", default="", show_default=False, help="Variant of a planner: published or printed."
)
@under(
    "Measures and limits",
    click.option(
        "--minimise",
        type=measure,
        help=f"Such as mean, cvar(A) or a sum; measures are {', '.join(REGISTER.names())}.",
    ),
    click.option(
        "--subject-to",
        "limits",
        type=limit,
        multiple=True,
        help="Such as 'late(35) <= 0.05' (repeatable).",
    ),
    click.option("--deadline", type=float, metavar="T", help="Short for --minimise 'late(T)'."),
    click.option(
        "--maximise",
        is_flag=True,
        help="Find the worst policy instead: of --minimise, --deadline, --alpha or the mean.",
    ),
)
@under(
    "Models with intervals",
    click.option(
        "--nature",
        type=click.Choice(tuple(NATURES)),
        help="Who picks the probabilities in the intervals.  [default: adversarial]",
    ),
)
@under(
    "Models too large to be listed",
    click.option("--lazy", is_flag=True, help="Expand only the states that decide."),
    click.option("--gap", type=float, help="Stop at this gap of the bounds.  [default: 0.001]"),
    click.option("--max-states", type=WholeNumber(1), help="Expand at most N states."),
)
@under(
    "On ranks of MPI", click.option("--mpi", is_flag=True, help="Run on all ranks, under mpiexec.")
)
@under(
    "Output",
    click.option("--verify", is_flag=True, help="Check the result in exact arithmetic."),
    click.option(
        "--max-nodes", type=WholeNumber(1), help="Expand at most N pairs of state and cost."
    ),
    policy_output("Save the policy (.json or .npz)."),
    json_option,
)
def solve_command(ssp: SSP, gamma: Any, **given: Any) -> None:
    """Find the best policy of a MODEL and what it costs.

    With --minimise, --subject-to or --deadline any measure is minimised, under limits on others,
    such as --minimise mean --subject-to 'cvar(0.01) <= 40' --subject-to 'late(35) <= 0.05'.

    Examples
    --------
    tailpath solve river:5x5 --alpha 0.05 --output policy.json
    tailpath solve river:5x5 --minimise mean --subject-to 'cvar(0.01) <= 40'
    """
    given = {"delta": None, "gamma": gamma, **given}  # of a method that may have neither
    asked, comm = SimpleNamespace(**given), click.get_current_context().obj
    refuse_same_file(asked.output, asked.source)
    if comm is not None:
        given["model"] = given.pop("source")
        _refuse_on_ranks(given)
        solve_part(ranks("part").Part.here(ssp, comm), comm, given, ssp)
        return
    method, objective = find_method(asked.method), asked_for(asked)
    if isinstance(ssp, IntervalSSP):
        solved = solve_intervals(ssp, objective or objective_of(method, asked.alpha), asked)
    elif asked.nature is not None:
        raise click.UsageError(
            "--nature is for models with intervals, and all probabilities of this one are known"
        )
    elif objective is not None:
        solved = solve_for(ssp, objective, asked)
    else:
        require_alpha(method, asked.alpha)
        solved = solve_by(method, ssp, asked)
    record, rows = dict(solved.record), dict(solved.rows)
    if solved.compiling > 0:
        rows["of which, once"] = f"{solved.compiling:.1f} s of compiling"
    if asked.verify and solved.checks:
        record["proved"] = _proofs(solved.checks)
        rows |= {" " * number or "proved": line for number, line in enumerate(record["proved"])}
    text = "\n".join([pairs(rows.items()), *solved.words])
    text = with_gains(text, ssp, solved.mean, solved.costs, asked.alpha)
    print_result({"model": asked.source, **record}, text, asked.as_json)
    if asked.output is not None:
        tailpath.write_policy(solved.policy, asked.output)
        if solved.note:
            print_message("note", solved.note)


def _refuse_on_ranks(asked: Mapping[str, Any]) -> None:
    if asked["verify"] or asked_for(SimpleNamespace(**asked)) is not None:
        raise click.UsageError("--mpi can only be combined with --alpha")


def _proofs(checks: Sequence[Callable[[], Any]]) -> list[str]:
    """The checker's proofs of a solution, and of the costs of its policy; it raises an error if
    something does not hold.
    """
    proofs = [check() for check in checks]
    return [
        *(line for proof in proofs for line in proof.proved),
        "the widest of these bounds has a relative width of"
        f" {max(proof.width for proof in proofs):.1e}",
    ]


@dataclass(frozen=True)
class Solved:
    """What `solve` found. `costs`, or `mean` alone, may be reported as gains; the note is printed
    when the policy is saved.
    """

    policy: Any
    record: Mapping[str, Any]
    rows: Mapping[str, str]
    checks: Sequence[Callable[[], Any]] = ()
    words: Sequence[str] = ()
    compiling: float = 0.0
    mean: float | None = None
    costs: tailpath.CostDistribution | None = None
    note: str = ""


def solve_by(method: Method, ssp: SSP, asked: SimpleNamespace) -> Solved:
    """Plan with a method, and evaluate the policy exactly if there is an alpha.

    If the evaluation is given up, the plan must have bounds.
    """
    alpha, most = asked.alpha, asked.max_nodes
    costs = None
    with progress_line() as update:
        report = progress_of(method, update)
        plan, seconds, compiling = timed(
            method.make, ssp, alpha, vars(asked), report, asked.variant
        )
        policy, model = plan.policy(1.0 if alpha is None else alpha), plan.model or ssp
        if alpha is not None:
            if most is None and model.cost_unit is None and plan.bounds is not None:
                most = MAX_NODES
            try:
                costs = tailpath.evaluate(
                    model,
                    policy,
                    alpha,
                    gamma=plan.gamma,
                    max_nodes=most,
                    progress=lambda _, arrived: update(
                        f"evaluating: {arrived:.9f} of the probability has arrived"
                    ),
                )
            except LimitExceededError as error:
                if plan.bounds is None:
                    raise
                _warn_of_limit(error)
    record, rows = method.account(plan, alpha, costs, seconds)
    note = (
        "the states of the policy are pairs (state, steps taken); wherever you use it, give"
        f" --within {plan.facts.get('steps')} --gamma {asked.gamma}"
    )
    return Solved(
        policy,
        {"method": asked.method, **record},
        rows,
        [made.verify for made in (plan.solution, costs) if made and hasattr(made, "verify")],
        compiling=compiling,
        mean=record.get("expected_cost") if costs is None else costs.mean,
        costs=costs,
        note="" if plan.model is None else note,
    )


def _warn_of_limit(error: LimitExceededError) -> None:
    print_message("warning", f"the policy was not evaluated to the end: {error}")


# ---------------------------------------------------------------------- measures


def asked_for(asked: SimpleNamespace) -> Measure | None:
    """The measure to minimise, or None if a method plans."""
    if asked.minimise is None and asked.deadline is None and not asked.limits:
        if not asked.maximise:
            return None
        return tailpath.Mean() if asked.alpha is None else tailpath.CVaR(asked.alpha)
    if asked.alpha is not None:
        raise click.UsageError(
            "--alpha cannot be combined with --minimise, --subject-to and --deadline; use cvar(A)"
            " in them instead"
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
            "--gamma with --minimise, --subject-to or --deadline needs a bounded number of steps:"
            " give --within N"
        )
    delta = asked.delta
    sense = "max" if asked.maximise else "min"
    options = {"delta": delta, "sense": sense}
    found, seconds, compiling = timed(tailpath.solve, ssp, objective, asked.limits, **options)
    shown = dict.fromkeys([tailpath.Mean(), objective, *(each.measure for each in asked.limits)])
    finite = math.isfinite(found.value)
    values = _delivered(ssp, found.policy, list(shown), asked.max_nodes) if finite else {}
    weights = list(getattr(found.policy, "weights", [1.0]))
    record = {
        "objective": str(objective),
        "sense": sense,
        "delta": delta,
        "limits": [str(each) for each in asked.limits],
        "value": found.value,
        "bounds": list(found.bounds),
        "risks": values,
        "multipliers": list(found.multipliers),
        "members": len(weights),
        "weights": weights,
        "seconds": seconds,
    }
    numbers = values
    if delta is None or asked.maximise:
        others = {what: value for what, value in values.items() if what != str(objective)}
        which = "worst policy:" if asked.maximise else "least"
        numbers = {f"{which} {objective}": found.value, **others}
    rows = {what: f"{value:.10g}" for what, value in numbers.items()}
    rows |= bounds_row(found.bounds, None if asked.maximise else delta)
    if len(weights) > 1:
        listed = " and ".join(f"{weight:.6g}" for weight in weights)
        rows["policy"] = f"mixture of {len(weights)} policies, weights {listed}"
    rows["time"] = f"{seconds:.3g} s"
    mean = values.get(str(tailpath.Mean()))
    words = list(found.words)
    return Solved(found.policy, record, rows, words=words, compiling=compiling, mean=mean)


def _delivered(
    ssp: SSP, policy: tailpath.Policy, measures: Sequence[Measure], max_nodes: int | None
) -> dict[str, float]:
    """The values of the measures for the policy; none, with a warning, if its evaluation is given
    up.
    """
    if max_nodes is None and ssp.cost_unit is None:
        max_nodes = MAX_NODES
    try:
        costs = evaluate_for(ssp, policy, measures, max_nodes=max_nodes)
    except LimitExceededError as error:
        _warn_of_limit(error)
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
        raise click.UsageError("--gamma and --delta do not apply to models with intervals")
    nature = asked.nature or "adversarial"
    options = {"nature": nature, "sense": "max" if asked.maximise else "min"}
    found, seconds, compiling = timed(tailpath.solve, model, objective, asked.limits, **options)
    band = tailpath.evaluate(model, found.policy, objective.finest_alpha)
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
    if is_cvar(objective):
        return tailpath.solve_cvar_exact(model, objective.finest_alpha, nature=nature)
    raise click.UsageError("on a model with intervals --verify checks only the mean and CVaR")
