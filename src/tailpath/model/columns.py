"""Which column of a table holds what, by its name, for tables in memory and in files;
`docs/formats.md` has the table. Without a column of actions, each is called like the state it leads
to, and surely leads there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from shlex import quote
from types import MappingProxyType
from typing import Any

from tailpath.errors import ModelError, OptionError
from tailpath.texts import did_you_mean

#: What the columns are called, each by its own name first; costs that are rewards have the other
#: sign. The table of `docs/formats.md` is made of it.
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
#: Where an outcome begins and where it leads.
ENDS = ("state", "next_state")
#: One of them says what an outcome costs.
COST_COLUMNS = ("cost", "reward", "times")
#: The columns that may hold probabilities, in the order in which a model with intervals looks for
#: them.
INTERVALS = (("low", "high"), ("count",), ("probability",))

#: No column is chosen.
NONE: Mapping[str, Any] = MappingProxyType({})


def columns_called(
    names: Iterable[Any],
    chosen: Mapping[str, Any] = NONE,
    intervals: bool = False,
    cells: Callable[[list[Any]], Mapping[Any, Iterable[Any]]] = lambda names: {},
) -> dict[str, Any]:
    """Which of the names is which column: `{column: name}`, as `chosen` or by their words.

    Of two names for one column, or none for one that must be there, refuses. Of several columns
    of probabilities, those with `intervals` are taken if these are asked for, else the
    probability. `cells` gives the different cells of columns, for what a refusal proposes.
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
                f"the columns {listed(present)} could all be the {column};"
                f" say which {_how({column: present[0]})}"
            )
        found[column] = present[0]
    unused = [name for name in names if name not in found.values()]
    if len(names) == 1 and (marks := [mark for mark in ";\t|" if mark in str(names[0])]):
        raise ModelError(f"the columns are separated by {marks[0]!r}, not by commas")
    costs = [column for column in COST_COLUMNS if column in found]
    if len(costs) > 1:
        raise ModelError(
            f"one column must be the cost, and {listed(found[column] for column in costs)} could"
            f" all be; say which {_how({'cost': found[costs[0]]})}"
        )
    needed = ["state", "next_state", *(() if costs else ("cost",))]
    optional = [column for column in ("action", "probability") if column not in found]
    if _ways_of_probability(found, intervals):
        needed.insert(1, "action")
        optional = []
    missing = [column for column in needed if column not in found]
    if missing:
        why = ", which probabilities need" if "action" in missing else ""
        ends = [found[column] for column in ENDS if column in found]
        proposal = _proposed(missing, optional, found, cells([*unused, *ends]))
        unlike = [column for column in missing if proposal and column not in proposal]
        none = f"; no column looks like the {' or the '.join(unlike)}" if unlike else ""
        raise ModelError(
            f"no column is the {' or the '.join(missing)}{why} (docs/formats.md lists what they may"
            f" be called); there are {listed(names)}; say which"
            f" {_how(proposal or dict.fromkeys(missing, 'NAME'))}{none}"
        )
    return {column: found[column] for column in WORDS if column in found}


def _ways_of_probability(found: dict[str, Any], intervals: bool) -> tuple[str, ...]:
    """The columns that hold probabilities; others that could are taken out of those found."""
    ways = INTERVALS if intervals else INTERVALS[::-1]
    known = next((way for way in ways if all(column in found for column in way)), ())
    for column in {column for way in INTERVALS for column in way} - set(known):
        found.pop(column, None)
    if not intervals and known and known != ("probability",):
        raise ModelError(
            f"the table has {' and '.join(known)} for probabilities; read it with"
            " IntervalSSP.from_table"
        )
    if intervals and "times" in found and known != ("probability",):
        raise ModelError(
            "a table with intervals or counts needs a column of costs; times need known"
            " probabilities"
        )
    return known


