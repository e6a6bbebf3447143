"""Methods and policies side by side: for every alpha what was predicted, what is delivered when
deployed, and the optimum (`docs/optimum.md`). `tailpath compare` is this table on the command
line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any, NamedTuple

from tailpath.analysis.reachability import NATURES
from tailpath.errors import OptionError, TailpathError
from tailpath.evaluation.band import CostBand, evaluate_band
from tailpath.evaluation.evaluate import evaluate
from tailpath.methods.method import (
    Method,
    Plan,
    find_method,
    method_names,
    no_prediction,
    without_rounding,
)
from tailpath.model.border import prepare
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import Shown
from tailpath.model.ssp import SSP
from tailpath.options import (
    Progress,
    check_alpha,
    check_alphas,
    check_named,
    same_alpha,
    takes_alpha,
    takes_model,
)
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.given import as_policy
from tailpath.policies.policy import Policy
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.solvers.expectation import solve_expected
from tailpath.texts import Content, Table, count, did_you_mean, number

ALPHAS = (0.001, 0.01, 0.1, 0.5)
#: The default planner; the default methods, beside the optimum, which always comes last; and a
#: method so slow that it runs only on request.
PLANNER = "quantile"
USUAL = ("expected", PLANNER)
SLOW = "interpolation"
BEST = "exact"
HEADERS = (
    *("alpha", "method", "predicted", "deployed", "gap"),
    *("over", "over %", "VaR", "mean", "seconds"),
)
#: Columns that a narrow terminal leaves out, in this order.
SPARE = ("seconds", "over", "gap", "VaR")
EXPLAINED = (
    "gap: deployed minus predicted CVaR; over: deployed minus optimal CVaR; seconds: planning and"
    " evaluation"
)

#: A callback that gets the current step, in words.
Update = Callable[[str], None]


@dataclass(frozen=True)
class Line:
    """One method at one alpha; `seconds` for planning and evaluating."""

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
class PlannedRow:
    """A method that has planned, and how long that took."""

    name: str
    plan: Plan
    seconds: float

    @property
    def policy(self) -> Callable[[float], Policy]:
        return self.plan.policy


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Methods and policies beside the optimum; printed, it is a table.

    `comparison[method, alpha]` is a line.

    Attributes
    ----------
    lines : tuple of Line
        By alpha, the optimum last. Each has `alpha`, `method`, `predicted`, `deployed`, `gap`
        (deployed minus predicted), `over` (deployed minus the optimum), `var`, `mean` and
        `seconds`.
    bounds : dict
        `{alpha: (low, high)}`: proved bounds on the optimum.
    notes : tuple of str
        How each method planned.
    bracketed : bool
        Whether the optimum is only known between its bounds, since costs were rounded (`delta`).

    Examples
    --------
    >>> found = tp.compare(ssp, {"car": {"home": "road"}}, [0.1], methods=[])
    >>> found["car", 0.1].deployed, found["car", 0.1].over
    (60.0, 30.0)
    """

    lines: tuple[Line, ...]
    bounds: dict[float, tuple[float, float]]
    notes: tuple[str, ...]
    bracketed: bool = False

    def __repr__(self) -> str:
        methods, alphas = {line.method for line in self.lines}, {line.alpha for line in self.lines}
        return f"<Comparison {count(len(methods), 'method')} at {count(len(alphas), 'alpha')}>"

    def __getitem__(self, key: tuple[str, float]) -> Line:
        """The line of a method at an alpha."""
        for line in self.lines:
            if line.method == key[0] and same_alpha(line.alpha, check_alpha(key[1])):
                return line
        raise KeyError(key)

    def _content(self, most: int) -> Content:
        report = self.bounds.items() if self.bracketed else ()
        notes = [
            f"alpha {alpha:g}: the optimum lies between {' and '.join(map(number, ends))}"
            for alpha, ends in report
        ]
        table = Table(HEADERS, [_cells(line) for line in self.lines], spare=SPARE)
        return table, "\n".join([EXPLAINED, *self.notes, *notes])

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {
            field.name: [getattr(line, field.name) for line in self.lines] for field in fields(Line)
        }


