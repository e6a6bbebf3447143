"""The backup of CVaRVIQ: for one choice, the best and worst of all successors at every confidence level, by one merge.

Every node keeps `value[x, i] = V(x, y_i)` and `slope[x, i]`, the slope of `y V(x, y)` between atoms i - 1 and i. Slopes fall with i, since
`y V` is concave. Outcome o of a choice offers segments of slope `c_o + gamma slope[t_o, i]` and width `p_o (y_i - y_{i-1})`; taken in order of
falling slope, their area up to mass y is `y Q(y)`, for all y at once. The slope that reaches mass y is the VaR there.

Node n is the goal: its slopes are 0 and it has no choices. Nodes are swept in blocks: a block is computed from the values before it (`compute`)
and then written (`commit`), so the result does not depend on who computes which part. A node none of whose successors has moved by more than
`slack` since its last backup is passed over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]
#: Masses that differ by less than this, relatively, count as equal: well above the rounding of the sums, well below any atom's distance.
SAME_MASS = 1e-12


class Problem(NamedTuple):
    """Nodes, choices and outcomes as in the model, target n being the goal; the atoms and their distances; the most outcomes of a choice.

    `own[grid[x]]` marks the atoms of node x, and `alike` tells that all nodes have all of them.
    """

    node_choices: Array
    choice_outcomes: Array
    target: Array
    probability: Array
    cost: Array
    gamma: float
    atoms: Array
    width: Array
    longest: int
    grid: Array
    own: Array
    alike: bool


class Work(NamedTuple):
    """Values, and what the sweeps remember. `area` and `due` are where `compute` leaves its results for `commit`, by place in the order.

    `stamp[t]` is when t last moved noticeably, `seen[x]` when x was last backed up; `drift` adds up moves too small to be told.
    """

    value: Array
    slope: Array
    area: Array
    due: Array
    drift: Array
    stamp: Array
    seen: Array


class Heap(NamedTuple):
    """Scratch of a merge: for each outcome its next segment's slope, in a binary heap, and how many segments it has given."""

    key: Array
    item: Array
    given: Array


@kernel
def new_heap(problem: Problem) -> Heap:
    return Heap(np.empty(problem.longest), np.empty(problem.longest, dtype=np.int64), np.empty(problem.longest, dtype=np.int64))


@kernel
def _sift_down(heap: Heap, size: int, key: float, item: int) -> None:
    """Put an entry in place of the top."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and heap.key[child + 1] > heap.key[child]:
            child += 1
        if heap.key[child] <= key:
            break
        heap.key[hole], heap.item[hole] = heap.key[child], heap.item[child]
        hole = child
    heap.key[hole], heap.item[hole] = key, item


@kernel
def _fill(heap: Heap, problem: Problem, slope: Array, first: int, count: int) -> None:
    """All outcomes with their first segments."""
    for item in range(count):
        heap.given[item] = 0
        key = problem.cost[first + item] + problem.gamma * slope[problem.target[first + item], 0]
        hole = item
        while hole > 0 and heap.key[(hole - 1) // 2] < key:
            parent = (hole - 1) // 2
            heap.key[hole], heap.item[hole] = heap.key[parent], heap.item[parent]
            hole = parent
        heap.key[hole], heap.item[hole] = key, item


@kernel
def merge(problem: Problem, slope: Array, choice: int, heap: Heap, out_area: Array, out_var: Array) -> None:
    """`y Q(y)` and the VaR of a choice at all atoms.

    An atom is settled by the segment that goes strictly beyond it: at a mass where the slope falls, the VaR is the lower slope, as in
    VaR_y = min { z : P(Z > z) <= y }. At y = 1 it is the last slope of all.
    """
    atoms, first = problem.atoms, problem.choice_outcomes[choice]
    size = problem.choice_outcomes[choice + 1] - first
    _fill(heap, problem, slope, first, size)
    mass, area, atom, top = 0.0, 0.0, 0, 0.0
    while True:
        item, top = heap.item[0], heap.key[0]
        outcome, given = first + item, heap.given[item]
        width = problem.probability[outcome] * problem.width[given]
        while mass + width > atoms[atom] * (1.0 + SAME_MASS):
            out_area[atom] = area + top * (atoms[atom] - mass)
            out_var[atom] = top
            atom += 1
            if atom == len(atoms):
                return
        area += top * width
        mass += width
        given += 1
        heap.given[item] = given
        if given < len(atoms):
            _sift_down(heap, size, problem.cost[outcome] + problem.gamma * slope[problem.target[outcome], given], item)
        else:
            size -= 1
            if size == 0:
                break
            _sift_down(heap, size, heap.key[size], heap.item[size])
    # What is left of the last atoms is rounding.
    while atom < len(atoms):
        out_area[atom] = area + top * (atoms[atom] - mass)
        out_var[atom] = top
        atom += 1


# ---------------------------------------------------------------------- sweeps


@kernel
def compute(problem: Problem, work: Work, order: Array, first: int, last: int) -> None:
    """Back up the nodes at places first .. last - 1 of the order into `work.area`, unless none of their successors has moved."""
    heap = new_heap(problem)
    area, var = np.empty(len(problem.atoms)), np.empty(len(problem.atoms))
    for place in range(first, last):
        node = order[place]
        begin, end = problem.node_choices[node], problem.node_choices[node + 1]
        work.due[place] = False
        for outcome in range(problem.choice_outcomes[begin], problem.choice_outcomes[end]):
            if work.stamp[problem.target[outcome]] >= work.seen[node]:
                work.due[place] = True
                break
        if not work.due[place]:
            continue
        best = work.area[place]
        best[:] = np.inf
        for choice in range(begin, end):
            merge(problem, work.slope, choice, heap, area, var)
            for atom in range(len(best)):
                best[atom] = min(best[atom], area[atom])
        if not problem.alike:
            straighten(problem, node, best)


@kernel
def straighten(problem: Problem, node: int, out_area: Array) -> None:
    """Let `y V` be linear between the atoms of a node's own: what was found at others gives way."""
    own = problem.own[problem.grid[node]]
    before, y = 0.0, 0.0
    start = 0
    for atom in range(len(out_area)):
        if own[atom]:
            slope = (out_area[atom] - before) / (problem.atoms[atom] - y)
            for between in range(start, atom):
                out_area[between] = before + slope * (problem.atoms[between] - y)
            before, y, start = out_area[atom], problem.atoms[atom], atom + 1


