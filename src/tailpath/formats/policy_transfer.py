"""A table policy made for one model, on another with the same names: the numbers of states, choices
and outcomes are found again by name.

A file holds, beside its tables, the skeleton of the model they number: the names of states and
actions, the action of every choice, and for an `AtomPolicy` the target and the cost of every
outcome. With it

- decisions move to the choice of the same state with the same action; one that the other model does
  not have is refused with its name, unless its state is gone as well;
- a budget stays what it is, in the same unit; costs of the other model count in it rounded up;
- a risk factor belongs to the outcome of the same choice that leads to the same state at the
  nearest cost; where there is none, y stays.

States that the policy does not know have no decision; `evaluate` says so if they are reached.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import PolicyError
from tailpath.graph import Array, FloatArray, IntArray
from tailpath.model.cost_units import as_fraction
from tailpath.model.ssp import SSP, Name
from tailpath.policies.atom_policy import AtomPolicy
from tailpath.policies.atoms import Grids
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.policies.checks import MOST_LEVELS, rising_steps


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The model that a file's tables number, as far as names go; outcomes are there for
    atoms only.
    """

    states: Sequence[Name]
    actions: Sequence[Name]
    state_choices: IntArray
    choice_action: Array
    choice_outcomes: IntArray | None = None
    outcome_target: Array | None = None
    outcome_cost: FloatArray | None = None

    def check(self, where: str) -> None:
        """Everything inside its range, before anything is looked up."""
        n_choices = len(self.choice_action)
        if not _rises(self.state_choices, len(self.states), n_choices):
            raise PolicyError(
                f"{where}: state_choices must rise from 0 to {n_choices}, with an entry for each"
                " state and one more"
            )
        if not _lies_in(self.choice_action, self.actions):
            raise PolicyError(f"{where}: choice_action points outside the actions")
        if self.choice_outcomes is None or self.outcome_target is None or self.outcome_cost is None:
            return
        count = len(self.outcome_target)
        fits = _rises(self.choice_outcomes, n_choices, count) and len(self.outcome_cost) == count
        if not fits:
            raise PolicyError(
                f"{where}: choice_outcomes, outcome_target and outcome_cost do not fit each other"
            )
        if not _lies_in(self.outcome_target, self.states):
            raise PolicyError(f"{where}: outcome_target points outside the states")

    def choices_in(self, ssp: SSP) -> IntArray:
        """The choice of the other model for each choice here, by the names of state and action; -1
        where there is none.
        """
        found = np.full(len(self.choice_action), -1, dtype=np.int64)
        for state, name in enumerate(self.states):
            if has_state(ssp, name):
                there = ssp.state_index(name)
                for choice in range(
                    int(self.state_choices[state]), int(self.state_choices[state + 1])
                ):
                    found[choice] = ssp.choice_index(
                        there, self.actions[int(self.choice_action[choice])]
                    )
        return found


def _rises(offsets: Array, count: int, end: int) -> bool:
    """Whether these are the offsets of so many groups of `end` things in all."""
    ends = len(offsets) == count + 1 and offsets[0] == 0 and offsets[-1] == end
    return bool(ends and (np.diff(offsets) >= 0).all())


def _lies_in(numbers: Array, things: Sequence[Name]) -> bool:
    return bool(((numbers >= 0) & (numbers < len(things))).all())


def has_state(ssp: SSP, name: Name) -> bool:
    """Whether a model has a state of this name."""
    if isinstance(ssp.states, range):
        return isinstance(name, int) and 0 <= name < ssp.n_states
    return name in ssp._state_index


def budget_on(
    ssp: SSP, old: Skeleton, where: str, steps: Mapping[str, Any], budget: int, unit: Any
) -> BudgetPolicy:
    """The steps of a `BudgetPolicy`, in the numbers of another model."""
    moved = old.choices_in(ssp)
    first, risk_neutral = steps["first"], steps["risk_neutral"]
    n_old = len(old.states)
    if len(first) != n_old + 1 or len(risk_neutral) != n_old:
        raise PolicyError(
            f"{where}: first and risk_neutral need an entry per state, first one more"
        )
    if len(steps["from_budget"]) != len(steps["choice"]):
        raise PolicyError(f"{where}: from_budget and choice need an entry for each step")
    if unit is None:
        raise PolicyError(
            f"{where}: the budget has no unit, so that the policy fits no model but its own"
        )
    rising_steps(first, steps["from_budget"])
    changes: list[tuple[int, int, int]] = []
    new_risk_neutral = np.full(ssp.n_states, -1, dtype=np.int32)
    for state, name in enumerate(old.states):
        if not has_state(ssp, name) or ssp.is_goal[ssp.state_index(name)]:
            continue
        there, own = (
            ssp.state_index(name),
            range(int(old.state_choices[state]), int(old.state_choices[state + 1])),
        )
        if risk_neutral[state] >= 0:
            new_risk_neutral[there] = _moved(old, moved, own, int(risk_neutral[state]), name, where)
        for step in range(int(first[state]), int(first[state + 1])):
            taken = _moved(old, moved, own, int(steps["choice"][step]), name, where)
            changes.append((there, int(steps["from_budget"][step]), taken))
    # What costs more than any budget spends it, however much more it costs.
    levels = {
        cost: min(math.ceil(as_fraction(cost) / as_fraction(unit)), MOST_LEVELS - 1)
        for cost in np.unique(ssp.outcome_cost).tolist()
    }
    level = np.array([levels[cost] for cost in ssp.outcome_cost.tolist()], dtype=np.int64)
    columns = np.array(changes, dtype=np.int64).reshape(-1, 3)
    return BudgetPolicy(
        ssp,
        budget,
        risk_neutral=new_risk_neutral,
        level=level,
        unit=unit,
        **steps_of(columns[:, 0], columns[:, 1], columns[:, 2], new_risk_neutral),
    )


