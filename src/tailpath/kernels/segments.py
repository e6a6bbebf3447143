"""The inner problem of the CVaR planners for all choices of a node and all confidence levels at
once.

Every node has `slope[x, i]`, the slope of `y V(x, y)` between atoms i - 1 and i. Slopes fall with
i, since `y V` is concave. Outcome o of a choice offers segments of slope `c_o + gamma slope[t_o,
i]` and width `p_o (y_i - y_{i-1})`; taken in order of falling slope, their area up to mass y is `y
Q(y)`, for all y at once. The slope that reaches mass y is the VaR there.

The segments of each outcome are sorted falling as they are. Those of a choice are merged two by
two, and walked along once. Node n is the goal: its slopes are 0 and it has no choices.

These loops run billions of times, so they make no arrays and count no references (see
`kernels.jit`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.kernels.jit import Array, kernel


class AtomOutcomes(NamedTuple):
    """The outcomes of each choice as in the model, target n being the goal, and the discount."""

    choice_outcomes: Array
    target: Array
    probability: Array
    cost: Array
    gamma: float


class AtomModel(NamedTuple):
    """Nodes, choices and outcomes; the atoms and their distances.

    `atom_limits` is what `along_segments` needs of the atoms. `own[grid[x]]` marks the atoms of
    node x, and `same_grid` says whether all nodes have all of them. `floor` is the size of values
    below which ties do not count in relation to them: the largest cost, and 1 at most, so that a
    single price of 10^9 blurs no other.
    """

    node_choices: Array
    outcomes: AtomOutcomes
    atoms: Array
    width: Array
    atom_limits: Array
    grid: Array
    own: Array
    same_grid: bool
    floor: float


class AtomWork(NamedTuple):
    """The values, and the slopes of `y V`."""

    value: Array
    slope: Array


class Scratch(NamedTuple):
    """Segments by slope and number, on two sides, to merge them from one to the other, and where
    sorted pieces end; then in order of falling slope: slopes, widths and outcomes of a choice.

    `segment_width` and `segment_outcome` say what a number stands for. `area` and `var` have a row
    per choice of the node, one entry longer than there are atoms, and `best` the least areas.
    """

    slope: Array
    segment: Array
    ends: Array
    segment_width: Array
    segment_outcome: Array
    sorted_slope: Array
    sorted_width: Array
    sorted_outcome: Array
    area: Array
    var: Array
    best: Array


def new_scratch(model: AtomModel) -> Scratch:
    """Arrays to work on."""
    n_atoms, choices = len(model.atoms), int(np.diff(model.node_choices).max(initial=1))
    most = int(np.diff(model.outcomes.choice_outcomes).max(initial=1))
    size = most * n_atoms
    return Scratch(
        np.empty((2, size)),
        np.empty((2, size), dtype=np.uint64),
        np.empty(most + 1, dtype=np.uint64),
        np.tile(model.width, most),
        np.repeat(np.arange(most, dtype=np.uint64), n_atoms),
        np.empty(size),
        np.empty(size),
        np.empty(size, dtype=np.uint64),
        np.empty((choices, n_atoms + 1)),
        np.empty((choices, n_atoms + 1)),
        np.empty(n_atoms),
    )


@kernel
def merge_node(model: AtomModel, work: AtomWork, node: int, scratch: Scratch) -> None:
    """`y Q(y)` and the VaR at all atoms for every choice of a node, into the rows of `scratch.area`
    and `scratch.var`.
    """
    choice_outcomes, target, probability, cost, gamma = model.outcomes
    n_atoms, first_choice = len(model.atoms), model.node_choices[node]
    for choice in range(first_choice, model.node_choices[node + 1]):
        size = np.int64(0)
        first = choice_outcomes[choice]
        for outcome in range(first, choice_outcomes[choice + 1]):
            add_outcome(work.slope, target[outcome], cost[outcome], gamma, size, scratch.slope)
            size += n_atoms
        merge_outcomes(size, n_atoms, scratch)
        along_segments(model.atom_limits, probability, first, size, choice - first_choice, scratch)


@kernel
def add_outcome(
    slope: Array, target: int, cost: float, gamma: float, size: int, out_slope: Array
) -> None:
    """The segments of one more outcome."""
    row, at = np.uint64(target), np.uint64(size)
    for atom in range(np.uint64(slope.shape[1])):
        out_slope[0, at + atom] = cost + gamma * slope[row, atom]


@kernel
def merge_outcomes(size: int, n_atoms: int, scratch: Scratch) -> None:
    """Put the segments into order."""
    slope, segment = scratch.slope, scratch.segment
    ends, pieces = scratch.ends, size // n_atoms
    side = np.uint64(0)
    for at in range(np.uint64(size)):
        segment[side, at] = at
    for piece in range(pieces + 1):
        ends[piece] = piece * n_atoms
    while pieces > 1:
        pieces = _merge_pieces(slope, segment, side, ends, pieces)
        side = np.uint64(1) - side
    for at in range(np.uint64(size)):
        of = segment[side, at]
        scratch.sorted_slope[at] = slope[side, at]
        scratch.sorted_width[at] = scratch.segment_width[of]
        scratch.sorted_outcome[at] = scratch.segment_outcome[of]


@kernel
def _merge_pieces(slope: Array, segment: Array, side: int, ends: Array, pieces: int) -> int:
    """Merge the pieces two by two to the other side; returns how many are left."""
    merged = 0
    for piece in range(0, pieces, 2):
        begin, middle = ends[piece], ends[piece + 1]
        end = ends[min(piece + 2, pieces)]
        _merge_two(slope, segment, side, begin, middle, end)
        merged += 1
        ends[merged] = end
    return merged


@kernel
def _merge_two(slope: Array, segment: Array, side: Any, left: Any, middle: Any, end: Any) -> None:
    """Merge two pieces to the other side, the first before the second where they tie."""
    one = np.uint64(1)
    to, right = one - side, middle
    for at in range(left, end):
        if right >= end or (left < middle and slope[side, left] >= slope[side, right]):
            slope[to, at], segment[to, at] = slope[side, left], segment[side, left]
            left += one
        else:
            slope[to, at], segment[to, at] = slope[side, right], segment[side, right]
            right += one


@kernel
def along_segments(
    atom_limits: Array,
    probability: Array,
    first: int,
    size: int,
    row: int,
    scratch: Scratch,
) -> None:
    """`y Q(y)` and the VaR of the choice with this first outcome, along its merged segments, into a
    row.

    `atom_limits` are the atoms, each twice: as it is, and a little beyond, with an infinite one at
    the end. An atom is settled by the segment that goes strictly beyond it: at a mass where the
    slope falls, the VaR is the lower slope, as in VaR_y = min { z : P(Z > z) <= y }. At y = 1 it is
    the last slope of all. What is written before an atom is settled is overwritten: that takes less
    than to decide each time.
    """
    slope, width = scratch.sorted_slope, scratch.sorted_width
    outcome = scratch.sorted_outcome
    out_area, out_var = scratch.area, scratch.var
    none, one = np.uint64(0), np.uint64(1)
    mass, area = 0.0, 0.0
    atom, last = none, 0.0
    to, of = np.uint64(row), np.uint64(first)
    y, beyond = atom_limits[0, 0], atom_limits[0, 1]
    for at in range(np.uint64(size)):
        more, top = probability[of + outcome[at]] * width[at], slope[at]
        out_area[to, atom] = area + top * (y - mass)
        out_var[to, atom] = top
        atom += one if mass + more > beyond else none
        y, beyond = atom_limits[atom, 0], atom_limits[atom, 1]
        while mass + more > beyond:
            out_area[to, atom] = area + top * (y - mass)
            out_var[to, atom] = top
            atom += one
            y, beyond = atom_limits[atom, 0], atom_limits[atom, 1]
        area += top * more
        mass += more
        last = top if more > 0.0 else last
    # What is left of the last atoms is rounding.
    for after in range(atom, np.uint64(len(atom_limits) - 1)):
        out_area[to, after] = area + last * (atom_limits[after, 0] - mass)
        out_var[to, after] = last