@kernel
def commit(problem: Problem, work: Work, order: Array, first: int, last: int, clock: int, slack: float) -> float:
    """Write what `compute` found; returns the largest change of a value."""
    change = 0.0
    for place in range(first, last):
        if not work.due[place]:
            continue
        node, before, steepest, move = order[place], 0.0, np.inf, 0.0
        for atom in range(len(problem.atoms)):
            area = work.area[place, atom]
            value = area / problem.atoms[atom]
            move = max(move, abs(value - work.value[node, atom]))
            work.value[node, atom] = value
            # Rounding may bend a straight piece upwards; the merge and `factors` rely on slopes that never rise.
            steepest = min(steepest, (area - before) / problem.width[atom])
            work.slope[node, atom] = steepest
            before = area
        change = max(change, move)
        work.seen[node] = clock
        work.drift[node] += move
        if work.drift[node] > slack:
            work.drift[node] = 0.0
            work.stamp[node] = clock
    return change


@kernel
def sweep(problem: Problem, work: Work, order: Array, bounds: Array, clock: int, slack: float) -> float:
    """All blocks, one after the other, by one thread."""
    change = 0.0
    for block in range(len(bounds) - 1):
        compute(problem, work, order, bounds[block], bounds[block + 1])
        change = max(change, commit(problem, work, order, bounds[block], bounds[block + 1], clock + block, slack))
    return change


@kernel
def cut_blocks(problem: Problem, value: Array, order: Array, out_bounds: Array) -> int:
    """Cut the order into blocks none of whose nodes likeliest goes to another of its block; returns how many there are.

    Where a node goes is told by its best choice at the risk-neutral `value`: the likeliest outcome of those that come earlier in the order.
    """
    n = len(order)
    place = np.empty(n + 1, dtype=np.int64)
    place[n] = -1
    for here in range(n):
        place[order[here]] = here
    blocks, first = 0, 0
    out_bounds[0] = 0
    for here in range(n):
        best, to = np.inf, -1
        for choice in range(problem.node_choices[order[here]], problem.node_choices[order[here] + 1]):
            total, likely, there = 0.0, 0.0, -1
            for outcome in range(problem.choice_outcomes[choice], problem.choice_outcomes[choice + 1]):
                target, chance = problem.target[outcome], problem.probability[outcome]
                total += chance * (problem.cost[outcome] + (value[target] if target < n else 0.0))
                if chance > likely and place[target] < here:
                    likely, there = chance, place[target]
            if total < best:
                best, to = total, there
        if to >= first:
            blocks += 1
            first = here
            out_bounds[blocks] = here
    out_bounds[blocks + 1] = n
    return blocks + 1
