"""Loops that value iteration from below is slow to leave, and how to lift it out of them.

While values are too low, walking in a circle may look better than any way out, and each sweep adds no more than the cost of a step: a hundred
sweeps if a step costs 1 and the way out 100, and no progress worth the name if a step costs less than the tolerance. But whoever arrives
must leave every set C of nodes some time, and until then pays and gains nothing: keeping y fixed inside C, the adversary secures

    V(x, y) >= min over z in C and choices k of z that may leave C of Q_k(z, y)        for all x in C.

With values from below on the right, this is a sound bound for any C. Here C are the parts of the nodes that reach no goal by choices as good as
their value, for each atom apart. `y V` is concave, so the smallest concave curve over the raised points is a lower bound, too, and V <= T[V]
still holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.quantile import Problem, Work

Array = NDArray[Any]
#: Choices within this of the value, relatively, count as equal to it.
TIE = 1e-12


@kernel
def raise_loops(problem: Problem, work: Work, order: Array, clock: int) -> float:
    """Raise the values of nodes that go round in circles; returns the largest gain. The areas in `work.floor` serve for Q."""
    n, n_atoms = len(order), len(problem.atoms)
    leads_out = np.empty(n + 1, dtype=np.bool_)
    parent = np.empty(n + 1, dtype=np.int64)
    least = np.empty(n)
    raised = np.zeros(n, dtype=np.bool_)
    gain = 0.0
    for atom in range(n_atoms):
        if _mark_leading_out(problem, work, order, atom, leads_out):
            continue
        _join(problem, work, order, atom, leads_out, parent)
        _least_way_out(problem, work, order, atom, leads_out, parent, least)
        for node in order:
            if not leads_out[node] and least[_root(parent, node)] > work.value[node, atom]:
                gain = max(gain, least[_root(parent, node)] - work.value[node, atom])
                work.value[node, atom] = least[_root(parent, node)]
                raised[node] = True
    hull = np.empty(n_atoms + 1, dtype=np.int64)
    for node in order:
        if raised[node]:
            _make_concave(problem, work, node, hull)
            work.stamp[node] = clock
            work.drift[node] = 0.0
    return gain


@kernel
def _as_good(problem: Problem, work: Work, node: int, choice: int, atom: int) -> bool:
    """Whether a choice is as good as the value of its node."""
    return bool(work.floor[choice, atom] <= work.value[node, atom] * problem.atoms[atom] * (1.0 + TIE))


@kernel
def _mark_leading_out(problem: Problem, work: Work, order: Array, atom: int, out_marked: Array) -> bool:
    """Mark the nodes that can reach the goal by choices as good as their values. True if all can."""
    out_marked[:] = False
    out_marked[len(order)] = True
    while True:
        left, moved = 0, False
        for node in order:
            if out_marked[node]:
                continue
            for choice in range(problem.node_choices[node], problem.node_choices[node + 1]):
                if _as_good(problem, work, node, choice, atom):
                    for outcome in range(problem.choice_outcomes[choice], problem.choice_outcomes[choice + 1]):
                        if out_marked[problem.target[outcome]]:
                            out_marked[node] = True
            if out_marked[node]:
                moved = True
            else:
                left += 1
        if left == 0 or not moved:
            return left == 0


@kernel
def _root(parent: Array, node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def _join(problem: Problem, work: Work, order: Array, atom: int, leads_out: Array, out_parent: Array) -> None:
    """Join each node that leads nowhere with all it may go to by choices as good as its value: these are in the same circle."""
    for node in range(len(out_parent)):
        out_parent[node] = node
    for node in order:
        if leads_out[node]:
            continue
        for choice in range(problem.node_choices[node], problem.node_choices[node + 1]):
            if _as_good(problem, work, node, choice, atom):
                for outcome in range(problem.choice_outcomes[choice], problem.choice_outcomes[choice + 1]):
                    out_parent[_root(out_parent, problem.target[outcome])] = _root(out_parent, node)


@kernel
def _least_way_out(problem: Problem, work: Work, order: Array, atom: int, leads_out: Array, parent: Array, out_least: Array) -> None:
    """For each circle (at its root) the least Q of a choice that may leave it."""
    out_least[:] = np.inf
    for node in order:
        if leads_out[node]:
            continue
        root = _root(parent, node)
        for choice in range(problem.node_choices[node], problem.node_choices[node + 1]):
            leaves = False
            for outcome in range(problem.choice_outcomes[choice], problem.choice_outcomes[choice + 1]):
                leaves |= _root(parent, problem.target[outcome]) != root
            if leaves:
                out_least[root] = min(out_least[root], work.floor[choice, atom] / problem.atoms[atom])


@kernel
def _make_concave(problem: Problem, work: Work, node: int, hull: Array) -> None:
    """Values and slopes of the smallest concave curve over the node's points (y, y V) and (0, 0).

    `hull` holds the corners, counted from 1; 0 is the origin.
    """
    atoms, value = problem.atoms, work.value[node]
    size = 0
    hull[0] = 0
    for corner in range(1, len(atoms) + 1):
        while size > 0:
            last, before = hull[size], hull[size - 1]
            start = atoms[before - 1] if before > 0 else 0.0
            height = atoms[before - 1] * value[before - 1] if before > 0 else 0.0
            y, area = atoms[corner - 1], atoms[corner - 1] * value[corner - 1]
            if (atoms[last - 1] * value[last - 1] - height) * (y - start) > (area - height) * (atoms[last - 1] - start):
                break
            size -= 1
        size += 1
        hull[size] = corner
    height, start, atom = 0.0, 0.0, 0
    for position in range(1, size + 1):
        end = hull[position] - 1
        area = atoms[end] * value[end]
        slope = (area - height) / (atoms[end] - start)
        while atom <= end:
            work.slope[node, atom] = slope
            value[atom] = (height + slope * (atoms[atom] - start)) / atoms[atom]
            atom += 1
        height, start = area, atoms[end]
