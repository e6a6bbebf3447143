"""CVaRVIQ as a method."""

from __future__ import annotations

from functools import partial

from tailpath.methods.method import Method
from tailpath.methods.published import DOING, OPTIONS, PUBLISHED, factors_option, plan
from tailpath.solvers.published.quantile import solve_cvar_quantile

METHOD = Method(
    name="quantile",
    title="CVaRVIQ",
    summary="CVaR value iteration by quantiles, as published",
    plan=partial(plan, solve_cvar_quantile),
    options=(*OPTIONS, factors_option("shared")),
    variants={"published": PUBLISHED, "printed": {**PUBLISHED, "factors": "printed"}},
    doing=DOING,
)
