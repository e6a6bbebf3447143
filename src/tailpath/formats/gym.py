"""Gymnasium: `gym:ENV_ID`, any object with a table `.P`, or such a table itself.

`P[state][action]` lists outcomes `(probability, next state, reward, terminated)`; `initial_state_distrib` gives the start. What is assumed is
noted, and can be said otherwise:

- *Goals.* Where outcomes with `terminated` carry different rewards, those with the best one arrive, and the others are dead ends: a hole in the ice
  is an end, but no goal. `goal="all"` makes every end a goal, `goal="1"` those with this reward. Arrivals lead to one fresh state, `goal`, and
  losses to another, `dead end`, wherever the table says they go: the rows of terminal states are not absorbing in all environments, and
  are never used.
- *Costs.* Cost is minus the reward: Gymnasium maximises. A bonus that every arrival carries is taken out. Where all rewards on the way are 0 and all
  arrivals carry the same, which is no cost, rewards say nothing about effort, and every step costs 1; `step_cost` and `cost_of` say otherwise.
- *Start.* Several start states become a fresh state, `start`, whose only choice, `draw`, draws one at no cost; `start` names one instead.
- States that cannot be reached are left out.
- Time limits are wrappers around an environment and not in `P`: total costs are untruncated. `tailpath.within` honours a limit.
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
from numpy.typing import NDArray

from tailpath.errors import FormatError
from tailpath.formats.costs import CostRule, refuse_improbable, refuse_negative, without_bonus
from tailpath.formats.reading import Reading
from tailpath.model.builders import arrays_from_rows
from tailpath.model.ssp import SSP, Name
from tailpath.texts import did_you_mean

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
    table = source if isinstance(source, Mapping) else getattr(getattr(environment, "unwrapped", environment), "P", None)
    if table is None:
        raise FormatError(f"{where}: this environment has no transition table .P")
    starts = _starts(environment, table, where) if reading.start is None else {_named(reading.start, table, where): 1.0}
    rows = list(_reachable(table, starts, where))
    return _build(rows, starts, _Endings.of(rows, reading.goal, where), rule, (*_time_limit(environment), *_left_out(environment)), where)


def _named(start: Any, table: Any, where: str) -> Name:
    """The start as the table names it; a text may stand for a number."""
    names = [name for name, _ in _items(table)]
    for name in names:
        if name == start or (isinstance(start, str) and str(name) == start):
            return name
    raise FormatError(f"{where}: the table has no state {start!r} to start from{did_you_mean(start, names)}")


def _time_limit(environment: Any) -> Iterator[str]:
    limit = getattr(getattr(environment, "spec", None), "max_episode_steps", None)
    known = f"; the environment stops after {limit} steps, which within(ssp, {limit}) or --within {limit} honours" if limit else ""
    yield f"time limits are not part of the table: total costs are untruncated{known}"


def _left_out(environment: Any) -> Iterator[str]:
    if getattr(getattr(environment, "unwrapped", environment), "fickle_passenger", False):
        yield "the passenger's change of mind (fickle_passenger) happens outside the table: it is left out"
    for wrapper in _wrappers(environment):
        yield f"what the wrapper {wrapper} does happens outside the table: it is left out"


def _wrappers(environment: Any) -> Iterator[str]:
    """The wrappers around an environment, but for those that Gymnasium puts around every one and that of the time limit."""
    while hasattr(environment, "unwrapped") and environment is not environment.unwrapped:
        kind = type(environment).__name__
        if kind not in ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker"):
            yield kind
        environment = environment.env


def _make(name: str, constants: Mapping[str, Any], where: str) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise FormatError(f"{where}: Gymnasium is not installed; install tailpath[gym]") from None
    try:
        # `module:Env` imports that module; what happens to lie in the working directory is not meant.
        with _without_working_directory():
            return gymnasium.make(name, **{key: _literal(value) for key, value in constants.items()})
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, KeyError, AssertionError) as error:
        raise FormatError(f"{where}: {' '.join(str(error).split())}") from None


@contextmanager
def _without_working_directory() -> Iterator[None]:
    before = list(sys.path)
    here = os.path.realpath(os.curdir)
    sys.path[:] = [place for place in before if os.path.realpath(place or os.curdir) != here]
    try:
        yield
    finally:
        sys.path[:] = before


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


class _Endings(NamedTuple):
    """Which outcomes arrive and which are lost; the others go on."""

    arrives: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, rows: list[_Outcome], goal: str | None, where: str) -> _Endings:
        ends = np.array([row[5] for row in rows], dtype=np.bool_)
        if not ends.any():
            raise FormatError(f"{where}: no outcome that can be reached is marked as terminated, so there is no goal")
        rewards = np.array([row[4] for row in rows], dtype=np.float64)
        final = np.unique(rewards[ends])
        if goal == "all":
            wanted = final
        elif goal is None or goal == "best":
            wanted = final[-1:]
        else:
            wanted = np.array([_reward(part, final, where) for part in goal.split(",")])
        arrives = ends & np.isin(rewards, wanted)
        lost = ends & ~arrives
        if not lost.any():
            return cls(arrives, lost, ())
        others = ", ".join(f"{value:g}" for value in final if value not in wanted)
        best = ", ".join(f"{value:g}" for value in wanted)
        note = f"a run that ends with a reward of {best} has arrived, one that ends with {others} is lost (goal='all', --goal all: every end counts)"
        return cls(arrives, lost, (note,))


def _reward(text: str, final: NDArray[Any], where: str) -> float:
    known = ", ".join(f"{value:g}" for value in final)
    try:
        reward = float(text)
    except ValueError:
        reward = math.nan
    if reward not in final:
        raise FormatError(f"{where}: goal must be best, all or the reward of an end, one of {known}, not {text.strip()!r}")
    return reward


def _costs(rows: list[_Outcome], endings: _Endings, rule: CostRule, where: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The costs of all rows, and what was assumed about them."""
    rewards = np.array([row[4] for row in rows], dtype=np.float64)

    def name(row: int) -> str:
        return f"state {rows[row][0]!r}, action {rows[row][1]!r} -> {rows[row][2]!r} with reward {rewards[row]:g}"

    refuse_improbable(np.array([row[3] for row in rows]), where, name)
    on_the_way = ~(endings.arrives | endings.lost)
    arrival = rewards[endings.arrives]
    if rule == CostRule(-1, None, {}) and not rewards[on_the_way].any() and arrival[0] >= 0 and (arrival == arrival[0]).all():
        bonus = f", and the reward of {arrival[0]:g} for arriving is left out" if arrival[0] else ""
        return np.ones(len(rows)), (f"the rewards say nothing about effort: every step costs 1 (step_cost=, --step-cost){bonus}",)
    costs, notes = without_bonus(rule.apply(rewards), endings.arrives)
    if rule.sign < 0 and rule.step_cost is None:
        notes += ("costs are minus the rewards",)

    # What a lost run has won does not make up for it.
    costs = np.where(endings.lost, np.maximum(costs, 0.0), costs)
    refuse_negative(costs, where, name)
    return costs, notes


