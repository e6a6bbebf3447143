"""A surrogate with bounded cost (after Carpin, Chow and Pavone 2016).

CVaR_alpha = min over w of w + E[(Z - w)+] / alpha, and for a fixed w the cost spent so far makes it an ordinary problem. To keep that finite, the
authors stop counting at a threshold d that few runs reach: the *surrogate* pays min(Z, d).

    J_w(s, c) = min_a sum P J_w(s', c + cost),      J_w(goal, c) = (c - w)+,      J_w(s, c) = d - w for c >= d

for every w on the grid of costs, and the least w + J_w(start, 0) / alpha is the answer. It lies below the optimum, since costs beyond d are not paid,
and rises to it with d; beyond d the policy does not care, and here it goes on at the least expected cost. `solve_cvar_exact` needs neither
d nor a table per w: beyond w the future is worth V*, and one table by the budget left serves all w.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import OptionError
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.related.levels import Levels, budget_policy, levels_of


def solve_surrogate(ssp: SSP, alpha: float, threshold: float, progress: Progress | None = None) -> tuple[float, BudgetPolicy]:
    """The surrogate's CVaR at alpha, with costs counted up to `threshold`, and its policy."""
    alpha = check_invertible_alpha(alpha)
    levels = levels_of(ssp, "the surrogate")
    cap = round(threshold / levels.unit)
    if cap < 1:
        raise OptionError(f"the threshold must be at least the cost unit, {levels.unit:g}, not {threshold:g}")
    best, decisions = np.inf, levels.first[None, :-1]
    for w in range(cap + 1):
        if w >= best:
            break
        value, picked = _table(levels, w, cap)
        if w + value / alpha < best * (1 - 1e-13):
            best, decisions = w + value / alpha, picked
        if progress is not None:
            progress(w, best * levels.unit)
    return float(best * levels.unit), budget_policy(levels, cap, decisions)


def _table(levels: Levels, w: int, cap: int) -> tuple[float, NDArray[np.int64]]:
    """J_w at the start, and the choices by what is left up to the cap."""
    ssp = levels.ssp
    value = np.full((cap + 1, ssp.n_states), float(cap - w))
    value[:, ssp.is_goal] = np.maximum(np.arange(cap + 1) - w, 0.0)[:, None]
    picked = np.tile(levels.first[:-1], (cap + 1, 1))
    for spent in range(cap - 1, -1, -1):
        after = value[np.minimum(spent + levels.level, cap), levels.rows.target]
        value[spent, levels.states], picked[cap - spent] = levels.best(levels.of_choices(after))
    return float(value[0, ssp.start_index]), picked
