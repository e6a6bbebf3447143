"""`tailpath compare MODEL`: for every alpha what the planners predict, what their policies deliver
when deployed, and the optimum; and `tailpath page MODEL`, the same on a page of HTML that explains
why.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

import tailpath
from tailpath.cli.application import print_message
from tailpath.cli.common import (
    POLICIES,
    ManyAlphas,
    flag_of,
    measure,
    method_option,
    out_file,
    picture,
    policy_argument,
    several_alphas,
    timed,
    under,
)
from tailpath.cli.output import (
    Output,
    fitted_table,
    reported,
    save_picture,
    terminal_width,
)
from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.methods import Method
from tailpath.methods.comparison import (
    ALPHAS,
    SLOW,
    USUAL,
    PlannedRow,
    Update,
    chosen_methods,
    compared,
    given_row,
    planned_lines,
)
from tailpath.methods.optimal import DELTA
from tailpath.methods.published import ALPHA0, ATOMS, TOLERANCE
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.pictures.distributions import MethodCurve, plot_comparison
from tailpath.progress import progress_line
from tailpath.risk.measure import Measure
from tailpath.show.page.data import ALPHAS as PAGE_ALPHAS
from tailpath.texts import number

#: Alphas of a figure, besides those asked for.
DRAWN = 49


@click.command(cls=ManyAlphas)
@several_alphas(ALPHAS)
@under(
    "What is compared",
    method_option(
        "named", multiple=True, help="A method to compare with the optimum (repeatable)."
    ),
    POLICIES,
    click.option("--all", "everything", is_flag=True, help="Every method in every variant."),
    click.option(f"--{SLOW}", "with_slow", is_flag=True, help="Add CVaRVILI, by linear programs."),
    click.option(
        "--measure",
        "measures",
        type=measure,
        multiple=True,
        help="Add a table of this measure, such as 'late(35)', with the policies that minimise it"
        " (repeatable).",
    ),
)
@under(
    "How it is planned",
    *map(flag_of, (ATOMS, ALPHA0, TOLERANCE, DELTA)),
)
@under("Output", click.option("--plot", type=picture, help="Draw CVaR against alpha."))
@reported
def compare_command(ssp: SSP, source: str, alphas: tuple[float, ...], **given: Any) -> Output:
    """Compare what the planners predict for a MODEL, what their policies deliver, and the optimum.

    --policy adds policies of your own.

    Examples
    --------
    tailpath compare river:30x10
    tailpath compare river:5x5 --alpha 0.05 0.01 --policy policy.json --measure 'late(20)'
    """
    asked = SimpleNamespace(**given)
    if isinstance(ssp, IntervalSSP):
        methods = asked.named or asked.everything or asked.with_slow
        if methods or asked.measures or asked.plot or asked.delta:
            raise OptionError(
                "on a model with intervals compare shows the nominal, adversarial and cooperative"
                " plans; the only option it accepts for what is compared is --policy"
            )
        return compare_plans(ssp, source, alphas, asked.files)
    return _compared(ssp, source, alphas, asked)


def _compared(ssp: SSP, source: str, alphas: tuple[float, ...], asked: SimpleNamespace) -> Output:
    names = [*(asked.named or USUAL), *([SLOW] if asked.with_slow else [])]
    chosen = chosen_methods(names, asked.everything)
    mine = own_policies(ssp, asked.files, chosen)
    leave_out = _note_left_out if asked.everything else None
    with progress_line() as update:
        asking = ssp, mine, chosen, alphas, vars(asked), update
        (rows, found), _, once = timed(compared, *asking, leave_out)
        if asked.plot is not None:
            _draw(ssp, source, rows, alphas, asked.plot, update)
    record = {
        "model": source,
        "planners": {
            row.name: {"seconds": row.seconds, "note": row.plan.note}
            for row in rows
            if row.plan.note
        },
        "optimum_bounds": [
            {"alpha": alpha, "bounds": bounds} for alpha, bounds in found.bounds.items()
        ],
        "rows": [asdict(line) for line in found.lines],
        "compiling_seconds": once,
    }
    text = f"CVaR of {source}\n\n{found.as_text(terminal_width())}"
    if asked.measures:
        policies = [(row.name, row.policy) for row in rows]
        record["measures"], more = measured(ssp, policies, asked.measures, alphas, asked.delta)
        text += f"\n\n{more}"
    if once > 0:
        text += f"\nthe seconds above include {once:.1f} s of compiling, which happens once"
    return record, text


def _note_left_out(name: str, reason: str) -> None:
    print_message("note", f"{name} is left out: {reason}")


def own_policies(ssp: SSP, files: Sequence[str], chosen: Sequence[Method]) -> list[PlannedRow]:
    """The user's policies, each named after its file; read before anything is planned, so that an
    error in a file is reported at once.
    """
    found = [given_row(ssp, Path(file).stem, policy_argument(file, ssp)) for file in files]
    names = [row.name for row in found] + [method.label for method in chosen]
    for name in [name for position, name in enumerate(names) if name in names[:position]][:1]:
        raise OptionError(f"two rows of the table would be called {name!r}: rename the file")
    return found


def measured(
    ssp: SSP,
    policies: Iterable[tuple[str, Callable[[float], tailpath.Policy]]],
    measures: Sequence[Measure],
    alphas: Sequence[float],
    delta: str | None,
) -> tuple[list[dict[str, Any]], str]:
    """Measures of every policy at every alpha, and of the policies that minimise each measure that
    can be, and VaR.
    """
    best = {
        f"least {each}": tailpath.solve(ssp, each, delta=delta).policy
        for each in measures
        if each.can_be_minimised
    }
    lines = []
    for alpha in alphas:
        least_var = tailpath.solve(ssp, tailpath.VaR(alpha), delta=delta).policy
        everyone = {name: policy(alpha) for name, policy in policies}
        for name, policy in {**everyone, "least VaR": least_var, **best}.items():
            costs = evaluate_for(ssp, policy, [*measures, tailpath.VaR(alpha)])
            values = {str(each): each(costs) for each in measures}
            line = {"alpha": alpha, "method": name, **values}
            lines.append({**line, "var": costs.var(alpha), "mean": costs.mean})
    headers = ["alpha", "policy", *map(str, measures), "VaR", "mean"]
    return lines, fitted_table(headers, [list(line.values()) for line in lines])


def compare_plans(
    model: IntervalSSP, source: str, alphas: Sequence[float], files: Sequence[str]
) -> Output:
    """Policies planned on the nominal model and on the intervals, and what each may cost."""
    given = {file: policy_argument(file, model) for file in files}
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
        " all probabilities in the intervals"
    )
    return {"model": source, "rows": lines}, f"CVaR of {source}\n\n{table}\n\n{explained}"


def _draw(
    ssp: SSP,
    source: str,
    rows: Sequence[PlannedRow],
    alphas: Sequence[float],
    path: str,
    update: Update,
) -> None:
    """Draw what every method predicts and delivers, and the optimum, up to alpha 1."""
    more = tailpath.log_atoms(alphas[0], DRAWN).tolist() if alphas[0] < 1 else ()
    drawn = sorted({*alphas, *more})
    curves = []
    for row in rows:
        optimum = row is rows[-1]
        predicted = [value for alpha in drawn if (value := row.plan.predict(alpha)) is not None]
        if predicted:
            kind = "optimum" if optimum else "predicted"
            curves.append(MethodCurve(row.name, kind, drawn, predicted))
        if optimum:
            continue
        deployed = []
        for alpha in drawn:
            update(f"figure: {row.name} at alpha {alpha:.3g}")
            deployed.append(tailpath.evaluate(ssp, row.policy(alpha), alpha).cvar(alpha))
        curves.append(MethodCurve(row.name, "deployed", drawn, deployed))
    save_picture(plot_comparison(curves, title=source), path)


@click.command(cls=ManyAlphas)
@click.option(
    "-o",
    "--out",
    "--output",
    "out",
    type=out_file(".html", ".htm"),
    required=True,
    help="The page to write.",
)
@several_alphas(PAGE_ALPHAS)
@under(
    "What is shown",
    POLICIES,
    method_option("methods", multiple=True, help="Add a planner (repeatable)."),
    click.option("--title", help="Title of the page.  [default: the model, without its folder]"),
    click.option("--unit", default="", show_default=False, help="Unit of the costs, e.g. minutes."),
    flag_of(DELTA),
    click.option("--positions", help="A table of the states' positions: x and y, or lat and lon."),
)
@reported
def page_command(
    ssp: SSP,
    source: str,
    out: str,
    files: tuple[str, ...],
    title: str | None,
    **options: Any,
) -> Output:
    """Explain a MODEL on one page: what the policy with the least mean, your own policies and the
    optimal one do for each alpha, and why.

    The page is one HTML file that any browser shows, even offline: decisions on a map or graph for
    each budget left, distributions, CVaR against alpha, the worst runs step by step, blame, and
    the differences in words.

    Examples
    --------
    tailpath page river:8x6 --out page.html --unit steps
    tailpath page river:5x5 --out page.html --policy policy.json --method quantile
    """
    mine = {row.name: row.policy(1.0) for row in own_policies(ssp, files, [])}
    title = title or (os.path.basename(source) if os.path.isfile(source) else source)
    with progress_line() as update:
        options |= {"title": title, "progress": update}
        made, seconds, _ = timed(tailpath.page, ssp, out, mine, **options)
    size = len(made.html.encode())
    record = {"model": source, "file": out, "bytes": size, "seconds": seconds}
    return record, f"{out}: {size / 1e6:.2g} MB, made in {number(seconds, 2)} s"
