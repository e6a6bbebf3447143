"""Models made in parts: every rank makes its own states, and nobody holds them all.

What is random is drawn for each row of a grid from a seed and its number, so that the model does
not depend on how many parts there are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.distributed.part import Part, even_bounds
from tailpath.domains.grids import ACTIONS, Moves, outcomes_between
from tailpath.domains.paper import RIVER_COST, gridworld_moves, river_moves
from tailpath.errors import OptionError
from tailpath.graph import Array, offsets_from_lengths
from tailpath.model.cost_units import as_fraction, common_unit


def gridworld_part(
    rows: int,
    columns: int,
    index: int,
    parts: int,
    *,
    share: float = 0.03,
    obstacle_cost: int = 100,
    seed: int = 1,
) -> Part:
    """A part of a Gridworld with random obstacles; start and goal at the bottom corners.

    Parameters
    ----------
    rows, columns : int
        The size of the grid, all parts together.
    index, parts : int
        Which part, and of how many.
    share : float in [0, 1)
        The share of cells that are obstacles.
    obstacle_cost : int
        As of `domains.gridworld`.
    seed : int
        Another seed gives other obstacles.

    Returns
    -------
    Part
        The part; state `row * columns + column` is a cell.
    """
    bounds = even_bounds(rows * columns, parts)
    first, last = int(bounds[index]), int(bounds[index + 1])
    start, goal = rows * columns - 1, (rows - 1) * columns
    blocked = [
        np.random.default_rng([seed, row]).random(columns) < share
        for row in range(first // columns, -(-last // columns))
    ]
    cells = np.arange(first, last)
    obstacle = np.concatenate([np.zeros(0, dtype=np.bool_), *blocked])
    obstacle = obstacle[first - first // columns * columns :][: len(cells)]
    obstacle &= (cells != start) & (cells != goal)
    floor = cells[~obstacle & (cells != goal)]
    chance, crash = Fraction(19, 20), as_fraction(obstacle_cost)
    made = gridworld_moves(rows, columns, floor, cells[obstacle], goal, chance, crash)
    return _grid_part(bounds, index, made, start, goal, {as_fraction(1), crash})


def river_part(rows: int, columns: int, index: int, parts: int) -> Part:
    """A part of a River; as of `gridworld_part`."""
    bounds = even_bounds(rows * columns, parts)
    made = river_moves(rows, columns, np.arange(bounds[index], bounds[index + 1]))
    costs = {as_fraction(cost) for cost in (1, *RIVER_COST)}
    return _grid_part(bounds, index, made, (rows - 2) * columns, rows * columns - 1, costs)


def _grid_part(
    bounds: Array, index: int, made: Sequence[Moves], start: int, goal: int, costs: set[Fraction]
) -> Part:
    first, last = int(bounds[index]), int(bounds[index + 1])
    length, target, probability, cost = outcomes_between(made, first, last)
    is_goal = np.arange(first, last) == goal
    unit = common_unit(costs)
    assert unit is not None
    return Part(
        bounds=bounds,
        index=index,
        state_choices=offsets_from_lengths(np.where(is_goal, 0, len(ACTIONS))),
        choice_outcomes=offsets_from_lengths(length),
        outcome_target=target,
        outcome_probability=probability,
        outcome_level=np.rint(cost / float(unit)).astype(np.int32),
        choice_action=np.tile(np.arange(len(ACTIONS), dtype=np.int32), int((~is_goal).sum())),
        is_goal=is_goal,
        start=start,
        actions=ACTIONS,
        unit=unit,
    )


def part_called(text: str, index: int, parts: int) -> Part | None:
    """A part of the model that a string names: `gridworld:ROWSxCOLUMNS:SHARE:COST`
    or `river:ROWSxCOLUMNS`; None for other strings."""
    scheme, _, rest = text.partition(":")
    size = re.fullmatch(r"(\d{1,6})x(\d{1,6})((?::[\d.]+){0,2})", rest)
    if scheme not in ("gridworld", "river") or size is None:
        return None
    if min(int(size[1]), int(size[2])) < 2:
        raise OptionError(f"{text}: a grid needs 2 or more rows and columns")
    if scheme == "river":
        return river_part(int(size[1]), int(size[2]), index, parts)
    more = [part for part in size[3].split(":") if part]
    options: dict[str, Any] = {"share": float(more[0])} if more else {}
    options |= {"obstacle_cost": int(float(more[1]))} if len(more) > 1 else {}
    return gridworld_part(int(size[1]), int(size[2]), index, parts, **options)