def _build(
    rows: list[_Outcome], starts: Mapping[Name, float], endings: _Endings, rule: CostRule, notes: tuple[str, ...], where: str
) -> SSP:
    costs, assumed = _costs(rows, endings, rule, where)
    notes = (*endings.notes, *assumed, *notes)
    names = dict.fromkeys(row[0] for row in rows)
    goal, dead = _fresh("goal", names), _fresh("dead end", names)
    ended = np.where(endings.arrives, 1, np.where(endings.lost, 2, 0)).tolist()
    outcomes = [(row[0], row[1], (row[2], goal, dead)[end], row[3], cost) for row, end, cost in zip(rows, ended, costs.tolist())]
    states = [*names, goal]
    if endings.lost.any():
        states.append(dead)
        # What waiting costs does not matter, but nothing may be free for ever; a cost of the model keeps its unit.
        outcomes.append((dead, "stay", dead, 1.0, float(costs[costs > 0].min()) if costs.any() else 1.0))
    start = next(iter(starts))
    if len(starts) > 1:
        start = _fresh("start", names)
        states.append(start)
        outcomes.extend((start, "draw", state, share, 0.0) for state, share in starts.items())
        notes = (*notes[:-1], f"the start is drawn among {len(starts)} states, at no cost", notes[-1])
    return _in_order(outcomes, states, start, goal, notes)


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
        if len(entry) != 4 or not all(_is_number(value) for value in (entry[0], entry[2])):
            raise FormatError(f"{place}: expected (probability, next state, reward, terminated), not {entry!r}")
        yield _name(state), _name(action), _name(entry[1]), float(entry[0]), float(entry[2]), bool(entry[3])


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


def _fresh(name: str, taken: Mapping[Name, Any]) -> str:
    while name in taken:
        name += "'"
    return name
