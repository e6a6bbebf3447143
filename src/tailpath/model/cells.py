"""The cells of tables, in memory and in files: names, numbers and marks. Each different cell of a
column is parsed once, and all invalid ones are reported together, by row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError, TailpathError
from tailpath.graph import Array, BoolArray, FloatArray, IntArray
from tailpath.model.cost_units import as_fraction, common_unit
from tailpath.model.durations import shares_of_law
from tailpath.model.outcomes import Name

#: Faults that are listed one by one.
MOST_FAULTS = 5
_SHARES = ("probability", "low", "high")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*%?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+")


class Categorical(NamedTuple):
    """A column of cells as in pandas: the code of each, (n,), and the different cells."""

    codes: Array
    categories: list[Any]

    @classmethod
    def from_cells(cls, cells: Sequence[Any]) -> Categorical:
        known = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
        return cls(np.fromiter(map(known.__getitem__, cells), np.int32, len(cells)), list(known))

    def map(self, parse: Callable[[list[str]], Array]) -> Array:
        """The cells, (n,), parsed without blanks around them; equal ones are parsed once."""
        return parse([text.strip() for text in self.categories])[self.codes]


def as_they_appear(number: Array, count: int) -> IntArray:
    """The numbers from 0 .. count - 1 that are in a column, in the order of first appearance."""
    first = np.full(count, len(number), dtype=np.int64)
    # Of equal ones, the last assignment stays.
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    order = np.argsort(first, kind="stable")
    return order[: np.count_nonzero(first < len(number))]


class OutcomeTable:
    """A table in memory; tables in files override what differs. `names` are those of columns, which
    may be called anything unless they are `fixed`.
    """

    names: Sequence[Any] = ()
    fixed: Sequence[str] = ()
    noun, title = "columns", "the table"
    #: States that are numbered before and after those of its rows.
    first: Sequence[Name] = ()
    last: Sequence[Name] = ()
    #: Whether rows of goals must stay there at no cost; if not, they are left out, with a note.
    strict = False
    is_file = False
    error: type[TailpathError] = ModelError
    #: The place of the names of columns, at the beginning of a message.
    header = ""
    #: Whether a comma in a number can only be a decimal one.
    decimal_commas = False

    def columns(self, called: Mapping[str, Any], faults: Faults) -> dict[str, Categorical]:
        """The cells of the columns with these names."""
        raise NotImplementedError

    def place(self, row: int) -> str:
        """The place of a row, at the beginning of a message."""
        return self.row(row)

    def row(self, row: int) -> str:
        """The place of a row in short, for all rows but the first."""
        return f"row {row}"

    def name(self, cell: Any) -> Name:
        try:
            hash(cell)
            missing = cell is None or bool(cell != cell)
        except TypeError:  # a list, or NA of pandas
            missing = True
        if missing:
            raise ModelError(f"{cell!r} cannot be a name")
        name: Name = cell
        return name

    def numbered(
        self, cells: Sequence[Any], place: Callable[[int], str]
    ) -> tuple[Sequence[Name], list[int]]:
        """The names of cells, in the order of first appearance, and the number of each cell's name;
        `place` says where a cell is.
        """
        index: dict[Name, int] = {}
        numbers = [index.setdefault(self.name(cell), len(index)) for cell in cells]
        return tuple(index), numbers

    def number(self, cell: Any) -> float:
        try:
            exact = as_fraction(cell.strip() if isinstance(cell, str) else cell)
            return float(exact)
        except (TypeError, ValueError, OverflowError, ZeroDivisionError, AttributeError):
            raise ModelError(f"{cell!r} is not a finite number") from None

    def numbers(self, cells: Sequence[Any]) -> FloatArray | None:
        """All at once, if all of them are plain numbers."""
        if not set(map(type, cells)) <= {int, float}:
            return None
        with np.errstate(over="ignore"):
            found = np.array(cells, dtype=np.float64)
        return found if np.isfinite(found).all() else None

    def truth(self, cell: Any) -> bool:
        return bool(cell)

    def known(self, given: Any) -> Iterable[Any]:
        """The names that a state given by the caller may stand for."""
        return (given,)


class Faults:
    """The faults of a table: rows by message."""

    def __init__(self, table: OutcomeTable) -> None:
        self.table = table
        self.found: dict[str, list[int]] = {}
        self.named: set[str] = set()
        self.uncounted = 0  # further faults, without a message

    def add(self, rows: Array, message: str, *, named: bool = False) -> None:
        """Add a fault of some rows; a message that is `named` names the state."""
        self.found.setdefault(message, []).extend(rows.tolist())
        if named:
            self.named.add(message)

    def refuse(self) -> None:
        """Raise an error for all faults: the first with its place, others with their rows."""
        table, lines = self.table, list[str]()
        found = sorted((sorted(set(rows)), message) for message, rows in self.found.items())
        for (first, *others), message in found[:MOST_FAULTS]:
            where = f"{table.row(first)}: " if lines else f"{table.place(first)}: "
            where = "" if table.strict and message in self.named else where
            also = ", ".join(map(table.row, others[:3])) + (", .." if len(others) > 3 else "")
            lines.append(f"{where}{message}" + (f" (and {also})" if also else ""))
        more = len(found[MOST_FAULTS:]) + self.uncounted
        if more:
            lines.append(f"and {more} more")
        if lines:
            raise table.error("; ".join(lines))

    def parsed(self, column: Categorical, parse: Callable[[Any], Any], what: str = "") -> list[Any]:
        """Each different cell of a column, parsed; None if it is invalid."""
        found: list[Any] = [None] * len(column.categories)
        for code, cell in enumerate(column.categories):
            try:
                found[code] = parse(cell)
            except TailpathError as error:
                self.add(np.flatnonzero(column.codes == code), f"{str(error).lstrip(': ')}{what}")
        return found


class Cells(NamedTuple):
    """The numbers and marks in the columns of a table."""

    table: OutcomeTable
    faults: Faults
    columns: Mapping[str, Categorical]
    called: Mapping[str, Any]

    def numbers(self, what: str) -> FloatArray:
        return np.asarray(self._values(what)[self.columns[what].codes])

    def _values(self, what: str) -> FloatArray:
        """The number of each different cell; shares may be percentages."""
        table = self.table
        column = self.columns[what]
        cells = _with_points(column.categories, table.decimal_commas)
        found = table.numbers(cells)
        if found is not None:
            return found

        def number(cell: Any) -> float:
            text = cell.strip() if isinstance(cell, str) else ""
            if what in _SHARES and text.endswith("%"):
                return float(as_fraction(table.number(text[:-1].strip())) / 100)
            return table.number(cell)

        said = f" (column {self.called[what]})"
        values = self.faults.parsed(column._replace(categories=cells), number, said)
        return np.array([math.nan if value is None else value for value in values])

    def amounts(self, what: str) -> tuple[FloatArray, Fraction | None]:
        """Costs or gains, and their unit if it does not follow from the floats alone."""
        column, values = self.columns[what], self._values(what)
        exact = {}
        for cell, value in zip(column.categories, values.tolist()):
            if type(cell) is not float and value == value and not _is_plain(cell):
                exact[value] = as_fraction(cell.strip() if isinstance(cell, str) else cell)
        unit = None
        if exact or not self.table.is_file:
            used = values[np.unique(column.codes)].tolist()
            unit = common_unit(exact.get(value, value) for value in used if math.isfinite(value))
        return np.asarray(values[column.codes]), unit

    def truths(self, what: str) -> BoolArray:
        column = self.columns[what]

        def truth(cell: Any) -> bool:
            try:
                return self.table.truth(cell)
            except TailpathError as error:
                raise ModelError(f"{what}: {error}") from None

        marked = self.faults.parsed(column, truth)
        return np.array([bool(mark) for mark in marked])[column.codes]

    def times(self) -> tuple[IntArray, FloatArray, FloatArray, Fraction | None]:
        """For each different time of each row: the row, the share of the time, and the time; and
        the unit of all times.
        """
        column = self.columns["times"]
        laws = []
        for law in self.faults.parsed(column, shares_of_law):
            laws.append(list((law or {}).items()))
        self.faults.refuse()
        codes = column.codes.tolist()
        row = np.repeat(np.arange(len(codes)), [len(laws[code]) for code in codes])
        pairs = [pair for code in codes for pair in laws[code]]
        time, share = np.array([tuple(map(float, pair)) for pair in pairs]).reshape(-1, 2).T
        return row, share, time, common_unit({time for law in laws for time, _ in law})


def _is_plain(cell: Any) -> bool:
    """Whether a float represents a number as it is written, as an integer or a decimal."""
    if isinstance(cell, str):
        return "/" not in cell
    return type(cell) is int and abs(cell) <= 2**53


def _with_points(cells: list[Any], sure: bool) -> list[Any]:
    """Cells with points for decimal commas, if a comma can only be one (`sure`), or if not all of
    the column could separate thousands.
    """
    commas = [cell for cell in cells if isinstance(cell, str) and "," in cell]
    if not commas or any(isinstance(cell, str) and "." in cell for cell in cells):
        return cells
    if not sure and all(_THOUSANDS.fullmatch(cell.strip()) for cell in commas):
        return cells
    decimal = {cell for cell in commas if _DECIMAL_COMMA.fullmatch(cell.strip())}
    return [
        cell.replace(",", ".") if isinstance(cell, str) and cell in decimal else cell
        for cell in cells
    ]
