"""Models given by functions: what can be done in a state, and where that leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tailpath.errors import ModelError, OptionError, kind_of
from tailpath.graph import members
from tailpath.model.outcomes import Name

ActionsOf = Callable[[Any], Iterable[Name]]
OutcomesOf = Callable[[Any, Any], Iterable[tuple[Any, Name, Any]]]
#: An action with its outcomes `(probability, next state, cost)`.
Row = tuple[Name, list[tuple[Any, Name, Any]]]
BoundOf = Callable[[Any], Any]
NAMES = ("start", "actions", "outcomes", "is_goal")
BOUNDS = ("heuristic", "least", "upper", "surely")
USE = "give start, actions, outcomes and is_goal, or one object that has them"


@dataclass(frozen=True, eq=False, repr=False)
class ImplicitSSP:
    """A model given by functions, whose states need not be listed: there may be 10^18 of them.

    `solve_cvar_lazy` looks only at the states that decide. `SSP.from_functions` lists all of them.

    Parameters
    ----------
    start : hashable
        The state where runs begin.
    actions : callable
        `actions(state)` gives the names of what can be done there.
    outcomes : callable
        `outcomes(state, action)` gives triples `(probability, next state, cost)`.
    is_goal : callable
        `is_goal(state)` is true where runs end.
    heuristic, least, upper, surely : callable, optional
        Bounds on the cost to go of a state, as `solve_cvar_lazy` takes them.

    Raises
    ------
    OptionError
        If a function is not callable.

    Examples
    --------
    >>> walk = tp.ImplicitSSP(3, lambda n: ["toss"],
    ...                       lambda n, action: [(0.5, n, 1), (0.5, n - 1, 1)], lambda n: n == 0)
    >>> tp.SSP.from_functions(walk)
    <SSP 4 states, 3 choices, 6 outcomes, start 3>
    """

    start: Name
    actions: ActionsOf
    outcomes: OutcomesOf
    is_goal: Callable[[Any], bool]
    heuristic: BoundOf | None = None
    least: BoundOf | None = None
    upper: BoundOf | None = None
    surely: BoundOf | None = None

    def __post_init__(self) -> None:
        hashable(self.start, "the start")
        for name in (*NAMES[1:], *BOUNDS):
            function = getattr(self, name)
            if not callable(function) and not (name in BOUNDS and function is None):
                raise OptionError(f"{name} must be a function, not {function!r}; {USE}")

    def __repr__(self) -> str:
        return f"<ImplicitSSP start {self.start!r}>"


def implicit(start: Any, *functions: Any) -> ImplicitSSP:
    """The four functions as they are given: one by one, or as attributes of the first, whose start
    may be a method; or those of a model that is listed.
    """
    if any(functions):
        return ImplicitSSP(start, *functions)
    if hasattr(start, "state_choices"):
        return _listed(start)
    missing = [name for name in NAMES if not hasattr(start, name)]
    if missing:
        raise OptionError(f"{kind_of(start)} alone has no {', '.join(missing)}; {USE}")
    first = start.start() if callable(start.start) else start.start
    bounds = (getattr(start, name, None) for name in BOUNDS)
    return ImplicitSSP(first, start.actions, start.outcomes, start.is_goal, *bounds)


def rows_of(model: ImplicitSSP, state: Name) -> list[Row] | None:
    """What can be done in a state, as a function says; None at a goal."""
    asking: tuple[Any, ...] = ("is_goal", state)
    try:
        if model.is_goal(state):
            return None
        asking = ("actions", state)
        found: list[Row] = []
        for action in list(model.actions(state)):
            asking = ("outcomes", state, action)
            of_action = [_outcome(row, state, action) for row in model.outcomes(state, action)]
            found.append((action, of_action))
    except Exception as error:
        if not isinstance(error, ModelError):
            error.add_note(f"in {asking[0]}({', '.join(map(repr, asking[1:]))})")
        raise
    if not found:
        raise ModelError(f"actions({state!r}) is empty, and the state is not a goal")
    return found


def _listed(ssp: Any) -> ImplicitSSP:
    states, choice_of = ssp.states, ssp.choice_index

    def actions(state: Name) -> list[Name]:
        return [ssp.choice_name(k) for k in members(ssp.state_choices, ssp.state_index(state))]

    def outcomes(state: Name, action: Name) -> list[tuple[float, Name, float]]:
        edges = members(ssp.choice_outcomes, choice_of(ssp.state_index(state), action))
        columns = ssp.outcome_probability, ssp.outcome_target, ssp.outcome_cost
        each = zip(*(column[edges.start : edges.stop].tolist() for column in columns))
        return [(p, states[target], cost) for p, target, cost in each]

    return ImplicitSSP(
        ssp.start, actions, outcomes, lambda state: bool(ssp.is_goal[ssp.state_index(state)])
    )


def _outcome(row: Any, state: Name, action: Any) -> Any:
    """A triple as it is, if its names are hashable."""
    if not isinstance(row, (tuple, list)) or len(row) != 3:
        what = f"gives {row!r}; expected (probability, next state, cost)"
        raise ModelError(f"outcomes({state!r}, {action!r}) {what}")
    try:
        hash((action, row[1], row[2]))
    except TypeError:
        for what, value in zip(("an action", "a next state", "a cost"), (action, *row[1:])):
            hashable(value, f"{what} in outcomes({state!r}, {action!r})")
    return row


def hashable(value: Any, what: str) -> Name:
    """A name as it is; anything that cannot be one is refused."""
    try:
        hash(value)
    except TypeError:
        remedy = "use a tuple, a named tuple or a frozen dataclass"
        raise ModelError(f"{what} is {value!r}, which is not hashable: {remedy}") from None
    name: Name = value
    return name
