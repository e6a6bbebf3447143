"""Tables of policies that were made for another model with the same names.

A file holds, beside its tables, the skeleton of the model they number: the names of states and
actions, the action of every choice, and for an `AtomPolicy` the target and the cost of every
outcome. With it

- decisions move to the choice of the same state with the same action; one that the other model does
  not have is refused with its name, unless its state is gone as well;
- a budget stays what it is, in the same unit; costs of the other model count in it rounded up;
- a risk factor belongs to the outcome of the same choice that leads to the same state at the
  nearest cost; where there is none, y stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tailpath.errors import ModelError, PolicyError
from tailpath.graph import (
    Array,
    IntArray,
    first_of,
    members,
    offsets_from_lengths,
    owners,
)
from tailpath.model.checks import check_outcomes, check_structure
from tailpath.model.cost_units import as_fraction
from tailpath.model.ssp import SSP, Name
from tailpath.policies.atoms import AtomPolicy, Grids
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.policies.checks import MAX_LEVELS


def made_for(skeleton: Mapping[str, Any], location: str) -> SSP:
    """The model that a file's tables number, as far as the file has it: names and choices, and for
    atoms outcomes. Otherwise every choice has one.
    """
    n_choices = len(skeleton["choice_action"])
    one_each = {
        "choice_outcomes": np.arange(n_choices + 1),
        "outcome_target": np.zeros(n_choices, dtype=np.int32),
        "outcome_cost": np.zeros(n_choices),
    }
    fields: dict[str, Any] = {**one_each, **skeleton}
    try:
        ssp = SSP.trusted(
            **fields,
            outcome_probability=np.ones(len(fields["outcome_target"])),
            is_goal=np.diff(fields["state_choices"]) == 0,
            start_index=0,
        )
        check_structure(ssp)
        check_outcomes(ssp)
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
            f"{location}: the budget has no unit, so that the policy fits no model but its own"
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


def atoms_on(ssp: SSP, policy: AtomPolicy, location: str) -> AtomPolicy:
    """An `AtomPolicy` in the numbers of another model; states that it does not know have the first
    of the grids.
    """
    moved = _Moved(policy.ssp, ssp, location)
    state, atom = np.nonzero((policy.choice >= 0) & moved.decides[:, None])
    taken = policy.choice[state, atom]
    there = moved.taken(taken)
    pairs = list(zip(taken.tolist(), there.tolist()))
    matched = {pair: _outcomes(policy.ssp, ssp, *pair) for pair in set(pairs)}
    begin = offsets_from_lengths(np.array([len(matched[pair]) for pair in pairs], np.int64))
    position = np.array([at for pair in pairs for at in matched[pair]], dtype=np.int64)
    known = position >= 0
    factors = np.ones(len(position))
    offset = np.repeat(policy.xi_offset[state, atom], np.diff(begin))
    factors[known] = policy.xi[(offset + position)[known]]
    shape = ssp.n_states, len(policy.atoms)
    choice, xi_offset = np.full(shape, -1, dtype=np.int32), np.zeros(shape, dtype=np.int64)
    choice[moved.state[state], atom], xi_offset[moved.state[state], atom] = there, begin[:-1]
    grids = policy.grids
    if grids is not None:
        of_state = np.zeros(ssp.n_states, dtype=np.int32)
        of_state[moved.state[moved.decides]] = grids.of_state[moved.decides]
        grids = Grids(grids.own, of_state)
    return AtomPolicy(ssp, policy.atoms, choice, xi_offset, factors, policy.start_atom, grids)


def _outcomes(old: SSP, ssp: SSP, choice: int, there: int) -> list[int]:
    """For each outcome of a choice of the other model, the position among those here that leads to
    the same state at the nearest cost, or -1.
    """
    found = []
    for outcome in members(ssp.choice_outcomes, there):
        target, cost = ssp.states[int(ssp.outcome_target[outcome])], ssp.outcome_cost[outcome]
        near = [
            (abs(old.outcome_cost[each] - cost), -old.outcome_cost[each], position)
            for position, each in enumerate(members(old.choice_outcomes, choice))
            if old.states[int(old.outcome_target[each])] == target
        ]
        found.append(min(near)[2] if near else -1)
    return found
