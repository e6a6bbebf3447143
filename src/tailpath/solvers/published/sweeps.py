"""Value iteration over (state, atom): what CVaRVIQ and CVaRVILI share.

Both planners look for the fixed point of

    T[V](s, y) = min_a max_xi sum_o P_o xi_o (c_o + gamma V(s_o, y xi_o)),    sum_o P_o xi_o = 1,  0 <= xi_o <= 1 / y

with `y V(s, y)` linear between the atoms. They work on the *core* of the model (sure states, safe choices, free components drawn together,
see `expectation`), where it is unique. The papers start from V = 0 (`start="zero"`), and values rise. As long as they are too low, walking
in a safe circle looks better than any way out, and each sweep adds no more than the cost of a step, hundreds of sweeps on a grid with
obstacles of cost 100. So by default the risk-neutral policy is evaluated first, by the same operator with its choices alone; from that
value T can only gain (it is monotone), and values *fall*, in whatever order nodes are updated. Stopped early, the policy is still one that
has been improved, not one fooled by low values.

The *order* puts cheap nodes first, since costs flow from the goal outwards, and is cut into blocks such that no node shares a block with the
node its risk-neutral policy most likely goes to. A block is computed from the values before it, by as many threads as there are, then
written: the numbers are the same for any number of threads. With T non-expansive, the residual max |V_new - V| of a full sweep bounds
|T[V] - V| of the result. It is no bound on the error: that takes the time still to go into account.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import Core, core_of, loose_core_of
from tailpath.errors import OptionError, TailpathWarning
from tailpath.kernels.atom_policy import PUBLISHED, SHARED, VERTEX
from tailpath.kernels.quantile import Problem, Work, commit, compute, cut_blocks, sweep
from tailpath.model.ragged import members_of
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress, check_gamma, processors
from tailpath.policies.atoms import Atoms, Grids, grids_of
from tailpath.solvers.expectation import solve_expected

#: A node is passed over while its successors have moved by less than this share of the tolerance: little enough that CVaRVIQ and CVaRVILI,
#: which passes nothing over, agree to far better than 1e-6 at the paper's tolerance of 1e-3.
SLACK = 1e-5
#: The risk-neutral policy is evaluated to this share of the tolerance, in at most so many sweeps.
START = 1 / 10
START_SWEEPS = 10_000
#: Merged segments that are worth a second thread.
WORTH_A_THREAD = 10_000
#: Where values start: at those of the risk-neutral policy, and fall; or at 0 as published, and rise.
STARTS = ("neutral", "zero")
FACTORS = {"shared": SHARED, "vertex": VERTEX, "published": PUBLISHED}


@dataclass(frozen=True, eq=False)
class Augmented:
    """A model made ready for sweeps over (node, atom): its core, the kernels' arrays, the order and its blocks.

    `neutral` is the core choice of the risk-neutral policy at each node.
    """

    core: Core
    problem: Problem
    work: Work
    order: NDArray[np.int64]
    bounds: NDArray[np.int64]
    neutral: NDArray[np.int64]

    @property
    def n(self) -> int:
        return self.core.n

    @cached_property
    def grids(self) -> Grids | None:
        """Which atoms belong to which state of the model; None where all belong to all."""
        if self.problem.alike:
            return None
        inside = (self.core.node_of >= 0) & (self.core.node_of < self.n)
        of_state = self.problem.grid[np.where(inside, self.core.node_of, self.n)]
        return Grids(self.problem.own, of_state.astype(np.int32))

    @cached_property
    def segments(self) -> int:
        """What one full sweep merges."""
        return len(self.problem.target) * len(self.problem.atoms)


@dataclass(frozen=True)
class Progression:
    """How the sweeps ended."""

    sweeps: int
    residual: float
    converged: bool


@dataclass(frozen=True)
class Settings:
    """How a planner runs: when to stop, from where, and with which risk factors; checked when made."""

    tolerance: float
    gamma: float
    max_sweeps: int
    start: str
    factors: str

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise OptionError(f"tolerance must be positive, not {self.tolerance!r}")
        check_gamma(self.gamma)
        if self.max_sweeps < 1:
            raise OptionError(f"max_sweeps must be 1 or more, not {self.max_sweeps!r}")
        for given, known, what in ((self.start, STARTS, "start"), (self.factors, tuple(FACTORS), "factors")):
            if given not in known:
                raise OptionError(f"unknown {what} {given!r}; use {', '.join(map(repr, known[:-1]))} or {known[-1]!r}")

    @property
    def rule(self) -> int:
        """The kernels' number for the factors."""
        return FACTORS[self.factors]


