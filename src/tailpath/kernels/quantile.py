"""The sweeps of CVaRVIQ: the best choice at every confidence level, node by node.

The symbols are those of `kernels.segments`, which solves the inner problem. Nodes are swept in some
order, each from the values that the nodes before it just got. Large models are swept in *parts*,
pieces of the order that do not wait for each other: a node sees the nodes of other parts as they
were before the sweep (`slope_before`), so the result does not depend on who sweeps which part.

Three things are left out because they change nothing. A node none of whose successors has moved by
more than `slack` since its last backup is passed over. So is a choice that cannot be the best at
any atom: V changes no Q by more than it changes itself (`y V` is linear between the atoms, and sum
P xi = 1), so a choice that was worse than the best by `gap` everywhere is so still, as long as no
successor of the node has moved farther than gap / 2 in all since. The sum over all successors is
what is stored: `margin` is the sum up to which this holds for certain. And so is a bundle all of
whose choices are passed over.
"""

from __future__ import annotations

import numpy as np

from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.segments import (
    LAST_BACKUP,
    LAST_MOVE,
    LAST_MOVE_BEFORE,
    PART,
    READ_ELSEWHERE,
    SMALL_MOVES,
    TOTAL_MOVE,
    TOTAL_MOVE_BEFORE,
    AtomModel,
    AtomWork,
    Scratch,
    merge_node,
)

#: The half of a gap that counts, and how far rounding may carry a sum of moves, relatively.
HALF, ROUNDING = 0.499, 1e-12


@kernel(small=2_000)  # many atoms each
def sweep_atoms(
    model: AtomModel,
    work: AtomWork,
    scratch: Scratch,
    order: Array,
    part: int,
    clock: int,
    slack: float,
) -> float:
    """Back up the nodes of a part in this order, the first of them at `clock`; returns the largest
    change of a value.
    """
    bundles, history = model.bundles, work.history
    change = 0.0
    for position in range(len(order)):
        node = order[position]
        begin, end = (
            bundles.bundle_runs[bundles.node_bundles[node]],
            bundles.bundle_runs[bundles.node_bundles[node + 1]],
        )
        needs_backup, total_move = _moves_since_backup(
            bundles.run_target, begin, end, history, node, part
        )
        if not needs_backup:
            continue
        merge_node(model, work, node, part, total_move, scratch)
        choices = model.node_choices[node], model.node_choices[node + 1]
        _best(scratch.area, choices, total_move, model.inverse_atoms, work.margin, scratch.best)
        if not model.same_grid:
            make_linear(model, node, scratch.best)
        move = write_node(model, work, scratch.best, node)
        change = max(change, move)
        history[node, LAST_BACKUP] = clock + position
        history[node, TOTAL_MOVE] += move
        history[node, SMALL_MOVES] += move
        if history[node, SMALL_MOVES] > slack:
            history[node, SMALL_MOVES] = 0.0
            history[node, LAST_MOVE] = clock + position
    return change


@kernel
def _moves_since_backup(
    run_target: Array, begin: int, end: int, history: Array, node: int, part: int
) -> tuple[bool, float]:
    """Whether a successor has moved since the last backup, and how far all of them have come."""
    needs_backup, total_move = False, 0.0
    last_backup = history[node, LAST_BACKUP]
    for run in range(begin, end):
        target = run_target[run]
        if history[target, PART] == part:
            needs_backup |= history[target, LAST_MOVE] >= last_backup
            total_move += history[target, TOTAL_MOVE]
        else:
            needs_backup |= history[target, LAST_MOVE_BEFORE] >= last_backup
            total_move += history[target, TOTAL_MOVE_BEFORE]
            history[target, READ_ELSEWHERE] = 1.0
    return needs_backup, total_move


@kernel
def _best(
    area: Array,
    choices: tuple[int, int],
    total_move: float,
    inverse_atoms: Array,
    margin: Array,
    out_best: Array,
) -> None:
    """`y V(y)` of a node: the least over its choices, those left out that cannot have it."""
    first, last = choices
    for atom in range(len(out_best)):
        out_best[atom] = np.inf
    for choice in range(first, last):
        if total_move >= margin[choice]:
            for atom in range(len(out_best)):
                out_best[atom] = min(out_best[atom], area[choice - first, atom])
    for choice in range(first, last):
        if total_move >= margin[choice]:
            gap = np.inf
            for atom in range(len(out_best)):
                gap = min(gap, (area[choice - first, atom] - out_best[atom]) * inverse_atoms[atom])
            margin[choice] = total_move + HALF * gap - ROUNDING * total_move


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


@kernel
def end_sweep(work: AtomWork, clock: int) -> None:
    """What other parts will see in the next sweep. A node that others saw as it was before has
    moved later than they looked.
    """
    history = work.history
    for node in range(len(history) - 1):
        if history[node, LAST_BACKUP] >= clock:
            for atom in range(work.slope.shape[1]):
                work.slope_before[node, atom] = work.slope[node, atom]
            if history[node, READ_ELSEWHERE] > 0.0 and history[node, LAST_MOVE] >= clock:
                history[node, LAST_MOVE] = clock + len(history) - 1
            history[node, LAST_MOVE_BEFORE], history[node, TOTAL_MOVE_BEFORE] = (
                history[node, LAST_MOVE],
                history[node, TOTAL_MOVE],
            )
        history[node, READ_ELSEWHERE] = 0.0
