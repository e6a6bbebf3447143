"""Value iteration over (state, atom): what CVaRVIQ and CVaRVILI share.

Both planners look for the fixed point of

    T[V](s, y) = min_a max_xi sum_o P_o xi_o (c_o + gamma V(s_o, y xi_o)),    sum_o P_o xi_o = 1,  0
                                                                              <= xi_o <= 1 / y

with `y V(s, y)` linear between the atoms. They work on the *core* of the model (almost sure states,
safe choices, zero-cost components drawn together, see `expectation`), where it is unique. The
papers start from V = 0 (`start="zero"`), and values rise. As long as they are too low, walking in a
safe cycle looks better than any way out, and each sweep adds no more than the cost of a step,
hundreds of sweeps on a grid with obstacles of cost 100. So by default values start at E(s) / y, E
the least expected cost. No tail of mass y can have a larger mean, since costs are not negative; in
other words, `y V(s, y)` is E for all y > 0, and one step of the risk-neutral policy does not exceed
it: with xi <= 1 / y

    sum_o P_o (y xi_o c_o + gamma E(s_o)) <= sum_o P_o (c_o + E(s_o)) = E(s).

So T[V] <= V there, T is monotone, and values *fall*, in whatever order nodes are updated: first a
few sweeps with the choices of the risk-neutral policy alone, which cost less, then all choices.
Stopped early, the policy is still one that has been improved, not one fooled by low values.

The *order* puts cheap nodes first, since costs flow from the goal outwards: in turns those that are
cheap at the smallest atom and at the largest, as the careful and the careless go different ways. In
large models it is cut into `PARTS` equal parts, which see each other as they were before the sweep:
that takes hardly more sweeps, and the numbers are the same for any number of threads. With T
non-expansive, the residual max |V_new - V| of a full sweep bounds |T[V] - V| of the result. It is
no bound on the error: that takes the time still to go into account.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.graph import IntArray
from tailpath.kernels.quantile import end_sweep, sweep_atoms
from tailpath.kernels.segments import LAST_BACKUP, LAST_MOVE, LAST_MOVE_BEFORE, PART, new_scratch
from tailpath.options import Progress, processors, warn_caller
from tailpath.solvers.published.augmented import Augmented, Pool, bundles_of, outcomes_of
from tailpath.texts import count

#: A node is passed over while its successors have moved by less than this share of the tolerance:
#: little enough that CVaRVIQ and CVaRVILI, which passes nothing over, agree to far better than 1e-6
#: at the paper's tolerance of 1e-3.
SLACK = 1e-5
#: So many sweeps, at most, with the choices of the risk-neutral policy alone: more cost more than
#: they save.
START_SWEEPS = 8


@dataclass(frozen=True)
class Progression:
    """How the sweeps ended."""

    sweeps: int
    residual: float
    converged: bool


#: One sweep in some order, at some time: returns the largest move of a value.
Sweep = Callable[[IntArray, int], float]


def iterate(
    augmented: Augmented, sweep: Sweep, tolerance: float, max_sweeps: int, progress: Progress | None
) -> Progression:
    """Sweep until a full sweep moves no value by more than the tolerance."""
    work, settled = augmented.work, False
    for sweeps in range(1, max_sweeps + 1):
        full = sweeps == 1 or settled or sweeps == max_sweeps
        if full:
            work.history[:, LAST_BACKUP] = 0
        # Values that are still too low do not tell what is near.
        near = (
            work.value[:, -(sweeps % 2)] if augmented.falling and sweeps > 1 else augmented.expected
        )
        residual = sweep(np.argsort(near, kind="stable"), sweeps * (augmented.n + 1))
        settled = residual <= tolerance
        if progress is not None:
            progress(sweeps, residual)
        if full and settled:
            return Progression(sweeps, residual, True)
    return Progression(max_sweeps, residual, False)


def start_from_risk_neutral(augmented: Augmented, pool: Pool, tolerance: float) -> None:
    """Bring the values nearer to those of the risk-neutral policy, by sweeps over its choices
    alone.
    """
    nodes = np.arange(augmented.n + 1)
    rows = augmented.core.transitions.restrict(augmented.risk_neutral)
    alone = augmented.model._replace(
        node_choices=nodes,
        outcomes=outcomes_of(rows, augmented.model.outcomes.gamma),
        bundles=bundles_of(nodes, rows),
    )
    policy = replace(
        augmented, model=alone, work=augmented.work._replace(margin=np.full(augmented.n, -np.inf))
    )
    iterate(policy, merge_sweep(policy, pool, SLACK * tolerance), tolerance, START_SWEEPS, None)
    augmented.work.history[:, [LAST_MOVE, LAST_MOVE_BEFORE]] = 0


def warn_unless_converged(progression: Progression, tolerance: float) -> None:
    if not progression.converged:
        warn_caller(
            f"no convergence within {count(progression.sweeps, 'sweep')}: the last one still moved"
            f" a value by {progression.residual:.3g}, the tolerance is {tolerance:g}"
        )


def pool_for(augmented: Augmented, threads: int | None) -> AbstractContextManager[Pool]:
    """All processors the process may use, unless told otherwise or the model is too small for more
    than one.
    """
    if threads is not None and threads < 1:
        raise OptionError(f"threads must be 1 or more, not {threads!r}")
    count = min(threads or processors(), augmented.parts)
    return ThreadPoolExecutor(count) if count > 1 else nullcontext()


def merge_sweep(augmented: Augmented, pool: Pool, slack: float) -> Sweep:
    """The sweep of CVaRVIQ, its parts by all threads."""
    model, work = augmented.model, augmented.work
    scratch = [new_scratch(model) for _ in range(augmented.parts)]

    def sweep(order: IntArray, clock: int) -> float:
        def enter(first: int, last: int, part: int) -> None:
            work.history[order[first:last], PART] = part

        def back_up(first: int, last: int, part: int) -> Any:
            nodes = order[first:last]
            return sweep_atoms(model, work, scratch[part], nodes, part, clock + first, slack)

        augmented.share(None, enter)
        found = augmented.share(pool, back_up)
        if augmented.parts > 1:
            end_sweep(work, clock)
        return float(max(found))

    return sweep
