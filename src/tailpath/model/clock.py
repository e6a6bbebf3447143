"""The time of day: models in which the cost of a road depends on when a run is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tailpath.errors import ModelError, OptionError
from tailpath.model.cost_units import as_fraction, exact_number, refused_unless_number
from tailpath.model.durations import plain_number
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress, answering


class At(NamedTuple):
    """A place and the time of day, in the unit of the durations."""

    place: Name
    time: Any


@answering
def clock(
    start: Name,
    actions: Callable[[Any, Any], Iterable[Name]],
    outcomes: Callable[[Any, Any, Any], Iterable[tuple[Any, Name, Any]]],
    is_goal: Callable[[Any], bool],
    *,
    begin: Any = 0,
    until: Any,
    limit: int = 10**6,
    progress: Progress | None = None,
) -> SSP:
    """Build a model from functions of place and time of day, by exploring from `start` at `begin`.

    States are `At(place, time)`, equal to the plain pair; a goal has the name of its place whenever
    it is reached. Costs are durations, and advance the clock. After `until` nothing changes any
    more, and all later times count as that one.

    Parameters
    ----------
    start : hashable
        The place where runs begin.
    actions : callable
        `actions(place, time)` gives the names of what can be done there.
    outcomes : callable
        `outcomes(place, action, time)` gives triples `(probability, next place, duration)`.
    is_goal : callable
        `is_goal(place)` is true where runs end.
    begin : number
        The time at the start, in the unit of the durations.
    until : number, `begin` or more
        The time after which the law no longer changes.
    limit : int, 1 or more
        The most states; more are refused.
    progress : callable, optional
        `progress(explored, share)` is called now and then with the number of states explored and
        their share of those found.

    Returns
    -------
    SSP
        The model.

    Raises
    ------
    ModelError
        If a duration is negative, or the functions do not define a valid SSP.
    OptionError
        If `until` is before `begin`, or one is not a number.

    Examples
    --------
    >>> rush = tp.clock("home", lambda place, time: ["wait", "drive"],
    ...                 lambda place, action, time: [(1, "home", 1)] if action == "wait" else
    ...                                             [(1, "work", 5 - time)],
    ...                 lambda place: place == "work", until=3)
    >>> tp.solve_expected(rush).cost()
    5.0
    """
    first, last = (
        plain_number(exact_number(value, what, signed=True))
        for value, what in ((begin, "begin"), (until, "until"))
    )
    if not first <= last:
        raise OptionError(f"until = {until!r} lies before begin = {begin!r}")

    def ahead(state: At, action: Any) -> Iterator[tuple[Any, Name, Any]]:
        for probability, place, duration in outcomes(state.place, action, state.time):
            location = f"place {state.place!r} at {state.time}, action {action!r}"
            refusal = ModelError(
                f"{location} has the duration {duration!r}; durations must be 0 or more"
            )
            exact = refused_unless_number(duration, refusal)
            if exact < 0:
                raise refusal
            # Exactly: 0.1 and 0.2 hours later it is 0.3.
            later = plain_number(as_fraction(state.time) + exact)
            yield probability, place if is_goal(place) else At(place, min(later, last)), duration

    ssp = SSP.from_functions(
        start if is_goal(start) else At(start, first),
        lambda state: actions(state.place, state.time),
        ahead,
        lambda state: not isinstance(state, At),
        limit=limit,
        progress=progress,
    )
    note = f"states are places from {first} to {last}; later times count as {last}"
    return replace(ssp, notes=(note,))
