"""Value iteration over (state, atom): what CVaRVIQ and CVaRVILI share.

Both planners look for the fixed point of

    T[V](s, y) = min_a max_xi sum_o P_o xi_o (c_o + gamma V(s_o, y xi_o)),
                 sum_o P_o xi_o = 1,  0 <= xi_o <= 1 / y

with `y V(s, y)` linear between the atoms, on the *core* of the model (`analysis/core.py`), where it
is unique. By default values start at E(s) / y, E the least expected cost: one step of the
risk-neutral policy does not exceed it, since with xi <= 1 / y

    sum_o P_o (y xi_o c_o + gamma E(s_o)) <= sum_o P_o (c_o + E(s_o)) = E(s).

So T[V] <= V there, T is monotone, and values *fall*: first in a few sweeps with the choices of the
risk-neutral policy alone, then with all. Nodes are updated by rising E, each from the newest
values. `docs/planners.md` says why, and what the residual means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tailpath.analysis.core import Core, core_of, loose_core_of
from tailpath.errors import OptionError
from tailpath.graph import BoolArray, FloatArray, IntArray, Transitions
from tailpath.kernels.atom_policy import PRINTED, SHARED, VERTEX
from tailpath.kernels.quantile import sweep_atoms
from tailpath.kernels.rounding import SAME_MASS
from tailpath.kernels.segments import AtomModel, AtomOutcomes, AtomWork, new_scratch
from tailpath.model.border import Border
from tailpath.model.potential import refuse_signed
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_alpha
from tailpath.policies.atoms import Atoms, Grids, grids_of
from tailpath.solvers.expectation import solve_expected

#: Where values start: above those of the risk-neutral policy, and fall; or at 0 as published, and
#: rise.
STARTS = ("neutral", "zero")
FACTORS = {"shared": SHARED, "vertex": VERTEX, "printed": PRINTED}

#: So many sweeps, at most, with the choices of the risk-neutral policy alone: more cost more than
#: they save.
START_SWEEPS = 8
#: One sweep: returns the largest move of a value.
Sweep = Callable[[], float]


@dataclass(frozen=True, eq=False)
class Augmented:
    """A model made ready for sweeps over (node, atom): the core of the reduced model of `given`,
    its nodes by rising expected cost, and the kernels' arrays. `risk_neutral` is the core choice of
    the risk-neutral policy at each node.
    """

    core: Core
    model: AtomModel
    work: AtomWork
    risk_neutral: IntArray
    given: SSP

    @property
    def n(self) -> int:
        return self.core.n

    @cached_property
    def grids(self) -> Grids | None:
        """Which atoms belong to which state of the model; None where all belong to all."""
        if self.model.same_grid:
            return None
        inside = (self.core.node_of >= 0) & (self.core.node_of < self.n)
        of_state = self.model.grid[np.where(inside, self.core.node_of, self.n)]
        return Grids(self.model.own, of_state.astype(np.int32))


@dataclass(frozen=True)
class Settings:
    """How a planner runs; checked when made."""

    tolerance: float
    gamma: float
    max_sweeps: int
    start: str
    factors: str
    adapt: float | None = None

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise OptionError(f"tolerance must be positive, not {self.tolerance!r}")
        if self.adapt is not None and not self.adapt > 0:
            raise OptionError(f"adapt must be positive, not {self.adapt!r}")
        check_alpha(self.gamma, "gamma")
        if self.max_sweeps < 1:
            raise OptionError(f"max_sweeps must be 1 or more, not {self.max_sweeps!r}")
        for what, known in (("start", STARTS), ("factors", tuple(FACTORS))):
            if getattr(self, what) not in known:
                use = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
                raise OptionError(f"unknown {what} {getattr(self, what)!r}; use {use}")

    @property
    def rule(self) -> int:
        return FACTORS[self.factors]


def augment(ssp: SSP, atoms: Atoms | None, settings: Settings) -> Augmented:
    """Cut the model to its core, its nodes by rising expected cost, and choose the first values."""
    every, grids = grids_of(ssp, atoms)
    if settings.gamma < 1:
        refuse_signed(ssp, "a planner with a discount")
    given, ssp = ssp, Border(ssp).model
    core = core_of(ssp) if settings.gamma == 1 else loose_core_of(ssp)
    expected = solve_expected(ssp)
    core = core.renumbered(np.argsort(core.to_nodes(expected.value), kind="stable"))
    value = core.to_nodes(expected.value)
    value = value if settings.start == "neutral" else np.zeros(core.n)
    # `y V(s, y)` is at first the expected cost for all y > 0.
    slope = np.zeros((core.n + 1, len(every)))
    slope[: core.n, 0] = value / every[0]
    work = AtomWork(value[:, None] / every, slope)
    model = _atom_model(core, every, grids, settings.gamma)
    return Augmented(core, model, work, core.core_choices(expected.choices), given)


def _atom_model(core: Core, atoms: FloatArray, grids: Grids | None, gamma: float) -> AtomModel:
    grid, own = _node_grids(core, grids, len(atoms))
    rows = core.transitions
    return AtomModel(
        node_choices=core.transitions.state_rows,
        outcomes=outcomes_of(rows, gamma),
        atoms=atoms,
        width=np.diff(atoms, prepend=0.0),
        atom_limits=np.append(
            np.column_stack([atoms, atoms * (1 + SAME_MASS)]), [[0.0, np.inf]], axis=0
        ),
        grid=grid,
        own=own,
        same_grid=bool(own.all()),
        floor=min(float(rows.cost.max(initial=0.0)), 1.0),
    )


def _node_grids(core: Core, grids: Grids | None, n_atoms: int) -> tuple[IntArray, BoolArray]:
    """The grid of every node, and the atoms of every grid; a zero-cost component has those of all
    members.
    """
    if grids is None:
        return np.zeros(core.n + 1, dtype=np.int64), np.ones((1, n_atoms), dtype=np.bool_)
    state = np.flatnonzero((core.node_of >= 0) & (core.node_of < core.n))
    marked = np.zeros((core.n + 1, n_atoms), dtype=np.bool_)
    np.logical_or.at(marked, core.node_of[state], grids.own[grids.of_state[state]])
    marked[core.n] = marked[0] if core.n else True
    own, grid = np.unique(marked, axis=0, return_inverse=True)
    return grid.reshape(-1), own


def outcomes_of(rows: Transitions, gamma: float) -> AtomOutcomes:
    return AtomOutcomes(rows.row_start, rows.target, rows.probability, rows.cost, float(gamma))


@dataclass(frozen=True)
class Progression:
    sweeps: int
    residual: float
    converged: bool


def iterate(
    sweep: Sweep, tolerance: float, max_sweeps: int, progress: Progress | None
) -> Progression:
    """Sweep until no value moves by more than the tolerance."""
    for sweeps in range(1, max_sweeps + 1):
        residual = sweep()
        if progress is not None:
            progress(sweeps, residual)
        if residual <= tolerance:
            return Progression(sweeps, residual, True)
    return Progression(max_sweeps, residual, False)


def start_from_risk_neutral(augmented: Augmented, tolerance: float) -> None:
    """Bring values nearer to those of the risk-neutral policy, by sweeps over its choices alone."""
    nodes = np.arange(augmented.n + 1)
    rows = augmented.core.transitions.restrict(augmented.risk_neutral)
    outcomes = outcomes_of(rows, augmented.model.outcomes.gamma)
    alone = augmented.model._replace(node_choices=nodes, outcomes=outcomes)
    iterate(merge_sweep(replace(augmented, model=alone)), tolerance, START_SWEEPS, None)


def merge_sweep(augmented: Augmented) -> Sweep:
    """The sweep of CVaRVIQ."""
    model, work, scratch = augmented.model, augmented.work, new_scratch(augmented.model)
    return lambda: float(sweep_atoms(model, work, scratch, np.arange(augmented.n)))
