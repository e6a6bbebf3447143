"""Gymnasium: `gym:ENV_ID`, or any object with a table `.P`.

`P[state][action]` lists outcomes `(probability, next state, reward, terminated)`; `initial_state_distrib` gives the start.

- Cost is minus the reward: Gymnasium maximises.
- Every outcome with `terminated` leads to one fresh state, `goal`, wherever the table says it goes: the rows of terminal states are not
  absorbing in all environments, and are never used.
- Several start states become a fresh state, `start`, whose only choice, `draw`, draws one at no cost.
- States that cannot be reached are left out.
- Time limits are wrappers around an environment and not in `P`: total costs are untruncated.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.costs import CostRule, refuse_improbable, refuse_negative, without_bonus
from tailpath.formats.reading import Reading
from tailpath.model.builders import arrays_from_rows
from tailpath.model.ssp import SSP, Name

_Outcome = tuple[Name, Name, Name, float, float, bool]


def read(source: Any, reading: Reading) -> SSP:
    """Read an environment by its name, or an object that holds the table; `constants` are arguments of `gymnasium.make`."""
    rule = CostRule.from_options(-1, reading)
    if isinstance(source, str):
        where = f"gym:{source}"
        environment = _make(source, reading.constants, where)
    else:
        where, environment = type(source).__name__, source
        if reading.constants:
            raise FormatError(f"{where}: the environment is already made; constants belong to gym:ENV_ID")
    table = getattr(getattr(environment, "unwrapped", environment), "P", None)
    if table is None:
        raise FormatError(f"{where}: this environment has no transition table .P")
    return _build(table, _starts(environment, table, where), rule, where)


def _make(name: str, constants: Mapping[str, Any], where: str) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise FormatError(f"{where}: Gymnasium is not installed; install tailpath[gym]") from None
    try:
        return gymnasium.make(name, **{key: _literal(value) for key, value in constants.items()})
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, KeyError, AssertionError) as error:
        raise FormatError(f"{where}: {' '.join(str(error).split())}") from None


def _literal(value: Any) -> Any:
    """A constant from the command line: JSON where it is JSON, else text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value.lower() if value in ("True", "False") else value)
    except ValueError:
        return value


def _starts(environment: Any, table: Any, where: str) -> dict[Name, float]:
    """The start states with their probabilities."""
    inner = getattr(environment, "unwrapped", environment)
    distribution = getattr(inner, "initial_state_distrib", getattr(inner, "isd", None))
    if distribution is None:
        return {next(iter(dict(_items(table)))): 1.0}
    weights = np.asarray(distribution, dtype=np.float64)
    if weights.ndim != 1 or not (np.isfinite(weights) & (weights >= 0)).all() or abs(weights.sum() - 1) > 1e-9 * len(weights):
        raise FormatError(f"{where}: the start distribution is no distribution")
    return {int(state): float(weights[state]) for state in np.flatnonzero(weights)}


def _build(table: Any, starts: Mapping[Name, float], rule: CostRule, where: str) -> SSP:
    rows = list(_reachable(table, starts, where))
    ends = np.array([row[5] for row in rows], dtype=np.bool_)
    if not ends.any():
        raise FormatError(f"{where}: no outcome that can be reached is marked as terminated, so there is no goal")
    rewards = np.array([row[4] for row in rows], dtype=np.float64)
    costs, notes = without_bonus(rule.apply(rewards), ends)

    def name(row: int) -> str:
        return f"state {rows[row][0]!r}, action {rows[row][1]!r} -> {rows[row][2]!r} with reward {rewards[row]:g}"

    refuse_improbable(np.array([row[3] for row in rows]), where, name)
    refuse_negative(costs, where, name)
    if rule.sign < 0 and rule.step_cost is None:
        notes += ("costs are minus the rewards",)
    names = dict.fromkeys(row[0] for row in rows)
    goal = _fresh("goal", names)
    outcomes = [(row[0], row[1], goal if row[5] else row[2], row[3], cost) for row, cost in zip(rows, costs.tolist())]
    start = next(iter(starts))
    if len(starts) > 1:
        start = _fresh("start", names)
        outcomes.extend((start, "draw", state, share, 0.0) for state, share in starts.items())
        notes += (f"the start is drawn among {len(starts)} states, at no cost",)
    notes += ("time limits are not part of the table: total costs are untruncated",)
    return _in_order(outcomes, [*names, goal, *([start] if start not in names else [])], start, goal, notes)


def _in_order(outcomes: list[Any], states: list[Name], start: Name, goal: Name, notes: tuple[str, ...]) -> SSP:
    """The model with its states in the order of the table, where `SSP.from_outcomes` would number them as they appear."""
    number = {state: index for index, state in enumerate(states)}
    action = {name: index for index, name in enumerate(dict.fromkeys(outcome[1] for outcome in outcomes))}
    arrays = arrays_from_rows(
        np.array([number[outcome[0]] for outcome in outcomes]),
        np.array([action[outcome[1]] for outcome in outcomes]),
        np.array([number[outcome[2]] for outcome in outcomes]),
        np.array([outcome[3] for outcome in outcomes], dtype=np.float64),
        np.array([outcome[4] for outcome in outcomes], dtype=np.float64),
        len(states),
        merge=True,
    )
    return SSP(
        **arrays,
        is_goal=np.arange(len(states)) == number[goal],
        start_index=number[start],
        states=tuple(states),
        actions=tuple(action),
        notes=notes,
    )


def _reachable(table: Any, starts: Iterable[Name], where: str) -> Iterator[_Outcome]:
    """The rows of every state that can be entered without having terminated, state by state."""
    rows = dict(_items(table))
    seen, waiting = set(starts), list(starts)
    found: dict[Name, list[_Outcome]] = {}
    while waiting:
        state = waiting.pop()
        if state not in rows:
            raise FormatError(f"{where}: state {state!r} is entered but has no row in the table")
        found[state] = [outcome for action, row in _items(rows[state]) for outcome in _row(state, action, row, where)]
        for outcome in found[state]:
            if outcome[3] != 0 and not outcome[5] and outcome[2] not in seen:
                seen.add(outcome[2])
                waiting.append(outcome[2])
    for state in rows:
        yield from found.get(state, ())


def _row(state: Name, action: Name, row: Any, where: str) -> Iterator[_Outcome]:
    place = f"{where}: state {state!r}, action {action!r}"
    try:
        entries = [tuple(entry) for entry in row]
    except TypeError:
        raise FormatError(f"{place}: expected a list of outcomes, not {row!r}") from None
    if not entries:
        raise FormatError(f"{place} has no outcomes")
    for entry in entries:
        if len(entry) != 4 or not all(isinstance(value, numbers.Real) and math.isfinite(value) for value in (entry[0], entry[2])):
            raise FormatError(f"{place}: expected (probability, next state, reward, terminated), not {entry!r}")
        yield _name(state), _name(action), _name(entry[1]), float(entry[0]), float(entry[2]), bool(entry[3])


def _items(table: Any) -> Iterator[tuple[Name, Any]]:
    """The entries of a dictionary, or of a list by position."""
    for key, value in table.items() if isinstance(table, Mapping) else enumerate(table):
        yield _name(key), value


def _name(name: Any) -> Name:
    plain: Name = name.item() if isinstance(name, np.generic) else name
    return plain


def _fresh(name: str, taken: Mapping[Name, Any]) -> str:
    while name in taken:
        name += "'"
    return name
