"""What costs rounded to a grid (`model/border.py`) ask of measures and policies."""

from __future__ import annotations

import itertools
from typing import Any

from tailpath.errors import OptionError
from tailpath.model.border import rounded as rounded
from tailpath.model.border import rounded_both_ways as rounded_both_ways
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import MixedPolicy
from tailpath.policies.policy import Policy
from tailpath.risk.measure import Measure


def check_rising(measure: Measure) -> None:
    """Refuse a measure that some higher cost makes smaller: rounded costs do not bound it."""
    curve = measure.curve
    if curve is None:
        return
    values = [value for pair in zip(curve.at, curve.after) for value in pair]
    if any(b < a for a, b in itertools.pairwise(values)) or curve.slope < 0:
        raise OptionError(
            f"{measure} falls somewhere, and costs rounded with delta bound only what rises with"
            " the cost"
        )


def on_model(policy: Any, ssp: SSP) -> Policy:
    """A policy made for rounded costs, on the model as it is; its budget still falls by rounded
    costs.
    """
    if isinstance(policy, MixedPolicy):
        members = tuple(on_model(member, ssp) for member in policy.members)
        return MixedPolicy(members, policy.weights)
    same: Policy = policy.on(ssp) if isinstance(policy, BudgetPolicy) else policy
    return same
