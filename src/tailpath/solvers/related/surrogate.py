"""A surrogate with bounded cost (after Carpin, Chow and Pavone 2016).

CVaR_alpha = min over w of w + E[(Z - w)+] / alpha, and for a fixed w the cost spent so far makes it an ordinary problem. To keep that finite, the
authors stop counting at a threshold d that few runs reach: the *surrogate* pays min(Z, d).

    J_w(s, c) = min_a sum P J_w(s', c + cost),      J_w(goal, c) = (c - w)+,      J_w(s, c) = d - w for c >= d

for every w on the grid of costs, and the least w + J_w(start, 0) / alpha is the answer. It lies below the optimum, since costs beyond d are not paid,
and rises to it with d; beyond d the policy does not care, and here it goes on at the least expected cost. `solve_cvar_exact` needs neither
d nor a table per w: beyond w the future is worth V*, and one table by the budget left serves all w.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tailpath.errors import OptionError
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import BudgetPolicy
from tailpath.risk.curves import curve_of
from tailpath.solvers.exact.table import always_neutral
from tailpath.solvers.objectives.losses import Losses
from tailpath.solvers.related.levels import levels_of


def solve_surrogate(ssp: SSP, alpha: float, threshold: float, progress: Progress | None = None) -> tuple[float, BudgetPolicy]:
    """The surrogate's CVaR at alpha, with costs counted up to `threshold`, and its policy."""
    alpha = check_invertible_alpha(alpha)
    levels = levels_of(ssp, "the surrogate")
    cap = round(threshold / levels.unit)
    if cap < 1:
        raise OptionError(f"the threshold must be at least the cost unit, {levels.unit:g}, not {threshold:g}")
    unit = ssp.cost_unit or Fraction(1)
    best, policy = math.inf, always_neutral(ssp, levels.expected.choices)
    for w in range(cap + 1):
        if w >= best:
            break
        counted = curve_of([(w * unit, 0), (cap * unit, (cap - w) * unit)] if w < cap else [(0, 0)], 0)
        losses = Losses(ssp, [counted])
        found = w + losses.price(np.ones(1)).value / levels.unit / alpha
        if found < best * (1 - 1e-13):
            best, policy = found, losses.policy(np.ones(1))
        if progress is not None:
            progress(w, best * levels.unit)
    return float(best * levels.unit), policy
