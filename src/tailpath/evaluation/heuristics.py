"""Heuristics of the user's own for ForPECVaR: lower bounds on the cost to go, by state.

The search expands pairs in the order of cost spent + h(x), and is exact if h is *consistent* along
the policy: h(x) <= c + h(x') for every step that may happen, and h = 0 at the goal. Then h never
exceeds what is left to pay, and a pair that has left the queue does not come back. What is not
consistent is refused, with the step at fault. V_min, the default, is the largest h that is
consistent; any other expands as much or more.

h is rounded down to integer units of the search: if h is consistent with integer costs, so is its
floor, and all sums stay exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.graph import first_of
from tailpath.model.ssp import SSP, FloatArray
from tailpath.policies.chain import CostChain

#: Allowance for the rounding of the user's numbers, relatively.
ROUNDING = 1e-12


def own_heuristic(ssp: SSP, given: Any) -> FloatArray:
    """A user's heuristic as an array over the states; refuses what is missing, negative or no
    number.
    """
    if isinstance(given, Mapping):
        for state, goal in zip(ssp.states, ssp.is_goal):
            if not goal and state not in given:
                raise OptionError(f"the heuristic has no value for state {state!r}")
        values: Any = [given.get(state, 0.0) for state in ssp.states]
    else:
        values = [given(state) for state in ssp.states] if callable(given) else given
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("a heuristic gives a number for every state") from None
    if array.shape != (ssp.n_states,):
        raise OptionError(f"the heuristic has {array.size} values for {ssp.n_states} states")
    for index in first_of(~(np.isfinite(array) & (array >= 0))):
        raise OptionError(
            f"the heuristic is {array[index]:g} at state {ssp.states[index]!r}; it must be a number"
            " of at least 0"
        )
    return np.where(ssp.is_goal, 0.0, array)


def check_consistent(chain: CostChain, heuristic: FloatArray) -> FloatArray:
    """The heuristic at every node of a chain and at the goal; refuses it where it is not
    consistent.
    """
    value = np.append(heuristic[chain.state[: chain.n]], 0.0)
    over = value[chain.source] - (chain.cost + value[chain.target])
    unit = 1.0 if chain.unit is None else float(chain.unit)
    for transition in first_of(over > ROUNDING * np.maximum(unit, value[chain.source])):
        source, target = int(chain.source[transition]), int(chain.target[transition])
        to = "the goal" if target >= chain.n else chain.label(target)
        raise OptionError(
            f"the heuristic is not consistent: {value[source]:g} at {chain.label(source)} exceeds"
            f" the cost {chain.cost[transition]:g} of a step to {to} plus {value[target]:g} there"
        )
    return value
