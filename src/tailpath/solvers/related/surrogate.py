"""A surrogate with bounded cost (after Carpin, Chow and Pavone 2016).

CVaR_alpha = min over w of w + E[(Z - w)+] / alpha, and for a fixed w the cost spent so far makes it
an ordinary problem. To keep that finite, the authors stop counting at a threshold d that few runs
reach: the *surrogate* pays min(Z, d).

    J_w(s, c) = min_a sum P J_w(s', c + cost),
    J_w(goal, c) = (c - w)+,
    J_w(s, c) = d - w for c >= d

for every w on the grid of costs, and the least w + J_w(start, 0) / alpha is the answer. It lies
below the optimum, since costs beyond d are not paid, and rises to it with d; beyond d the policy
does not care, and here it goes on at the least expected cost. `solve_cvar_exact` needs neither d
nor a table per w: beyond w the future is worth V*, and one table by the budget left serves all w.
"""

from __future__ import annotations

import numpy as np

from tailpath.errors import OptionError
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import always_risk_neutral, budget_policy, fill_table
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.related.levels import unit_of


def solve_surrogate(
    ssp: SSP, alpha: float, threshold: float, progress: Progress | None = None
) -> tuple[float, BudgetPolicy]:
    """The surrogate's CVaR at alpha, with costs counted up to `threshold`, and its policy."""
    alpha = check_invertible_alpha(alpha)
    unit, expected = unit_of(ssp, "the surrogate"), solve_expected(ssp)
    cap = round(threshold / unit)
    if cap < 1:
        raise OptionError(
            f"the threshold must be at least the cost unit, {unit:g}, not {threshold:g}"
        )
    if ssp.is_goal[ssp.start_index]:
        return 0.0, always_risk_neutral(ssp, expected.choices)
    layout, remaining = layout_of(ssp), np.arange(cap + 1.0)
    best, decisions = np.inf, None
    for w in range(cap + 1):
        if w >= best:
            break
        # With c spent, cap - c is left: J_w is cap - w with nothing left, and a loss at the goal.
        capped = layout.objective(np.array([cap - w, 0.0, 0.0, 0.0]), limit=float(cap))
        table = fill_table(layout, capped, np.maximum(cap - remaining - w, 0.0)[:, None])
        found = w + float(table.values[-1, 0]) / alpha
        if decisions is None or found < best * (1 - SAME_VALUE):
            best, decisions = found, table
        if progress is not None:
            progress(w, best * unit)
    assert decisions is not None
    return best * unit, budget_policy(ssp, decisions, cap, expected.choices)