@takes_model
@takes_alpha
def compare(
    ssp: SSP,
    policies: Mapping[str, Any] | None = None,
    alphas: Iterable[float] | float = ALPHAS,
    *,
    methods: Sequence[str] | None = None,
    progress: Update | None = None,
    **settings: Any,
) -> Comparison:
    """Compare policies, and methods by name, with the optimum, for every alpha.

    Parameters
    ----------
    ssp : SSP
        The model.
    policies : mapping, optional
        `{name: policy}`, of anything that `tailpath.policy` takes.
    alphas : float in (0, 1], or iterable of them
        Masses of the worst tail.
    methods : sequence of str, optional
        Those of `tailpath solve`; by default `expected` and `quantile`, or with `policies` none.
        The optimum is always there, last.
    progress : callable, optional
        `progress(text)` is called with a description of the current step.
    **settings : object
        Options of the methods, for those that have them: `atoms`, `alpha0`, `tolerance`, `delta`.

    Returns
    -------
    Comparison
        For every alpha and method what was predicted, the exact CVaR of the policy, and how far
        that is above the optimum; printed, it is a table.

    Raises
    ------
    OptionError
        If an alpha lies outside its range, a method is unknown, or two rows have the same name.

    Examples
    --------
    >>> table = tp.compare(ssp, {"road": {"home": "road"}}, 0.1)
    >>> line = table["road", 0.1]
    >>> line.deployed, line.over
    (60.0, 30.0)
    """
    border = prepare(ssp)
    if border.uncertain:
        raise OptionError(
            "compare needs known probabilities: use model.nominal(), and"
            " tailpath.evaluate(model, policy, alpha) for the range of each cost"
        )
    ssp = border.given
    levels, policies = check_alphas(alphas), check_named(policies, "policies")
    if settings.get("gamma", 1) != 1:
        raise OptionError(
            "compare does not discount; compare on tailpath.within(ssp, n, gamma=gamma)"
        )
    if isinstance(methods, str):
        methods = [methods]
    chosen = chosen_methods(USUAL if methods is None and not policies else methods or ())
    _check_settings(settings)
    for name in policies.keys() & {method.label for method in chosen}:
        raise OptionError(
            f"a policy cannot be called {name!r}: a method of that name is compared as well"
        )
    report = progress or (lambda text: None)
    rows = [given_row(ssp, name, given) for name, given in policies.items()]
    return compared(ssp, rows, chosen, levels, settings, report)[1]


def compared(
    ssp: SSP,
    given: Sequence[PlannedRow],
    methods: Sequence[Method],
    alphas: Sequence[float],
    settings: Mapping[str, Any],
    progress: Update,
    leave_out: Callable[[str, str], None] | None = None,
) -> tuple[list[PlannedRow], Comparison]:
    """Policies that are given, and methods, the optimum last, planned and evaluated at every alpha;
    `leave_out` as of `planned`.
    """
    rows = [*given, *planned(ssp, methods, alphas[0], settings, progress, leave_out)]
    lines = tuple(line for alpha in alphas for line in _lines(ssp, alpha, rows, progress))
    notes = tuple(
        f"{row.name}: {row.plan.note}, planned in {number(row.seconds, 2)} s"
        for row in rows
        if row.plan.note
    )
    known = rows[-1].plan.bounds
    bounds = {alpha: known(alpha) for alpha in alphas} if known else {}
    return rows, Comparison(lines, bounds, notes, settings.get("delta") is not None)


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse a setting that no method has, since it would be ignored silently."""
    known = {option.name for name in method_names() for option in find_method(name).options}
    for name in settings:
        if name not in known:
            near = did_you_mean(name, [*known, "alphas", "methods", "policies"])
            raise OptionError(f"compare and its methods have no option {name!r}{near}")


def chosen_methods(names: Iterable[str], everything: bool = False) -> list[Method]:
    """The methods to compare, each once, the optimum last."""
    names = method_names() if everything else names
    found = {method.name: method for method in map(find_method, names)}
    found.pop(BEST, None)
    return [*found.values(), find_method(BEST)]


def given_row(ssp: SSP, name: str, given: Any) -> PlannedRow:
    """A user's policy. A solution predicts its own CVaR; a plain policy is converted once, here."""
    begin = perf_counter()
    by_alpha = callable(getattr(given, "policy", None))
    fixed = None if by_alpha else as_policy(ssp, given)

    def policy(alpha: float) -> Policy:
        return as_policy(ssp, given, alpha=alpha) if fixed is None else fixed

    predict = given.cvar if by_alpha and hasattr(given, "cvar") else no_prediction
    return PlannedRow(name, Plan(policy, predict), perf_counter() - begin)


