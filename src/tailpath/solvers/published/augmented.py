"""A model made ready for value iteration over (state, atom): its core, the arrays of the kernels
and the first values, with the settings that decide about them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tailpath.analysis.core import Core, core_of, loose_core_of
from tailpath.errors import OptionError
from tailpath.graph import BoolArray, FloatArray, IntArray, Transitions, offsets_from_lengths
from tailpath.kernels.atom_policy import PRINTED, SHARED, VERTEX
from tailpath.kernels.bundles import Bundles, make_bundles
from tailpath.kernels.rounding import SAME_MASS
from tailpath.kernels.segments import AtomModel, AtomOutcomes, AtomWork
from tailpath.model.potential import refuse_signed
from tailpath.model.ssp import SSP
from tailpath.options import check_gamma
from tailpath.policies.atoms import Atoms, Grids, grids_of
from tailpath.solvers.expectation import solve_expected

#: Models that merge more segments than this in a sweep are swept in so many parts.
WORTH_PARTS = 1_000_000
PARTS = 4
#: Where values start: above those of the risk-neutral policy, and fall; or at 0 as published, and
#: rise.
STARTS = ("neutral", "zero")
FACTORS = {"shared": SHARED, "vertex": VERTEX, "printed": PRINTED}

#: Threads that share the work of a sweep; None is the calling thread alone.
Pool = ThreadPoolExecutor | None


@dataclass(frozen=True, eq=False)
class Augmented:
    """A model made ready for sweeps over (node, atom): its core, and the kernels' arrays.

    `risk_neutral` is the core choice of the risk-neutral policy at each node, `expected` its cost;
    `falling` says that values start above the result. `given` is the model with costs as given, of
    which the core is that of the reduced one.
    """

    core: Core
    model: AtomModel
    work: AtomWork
    risk_neutral: IntArray
    expected: FloatArray
    falling: bool
    worth_parts: int
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

    @cached_property
    def segments(self) -> int:
        """What one full sweep merges."""
        return len(self.model.outcomes.target) * len(self.model.atoms)

    @property
    def settled(self) -> AtomWork:
        """What was found by sweeps, as all parts see it."""
        return self.work._replace(slope_before=self.work.slope)

    @property
    def parts(self) -> int:
        """In how many parts a sweep is made: equal parts of the order, whatever that is."""
        return PARTS if self.segments > self.worth_parts else 1

    def share(self, pool: Pool, function: Callable[[int, int, int], Any]) -> list[Any]:
        """Call `function(first, last, part)` for every part, which must not need each other, by the
        threads of a pool if there is one; returns what they return.
        """
        cuts = [self.n * part // self.parts for part in range(self.parts + 1)]
        return list((pool.map if pool else map)(function, cuts, cuts[1:], range(self.parts)))


@dataclass(frozen=True)
class Settings:
    """How a planner runs: when to stop, from where, with which risk factors, and from how many
    segments on in parts; checked when made.
    """

    tolerance: float
    gamma: float
    max_sweeps: int
    start: str
    factors: str
    worth_parts: int = WORTH_PARTS

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise OptionError(f"tolerance must be positive, not {self.tolerance!r}")
        check_gamma(self.gamma)
        if self.max_sweeps < 1:
            raise OptionError(f"max_sweeps must be 1 or more, not {self.max_sweeps!r}")
        for given, known, what in (
            (self.start, STARTS, "start"),
            (self.factors, tuple(FACTORS), "factors"),
        ):
            if given not in known:
                raise OptionError(
                    f"unknown {what} {given!r}; use {', '.join(map(repr, known[:-1]))} or"
                    f" {known[-1]!r}"
                )

    @property
    def rule(self) -> int:
        """The kernels' number for the factors."""
        return FACTORS[self.factors]


