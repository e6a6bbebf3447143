"""`tailpath solve MODEL`: one command, all methods of the register (`tailpath.methods`), each with
the options it declares; and `tailpath frontier MODEL`, the least mean for every level of risk.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
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
    measure,
    picture,
    policy_output,
    refuse_same_file,
    under,
)
from tailpath.cli.output import (
    Output,
    json_option,
    print_result,
    reported,
    save_picture,
    terminal_width,
    with_gains,
)
from tailpath.cli.planning import (
    MAX_NODES,
    OBJECTIVES,
    Solved,
    all_ranks,
    asked_for,
    flags_of,
    method_option,
    objective_of,
    ranks,
    require_alpha,
    solve_for,
    solve_intervals,
    solve_part,
)
from tailpath.errors import LimitExceededError
from tailpath.kernels.compile_time import compiling_seconds
from tailpath.methods import Method, find_method, method_names
from tailpath.methods.comparison import progress_of
from tailpath.methods.method import all_methods
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import MAX_ROWS
from tailpath.model.ssp import SSP
from tailpath.progress import progress_line
from tailpath.risk.measure import Measure
from tailpath.texts import count, pairs


class SolveCommand(ModelCommand):
    """Takes the options of all methods, each once, and refuses those that the chosen method has no
    use for.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        known = super().get_params(ctx)
        names = {param.name for param in known}
        flags = (option for option, _ in flags_of(all_methods()).values())
        return [*known, *(option for option in flags if option.name not in names)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        remaining = super().parse_args(ctx, args)
        method, given = ctx.params.get("method"), ctx.params
        takers = {name: takers for name, (_, takers) in flags_of(all_methods()).items()}
        takers["alpha"] = [each.name for each in all_methods() if each.risk]
        for name, those in takers.items():
            within = name == "gamma" and given.get("within")
            if given.get(name) is not None and method not in those and not within:
                more = "; with --within N to every method" if name == "gamma" else ""
                raise click.UsageError(
                    f"--{name.replace('_', '-')} does not apply to --method {method}, only to"
                    f" {', '.join(those)}{more}",
                    ctx,
                )
        return remaining

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = all_ranks() if ctx.params.pop("mpi") else None
        part = ctx.obj and ranks("files").part_of(ctx.params["model"], ctx.obj)
        return super().invoke(ctx) if part is None else solve_part(part, ctx.obj, ctx.params)


def _known(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return find_method(value).name


@click.command(cls=SolveCommand)
@click.option("--alpha", type=ALPHA, help="Mass of the worst tail, in (0, 1].")
@method_option(
    default=method_names()[0], callback=_known, help=f"How to solve: {', '.join(method_names())}."
)
@click.option(
    "--variant", default="", show_default=False, help="Variant of a planner: published or printed."
)
@under("Measures and limits", *OBJECTIVES)
@under(
    "Models with intervals",
    click.option(
        "--nature",
        type=click.Choice(tuple(NATURES)),
        help="Who picks the probabilities inside them.  [default: adversarial]",
    ),
)
@under(
    "On ranks of MPI", click.option("--mpi", is_flag=True, help="Run on all ranks, under mpiexec.")
)
@under(
    "Output",
    click.option("--verify", is_flag=True, help="Check the result in exact arithmetic."),
    click.option(
        "--max-nodes", type=WholeNumber(1), help="Expand N pairs of state and cost at most."
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
    asked, comm = SimpleNamespace(gamma=gamma, **given), click.get_current_context().obj
    refuse_same_file(asked.output, asked.source)
    if comm is not None:
        given["model"] = given.pop("source")
        solve_part(ranks("part").Part.here(ssp, comm), comm, {**given, "gamma": gamma}, ssp)
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
        record["proved"] = _proofs(solved)
        rows |= {" " * number or "proved": line for number, line in enumerate(record["proved"])}
    text = "\n".join([pairs(rows.items()), *solved.words])
    text = with_gains(text, ssp, solved.mean, solved.costs, asked.alpha)
    print_result({"model": asked.source, **record}, text, asked.as_json)
    if asked.output is not None:
        tailpath.write_policy(solved.policy, asked.output)
        for note in solved.notes:
            print_message("note", note)


def _proofs(solved: Solved) -> list[str]:
    """What the checker proves of a solution that can be checked, and of the costs of its policy; it
    refuses what does not hold.
    """
    proofs = [check() for check in solved.checks]
    return [
        *(line for proof in proofs for line in proof.proved),
        f"the widest of these bounds is {max(proof.width for proof in proofs):.1e} of its size",
    ]


def solve_by(method: Method, ssp: SSP, asked: SimpleNamespace) -> Solved:
    """Plan by a method of the register, and evaluate the policy exactly where there is an alpha to
    evaluate it at. Where that is given up, the bounds that a plan has must do, and a plan without
    is refused.
    """
    alpha, most = asked.alpha, asked.max_nodes
    costs = None
    with progress_line() as update:
        begin, before = perf_counter(), compiling_seconds()
        plan = method.make(ssp, alpha, vars(asked), progress_of(method, update), asked.variant)
        seconds, compiling = perf_counter() - begin, compiling_seconds() - before
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
                    progress=lambda _, arrived: update(f"evaluating: {arrived:.9f} has arrived"),
                )
            except LimitExceededError as error:
                if plan.bounds is None:
                    raise
                print_message("warning", f"the policy was not evaluated to the end: {error}")
    record, rows = method.account(plan, alpha, costs, seconds)
    checks = [made.verify for made in (plan.solution, costs) if made and hasattr(made, "verify")]
    note = (
        "the policy looks at (state, steps taken); wherever you use it, say --within"
        f" {plan.facts.get('steps')} --gamma {asked.gamma}"
    )
    return Solved(
        policy,
        {"method": asked.method, **record},
        rows,
        checks,
        compiling=compiling,
        mean=record.get("expected_cost") if costs is None else costs.mean,
        costs=costs,
        notes=() if plan.model is None else (note,),
    )


@click.command(cls=ModelCommand)
@click.option(
    "--risk", type=measure, required=True, help="Such as cvar(0.05), late(30) or shortfall(30)."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="Stop this close to the frontier, as a share of its range; 0 finds all corners.",
)
@click.option("--delta", help="Round costs to multiples of it; the frontier is then bracketed.")
@under(
    "Output",
    click.option("--all", "everything", is_flag=True, help="Print every corner."),
    click.option("--plot", type=picture, help="Draw the frontier."),
    click.option("--corner", type=WholeNumber(1), help="The corner whose policy --output saves."),
    policy_output("Save the policy of --corner (.json or .npz)."),
)
@reported
def frontier_command(
    ssp: SSP,
    source: str,
    risk: Measure,
    everything: bool,
    plot: str | None,
    corner: int | None,
    output: str | None,
    **options: Any,
) -> Output:
    """Show what safety costs: every corner of least mean against a risk, from the safest policy to
    the one that is best on average.

    Examples
    --------
    tailpath frontier river:5x5 --risk 'cvar(0.05)'
    tailpath frontier river:5x5 --risk 'late(30)' --corner 2 --output safe.json
    """
    if (corner is None) != (output is None):
        raise click.UsageError(
            "--corner and --output go together: which corner's policy to save, and where"
        )
    refuse_same_file(output, source)
    begin = perf_counter()
    with progress_line() as update:
        found = tailpath.frontier(
            ssp,
            risk,
            **options,
            progress=lambda tables, corners: update(
                f"{count(tables, 'table')}, {count(int(corners), 'corner')}"
            ),
        )
    seconds = perf_counter() - begin
    if corner is not None and output is not None:
        if corner > len(found):
            raise click.UsageError(
                f"the frontier has {count(len(found), 'corner')}, so there is no corner {corner}"
            )
        tailpath.write_policy(found[corner - 1].policy, output)
    if plot is not None:
        save_picture(found.plot(), plot)
    columns = found._columns()
    lines = [dict(zip(columns, row)) for row in zip(*columns.values())]
    record = {
        "model": source,
        "risk": str(risk),
        "delta": options["delta"],
        "corners": lines,
        "gap": found.gap,
        "seconds": seconds,
    }
    text = found.as_text(terminal_width(), len(found) if everything else MAX_ROWS)
    notes = "\n".join(_notes(found, seconds, everything, options["delta"]))
    return record, f"least mean against {risk} of {source}\n\n{text}\n\n{notes}"


def _notes(found: Any, seconds: float, everything: bool, delta: str | None) -> Iterator[str]:
    more = "" if everything or len(found) <= MAX_ROWS else "; --all shows all"
    yield f"{count(len(found), 'corner')} in {seconds:.3g} s{more}"
    if any(len(one.parts) > 1 for one in found):
        yield "policies: how many of them a coin, tossed once at the start, chooses among"
    if delta is not None:
        yield (
            f"costs are rounded up to multiples of {delta}; rounded down they give the mean that"
            " no policy with this risk falls below"
        )
