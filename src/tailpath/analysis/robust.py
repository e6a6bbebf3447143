"""A model with intervals, against or with nature: the expected cost, and tables over budgets.
Numbers only; solvers and evaluation make of them what a user sees.

Only states and choices from which arriving is almost sure are used, as in an SSP (`core.py`). Where
never arriving has a finite price, all are, and those that are not almost sure may end at a cost
beyond every budget that counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import (
    almost_sure_under_nature,
    nature_called,
    reachable_states,
    refuse_zero_cost_cycles,
    require_almost_sure,
)
from tailpath.analysis.tables import MAX_BYTES, BudgetTable, ModelLayout, fill_table
from tailpath.certify.games import GameOptimum, solve_game
from tailpath.certify.real_budgets import Excess, RealBudgets
from tailpath.certify.values import warn_if_unproved
from tailpath.dp.backup import COOPERATIVE, Slack
from tailpath.dp.budget_model import BASE, EXCESS, LATE, NO_LOSS, SLOPE, TO_GO
from tailpath.dp.games import Game
from tailpath.dp.layout_builders import lay_out, unavoidable_costs
from tailpath.graph import Array, FloatArray, IntArray, Transitions, members_of, offsets_of, owners
from tailpath.kernels.jit import frozen
from tailpath.model.border import require_unit
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import found_once


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
    def _rows(self) -> tuple[Game, IntArray, IntArray]:
        """The game, the state of each node, and the choice of each row, -1 if it ends at the
        penalty.
        """
        model, ssp = self.model, self.model.inside
        refuse_zero_cost_cycles(ssp, "models with intervals must not have")
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
        target = ended(number[ssp.outcome_target], len(nodes))[outcome]
        level = None
        if ssp.cost_unit is not None:
            level = ended(ssp.outcome_level, self.penalty)[outcome]
        rows = Transitions(row_start, target, inside, cost, level)
        rows = rows.replaced(first_row=offsets_of(number[state], len(nodes)))
        game = Game(rows, low, Slack(*frozen(width, rest)), self.nature)
        return game, nodes, np.where(row < ssp.n_choices, row, -1)

    @property
    def game(self) -> Game:
        return self._rows[0]

    @cached_property
    def optimum(self) -> GameOptimum:
        """V with bounds, by node."""
        found = solve_game(self.game)
        if self.penalty == 0:  # else it decides no more than which choice comes first
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
        _, nodes, choice = self._rows
        found = np.full(self.model.n_states, -1, dtype=np.int32)
        taken = choice[self.optimum.chosen]
        found[nodes] = np.where(taken >= 0, taken, self.model.inside.state_choices[nodes])
        return found

    # ------------------------------------------------------------------ budgets

    @cached_property
    def layout(self) -> ModelLayout:
        """The game laid out. The goal is a node like others, the last of them: what arrives is
        handed probability in its turn.
        """
        game, nodes, choice = self._rows
        ssp, n, unit = self.model.inside, len(nodes), require_unit(self.model)
        given, bounds = game.rows, self.optimum.bounds
        assert given.level is not None
        rows = Transitions(
            np.append(given.row_start, len(given.level) + 1),
            np.append(given.target, n + 1),
            np.append(game.low, 1.0),
            np.append(given.cost, 0.0),
            np.append(given.level, 0),
        )
        node_choices = np.append(given.state_rows, rows.n)
        value, first = np.append(bounds.value / float(unit), 0.0), np.zeros(rows.n, dtype=np.bool_)
        first[self.optimum.chosen] = True
        node_of = np.where(ssp.is_goal, n, -1)
        node_of[nodes] = np.arange(n)
        layout, position = lay_out(
            rows,
            node_choices,
            value,
            int(node_of[ssp.start_index]),
            first=first,
            unavoidable_cost=unavoidable_costs(rows.joined(node_choices), value),
        )
        gap, free_mass = (np.append(column, 0.0) for column in game.slack)
        # Who would end at the penalty takes the first choice of the state.
        taken = np.where(choice >= 0, choice, ssp.state_choices[nodes[owners(given.state_rows)]])
        return ModelLayout.of(
            layout,
            ssp=ssp,
            risk_neutral=self.risk_neutral,
            choice=np.append(taken, -1)[layout.choice],
            slack=Slack(gap[rows.edges(layout.choice)], free_mass[layout.choice]),
            nature=self.nature,
            node_of=np.append(position, -1)[node_of].astype(np.int32),
            unit=unit,
            lower=self.to_states(bounds.lower),
            upper=self.to_states(bounds.upper),
        )

    def excess(self, alpha: float) -> RealBudgets:
        """The least E(Z - w)+ for all budgets that matter for tails of `alpha` and more."""

        def make(fractions: tuple[float, ...], limit: float) -> Excess:
            criteria = np.tile(EXCESS, (len(fractions), 1))
            criteria[:, BASE] = 1 - np.array(fractions)
            table = self._filled(criteria, limit, weight=1.0, price=1 / alpha)
            known, values = table.share(), table.values.T
            low = tuple(known.below(value) for value in values)
            return Excess(fractions[0], values[0], low, known.above(values[0]), table.changes)

        return RealBudgets(make, integer_only=self.nature == COOPERATIVE)

    def late(self, units: int) -> BudgetTable:
        """The least probability of a cost of w units or more, for w = 0 .. units."""
        return self._filled(LATE[None, :], float(units))

    def loss(self, terminal_loss: FloatArray, slope: float) -> BudgetTable:
        """The least expected loss, from `terminal_loss[b]`, 0 or more, of arriving with b units
        left and `slope` for every unit beyond.
        """
        criterion = np.zeros((1, 4))
        criterion[0, [BASE, SLOPE, TO_GO]] = terminal_loss[0], slope, slope
        limit = float(len(terminal_loss) - 1)
        return self._filled(criterion, limit, np.ascontiguousarray(terminal_loss[:, None]))

    def _filled(
        self, criteria: FloatArray, limit: float, loss: FloatArray = NO_LOSS, **price: Any
    ) -> BudgetTable:
        objective = self.layout.objective(criteria, limit=limit, **price)
        return fill_table(self.layout, objective, loss, max_bytes=self.max_bytes)


@found_once
def robust(model: IntervalSSP, /, nature: int, penalty: int = 0, **options: Any) -> Robust:
    """`Robust`, once for each nature and penalty."""
    return Robust(model, nature, penalty, **options)


def robust_with_penalty(
    model: IntervalSSP, nature: str, units: int, max_bytes: int = MAX_BYTES
) -> Robust:
    """The problem in which runs that need not arrive may end at a cost beyond so many units."""
    side = nature_called(nature)
    almost_sure = bool(
        almost_sure_under_nature(model, side)[0][reachable_states(model.inside)].all()
    )
    return robust(model, side, 0 if almost_sure else units + 2, max_bytes=max_bytes)
