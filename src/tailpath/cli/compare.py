"""`tailpath compare MODEL`: for every alpha what the planners predict, what their policies deliver when deployed, and what is best.

    predicted   the planner's own value
    deployed    the exact CVaR of the policy it returns
    optimum     the least CVaR of any policy; there the two agree, and the evaluation is a check

`docs/optimum.md` tells why they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import click

import tailpath
from tailpath.cli.alphas import ManyAlphas, alphas_option
from tailpath.cli.common import alpha as alpha_type
from tailpath.cli.common import json_option, number, show, table, takes_model
from tailpath.cli.pictures import save_picture
from tailpath.cli.planning import Tell, progress_of
from tailpath.cli.progress import progress_line
from tailpath.methods import Method, Plan, find_method, method_names
from tailpath.methods.method import ROUNDING
from tailpath.model.ssp import SSP
from tailpath.plotting import Curve, plot_comparison

ALPHAS = (0.001, 0.01, 0.1, 0.5)
#: Alphas at which deployed policies are evaluated for a figure, besides those asked for, and of the curves that cost nothing.
FEW, MANY = 49, 193
#: Compared unless others are named; the optimum is always there, at the end.
USUAL = ("expected", "quantile")
BEST = "exact"
#: A problem and settings so small that solving it is nothing but loading what a method needs.
TINY, TINY_ALPHA, TINY_SETTINGS = "textbook:counter-example", 0.5, {"atoms": 3, "alpha0": 0.1}


@dataclass(frozen=True)
class Line:
    """One method at one alpha. `gap` is deployed minus predicted, `over` deployed minus the optimum; `seconds` for planning and evaluating."""

    alpha: float
    method: str
    predicted: float | None
    deployed: float
    gap: float | None
    over: float
    var: float
    mean: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Row:
    """A method that has planned, and how long that took; for all alphas, unless its policies take time of their own."""

    name: str
    plan: Plan
    policy: Callable[[float], tailpath.Policy]
    seconds: float
    noted: bool = True


@click.command(cls=ManyAlphas)
@takes_model
@alphas_option(default=ALPHAS)
@click.option("--method", "named", multiple=True, metavar="NAME", help="Compare this method, beside the optimum (repeatable).")
@click.option("--all", "everything", is_flag=True, help="Compare all methods there are.")
@click.option("--atoms", type=click.IntRange(min=2), default=25, show_default=True, help="Atoms of the planners' grid.")
@click.option("--alpha0", type=alpha_type, metavar="A", help="The first atom.  [default: a tenth of the smallest alpha]")
@click.option("--tolerance", type=float, default=1e-3, show_default=True, help="Planners stop when a sweep changes no value by more.")
@click.option("--interpolation", is_flag=True, help="Also CVaRVILI: a linear program per state, action and atom in every sweep.")
@click.option("--improve", is_flag=True, help="Also what policy iteration makes of the planners' policies.")
@click.option("--delta", metavar="D", help="Round costs to multiples of D for the optimum, which is then bracketed.")
@click.option("--plot", type=click.Path(dir_okay=False), metavar="FILE", help="Draw CVaR against alpha (.png, .pdf or .svg).")
@json_option
def command(
    ssp: SSP,
    source: str,
    alphas: tuple[float, ...],
    named: tuple[str, ...],
    everything: bool,
    interpolation: bool,
    improve: bool,
    plot: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Set side by side what the planners predict for a MODEL, what their policies deliver, and the optimum."""
    chosen = chosen_methods(named, everything, interpolation)
    warm_up(chosen)
    with progress_line() as tell:
        *rows, optimum = planned(ssp, chosen, alphas[0], settings, tell)
        shown = [*rows, *(_improved(ssp, row) for row in rows)] if improve else rows
        lines = [line for alpha in alphas for line in _lines(ssp, alpha, [*shown, optimum], tell)]
        if plot is not None:
            _draw(ssp, source, rows, optimum, alphas, plot, tell)
    assert optimum.plan.bounds is not None
    bounds = [{"alpha": alpha, "bounds": optimum.plan.bounds(alpha)} for alpha in alphas]
    record = {
        "model": source,
        "planners": {row.name: {"seconds": row.seconds, "note": row.plan.note} for row in [*rows, optimum]},
        "optimum_bounds": bounds,
        "rows": [asdict(line) for line in lines],
    }
    show(record, _as_text(source, lines, [*rows, optimum], bounds if settings["delta"] else []), as_json)


def chosen_methods(named: Iterable[str], everything: bool, interpolation: bool) -> list[Method]:
    """The methods to compare, each once, the optimum last."""
    names = [*(method_names() if everything else named or USUAL), *(["interpolation"] if interpolation else [])]
    found = {method.name: method for method in map(find_method, names)}
    found.pop(BEST, None)
    return [*found.values(), find_method(BEST)]