def planned(
    ssp: SSP,
    methods: Sequence[Method],
    alpha: float,
    settings: Mapping[str, Any],
    progress: Update,
    leave_out: Callable[[str, str], None] | None = None,
) -> list[PlannedRow]:
    """All methods, planned from `alpha` up; with `leave_out`, called with those that refuse the
    model and why, also in their variants.

    The risk-neutral optimum is found once; every method that starts from it would need that time,
    too.
    """
    alpha = check_alpha(alpha)
    begin = perf_counter()
    solve_expected(ssp)
    shared = perf_counter() - begin
    found = []
    for method in methods:
        for variant in ["", *(method.variants if leave_out else ())]:
            name = f"{method.label}, {variant}" if variant else method.label
            begin = perf_counter()
            try:
                plan = method.make(
                    ssp, alpha, settings, progress_of(method, progress, f"{name}: "), variant
                )
            except TailpathError as error:
                if leave_out is None or method.name == BEST:
                    raise
                leave_out(name, str(error))
            else:
                seconds = perf_counter() - begin + (shared if method.risk_neutral else 0.0)
                found.append(PlannedRow(name, plan, seconds))
    return found


def progress_of(method: Method, progress: Update, prefix: str = "") -> Progress:
    return lambda steps, reached: progress(
        prefix + method.doing.format(steps=steps, reached=reached)
    )


def _lines(ssp: SSP, alpha: float, rows: Sequence[PlannedRow], progress: Update) -> list[Line]:
    found = []
    for row in rows:
        progress(f"alpha {alpha:g}: {row.name}")
        begin = perf_counter()
        costs = evaluate(ssp, row.policy(alpha), alpha)
        found.append((row, costs, row.seconds + perf_counter() - begin))
    best = found[-1][1].cvar(alpha)
    lines = []
    for row, costs, seconds in found:
        predicted, deployed = row.plan.predict(alpha), costs.cvar(alpha)
        gap = None if predicted is None else deployed - predicted
        over = 0.0 if math.isinf(best) else deployed - best  # nothing where both are infinite
        values = predicted, deployed, gap, over, costs.var(alpha), costs.mean
        lines.append(Line(alpha, row.name, *values, seconds))
    return lines


def _cells(line: Line) -> list[Any]:
    gap, over = line.gap, line.over
    deployed = line.deployed
    return [
        number(line.alpha),
        line.method,
        line.predicted,
        deployed,
        None if gap is None else without_rounding(gap, deployed),
        without_rounding(over, deployed),
        round(100 * over / (deployed - over), 2) if deployed > over else None,
        line.var,
        line.mean,
        float(number(line.seconds, 2)),
    ]


# ---------------------------------------------------------------------- models with intervals


class PlanLine(NamedTuple):
    """What a plan for one alpha predicts, None for a given policy, and the range of what its policy
    costs.
    """

    alpha: float
    plan: str
    predicted: float | None
    band: CostBand


def planned_lines(
    model: IntervalSSP, alphas: Sequence[float], given: Mapping[str, Any]
) -> list[PlanLine]:
    """Every plan at every alpha: `nominal`, `adversarial`, `cooperative`, and given policies."""
    least, nominal = min(alphas), model.nominal()
    plain = solve_cvar_exact(nominal, least)
    found: dict[str, Any] = {
        nature: solve_cvar_exact(model, least, nature=nature) for nature in NATURES
    }
    lines = []
    for alpha in alphas:
        plans: list[tuple[str, float | None, Any]] = [
            ("nominal", plain.cvar(alpha), _on(model, nominal, plain.policy(alpha)))
        ]
        plans += [(nature, each.cvar(alpha), each.policy(alpha)) for nature, each in found.items()]
        plans += [(name, None, policy) for name, policy in given.items()]
        lines += [
            PlanLine(alpha, name, predicted, evaluate_band(model, policy, alpha))
            for name, predicted, policy in plans
        ]
    return lines


def _on(model: IntervalSSP, nominal: SSP, policy: Any) -> Any:
    """A policy for the nominal model on the model with intervals, which may have outcomes that were
    never seen.
    """
    inside = model.inside
    if nominal is inside:
        return policy
    steps = policy.budget, policy.first, policy.from_budget, policy.choice, policy.risk_neutral
    return BudgetPolicy(inside, *steps, inside.outcome_level, inside.cost_unit)
