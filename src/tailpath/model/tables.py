"""Tables with one row per outcome, as pandas, polars, pyarrow or a dictionary of columns hold them,
and graphs with costs on their edges: rows of names for `SSP.from_outcomes`.

`columns.py` says which column is what. Where a table does not say where runs begin and end, its
rows do; readers of files ask the same functions. What was assumed is among the notes of the model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError, OptionError, kind_of
from tailpath.graph import Array, BoolArray
from tailpath.model.columns import NONE, WORDS, columns_called, listed
from tailpath.model.durations import shares_of_law
from tailpath.texts import count, did_you_mean

#: What is noted where gains were given: which way round costs are.
GAINS = "costs are minus the rewards"


class OutcomeRows(NamedTuple):
    """What `SSP.from_outcomes` takes; or, with pairs or counts for probabilities, `IntervalSSP`."""

    rows: list[tuple[Any, Any, Any, Any, Any]]
    start: Any
    goals: Sequence[Any]
    notes: tuple[str, ...]
    counted: bool = False


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
    names = column_names(frame)
    called = columns_called(names, chosen, intervals)
    columns = _columns_of(frame, called)
    counted = intervals and not {"low", "probability"} & columns.keys()
    rewards = rewards or "reward" in columns
    columns = _completed(columns, rewards)
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
    found = _until_goals(rows, columns, start, goals)
    return found._replace(notes=(*notes, *found.notes), counted=counted)


def _until_goals(
    rows: list[Any], columns: Mapping[str, list[Any]], start: Any, goals: Any
) -> OutcomeRows:
    """The rows that leave no goal, with the start and the goals as they are given, or found."""
    number: dict[Any, int] = {}
    for row in rows:
        number.setdefault(row[0], len(number))
        number.setdefault(row[2], len(number))
    states = list(number)
    state, target = (np.array([number[row[k]] for row in rows]) for k in (0, 2))
    paid = np.array([not _is_zero(row[4]) for row in rows])
    given = None if goals is None else _given_goals(goals, number)
    wanted = None if given is None else [number[goal] for goal in given]
    # A start that is no state is refused with the rows.
    begin = None if start is None else number.get(start, 0)
    ends = start_and_goals(state, target, paid, states, begin, wanted, columns)
    goals = list(compress(states, ends.is_goal)) if given is None else given
    start = states[ends.start] if start is None else start
    return OutcomeRows(list(compress(rows, ends.mask)), start, goals, ends.notes)


def _is_zero(cost: Any) -> bool:
    try:
        return bool(cost == 0)
    except (TypeError, ValueError):  # such as NA of pandas, which the model will refuse by name
        return False


def _columns_of(frame: Any, called: Mapping[str, Any]) -> dict[str, list[Any]]:
    columns = {column: _values(frame, name) for column, name in called.items()}
    n_rows = len(columns["state"])
    if any(len(values) != n_rows for values in columns.values()):
        lengths = (f"{called[column]} {len(values)}" for column, values in columns.items())
        raise ModelError(f"the columns differ in length: {listed(lengths)}")
    if n_rows == 0:
        raise ModelError("the table has no rows")
    return columns


def _completed(columns: dict[str, list[Any]], rewards: bool) -> dict[str, list[Any]]:
    """With a probability, an action and a cost in every row, whichever the table has of these."""
    if "low" in columns:
        columns["probability"] = list(zip(columns["low"], columns["high"]))
    elif "count" in columns:
        columns["probability"] = columns["count"]
    columns.setdefault("probability", [1] * len(columns["state"]))
    columns.setdefault("action", columns["next_state"])
    if "reward" in columns:
        columns["cost"] = columns["reward"]
    if "times" in columns:
        columns = _row_per_time(columns)
    if rewards:
        columns["cost"] = [-value for value in columns["cost"]]
    return columns


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


def is_graph(source: Any) -> bool:
    return hasattr(source, "edges") and hasattr(source, "is_directed")


def column_names(frame: Any) -> list[Any]:
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


# ---------------------------------------------------------------------- where runs begin and end


class StartAndGoals(NamedTuple):
    """Where runs begin and end: the goals, the number of the start, the rows that leave no goal, as
    a `mask`, the states that these name, and what was assumed.
    """

    is_goal: BoolArray
    start: int
    mask: BoolArray
    named: BoolArray
    notes: tuple[str, ...]


def start_and_goals(
    state: Array,
    target: Array,
    paid: BoolArray,
    states: Sequence[Any],
    start: int | None,
    goals: Sequence[int] | None,
    columns: Mapping[str, Sequence[Any]],
    possible: Any = True,
) -> StartAndGoals:
    """Where the runs of a table begin and end: as given, else as the columns `start` and `goal`
    mark it, else as the rows say.

    Rows are given by the numbers of states, and by whether they cost anything (`paid`). Runs end at
    goals, and behind these there may be states that no other row names. A loop at a goal that costs
    nothing, and what is not `possible`, is not worth a note.
    """
    is_goal, notes = np.zeros(len(states), dtype=np.bool_), []
    if goals is not None:
        is_goal[list(goals)] = True
    elif "goal" in columns:
        is_goal[target[list(map(bool, columns["goal"]))]] = True
        if not is_goal.any():
            raise ModelError("the column goal marks no row")
    else:
        is_goal, assumed = _goals_assumed(state, target, paid, len(states))
        notes.append(f"{assumed} ({is_goal.sum()} of them)")
    if start is None and "start" in columns:
        marked = np.unique(state[list(map(bool, columns["start"]))])
        if len(marked) != 1:
            raise ModelError(
                f"the column start marks {len(marked)} states; exactly one must be the start"
            )
        start = int(marked[0])
    elif start is None:
        start = int(state[0])
        notes.append(f"the start is {states[start]!r}, the state of the first row")
    mask, named = ~is_goal[state], is_goal.copy()
    named[state[mask]] = True
    named[target[mask]] = True
    n_rows = int(np.count_nonzero(~mask & possible & ((target != state) | paid)))
    n_states = int(np.count_nonzero(~named))
    behind = f", and so {_are(n_states)} {count(n_states, 'state')} behind them" if n_states else ""
    if n_rows:
        notes.append(
            f"runs end at goals: {count(n_rows, 'row')} that would go on from there"
            f" {_are(n_rows)} left out{behind}"
        )
    named[start] = True
    return StartAndGoals(is_goal, start, mask, named, tuple(notes))


def _goals_assumed(
    state: Array, target: Array, paid: BoolArray, n_states: int
) -> tuple[BoolArray, str]:
    for leaves, what in (
        (np.ones(len(state), dtype=np.bool_), "states without rows are the goals"),
        (
            (target != state) | paid,
            "states that lead only to themselves at no cost are the goals",
        ),
    ):
        is_goal = np.ones(n_states, dtype=np.bool_)
        is_goal[state[leaves]] = False
        if is_goal.any():
            return is_goal, what
    raise ModelError(
        "no goal: every state has rows, and none leads only to itself at no cost; give goals="
    )


def _are(amount: int) -> str:
    return "is" if amount == 1 else "are"


def _given_goals(goals: Any, known: Collection[Any]) -> list[Any]:
    single = isinstance(goals, str) or not isinstance(goals, Iterable)
    given = [goals] if single else list(goals)
    for goal in given:
        if goal not in known:
            raise ModelError(
                f"the table has no state {goal!r}, which is to be a goal{did_you_mean(goal, known)}"
            )
    return given