def augment(ssp: SSP, atoms: Atoms | None, settings: Settings) -> Augmented:
    """Cut the model to its core, its nodes by rising expected cost, and choose the first values;
    `atoms` as `grids_of` takes them.
    """
    every, grids = grids_of(ssp, atoms)
    if settings.gamma < 1:
        refuse_signed(ssp, "a planner with a discount")
    given, ssp = ssp, ssp.reduced
    core = core_of(ssp) if settings.gamma == 1 else loose_core_of(ssp)
    expected = solve_expected(ssp)
    core = core.renumbered(np.argsort(core.to_nodes(expected.value), kind="stable"))
    value = core.to_nodes(expected.value)
    falling = settings.start == "neutral"
    work = _first_work(value if falling else np.zeros(core.n), every, len(core.choice))
    model = _atom_model(core, every, grids, settings.gamma)
    return Augmented(
        core,
        model,
        work,
        core.core_choices(expected.choices),
        value,
        falling,
        settings.worth_parts,
        given,
    )


def _atom_model(core: Core, atoms: FloatArray, grids: Grids | None, gamma: float) -> AtomModel:
    grid, own = _node_grids(core, grids, len(atoms))
    rows = core.transitions
    bundles = bundles_of(core.state_choices, rows)
    return AtomModel(
        node_choices=core.state_choices,
        outcomes=outcomes_of(rows, gamma),
        bundles=bundles,
        atoms=atoms,
        width=np.diff(atoms, prepend=0.0),
        inverse_atoms=1 / atoms,
        atom_limits=np.append(
            np.column_stack([atoms, atoms * (1 + SAME_MASS)]), [[0.0, np.inf]], axis=0
        ),
        most_runs=int(np.diff(bundles.bundle_runs).max(initial=1)),
        most_choices=int(np.diff(core.state_choices).max(initial=1)),
        grid=grid,
        own=own,
        same_grid=bool(own.all()),
        floor=min(float(rows.cost.max(initial=0.0)), 1.0),
    )


def _node_grids(core: Core, grids: Grids | None, n_atoms: int) -> tuple[IntArray, BoolArray]:
    """The grid of every node, and the atoms of every grid. States of a zero-cost component are one
    node,
    and have the atoms of all of them.
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
    """The rows of choices, as the kernels take them."""
    return AtomOutcomes(rows.row_start, rows.target, rows.probability, rows.cost, float(gamma))


def bundles_of(node_choices: IntArray, rows: Transitions) -> Bundles:
    """The choices of each node in bundles with much the same outcomes, which share their runs."""
    bundles = Bundles(
        node_bundles=np.empty(len(node_choices), dtype=np.int64),
        bundle_choices=np.empty(rows.n + 1, dtype=np.int64),
        bundle_runs=np.empty(rows.n + 1, dtype=np.int64),
        run_target=np.empty(len(rows.target), dtype=np.int32),
        run_cost=np.empty(len(rows.target)),
        position=np.empty(len(rows.target), dtype=np.int32),
        choice_start=np.empty(0, dtype=np.int64),
        run_probability=np.empty(0),
    )
    count, runs = make_bundles(node_choices, rows.row_start, rows.target, rows.cost, bundles)
    bundle_choices = bundles.bundle_choices[: count + 1].copy()
    bundle_runs = bundles.bundle_runs[: count + 1].copy()
    # Each choice of a bundle has a probability for every run of it.
    choice_start = offsets_from_lengths(np.repeat(np.diff(bundle_runs), np.diff(bundle_choices)))
    run = choice_start[rows.source] + bundles.position
    # Of nothing numpy counts integers.
    run_probability = np.bincount(run, rows.probability, int(choice_start[-1])).astype(np.float64)
    return bundles._replace(
        bundle_choices=bundle_choices,
        bundle_runs=bundle_runs,
        run_target=bundles.run_target[:runs].copy(),
        run_cost=bundles.run_cost[:runs].copy(),
        choice_start=choice_start,
        run_probability=run_probability,
    )


def _first_work(expected: FloatArray, atoms: FloatArray, n_choices: int) -> AtomWork:
    """`y V(s, y)` at the expected cost for all y > 0: straight up to the first atom, and level from
    there.
    """
    n = len(expected)
    slope = np.zeros((n + 1, len(atoms)))
    slope[:n, 0] = expected / atoms[0]
    margin = np.full(n_choices, -np.inf)
    return AtomWork(
        value=expected[:, None] / atoms,
        slope=slope,
        slope_before=slope.copy(),
        history=np.zeros((n + 1, 8)),
        margin=margin,
    )
