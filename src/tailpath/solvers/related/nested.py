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

from tailpath.analysis.core import Core
from tailpath.graph import BoolArray, FloatArray
from tailpath.kernels.rounding import SAME_MASS
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_alpha
from tailpath.policies.kinds import MarkovPolicy
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.related.levels import best_choices, rising_core_of

#: Sweeps end when no value moves by more than this part of it.
SAME = 1e-12
MAX_SWEEPS = 1_000_000


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
    core, unit = rising_core_of(ssp, "nested CVaR")
    finite = _finite(core, alpha)
    value = np.where(finite, 0.0, np.inf)
    best = core.state_choices[:-1]
    for sweeps in range(1, MAX_SWEEPS + 1):
        least, best = best_choices(core, _tail_means(core, np.append(value, 0.0), alpha))
        new, old = least[finite], value[finite]
        moved = float(np.max(np.abs(new - old) / np.maximum(new, 1.0), initial=0.0))
        value[finite] = new
        if progress is not None:
            progress(sweeps, moved)
        if moved <= SAME:
            break
    choices, taken = solve_expected(ssp).choices.copy(), core.choice[best[finite]]
    choices[ssp.choice_state[taken]] = taken
    policy = MarkovPolicy.from_choices(ssp, choices)
    return NestedSolution(core.to_states(value) * unit, policy, sweeps)


def _tail_means(core: Core, value: FloatArray, alpha: float) -> FloatArray:
    """The mean of the worst alpha of `level + value` for every choice."""
    begin, owner = core.choice_outcomes[:-1], core.transitions.source
    q_value = core.level + value[core.target]
    order = np.lexsort((-q_value, owner))
    chance = core.probability[order]
    before = np.cumsum(chance) - chance
    taken = np.clip(alpha - (before - before[begin][owner]), 0.0, chance)
    with np.errstate(invalid="ignore"):
        terms = np.where(taken > 0, taken * q_value[order], 0.0)
    return np.asarray(np.add.reduceat(terms, begin) / np.add.reduceat(taken, begin))


def _finite(core: Core, alpha: float) -> BoolArray:
    """Where nested CVaR is finite: within the set, every choice taken stays, and each leads on with
    a probability above 1 - alpha. Node n, the goal, is always inside.
    """
    begin, target = core.choice_outcomes[:-1], core.target
    inside = np.ones(core.n + 1, dtype=np.bool_)
    while True:
        stays = np.logical_and.reduceat(inside[target], begin)
        new, reached = np.arange(core.n + 1) == core.n, ~inside
        while (new != reached).any():
            reached = new
            onwards = np.add.reduceat(np.where(reached[target], core.probability, 0.0), begin)
            able = stays & (onwards > (1 - alpha) * (1 + SAME_MASS))
            reaches = np.append(np.logical_or.reduceat(able, core.state_choices[:-1]), True)
            new = reached | (reaches & inside)
        if (reached == inside).all():
            return reached[:-1]
        inside = reached
