"""Nested (iterated) CVaR, for comparison with that of the total cost: written in arrays, and
without the care of the exact solver. Every outcome that does not arrive must cost something.
"""

from __future__ import annotations

import numpy as np

from tailpath.analysis.core import Core, core_of
from tailpath.analysis.reachability import almost_sure_states
from tailpath.errors import ModelError
from tailpath.graph import BoolArray, FloatArray, first_of
from tailpath.kernels.rounding import SAME_MASS
from tailpath.model.potential import refuse_signed
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_alpha
from tailpath.policies.kinds import MarkovPolicy
from tailpath.solvers.expectation import solve_expected

#: Sweeps of nested CVaR end when no value moves by more than this part of it.
SAME_NESTED = 1e-12
MAX_SWEEPS = 1_000_000


def solve_nested_cvar(
    ssp: SSP, alpha: float, progress: Progress | None = None
) -> tuple[FloatArray, MarkovPolicy, int]:
    """The least nested (iterated) CVaR from every state, for contrast; with its policy, which is
    risk-neutral where that is infinite, and the number of sweeps.

        rho(s) = min over choices of CVaR_alpha( c + rho(s') )

    It is consistent in time, and another question: the adversary has a fresh alpha at every step,
    and may not save some of it for later. So rho is often far above the CVaR of the total cost, but
    may lie below it, too; it is infinite where no choice leads on with a probability above 1 -
    alpha.
    """
    alpha = check_alpha(alpha)
    core, unit = _rising_core(ssp)
    finite = _finite(core, alpha)
    value = np.where(finite, 0.0, np.inf)
    best = begin = core.transitions.state_rows[:-1]
    for sweeps in range(1, MAX_SWEEPS + 1):
        values = _tail_means(core, np.append(value, 0.0), alpha)
        least = np.minimum.reduceat(values, begin)
        hit = np.flatnonzero(values <= np.repeat(least, np.diff(core.transitions.state_rows)))
        best = hit[np.searchsorted(hit, begin)]
        new, old = least[finite], value[finite]
        moved = float(np.max(np.abs(new - old) / np.maximum(new, 1.0), initial=0.0))
        value[finite] = new
        if progress is not None:
            progress(sweeps, moved)
        if moved <= SAME_NESTED:
            break
    choices, taken = solve_expected(ssp).choices.copy(), core.choice[best[finite]]
    choices[ssp.choice_state[taken]] = taken
    return core.to_states(value) * unit, MarkovPolicy.from_choices(ssp, choices), sweeps


def _rising_core(ssp: SSP) -> tuple[Core, float]:
    """The core and the cost unit; refuses outcomes that cost nothing and do not arrive."""
    refuse_signed(ssp, "nested CVaR")
    if ssp.cost_unit is None:
        raise ModelError("the costs have no common unit; nested CVaR counts costs in units")
    zero_cost = (ssp.outcome_level == 0) & ~ssp.is_goal[ssp.outcome_target]
    for outcome in first_of(zero_cost & almost_sure_states(ssp)[1][ssp.outcome_choice]):
        state = ssp.states[ssp.choice_state[ssp.outcome_choice[outcome]]]
        raise ModelError(
            f"an outcome of state {state!r} costs nothing and does not arrive; nested CVaR needs"
            " costs above 0"
        )
    return core_of(ssp), float(ssp.cost_unit)


def _tail_means(core: Core, value: FloatArray, alpha: float) -> FloatArray:
    """The mean of the worst alpha of `level + value` for every choice."""
    begin, owner = core.transitions.row_start[:-1], core.transitions.source
    q_value = core.level + value[core.transitions.target]
    order = np.lexsort((-q_value, owner))
    chance = core.transitions.probability[order]
    before = np.cumsum(chance) - chance
    taken = np.clip(alpha - (before - before[begin][owner]), 0.0, chance)
    with np.errstate(invalid="ignore"):
        terms = np.where(taken > 0, taken * q_value[order], 0.0)
    return np.asarray(np.add.reduceat(terms, begin) / np.add.reduceat(taken, begin))


def _finite(core: Core, alpha: float) -> BoolArray:
    """The largest set in which every choice taken stays, and leads on with a probability above 1 -
    alpha. Node n, the goal, is always inside.
    """
    rows, target = core.transitions, core.transitions.target
    begin = rows.row_start[:-1]
    inside = np.ones(core.n + 1, dtype=np.bool_)
    while True:
        stays = np.logical_and.reduceat(inside[target], begin)
        new, reached = np.arange(core.n + 1) == core.n, ~inside
        while (new != reached).any():
            reached = new
            onwards = np.add.reduceat(np.where(reached[target], rows.probability, 0.0), begin)
            able = stays & (onwards > (1 - alpha) * (1 + SAME_MASS))
            reaches = np.append(np.logical_or.reduceat(able, rows.state_rows[:-1]), True)
            new = reached | (reaches & inside)
        if (reached == inside).all():
            return reached[:-1]
        inside = reached
