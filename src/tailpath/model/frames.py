"""Tables in memory: rows as tuples, frames of pandas, polars or pyarrow, and dictionaries of
columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from tailpath.errors import ModelError, kind_of
from tailpath.model.cells import Categorical, Faults, OutcomeTable
from tailpath.model.columns import NONE, WORDS
from tailpath.model.outcomes import Name, describe_outcome

#: The kinds of the fourth entry of a row, and the columns that it fills.
PROBABILITY, INTERVAL, COUNT = "probability", "(low, high)", "count"
COLUMNS = {PROBABILITY: ("probability",), INTERVAL: ("low", "high"), COUNT: ("count",)}


class Rows(OutcomeTable):
    """Rows `(state, action, next_state, given, cost)`, of which `given` is a probability,
    `(low, high)` or a count, by `kind`. Goals need no rows, and any rows they have must lead to
    themselves at no cost. States are numbered as they first appear, after those in `first`.
    """

    title, strict = "the model", True

    def __init__(
        self,
        rows: Iterable[Any],
        goals: Iterable[Name],
        kind: str = PROBABILITY,
        first: Sequence[Name] = (),
    ) -> None:
        if isinstance(goals, str) or not isinstance(goals, Iterable):
            raise ModelError(f"goals must be a collection of state names; put {goals!r} in a list")
        self.first, self.last = first, list(dict.fromkeys(goals))
        if not self.last:
            raise ModelError("the model has no goals")
        self.rows, self.kind = list(rows), kind
        self.fixed = ("state", "action", "next_state", *COLUMNS[kind], "cost")
        for position, row in enumerate(self.rows):
            try:
                state, action, next_state, _, cost = row
                hash((state, action, next_state, cost))
            except (TypeError, ValueError):
                raise ModelError(
                    f"outcome {position} is {row!r}; expected hashable (state, action, next_state,"
                    f" {kind}, cost)"
                ) from None

    def columns(self, called: Mapping[str, Any], faults: Faults) -> dict[str, Categorical]:
        state, action, target, given, cost = zip(*self.rows) if self.rows else [()] * 5
        shares: Any = [given]
        if self.kind == INTERVAL:
            shares = list(zip(*map(_ends, self.rows))) or [(), ()]
        if self.kind != COUNT:  # the cost of what cannot happen does not matter
            never = [isinstance(share, Number) and not share for share in shares[-1]]
            cost = tuple(0 if free else one for free, one in zip(never, cost))
        cells = (state, action, target, *shares, cost)
        return {name: _of_cells(column) for name, column in zip(called, cells)}

    def row(self, row: int) -> str:
        return describe_outcome(*self.rows[row][:3])

    def name(self, cell: Any) -> Name:
        name: Name = cell
        return name

    def number(self, cell: Any) -> float:
        return cell if isinstance(cell, float) else super().number(cell)


def _ends(row: Any) -> tuple[Any, Any]:
    """The ends of a row's interval, which are one number or two."""
    *outcome, given, _ = row
    try:
        low, high = (given, given) if isinstance(given, str) or np.ndim(given) == 0 else given
    except (TypeError, ValueError):
        raise ModelError(
            f"{describe_outcome(*outcome)} has probability {given!r}; expected a number or a pair"
            " (low, high)"
        ) from None
    return low, high


class Frame(OutcomeTable):
    """A table whose rows have labels, as in a DataFrame, or numbers from 0."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.names = frame, column_names(frame)

    def columns(self, called: Mapping[str, Any], faults: Faults) -> dict[str, Categorical]:
        return {column: self._column(name) for column, name in called.items()}

    def _column(self, name: Any) -> Categorical:
        column = self.frame[name]
        if isinstance(column, str) or not isinstance(column, Iterable):
            raise ModelError(
                f"the column {name!r} must be a list with an entry per row, not {column!r}"
            )
        return _factorised(column)

    def row(self, row: int) -> str:
        labels = getattr(self.frame, "index", None)
        label = row if labels is None or callable(labels) else labels[row]
        return f"row {label}"


def _factorised(column: Any) -> Categorical:
    """The codes and the different cells of a column."""
    try:
        codes, found = column.factorize(use_na_sentinel=False)
        codes, cells = np.asarray(codes), found.tolist()
    except (AttributeError, TypeError):  # not of pandas; or lists of samples
        codes, cells = _of_cells(_listed(column))
    if getattr(column, "dtype", None) == np.float32:  # stands for its shortest decimal
        cells = [float(str(np.float32(cell))) for cell in cells]
    return Categorical(codes, cells)


def _of_cells(cells: Sequence[Any]) -> Categorical:
    try:
        return Categorical.from_cells(cells)
    except TypeError:
        return Categorical(np.arange(len(cells)), list(cells))


def _listed(column: Any) -> list[Any]:
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


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
