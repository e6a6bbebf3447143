"""Policies from tables: an action or a distribution for each state, or the values of a Q-table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailpath.errors import PolicyError, kind_of
from tailpath.graph import members
from tailpath.model.ssp import SSP, Name, Origin
from tailpath.policies.checks import (
    Actions,
    checked_decision,
    decisions_met,
    is_number,
    only_action,
)
from tailpath.policies.kinds import MarkovPolicy
from tailpath.policies.policy import Decision


@dataclass(slots=True)
class _Asked:
    """A state where a decision is needed: its index and `own` name, and its name and number in the
    model that it was made of, for which policies are mostly written.
    """

    index: int
    own: Name
    name: Name
    number: int

    def key(self, table: Mapping[Any, Any]) -> Name:
        """The name under which a table has the state, if it has it."""
        return self.own if self.own in table else self.name


def _asked_states(ssp: SSP) -> list[_Asked]:
    base = Origin(ssp.states, np.arange(ssp.n_states)) if ssp.origin is None else ssp.origin
    asked = []
    for state in np.flatnonzero(~ssp.is_goal).tolist():
        own, number = ssp.states[state], int(base.index[state])
        asked.append(_Asked(state, own, base.states[number] if number >= 0 else own, number))
    return asked


def policy_of_entries(
    ssp: SSP, entry: Callable[[_Asked], Any], given: Mapping[Any, Any] | None = None
) -> MarkovPolicy:
    """From what is said about each state; what is wrong in states never reached is passed over."""
    actions, asked_states = Actions(ssp), _asked_states(ssp)
    if given and not any(asked.key(given) in given for asked in asked_states):
        known = ", ".join(map(repr, ssp.states[:5])) + (", ..." if ssp.n_states > 5 else "")
        raise PolicyError(
            f"the policy decides in {next(iter(given))!r} and other states, none of which the model"
            f" has; its states are {known}"
        )
    decisions: dict[Name, Decision] = {}
    wrong: dict[Name, PolicyError] = {}
    for asked in asked_states:
        try:
            answer = None if _is_absorbing(ssp, asked.index) else entry(asked)
            decision = None if answer is None else actions.understood(asked.index, answer)
            if decision is None:
                decision = only_action(ssp, asked.index)
            else:
                checked_decision(ssp, asked.index, decision)
        except PolicyError as error:
            wrong[asked.own] = error
            continue
        if decision is not None:
            decisions[asked.own] = decision

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


def by_position(ssp: SSP, table: Any) -> Callable[[_Asked], Any]:
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
        return lambda asked: (
            table[asked.name] if isinstance(asked.name, (int, np.integer)) else None
        )
    if length == len(base):
        return lambda asked: table[asked.number] if asked.number >= 0 else None
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
    row_of = (
        (lambda asked: table.get(asked.key(table)))
        if isinstance(table, Mapping)
        else by_position(ssp, table)
    )
    actions = Actions(ssp)

    def best(asked: _Asked) -> Any:
        row = row_of(asked)
        if row is None:
            return None
        values = _values(actions, asked.index, row)
        return (min if minimise else max)(values, key=values.__getitem__, default=None)

    return policy_of_entries(ssp, best, table if isinstance(table, Mapping) else None)


def _values(actions: Actions, state: int, row: Any) -> dict[Name, float]:
    """The values of a row of a Q-table, by the actions that the state has."""
    ssp = actions.ssp
    if isinstance(row, str):
        raise PolicyError(
            f"the row of state {ssp.states[state]!r} is {row!r}; where less or more is better, a"
            " table has a number for each action"
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
