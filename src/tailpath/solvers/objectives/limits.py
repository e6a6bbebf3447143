"""The best policy under limits, by column generation.

Every policy is a point (E h_0(Z), E h_1(Z), ...), and mixtures of policies fill the convex hull of
these points. So the least E h_0 with E h_i <= b_i is a linear program over policies. Its *master*
(`master.py`) knows the policies found so far and gives multipliers; *pricing* is the recursion for
h_0 + sum multiplier_i * h_i, which finds the policy that would help most and bounds the optimum
from below.

CVaR_alpha(Z) <= b holds exactly if E (Z - w)+ <= alpha (b - w) for some w >= 0 on the cost grid;
likewise in the objective. For a fixed w that is a loss like any other. The value is not convex in
w, so all w compete; one pricing with the multipliers of the best one so far rules out most of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tailpath.dp.budget_model import EXCESS
from tailpath.errors import InfeasibleError, OptionError
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import ROUNDOFF
from tailpath.model.ssp import SSP
from tailpath.policies.kinds import by_coin
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import Limit, Measure
from tailpath.risk.measures import Late, VaR
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import fill_table
from tailpath.solvers.objectives.answers import RiskSolution
from tailpath.solvers.objectives.losses import Losses, Priced
from tailpath.solvers.objectives.master import Mixture, best_mixture

#: Column generation ends when the relative gap has fallen to this.
GAP = 1e-11
#: Limits may be missed by this much, relatively: rounding, not policy.
SLACK = 1e-12
MAX_COLUMNS = 2_000


@dataclass(frozen=True)
class LossRow:
    """The objective or a limit: the expectation of a loss and, if `factor` > 0, so much CVaR."""

    curve: Curve
    factor: float
    alpha: float
    bound: float

    def at(self, w: float) -> Curve:
        """The loss that remains when the budget of the CVaR is w."""
        if not self.factor:
            return self.curve
        return self.curve + curve_of([(w, 0)], 1) * (self.factor / self.alpha)


def row_of(measure: Measure, bound: float = math.inf) -> LossRow:
    """A measure as a row; VaR_alpha <= t is a limit on being late: P(Z > t) <= alpha."""
    factor, alpha = measure.tail or (0.0, 1.0)
    curve = measure.curve
    if isinstance(measure, VaR):
        curve, bound = Late(bound).curve, measure.alpha
    elif curve is None and measure.tail is None:
        raise OptionError(f"{measure} can only be minimised alone or without limits")
    return LossRow(curve or curve_of([(0, 0)], 0), factor, alpha, bound)


class Columns:
    """Policies found so far for fixed losses, and the search for more. Loss 0 is the objective.
    `bounds` are what the limits, `sizes`, leave for the losses: less than nothing by rounding
    alone.
    """

    def __init__(self, losses: Losses, bounds: FloatArray, sizes: FloatArray) -> None:
        self.losses, self.bounds = losses, bounds
        self.slack = SLACK * np.abs(sizes)
        self.found: list[Priced] = []

    @property
    def values(self) -> FloatArray:
        return np.array([priced.losses for priced in self.found])

    def high(self) -> float:
        """What the best mixture costs at most; infinite if rounding decides about the limits."""
        loss_error = np.array([priced.loss_error for priced in self.found])
        values = self.values + loss_error
        mixture = best_mixture(values[:, 0], values[:, 1:].T, self.bounds)
        if mixture is None:
            return math.inf
        return mixture.value + 4 * ROUNDOFF * float(np.abs(values[:, 0]).max())

    def add(self, weights: FloatArray) -> Priced:
        priced = self.losses.price(weights)
        self.found.append(priced)
        return priced

    def feasible(self) -> bool:
        """Find policies that together keep all limits: one limit after the other."""
        for i in range(1, len(self.bounds) + 1):
            if self._keeps(i):
                continue
            # A little of a limit before may be worth much of this one, and what it is missed by
            # in rounding must not decide.
            self.bounds[: i - 1] += self.slack[: i - 1]
            if i == 1 or not self._keeps(i):
                return False
        return True

    def _keeps(self, i: int) -> bool:
        """Whether limit `i` can be kept with those before it; one that rounding decides about is
        moved."""
        bound = self.bounds[i - 1]
        least = self.descend(i, list(range(1, i)), enough=bound)[0].value
        if least > bound + max(self.slack[i - 1], SLACK * abs(least)):
            return False
        self.bounds[i - 1] = max(bound, least + SLACK * abs(least))
        return True

    def descend(
        self, target: int, limits: list[int], enough: float = -math.inf
    ) -> tuple[Mixture, float]:
        """Minimise loss `target` under some of the limits; also returns a proved lower bound."""
        low, unit = -math.inf, np.eye(len(self.bounds) + 1)
        if not self.found:
            self.add(unit[target])
        while True:
            values, bounds = self.values, self.bounds[[i - 1 for i in limits]]
            mixture = best_mixture(values[:, target], values[:, limits].T, bounds)
            if mixture is None:
                raise OptionError(
                    "the limits are so tight that rounding decides; loosen them a little"
                )
            if mixture.value <= enough or len(self.found) > MAX_COLUMNS:
                return mixture, low
            weights = unit[target] + mixture.multipliers @ unit[limits] if limits else unit[target]
            priced = self.add(weights)
            paid = float(mixture.multipliers @ bounds)
            low = max(
                low,
                priced.low
                - paid
                - 4 * ROUNDOFF * (abs(priced.low) + float(mixture.multipliers @ np.abs(bounds))),
            )
            size = max(abs(mixture.value), abs(paid), 1e-300)
            same = np.all(np.abs(values - priced.losses) <= 1e-14 * np.abs(values), axis=1)
            if mixture.value - (priced.value - paid) <= GAP * size or same.any():
                if same.any():
                    self.found.pop()
                return mixture, low


class BestMixture(NamedTuple):
    """The best mixture for one budget of the CVaR, and the best single policy met on the way that
    keeps the limits. `constant` is part of the value.
    """

    value: float
    low: float
    high: float
    columns: Columns
    weights: FloatArray
    multipliers: FloatArray
    single: Priced | None
    constant: float


def solve_limited(
    ssp: SSP, objective: Measure, limits: tuple[Limit, ...], rows: list[LossRow], mix: bool
) -> RiskSolution:
    """The least objective under the limits; `rows` are the objective and the limits."""
    best, low = _best_budget(ssp, rows)
    if best is None:
        raise InfeasibleError(
            f"no policy keeps all limits at once: {', '.join(str(limit) for limit in limits)}; each"
            " alone can be kept"
        )
    if not mix and best.single is None:
        raise InfeasibleError(
            "no single policy was found that keeps the limits; a mixture (mix=True) does"
        )
    losses, value = best.columns.losses, best.value
    if mix or best.single is None:
        # Less is rounding, where one policy just keeps the limit.
        taken = np.flatnonzero(best.weights > 4 * ROUNDOFF)
        share = best.weights[taken].tolist()
        members = [best.columns.found[i] for i in taken.tolist()]
        policies = [losses.policy(member.weights) for member in members]
        policy, high = by_coin(policies, [each / math.fsum(share) for each in share]), value
    else:
        value = float(best.single.losses[0]) + best.constant
        policy = losses.policy(best.single.weights)
        high = value + float(best.single.loss_error[0]) + 4 * ROUNDOFF * abs(value)
    multipliers = tuple(best.multipliers.tolist())
    bounds = low, max(best.high, high)
    return RiskSolution(ssp, objective, limits, value, bounds, policy, multipliers)


def _best_budget(ssp: SSP, rows: list[LossRow]) -> tuple[BestMixture | None, float]:
    """The best of all budgets of the CVaR, and a lower bound for all; without CVaR 0 is all there
    is.
    """
    assert ssp.cost_unit is not None
    tail = next((i for i, row in enumerate(rows) if row.factor > 0), -1)
    row, unit = rows[tail], float(ssp.cost_unit)
    sizes = np.array([row.bound for row in rows[1:]])
    budgets: Iterable[int] = [0]
    least = 0.0
    if tail == 0:
        # No CVaR is less than its budget, and all else in the objective no less than it can be
        # alone.
        budgets, least = itertools.count(), Losses(ssp, [row.curve]).price(np.ones(1)).low
    elif tail > 0:
        budgets = _candidates(ssp, row)
    best: BestMixture | None = None
    lows: list[float] = []
    for w in budgets:
        paid = row.factor * w * unit
        constant = paid if tail == 0 else 0.0
        if best is not None and tail == 0 and constant + least >= best.value:
            break
        bounds = np.array([r.bound - paid * (i == tail) for i, r in enumerate(rows)][1:])
        columns = Columns(Losses(ssp, [r.at(w * unit) for r in rows]), bounds, sizes)
        if best is not None:
            tried = columns.add(np.append(1.0, best.multipliers))
            parts = np.array([tried.low, *(-best.multipliers * bounds), constant])
            bound = float(parts.sum()) - 4 * ROUNDOFF * float(np.abs(parts).sum())
            if bound >= best.value - GAP * abs(best.value):
                lows.append(bound)
                continue
        if not columns.feasible():
            if tail == 0:  # the limits are the same for all budgets of the objective
                break
            continue
        found = _descended(columns, constant)
        lows.append(found.low)
        if best is None or found.value < best.value:
            best = found
    return best, min(lows, default=math.inf)


def _descended(columns: Columns, constant: float) -> BestMixture:
    """The best mixture that keeps the limits, and the best single policy met on the way."""
    mixture, low = columns.descend(0, list(range(1, len(columns.bounds) + 1)))
    found, values = columns.found, columns.values
    weights = np.zeros(len(found))
    weights[: len(mixture.weights)] = mixture.weights
    keeps = np.all(values[:, 1:] <= columns.bounds + columns.slack, axis=1)
    single = found[int(np.argmin(np.where(keeps, values[:, 0], np.inf)))] if keeps.any() else None
    high = columns.high()
    # Rounding decides about the limits: they count as kept, and what the mixture costs is charged
    # alone.
    if math.isinf(high):
        loss_error = np.array([priced.loss_error[0] for priced in found])
        high = (
            mixture.value
            + float(weights @ loss_error)
            + 8 * ROUNDOFF * float(np.abs(values[:, 0]).max())
        )
    rounding = 4 * ROUNDOFF * abs(constant)
    value, low = mixture.value + constant, low + constant - rounding
    high = high + constant + rounding
    return BestMixture(value, low, high, columns, weights, mixture.multipliers, single, constant)


def _candidates(ssp: SSP, row: LossRow) -> Iterable[int]:
    """The budgets, in units, with which a limit on CVaR can be kept, the easiest first."""
    assert ssp.cost_unit is not None
    unit = float(ssp.cost_unit)
    least = min(min(row.curve.at), min(row.curve.after))
    most = math.floor((row.bound - least) / row.factor / unit * (1 + SLACK))
    if most < 0:
        return []
    layout = layout_of(ssp)
    table = fill_table(layout, layout.objective(EXCESS, limit=float(most)))
    excess = table.values[: most + 1, 0] * unit
    w = np.arange(len(excess)) * unit
    slack = (row.bound - least) - row.factor * (w + excess / row.alpha)
    easiest = np.argsort(-slack, kind="stable")
    return [int(i) for i in easiest if slack[i] >= -SLACK * abs(row.bound)]
