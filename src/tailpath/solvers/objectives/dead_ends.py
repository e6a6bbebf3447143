"""Goals that need not be sure, where never arriving has a finite price.

A loss that is flat at the end says what never arriving is worth, so a policy may take the risk of
it. Let every *dead end*, a state from which no policy arrives, be a goal at a penalty. From all
other states some policy then surely ends, since each has a way to a goal, and all solvers apply.
With a penalty beyond the last point of the loss the value is exactly that of the model as it is;
and where two choices tie, the expected cost with the penalty prefers the surer one. States, choices
and outcomes keep their numbers.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import dead_ends, reachable_states
from tailpath.errors import ModelError
from tailpath.model.cost_units import MAX_UNITS
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP


def with_penalty(ssp: SSP, units: int) -> SSP:
    """The model in which entering a dead end ends the run at a cost of at least `units`; the model
    itself if there is no dead end in reach.
    """
    assert ssp.cost_unit is not None
    dead = _dead(ssp)
    if not dead.any():
        return ssp
    if units >= MAX_UNITS:
        raise ModelError(f"a deadline of {units} cost units is beyond this solver")
    penalty = min(MAX_UNITS, 1000 * (units + int(ssp.outcome_level.max(initial=0)) + 1))
    level = np.where(dead[ssp.outcome_target], penalty, ssp.outcome_level)
    return _ending(ssp, dead, level * float(ssp.cost_unit), ssp.cost_unit)


def counting_losses(ssp: SSP) -> SSP:
    """The model in which entering a dead end ends the run at a cost of 1, and nothing else costs
    anything.
    """
    dead = _dead(ssp)
    return _ending(ssp, dead, dead[ssp.outcome_target].astype(np.float64), Fraction(1))


@found_once
def _dead(ssp: SSP) -> NDArray[np.bool_]:
    """The dead ends in reach."""
    return dead_ends(ssp) & reachable_states(ssp)


def _ending(ssp: SSP, dead: NDArray[np.bool_], cost: NDArray[np.float64], unit: Fraction) -> SSP:
    """The model with other costs, in which dead ends are goals."""
    goal = int(np.flatnonzero(ssp.is_goal)[0])
    target = np.where(dead[ssp.outcome_target], goal, ssp.outcome_target).astype(np.int32)
    return replace(ssp, outcome_target=target, outcome_cost=cost, exact_unit=unit)
