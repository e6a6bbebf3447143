"""Gymnasium: `gym:ENV_ID`, any object with a table `.P`, or such a table itself.

`P[state][action]` lists outcomes `(probability, next state, reward, terminated)`;
`initial_state_distrib` gives the start. Assumptions are noted, and options replace them
(`docs/formats.md`): which ends are goals, what rewards cost, where runs begin. The rows of
terminal states are not absorbing in all environments, and are never used; states that cannot be
reached are left out.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.outcomes import cost_rule, loop_cost, refuse_improbable
from tailpath.formats.registry import Reading
from tailpath.graph import Array, BoolArray, FloatArray
from tailpath.model.endings import fresh_name
from tailpath.model.ends import GAINS
from tailpath.model.frames import Rows
from tailpath.model.outcomes import CostRule, describe_outcome
from tailpath.model.ssp import SSP, Name
from tailpath.model.tables import outcomes_of_table
from tailpath.registers import module_of
from tailpath.texts import did_you_mean


def read(source: Any, reading: Reading) -> SSP:
    """Read an environment by its name, or an object that holds the table; `constants` are arguments
    of `gymnasium.make`.
    """
    rule = cost_rule(-1, reading)
    if isinstance(source, str):
        location = f"gym:{source}"
        environment = _make(source, reading.constants, location)
    else:
        location, environment = type(getattr(source, "unwrapped", source)).__name__, source
        if reading.constants:
            raise FormatError(
                f"{location}: the environment is already made; constants belong to gym:ENV_ID"
            )
    inner = getattr(environment, "unwrapped", environment)
    table = source if isinstance(source, Mapping) else getattr(inner, "P", None)
    if table is None:
        raise FormatError(
            f"{location}: this environment has no transition table .P; log its steps and read them"
            " with confidence=, or write its rules for SSP.from_functions"
        )
    starts = (
        _starts(inner, table, location)
        if reading.start is None
        else {_start_state(reading.start, table, location): 1.0}
    )
    rows = list(_reachable(table, starts, location))
    endings = Endings.of(rows, reading.goal, location)
    costs, assumed = _costs(rows, endings, rule, location)
    drawn = (
        (f"the start is drawn among {len(starts)} states, at no cost",) if len(starts) > 1 else ()
    )
    notes = (*endings.notes, *assumed, *drawn, *_outside(environment))
    targets, goals, dead_ends = endings.targets(rows)
    positions = _cells_of(
        inner, len(table), dict.fromkeys(dead_ends, "dead end") | dict.fromkeys(goals, "goal")
    )
    outcomes = [
        (row.state, row.action, target, row.probability, cost)
        for row, target, cost in zip(rows, targets, costs.tolist())
    ]
    waiting = loop_cost(costs)
    outcomes.extend((dead, "stay", dead, 1.0, waiting) for dead in dead_ends)
    start = next(iter(starts))
    if len(starts) > 1:
        start = fresh_name("start", {row.state for row in rows} | goals.keys() | dead_ends.keys())
        outcomes.extend((start, "draw", state, share, 0.0) for state, share in starts.items())
    ssp = _in_order(outcomes, dict(_items(table)), start, goals, notes=notes, geometry=positions)
    names = _action_names(reading.actions, inner, location)
    return ssp.renamed(actions=lambda action: names.get(action, action)) if names else ssp


#: The names of actions, by the class of the environment.
_ACTIONS = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}


def _action_names(given: Any, inner: Any, location: str) -> dict[Name, Name]:
    """`{number: name}`, from a list in order, a text with commas, or `known`."""
    if given is None:
        return {}
    if given == "known":
        if type(inner).__name__ not in _ACTIONS:
            known = ", ".join(name.removesuffix("Env") for name in _ACTIONS)
            raise FormatError(f"{location}: the actions of {known} are known; list the names")
        given = _ACTIONS[type(inner).__name__]
    listed = given.split(",") if isinstance(given, str) else given
    return {number: name.strip() for number, name in enumerate(listed)}


def _start_state(start: Any, table: Any, location: str) -> Name:
    """The start as the table names it; a text may stand for a number."""
    names = [name for name, _ in _items(table)]
    for name in names:
        if name == start or (isinstance(start, str) and str(name) == start):
            return name
    raise FormatError(
        f"{location}: the table has no state {start!r} to start from{did_you_mean(start, names)}"
    )


def _outside(environment: Any) -> Iterator[str]:
    """Notes on what an environment does beyond its table."""
    limit = getattr(getattr(environment, "spec", None), "max_episode_steps", None)
    known = (
        f"; the environment stops after {limit} steps, which within(ssp, {limit}) or --within"
        f" {limit} honours"
        if limit
        else ""
    )
    yield f"time limits are not part of the table: total costs are untruncated{known}"
    if getattr(getattr(environment, "unwrapped", environment), "fickle_passenger", False):
        yield (
            "the passenger's change of mind (fickle_passenger) happens outside the table: it is"
            " left out"
        )
    while hasattr(environment, "unwrapped") and environment is not environment.unwrapped:
        kind = type(environment).__name__
        # Gymnasium puts these around every environment.
        if kind not in ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker"):
            yield f"the effect of the wrapper {kind} is not part of the table: it is left out"
        environment = environment.env


def _make(name: str, constants: Mapping[str, Any], location: str) -> Any:
    gymnasium = module_of("gymnasium", "gym")
    try:
        # `module:Env` imports that module, which must not come from the working directory.
        with _without_working_directory():
            return gymnasium.make(
                name, **{key: _literal(value) for key, value in constants.items()}
            )
    except (
        gymnasium.error.Error,
        ImportError,
        TypeError,
        ValueError,
        KeyError,
        AssertionError,
    ) as error:
        raise FormatError(f"{location}: {' '.join(str(error).split())}") from None


@contextmanager
def _without_working_directory() -> Iterator[None]:
    before = list(sys.path)
    here = os.path.realpath(os.curdir)
    sys.path[:] = [
        position for position in before if os.path.realpath(position or os.curdir) != here
    ]
    try:
        yield
    finally:
        sys.path[:] = before


def _literal(value: Any) -> Any:
    """A constant from the command line: as JSON if it is JSON, otherwise as text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value.lower() if value in ("True", "False") else value)
    except ValueError:
        return value


