"""`tailpath solve MODEL`: one command, all methods of the register (`tailpath.methods`), each with
the options it declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter
from typing import Any

import click

import tailpath
from tailpath.cli import intervals, ranks
from tailpath.cli.application import print_message
from tailpath.cli.common import ModelCommand, out_file, refuse_same_file, request_of, takes_model
from tailpath.cli.common import alpha as tail_mass
from tailpath.cli.objectives import MOST_NODES, asked_for, objective_options, solve_for
from tailpath.cli.output import json_option, show, with_gains
from tailpath.cli.planning import complete_method, flags_of, require_alpha
from tailpath.errors import LimitExceededError
from tailpath.kernels.jit import compiling_seconds
from tailpath.methods import Found, Method, Plan, find_method, method_names
from tailpath.methods.comparison import progress_of
from tailpath.methods.register import all_methods
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.pictures.progress import progress_line
from tailpath.risk.measure import Limit, Measure
from tailpath.texts import pairs


class SolveCommand(ModelCommand):
    """Takes the options of all methods, each once, and refuses those that the chosen method has no
    use for.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.takers: dict[str, list[str]] = {}

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        methods = all_methods()
        flags = flags_of(methods)
        self.takers = {"alpha": [method.name for method in methods if method.risk]}
        self.takers |= {name: takers for name, (_, takers) in flags.items()}
        known = super().get_params(ctx)
        return [
            *known,
            *(
                option
                for option, _ in flags.values()
                if option.name not in {param.name for param in known}
            ),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        left = super().parse_args(ctx, args)
        method = ctx.params.get("method")
        for name, takers in self.takers.items():
            if (
                ctx.params.get(name) is not None
                and method not in takers
                and not (name == "gamma" and ctx.params.get("within"))
            ):
                dashed, more = (
                    name.replace("_", "-"),
                    "; with --within N to every method" if name == "gamma" else "",
                )
                raise click.UsageError(
                    f"--{dashed} does not apply to --method {method}, only to"
                    f" {', '.join(takers)}{more}",
                    ctx,
                )
        return left

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = ranks.job_of(ctx.params)
        part = None if ctx.obj is None else ranks.part_of(ctx.params["model"], ctx.obj)
        return super().invoke(ctx) if part is None else ranks.solve_part(part, ctx.obj, ctx.params)


def _known(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return find_method(value).name


@click.command(cls=SolveCommand)
@takes_model
@click.option(
    "--method",
    metavar="NAME",
    default=method_names()[0],
    show_default=True,
    callback=_known,
    shell_complete=complete_method,
    help=f"How to solve: {', '.join(method_names())}.",
)
@click.option(
    "--variant",
    metavar="NAME",
    default="",
    help=("Variant of the method: published, for CVaRVIQ and CVaRVILI; printed, for CVaRVIQ."),
)
@click.option("--alpha", type=tail_mass, metavar="A", help="Mass of the worst tail, in (0, 1].")
@objective_options
@intervals.nature_option
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Give up evaluating the policy after N expanded pairs.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Check the result on the model as given, in exact arithmetic, and say what was proved.",
)
@click.option(
    "-o",
    "--output",
    type=out_file(".json", ".npz"),
    metavar="FILE",
    help="Save the policy (.json or .npz).",
)
@json_option
@ranks.mpi_options
def command(ssp: SSP, gamma: Fraction | None, **given: Any) -> None:
    """Find the best policy of a MODEL and what it costs.

    With --minimise, --subject-to or --deadline any measure is minimised, under limits on others,
    such as --minimise mean --subject-to 'cvar(0.01) <= 40' --subject-to 'late(35) <= 0.05'.
    """
    asked = request_of(SolveRequest, {"gamma": gamma, **given}, "options")
    refuse_same_file(asked.output, asked.source)
    job = click.get_current_context().obj
    if job is not None and job.comm.rank > 0:
        asked = replace(asked, output=None)  # rank 0 writes it
    objective = asked_for(asked.minimise, asked.limits, asked.deadline, asked.alpha)
    if isinstance(ssp, IntervalSSP):
        _solve_intervals(ssp, objective, asked)
        return
    intervals.refuse_nature(asked.nature)
    if objective is not None:
        _solve_objective(ssp, objective, asked)
    else:
        _solve_by_method(ssp, ranks.on_ranks(find_method(asked.method), job), asked)


@dataclass(frozen=True)
class SolveRequest:
    """What the command line asks for; `options` are those of the methods."""

    source: str
    method: str
    variant: str
    alpha: float | None
    minimise: Measure | None
    limits: tuple[Limit, ...]
    deadline: float | None
    no_mix: bool
    nature: str | None
    max_nodes: int | None
    verify: bool
    gamma: Fraction | None
    output: str | None
    as_json: bool
    options: Mapping[str, Any]

    def show(self, record: Mapping[str, Any], text: str, policy: tailpath.Policy) -> None:
        """Print what was found, and save the policy where that is wanted."""
        show({"model": self.source, **record}, text, self.as_json)
        if self.output is not None:
            tailpath.write_policy(policy, self.output)


def _solve_intervals(model: IntervalSSP, objective: Measure | None, asked: SolveRequest) -> None:
    """A model whose probabilities are intervals."""
    if asked.gamma is not None or asked.options.get("delta") is not None:
        raise click.UsageError("--gamma and --delta are not for models with intervals")
    if objective is None:
        objective = intervals.objective_of(find_method(asked.method), asked.alpha)
    nature = asked.nature or "adversarial"
    asked.show(
        *intervals.solve_intervals(model, objective, asked.limits, nature, verify=asked.verify)
    )


def _solve_objective(ssp: SSP, objective: Measure, asked: SolveRequest) -> None:
    """Any measure, under limits on others."""
    if asked.gamma is not None:
        raise click.UsageError(
            "with --minimise, --subject-to and --deadline a discount is exact over a bounded"
            " number of steps: give --within N"
        )
    policy, record, text = solve_for(
        ssp, objective, asked.limits, not asked.no_mix, asked.options.get("delta"), asked.max_nodes
    )
    asked.show(record, text, policy)


def _solve_by_method(ssp: SSP, method: Method, asked: SolveRequest) -> None:
    """A method of the register."""
    require_alpha(method, asked.alpha)
    options = {**asked.options, "gamma": asked.gamma}
    found, compiling = plan_and_evaluate(
        method, ssp, asked.alpha, options, asked.max_nodes, asked.variant
    )
    account = method.account(found)
    rows, record = dict(account.rows), dict(account.record)
    if compiling > 0:
        rows["of which, once"] = f"{compiling:.1f} s of compiling"
    if asked.verify:
        proofs = _proofs(found)
        rows |= {
            "proved" if number == 0 else " " * number: line for number, line in enumerate(proofs)
        }
        record["proved"] = proofs
    mean = record.get("expected_cost") if found.costs is None else found.costs.mean
    text = with_gains(pairs(rows.items()), ssp, mean, found.costs, asked.alpha)
    asked.show({"method": asked.method, **record}, text, found.policy)
    if asked.output is not None and found.plan.model is not None:
        print_message(
            "note",
            "the policy looks at (state, steps taken); wherever you use it, say --within"
            f" {found.plan.facts['steps']} --gamma {asked.gamma}",
        )


def _proofs(found: Found) -> list[str]:
    """What the checker proves of a solution that can be checked, and of the costs of its policy; it
    refuses what does not hold.
    """
    made = found.plan.solution
    checks = [made.verify] if hasattr(made, "verify") else []
    if found.costs is not None:
        checks.append(found.costs.verify)
    proofs = [check() for check in checks]
    widest = max((proof.width for proof in proofs), default=0.0)
    return [
        *(line for proof in proofs for line in proof.proved),
        f"the widest of these bounds is {widest:.1e} of its size",
    ]


def plan_and_evaluate(
    method: Method,
    ssp: SSP,
    alpha: float | None,
    options: dict[str, Any],
    max_nodes: int | None,
    variant: str = "",
) -> tuple[Found, float]:
    """Plan, and evaluate the policy exactly where there is an alpha to evaluate it at; beside it
    how many of the seconds of planning went into compiling.
    """
    begin, before = perf_counter(), compiling_seconds()
    with progress_line() as update:
        plan = method.make(ssp, alpha, options, progress_of(method, update), variant)
        seconds, compiling = perf_counter() - begin, compiling_seconds() - before
        policy, ssp = plan.policy(1.0 if alpha is None else alpha), plan.model or ssp
        costs = None
        if alpha is not None:
            if max_nodes is None and ssp.cost_unit is None and plan.bounds is not None:
                max_nodes = MOST_NODES
            costs = _deployed(
                ssp,
                plan,
                policy,
                alpha,
                max_nodes,
                lambda _, arrived: update(f"evaluating: {arrived:.9f} has arrived"),
            )
    return Found(plan, alpha, policy, costs, seconds), compiling


def _deployed(
    ssp: SSP,
    plan: Plan,
    policy: tailpath.Policy,
    alpha: float,
    max_nodes: int | None,
    progress: Any,
) -> tailpath.CostDistribution | None:
    """The exact costs of the policy. Where that is given up, the bounds that a plan has must do,
    and a plan without is refused.
    """
    try:
        return tailpath.evaluate(
            ssp, policy, alpha, gamma=plan.gamma, max_nodes=max_nodes, progress=progress
        )
    except LimitExceededError as error:
        if plan.bounds is None:
            raise
        print_message("warning", f"the policy was not evaluated to the end: {error}")
        return None
