"""Which column of a table holds what, by its name, for tables in memory and in files
(`docs/tables.md`). Without a column of actions, each row is an action named after the state that it
leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from shlex import quote
from types import MappingProxyType
from typing import Any

from tailpath.errors import ModelError, OptionError
from tailpath.texts import did_you_mean

#: The names of each column, its own first; `docs/tables.md` lists them.
WORDS = {
    "state": ("state", "from", "source", "s", "from_state", "idstatefrom"),
    "action": ("action", "a", "choice", "road", "route", "idaction"),
    "next_state": ("next_state", "to", "target", "next", "destination", "to_state", "idstateto"),
    "probability": ("probability", "prob", "p", "chance"),
    "low": ("low", "lower"),
    "high": ("high", "upper"),
    "count": ("count",),
    "cost": (
        *("cost", "time", "duration", "length", "distance", "weight", "c"),
        *("seconds", "minutes", "hours", "price"),
    ),
    "reward": ("reward", "r"),
    "times": ("times", "samples", "durations"),
    "goal": ("goal", "terminated", "done"),
    "start": ("start",),
}
#: One of them has the costs of outcomes.
COST_COLUMNS = ("cost", "reward", "times")
#: The columns that may hold probabilities, in the order in which a model with intervals tries them.
INTERVALS = (("low", "high"), ("count",), ("probability",))

#: No chosen columns.
NONE: Mapping[str, Any] = MappingProxyType({})
#: What the columns that are not found may be, given those that are.
Guess = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def columns_called(
    names: Iterable[Any],
    chosen: Mapping[str, Any],
    intervals: bool,
    guess: Guess,
) -> dict[str, Any]:
    """Which of the names is which column: `{column: name}`, as `chosen` or by their words.

    Raises ModelError if two names fit one column, or none fits a column that is needed; the message
    then proposes what `guess` says. If several columns hold probabilities, those with intervals are
    used if `intervals` is set, otherwise the plain probability.
    """
    names = list(names)
    found = {column: _chosen(column, name, names) for column, name in chosen.items()}
    plain = {plain_name(name): name for name in reversed(names) if name not in found.values()}
    cost_chosen = any(column in found for column in COST_COLUMNS)
    for column, words in WORDS.items():
        present = [plain[word] for word in words if word in plain]
        if column in found or not present or (cost_chosen and column in COST_COLUMNS):
            continue
        if len(present) > 1 and words[0] not in plain:
            raise ModelError(
                f"the columns {listed(present)} could each be the {column}; choose one"
                f" {_how({column: present[0]})}"
            )
        found[column] = present[0]
    if len(names) == 1 and (marks := [mark for mark in ";\t|" if mark in str(names[0])]):
        raise ModelError(f"the columns are separated by {marks[0]!r}, not by commas")
    costs = [column for column in COST_COLUMNS if column in found]
    if len(costs) > 1:
        raise ModelError(
            f"the columns {listed(found[column] for column in costs)} could each be the cost;"
            f" choose one {_how({'cost': found[costs[0]]})}"
        )
    needed = ["state", "next_state", *(() if costs else ("cost",))]
    ways = _ways_of_probability(found, intervals)
    if ways:
        needed.insert(1, "action")
    missing = [column for column in needed if column not in found]
    if missing:
        why = ", which probabilities need" if "action" in missing else ""
        # Columns that are left over may be these; unread, they make one action of several.
        spare = max(len(names) - len(found) - len(missing), 0)
        more = [each for each in ("action", "probability") if each not in found and not ways][
            :spare
        ]
        guesses = guess(found)
        unknown = [each for each in more if each not in guesses]
        hint = f"; {' and '.join(unknown)} may be left out" if unknown else ""
        ask = "by their cells these may be" if guesses else "name yours"
        raise ModelError(
            f"no column for the {' or the '.join(missing)}{why} (docs/tables.md lists the"
            f" accepted names); the columns are {listed(names)}; {ask}"
            f" {_how({each: guesses.get(each, 'NAME') for each in (*missing, *more)})}{hint}"
        )
    return {column: found[column] for column in WORDS if column in found}


def _ways_of_probability(found: dict[str, Any], intervals: bool) -> tuple[str, ...]:
    """The columns that hold probabilities; the other candidates are removed from those found."""
    ways = INTERVALS if intervals else INTERVALS[::-1]
    known = next((way for way in ways if all(column in found for column in way)), ())
    for column in {column for way in INTERVALS for column in way} - set(known):
        found.pop(column, None)
    if not intervals and known and known != ("probability",):
        raise ModelError(
            f"the table gives probabilities as {' and '.join(known)}; read it with"
            " IntervalSSP.from_table"
        )
    if intervals and "times" in found and known != ("probability",):
        raise ModelError(
            "a table with intervals or counts needs a column of costs: samples of times need known"
            " probabilities"
        )
    return known


def _how(chosen: Mapping[str, Any]) -> str:
    """How to choose columns, in Python and on the command line."""
    flags = " ".join(f"--column {quote(f'{column}={name}')}" for column, name in chosen.items())
    return f"(columns={dict(chosen)!r}, {flags})"


def _chosen(column: str, name: Any, names: list[Any]) -> Any:
    if column not in WORDS:
        raise OptionError(f"unknown kind of column {column!r}; the kinds are {listed(WORDS)}")
    if isinstance(name, (list, tuple)) or (name not in names and _several(name, names)):
        raise OptionError(
            f"only one column can be the {column}: for two costs, add a column with their weighted"
            " sum, such as minutes + 0.2 * toll, or compare plans for several weights"
            " (docs/messages.md)"
        )
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are {listed(names)}"
        raise ModelError(f"the table has no column {name!r} to use as the {column}{hint}")
    return name


def _several(name: Any, names: list[Any]) -> bool:
    """Whether a text lists several columns, with commas or pluses between them."""
    parts = str(name).replace("+", ",").split(",")
    return len(parts) > 1 and all(part.strip() in names for part in parts)


def plain_name(name: Any) -> str:
    return str(name).strip().lower().replace(" ", "_")


def listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))


def has_intervals(names: Iterable[Any], chosen: Mapping[str, Any] = NONE) -> bool:
    """Whether columns of these names hold intervals or counts, and none holds probabilities."""
    plain = {*map(plain_name, names)}

    def there(column: str) -> bool:
        return column in chosen or any(word in plain for word in WORDS[column])

    known = [all(map(there, ways)) for ways in INTERVALS]
    return any(known[:2]) and not known[2]
