"""Nested (iterated) CVaR, for contrast: the tail is taken again at every step.

    rho(s) = min over choices of CVaR_alpha( c + rho(s') )

It is easy, Markovian and consistent in time, and another question: the adversary who picks the
worst alpha of a run has a fresh alpha at every step here, and may not save some of it for later. So
rho is at least the mean of the same policy and often far above the CVaR of its total cost, but may
lie below it, too (tests say so); it is infinite where the adversary can keep a run from ever
arriving: where no choice leads on with a probability above 1 - alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailpath.graph import BoolArray, FloatArray
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_alpha
from tailpath.policies.kinds import MarkovPolicy
from tailpath.solvers.related.levels import Levels, levels_of

#: Sweeps end when no value moves by more than this part of it.
SAME = 1e-12
MOST_SWEEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class NestedSolution:
    """`value` by state, infinite where nested CVaR is; the policy takes the risk-neutral choice
    there.
    """

    value: FloatArray
    policy: MarkovPolicy
    sweeps: int


def solve_nested_cvar(ssp: SSP, alpha: float, progress: Progress | None = None) -> NestedSolution:
    """The least nested CVaR from every state."""
    alpha = check_alpha(alpha)
    levels = levels_of(ssp, "nested CVaR")
    finite = _finite(levels, alpha)
    value = np.where(finite, 0.0, np.inf)
    choices = levels.expected.choices.copy()
    inside = finite[levels.states]
    best = np.zeros(len(levels.states), dtype=np.int64)
    for sweeps in range(1, MOST_SWEEPS + 1):
        least, best = levels.best(_tail_means(levels, value, alpha))
        new, old = least[inside], value[levels.states][inside]
        moved = float(np.max(np.abs(new - old) / np.maximum(new, 1.0), initial=0.0))
        value[levels.states] = np.where(inside, least, np.inf)
        if progress is not None:
            progress(sweeps, moved)
        if moved <= SAME:
            break
    choices[levels.states[inside]] = levels.choice[best[inside]]
    return NestedSolution(value * levels.unit, MarkovPolicy.from_choices(ssp, choices), sweeps)


def _tail_means(levels: Levels, value: FloatArray, alpha: float) -> FloatArray:
    """The mean of the worst alpha of `level + value` for every choice."""
    worth = levels.level + value[levels.rows.target]
    owner = levels.rows.source
    order = np.lexsort((-worth, owner))
    chance = levels.rows.probability[order]
    before = np.cumsum(chance) - chance
    taken = np.clip(alpha - (before - before[levels.begin][owner]), 0.0, chance)
    with np.errstate(invalid="ignore"):
        terms = np.where(taken > 0, taken * worth[order], 0.0)
    sums = np.add.reduceat(taken, levels.begin)
    return np.asarray(np.add.reduceat(terms, levels.begin) / sums)


def _finite(levels: Levels, alpha: float) -> BoolArray:
    """Where nested CVaR is finite: within the set, every choice taken stays, and each leads on with
    a probability above 1 - alpha.
    """
    is_goal = levels.ssp.is_goal
    inside = np.isfinite(levels.expected.value)
    while True:
        stays = np.logical_and.reduceat(inside[levels.rows.target], levels.begin)
        reached = is_goal.copy()
        while True:
            onwards = np.add.reduceat(
                np.where(reached[levels.rows.target], levels.rows.probability, 0.0), levels.begin
            )
            able = stays & (onwards > (1 - alpha) * (1 + 1e-12))
            new = reached.copy()
            new[levels.states] |= np.logical_or.reduceat(able, levels.first[:-1])
            new &= inside
            if (new == reached).all():
                break
            reached = new
        if (reached == inside).all():
            return reached
        inside = reached