def augment(ssp: SSP, atoms: Atoms | None, settings: Settings) -> Augmented:
    """Cut the model to its core and choose the first values and the order of the sweeps; `atoms` as `grids_of` takes them."""
    every, grids = grids_of(ssp, atoms)
    gamma = settings.gamma
    core = core_of(ssp) if gamma == 1 else loose_core_of(ssp)
    expected = solve_expected(ssp)
    value = core.gather(expected.value)
    problem = _problem(core, every, grids, gamma)
    order, bounds = _blocks(problem, value)
    work = _first_work(value if gamma == 1 and settings.start == "neutral" else np.zeros(core.n), len(every))
    return Augmented(core, problem, work, order, bounds, core.core_choices(expected.choices))


def _problem(core: Core, atoms: FloatArray, grids: Grids | None, gamma: float) -> Problem:
    grid, own = _node_grids(core, grids, len(atoms))
    return Problem(
        node_choices=core.state_choices,
        choice_outcomes=core.choice_outcomes,
        target=np.minimum(core.target, core.n),
        probability=core.probability,
        cost=core.ssp.outcome_cost[core.outcome],
        gamma=float(gamma),
        atoms=atoms,
        width=np.diff(atoms, prepend=0.0),
        longest=int(np.diff(core.choice_outcomes).max(initial=1)),
        grid=grid,
        own=own,
        alike=bool(own.all()),
    )


