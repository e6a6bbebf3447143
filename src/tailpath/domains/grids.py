"""From moves on a grid to the arrays of a model, many cells at a time.

Cells are states, named `(row, column)` and counted from 0 at the top left; state index = row *
columns + column. The actions of every cell but the goal are N, S, E, W, in this order. A choice has
four *slots*, each a way its move can turn out, with a fixed probability. Slots that lead to the
same cell (two that run into a wall, say) are one outcome; its probability is the exact sum of
theirs, rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product, repeat
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.graph import Array, FloatArray, offsets_from_lengths
from tailpath.model.cost_units import as_fraction, common_unit
from tailpath.model.records import hand_over
from tailpath.model.ssp import SSP, Geometry

ACTIONS = ("N", "S", "E", "W")
#: (rows down, columns right) of each action.
STEPS = ((-1, 0), (1, 0), (0, 1), (0, -1))
SLOTS = 4
CERTAIN = (Fraction(1), Fraction(0), Fraction(0), Fraction(0))
#: Bytes for each cell while a model is built, at most, measured on grids of 10^6 cells.
BYTES_PER_CELL = 1_100

Targets = Callable[[Array], Array]


@dataclass(frozen=True)
class Moves:
    """How one kind of cell behaves: `target(cells)[cell, action, slot]`, the probability of each
    slot, the cost of each action.
    """

    cells: Array
    target: Targets
    slot_probability: Sequence[Fraction]
    action_cost: Sequence[Any]


def shifted_cells(rows: int, columns: int, moves: Sequence[Sequence[tuple[int, int]]]) -> Targets:
    """Where each cell gets by `moves[action][slot] = (rows down, columns right)`, clipped to the
    grid.
    """
    step = np.array(moves, dtype=np.int64)

    def target(cells: Array) -> Array:
        row = np.clip(cells[:, None, None] // columns + step[..., 0], 0, rows - 1)
        column = np.clip(cells[:, None, None] % columns + step[..., 1], 0, columns - 1)
        return np.asarray(row * columns + column)

    return target


def to_one_cell(target: int) -> Targets:
    return lambda cells: np.full((len(cells), len(ACTIONS), SLOTS), target, dtype=np.int64)


def refuse_huge(rows: int, columns: int) -> None:
    """Refuse a grid that would not fit into the memory there is, before anything is built."""
    needed, there = rows * columns * BYTES_PER_CELL, available_bytes()
    if there is not None and needed > there:
        raise OptionError(
            f"a grid of {rows} x {columns} has {rows * columns} states and takes about"
            f" {needed / 2**30:.3g} GiB to build; {there / 2**30:.3g} GiB of memory is available"
        )


def available_bytes() -> int | None:
    """The memory that is still free, on the machine and within the limit of this process, or `None`
    if the system does not say.
    """
    try:
        import resource

        with open("/proc/meminfo", encoding="ascii") as stream:
            free = next(line.split()[1] for line in stream if line.startswith("MemAvailable:"))
        with open("/proc/self/statm", encoding="ascii") as stream:
            taken = int(stream.read().split()[0]) * resource.getpagesize()
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError, StopIteration):
        return None
    there = int(free) * 1024
    return there if limit == resource.RLIM_INFINITY else max(min(there, limit - taken), 0)


def grid_model(
    rows: int,
    columns: int,
    kind: Sequence[str],
    start: int,
    goal: int,
    parts: Sequence[Moves],
) -> SSP:
    """One model from the moves of all kinds of cells. Every cell but the goal appears in exactly
    one part, and each part lists its cells in order.
    """
    n_states = rows * columns
    length, target, probability, cost = map(hand_over, _outcomes(parts))
    is_goal = np.zeros(n_states, dtype=np.bool_)
    is_goal[goal] = True
    return SSP(
        state_choices=offsets_from_lengths(np.where(is_goal, 0, len(ACTIONS))),
        choice_outcomes=offsets_from_lengths(length),
        outcome_target=target,
        outcome_probability=probability,
        outcome_cost=cost,
        choice_action=np.tile(np.arange(len(ACTIONS), dtype=np.int32), n_states - 1),
        is_goal=is_goal,
        start_index=start,
        states=tuple(product(range(rows), range(columns))),
        actions=ACTIONS,
        exact_unit=common_unit(
            {as_fraction(c) for part in parts if len(part.cells) for c in part.action_cost}
        ),
        geometry=Geometry(
            rows=rows,
            columns=columns,
            row=tuple(chain.from_iterable(repeat(row, columns) for row in range(rows))),
            column=tuple(range(columns)) * rows,
            kind=tuple(kind),
        ),
    )


def _outcomes(parts: Sequence[Moves]) -> tuple[Array, Array, FloatArray, FloatArray]:
    """Of the cells of all parts, in order: how many outcomes each choice has; their targets,
    probabilities and costs.
    """
    into_order = np.argsort(np.concatenate([part.cells for part in parts]), kind="stable")
    targets = [part.target(part.cells) for part in parts]
    chances = [
        _merged_probability(target, part.slot_probability) for part, target in zip(parts, targets)
    ]
    costs = [np.tile([float(c) for c in part.action_cost], (len(part.cells), 1)) for part in parts]
    target, probability = (
        np.concatenate(each)[into_order].reshape(-1, SLOTS) for each in (targets, chances)
    )
    mask = probability > 0
    length = np.count_nonzero(mask, axis=1)
    cost = np.repeat(np.concatenate(costs)[into_order].ravel(), length)
    return length.astype(np.int8), target[mask].astype(np.int32), probability[mask], cost


def _merged_probability(target: Array, slot_probability: Sequence[Fraction]) -> FloatArray:
    """The probability of each slot, with that of equal targets gathered in the first of them and 0
    in the others.
    """
    # One table entry per set of slots: the sum is exact, so that 0.64 + 0.04 is the float nearest
    # to 0.68.
    sums = [
        sum(p for slot, p in enumerate(slot_probability) if chosen >> slot & 1)
        for chosen in range(1 << SLOTS)
    ]
    of_set = np.array(sums, dtype=np.float64)
    merged = np.zeros(target.shape, dtype=np.int64)
    taken = np.zeros(target.shape, dtype=np.bool_)
    for slot in range(SLOTS):
        same = (target == target[..., slot : slot + 1]) & ~taken
        merged[..., slot] = (same << np.arange(SLOTS)).sum(axis=-1)
        taken |= same
    return of_set[merged]
