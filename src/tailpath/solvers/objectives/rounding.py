"""Costs rounded to a grid, where they have no unit or one too fine to count in.

With every cost rounded up and down to multiples of `delta`, a run of any policy has Z_down <= Z <=
Z_up. A measure that rises with the cost is then at most that of the costs rounded up, and at least
that of the costs rounded down, and a limit that is kept with costs rounded up is kept. So the
policy that is best with costs rounded up bounds the optimum from above, and the optimum with costs
rounded down bounds it from below.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from tailpath.errors import ModelError, OptionError
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.mixed import MixedPolicy
from tailpath.policies.policy import Policy
from tailpath.risk.measure import Measure
from tailpath.solvers.exact.grid import rounded, rounded_down


def require_unit(ssp: SSP) -> None:
    """Refuse a model whose costs cannot be counted."""
    if ssp.cost_unit is None:
        raise ModelError(
            "the costs have no common unit that is coarse enough to count in; give the width of a"
            " grid with --delta D (delta=)"
        )


def check_rising(measure: Measure) -> None:
    """Refuse a measure that some higher cost makes smaller: it is not between those of the costs
    rounded up and down.
    """
    curve = measure.curve
    if curve is None:
        return
    values = [value for pair in zip(curve.at, curve.after) for value in pair]
    if any(b < a for a, b in itertools.pairwise(values)) or curve.slope < 0:
        raise OptionError(
            f"{measure} falls somewhere, and costs rounded with delta bound only what rises with"
            " the cost"
        )


def both_ways(ssp: SSP, delta: Any) -> tuple[SSP, SSP]:
    """The model with costs rounded up and with costs rounded down, the latter on a finer grid where
    steps would else become free.
    """
    return rounded(ssp, delta, up=True), rounded_down(ssp, delta) or rounded(ssp, delta, up=False)


def on_costs_of(policy: Any, ssp: SSP) -> Policy:
    """A policy made for a model with rounded costs, on the model as it is: what it remembers still
    falls by rounded costs.
    """
    if isinstance(policy, MixedPolicy):
        return MixedPolicy(
            tuple(on_costs_of(member, ssp) for member in policy.members), policy.weights
        )
    rounded: Policy = replace(policy, ssp=ssp) if isinstance(policy, BudgetPolicy) else policy
    return rounded
