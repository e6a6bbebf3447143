"""River: cross by the long safe bridge, or swim and risk the waterfall. `docs/model.md` has the
rules.

In the river the move and the current are independent and added (S moves two rows with 0.16), then
clipped to the grid.
"""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

from tailpath.domains.grids import (
    CERTAIN,
    STEPS,
    Moves,
    grid_model,
    refuse_huge,
    shifted_cells,
    to_one_cell,
)
from tailpath.domains.register import Domain
from tailpath.graph import Array
from tailpath.model.ssp import SSP
from tailpath.options import check_integer

SWIM, CURRENT = Fraction(4, 5), Fraction(1, 5)
#: The cost of N, S, E, W in the river.
RIVER_COST = (2, Fraction(1, 2), 1, 1)


def river(*, rows: int, columns: int) -> SSP:
    """Build a River: cross by the long safe bridge, or swim and risk the waterfall.

    States are named `(row, column)`, counted from 0 at the top left. The start is on the left bank,
    one row above the bottom; the goal is on the right bank, in the bottom row.

    Parameters
    ----------
    rows, columns : int, 2 or more
        The size.

    Returns
    -------
    SSP
        The model.

    Raises
    ------
    OptionError
        If a number is less than 2 or not whole.

    Examples
    --------
    >>> tp.domains.river(rows=3, columns=3).n_states
    9
    """
    rows, columns = check_integer(rows, "rows", 2), check_integer(columns, "columns", 2)
    refuse_huge(rows, columns)
    cells = np.arange(rows * columns)
    start, goal = (rows - 2) * columns, rows * columns - 1
    return grid_model(
        rows,
        columns,
        kinds(rows, columns, cells).tolist(),
        start,
        goal,
        river_moves(rows, columns, cells),
    )


def kinds(rows: int, columns: int, cells: Array) -> Array:
    row, column = np.divmod(cells, columns)
    kind = np.full(len(cells), "river", dtype=object)
    kind[row == rows - 1] = "waterfall"
    kind[row == 0] = "bridge"
    kind[(column == 0) | (column == columns - 1)] = "bank"
    kind[cells == rows * columns - 1] = "goal"
    return kind


def river_moves(rows: int, columns: int, cells: Array) -> list[Moves]:
    """How each of some cells of a River behaves, the goal left out."""
    kind, start = kinds(rows, columns, cells), (rows - 2) * columns
    firm, wet, falls = (
        cells[chosen]
        for chosen in ((kind == "bank") | (kind == "bridge"), kind == "river", kind == "waterfall")
    )
    swims = [[(0, 0), (1, 0), (down, right), (down + 1, right)] for down, right in STEPS]
    slots = [swim * current for swim in (1 - SWIM, SWIM) for current in (1 - CURRENT, CURRENT)]
    return [
        Moves(firm, shifted_cells(rows, columns, [[step] * 4 for step in STEPS]), CERTAIN, [1] * 4),
        Moves(wet, shifted_cells(rows, columns, swims), slots, RIVER_COST),
        Moves(falls, to_one_cell(start), CERTAIN, [1] * 4),
    ]


def _sized(text: str) -> SSP | None:
    size = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    return river(rows=int(size[1]), columns=int(size[2])) if size else None


#: `river:ROWSxCOLUMNS`.
DOMAIN = Domain(
    "river", _sized, "write the size as ROWSxCOLUMNS, e.g. river:30x10", problems=("10x10", "30x10")
)
