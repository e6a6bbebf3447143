"""A policy of every kind that can be saved, each with its model."""

from __future__ import annotations

import numpy as np

from tailpath.policies.atoms import Grids
from tailpath.policies.kinds import AtomPolicy, BudgetPolicy, MarkovPolicy, MemoryPolicy
from tailpath.policies.sparse import SparseBudgetPolicy
from tests.formats.models import awkward, by_choice


def atom_policy():
    """Two atoms on `by_choice`: states 0, 1, 2, 3, where 3 is the goal and state 0 has two choices."""
    return AtomPolicy(
        by_choice(),
        atoms=np.array([0.1, 1.0]),
        choice=np.array([[0, 1], [2, 2], [3, 3], [-1, -1]], dtype=np.int32),
        xi_offset=np.array([[0, 2], [3, 5], [7, 9], [0, 0]]),
        xi=np.array([0.5, 1.5, 1.0, 1 / 3, 2.0, 0.0, 10 / 9, 1, 1, 1, 1]),
        start_atom=1,
    )


def own_atoms_policy():
    """The same with atoms of its own in state 1, which has the last one only."""
    plain = atom_policy()
    tables = {name: getattr(plain, name) for name in ("ssp", "atoms", "choice", "xi_offset", "xi", "start_atom")}
    return AtomPolicy(**tables, grids=Grids(np.array([[True, True], [False, True]]), np.array([0, 1, 0, 0], dtype=np.int32)))


def budget_policy():
    ssp = by_choice()
    return BudgetPolicy(
        ssp,
        budget=4,
        row=np.array([0, 1, -1, -1], dtype=np.int32),
        position=np.array([[0, 1, 0, 1, 1], [0, 0, 0, 0, 0]], dtype=np.uint8),
        neutral=np.array([1, 2, 3, -1], dtype=np.int32),
        level=ssp.outcome_level,
        unit=ssp.cost_unit,
    )


def shifted_budget_policy():
    """The same as `budget_policy`, but that the first state takes its neutral choice with one unit left, too."""
    plain = budget_policy()
    fields = {name: getattr(plain, name) for name in ("ssp", "budget", "row", "neutral", "level", "unit")}
    return BudgetPolicy(**fields, position=np.array([[0, 0, 1, 1], [0, 0, 0, 0]], dtype=np.uint8), sure=np.array([1, 3]))


def sparse_budget_policy():
    ssp = by_choice()
    return SparseBudgetPolicy(
        ssp,
        budget=4,
        row=np.array([0, 1, -1, -1], dtype=np.int32),
        position=np.array([0, 1, 0], dtype=np.uint8),
        neutral=np.array([1, 2, 3, -1], dtype=np.int32),
        level=ssp.outcome_level,
        unit=ssp.cost_unit,
        first=np.array([0, 2, 3]),
        left=np.array([2, 4, 1]),
    )


def markov_policy():
    return MarkovPolicy({(0, 1): "a", 1: {None: 0.25, "go there": 0.75}, "1": (1, "1", (2,)), None: 7})


def memory_policy():
    return MemoryPolicy(
        ("fresh", 0),
        {((0, 1), ("fresh", 0)): "a", (1, "tired"): {None: 0.5, "go there": 0.5}},
        {(("fresh", 0), (0, 1), "a", 5.0, 1): "tired", ("tired", 1, None, 2.0, "g"): None},
    )


CASES = {
    "markov": (markov_policy, awkward),
    "memory": (memory_policy, awkward),
    "atom": (atom_policy, by_choice),
    "atom grids": (own_atoms_policy, by_choice),
    "budget": (budget_policy, by_choice),
    "budget windows": (shifted_budget_policy, by_choice),
    "budget pairs": (sparse_budget_policy, by_choice),
}
