"""A model with intervals, against or with nature: the expected cost, and tables over budgets.
Numbers only; solvers and evaluation make of them what a user sees.

Only states and choices from which arriving is almost sure are used, as in an SSP (`core.py`). Where
never arriving has a finite price, all are, and those that are not almost sure may end at a cost
beyond every budget that counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import (
    almost_sure_under_nature,
    refuse_zero_cost_cycles,
    require_almost_sure,
)
from tailpath.dp.backup import COOPERATIVE, Decisions, Spread
from tailpath.dp.budget_model import BASE, EXCESS, LATE, NO_LOSS, SLOPE, TO_GO, Changes, Objective
from tailpath.dp.budgets import Filled, cutoff_of, fill
from tailpath.dp.expected import warn_if_unproved
from tailpath.dp.games import Game, GameOptimum, game_optimum
from tailpath.dp.layout import Layout
from tailpath.dp.layout_builders import game_transitions, interval_layout
from tailpath.dp.real_budgets import Excess, RealBudgets
from tailpath.errors import LimitExceededError, ModelError
from tailpath.graph import Array, FloatArray, IntArray, members_of, offsets_of, owners
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import PER_ROW, PER_SERVED, ROUNDOFF
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import found_once

#: The bounds of V may become this much wider, relatively, where a budget that is surely exceeded is
#: taken off; roundings on the way there.
CANCELLED, ROUNDED = 4.0, 4
#: A first guess at the largest budget that matters, in least expected costs.
GUESSED = 1.25
#: What a table keeps may take this much memory.
MAX_BYTES = 4 * 2**30


def unit_to_count_in(model: IntervalSSP) -> Fraction:
    if model.cost_unit is None:
        raise ModelError(
            "the costs have no common unit that is coarse enough to count in; round them to a grid"
            " first"
        )
    return model.cost_unit


@dataclass(frozen=True, eq=False)
class Robust:
    """A model against a nature. Runs that may never arrive end at level `penalty`; 0: all must
    arrive.
    """

    model: IntervalSSP
    nature: int
    penalty: int = 0
    max_bytes: int = MAX_BYTES

    @cached_property
    def _rows(self) -> tuple[Game, IntArray, IntArray, IntArray]:
        """The game; the state of each node, the choice of each row (-1: it ends at the penalty) and
        the level of each outcome.
        """
        model, ssp = self.model, self.model.inside
        refuse_zero_cost_cycles(model)
        if self.penalty:
            almost_sure = almost_sure_under_nature(model, self.nature)[0]
            choice, allowed = np.arange(ssp.n_choices), np.ones(ssp.n_outcomes, dtype=np.bool_)
            nodes, ends = np.flatnonzero(~ssp.is_goal), np.flatnonzero(~almost_sure)
        else:
            almost_sure, safe = require_almost_sure(model, self.nature)
            choice, allowed = np.flatnonzero(safe), almost_sure[ssp.outcome_target]
            nodes, ends = np.flatnonzero(almost_sure & ~ssp.is_goal), np.zeros(0, dtype=np.int64)
        unit = 0.0 if ssp.cost_unit is None else float(ssp.cost_unit)

        def ended(column: Array, last: float) -> Array:
            """One more choice, of one more outcome, stands for all that end at the penalty."""
            return np.append(column, last).astype(column.dtype)

        row = np.append(choice, np.full(len(ends), ssp.n_choices))
        state = np.append(ssp.choice_state[choice], ends)
        order = np.argsort(state, kind="stable")
        row, state = row[order], state[order]
        outcome, row_start = members_of(ended(ssp.choice_outcomes, ssp.n_outcomes + 1), row)
        mask = ended(allowed, True)[outcome]
        outcome, row_start = outcome[mask], np.append(0, np.cumsum(mask))[row_start]
        number = np.full(ssp.n_states, len(nodes))
        number[nodes] = np.arange(len(nodes))
        low, high = ended(model.low, 1.0)[outcome], ended(model.high, 1.0)[outcome]
        rest, width = ended(model.rest, 0.0)[row], high - low
        of_row = owners(row_start)
        open_ = np.bincount(of_row, width, len(row))
        inside = (rest / np.where(open_ > 0, open_, 1.0))[of_row] * width + low
        cost = ended(ssp.outcome_cost, self.penalty * unit)[outcome]
        target = ended(number[ssp.outcome_target], len(nodes))[outcome].astype(np.int32)
        rows = (
            offsets_of(number[state], len(nodes)),
            row_start,
            target,
            inside,
            np.bincount(of_row, inside * cost, len(row)),
        )
        width, rest = frozen(width, rest)
        game = Game(Decisions(*frozen(*rows)), low, Spread(width, rest), cost, self.nature)
        level = (
            ended(ssp.outcome_level, self.penalty)[outcome]
            if ssp.cost_unit is not None
            else np.zeros(len(outcome), dtype=np.int64)
        )
        return game, nodes, np.where(row < ssp.n_choices, row, -1), level

    @property
    def game(self) -> Game:
        return self._rows[0]

    @cached_property
    def optimum(self) -> GameOptimum:
        """V with bounds, by node."""
        found = game_optimum(self.game)
        warn_if_unproved(found.bounds)
        return found

    def to_states(self, per_node: FloatArray) -> FloatArray:
        """Node values to states: 0 at goals, infinite where there is no node."""
        found = np.full(self.model.n_states, np.inf)
        found[self.model.inside.is_goal] = 0.0
        found[self._rows[1]] = per_node
        return found

    @cached_property
    def risk_neutral(self) -> NDArray[np.int32]:
        """The choice of every state with the least expected cost; where a run would end at the
        penalty, the first.
        """
        _, nodes, choice, _ = self._rows
        found = np.full(self.model.n_states, -1, dtype=np.int32)
        taken = choice[self.optimum.chosen]
        found[nodes] = np.where(taken >= 0, taken, self.model.inside.state_choices[nodes])
        return found

    # ------------------------------------------------------------------ budgets

    @cached_property
    def _laid_out(self) -> tuple[Layout, IntArray, IntArray]:
        game, nodes, _, level = self._rows
        start = int(np.searchsorted(nodes, self.model.inside.start_index))
        value = self.optimum.bounds.value / float(unit_to_count_in(self.model))
        nearest = game_transitions(game, level).distances().least[:-1]
        # Up to what arriving costs at least, U(s, w) = V(s) - w, as far as the digits that cancel
        # allow.
        error_bound = np.maximum(*self._value_error)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = CANCELLED * np.max(error_bound / value, where=value > 0, initial=0.0)
            certain = np.nan_to_num(np.minimum(nearest, value - error_bound / share), posinf=0.0)
        certain_cost = np.maximum(np.floor(certain), 0.0).astype(np.int64)
        return interval_layout(game, level, self.optimum.chosen, value, certain_cost, start)

    @cached_property
    def _value_error(self) -> tuple[FloatArray, FloatArray]:
        """By node how far V may lie below and above its value, in units."""
        bounds, unit = self.optimum.bounds, float(self.model.cost_unit or 1)
        with np.errstate(invalid="ignore"):
            below, above = (
                np.abs(side - bounds.value) / unit for side in (bounds.lower, bounds.upper)
            )
        rounding = ROUNDED * ROUNDOFF * bounds.value / unit
        return below + rounding, above + rounding

    @property
    def layout(self) -> Layout:
        return self._laid_out[0]

    def steps(self, found: Filled, budget: int) -> tuple[IntArray, IntArray, IntArray]:
        """State, budget and choice of every change that a run with this budget can meet."""
        changes = found.changes
        if not len(changes.node):
            return (np.zeros(0, dtype=np.int64),) * 3
        layout, node, row = self._laid_out
        _, nodes, choice, _ = self._rows
        met = np.flatnonzero(
            (changes.budget + layout.nodes.cost_from_start[changes.node] <= budget)
            & (changes.node > 0)
        )
        state, taken = nodes[node[changes.node[met]]], choice[row[changes.choice[met]]]
        return (
            state,
            changes.budget[met].astype(np.int64),
            np.where(taken >= 0, taken, self.model.inside.state_choices[state]),
        )

    def _check(self, memory: int, level: int, best: float) -> None:
        if memory > self.max_bytes:
            raise LimitExceededError(
                f"{self.layout.n} states x {level} cost levels need more than"
                f" {self.max_bytes / 2**30:.3g} GiB; a larger max_bytes would help",
                (0.0, math.inf),
            )

    @cached_property
    def _error_bound(self) -> tuple[float, float, float]:
        """How far V less a budget may lie below and above its value, relatively, and above 0, in
        units.
        """
        layout, node, _ = self._laid_out
        beyond = (layout.nodes.value - layout.nodes.certain_cost)[1:]
        value_error, positive = [side[node[1:]] for side in self._value_error], beyond > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            below, above = (
                float(np.max(side / beyond, where=positive, initial=0.0)) for side in value_error
            )
        zero = float(np.max(value_error[1], where=~positive, initial=0.0))
        return min(below * (1 + 1e-15), 1.0), above * (1 + 1e-15), zero

    @cached_property
    def _per_level(self) -> float:
        """What each level may round, relatively, but for shares that nature hands out last."""
        if self.model.inside.is_goal[self.model.inside.start_index]:
            return 0.0
        layout = self.layout
        blocks, most = len(layout.nodes.block_joint) - 1, int(layout.row_size.max())
        return blocks * (PER_SERVED * most + PER_ROW) * ROUNDOFF

    def enclosed(
        self, found: Filled, scale: float = 1.0, criterion: int = 0
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of the values of a criterion by level; `scale` is what a unit of V counts for."""
        value = found.values[:, criterion]
        error = np.minimum(np.arange(len(value)) * self._per_level * (1 + found.marginal), 1.0)
        below, above, zero = self._error_bound if scale else (0.0, 0.0, 0.0)
        low = value * (1 - error) * (1 - below) * (1 - 2e-15)
        with np.errstate(divide="ignore"):
            high = np.where(
                error < 1,
                value * (1 + above) / (1 - error) * (1 + 2e-15) + zero * scale + 1e-250,
                np.inf,
            )
        return low, high

    def excess(self, alpha: float) -> RealBudgets:
        """The least E(Z - w)+ for all budgets that matter for tails of `alpha` and more."""

        def make(fractions: tuple[float, ...], limit: float) -> Excess:
            criteria = np.tile(EXCESS, (len(fractions), 1))
            criteria[:, BASE] = 1 - np.array(fractions)
            found = self._filled(criteria, limit, weight=1.0, price=1 / alpha)
            low = tuple(self.enclosed(found, criterion=i)[0] for i in range(len(fractions)))
            return Excess(fractions[0], found.values[:, 0], low, self.enclosed(found)[1], found)

        return RealBudgets(make, integer_only=self.nature == COOPERATIVE)

    def late(self, units: int) -> Filled:
        """The least probability of a cost of w units or more, for w = 0 .. units."""
        return self._filled(LATE[None, :], float(units))

    def loss(self, terminal_loss: FloatArray, slope: float) -> Filled:
        """The least expected loss, from `terminal_loss[b]`, 0 or more, of arriving with b units
        left and `slope` for every unit beyond.
        """
        criterion = np.zeros((1, 4))
        criterion[0, [BASE, SLOPE, TO_GO]] = terminal_loss[0], slope, slope
        return self._filled(
            criterion, float(len(terminal_loss) - 1), np.ascontiguousarray(terminal_loss[:, None])
        )

    def _filled(
        self,
        criteria: FloatArray,
        limit: float,
        loss: FloatArray = NO_LOSS,
        weight: float = 0.0,
        price: float = 1.0,
    ) -> Filled:
        ssp = self.model.inside
        if ssp.is_goal[ssp.start_index]:  # every run has arrived
            values = np.zeros((2 if math.isinf(limit) else int(limit) + 1, len(criteria)))
            values[:] = loss[: len(values)] if len(loss) else values
            values[0] = criteria[:, BASE]
            none = np.zeros(0, dtype=np.int64)
            return Filled(values, Changes(none, none, none), 0.0)
        objective = self.layout.objective(criteria, weight, price, limit=limit)
        # A budget beyond which nothing may matter, as far as one can guess: costs that it has no
        # room for need no levels.
        guess = max(GUESSED * self.layout.start_value, 16.0)
        while weight and guess < min(limit, self.layout.longest + 1):
            found = self._fill(objective._replace(limit=guess), loss)
            if cutoff_of.plain(objective, found.best) <= guess:
                return found
            guess = min(cutoff_of.plain(objective, found.best), 2 * guess)
        return self._fill(objective, loss)

    def _fill(self, objective: Objective, loss: FloatArray) -> Filled:
        return fill(
            self.layout.beyond(objective.limit), objective, loss, self.max_bytes, self._check
        )


@found_once
def robust(model: IntervalSSP, /, nature: int, penalty: int = 0, **options: Any) -> Robust:
    """`Robust`, once for each nature and penalty."""
    return Robust(model, nature, penalty, **options)
