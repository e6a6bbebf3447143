"""CVaRVILI as a method."""

from __future__ import annotations

from functools import partial

from tailpath.methods.method import Method, Option
from tailpath.methods.published import DOING, OPTIONS, PUBLISHED, factors_option, plan
from tailpath.solvers.published.interpolation import solve_cvar_interpolation

INNER = Option(
    "inner",
    str,
    "lp",
    "Inner problems: linear programs by HiGHS, or their closed form.",
    choices=("lp", "greedy"),
)

METHOD = Method(
    name="interpolation",
    title="CVaRVILI",
    summary="CVaR value iteration by linear interpolation, as published",
    plan=partial(plan, solve_cvar_interpolation),
    options=(*OPTIONS, INNER, factors_option("vertex")),
    variants={"published": PUBLISHED},
    doing=DOING,
)