def _starts(inner: Any, table: Any, location: str) -> dict[Name, float]:
    distribution = getattr(inner, "initial_state_distrib", getattr(inner, "isd", None))
    if distribution is None:
        return dict.fromkeys([name for name, _ in _items(table)][:1], 1.0)
    weights = np.asarray(distribution, dtype=np.float64)
    if (
        weights.ndim != 1
        or not (np.isfinite(weights) & (weights >= 0)).all()
        or abs(weights.sum() - 1) > 1e-9 * len(weights)
    ):
        raise FormatError(f"{location}: the start distribution is not a probability distribution")
    return {int(state): float(weights[state]) for state in np.flatnonzero(weights)}


def _costs(
    rows: list[TableOutcome], endings: Endings, rule: CostRule, location: str
) -> tuple[FloatArray, tuple[str, ...]]:
    """The costs of all rows, and notes on what was assumed."""
    rewards = np.array([row.reward for row in rows], dtype=np.float64)

    def name(number: int) -> str:
        row = rows[number]
        outcome = describe_outcome(row.state, row.action, row.target)
        return f"{outcome} with reward {row.reward:g}"

    refuse_improbable(np.array([row.probability for row in rows]), location, name)
    on_the_way = ~(endings.arrives | endings.lost)
    arrival = rewards[endings.arrives]
    if (
        rule == CostRule(-1, None, {})
        and not rewards[on_the_way].any()
        and arrival[0] >= 0
        and (arrival == arrival[0]).all()
    ):
        bonus = f", and the reward of {arrival[0]:g} for arriving is left out" if arrival[0] else ""
        return np.ones(len(rows)), (
            (
                "no step before the end has a reward, so every step costs 1 (step_cost=,"
                f" --step-cost){bonus}"
            ),
        )
    costs = rule.apply(rewards)
    # Earlier rewards do not make up for being lost.
    costs = np.where(endings.lost, np.maximum(costs, 0.0), costs)
    return costs, ((GAINS,) if rule.sign < 0 and rule.step_cost is None else ())


