"""From rows, of names or of numbers, to the arrays of a model. Nothing here knows the SSP; it
checks the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from decimal import Decimal
from typing import Any

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
#: A row of n probabilities may miss 1 by this times n; it is then scaled to 1, with a warning.
ROW_TOLERANCE = 1e-9
#: What a row says of its outcome: how probable it is, between which ends, or how often it was
#: seen.
PROBABILITY, INTERVAL, COUNT = "probability", "(low, high)", "count"


class Numbering:
    """Rows of names as rows of numbers: states and actions are numbered in the order of their first
    appearance. The fourth entry of a row is a probability, `(low, high)` or a count, as `kind`
    says.
    """

    def __init__(self, goals: dict[Name, None], kind: str = PROBABILITY) -> None:
        self.goals, self.kind = goals, kind
        self.states: dict[Name, int] = {}
        self.actions: dict[Name, int] = {}
        self.costs: dict[Any, float] = {}
        self.rows: list[tuple[int, int, int]] = []
        self.probability: list[Any] = []
        self.cost: list[float] = []

    def add(self, state: Name, action: Name, next_state: Name, given: Any, cost: Any) -> None:
        """One row, in the order of the columns. A row of a goal is checked, and forgotten."""
        states, outcome = self.states, (state, action, next_state)
        source = states.setdefault(state, len(states))
        numbers: Any = PARSERS[self.kind](given, *outcome)
        possible = self.kind == COUNT or numbers not in (0, (0, 0))
        if state in self.goals:
            if next_state != state or cost != 0:
                raise ModelError(
                    f"goal {state!r}, action {action!r} leads to {next_state!r} at cost {cost!r}:"
                    " a goal must be absorbing and free"
                )
            if self.kind == PROBABILITY and numbers > 1:
                raise ModelError(f"goal {state!r}, action {action!r} has probability {given!r}")
            return
        if possible and cost not in self.costs:
            self.costs[cost] = _number(cost, "cost", *outcome)
        actions = self.actions
        target = states.setdefault(next_state, len(states))
        self.rows.append((source, actions.setdefault(action, len(actions)), target))
        self.probability.append(numbers)
        self.cost.append(self.costs[cost] if possible else 0.0)

    def fields(self, start: Name) -> dict[str, Any]:
        """The fields of an `SSP`. Intervals and counts have columns instead of a probability."""
        states = self.states
        for goal in self.goals:
            states.setdefault(goal, len(states))
        if start not in states:
            raise ModelError(
                f"the start {start!r} is not a state of the model{did_you_mean(start, states)}"
            )
        is_goal = np.zeros(len(states), dtype=np.bool_)
        is_goal[[states[goal] for goal in self.goals]] = True
        shape = {PROBABILITY: (-1,), INTERVAL: (-1, 2), COUNT: (-1, 1)}[self.kind]
        finite = self.costs and all(np.isfinite(value) for value in self.costs.values())
        source, action, target = np.array(self.rows, np.int64).reshape(-1, 3).T
        return {
            **arrays_from_rows(
                *(source, action, target),
                np.array(self.probability, np.float64).reshape(shape),
                np.array(self.cost, np.float64),
                len(states),
                merge=True,
            ),
            "is_goal": is_goal,
            "start_index": states[start],
            "states": tuple(states),
            "actions": tuple(self.actions),
            "exact_unit": common_unit(self.costs) if finite else None,
        }


def fields_of_outcomes(
    outcomes: Iterable[Any], start: Name, goals: Iterable[Name], kind: str = PROBABILITY
) -> dict[str, Any]:
    """The fields of an `SSP` from rows `(state, action, next_state, kind, cost)`: names are
    numbered in order of appearance, and rows that agree in all but their numbers are added up.
    """
    numbers = Numbering(goal_names(goals), kind)
    rows = _checked_rows(outcomes, kind)
    for row in rows if kind != INTERVAL else _possible(list(rows), numbers.goals):
        numbers.add(*row)
    return numbers.fields(start)


def _checked_rows(outcomes: Iterable[Any], kind: str) -> Iterator[Any]:
    for position, row in enumerate(outcomes):
        try:
            state, action, next_state, _, cost = row
            hash((state, action, next_state, cost))
        except (TypeError, ValueError):
            raise ModelError(
                f"outcome {position} is {row!r}; expected hashable (state, action, next_state,"
                f" {kind}, cost)"
            ) from None
        yield row


def _possible(rows: list[Any], goals: Container[Name]) -> Iterator[Any]:
    """Rows with intervals, without those that cannot happen: nobody needs the states they name."""
    ends = [_ends(given, *outcome) for *outcome, given, _ in rows]
    least: dict[Any, list[float]] = {}
    for (state, action, *_), (low, _) in zip(rows, ends):
        least.setdefault((state, action), []).append(low)
    full = {choice for choice, lows in least.items() if math.fsum(lows) >= 1}
    for (state, action, *more), (low, high) in zip(rows, ends):
        if state in goals or low > 0 or (high > 0 and (state, action) not in full):
            yield state, action, *more


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


def _probability(given: Any, *outcome: Name) -> float:
    probability = _number(given, "probability", *outcome)
    # Before equal rows are added up: a negative one could hide in the sum.
    if not 0 <= probability < np.inf:
        raise ModelError(f"{describe_outcome(*outcome)} has probability {probability}")
    return probability


def _ends(given: Any, *outcome: Name) -> tuple[float, float]:
    """The ends of an interval, which are one number or two."""
    try:
        single = isinstance(given, str) or np.ndim(given) == 0
        low, high = (_float(end) for end in ((given, given) if single else given))
    except (TypeError, ValueError, ArithmeticError):
        raise ModelError(
            f"{describe_outcome(*outcome)} has probability {given!r}, which is neither a number nor"
            " a pair (low, high)"
        ) from None
    if not 0 <= low <= high <= 1 + ROW_TOLERANCE:
        raise ModelError(
            f"{describe_outcome(*outcome)} has the interval [{low:g}, {high:g}], which is not one"
            " of probabilities"
        )
    return low, min(high, 1.0)


def _count(given: Any, *outcome: Name) -> tuple[int]:
    try:
        count = int(given)
    except (TypeError, ValueError, OverflowError):
        count = -1
    if count < 0 or count != given:
        raise ModelError(
            f"{describe_outcome(*outcome)} has count {given!r}, which is not a whole number of 0 or"
            " more"
        )
    return (count,)


PARSERS: dict[str, Callable[..., Any]] = {
    PROBABILITY: _probability,
    INTERVAL: _ends,
    COUNT: _count,
}


def _number(given: Any, what: str, *outcome: Name) -> float:
    try:
        return _float(given)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f"{describe_outcome(*outcome)} has {what} {given!r}, which is not a number"
        ) from None


def _float(given: Any) -> float:
    # The exponent of a text may be out of range.
    return float(as_fraction(given) if isinstance(given, (str, Decimal)) else given)


def describe_outcome(state: Name, action: Name, next_state: Name) -> str:
    return f"state {state!r}, action {action!r} -> {next_state!r}"
