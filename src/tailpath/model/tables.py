"""Tables with one row per outcome, as pandas, polars, pyarrow or a dictionary of columns hold them,
and graphs with costs on their edges.

- state, next_state: they must be there
- action: the way is the action: it is called like the state it leads to, and surely leads there
- probability: 1
- low, high: of a model with intervals: the least and the greatest probability, in place of it
- count: of a model with intervals: how often the outcome was seen; without it and without
  probabilities every row is a step seen
- cost: a reward, taken with the other sign, or times: samples `12;13;15;40` or weights `12:30;40:2`
- goal: true where the row leads to a goal; without it, states without rows are the goals
- start: true where the row leaves the start; without it, the first row does

`WORDS` has the other names of each. A column of any other name is named: `columns={"cost":
"minutes"}`. Others are passed over. What was assumed is among the notes of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from types import MappingProxyType
from typing import Any, NamedTuple

from tailpath.errors import ModelError, OptionError, kind_of
from tailpath.model.durations import shares_of_law
from tailpath.texts import count, did_you_mean

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
#: One of them says what an outcome costs.
PRICES = ("cost", "reward", "times")
#: The columns that may hold probabilities, in the order in which a model with intervals looks for
#: them.
INTERVALS = (("low", "high"), ("count",), ("probability",))

#: What is noted where gains were given: which way round costs are.
GAINS = "costs are minus the rewards"
#: No column is chosen.
NONE: Mapping[str, Any] = MappingProxyType({})


class OutcomeRows(NamedTuple):
    """What `SSP.from_outcomes` takes; or, with pairs or counts for probabilities, `IntervalSSP`."""

    rows: list[tuple[Any, Any, Any, Any, Any]]
    start: Any
    goals: Sequence[Any]
    notes: tuple[str, ...]
    counted: bool = False


def columns_called(
    names: Iterable[Any], chosen: Mapping[str, Any] = NONE, intervals: bool = False
) -> dict[str, Any]:
    """Which of the names is which column: `{column: name}`, as `chosen` or by their words.

    Of two names for one column, or none for one that must be there, refuses. Of several columns
    of probabilities, those with `intervals` are taken if these are asked for, else the
    probability.
    """
    names = list(names)
    found = {column: _chosen(column, name, names) for column, name in chosen.items()}
    plain = {_plain(name): name for name in reversed(names) if name not in found.values()}
    priced = any(column in found for column in PRICES)
    for column, words in WORDS.items():
        present = [plain[word] for word in words if word in plain]
        if column in found or not present or (priced and column in PRICES):
            continue
        if len(present) > 1 and words[0] not in plain:
            raise ModelError(
                f"the columns {_listed(present)} could all be the {column};"
                f" say which {_how(column, present)}"
            )
        found[column] = present[0]
    unused = [name for name in names if name not in found.values()]
    if len(names) == 1 and (marks := [mark for mark in ";\t|" if mark in str(names[0])]):
        raise ModelError(f"the columns are separated by {marks[0]!r}, not by commas")
    for column in ("state", "next_state"):
        if column not in found:
            expected = f"expected one of {_listed(WORDS[column])} among {_listed(names)}"
            raise ModelError(
                f"no column is the {column}; {expected}, or say which {_how(column, unused)}"
            )
    if sum(column in found for column in PRICES) != 1:
        expected = _listed(word for column in PRICES for word in WORDS[column])
        raise ModelError(
            "exactly one column must be the cost, the reward or the times, one of"
            f" {expected}; there are {_listed(names)}; or say which {_how('cost', unused)}"
        )
    if _ways_of_probability(found, intervals) and "action" not in found:
        raise ModelError(
            "where there are probabilities a column must be the action, one of"
            f" {_listed(WORDS['action'])}; or say which {_how('action', unused)}"
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
            "a table with intervals or counts has a cost in every row; times are for known"
            " probabilities"
        )
    return known


def _how(column: str, unused: Sequence[Any]) -> str:
    """How to say which column is meant, in Python and on the command line, by an example."""
    # Rows mostly begin with the state and end with the cost.
    name = unused[0 if column in ("state", "action") else -1] if unused else "NAME"
    return f"(columns={{{column!r}: {name!r}}}, --column {quote(f'{column}={name}')})"


def _chosen(column: str, name: Any, names: list[Any]) -> Any:
    """The name of a column that the user chose, if both are there."""
    if column not in WORDS:
        raise OptionError(
            f"a table has no column {column!r} to be named; there are {_listed(WORDS)}"
        )
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are {_listed(names)}"
        raise ModelError(f"the table has no column {name!r}, which is to be the {column}{hint}")
    return name


def _plain(name: Any) -> str:
    """A name as the words for columns are written."""
    return str(name).strip().lower().replace(" ", "_")


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))


def outcomes_of_table(
    frame: Any,
    start: Any,
    goals: Any,
    chosen: Mapping[str, Any] = NONE,
    *,
    intervals: bool = False,
    rewards: bool = False,
) -> OutcomeRows:
    """The outcomes of a table, its start and its goals.

    With `intervals`, pairs or counts for probabilities where it has them, and a count of 1 where it
    has nothing; with `rewards`, gains.
    """
    names = _names(frame)
    called = columns_called(names, chosen, intervals)
    columns = {column: _values(frame, name) for column, name in called.items()}
    count = len(columns["state"])
    if any(len(values) != count for values in columns.values()):
        lengths = (f"{called[column]} {len(values)}" for column, values in columns.items())
        raise ModelError(f"the columns differ in length: {_listed(lengths)}")
    if count == 0:
        raise ModelError("the table has no rows")
    counted = intervals and not {"low", "probability"} & columns.keys()
    if "low" in columns:
        columns["probability"] = list(zip(columns["low"], columns["high"]))
    elif "count" in columns:
        columns["probability"] = columns["count"]
    columns.setdefault("probability", [1] * count)
    columns.setdefault("action", columns["next_state"])
    if "reward" in columns:
        columns["cost"], rewards = columns["reward"], True
    if "times" in columns:
        columns = _row_per_time(columns)
    if rewards:
        columns["cost"] = [-value for value in columns["cost"]]
    wanted = ("state", "action", "next_state", "probability", "cost")
    rows = list(zip(*(columns[column] for column in wanted)))
    notes: list[str] = [GAINS] if rewards else []
    others = [
        str(name)
        for name in names
        if not any(name is known or name == known for known in called.values())
    ]
    if others:
        notes.append(f"columns that were not read: {', '.join(others)}")
    found_goals = _goals(rows, columns.get("goal"), goals, notes)
    ends = set(found_goals)
    remaining = [row for row in rows if row[0] not in ends]
    lost = [row for row in rows if row[0] in ends and not (row[2] == row[0] and row[4] == 0)]
    if lost:
        notes.append(left_out_at_goals(len(lost), len(_named(rows) - _named(remaining) - ends)))
    first = _start(rows, columns.get("start"), start, notes)
    return OutcomeRows(remaining, first, found_goals, tuple(notes), counted)


def _named(rows: Iterable[Sequence[Any]]) -> set[Any]:
    """The states that some rows name."""
    return {row[k] for row in rows for k in (0, 2)}


def left_out_at_goals(rows: int, states: int) -> str:
    """The note about rows that lead out of goals, and states that nothing else leads to."""
    behind = f", and so {_are(states)} {count(states, 'state')} behind them" if states else ""
    return (
        f"runs end at goals: {count(rows, 'row')} that would go on from there"
        f" {_are(rows)} left out{behind}"
    )


def _are(amount: int) -> str:
    return "is" if amount == 1 else "are"


def _row_per_time(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The columns with a row for each different time of each row."""
    rows: dict[str, list[Any]] = {column: [] for column in (*columns, "cost")}
    for row in zip(*columns.values()):
        cells = dict(zip(columns, row))
        for cost, share in times_of(cells).items():
            each = {**cells, "cost": cost, "probability": cells["probability"] * share}
            for column, cell in each.items():
                rows[column].append(cell)
    return rows


