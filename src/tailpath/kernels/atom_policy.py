"""From values over (node, atom) to a policy: the best choices, the risk factors xi, and the
certainty that the policy arrives.

The symbols are those of `kernels.segments`. After outcome o at (x, y) the policy goes on at the
atom nearest to y xi_o. This rounding is not part of the values, so even a greedy policy might walk
in cycles; `mark_arriving` finds out and `find_detours` knows what else to choose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.rounding import SAME_MASS
from tailpath.kernels.segments import AtomModel, AtomOutcomes, AtomWork, Scratch, merge_node
from tailpath.kernels.unrolling import first_at_least

#: Choices and slopes tied within these, relative to their size or to `AtomModel.floor`, count as
#: equal.
VALUE_TIE = 1e-12
SLOPE_TIE = 1e-9
#: How mass at the VaR goes to the outcomes: the first take all they can, all share it, or each gets
#: all of it.
VERTEX, SHARED, PRINTED = range(3)


class Nearest(NamedTuple):
    """For every grid of atoms: up to where each of its atoms is the nearest, and the numbers of its
    atoms.
    """

    border: Array
    atom: Array


class Detours(NamedTuple):
    """By pair of node and atom: the choice to take, the VaR under it, and what it costs more."""

    choice: Array
    var: Array
    regret: Array


@kernel
def beats(area: float, best: float, floor: float) -> bool:
    """Whether one area `y Q(y)` is below another by more than a tie; `floor` is y times that of
    values.
    """
    return area < best - VALUE_TIE * max(floor, abs(area))


@kernel
def choose(
    model: AtomModel,
    work: AtomWork,
    scratch: Scratch,
    out_choice: Array,
    out_var: Array,
) -> None:
    """The best choice of each node at every atom, the first of those that tie, and the VaR under
    it.
    """
    best = scratch.best
    for node in range(len(out_choice)):
        merge_node(model, work, node, scratch)
        for atom in range(len(best)):
            best[atom] = np.inf
        for choice in range(model.node_choices[node], model.node_choices[node + 1]):
            row = choice - model.node_choices[node]
            for atom in range(len(best)):
                if beats(scratch.area[row, atom], best[atom], model.atoms[atom] * model.floor):
                    best[atom] = scratch.area[row, atom]
                    out_choice[node, atom] = choice
                    out_var[node, atom] = scratch.var[row, atom]


@kernel
def factors(
    outcomes: AtomOutcomes,
    slope: Array,
    atoms: Array,
    choice: int,
    y: float,
    var: float,
    floor: float,
    rule: int,
    out_xi: Array,
) -> None:
    """The risk factors of a choice at mass y: what lies above the VaR counts in full, what lies at
    it fills the remainder.

    `SHARED`: the outcomes split that remainder in proportion to their mass at the VaR, as the code
    of CVaRVIQ's authors does. `VERTEX`: the first ones take all they can, as in a vertex that a
    linear program returns. `PRINTED`: xi = F(VaR) / y to the letter, where the VaR is the step that
    reaches mass y: each outcome counts all its mass there, and sum P xi may exceed 1. `var` is the
    step that goes beyond y, so where there is no remainder the step before it reached y, and what
    lies at `var` does not count. Masses are sums of atoms, not of widths: then 0 <= y xi <= 1 holds
    without exception.
    """
    first, last = outcomes.choice_outcomes[choice], outcomes.choice_outcomes[choice + 1]
    tie = SLOPE_TIE * max(floor, abs(var))
    above, tied = 0.0, 0.0
    for outcome in range(first, last):
        low, high = _reach(outcomes, slope, atoms, outcome, var, tie)
        above += outcomes.probability[outcome] * low
        tied += outcomes.probability[outcome] * (high - low)
    remainder = y - above
    part = min(max(remainder / tied, 0.0), 1.0) if tied > 0.0 else 0.0
    for outcome in range(first, last):
        low, high = _reach(outcomes, slope, atoms, outcome, var, tie)
        if rule == PRINTED:
            part = 1.0 if remainder > SAME_MASS * y else 0.0
        elif rule == VERTEX:
            mass = outcomes.probability[outcome] * (high - low)
            part = min(max(remainder / mass, 0.0), 1.0) if mass > 0.0 else 0.0
            remainder -= part * mass
        out_xi[outcome - first] = (low + part * (high - low)) / y


@kernel(inline=True)
def _reach(
    outcomes: AtomOutcomes, slope: Array, atoms: Array, outcome: int, var: float, tie: float
) -> tuple[float, float]:
    """The atoms up to which an outcome's slopes exceed the VaR, and up to which they at least equal
    it.
    """
    cost, target = outcomes.cost[outcome], np.uint64(outcomes.target[outcome])
    atom, end = np.uint64(0), np.uint64(len(atoms))
    one, low = np.uint64(1), 0.0
    while atom < end and cost + outcomes.gamma * slope[target, atom] > var + tie:
        low = atoms[atom]
        atom += one
    high = low
    while atom < end and cost + outcomes.gamma * slope[target, atom] >= var - tie:
        high = atoms[atom]
        atom += one
    return low, high


@kernel
def all_factors(
    model: AtomModel,
    slope: Array,
    choice: Array,
    atom: Array,
    var: Array,
    offset: Array,
    rule: int,
    out_xi: Array,
) -> None:
    """`factors` for many pairs of choice and atom."""
    outcomes, atoms = model.outcomes, model.atoms
    for pair in range(len(choice)):
        y, xi = atoms[atom[pair]], out_xi[offset[pair] :]
        factors(outcomes, slope, atoms, choice[pair], y, var[pair], model.floor, rule, xi)


@kernel
def mark_arriving(
    model: AtomModel,
    order: Array,
    nearest: Nearest,
    choice: Array,
    offset: Array,
    xi: Array,
    out_arrives: Array,
) -> bool:
    """Mark the pairs (node, atom) from which the policy can arrive. True if all can."""
    while True:
        missing, moved = 0, False
        for node in order:
            for atom in range(len(model.atoms)):
                if out_arrives[node, atom]:
                    continue
                run = xi[offset[node, atom] :]
                if _meets(model, nearest, choice[node, atom], model.atoms[atom], run, out_arrives):
                    out_arrives[node, atom] = True
                    moved = True
                else:
                    missing += 1
        if missing == 0 or not moved:
            return missing == 0


@kernel
def _meets(
    model: AtomModel, nearest: Nearest, choice: int, y: float, xi: Array, arrives: Array
) -> bool:
    """Whether some outcome of a choice ends at the goal or at a pair that arrives."""
    first = model.outcomes.choice_outcomes[choice]
    for outcome in range(first, model.outcomes.choice_outcomes[choice + 1]):
        target = model.outcomes.target[outcome]
        if target == len(arrives):
            return True
        grid = model.grid[target]
        if arrives[
            target,
            nearest.atom[grid, first_at_least(nearest.border[grid], y * xi[outcome - first])],
        ]:
            return True
    return False


@kernel
def find_detours(
    model: AtomModel,
    work: AtomWork,
    nearest: Nearest,
    arrives: Array,
    rule: int,
    scratch: Scratch,
    out: Detours,
) -> None:
    """For every pair that does not arrive: the cheapest choice that may meet one that does, and
    what it costs more than the best. That comes in infinite.
    """
    out_choice, out_var, out_regret = out
    best, xi = scratch.best, scratch.sorted_slope  # which holds nothing once a node is merged
    for node in range(len(arrives)):
        missing = 0
        for atom in range(len(best)):
            missing += 0 if arrives[node, atom] else 1
        if missing == 0:
            continue
        merge_node(model, work, node, scratch)
        for atom in range(len(best)):
            best[atom] = np.inf
        for choice in range(model.node_choices[node], model.node_choices[node + 1]):
            row = choice - model.node_choices[node]
            for atom in range(len(best)):
                y = model.atoms[atom]
                value = scratch.area[row, atom] / y
                best[atom] = min(best[atom], value)
                if arrives[node, atom] or value >= out_regret[node, atom]:
                    continue
                var = scratch.var[row, atom]
                factors(
                    model.outcomes, work.slope, model.atoms, choice, y, var, model.floor, rule, xi
                )
                if _meets(model, nearest, choice, y, xi, arrives):
                    out_regret[node, atom] = value
                    out_choice[node, atom] = choice
                    out_var[node, atom] = var
        for atom in range(len(best)):
            if not arrives[node, atom]:
                out_regret[node, atom] -= best[atom]
