"""The backups of the sweep over budgets (`budgets.py`): the nodes of a block at one level.

Arrays are taken out of their groups before the loops, which counts; and each backup is a function
of its own, with registers of its own. `level.start` is the index of the first value of the level;
those of criterion i lie `i * level.stride` behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.dp.backup import Rows, add_row_values, extreme_value, ordered_value, row_value
from tailpath.dp.budget_model import (
    BASE,
    SLOPE,
    TO_GO,
    BudgetModel,
    Changes,
    Level,
    Nodes,
    Objective,
    Work,
)
from tailpath.dp.joint import joint_backup, joint_optimum, joint_values, leave_out
from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.rounding import TINY


@kernel(inline=True)
def closed_form(criteria: Array, i: int, w: int, cost_to_go: float) -> float:
    """The value in criterion i where the budget is spent, or is sure to be exceeded."""
    value: float = criteria[i, BASE] - criteria[i, SLOPE] * w + criteria[i, TO_GO] * cost_to_go
    return value


@kernel(inline=True)
def add_change(out: Changes, n_changes: int, node: int, w: int, choice: int) -> int:
    """Put down that a node changes its choice at a budget; how many changes there are then."""
    out.node[n_changes] = node
    out.budget[n_changes] = w
    out.choice[n_changes] = choice
    return n_changes + 1


@kernel
def backup_lexicographic(
    rows: Rows,
    nodes: Nodes,
    objective: Objective,
    active: Array,
    level: Level,
    work: Work,
    out: Changes,
    n_changes: int,
) -> int:
    """The active nodes of a plain block: the least value of criterion 0; of choices that tie, that
    of criterion 1; or that of the choice that is held. Returns how many changes there are then.
    """
    node_choices, outcome_start, offset, probability, _ = rows
    unavoidable_cost, cost_to_go = nodes.unavoidable_cost, nodes.value
    value, constant = work.value, work.constant
    q_value, chosen = work.q_value, work.choice
    criteria, tie = objective.criteria, objective.tie
    w, level_start, stride = level
    held = objective.held
    for k in range(np.uint64(len(active))):
        node, position = np.uint64(active[k]), level_start + active[k]
        first, last = np.uint64(node_choices[node]), np.uint64(node_choices[node + np.uint64(1)])
        if w <= unavoidable_cost[node]:
            for i in range(len(criteria)):
                value[i * stride + position] = closed_form(criteria, i, w, cost_to_go[node])
            continue
        if held:
            first = np.uint64(chosen[node])
            last = first + np.uint64(1)
        picked: Any = first
        least, second_least = np.inf, np.inf
        for choice in range(first, last):
            total = constant[0, choice] + row_value(
                outcome_start, offset, probability, choice, level_start, value
            )
            q_value[choice - first] = total
            second_least = min(second_least, max(least, total))
            picked = choice if total < least else picked
            least = min(least, total)
        if tie > 0.0 and second_least <= least * (1 + tie):
            tie_breaker, highest = np.inf, least * (1 + tie)
            for choice in range(first, last):
                if q_value[choice - first] <= highest:
                    total = constant[1, choice] + row_value(
                        outcome_start, offset, probability, choice, stride + level_start, value
                    )
                    picked = choice if total < tie_breaker else picked
                    tie_breaker = min(tie_breaker, total)
            least = q_value[picked - first]
        value[np.uint64(position)] = least if least > TINY else 0.0
        for i in range(1, len(criteria)):
            total = constant[i, picked] + row_value(
                outcome_start, offset, probability, picked, i * stride + level_start, value
            )
            value[np.uint64(i * stride + position)] = total if total > TINY else 0.0
        if chosen[node] != np.int64(picked):
            chosen[node] = np.int64(picked)
            n_changes = add_change(out, n_changes, node, w, picked)
    return n_changes


@kernel
def backup_robust(
    model: BudgetModel,
    objective: Objective,
    nature: int,
    active: Array,
    level: Level,
    work: Work,
    out: Changes,
    n_changes: int,
) -> int:
    """The active nodes of a plain block: the least value of criterion 0 against nature; and of all
    other criteria with the probabilities that it hands out there. Returns how many changes there
    are then; `work.marginal` gets the most that the value of the last outcome that gets free mass
    exceeds that of its row, as a factor.
    """
    node_choices, outcome_start, offset, probability, _ = model.rows
    unavoidable_cost, cost_to_go = model.nodes.unavoidable_cost, model.nodes.value
    criteria = objective.criteria
    value, constant = work.value, work.constant
    chosen = work.choice
    worst, count = work.marginal[0], len(criteria)
    w, level_start, stride = level
    for k in range(len(active)):
        node = np.int64(active[k])
        picked, least = np.int64(node_choices[node]), np.inf
        position = level_start + node
        if w <= unavoidable_cost[node]:
            for i in range(count):
                value[i * stride + position] = closed_form(criteria, i, w, cost_to_go[node])
            continue
        for i in range(1, count):
            value[i * stride + position] = np.inf
        for choice in range(node_choices[node], node_choices[node + 1]):
            successors, marginal = extreme_value(
                outcome_start, offset, probability, model.slack, nature, choice, level_start, value
            )
            total = constant[0, choice] + successors
            if marginal > worst * total and total > TINY:
                worst = marginal / total
            picked = np.int64(choice) if total < least else picked
            least = min(least, total)
            for i in range(1, count):
                successors, marginal, _ = ordered_value(
                    outcome_start,
                    offset,
                    probability,
                    model.slack,
                    nature,
                    choice,
                    i * stride + level_start,
                    value,
                )
                total = constant[i, choice] + successors
                if marginal > worst * total and total > TINY:
                    worst = marginal / total
                value[i * stride + position] = min(
                    value[i * stride + position], total if total > TINY else 0.0
                )
        value[position] = least if least > TINY else 0.0
        if chosen[node] != picked:
            chosen[node] = picked
            n_changes = add_change(out, n_changes, node, w, picked)
    work.marginal[0] = worst
    return n_changes


@kernel
def backup_scalarised(
    model: BudgetModel, objective: Objective, active: Array, level: Level, work: Work
) -> None:
    """The active nodes of a plain block: the least `mean + price * risk`, criteria 0 and 1, for all
    prices. Loops over prices alone, on few arrays, are what becomes vectors.
    """
    node_choices, outcome_start, offset, probability, _ = model.rows
    unavoidable_cost, cost_to_go = model.nodes.unavoidable_cost, model.nodes.value
    criteria, prices = objective.criteria, objective.prices
    constant, n_prices = work.constant, len(objective.prices)
    w, level_start, stride = level
    value = work.value.reshape((2, stride, n_prices))
    scratch = np.empty((5, n_prices))
    mean, risk = scratch[0], scratch[1]
    least, best_mean = scratch[2], scratch[3]
    best_risk = scratch[4]
    for j in range(len(active)):
        node = np.int64(active[j])
        for i in range(n_prices):
            least[i] = np.inf
        if w <= unavoidable_cost[node]:
            for i in range(n_prices):
                best_mean[i] = closed_form(criteria, 0, w, cost_to_go[node])
                best_risk[i] = closed_form(criteria, 1, w, cost_to_go[node])
        else:
            for choice in range(node_choices[node], node_choices[node + 1]):
                for i in range(n_prices):
                    mean[i] = constant[0, choice]
                for i in range(n_prices):
                    risk[i] = constant[1, choice]
                row = outcome_start, offset, probability, choice, level_start
                add_row_values(*row, value[0], mean)
                add_row_values(*row, value[1], risk)
                for i in range(n_prices):
                    total = mean[i] + prices[i] * risk[i]
                    if total < least[i]:
                        least[i] = total
                        best_mean[i] = mean[i]
                        best_risk[i] = risk[i]
        for i in range(n_prices):
            value[0, level_start + node, i] = best_mean[i]
        for i in range(n_prices):
            value[1, level_start + node, i] = best_risk[i] if best_risk[i] > TINY else 0.0


@kernel
def backup_joint(
    model: BudgetModel,
    objective: Objective,
    block: int,
    level: Level,
    work: Work,
    out: Changes,
    n_changes: int,
) -> int:
    """A joint block: first criterion 0, then, among choices that tie, criterion 1. Returns how many
    changes there are then; `work.residual` gets what `joint_optimum` returns.
    """
    choices, first = model.rows.first_row, model.nodes.block_start[block]
    last = model.nodes.block_start[block + 1]
    criteria, tie = objective.criteria, objective.tie
    w, level_start, stride = level
    offset, count = choices[first], choices[last] - choices[first]
    gain, allowed = np.empty((len(criteria), count)), np.ones(count, dtype=np.bool_)
    value, before = np.empty(last - first), work.choice[first:last].copy()
    lost = np.zeros(last - first, dtype=np.bool_)
    for i in range(len(criteria)):
        for k in range(count):
            gain[i, k] = work.constant[i, offset + k] + row_value(
                *model.rows[1:4], offset + k, i * stride + level_start, work.value
            )
    residual = work.residual[0]
    if not objective.held:
        leave_out(model.joint, choices, first, last, gain[0], allowed, work.choice, lost)
        for i in range(last - first):
            if lost[i]:  # nothing that is allowed leads here
                gain[0, work.choice[first + i] - offset] = 0.0
        found = joint_optimum(
            model.joint, choices, first, last, gain[0], allowed, work.choice, value
        )
        residual = max(residual, found)
    if tie > 0:
        for i in range(last - first):
            for choice in range(choices[first + i], choices[first + i + 1]):
                total = joint_backup(model.joint, choice, gain[0, choice - offset], value)
                allowed[choice - offset] &= choice == work.choice[first + i] or total <= value[
                    i
                ] * (1 + tie)
        joint_optimum(model.joint, choices, first, last, gain[1], allowed, work.choice, value)
    for i in range(len(criteria)):
        found = joint_values(model.joint, choices, first, last, work.choice, gain[i], value)
        residual = max(residual, found)
        for k in range(last - first):
            if i == 0 and lost[k]:
                value[k] = np.inf
            work.value[i * stride + level_start + first + k] = value[k] if value[k] > TINY else 0.0
    work.residual[0] = residual
    for node in range(first, last):
        if work.choice[node] != before[node - first]:
            n_changes = add_change(out, n_changes, node, w, work.choice[node])
    return n_changes
