"""The sweeps of CVaRVIQ: the best choice at every confidence level, node by node.

The symbols are those of `kernels.segments`, which solves the inner problem. Nodes are swept in some
order, each from the values that the nodes before it just got.
"""

from __future__ import annotations

import numpy as np

from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.segments import AtomModel, AtomWork, Scratch, merge_node


@kernel(small=2_000)  # many atoms each
def sweep_atoms(model: AtomModel, work: AtomWork, scratch: Scratch, order: Array) -> float:
    """Back up the nodes in this order; returns the largest change of a value."""
    change = 0.0
    for position in range(len(order)):
        node = order[position]
        merge_node(model, work, node, scratch)
        choices = model.node_choices[node + 1] - model.node_choices[node]
        for atom in range(len(scratch.best)):
            scratch.best[atom] = scratch.area[0, atom]
            for choice in range(1, choices):
                scratch.best[atom] = min(scratch.best[atom], scratch.area[choice, atom])
        if not model.same_grid:
            make_linear(model, node, scratch.best)
        change = max(change, write_node(model, work, scratch.best, node))
    return change


@kernel
def make_linear(model: AtomModel, node: int, out_area: Array) -> None:
    """Let `y V` be linear between the atoms of a node's own: what was found at others gives way."""
    grid = model.grid[node]
    before, y = 0.0, 0.0
    start = 0
    for atom in range(len(out_area)):
        if model.own[grid, atom]:
            slope = (out_area[atom] - before) / (model.atoms[atom] - y)
            for between in range(start, atom):
                out_area[between] = before + slope * (model.atoms[between] - y)
            before, y = out_area[atom], model.atoms[atom]
            start = atom + 1


@kernel
def write_node(model: AtomModel, work: AtomWork, best: Array, node: int) -> float:
    """The new values and slopes of a node, for its new areas `y V(y)`; returns how far the values
    moved.
    """
    before, steepest = 0.0, np.inf
    move = 0.0
    for atom in range(len(best)):
        value = best[atom] / model.atoms[atom]
        move = max(move, abs(value - work.value[node, atom]))
        work.value[node, atom] = value
        # Rounding may bend a straight piece upwards; the merge and `factors` rely on slopes that
        # never rise.
        steepest = min(steepest, (best[atom] - before) / model.width[atom])
        work.slope[node, atom] = steepest
        before = best[atom]
    return move