def warm_up(methods: Sequence[Method]) -> None:
    """Load, or on the first run compile, what the methods need, so that the times shown are those of the methods."""
    tiny = tailpath.read(TINY)
    for method in methods:
        tailpath.evaluate(tiny, method.make(tiny, TINY_ALPHA, TINY_SETTINGS).policy(TINY_ALPHA), TINY_ALPHA)


def planned(ssp: SSP, methods: Sequence[Method], alpha: float, settings: Mapping[str, Any], tell: Tell) -> list[Row]:
    """All methods, planned from `alpha` up.

    The risk-neutral optimum is found once and kept with the model; every method that starts from it would need that time alone, too.
    """
    begin = perf_counter()
    tailpath.solve_expected(ssp)
    shared = perf_counter() - begin
    found = []
    for method in methods:
        begin = perf_counter()
        plan = method.make(ssp, alpha, settings, progress_of(method, tell, f"{method.label}: "))
        seconds = perf_counter() - begin + (shared if method.neutral else 0.0)
        found.append(Row(method.label, plan, plan.policy, seconds))
    return found


def _improved(ssp: SSP, row: Row) -> Row:
    """Policy iteration from the policies of a method. It plans per alpha, so its time is part of asking for the policy."""

    def better(alpha: float) -> tailpath.Policy:
        return tailpath.improve(ssp, row.policy(alpha), alpha).policy

    return Row(f"{row.name}, improved", Plan(better), better, 0.0, False)


def _lines(ssp: SSP, alpha: float, rows: Sequence[Row], tell: Tell) -> list[Line]:
    """All methods at one alpha, the optimum last."""
    found = []
    for row in rows:
        tell(f"alpha {alpha:g}: {row.name}")
        begin = perf_counter()
        costs = tailpath.evaluate(ssp, row.policy(alpha), alpha)
        found.append((row, costs, row.seconds + perf_counter() - begin))
    best = found[-1][1].cvar(alpha)
    return [
        Line(
            alpha=alpha,
            method=row.name,
            predicted=row.plan.predict(alpha),
            deployed=costs.cvar(alpha),
            gap=None if (predicted := row.plan.predict(alpha)) is None else costs.cvar(alpha) - predicted,
            over=costs.cvar(alpha) - best,
            var=costs.var(alpha),
            mean=costs.mean,
            seconds=seconds,
        )
        for row, costs, seconds in found
    ]


def _as_text(source: str, lines: Sequence[Line], methods: Sequence[Row], brackets: Sequence[Mapping[str, Any]]) -> str:
    headers = ["alpha", "method", "predicted", "deployed", "gap", "over", "over %", "VaR", "mean", "seconds"]
    rows = [
        [
            number(line.alpha),
            line.method,
            line.predicted,
            line.deployed,
            _difference(line.gap, line.deployed),
            _difference(line.over, line.deployed),
            round(100 * line.over / (line.deployed - line.over), 2) if line.deployed > line.over else None,
            line.var,
            line.mean,
            float(number(line.seconds, 2)),
        ]
        for line in lines
    ]
    notes = [f"{method.name}: {method.plan.note}, planned in {number(method.seconds, 2)} s" for method in methods]
    notes += [f"alpha {entry['alpha']:g}: the optimum lies between {' and '.join(map(number, entry['bounds']))}" for entry in brackets]
    explained = "gap: deployed minus predicted CVaR; over: deployed minus optimal CVaR; seconds: planning and evaluation"
    return "\n".join([f"CVaR of {source}", "", table(headers, rows), "", explained, *notes])


def _difference(value: float | None, scale: float) -> float | None:
    """A difference for people: what is below the ninth digit is rounding."""
    return value if value is None or abs(value) > ROUNDING * scale else 0.0


def _draw(ssp: SSP, source: str, methods: Sequence[Row], optimum: Row, alphas: Sequence[float], path: str, tell: Tell) -> None:
    """The figure: every method's prediction and what it delivers, and the optimum, from the smallest alpha to 1."""
    if alphas[0] == 1:
        few = many = [1.0]
    else:
        few = sorted({*alphas, *tailpath.log_atoms(alphas[0], FEW).tolist()})
        many = sorted({*alphas, *tailpath.log_atoms(alphas[0], MANY).tolist()})
    curves = []
    for method in methods:
        predicted = [value for alpha in many if (value := method.plan.predict(alpha)) is not None]
        if predicted:
            curves.append(Curve(method.name, "predicted", many, predicted))
        deployed = []
        for alpha in few:
            tell(f"figure: {method.name} at alpha {alpha:.3g}")
            deployed.append(tailpath.evaluate(ssp, method.policy(alpha), alpha).cvar(alpha))
        curves.append(Curve(method.name, "deployed", few, deployed))
    curves.append(Curve("optimum", "optimum", many, [best for alpha in many if (best := optimum.plan.predict(alpha)) is not None]))
    save_picture(plot_comparison(curves, title=source), path)