def times_of(row: Mapping[str, Any]) -> dict[Any, Any]:
    """What a row with times may cost, `{cost: share}`; an error says which row it is."""
    try:
        return shares_of_law(row["times"])
    except OptionError as error:
        raise ModelError(f"{row['state']!r} to {row['next_state']!r}: {error}") from None


def outcomes_of_graph(
    graph: Any, start: Any, goals: Any, chosen: Mapping[str, Any] = NONE, *, rewards: bool = False
) -> OutcomeRows:
    """The outcomes of a networkx graph: each edge is an action called like its end, unless the
    edges have actions and probabilities.
    """
    edges = list(graph.edges(data=True))
    if not edges:
        raise ModelError("the graph has no edges")
    attributes = columns_called(["state", "next_state", *edges[0][2]], chosen)
    back = [(head, tail, data) for tail, head, data in edges if head != tail]
    table: dict[str, list[Any]] = {column: [] for column in attributes}
    for tail, head, data in edges if graph.is_directed() else edges + back:
        cells = {**data, attributes["state"]: tail, attributes["next_state"]: head}
        for column, name in attributes.items():
            if name not in cells:
                raise ModelError(f"the edge from {tail!r} to {head!r} has no {name}")
            table[column].append(cells[name])
    if start is None or goals is None:
        raise ModelError("a graph does not say where runs begin and end: give start= and goals=")
    found = outcomes_of_table(table, start, goals, rewards=rewards)
    others = dict.fromkeys(
        str(name) for _, _, data in edges for name in data if name not in attributes.values()
    )
    note = f"attributes of edges that were not read: {', '.join(others)}"
    return found._replace(notes=(*found.notes, note)) if others else found


