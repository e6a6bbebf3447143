"""From Python functions to the arrays of a model: states are found breadth first from the start.

    actions(state)            the names of what can be done there
    outcomes(state, action)   triples (probability, next state, cost)
    is_goal(state)            whether runs end there

Each is called once: `is_goal` and `actions` for each state, `outcomes` for each choice. Goals are
not asked for actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tailpath.errors import ModelError, OptionError, kind_of
from tailpath.model.builders import ModelArrays, Name, Numbering
from tailpath.options import Progress
from tailpath.texts import named_parts

#: States between two calls of `progress`.
PAUSE = 5_000

ActionsOf = Callable[[Any], Iterable[Name]]
OutcomesOf = Callable[[Any, Any], Iterable[tuple[Any, Name, Any]]]


class Functions(NamedTuple):
    """A model as Python functions have it."""

    start: Name
    actions: ActionsOf
    outcomes: OutcomesOf
    is_goal: Callable[[Any], bool]

    @classmethod
    def of(cls, start: Any, *functions: Any) -> Functions:
        """The four as they are given: one by one, or the last three as methods of the first, which
        has the start as an attribute or a method."""
        if not any(functions):
            missing = [name for name in cls._fields if not hasattr(start, name)]
            if missing:
                raise OptionError(f"{kind_of(start)} alone has no {', '.join(missing)}; {USE}")
            first = start.start() if callable(start.start) else start.start
            return cls(first, start.actions, start.outcomes, start.is_goal)
        for name, function in zip(cls._fields[1:], functions):
            if not callable(function):
                raise OptionError(f"{name} must be a function, not {function!r}; {USE}")
        return cls(start, *functions)


USE = "give start, actions, outcomes and is_goal, or one object that has them"


def explore(model: Functions, limit: int, progress: Progress | None, sign: int = 1) -> ModelArrays:
    """All states that can be reached, numbered as they are found; `sign` is -1 for gains."""
    numbers = Numbering({})
    found: list[Any] = [_hashable(model.start, "the start")]
    numbers.states[model.start] = 0
    asking: tuple[Any, ...] = ()
    try:
        for position, state in enumerate(found):
            if progress is not None and position % PAUSE == 0:
                progress(position, position / len(found))
            asking = ("is_goal", state)
            if model.is_goal(state):
                numbers.goals[state] = None
                continue
            asking = ("actions", state)
            actions = list(model.actions(state))
            if not actions:
                raise ModelError(f"actions({state!r}) gives none, and the state is not a goal")
            for action in actions:
                asking = ("outcomes", state, action)
                rows = list(model.outcomes(state, action))
                asking = ()
                _add(numbers, found, state, action, rows, sign)
            if len(found) > limit:
                raise ModelError(_beyond(found, limit, state))
    except Exception as error:
        if asking and not isinstance(error, ModelError):
            error.add_note(f"in {asking[0]}({', '.join(map(repr, asking[1:]))})")
        raise
    if not numbers.goals:
        raise ModelError(
            f"is_goal is true for none of the states that can be reached, {len(found)} in all"
        )
    return numbers.arrays(model.start)


def _add(
    numbers: Numbering, found: list[Any], state: Name, action: Any, rows: list[Any], sign: int
) -> None:
    """Take the outcomes of a choice, and their states where they are new; refuse the first row that
    is no outcome of names and numbers."""
    add, known = numbers.add, numbers.states
    try:
        for probability, target, cost in rows:
            add(state, action, target, probability, cost if sign > 0 else -cost)
            if len(known) > len(found):
                found.append(target)
    except (TypeError, ValueError):
        _hashable(action, f"an action of {state!r}")
        for row in rows:
            if not isinstance(row, (tuple, list)) or len(row) != 3:
                what = f"gives {row!r}; expected (probability, next state, cost)"
                raise ModelError(f"outcomes({state!r}, {action!r}) {what}") from None
            _hashable(row[1], f"a next state of {state!r}, action {action!r},")
            _hashable(row[2], f"a cost of {state!r}, action {action!r},")
        raise


def _hashable(value: Any, what: str) -> Name:
    try:
        hash(value)
    except TypeError:
        remedy = "use a tuple, a named tuple or a frozen dataclass"
        raise ModelError(f"{what} is {value!r}, which cannot be a name: {remedy}") from None
    name: Name = value
    return name


def _beyond(found: list[Any], limit: int, state: Name) -> str:
    """What to say of too many states: how many, where, and what in them takes ever new values."""
    wanted = _parts(found[-1]).keys()
    same = [parts for each in found if (parts := _parts(each)).keys() == wanted]
    values = {part: len({parts[part] for parts in same}) for part in wanted}
    most = max(values, key=values.__getitem__, default="")
    grown = f"; {most} alone takes {values[most]} values" if most else ""
    location = f"{len(found)} were found up to those that {state!r} leads to"
    return f"more than {limit} states (limit=): {location}, the last is {found[-1]!r}{grown}"


def _parts(state: Any) -> dict[str, Any]:
    """The parts of a state by name, or by position."""
    positions = enumerate(state) if isinstance(state, tuple) else ()
    return named_parts(state) or {f"part {position}": part for position, part in positions}
