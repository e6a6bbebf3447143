"""Adaptive atoms: every state gets those that its own values need.

Chow et al. (2015, Theorem 7) bound the error of interpolation by the ratio of neighbouring atoms
and by how much V(s, y) still rises below the first one, which they place accordingly; the code of
Stanko and Macek adds atoms below it (`increase_precision`). Both compare with V(s, 0), the
worst case, which is infinite wherever a run may be unlucky again and again. So here the error is
measured instead: one step of the operator gives `y V(s, y)` *between* two atoms, where the planner
draws a line. An atom is added where the two are too far apart, and the planner runs again.
"""

from __future__ import annotations

import numpy as np

from tailpath.graph import BoolArray, FloatArray
from tailpath.kernels.segments import merge_node, new_scratch
from tailpath.model.border import Border
from tailpath.solvers.published.solution import AtomSolution
from tailpath.solvers.published.sweeps import Settings, augment

#: The next atom to try below the first, and where to leave it at that.
BELOW, LEAST = 1 / 10, 1e-30
#: Rounds of planning after which atoms are as they are.
ROUNDS = 12


def refined(
    solution: AtomSolution, settings: Settings, first: float
) -> dict[object, FloatArray] | None:
    """The atoms of every state with those that it lacks; None where no state lacks any.

    A state lacks an atom at y, half-way between two of its own on the log scale or a tenth of its
    first, if the line misses `y V(s, y)` there by so much that the CVaR at level max(y, `first`)
    is off by more than `settings.adapt`.
    """
    assert settings.adapt is not None
    ssp = solution.ssp
    own = [solution.atoms[mine] for mine in _rows(solution)]
    tried = {state: _with_candidates(own[k]) for k, state in enumerate(ssp.states)}
    fine = augment(ssp, tried, settings)
    core, model = fine.core, fine.model
    atoms, n = model.atoms, fine.n
    member = core.to_nodes(np.arange(ssp.n_states))
    value = (solution.value - Border(ssp).potential[:, None])[member]
    known = np.append(0.0, solution.atoms)
    line = np.array([np.interp(atoms, known, np.append(0.0, known[1:] * row)) for row in value])
    fine.work.slope[:n] = np.diff(line.reshape(n, -1), prepend=0.0, axis=1) / model.width
    limit, scratch = settings.adapt * np.maximum(atoms, first), new_scratch(model)
    lacks = np.zeros((n, len(atoms)), dtype=np.bool_)
    for node in range(n):
        merge_node(model, fine.work, node, scratch)
        choices = int(np.diff(model.node_choices[node : node + 2])[0])
        best = scratch.area[:choices, : len(atoms)].min(axis=0)
        lacks[node] = model.own[model.grid[node]] & (best - line[node] > limit)
    if not lacks.any():
        return None
    found = {}
    for k, state in enumerate(ssp.states):
        node = int(core.node_of[k])
        added = atoms[lacks[node]] if 0 <= node < n else atoms[:0]
        found[state] = np.union1d(own[k], added)
    return found


def _rows(solution: AtomSolution) -> BoolArray:
    """Which atoms each state has."""
    if solution.grids is None:
        return np.ones(solution.value.shape, dtype=np.bool_)
    rows = solution.grids.rows().copy()
    rows[:, -1] = True
    return rows


def _with_candidates(own: FloatArray) -> FloatArray:
    below = own[:1][own[:1] > LEAST] * BELOW
    return np.unique(np.concatenate([below, own, np.sqrt(own[:-1] * own[1:])]))