def _in_order(
    outcomes: list[Any],
    order: Mapping[Name, Any],
    start: Name,
    goals: Mapping[Name, None],
    **more: Any,
) -> SSP:
    """The model with its states in the `order` of the table; `SSP.from_outcomes` would number them
    by first appearance.
    """
    met = dict.fromkeys(outcome[0] for outcome in outcomes) | dict(goals)
    table = Rows(outcomes, goals, first=[*filter(met.__contains__, order), *met])
    found = outcomes_of_table(table, start, goals)
    return SSP(**found.all_fields(exact_unit=None, **more))


def _reachable(table: Any, starts: Iterable[Name], location: str) -> Iterator[TableOutcome]:
    """The rows of every state that can be entered without having terminated, state by state."""
    rows = dict(_items(table))
    seen, waiting = set(starts), list(starts)
    found: dict[Name, list[TableOutcome]] = {}
    while waiting:
        state = waiting.pop()
        if state not in rows:
            raise FormatError(f"{location}: state {state!r} is entered but has no row in the table")
        found[state] = [
            outcome
            for action, row in _items(rows[state])
            for outcome in _row(state, action, row, location)
        ]
        for outcome in found[state]:
            if outcome.probability != 0 and not outcome.ends and outcome.target not in seen:
                seen.add(outcome.target)
                waiting.append(outcome.target)
    for state in rows:
        yield from found.get(state, ())


def _row(state: Name, action: Name, row: Any, location: str) -> Iterator[TableOutcome]:
    position = f"{location}: state {state!r}, action {action!r}"
    try:
        entries = [tuple(entry) for entry in row]
    except TypeError:
        raise FormatError(f"{position}: expected a list of outcomes, not {row!r}") from None
    if not entries:
        raise FormatError(f"{position} has no outcomes")
    for entry in entries:
        if len(entry) != 4 or not all(_is_number(value) for value in (entry[0], entry[2])):
            raise FormatError(
                f"{position}: expected (probability, next state, reward, terminated), not {entry!r}"
            )
        probability, target, reward, ends = entry
        yield TableOutcome(
            state, action, _name(target), float(probability), float(reward), bool(ends)
        )


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, numbers.Real) and math.isfinite(value)
    except OverflowError:  # a whole number beyond the floats
        return False


def _items(table: Any) -> Iterator[tuple[Name, Any]]:
    """The entries of a dictionary, or of a list by position."""
    for key, value in table.items() if isinstance(table, Mapping) else enumerate(table):
        yield _name(key), value


def _name(name: Any) -> Name:
    plain: Name = name.item() if isinstance(name, np.generic) else name
    return plain


# ---------------------------------------------------------------------- the map


#: The kinds of cells by letter; any other letter is a kind of its own.
_LETTERS = {
    **dict.fromkeys("SF. ", "floor"),
    **dict.fromkeys("W#", "obstacle"),
    "H": "hole",
    "L": "lava",
    "C": "cliff",
    "G": "goal",
}


def _cells_of(
    inner: Any, n_states: int, ends: Mapping[Name, str]
) -> dict[Name, tuple[int, int, str]] | None:
    """`{state: (row, column, kind)}` of an environment that is a grid, or None. `ends` has the
    kinds of ends without a letter.
    """
    letters = _letters(getattr(inner, "desc", None))
    shape = getattr(inner, "shape", None) or (getattr(inner, "nrow", 0), getattr(inner, "ncol", 0))
    if letters is not None and letters.size == n_states:
        columns = letters.shape[1]
        kinds = [_LETTERS.get(letter, letter) for letter in letters.ravel().tolist()]
    elif isinstance(shape, (tuple, list)) and len(shape) == 2 and math.prod(shape) == n_states:
        columns, kinds = int(shape[1]), [ends.get(state, "floor") for state in range(n_states)]
    else:
        return None
    return {state: (*divmod(state, columns), kind) for state, kind in enumerate(kinds)}


