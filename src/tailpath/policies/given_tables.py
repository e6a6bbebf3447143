"""Policies from tables: an action or a distribution for each state, or the values of a Q-table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tailpath.errors import PolicyError, kind_of
from tailpath.graph import members
from tailpath.model.ssp import SSP, Name
from tailpath.policies.checks import (
    Actions,
    checked_decision,
    decisions_met,
    is_number,
    only_action,
    own_name,
)
from tailpath.policies.kinds import MarkovPolicy
from tailpath.policies.policy import Decision


def entry_of(ssp: SSP, table: Mapping[Any, Any]) -> Callable[[int], Any]:
    """What a table says about a state, under its name or that of the state it stands for."""

    def entry(state: int) -> Any:
        name = ssp.states[state]
        return table[name] if name in table else table.get(own_name(ssp, state))

    return entry


def policy_of_entries(
    ssp: SSP, entry: Callable[[int], Any], given: Mapping[Any, Any] | None = None
) -> MarkovPolicy:
    """From what is said about each state; what is wrong in states never reached is passed over."""
    actions, states = Actions(ssp), np.flatnonzero(~ssp.is_goal).tolist()
    if given and not any(ssp.states[s] in given or own_name(ssp, s) in given for s in states):
        known = ", ".join(map(repr, ssp.states[:5])) + (", ..." if ssp.n_states > 5 else "")
        raise PolicyError(
            f"the policy decides in {next(iter(given))!r} and other states, none of which the model"
            f" has; its states are {known}"
        )
    decisions: dict[Name, Decision] = {}
    wrong: dict[Name, PolicyError] = {}
    for state in states:
        try:
            answer = None if _is_absorbing(ssp, state) else entry(state)
            decision = None if answer is None else actions.understood(state, answer)
            if decision is None:
                decision = only_action(ssp, state)
            else:
                checked_decision(ssp, state, decision)
        except PolicyError as error:
            wrong[ssp.states[state]] = error
            continue
        if decision is not None:
            decisions[ssp.states[state]] = decision

    def ask(state: int, name: Name) -> Decision | None:
        if name in wrong:
            raise wrong[name]
        return decisions.get(name)

    decisions_met(ssp, ask)
    return MarkovPolicy(decisions)


def _is_absorbing(ssp: SSP, state: int) -> bool:
    """Whether a state only leads to itself: tables of agents have an entry there, which does not
    matter.
    """
    if only_action(ssp, state) is None:
        return False
    outcomes = members(ssp.choice_outcomes, int(ssp.state_choices[state]))
    after = ssp.outcome_target[outcomes.start : outcomes.stop]
    if ssp.origin is None:
        return bool((after == state).all())
    own = ssp.origin.index[after]  # -1 where time is up
    return bool(((own == ssp.origin.index[state]) | (own < 0)).all())


def by_position(ssp: SSP, table: Any) -> Callable[[int], Any]:
    """The entry of a state in a sequence: by the number that is its name, or by its index."""
    base = ssp.states if ssp.origin is None else ssp.origin.states
    numbers: list[Any] = [name for name in base if is_number(name)]
    if getattr(table, "ndim", 1) > 2:
        raise PolicyError(
            f"the policy has {table.ndim} axes; expected one, an action for every state, or two,"
            " states by actions"
        )
    length = len(table)
    if numbers and min(numbers) >= 0 and length > max(numbers):

        def by_name(state: int) -> Any:
            name: Any = own_name(ssp, state)
            return table[name] if isinstance(name, (int, np.integer)) else None

        return by_name
    if length == len(base):
        number = np.arange(ssp.n_states) if ssp.origin is None else ssp.origin.index
        return lambda state: table[number[state]] if number[state] >= 0 else None
    more = f", or more than {max(numbers)}, to be read by the states' numbers" if numbers else ""
    raise PolicyError(
        f"the policy has {length} {'entry' if length == 1 else 'entries'}; expected one for each"
        f" of the {len(base)} states{more}"
    )


def greedy_policy(ssp: SSP, table: Any, minimise: bool) -> MarkovPolicy:
    """The greedy policy of a Q-table; the first of equally good actions."""
    if (
        isinstance(table, Mapping)
        and table
        and all(isinstance(key, tuple) and len(key) == 2 for key in table)
    ):
        by_state: dict[Name, dict[Name, Any]] = {}
        for (state, action), value in table.items():
            by_state.setdefault(state, {})[action] = value
        if not any(key in set(ssp.states) for key in table):
            table = by_state
    if not isinstance(table, (Mapping, np.ndarray, list, tuple)):
        raise PolicyError(
            f"cannot read {kind_of(table)} as a Q-table; give an array or a mapping of"
            " states to values"
        )
    if isinstance(table, np.ndarray) and table.ndim != 2:
        raise PolicyError(
            "a Q-table has a row for every state and a number for every action, not the shape"
            f" {table.shape}"
        )
    row_of = entry_of(ssp, table) if isinstance(table, Mapping) else by_position(ssp, table)
    actions = Actions(ssp)

    def best(state: int) -> Any:
        row = row_of(state)
        if row is None:
            return None
        values = _values(actions, state, row)
        return (min if minimise else max)(values, key=values.__getitem__, default=None)

    return policy_of_entries(ssp, best, table if isinstance(table, Mapping) else None)


def _values(actions: Actions, state: int, row: Any) -> dict[Name, float]:
    """The values of a row of a Q-table, by the actions that the state has."""
    ssp = actions.ssp
    if isinstance(row, str):
        raise PolicyError(
            f"the row of state {ssp.states[state]!r} is {row!r}; with minimise, a table needs a"
            " number for each action"
        )
    if isinstance(row, Mapping):
        # Tables often have a value for every action, whether the state has it or not.
        row = {action: row[action] for action in row if ssp.choice_index(state, action) >= 0}
    else:
        row = actions.row(state, row)
    return {
        action: float(value)
        for action, value in row.items()
        if value is not np.ma.masked and not np.isnan(value)
    }


def as_table(anything: Any) -> Any:
    if hasattr(anything, "to_dict") and hasattr(anything, "index"):  # pandas
        return (
            anything.to_dict("index") if getattr(anything, "ndim", 1) == 2 else anything.to_dict()
        )
    if (
        isinstance(anything, (list, tuple))
        and anything
        and all(isinstance(row, (list, np.ndarray)) for row in anything)
    ):
        try:
            return np.array(anything, dtype=np.float64)
        except (TypeError, ValueError):
            raise PolicyError(
                "the rows of a matrix must hold one number for every action"
            ) from None
    return anything