def _proposed(
    missing: list[str],
    optional: list[str],
    found: Mapping[str, Any],
    cells: Mapping[Any, Iterable[Any]],
) -> dict[str, Any]:
    """A column for each that is missing, by its cells, as far as one is like it: the two with
    states share most of their names, probabilities lie between 0 and 1, and costs differ most.
    Those that a table may do without are proposed if all of them are there.
    """
    different = {name: set(map(str, some)) for name, some in cells.items()}
    known = [found.get(column) for column in ENDS]
    numbers = {name: values for name, some in different.items() if (values := _all_numbers(some))}
    texts = [name for name in different if name not in numbers and name not in known]
    likely = _likely_ends(
        known, texts if len(texts) >= known.count(None) else [*different], different
    )
    if "action" in (*missing, *optional):
        likely |= zip(["action"], (name for name in texts if name not in likely.values()))
    rest = [name for name in numbers if name not in (*likely.values(), *known)]
    if "probability" in optional and ("action" in likely or "action" not in optional):
        shares = (n for n in rest if 0 <= min(numbers[n]) <= max(numbers[n]) <= 1)
        likely |= zip(["probability"], shares)
    costs = [name for name in reversed(rest) if name not in likely.values()]
    likely |= zip(["cost"], sorted(costs, key=lambda name: -len(different[name])))
    wanted = {*missing, *(optional if likely.keys() >= set(optional) else ())}
    return {column: likely[column] for column in WORDS if column in wanted and column in likely}


def _likely_ends(
    known: list[Any], free: list[Any], different: Mapping[Any, set[str]]
) -> dict[str, Any]:
    """The columns of states and of next states, where one is known or both are among some. They
    have names in common, unless all rows begin in one state.
    """
    usual = (free[0], free[min(2, len(free) - 1)]) if free else ()
    firsts, seconds = ([name] if name is not None else free for name in known)
    pairs = [(a, b) for a in firsts for b in seconds if a != b]

    def likeness(two: tuple[Any, Any]) -> tuple[int, bool]:
        return len(different.get(two[0], set()) & different.get(two[1], set())), two == usual

    if not pairs:
        return {}
    best = max(pairs, key=likeness)
    alike = likeness(best)[0] > 0 or len(different.get(best[0], ())) == 1
    return dict(zip(ENDS, best if alike else best[:1]))


def _all_numbers(cells: Iterable[Any]) -> list[float]:
    """The cells of a column, if all are numbers, as people write them; else none."""
    try:
        texts = [str(cell).strip().replace(",", ".") for cell in cells]
        return [float(text.rstrip("% ")) / (100 if "%" in text else 1) for text in texts]
    except ValueError:
        return []


def _how(chosen: Mapping[str, Any]) -> str:
    """How to say which columns are meant, in Python and on the command line."""
    flags = " ".join(f"--column {quote(f'{column}={name}')}" for column, name in chosen.items())
    return f"(columns={dict(chosen)!r}, {flags})"


def _chosen(column: str, name: Any, names: list[Any]) -> Any:
    if column not in WORDS:
        raise OptionError(
            f"a table has no column {column!r} to be named; there are {listed(WORDS)}"
        )
    if isinstance(name, (list, tuple)) or (name not in names and _several(name, names)):
        raise OptionError(
            f"one column is the {column}: for two costs add a column with their weighted sum,"
            " minutes + 0.2 * toll, say; or compare plans for several weights (docs/messages.md)"
        )
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are {listed(names)}"
        raise ModelError(f"the table has no column {name!r}, which is to be the {column}{hint}")
    return name


def _several(name: Any, names: list[Any]) -> bool:
    """Whether a text lists columns, with a comma or a plus between two."""
    parts = str(name).replace("+", ",").split(",")
    return len(parts) > 1 and all(part.strip() in names for part in parts)


def plain_name(name: Any) -> str:
    return str(name).strip().lower().replace(" ", "_")


def listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))


def has_intervals(names: Iterable[Any], chosen: Mapping[str, Any] = NONE) -> bool:
    """Whether columns of these names hold intervals or counts, and no probabilities besides."""
    plain = {*map(plain_name, names)}

    def there(column: str) -> bool:
        return column in chosen or any(word in plain for word in WORDS[column])

    known = [all(map(there, ways)) for ways in INTERVALS]
    return any(known[:2]) and not known[2]
