"""`tailpath compare MODEL`: for every alpha what the planners predict, what their policies deliver when deployed, and what is best.

    predicted   the planner's own value
    deployed    the exact CVaR of the policy it returns
    optimum     the least CVaR of any policy; there the two agree, and the evaluation is a check

`docs/optimum.md` tells why they differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tailpath.cli import planners
from tailpath.cli.alphas import ManyAlphas, alphas_option
from tailpath.cli.application import say
from tailpath.cli.common import alpha as alpha_type
from tailpath.cli.common import json_option, number, show, table, takes_model
from tailpath.cli.pictures import save_picture
from tailpath.cli.planners import Planner, Tell
from tailpath.cli.progress import progress_line

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP

ALPHAS = (0.001, 0.01, 0.1, 0.5)
#: Alphas at which deployed policies are evaluated for a figure, besides those asked for, and of the curves that cost nothing.
FEW, MANY = 49, 193


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


@click.command(cls=ManyAlphas)
@takes_model
@alphas_option(default=ALPHAS)
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
    atoms: int,
    alpha0: float | None,
    tolerance: float,
    interpolation: bool,
    improve: bool,
    delta: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Set side by side what the planners predict for a MODEL, what their policies deliver, and the optimum."""
    first = alphas[0] / 10 if alpha0 is None else alpha0
    if first >= alphas[0]:
        say("warning", f"alpha0 = {first:g} is not below the smallest alpha, {alphas[0]:g}; planners do badly near their first atom")
    names = ["quantile", "interpolation"] if interpolation else ["quantile"]
    planners.warm_up(names)
    with progress_line() as tell:
        methods = [planners.expected(ssp), *(planners.published(ssp, name, first, atoms, tolerance, tell) for name in names)]
        optimum, solution = planners.optimum(ssp, alphas[0], delta, tell)
        shown = [*methods, *(planners.improved(ssp, method) for method in methods)] if improve else methods
        lines = [line for alpha in alphas for line in _lines(ssp, alpha, shown, optimum, tell)]
        if plot is not None:
            _draw(ssp, source, methods, solution, alphas, plot, tell)
    bounds = [{"alpha": alpha, "bounds": solution.bounds(alpha)} for alpha in alphas]
    record = {
        "model": source,
        "planners": {method.name: {"seconds": method.seconds, "note": method.note} for method in [*methods, optimum]},
        "optimum_bounds": bounds,
        "rows": [asdict(line) for line in lines],
    }
    show(record, _as_text(source, lines, [*methods, optimum], bounds if delta else []), as_json)


def _lines(ssp: SSP, alpha: float, methods: Sequence[Planner], optimum: Planner, tell: Tell) -> list[Line]:
    """All methods at one alpha, the optimum last."""
    import tailpath

    found = []
    for method in [*methods, optimum]:
        tell(f"alpha {alpha:g}: {method.name}")
        begin = perf_counter()
        costs = tailpath.evaluate(ssp, method.policy(alpha), alpha)
        found.append((method, costs, method.seconds + perf_counter() - begin))
    best = found[-1][1].cvar(alpha)
    return [
        Line(
            alpha=alpha,
            method=method.name,
            predicted=method.predict(alpha),
            deployed=costs.cvar(alpha),
            gap=None if (predicted := method.predict(alpha)) is None else costs.cvar(alpha) - predicted,
            over=costs.cvar(alpha) - best,
            var=costs.var(alpha),
            mean=costs.mean,
            seconds=seconds,
        )
        for method, costs, seconds in found
    ]


def _as_text(source: str, lines: Sequence[Line], methods: Sequence[Planner], brackets: Sequence[Mapping[str, Any]]) -> str:
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
    notes = [f"{method.name}: {method.note}, planned in {number(method.seconds, 2)} s" for method in methods]
    notes += [f"alpha {entry['alpha']:g}: the optimum lies between {' and '.join(map(number, entry['bounds']))}" for entry in brackets]
    explained = "gap: deployed minus predicted CVaR; over: deployed minus optimal CVaR; seconds: planning and evaluation"
    return "\n".join([f"CVaR of {source}", "", table(headers, rows), "", explained, *notes])


def _difference(value: float | None, scale: float) -> float | None:
    """A difference for people: what is below the ninth digit is rounding."""
    return value if value is None or abs(value) > 1e-9 * scale else 0.0


def _draw(ssp: SSP, source: str, methods: Sequence[Planner], solution: Any, alphas: Sequence[float], path: str, tell: Tell) -> None:
    """The figure: every method's prediction and what it delivers, and the optimum, from the smallest alpha to 1."""
    import tailpath
    from tailpath.plotting import Curve, plot_comparison

    if alphas[0] == 1:
        few = many = [1.0]
    else:
        few = sorted({*alphas, *tailpath.log_atoms(alphas[0], FEW).tolist()})
        many = sorted({*alphas, *tailpath.log_atoms(alphas[0], MANY).tolist()})
    curves = []
    for method in methods:
        predicted = [value for alpha in many if (value := method.predict(alpha)) is not None]
        if predicted:
            curves.append(Curve(method.name, "predicted", many, predicted))
        deployed = []
        for alpha in few:
            tell(f"figure: {method.name} at alpha {alpha:.3g}")
            deployed.append(tailpath.evaluate(ssp, method.policy(alpha), alpha).cvar(alpha))
        curves.append(Curve(method.name, "deployed", few, deployed))
    curves.append(Curve("optimum", "optimum", many, solution.curve(many).tolist()))
    save_picture(plot_comparison(curves, title=source), path)
