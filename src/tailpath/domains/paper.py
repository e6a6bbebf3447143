"""The two domains of the paper; `docs/domains.md` has the rules.

Gridworld: walk to the goal on a floor with obstacles, with a small chance of stepping astray. The
paper does not publish its obstacle cells. The bundled maps have the paper's sizes (rows x columns),
start (bottom right) and goal (bottom left), and obstacles chosen by this project.

River: cross by the long safe bridge, or swim and risk the waterfall. In the river the move and the
current are independent and added (S moves two rows with 0.16), then clipped to the grid.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

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
from tailpath.errors import FormatError, OptionError
from tailpath.model.cost_units import exact_number
from tailpath.model.ssp import SSP
from tailpath.options import check_integer

KIND = {".": "floor", "#": "obstacle", "S": "floor", "G": "goal"}
#: The maps that come with the package, smallest first.
MAPS = {
    "5x5": """
.....
.....
...#.
.....
G.#.S
""",
    "8x9": """
.........
.........
.........
.....#...
....#....
....##...
..#...#..
G.......S
""",
    "14x16": """
................
................
................
................
.........#......
................
....#........#..
....#.....#.....
..........#..#..
.....#...#.#....
.....#...#......
................
.........#......
G...#....##....S
""",
}


def gridworld(map: str, *, success: Any = 0.95, obstacle_cost: Any = 100) -> SSP:
    """Build a Gridworld from a bundled map's name or from the text of a map.

    States are named `(row, column)`, counted from 0 at the top left.

    Parameters
    ----------
    map : str
        `"5x5"`, `"8x9"`, `"14x16"`, or one line per row: `.` floor, `#` obstacle, `S` the start
        (one), `G` the goal (one). Blanks around lines, and empty lines before and after the map, do
        not count.
    success : number in [0, 1]
        The probability of moving as chosen; the rest is shared by the other three directions. A
        step off the grid stays.
    obstacle_cost : number, 0 or more
        The cost of every action in an obstacle, which ends at the goal; any other step costs 1.

    Returns
    -------
    SSP
        The model.

    Raises
    ------
    FormatError
        If the map has a mistake; the text names row and column.
    OptionError
        If a number lies outside its range, or there is no such map.

    Examples
    --------
    >>> tp.domains.gridworld("S.G").n_states
    3
    """
    chance = exact_number(success, "success", signed=True)
    if not 0 <= chance <= 1:
        raise OptionError(f"success must lie in [0, 1], not {success!r}")
    crash = exact_number(obstacle_cost, "obstacle_cost")
    rows = _rows(_bundled(map) if re.fullmatch(r"\s*\d+\s*x\s*\d+\s*", map) else map)
    refuse_huge(len(rows), len(rows[0]))
    cells = "".join(rows)
    start, goal = cells.index("S"), cells.index("G")
    letters = np.array(list(cells))
    floor, obstacles = (
        np.flatnonzero((letters == ".") | (letters == "S")),
        np.flatnonzero(letters == "#"),
    )
    height, width = len(rows), len(rows[0])
    # The chosen direction first, then the other three.
    directions = [[step, *(other for other in STEPS if other != step)] for step in STEPS]
    slots = (chance, *[(1 - chance) / 3] * 3)
    moves = [
        Moves(floor, shifted_cells(height, width, directions), slots, [1] * 4),
        Moves(obstacles, to_one_cell(goal), CERTAIN, [crash] * 4),
    ]
    return grid_model(height, width, [KIND[letter] for letter in cells], start, goal, moves)


def _bundled(name: str) -> str:
    name = re.sub(r"\s", "", name)
    if name not in MAPS:
        raise OptionError(
            f"there is no bundled map {name!r}; the bundled maps are {', '.join(MAPS)}"
        )
    return MAPS[name]


def _rows(text: str) -> list[str]:
    """The rows of a map, checked; rows and columns in messages count from 0 at the top left, as in
    state names.
    """
    rows = [line.strip() for line in text.strip().splitlines()]
    if not rows:
        raise FormatError("the map is empty")
    seen: dict[str, str] = {}
    for r, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise FormatError(f"map row {r} has {len(row)} columns, row 0 has {len(rows[0])}")
        for c, letter in enumerate(row):
            location = f"row {r}, column {c}"
            if letter not in KIND:
                raise FormatError(f"map {location} holds {letter!r}; a cell is one of . # S G")
            if letter in "SG" and letter in seen:
                raise FormatError(
                    f"map {location} holds a second {letter!r}; the first is at {seen[letter]}"
                )
            seen.setdefault(letter, location)
    for letter, what in (("S", "start"), ("G", "goal")):
        if letter not in seen:
            raise FormatError(
                f"the map has no {what}: no cell of its {len(rows)} rows and {len(rows[0])} columns"
                f" holds {letter!r}"
            )
    return rows


def _named(text: str) -> SSP | None:
    return gridworld(text) if re.fullmatch(r"\d+x\d+", text) else None


#: `gridworld:14x16`, a bundled map, or `gridworld:PATH`, the text of any map.
GRIDWORLD = Domain(
    "gridworld",
    _named,
    "neither a bundled map such as 14x16 nor a file with a map",
    from_text=gridworld,
)

# ---------------------------------------------------------------------- River


SWIM, CURRENT = Fraction(4, 5), Fraction(1, 5)
#: The cost of N, S, E, W in the river.
RIVER_COST = (2, Fraction(1, 2), 1, 1)


def river(*, rows: int, columns: int, dead_end: bool = False) -> SSP:
    """Build a River: cross by the long safe bridge, or swim and risk the waterfall.

    States are named `(row, column)`, counted from 0 at the top left. The start is on the left bank,
    one row above the bottom; the goal is on the right bank, in the bottom row.

    Parameters
    ----------
    rows, columns : int, 2 or more
        The size.
    dead_end : bool
        No run leaves the waterfall; `give_up` or `given_arrival` makes the goal certain again.
        Otherwise it leads back to the start, as in the paper.

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
    >>> falls = tp.domains.river(rows=3, columns=3, dead_end=True)
    >>> round(tp.solve_arrival(falls).probability((1, 1)), 4)
    0.9524
    """
    rows, columns = check_integer(rows, "rows", 2), check_integer(columns, "columns", 2)
    refuse_huge(rows, columns)
    start, goal = (rows - 2) * columns, rows * columns - 1
    cells = np.arange(rows * columns)
    row, column = np.divmod(cells, columns)
    kind = np.full(len(cells), "river", dtype=object)
    kind[row == rows - 1] = "waterfall"
    kind[row == 0] = "bridge"
    kind[(column == 0) | (column == columns - 1)] = "bank"
    kind[goal] = "goal"
    firm = cells[(kind == "bank") | (kind == "bridge")]
    wet, falls = cells[kind == "river"], cells[kind == "waterfall"]
    walks = shifted_cells(rows, columns, [[step] * 4 for step in STEPS])
    stays = shifted_cells(rows, columns, [[(0, 0)] * 4] * 4)
    swims = [[(0, 0), (1, 0), (down, right), (down + 1, right)] for down, right in STEPS]
    slots = [swim * current for swim in (1 - SWIM, SWIM) for current in (1 - CURRENT, CURRENT)]
    moves = [
        Moves(firm, walks, CERTAIN, [1] * 4),
        Moves(wet, shifted_cells(rows, columns, swims), slots, RIVER_COST),
        Moves(falls, stays if dead_end else to_one_cell(start), CERTAIN, [1] * 4),
    ]
    return grid_model(rows, columns, kind.tolist(), start, goal, moves)


def _sized(text: str) -> SSP | None:
    size = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    return river(rows=int(size[1]), columns=int(size[2])) if size else None


#: `river:ROWSxCOLUMNS`.
RIVER = Domain("river", _sized, "write the size as ROWSxCOLUMNS, e.g. river:30x10")
