"""The best policy under limits, by column generation.

Every policy is a point (E h_0(Z), E h_1(Z), ...), and mixtures of policies fill the convex hull of
these points. So the least E h_0 with E h_i <= b_i is a linear program over policies. Its *master*
(`master.py`) knows the policies found so far and gives multipliers; *pricing* is the recursion for
h_0 + sum multiplier_i * h_i (`losses.py`), which finds the policy that would help most.

CVaR_alpha(Z) <= b holds exactly if E (Z - w)+ <= alpha (b - w) for some w >= 0 on the cost grid;
likewise in the objective. For a fixed w that is a loss like any other. The value is not convex in
w, so all w compete; one pricing with the multipliers of the best one so far rules out most of them.

A limit that holds only where its loss is least, like late(5) <= 0, *forbids*: it restricts the
choices by state and budget, and is not a row of the program.

**Proof.** For any y >= 0 no policy that keeps the limits has less than min E (h_0 + sum y_i h_i) -
sum y_i b_i; and if min E (sum y_i h_i) > sum y_i b_i, none keeps them. So for every w the y of its
last pricing is a *certificate*, checked when bounds are asked for by one more sweep, from below.
What the mixture delivers bounds the optimum from above.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from tailpath.certify.budgets import Later
from tailpath.errors import InfeasibleError, OptionError
from tailpath.graph import FloatArray
from tailpath.model.border import require_unit, shifted_bounds
from tailpath.model.ssp import SSP
from tailpath.policies.kinds import by_coin
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import Limit, Measure
from tailpath.solvers.exact.solver import solve_cvar_exact
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
#: The multipliers of a budget beyond which none can be better, whatever the limits.
NO_BETTER_REST = np.ones(1)


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


class LimitedTask(NamedTuple):
    """What is minimised and the limits, as rows; and the losses of limits that forbid."""

    ssp: SSP
    rows: list[LossRow]
    forbidding: list[Curve]

    @property
    def tail(self) -> int:
        """The row with the CVaR; -1 if there is none."""
        return next((i for i, row in enumerate(self.rows) if row.factor > 0), -1)

    @property
    def rest(self) -> Losses:
        """All of the objective that is no CVaR."""
        return Losses(self.ssp, [self.rows[0].curve], self.forbidding)


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

    def __init__(self, task: LimitedTask, w: int) -> None:
        ssp, rows = task.ssp, task.rows
        self.w, budget = w, w * require_unit(ssp)
        self.losses = Losses(ssp, [row.at(budget) for row in rows], task.forbidding)
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
        return self.found[-1].value - float(y[1:] @ self.bounds) + self.constant * float(y[0])

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


def _budgets(task: LimitedTask) -> Iterable[int]:
    """The budgets of the CVaR that may matter; those of a limit from the easiest to keep on."""
    ssp, tail = task.ssp, task.tail
    if tail <= 0:
        return itertools.count() if tail == 0 else [0]
    row, unit = task.rows[tail], float(require_unit(ssp))
    most = math.floor((row.bound - row.curve.least) / row.factor / unit * (1 + SLACK))
    easiest = solve_cvar_exact(ssp, row.alpha).budget(row.alpha) / unit
    return sorted(range(most + 1), key=lambda w: abs(w - easiest))


def _best_budget(task: LimitedTask) -> tuple[Best | None, list[Certificate]]:
    """The best mixture for any budget of the CVaR, and why no budget has a better one. Without a
    CVaR, 0 is all there is.
    """
    best: Best | None = None
    proofs: list[Certificate] = []
    tail, rest = task.tail, task.rest.price(np.ones(1)).value
    if math.isinf(rest):
        return None, []
    for w in _budgets(task):
        program = Program(task, w)
        if best is not None:
            # No CVaR is less than its budget, and all else no less than it is alone.
            if tail == 0 and program.constant + rest >= best.value:
                proofs.append(program.certificate(NO_BETTER_REST))
                break
            y = np.append(1.0, best.multipliers)
            if program.price(y) >= best.value - GAP * abs(best.value):
                proofs.append(program.certificate(y))
                continue
        refused = program.infeasible()
        if refused is None:
            found = program.best()
            proofs.append(found.proof)
            best = found if best is None or found.value < best.value else best
            continue
        proofs.append(refused)
        if tail == 0:  # the limits are the same for all budgets of the objective
            break
    return best, proofs


def _proved(task: LimitedTask, proofs: list[Certificate]) -> float:
    """What certificates prove for all budgets together."""
    rest = cache(lambda: task.rest.low(np.ones(1)))
    lows = [math.inf]
    for w, y, bounds in proofs:
        program = Program(task, w)
        paid = sum((Fraction(a) * Fraction(b) for a, b in zip(y[1:], bounds) if a), Fraction(0))
        low = rest() if y is NO_BETTER_REST else program.losses.low(y)
        if y[0]:
            lows.append(shifted_bounds((low, low), program.exact_constant - paid)[0])
        elif Fraction(low) <= paid:
            lows.append(rest())
    return min(lows)


def solve_limited(ssp: SSP, objective: Measure, limits: tuple[Limit, ...]) -> RiskSolution:
    """The least objective under the limits."""
    goal, rows = row_of(objective), [row_of(limit.measure, limit.bound) for limit in limits]
    forbids = [row.factor == 0 and row.bound <= row.curve.least for row in rows]
    kept = [goal, *(row for row, forbid in zip(rows, forbids) if not forbid)]
    curves = [row.curve for row, forbid in zip(rows, forbids) if forbid]
    task = LimitedTask(ssp, kept, curves)
    best, proofs = _best_budget(task)
    if best is None:
        if len(limits) == 1:
            why = "each breaks it with some probability, however small"
            if not forbids[0]:
                why = f"none that does surely arrives, so {objective} would be infinite"
            raise InfeasibleError(f"no policy keeps {limits[0]}: {why}")
        raise InfeasibleError(
            f"no policy keeps all limits at once: {', '.join(str(limit) for limit in limits)}; each"
            " alone can be kept"
        )
    policies = [best.program.losses.policy(member.weights) for member in best.members]
    policy, found = by_coin(policies, best.weights), iter(best.multipliers.tolist())
    multipliers = tuple(math.inf if forbid else next(found) for forbid in forbids)

    def bounds() -> tuple[float, float]:
        return min(_proved(task, proofs), best.value), max(best.high(), best.value)

    return RiskSolution(ssp, objective, limits, best.value, Later(bounds), policy, multipliers)
