"""From moves on a grid to the arrays of a model, all cells at once.

Cells are states, named `(row, column)` and counted from 0 at the top left; state index = row * columns + column. The actions of every cell
but the goal are N, S, E, W, in this order. A choice has four *slots*, each a way its move can turn out, with a fixed probability. Slots that
lead to the same cell (two that run into a wall, say) are one outcome; its probability is the exact sum of theirs, rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.model.cost_units import as_fraction, common_unit
from tailpath.model.ragged import offsets_of
from tailpath.model.ssp import SSP, Geometry

ACTIONS = ("N", "S", "E", "W")
#: (rows down, columns right) of each action.
STEPS = ((-1, 0), (1, 0), (0, 1), (0, -1))
SLOTS = 4
CERTAIN = (Fraction(1), Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Moves:
    """How one kind of cell behaves: `target[cell, action, slot]`, the probability of each slot, the cost of each action."""

    cells: NDArray[Any]
    target: NDArray[Any]
    slot_probability: Sequence[Fraction]
    action_cost: Sequence[Any]


def shifted(rows: int, columns: int, cells: NDArray[Any], moves: Sequence[Sequence[tuple[int, int]]]) -> NDArray[Any]:
    """Where each cell gets by `moves[action][slot] = (rows down, columns right)`, clipped to the grid."""
    step = np.array(moves, dtype=np.int64)
    row = np.clip(cells[:, None, None] // columns + step[..., 0], 0, rows - 1)
    column = np.clip(cells[:, None, None] % columns + step[..., 1], 0, columns - 1)
    return row * columns + column


def to_one_cell(cells: NDArray[Any], target: int) -> NDArray[Any]:
    """Every slot of every action leads to one cell."""
    return np.full((len(cells), len(ACTIONS), SLOTS), target, dtype=np.int64)


def grid_model(rows: int, columns: int, kind: Sequence[str], start: int, goal: int, parts: Sequence[Moves]) -> SSP:
    """One model from the moves of all kinds of cells. Every cell but the goal appears in exactly one part."""
    cell = np.concatenate([part.cells for part in parts])
    into_order = np.argsort(cell, kind="stable")
    target = np.concatenate([part.target for part in parts])[into_order].reshape(-1, SLOTS)
    probability = np.concatenate([_merged_probability(part) for part in parts])[into_order].reshape(-1, SLOTS)
    cost = np.concatenate([np.tile([float(c) for c in part.action_cost], (len(part.cells), 1)) for part in parts])[into_order].ravel()
    keep = probability > 0
    n_states, n_choices = rows * columns, len(target)
    is_goal = np.zeros(n_states, dtype=np.bool_)
    is_goal[goal] = True
    choice_of, _ = np.nonzero(keep)
    return SSP(
        state_choices=offsets_of(np.repeat(cell[into_order], len(ACTIONS)), n_states),
        choice_outcomes=offsets_of(choice_of, n_choices),
        outcome_target=target[keep].astype(np.int32),
        outcome_probability=probability[keep],
        outcome_cost=cost[choice_of],
        choice_action=np.tile(np.arange(len(ACTIONS), dtype=np.int32), len(cell)),
        is_goal=is_goal,
        start_index=start,
        states=tuple(product(range(rows), range(columns))),
        actions=ACTIONS,
        exact_unit=common_unit({as_fraction(c) for part in parts if len(part.cells) for c in part.action_cost}),
        geometry=Geometry(
            rows=rows,
            columns=columns,
            row=tuple(np.repeat(np.arange(rows), columns).tolist()),
            column=tuple(np.tile(np.arange(columns), rows).tolist()),
            kind=tuple(kind),
        ),
    )


def _merged_probability(part: Moves) -> NDArray[np.float64]:
    """The probability of each slot, with that of equal targets gathered in the first of them and 0 in the others."""
    # One table entry per set of slots: the sum is exact, so that 0.64 + 0.04 is the float nearest to 0.68.
    of_set = np.array(
        [float(sum((p for slot, p in enumerate(part.slot_probability) if chosen >> slot & 1), Fraction(0))) for chosen in range(1 << SLOTS)]
    )
    merged = np.zeros(part.target.shape, dtype=np.int64)
    taken = np.zeros(part.target.shape, dtype=np.bool_)
    for slot in range(SLOTS):
        same = (part.target == part.target[..., slot : slot + 1]) & ~taken
        merged[..., slot] = (same << np.arange(SLOTS)).sum(axis=-1)
        taken |= same
    return of_set[merged]
