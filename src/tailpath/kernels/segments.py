"""The inner problem of the CVaR planners for all choices of a node and all confidence levels at
once.

Every node has `slope[x, i]`, the slope of `y V(x, y)` between atoms i - 1 and i. Slopes fall with
i, since `y V` is concave. Outcome o of a choice offers segments of slope `c_o + gamma slope[t_o,
i]` and width `p_o (y_i - y_{i-1})`; taken in order of falling slope, their area up to mass y is `y
Q(y)`, for all y at once. The slope that reaches mass y is the VaR there.

Choices of a node often have the same targets at the same costs, with other probabilities: to the
neighbours of a cell, for example. The order of the segments is then the same for all of them. So
choices come in *bundles*: consecutive choices of a node with (nearly) the same pairs of target and
cost, its *runs*. The runs of a bundle are sorted falling as they are, and are merged two by two;
each choice then walks once along the merged segments, with its own probability for each run, 0 for
a run that it lacks. Node n is the goal: its slopes are 0 and it has no choices.

These loops run billions of times, so they make no arrays and count no references (see
`kernels.jit`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]
#: Masses that differ by less than this, relatively, count as equal: well above the rounding of the
#: sums, well below any atom's distance.
SAME_MASS = 1e-12
#: Columns of `AtomWork.memory`: when a node last moved noticeably, how far it has moved in all, the
#: same as they were before the sweep, when it was last backed up, moves too small to be noticed,
#: its part in this sweep, and whether it was seen from another part.
STAMP, TRAVEL, STAMP_BEFORE, TRAVEL_BEFORE, SEEN, DRIFT, PART, CROSSED = range(8)


class Bundles(NamedTuple):
    """The bundles of each node, their choices and their runs.

    `position[o]` is the run of outcome o within its bundle; `chance` has the probability of every
    run for each choice, from `choice_chances` on.
    """

    node_bundles: Array
    bundle_choices: Array
    bundle_runs: Array
    run_target: Array
    run_cost: Array
    position: Array
    choice_chances: Array
    chance: Array


class AtomModel(NamedTuple):
    """Nodes, choices and outcomes as in the model, target n being the goal; the atoms, their
    distances and inverses; the bundles.

    `limits` is what `follow` needs of the atoms. `most_runs` is the most runs of a bundle,
    `most_choices` the most choices of a node. `own[grid[x]]` marks the atoms of node x, and `alike`
    says whether all nodes have all of them. `floor` is the size of values below which ties do not
    count in relation to them: the largest cost, and 1 at most, so that a single price of 10^9 blurs
    no other.
    """

    node_choices: Array
    choice_outcomes: Array
    target: Array
    probability: Array
    cost: Array
    gamma: float
    atoms: Array
    width: Array
    per_atom: Array
    limits: Array
    bundles: Bundles
    most_runs: int
    most_choices: int
    grid: Array
    own: Array
    alike: bool
    floor: float


class AtomWork(NamedTuple):
    """The values, the slopes of `y V`, and those as they were before the sweep; what is remembered
    of a node, in a line of the cache; `margin`.
    """

    value: Array
    slope: Array
    before: Array
    memory: Array
    margin: Array


class Scratch(NamedTuple):
    """Segments as they come, by slope and number, and space to merge them; then in order: `falling`
    slopes, their widths and runs.

    `number_width` and `number_run` say what a number stands for. `area` and `var` have a row per
    choice of the node, one entry longer than there are atoms, and `best` the least areas.
    """

    slope: Array
    number: Array
    other_slope: Array
    other_number: Array
    ends: Array
    number_width: Array
    number_run: Array
    falling: Array
    width: Array
    run: Array
    area: Array
    var: Array
    best: Array


def new_scratch(model: AtomModel) -> Scratch:
    """Arrays for one thread to work on."""
    n_atoms, runs = len(model.atoms), model.most_runs
    size = runs * n_atoms
    return Scratch(
        np.empty(size),
        np.empty(size, dtype=np.int64),
        np.empty(size),
        np.empty(size, dtype=np.int64),
        np.empty(runs + 1, dtype=np.int64),
        np.tile(model.width, runs),
        np.repeat(np.arange(runs), n_atoms),
        np.empty(size),
        np.empty(size),
        np.empty(size, dtype=np.int64),
        np.empty((model.most_choices, n_atoms + 1)),
        np.empty((model.most_choices, n_atoms + 1)),
        np.empty(n_atoms),
    )


@kernel
def make_bundles(
    node_choices: Array, choice_outcomes: Array, target: Array, cost: Array, out: Bundles
) -> tuple[int, int]:
    """Put choices into bundles; returns how many bundles and runs there are. `out` is long
    enough for one bundle a choice, one run an outcome.

    A choice joins the bundle before it unless more than a third of the runs would then be foreign
    to it or to the others.
    """
    bundles, fewest = 0, 0
    runs: Any = np.int64(0)
    end: Any = np.int64(0)
    out.node_bundles[0], out.bundle_runs[0] = 0, 0
    for node in range(len(node_choices) - 1):
        for choice in range(node_choices[node], node_choices[node + 1]):
            first, last = choice_outcomes[choice], choice_outcomes[choice + 1]
            begin = out.bundle_runs[bundles - 1] if choice > node_choices[node] else runs
            fewest = min(fewest, last - first)
            if 2 * (runs - begin) <= 3 * fewest:
                end = _match(begin, runs, first, last, target, cost, out)
            if 2 * (max(end, runs) - begin) > 3 * fewest:
                begin = runs
                end = _match(begin, begin, first, last, target, cost, out)
            if begin == runs:
                out.bundle_choices[bundles] = choice
                bundles += 1
                fewest = last - first
            runs = end
            out.bundle_runs[bundles] = runs
        out.node_bundles[node + 1] = bundles
    out.bundle_choices[bundles] = node_choices[len(node_choices) - 1]
    return bundles, runs


@kernel
def _match(
    begin: int, end: int, first: int, last: int, target: Array, cost: Array, out: Bundles
) -> int:
    """Find the outcomes first .. last - 1 among the runs begin .. end - 1, adding those that are
    missing; returns the new end.

    Choices with very many outcomes are compared in order only.
    """
    found = end
    for outcome in range(first, last):
        run = begin + (outcome - first) if last - first > 64 else begin
        stop = min(run + 1, end) if last - first > 64 else end
        while run < stop and not (
            out.run_target[run] == target[outcome] and out.run_cost[run] == cost[outcome]
        ):
            run += 1
        if run >= stop:
            run = found
            out.run_target[run], out.run_cost[run] = target[outcome], cost[outcome]
            found += 1
        out.position[outcome] = run - begin
    return found


@kernel
def merge_node(
    model: AtomModel, work: AtomWork, node: int, part: int, travelled: float, scratch: Scratch
) -> None:
    """`y Q(y)` and the VaR at all atoms for every choice of a node, into the rows of `scratch.area`
    and `scratch.var`; choices whose margin lies beyond `travelled` are passed over.

    Nodes of other parts are seen as they were before the sweep.
    """
    bundles, n_atoms = model.bundles, len(model.atoms)
    first = model.node_choices[node]
    for bundle in range(bundles.node_bundles[node], bundles.node_bundles[node + 1]):
        size = np.int64(0)
        for choice in range(bundles.bundle_choices[bundle], bundles.bundle_choices[bundle + 1]):
            if travelled < work.margin[choice]:
                continue
            if size == 0:
                for run in range(bundles.bundle_runs[bundle], bundles.bundle_runs[bundle + 1]):
                    target, cost = bundles.run_target[run], bundles.run_cost[run]
                    here = work.memory[target, PART] == part
                    slope = work.slope if here else work.before
                    add_run(slope, target, cost, model.gamma, size, scratch.slope)
                    size += n_atoms
                merge_runs(size, n_atoms, scratch)
            chances = bundles.choice_chances[choice]
            along_segments(model.limits, bundles.chance, chances, size, choice - first, scratch)


@kernel
def add_run(
    slope: Array, target: int, cost: float, gamma: float, size: int, out_slope: Array
) -> None:
    """The segments of one more run."""
    row, at = np.uint64(target), np.uint64(size)
    for atom in range(np.uint64(slope.shape[1])):
        out_slope[at + atom] = cost + gamma * slope[row, atom]


@kernel
def merge_runs(size: int, n_atoms: int, scratch: Scratch) -> None:
    """Put the segments into order."""
    pieces, ends = size // n_atoms, scratch.ends
    slope, number = scratch.slope, scratch.number
    to_slope, to_number = scratch.other_slope, scratch.other_number
    for at in range(np.uint64(size)):
        number[at] = at
    for piece in range(pieces + 1):
        ends[piece] = piece * n_atoms
    while pieces > 1:
        merged = 0
        for piece in range(0, pieces, 2):
            _merge_two(
                slope,
                number,
                ends[piece],
                ends[piece + 1],
                ends[min(piece + 2, pieces)],
                to_slope,
                to_number,
            )
            merged += 1
            ends[merged] = ends[min(piece + 2, pieces)]
        pieces = merged
        slope, to_slope = to_slope, slope
        number, to_number = to_number, number
    for at in range(np.uint64(size)):
        scratch.falling[at], of = slope[at], np.uint64(number[at])
        scratch.width[at], scratch.run[at] = scratch.number_width[of], scratch.number_run[of]


@kernel
def _merge_two(
    slope: Array,
    number: Array,
    begin: int,
    middle: int,
    end: int,
    out_slope: Array,
    out_number: Array,
) -> None:
    """Merge two pieces, the first before the second where they tie."""
    if middle - begin == end - middle:
        _merge_equals(slope, number, begin, middle, end, out_slope, out_number)
        return
    left, right = begin, middle
    for at in range(begin, end):
        if right >= end or (left < middle and slope[left] >= slope[right]):
            out_slope[at], out_number[at] = slope[left], number[left]
            left += 1
        else:
            out_slope[at], out_number[at] = slope[right], number[right]
            right += 1


@kernel
def _merge_equals(
    slope: Array,
    number: Array,
    begin: int,
    middle: int,
    end: int,
    out_slope: Array,
    out_number: Array,
) -> None:
    """The same for pieces of equal length: the larger half from the front and the smaller from the
    back at once, without a branch to guess.

    Neither runs over an end: each gives as many as one piece has.
    """
    none, one = np.uint64(0), np.uint64(1)
    left, right = np.uint64(begin), np.uint64(middle)
    first, last = left, np.uint64(end) - one
    low, high = right - one, last
    for step in range(right - left):
        front, at = slope[left] >= slope[right], first + step
        out_slope[at] = slope[left] if front else slope[right]
        out_number[at] = number[left] if front else number[right]
        left += one if front else none
        right += none if front else one
        back, at = slope[low] < slope[high], last - step
        out_slope[at] = slope[low] if back else slope[high]
        out_number[at] = number[low] if back else number[high]
        low -= one if back else none
        high -= none if back else one


@kernel
def along_segments(
    limits: Array, chance: Array, chances: int, size: int, row: int, scratch: Scratch
) -> None:
    """`y Q(y)` and the VaR of one choice, along the merged segments of its bundle, into a row.

    `limits` are the atoms, each twice: as it is, and a little beyond, with an infinite one at the
    end. An atom is settled by the segment that goes strictly beyond it: at a mass where the slope
    falls, the VaR is the lower slope, as in VaR_y = min { z : P(Z > z) <= y }. At y = 1 it is the
    last slope of all. What is written before an atom is settled is overwritten: that takes less
    than to decide each time.
    """
    falling, width = scratch.falling, scratch.width
    run = scratch.run
    out_area, out_var = scratch.area, scratch.var
    none, one = np.uint64(0), np.uint64(1)
    mass, area = 0.0, 0.0
    atom, last = none, 0.0
    to, of = np.uint64(row), np.uint64(chances)
    y, beyond = limits[0, 0], limits[0, 1]
    for at in range(np.uint64(size)):
        more, top = chance[of + np.uint64(run[at])] * width[at], falling[at]
        out_area[to, atom] = area + top * (y - mass)
        out_var[to, atom] = top
        atom += one if mass + more > beyond else none
        y, beyond = limits[atom, 0], limits[atom, 1]
        while mass + more > beyond:
            out_area[to, atom] = area + top * (y - mass)
            out_var[to, atom] = top
            atom += one
            y, beyond = limits[atom, 0], limits[atom, 1]
        area += top * more
        mass += more
        last = top if more > 0.0 else last
    # What is left of the last atoms is rounding.
    for after in range(atom, np.uint64(len(limits) - 1)):
        out_area[to, after] = area + last * (limits[after, 0] - mass)
        out_var[to, after] = last