class AtomTables(NamedTuple):
    """The tables of an `AtomPolicy`, in the numbers of the model that it was made for."""

    atoms: Array
    choice: Array
    xi_offset: Array
    xi: Array
    start_atom: int
    grids: Grids | None = None


def atoms_on(ssp: SSP, old: Skeleton, where: str, tables: AtomTables) -> AtomPolicy:
    """An `AtomPolicy` in the numbers of another model; states that it does not know have the first
    of the grids.
    """
    assert old.choice_outcomes is not None
    atoms, choice, xi_offset, xi, start_atom, grids = tables
    moved = old.choices_in(ssp)
    if (
        choice.shape != (len(old.states), len(atoms))
        or xi_offset.shape != choice.shape
        or (choice >= len(moved)).any()
    ):
        raise PolicyError(
            f"{where}: choice and xi_offset must be {len(old.states)} x {len(atoms)}, inside the"
            " choices"
        )
    new_choice, new_offset = (
        np.full((ssp.n_states, len(atoms)), -1, dtype=np.int32),
        np.zeros((ssp.n_states, len(atoms)), dtype=np.int64),
    )
    if grids is not None and len(grids.of_state) != len(old.states):
        raise PolicyError(
            f"{where}: of_state must have an entry for each of {len(old.states)} states"
        )
    grid_there = np.zeros(ssp.n_states, dtype=np.int32)
    lengths = np.diff(old.choice_outcomes)
    factors: list[float] = []
    matched: dict[int, list[int]] = {}
    for state, name in enumerate(old.states):
        if not has_state(ssp, name) or ssp.is_goal[ssp.state_index(name)]:
            continue
        there = ssp.state_index(name)
        grid_there[there] = 0 if grids is None else grids.of_state[state]
        for atom in np.flatnonzero(choice[state] >= 0).tolist():
            taken = int(choice[state, atom])
            offset, length = int(xi_offset[state, atom]), int(lengths[taken])
            if not 0 <= offset <= len(xi) - length:
                raise PolicyError(f"{where}: xi_offset points outside xi")
            if taken not in matched:
                own = range(int(old.state_choices[state]), int(old.state_choices[state + 1]))
                matched[taken] = _outcomes(
                    old, taken, ssp, _moved(old, moved, own, taken, name, where)
                )
            new_choice[there, atom], new_offset[there, atom] = moved[taken], len(factors)
            factors.extend(
                float(xi[offset + position]) if position >= 0 else 1.0
                for position in matched[taken]
            )
    moved_grids = None if grids is None else Grids(grids.own, grid_there)
    return AtomPolicy(
        ssp, atoms, new_choice, new_offset, np.array(factors), start_atom, moved_grids
    )


def _moved(old: Skeleton, moved: IntArray, own: range, choice: int, state: Name, where: str) -> int:
    if choice not in own:
        raise PolicyError(f"{where}: the table has a choice that state {state!r} does not have")
    if moved[choice] < 0:
        action = old.actions[int(old.choice_action[choice])]
        raise PolicyError(
            f"{where}: the policy takes {action!r} in state {state!r}, where the model has no such"
            " action"
        )
    return int(moved[choice])


def _outcomes(old: Skeleton, choice: int, ssp: SSP, there: int) -> list[int]:
    """For each outcome of a choice of the other model, the position among those here that leads to
    the same state at the nearest cost, or -1.
    """
    assert (
        old.choice_outcomes is not None
        and old.outcome_target is not None
        and old.outcome_cost is not None
    )
    first = int(old.choice_outcomes[choice])
    here = [
        (old.states[int(old.outcome_target[o])], float(old.outcome_cost[o]), o - first)
        for o in range(first, int(old.choice_outcomes[choice + 1]))
    ]
    found = []
    for outcome in range(int(ssp.choice_outcomes[there]), int(ssp.choice_outcomes[there + 1])):
        target, cost = (
            ssp.states[int(ssp.outcome_target[outcome])],
            float(ssp.outcome_cost[outcome]),
        )
        near = [
            (abs(known - cost), -known, position)
            for name, known, position in here
            if name == target
        ]
        found.append(min(near)[2] if near else -1)
    return found