def _letters(desc: Any) -> Any:
    """A map, of letters or of lines of one length, as letters of shape (rows, columns), or None."""
    try:
        lines = [b"".join(np.array(line, dtype="S").ravel()).decode() for line in desc]
        array = np.array(list(map(list, lines)))
    except (TypeError, ValueError):  # no map, or lines of different lengths
        return None
    return array if array.ndim == 2 and array.size else None


# ---------------------------------------------------------------------- the ends


class TableOutcome(NamedTuple):
    """A row of the table."""

    state: Name
    action: Name
    target: Name
    probability: float
    reward: float
    ends: bool


class Endings(NamedTuple):
    """Which outcomes arrive and which are lost; the others continue.

    An end keeps the name of the environment's state, so that the last observation of an episode is
    a state of the model. The end is a state of its own only if runs may also pass through that
    state, or if both arrivals and losses end in it.
    """

    arrives: BoolArray
    lost: BoolArray
    notes: tuple[str, ...]

    @classmethod
    def of(cls, rows: list[TableOutcome], goal: str | None, location: str) -> Endings:
        """Ends told apart by their reward: `goal` is `best`, `all` or a reward."""
        ends = np.array([row.ends for row in rows], dtype=np.bool_)
        if not ends.any():
            raise FormatError(
                f"{location}: no outcome that can be reached is marked as terminated, so there is"
                " no goal"
            )
        rewards = np.array([row.reward for row in rows], dtype=np.float64)
        final = np.unique(rewards[ends])
        if goal == "all":
            wanted = final
        elif goal is None or goal == "best":
            wanted = final[-1:]
        else:
            wanted = np.array([_reward(part, final, location) for part in goal.split(",")])
        arrives = ends & np.isin(rewards, wanted)
        lost = ends & ~arrives
        if not lost.any():
            return cls(arrives, lost, ())
        others = ", ".join(f"{value:g}" for value in final if value not in wanted)
        best = ", ".join(f"{value:g}" for value in wanted)
        note = (
            f"a run that ends with a reward of {best} has arrived, one that ends with {others} is"
            " lost (goal='all', --goal all: every end counts)"
        )
        return cls(arrives, lost, (note,))

    def targets(
        self, rows: list[TableOutcome]
    ) -> tuple[list[Name], dict[Name, None], dict[Name, None]]:
        """Where each outcome leads by the names of the model, and the names of the goals and of the
        dead ends.
        """
        taken: dict[Name, Any] = dict.fromkeys(row.state for row in rows)
        taken |= dict.fromkeys(row.target for row in rows if not row.ends)
        called: list[dict[Name, Name]] = []
        for mask, word in ((self.arrives, "goal"), (self.lost, "dead end")):
            found: dict[Name, Name] = {}
            for state in dict.fromkeys(rows[row].target for row in np.flatnonzero(mask).tolist()):
                found[state] = fresh_name(f"{state} ({word})", taken) if state in taken else state
                taken[found[state]] = None
            called.append(found)
        kind = np.where(self.arrives, 1, np.where(self.lost, 2, 0)).tolist()
        names = ({}, *called)
        targets = [names[k].get(row.target, row.target) for row, k in zip(rows, kind)]
        return targets, dict.fromkeys(called[0].values()), dict.fromkeys(called[1].values())


def _reward(text: str, final: Array, location: str) -> float:
    known = ", ".join(f"{value:g}" for value in final)
    try:
        reward = float(text)
    except ValueError:
        reward = math.nan
    if reward not in final:
        raise FormatError(
            f"{location}: goal must be best, all or the reward of a final step, one of {known}, not"
            f" {text.strip()!r}"
        )
    return reward
