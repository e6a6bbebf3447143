"""From rows, of names or of numbers, to the arrays of a model. Nothing here knows the SSP; it
checks the rest.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import SMALL, Array, IntArray, Transitions, grouped, offsets_of
from tailpath.kernels.graph import equal_members
from tailpath.kernels.jit import frozen
from tailpath.model.cost_units import as_fraction, common_unit
from tailpath.model.records import hand_over
from tailpath.texts import did_you_mean

Name = Hashable
#: The choice, the target, the probability and the cost of every outcome.
OutcomeArrays = tuple[Array, Array, Array, Array]
#: Up to this many outcomes of a choice are compared one by one; sorting all of them would take
#: longer.
FEW = 64


class ModelArrays(NamedTuple):
    state_choices: Array
    choice_outcomes: Array
    outcome_target: Array
    outcome_probability: Array
    outcome_cost: Array
    choice_action: Array
    is_goal: Array
    start_index: int
    states: Sequence[Name]
    actions: Sequence[Name]
    exact_unit: Fraction | None = None


class Numbering:
    """Rows of names as rows of numbers: states and actions are numbered in the order of their first
    appearance. Instead of a probability, rows may have `width` numbers, such as the ends of an
    interval.
    """

    def __init__(self, goals: dict[Name, None], width: int = 0) -> None:
        self.goals, self.width = goals, width
        self.states: dict[Name, int] = {}
        self.actions: dict[Name, int] = {}
        self.costs: dict[Any, float] = {}
        self.source: list[int] = []
        self.action: list[int] = []
        self.target: list[int] = []
        self.probability: list[Any] = []
        self.cost: list[float] = []

    def add(
        self, state: Name, action: Name, next_state: Name, p: Any, c: Any, numbers: Any = None
    ) -> None:
        """One row, in the order of the columns, with the numbers that stand for its probability, if
        it has such. What a goal's row says is checked, and forgotten.
        """
        states = self.states
        source = states.setdefault(state, len(states))
        if state in self.goals:
            _check_goal_row(state, action, next_state, p, c)
            return
        probability = _number(p, "probability", state, action, next_state)
        # Before equal rows are added up: a negative one could hide in the sum.
        if not 0 <= probability < np.inf:
            raise ModelError(
                f"{describe_outcome(state, action, next_state)} has probability {probability}"
            )
        cost = 0.0
        if probability > 0:
            if c not in self.costs:
                self.costs[c] = _number(c, "cost", state, action, next_state)
            cost = self.costs[c]
        self.source.append(source)
        self.action.append(self.actions.setdefault(action, len(self.actions)))
        self.target.append(states.setdefault(next_state, len(states)))
        self.probability.append(numbers if self.width else probability)
        self.cost.append(cost)

    def unit(self) -> Fraction | None:
        """The unit of the costs exactly as given."""
        finite = all(np.isfinite(value) for value in self.costs.values())
        return common_unit(self.costs) if finite and self.costs else None

    def arrays(self, start: Name) -> ModelArrays:
        states = self.states
        for goal in self.goals:
            states.setdefault(goal, len(states))
        if start not in states:
            raise ModelError(
                f"the start {start!r} is not a state of the model{did_you_mean(start, states)}"
            )
        is_goal = np.zeros(len(states), dtype=np.bool_)
        is_goal[[states[goal] for goal in self.goals]] = True
        probability = np.array(self.probability, np.float64)
        if self.width:
            probability = probability.reshape(-1, self.width)
        return ModelArrays(
            **arrays_from_rows(
                np.array(self.source, np.int64),
                np.array(self.action, np.int64),
                np.array(self.target, np.int64),
                probability,
                np.array(self.cost, np.float64),
                len(states),
                merge=True,
            ),
            is_goal=is_goal,
            start_index=states[start],
            states=tuple(states),
            actions=tuple(self.actions),
            exact_unit=self.unit(),
        )


def arrays_from_outcomes(
    outcomes: Iterable[tuple[Name, Name, Name, Any, Any]], start: Name, goals: Iterable[Name]
) -> ModelArrays:
    """Number the names in order of appearance, group rows by choice, add up rows that agree in all
    but the probability.
    """
    numbers = Numbering(goal_names(goals))
    for row in checked_rows(outcomes, "probability"):
        numbers.add(*row)
    return numbers.arrays(start)


def checked_rows(
    outcomes: Iterable[Any], probability: str
) -> Iterator[tuple[Name, Name, Name, Any, Any]]:
    """Rows `(state, action, next_state, probability, cost)`, refused unless they are such rows;
    `probability` is what their fourth entry is called.
    """
    for number, row in enumerate(outcomes):
        try:
            state, action, next_state, _, cost = row
            hash((state, action, next_state, cost))
        except (TypeError, ValueError):
            raise ModelError(
                f"outcome {number} is {row!r}; expected hashable (state, action, next_state,"
                f" {probability}, cost)"
            ) from None
        yield row


def arrays_from_rows(
    state: Array,
    action: Array,
    target: Array,
    probability: Array,
    cost: Array,
    n_states: int,
    *,
    merge: bool,
) -> dict[str, Any]:
    """The arrays of rows that are given as numbers, in any order. Choices stand by state and then
    as they first appear, outcomes as they appear; rows of probability 0 are left out, but their
    choice stays. With `merge`, outcomes of a choice with the same target and the same cost become
    one.

    Instead of a probability, (n,), rows may have several columns, (n, k), such as the ends of an
    interval. So have the outcomes then, and none is left out.
    """
    n_actions = int(action.max(initial=0)) + 1
    choices, of_row = _choices(state.astype(np.int64) * n_actions + action, n_actions)
    rows: OutcomeArrays = (of_row, target, probability, cost)
    if probability.ndim == 1:
        rows = _picked(rows, probability != 0)
    if merge:
        rows = merge_equal_outcomes(*rows)
    elif (np.diff(rows[0]) < 0).any():
        rows = _picked(rows, np.argsort(rows[0], kind="stable"))
    arrays = {
        "state_choices": offsets_of(choices // n_actions, n_states),
        "choice_outcomes": offsets_of(rows[0], len(choices)),
        "outcome_target": rows[1],
        "outcome_probability": rows[2],
        "outcome_cost": rows[3],
        "choice_action": choices % n_actions,
    }
    return {name: hand_over(array) for name, array in arrays.items()}


def outcomes_of_rows(rows: Transitions) -> dict[str, Any]:
    """The fields of an SSP about outcomes, from transitions with a row for each choice."""
    return {
        "choice_outcomes": rows.row_start,
        "outcome_target": rows.target,
        "outcome_probability": rows.probability,
        "outcome_cost": rows.cost,
    }


def _choices(key: IntArray, n_actions: int) -> tuple[IntArray, Array]:
    """The choices `state * n_actions + action` by state and then as they first appear, and the
    index of every row's choice among them.
    """
    # Rows of a choice mostly stand together, so there are fewer runs of them than rows.
    new = np.append(True, np.diff(key) != 0)[: len(key)]
    runs, run_of_row = key[new], np.cumsum(new, dtype=np.int32) - 1
    if (np.diff(runs) > 0).all():
        return runs, run_of_row
    found, first, of_run = np.unique(runs, return_index=True, return_inverse=True)
    order = np.lexsort((first, found // n_actions))
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return found[order], rank[of_run][run_of_row]


def merge_equal_outcomes(
    choice: Array, target: Array, probability: Array, cost: Array
) -> OutcomeArrays:
    """Sort outcomes by choice, keeping their order within it, and add up those with the same
    choice, target and cost: probabilities (n,), or columns (n, k) in their place.
    """
    rows: OutcomeArrays = (choice, target, probability, cost)
    if len(choice) > SMALL:
        if (np.diff(choice) < 0).any():
            rows = _picked(rows, grouped(choice, int(choice.max()) + 1)[0])
            choice, target, probability, cost = rows
        if equal_members(*frozen(choice, target, cost), FEW) == 0:
            return rows
    by_content = np.lexsort((cost, target, choice))
    c, t = choice[by_content], target[by_content]
    k = cost[by_content]
    first = np.ones(len(c), dtype=np.bool_)
    first[1:] = (np.diff(c) != 0) | (np.diff(t) != 0) | (k[1:] != k[:-1])
    if first.all():
        return _picked(rows, np.argsort(choice, kind="stable"))
    group = np.cumsum(first) - 1
    columns = probability[by_content].T
    total = np.apply_along_axis(lambda column: np.bincount(group, column), -1, columns).T
    # lexsort is stable, so the first of a group is its first appearance; sorting those restores the
    # order given.
    seen = by_content[first]
    order = np.lexsort((seen, choice[seen]))
    return _picked((choice[seen], target[seen], total, cost[seen]), order)


def _picked(rows: OutcomeArrays, order: Array) -> OutcomeArrays:
    choice, target, probability, cost = (column[order] for column in rows)
    return choice, target, probability, cost


def goal_names(goals: Iterable[Name]) -> dict[Name, None]:
    if isinstance(goals, str) or not isinstance(goals, Iterable):
        raise ModelError(f"goals must be a collection of state names; put {goals!r} in a list")
    names = dict.fromkeys(goals)
    if not names:
        raise ModelError("the model has no goals")
    return names


def _check_goal_row(
    state: Name, action: Name, next_state: Name, probability: Any, cost: Any
) -> None:
    if next_state != state or cost != 0:
        raise ModelError(
            f"goal {state!r}, action {action!r} leads to {next_state!r} at cost {cost!r}: a goal"
            " must be absorbing and free"
        )
    if not 0 <= _number(probability, "probability", state, action, next_state) <= 1:
        raise ModelError(f"goal {state!r}, action {action!r} has probability {probability!r}")


def _number(value: Any, what: str, state: Name, action: Name, next_state: Name) -> float:
    try:
        if isinstance(value, (str, Decimal)) and not math.isnan(float(value)):
            float(as_fraction(value))  # whose exponent may be out of range
        return float(value)
    except (TypeError, ValueError, OverflowError):
        outcome = describe_outcome(state, action, next_state)
        raise ModelError(f"{outcome} has {what} {value!r}, which is not a number") from None


def describe_outcome(state: Name, action: Name, next_state: Name) -> str:
    return f"state {state!r}, action {action!r} -> {next_state!r}"