def is_table(source: Any, chosen: Mapping[str, Any] = NONE) -> bool:
    """Whether something is a table of pandas, polars or pyarrow, or a dictionary of columns."""
    if isinstance(source, Mapping):
        if any(name in source for name in chosen.values()):
            return True
        words = (*WORDS["state"], *WORDS["next_state"])
        return any(isinstance(name, str) and name.strip().lower() in words for name in source)
    return hasattr(source, "column_names") or (
        hasattr(source, "columns") and hasattr(source, "shape")
    )


def has_intervals(source: Any, chosen: Mapping[str, Any] = NONE) -> bool:
    """Whether a table, or a list of its columns, has probabilities as intervals or counts, and not
    otherwise.
    """
    if is_graph(source):
        return False
    names = source if isinstance(source, list) else _names(source)
    plain = {*map(_plain, names)}

    def there(column: str) -> bool:
        return column in chosen or any(word in plain for word in WORDS[column])

    known = [all(map(there, ways)) for ways in INTERVALS]
    return any(known[:2]) and not known[2]


def is_graph(source: Any) -> bool:
    """Whether something is a graph of networkx."""
    return hasattr(source, "edges") and hasattr(source, "is_directed")


def _names(frame: Any) -> list[Any]:
    if isinstance(frame, Mapping):
        return list(frame)
    names = getattr(frame, "column_names", None)  # pyarrow, whose columns are arrays
    if names is None:
        names = getattr(frame, "columns", None)
    if names is None:
        raise ModelError(
            f"cannot read {kind_of(frame)} as a table; give a DataFrame or a dictionary of"
            " columns, or rows to SSP.from_outcomes"
        )
    return list(names)


def _values(frame: Any, name: Any) -> list[Any]:
    column = frame[name]
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    if isinstance(column, str) or not isinstance(column, Iterable):
        raise ModelError(
            f"the column {name!r} must be a list with an entry per row, not {column!r}"
        )
    return list(column)


def _goals(
    rows: list[tuple[Any, ...]], marked: list[Any] | None, goals: Any, notes: list[str]
) -> list[Any]:
    if goals is not None:
        single = isinstance(goals, str) or not isinstance(goals, Iterable)
        given = [goals] if single else list(goals)
        known = {name for row in rows for name in (row[0], row[2])}
        for goal in given:
            if goal not in known:
                raise ModelError(
                    f"the table has no state {goal!r}, which is to be a"
                    f" goal{did_you_mean(goal, known)}"
                )
        return given
    if marked is not None:
        return list(dict.fromkeys(row[2] for row, mark in zip(rows, marked) if mark))
    leaving = dict.fromkeys(row[0] for row in rows)
    found = list(dict.fromkeys(row[2] for row in rows if row[2] not in leaving))
    if found:
        notes.append(f"states without rows are the goals ({len(found)} of them)")
        return found
    moving = {row[0] for row in rows if row[2] != row[0] or row[4] != 0}
    found = [state for state in leaving if state not in moving]
    if not found:
        raise ModelError(
            "no goal: every state has rows, and none leads only to itself at no cost; give goals="
        )
    notes.append(
        f"states that lead only to themselves at no cost are the goals ({len(found)} of them)"
    )
    return found


def _start(
    rows: list[tuple[Any, ...]], marked: list[Any] | None, start: Any, notes: list[str]
) -> Any:
    if start is not None:
        return start
    if marked is not None:
        found = list(dict.fromkeys(row[0] for row, mark in zip(rows, marked) if mark))
        if len(found) != 1:
            raise ModelError(
                f"the column start marks {len(found)} states; exactly one must be the start"
            )
        return found[0]
    notes.append(f"the start is {rows[0][0]!r}, the state of the first row")
    return rows[0][0]
