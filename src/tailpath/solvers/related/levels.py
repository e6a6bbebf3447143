"""What these algorithms ask of a model: costs that are counted in units, and steps that cost
something.

They are written down for comparison, in arrays and without the care of the exact solver: every
outcome that does not arrive must cost something.
"""

from __future__ import annotations

import numpy as np

from tailpath.analysis.core import Core, core_of
from tailpath.analysis.reachability import almost_sure_states
from tailpath.errors import ModelError
from tailpath.graph import FloatArray, IntArray, first_of
from tailpath.model.potential import refuse_signed
from tailpath.model.ssp import SSP


def unit_of(ssp: SSP, who: str) -> float:
    """The cost unit; refuses costs without one, and negative ones."""
    refuse_signed(ssp, who)
    if ssp.cost_unit is None:
        raise ModelError(f"the costs have no common unit; {who} counts costs in units")
    return float(ssp.cost_unit)


def rising_core_of(ssp: SSP, who: str) -> tuple[Core, float]:
    """The core of a model, which has a node for every state from which one can surely arrive, since
    zero-cost outcomes that do not arrive are refused; and the cost unit.
    """
    unit = unit_of(ssp, who)
    core, (_, safe) = core_of(ssp), almost_sure_states(ssp)
    zero_cost = (ssp.outcome_level == 0) & ~ssp.is_goal[ssp.outcome_target]
    for outcome in first_of(zero_cost & safe[ssp.outcome_choice]):
        state = ssp.states[ssp.choice_state[ssp.outcome_choice[outcome]]]
        raise ModelError(
            f"an outcome of state {state!r} costs nothing and does not arrive;"
            f" {who} needs costs above 0"
        )
    return core, unit


def best_choices(core: Core, values: FloatArray) -> tuple[FloatArray, IntArray]:
    """For each node the least of its choices' values, and the first choice that has it."""
    begin = core.state_choices[:-1]
    least = np.minimum.reduceat(values, begin)
    hit = np.flatnonzero(values <= np.repeat(least, np.diff(core.state_choices)))
    return least, hit[np.searchsorted(hit, begin)]
