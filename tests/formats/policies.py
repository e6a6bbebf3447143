"""A policy of every kind that can be saved, each with its model."""

from __future__ import annotations

import numpy as np

from tailpath.policies.atoms import AtomPolicy, Grids
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import MarkovPolicy, MemoryPolicy
from tests.formats.models import awkward, by_choice


def atom_policy():
    """Two atoms on `by_choice`: states 0, 1, 2, 3, where 3 is the goal and state 0 has
    two choices.
    """
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
    tables = {
        name: getattr(plain, name)
        for name in ("ssp", "atoms", "choice", "xi_offset", "xi", "start_atom")
    }
    return AtomPolicy(
        **tables,
        grids=Grids(
            np.array([[True, True], [False, True]]), np.array([0, 1, 0, 0], dtype=np.int32)
        ),
    )


def budget_policy():
    """Up to four units of 1/2: state 0 goes left with two units left, and right with any other
    budget; the others have one choice each.
    """
    return BudgetPolicy.from_table(
        by_choice(),
        np.array([[-1, 1, 0, 1, 1], [-1] * 5, [-1] * 5, [-1] * 5]),
        np.array([1, 2, 3, -1]),
    )


def markov_policy():
    return MarkovPolicy(
        {(0, 1): "a", 1: {None: 0.25, "go there": 0.75}, "1": (1, "1", (2,)), None: 7}
    )


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
    "budget steps": (budget_policy, by_choice),
}