def _node_grids(core: Core, grids: Grids | None, n_atoms: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The grid of every node, and the atoms of every grid. States of a free component are one node, and have the atoms of all of them."""
    if grids is None:
        return np.zeros(core.n + 1, dtype=np.int64), np.ones((1, n_atoms), dtype=np.bool_)
    state = np.flatnonzero((core.node_of >= 0) & (core.node_of < core.n))
    marked = np.zeros((core.n + 1, n_atoms), dtype=np.bool_)
    np.logical_or.at(marked, core.node_of[state], grids.own[grids.of_state[state]])
    marked[core.n] = marked[0] if core.n else True
    own, grid = np.unique(marked, axis=0, return_inverse=True)
    return grid.reshape(-1), own


def _first_work(value: FloatArray, n_atoms: int) -> Work:
    n = len(value)
    values = np.repeat(value[:, None], n_atoms, axis=1)
    return Work(
        value=values,
        slope=np.vstack([values, np.zeros((1, n_atoms))]),
        area=np.empty((n, n_atoms)),
        due=np.ones(n, dtype=np.bool_),
        drift=np.zeros(n),
        stamp=np.zeros(n + 1, dtype=np.int64),
        seen=np.zeros(n, dtype=np.int64),
    )


def _blocks(problem: Problem, value: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes by rising value, and where each block of them begins."""
    order = np.argsort(value, kind="stable")
    bounds = np.empty(len(value) + 2, dtype=np.int64)
    count = cut_blocks(problem, value, order, bounds)
    return order, bounds[: count + 1]


# ---------------------------------------------------------------------- sweeps


def iterate(
    augmented: Augmented, sweep: Callable[[int], float], tolerance: float, max_sweeps: int, progress: Progress | None
) -> Progression:
    """Sweep until a full sweep moves no value by more than the tolerance. `sweep(clock)` returns the largest move."""
    work, clock, settled = augmented.work, 1, False
    work.stamp[:], work.drift[:] = 0, 0.0
    for sweeps in range(1, max_sweeps + 1):
        full = sweeps == 1 or settled or sweeps == max_sweeps
        if full:
            work.seen[:] = 0
        residual = float(sweep(clock))
        clock += len(augmented.bounds)
        settled = residual <= tolerance
        if progress is not None:
            progress(sweeps, residual)
        if full and settled:
            return Progression(sweeps, residual, True)
    return Progression(max_sweeps, residual, False)


def start_from_neutral(augmented: Augmented, team: Team, tolerance: float) -> None:
    """Bring the values to those of the risk-neutral policy, by sweeps over its choices alone."""
    problem, chosen = augmented.problem, augmented.neutral
    outcome, ends = members_of(problem.choice_outcomes, chosen)
    alone = problem._replace(
        node_choices=np.arange(augmented.n + 1),
        choice_outcomes=ends,
        target=problem.target[outcome],
        probability=problem.probability[outcome],
        cost=problem.cost[outcome],
    )
    policy = replace(augmented, problem=alone)
    iterate(policy, merge_sweep(policy, team, SLACK * START * tolerance), START * tolerance, START_SWEEPS, None)


def warn_unless_converged(progression: Progression, tolerance: float) -> None:
    if not progression.converged:
        warnings.warn(
            f"no convergence within {progression.sweeps} sweeps: the last one still moved a value by {progression.residual:.3g},"
            f" the tolerance is {tolerance:g}",
            TailpathWarning,
            stacklevel=4,
        )


class Team:
    """Threads that share work by parts; a team of one is the calling thread alone, and starts nothing."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def share(self, first: int, last: int, function: Callable[[int, int], Any]) -> None:
        """Call `function` on equal parts of first .. last - 1, one per thread, this one included; parts must not need each other."""
        cuts = [first + (last - first) * k // self.threads for k in range(self.threads + 1)]
        others = [self._pool.submit(function, a, b) for a, b in pairwise(cuts[1:])] if self._pool is not None else []
        function(cuts[0], cuts[1])
        for other in others:
            other.result()


def team_for(augmented: Augmented, threads: int | None) -> Team:
    """All processors the process may use, unless told otherwise or the model is too small for more than one."""
    if threads is not None and threads < 1:
        raise OptionError(f"threads must be 1 or more, not {threads!r}")
    if augmented.segments < 100 * WORTH_A_THREAD:
        return Team(1)
    return Team(threads or processors())


def merge_sweep(augmented: Augmented, team: Team, slack: float) -> Callable[[int], float]:
    """The sweep of CVaRVIQ: blocks one after the other, large ones by all threads, unless next to nothing is left to do."""
    problem, work, order, bounds = augmented.problem, augmented.work, augmented.order, augmented.bounds

    def alone(clock: int) -> float:
        return float(sweep(problem, work, order, bounds, clock, slack))

    runs = _runs(augmented, team.threads)
    if team.threads == 1 or not any(large for _, _, large in runs):
        return alone

    def together(clock: int) -> float:
        if augmented.segments * np.count_nonzero(work.due) < WORTH_A_THREAD * len(bounds) * augmented.n:
            return alone(clock)
        change = 0.0
        for begin, end, large in runs:
            first, last = int(bounds[begin]), int(bounds[end])
            if large:
                team.share(first, last, lambda a, b: compute(problem, work, order, a, b))
                moved = commit(problem, work, order, first, last, clock + begin, slack)
            else:
                moved = sweep(problem, work, order, bounds[begin : end + 1], clock + begin, slack)
            change = max(change, float(moved))
        return change

    return together


def _runs(augmented: Augmented, threads: int) -> list[tuple[int, int, bool]]:
    """Blocks worth sharing, one by one, and the runs of small blocks between them: (first block, last block + 1, large)."""
    least = threads * WORTH_A_THREAD * augmented.n / max(augmented.segments, 1)
    runs: list[tuple[int, int, bool]] = []
    for block, size in enumerate(np.diff(augmented.bounds).tolist()):
        if runs and size < least and not runs[-1][2]:
            runs[-1] = (runs[-1][0], block + 1, False)
        else:
            runs.append((block, block + 1, size >= least))
    return runs
