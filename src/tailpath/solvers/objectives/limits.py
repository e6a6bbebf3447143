"""The best policy under limits, by column generation.

Every policy is a point (E h_0(Z), E h_1(Z), ...), and mixtures of policies fill the convex hull of
these points. So the least E h_0 with E h_i <= b_i is a linear program over policies. Its *master*
(`master.py`) knows the policies found so far and gives multipliers; *pricing* is the recursion for
h_0 + sum multiplier_i * h_i (`losses.py`), which finds the policy that would help most.

CVaR_alpha(Z) <= b holds exactly if E (Z - w)+ <= alpha (b - w) for some w >= 0 on the cost grid;
likewise in the objective. For a fixed w that is a loss like any other. The value is not convex in
w, so all w compete; one pricing with the multipliers of the best one so far rules out most of them.

**Proof.** For any y >= 0 no policy that keeps the limits has less than min E (h_0 + sum y_i h_i) -
sum y_i b_i; and if min E (sum y_i h_i) > sum y_i b_i, none keeps them. So for every w the y of its
last pricing is a *certificate*, checked when bounds are asked for by one more sweep, from below.
From above the optimum is bounded by what the mixture delivers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.certify.budgets import Later
from tailpath.certify.losses import least_from_below
from tailpath.dp.budget_model import EXCESS, NO_LOSS
from tailpath.errors import InfeasibleError, OptionError
from tailpath.graph import FloatArray
from tailpath.model.potential import shifted_bounds
from tailpath.model.ssp import SSP
from tailpath.policies.kinds import by_coin
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import Limit, Measure
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import fill_table
from tailpath.solvers.objectives.answers import RiskSolution
from tailpath.solvers.objectives.losses import Losses, Priced
from tailpath.solvers.objectives.master import Mixture, best_mixture

#: Column generation ends when the relative gap has fallen to this.
GAP = 1e-11
#: Limits may be missed by this much, relatively: rounding, not policy. Where that is worth more
#: than this share of the value, it is made use of.
SLACK, WORTH_MISSING = 1e-12, 1e-10
#: A policy with less weight in a mixture is left out.
LEAST_WEIGHT = 1e-15
MAX_COLUMNS = 2_000


@dataclass(frozen=True)
class LossRow:
    """The objective or a limit: the expectation of a loss and, if `factor` > 0, so much CVaR."""

    curve: Curve
    factor: float
    alpha: float
    bound: float

    def at(self, w: Fraction) -> Curve:
        """The loss that remains when the budget of the CVaR is w."""
        if not self.factor:
            return self.curve
        return self.curve + curve_of([(w, 0)], 1) * (self.factor / self.alpha)


def row_of(measure: Measure, bound: float = math.inf) -> LossRow:
    """A measure, or a limit on it, as a row."""
    measure, bound = measure.as_limit(bound)
    factor, alpha = measure.tail or (0.0, 1.0)
    if measure.curve is None and measure.tail is None:
        raise OptionError(f"{measure} can only be minimised alone or without limits")
    return LossRow(measure.curve or curve_of([(0, 0)], 0), factor, alpha, bound)


class Certificate(NamedTuple):
    """Why a budget w, in units, has no better policy: multipliers y of the objective and the limits
    (1 or 0 for the objective), and the limits.
    """

    w: int
    y: FloatArray
    bounds: FloatArray


class Program:
    """The linear program for one budget w of the CVaR, in units, and the policies found for it so
    far. Loss 0 is the objective, `constant` a part of its value. `limits` are what limits leave
    for the other losses, rounded up, `surely` the same rounded down; `bounds` may be moved, where
    rounding decides.
    """

    def __init__(self, ssp: SSP, rows: list[LossRow], w: int) -> None:
        assert ssp.cost_unit is not None
        self.ssp, self.rows, self.w = ssp, rows, w
        budget = w * ssp.cost_unit
        self.losses = Losses(ssp, [row.at(budget) for row in rows])
        paid = [Fraction(row.factor) * budget for row in rows]
        self.exact_constant, self.constant = paid[0], float(paid[0])
        both = [shifted_bounds((r.bound, r.bound), -less) for r, less in zip(rows[1:], paid[1:])]
        self.surely, self.limits = np.array(both).reshape(-1, 2).T
        self.bounds = self.limits.copy()
        self.slack = SLACK * np.abs([row.bound for row in rows[1:]])
        self.found: list[Priced] = []

    @property
    def values(self) -> FloatArray:
        return np.array([priced.losses for priced in self.found])

    def price(self, y: FloatArray) -> float:
        """Find the best policy for some multipliers; returns what nothing can be less than."""
        self.found.append(self.losses.price(y))
        return self.found[-1].value - float(y[1:] @ self.bounds) + self.constant * y[0]

    def certificate(self, y: FloatArray) -> Certificate:
        return Certificate(self.w, y, self.bounds)

    def infeasible(self) -> Certificate | None:
        """Find policies that together keep all limits, one limit after the other; or say why there
        are none.
        """
        for i in range(1, len(self.bounds) + 1):
            y = self._missed(i)
            if y is not None and i > 1:
                # A little of a limit before may be worth much of this one, and what it is missed by
                # in rounding must not decide.
                self.bounds[: i - 1] += self.slack[: i - 1]
                y = self._missed(i)
            if y is not None:
                return self.certificate(y)
        return None

    def _missed(self, i: int) -> FloatArray | None:
        """Whether limit `i` cannot be kept with those before it; one that rounding decides about is
        moved.
        """
        bound = self.bounds[i - 1]
        mixture, y = self.descend(i, list(range(1, i)), enough=bound)
        least = mixture.value
        if least > bound + max(self.slack[i - 1], SLACK * abs(least)):
            return y
        if least >= bound:
            self.bounds[i - 1] = least + SLACK * abs(least)
        return None

    def descend(
        self, target: int, limits: list[int], enough: float = -math.inf
    ) -> tuple[Mixture, FloatArray]:
        """Minimise loss `target` under some of the limits; with the multipliers that prove it."""
        unit = np.eye(len(self.bounds) + 1)
        low, proof = -math.inf, unit[target]
        if not self.found:
            self.price(unit[target])
        while True:
            values, bounds = self.values, self.bounds[[i - 1 for i in limits]]
            mixture = best_mixture(values[:, target], values[:, limits].T, bounds)
            if mixture is None:
                raise OptionError(
                    "the limits are so tight that rounding decides; loosen them a little"
                )
            if mixture.value <= enough or len(self.found) > MAX_COLUMNS:
                return mixture, proof
            y = unit[target] + (mixture.multipliers @ unit[limits] if limits else 0.0)
            self.price(y)
            priced, paid = self.found[-1], float(mixture.multipliers @ bounds)
            if priced.value - paid > low:
                low, proof = priced.value - paid, y
            size = max(abs(mixture.value), abs(paid), 1e-300)
            same = np.all(np.abs(values - priced.losses) <= 1e-14 * np.abs(values), axis=1)
            if same.any():
                self.found.pop()
            if same.any() or mixture.value - (priced.value - paid) <= GAP * size:
                return mixture, proof

    def best(self) -> Best:
        """The best mixture that keeps the limits; `infeasible` has found some that do."""
        limits = list(range(1, len(self.bounds) + 1))
        mixture, y = self.descend(0, limits)
        steep = mixture.multipliers * self.slack > WORTH_MISSING * abs(mixture.value)
        if steep.any():
            self.bounds[steep] = np.maximum(self.bounds, self.limits + self.slack)[steep]
            mixture, y = self.descend(0, limits)
        taken = np.flatnonzero(mixture.weights > LEAST_WEIGHT)
        weights = (mixture.weights[taken] / math.fsum(mixture.weights[taken])).tolist()
        members = [self.found[i] for i in taken.tolist()]
        value = mixture.value + self.constant
        return Best(self, value, weights, members, mixture.multipliers, self.certificate(y))

    def single(self) -> Best | None:
        """The best single policy met that keeps the limits."""
        values = self.values
        keeps = np.all(values[:, 1:] <= self.bounds + self.slack, axis=1)
        if not keeps.any():
            return None
        member = self.found[int(np.argmin(np.where(keeps, values[:, 0], np.inf)))]
        value, nothing = float(member.losses[0]) + self.constant, np.zeros(0)
        return Best(self, value, [1.0], [member], nothing, self.certificate(nothing))


class Best(NamedTuple):
    """The best mixture for one budget: its value, the weights of its members, and multipliers."""

    program: Program
    value: float
    weights: list[float]
    members: list[Priced]
    multipliers: FloatArray
    proof: Certificate

    def high(self) -> float:
        """What the mixture costs at most; the least of mixtures that keep the limits surely, where
        there are any and limits were not moved, and otherwise they count as kept.
        """
        program = self.program
        highs = np.array([program.losses.high(member.weights) for member in self.members])
        weights = [Fraction(weight) for weight in self.weights]
        costs = [Fraction(cost) for cost in highs[:, 0].tolist()]
        most = sum((w * c for w, c in zip(weights, costs)), Fraction(0)) / sum(weights)
        if np.array_equal(program.bounds, program.limits):
            sure = best_mixture(highs[:, 0], highs[:, 1:].T, program.surely)
            if sure is not None:
                most = max(most, Fraction(math.nextafter(sure.value, math.inf)))
        return shifted_bounds((0.0, 0.0), most + program.exact_constant)[1]


@dataclass(frozen=True, eq=False)
class BudgetSearch:
    """The search over the budgets w of the CVaR in a row of a program; without one, w is 0."""

    ssp: SSP
    rows: list[LossRow]

    def program(self, w: int) -> Program:
        return Program(self.ssp, self.rows, w)

    @property
    def tail(self) -> int:
        """The row with the CVaR; -1 if there is none."""
        return next((i for i, row in enumerate(self.rows) if row.factor > 0), -1)

    def best(self) -> tuple[Best | None, list[Certificate]]:
        """The best mixture for any budget, and why no budget has a better one."""
        best: Best | None = None
        proofs: list[Certificate] = []
        for w in self._budgets():
            program = self.program(w)
            if best is not None:
                if self.tail == 0 and program.constant + self._rest >= best.value:
                    proofs.append(program.certificate(np.zeros(0)))
                    break
                y = np.append(1.0, best.multipliers)
                if program.price(y) >= best.value - GAP * abs(best.value):
                    proofs.append(program.certificate(y))
                    continue
            refused = program.infeasible()
            if refused is not None:
                proofs.append(refused)
                if self.tail == 0:  # the limits are the same for all budgets of the objective
                    break
                continue
            found = program.best()
            proofs.append(found.proof)
            if best is None or found.value < best.value:
                best = found
        return best, proofs

    def low(self, proofs: list[Certificate]) -> float:
        """What the certificates prove for all budgets together."""
        lows = [self._proved(proof) for proof in proofs]
        if self.tail > 0 and not self._others_refused():
            lows.append(self._without_limits)
        return min(lows, default=math.inf)

    def _proved(self, proof: Certificate) -> float:
        program = self.program(proof.w)
        constant = program.exact_constant
        if not len(proof.y):  # no CVaR is less than its budget, and all else no less than alone
            rest = Losses(self.ssp, [self.rows[0].curve]).low(np.ones(1))
            return shifted_bounds((rest, rest), constant)[0]
        y, bounds = proof.y.tolist(), proof.bounds.tolist()
        paid = sum((Fraction(a) * Fraction(b) for a, b in zip(y[1:], bounds) if a), Fraction(0))
        low = program.losses.low(proof.y)
        if y[0]:
            return shifted_bounds((low, low), constant - paid)[0]
        return math.inf if Fraction(low) > paid else self._without_limits

    @cached_property
    def _rest(self) -> float:
        """All of the objective that is no CVaR, alone."""
        return Losses(self.ssp, [self.rows[0].curve]).price(np.ones(1)).value

    @cached_property
    def _without_limits(self) -> float:
        return Losses(self.ssp, [self.rows[0].curve]).low(np.ones(1))

    def _budgets(self) -> Iterable[int]:
        if self.tail < 0:
            return [0]
        return itertools.count() if self.tail == 0 else self._easiest_first()

    def _easiest_first(self) -> Iterator[int]:
        """The budgets with which a limit on CVaR can be kept if it were alone."""
        most = self._most
        if most < 0:
            return
        layout = layout_of(self.ssp)
        table = fill_table(layout, layout.objective(EXCESS, limit=float(most)))
        left = self._left(table.values[:, 0])
        for w in np.argsort(-left, kind="stable").tolist():
            if left[w] >= -SLACK * abs(self.rows[self.tail].bound):
                yield w

    def _others_refused(self) -> bool:
        """Whether all other budgets surely break the limit."""
        if self._most < 0:
            return True
        layout, slack = layout_of(self.ssp), SLACK * abs(self.rows[self.tail].bound)
        objective = layout.objective(EXCESS, limit=float(self._most))
        nominal = self._left(fill_table(layout, objective).values[:, 0])
        surely = self._left(least_from_below(layout, objective, NO_LOSS))
        return bool(np.all((nominal >= -slack) | (surely < -slack / 2)))

    @property
    def _least(self) -> float:
        """The least value of what is limited beside the CVaR."""
        curve = self.rows[self.tail].curve
        return min(*curve.at, *curve.after)

    @property
    def _most(self) -> int:
        """The largest budget with which the limit can be kept."""
        assert self.ssp.cost_unit is not None
        row = self.rows[self.tail]
        budget = (row.bound - self._least) / row.factor / float(self.ssp.cost_unit)
        return math.floor(budget * (1 + SLACK))

    def _left(self, excess: FloatArray) -> FloatArray:
        """What a limit on CVaR leaves by budget, if the excess is this in units."""
        assert self.ssp.cost_unit is not None
        row, w = self.rows[self.tail], np.arange(len(excess))
        cvar = (w + excess / row.alpha) * float(self.ssp.cost_unit)
        left: FloatArray = (row.bound - self._least) - row.factor * cvar
        return left


def solve_limited(
    ssp: SSP, objective: Measure, limits: tuple[Limit, ...], mix: bool = True
) -> RiskSolution:
    """The least objective under the limits."""
    rows = [row_of(objective), *(row_of(limit.measure, limit.bound) for limit in limits)]
    search = BudgetSearch(ssp, rows)
    best, proofs = search.best()
    if best is None:
        raise InfeasibleError(
            f"no policy keeps all limits at once: {', '.join(str(limit) for limit in limits)}; each"
            " alone can be kept"
        )
    taken = best if mix else best.program.single()
    if taken is None:
        raise InfeasibleError(
            "no single policy was found that keeps the limits; a mixture (mix=True) does"
        )
    policies = [best.program.losses.policy(member.weights) for member in taken.members]
    policy, multipliers = by_coin(policies, taken.weights), tuple(best.multipliers.tolist())

    def bounds() -> tuple[float, float]:
        return min(search.low(proofs), taken.value), max(taken.high(), taken.value)

    return RiskSolution(ssp, objective, limits, taken.value, Later(bounds), policy, multipliers)
