"""Tables of policies that were made for another model with the same names.

A file holds, beside its tables, the skeleton of the model they number: the names of states and
actions, and the action of every choice. With it decisions move to the choice of the same state with
the same action; one that the other model does not have is refused with its name, unless its state
is gone as well. A budget stays what it is, in the same unit; costs of the other model count in it
rounded up. A table of atoms follows outcome by outcome and fits its own model only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tailpath.errors import ModelError, PolicyError
from tailpath.graph import Array, IntArray, first_of, owners
from tailpath.model.checks import check_structure
from tailpath.model.cost_units import as_fraction
from tailpath.model.ssp import SSP, Name
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.policies.checks import MAX_LEVELS


def made_for(skeleton: Mapping[str, Any], location: str) -> SSP:
    """The model that a file's tables number, as far as the file has it: every choice has one
    outcome.
    """
    n_choices = len(skeleton["choice_action"])
    try:
        ssp = SSP.trusted(
            **skeleton,
            choice_outcomes=np.arange(n_choices + 1),
            outcome_target=np.zeros(n_choices, dtype=np.int32),
            outcome_probability=np.ones(n_choices),
            outcome_cost=np.zeros(n_choices),
            is_goal=np.diff(skeleton["state_choices"]) == 0,
            start_index=0,
        )
        check_structure(ssp)
    except ModelError as error:
        raise PolicyError(f"{location}: {error}") from None
    return ssp


def has_state(ssp: SSP, name: Name) -> bool:
    if isinstance(ssp.states, range):
        return isinstance(name, int) and 0 <= name < ssp.n_states
    return name in ssp._state_index


class _Moved:
    """The states and choices of one model, `old`, found again by name in another.

    `state` and `choice` have the number there of each one here, -1 where there is none; `decides`
    are the states here that are states there, and no goals.
    """

    def __init__(self, old: SSP, ssp: SSP, location: str) -> None:
        self.old, self.where = old, location
        there = [ssp.state_index(name) if has_state(ssp, name) else -1 for name in old.states]
        self.state = np.array(there, dtype=np.int64)
        pairs = zip(self.state[old.choice_state].tolist(), old.choice_action.tolist())
        found = [ssp.choice_index(s, old.actions[a]) if s >= 0 else -1 for s, a in pairs]
        self.choice = np.array(found, dtype=np.int64)
        self.decides = (self.state >= 0) & ~ssp.is_goal[self.state]

    def taken(self, choice: Array) -> IntArray:
        found = self.choice[choice]
        for at in first_of(found < 0):
            old, taken = self.old, int(choice[at])
            raise PolicyError(
                f"{self.where}: the policy takes {old.choice_name(taken)!r} in state"
                f" {old.states[old.choice_state[taken]]!r}, where the model has no such action"
            )
        return found


def budgets_on(ssp: SSP, policy: BudgetPolicy, location: str) -> BudgetPolicy:
    if policy.unit is None:
        raise PolicyError(
            f"{location}: the budget has no unit, so the policy fits only the model it was made for"
        )
    moved = _Moved(policy.ssp, ssp, location)
    state = owners(policy.first)
    mask = moved.decides[state]
    always = np.flatnonzero(moved.decides & (policy.risk_neutral >= 0))
    risk_neutral = np.full(ssp.n_states, -1, dtype=np.int32)
    risk_neutral[moved.state[always]] = moved.taken(policy.risk_neutral[always])
    choice = moved.taken(policy.choice[mask])
    # What costs more than any budget spends it, however much more it costs.
    costs, of_outcome = np.unique(ssp.outcome_cost, return_inverse=True)
    in_units = (as_fraction(cost) / as_fraction(policy.unit) for cost in costs.tolist())
    levels = [min(math.ceil(units), MAX_LEVELS - 1) for units in in_units]
    return BudgetPolicy(
        ssp,
        policy.budget,
        risk_neutral=risk_neutral,
        level=np.array(levels, dtype=np.int64)[of_outcome],
        unit=policy.unit,
        **steps_of(moved.state[state[mask]], policy.from_budget[mask], choice, risk_neutral),
    )
