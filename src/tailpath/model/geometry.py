"""Where the states of a model lie on a grid, for pictures. Users give cells by name, since states
are numbered as they first appear.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailpath.errors import ModelError, OptionError
from tailpath.options import check_integer


@dataclass(frozen=True)
class Geometry:
    """The cell of every state, by index. States off the grid have row and column -1."""

    rows: int
    columns: int
    row: tuple[int, ...]
    column: tuple[int, ...]
    kind: tuple[str, ...]

    def of(self, states: Iterable[int]) -> Geometry:
        """The cells of some states, by index; -1 is an end that lies off the grid."""
        cells = [*zip(self.row, self.column, self.kind), (-1, -1, "end")]
        return Geometry(self.rows, self.columns, *zip(*(cells[state] for state in states)))


def geometry_of(given: Any, states: Sequence[Hashable]) -> Geometry | None:
    """The geometry that a user gives for these states: itself, cells by name, or the shape of the
    grid.
    """
    if given is None or isinstance(given, Geometry):
        return given
    if isinstance(given, Mapping):
        return _by_name({state: _cell(state, cell) for state, cell in given.items()}, states)
    sizes = list(given) if isinstance(given, Sequence) else []
    if len(sizes) == 2 and all(type(size) is int and size > 0 for size in sizes):
        rows, columns = sizes
        return _by_name({k: (*divmod(k, columns), "") for k in range(rows * columns)}, states)
    raise ModelError(
        f"the geometry must be {{state: (row, column)}} or (rows, columns), not {given!r}"
    )


def _cell(state: Hashable, given: Any) -> tuple[int, int, str]:
    try:
        row, column, *kind = given
        at = check_integer(row, "a row"), check_integer(column, "a column")
    except (TypeError, ValueError, OptionError):
        raise ModelError(
            f"state {state!r} lies at {given!r}; expected (row, column), counted from 0"
        ) from None
    return *at, str(kind[0]) if kind else ""


def _by_name(cells: Mapping[Any, tuple[int, int, str]], states: Sequence[Hashable]) -> Geometry:
    """Cells without a state of the model count towards the size of the grid."""
    found = [cells.get(state, (-1, -1, "")) for state in states]
    placed: dict[tuple[int, int], Hashable] = {}
    for state, (row, column, _) in zip(states, found):
        if row >= 0 and placed.setdefault((row, column), state) != state:
            raise ModelError(
                f"states {placed[row, column]!r} and {state!r} lie in the same cell, ({row},"
                f" {column})"
            )
    if not placed:
        shown, known = next(iter(cells), None), ", ".join(map(repr, states[:5]))
        raise ModelError(
            f"the geometry places {shown!r} and others, none of which the model has; its states are"
            f" {known}"
        )
    rows = 1 + max(row for row, _, _ in cells.values())
    columns = 1 + max(column for _, column, _ in cells.values())
    return Geometry(rows, columns, *zip(*found))
