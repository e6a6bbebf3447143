"""Policies that run in the world, where costs and states are observed and need not be those of the
model.

    runner = policy.start_run()
    action = runner.action(state)              what to do now
    runner.observe(cost, next_state)           what it cost, and where it led

What the model foresees is remembered as the policy says; what it does not is taken as it comes, and
`surprises` lists what was done. A budget is stored as a fraction and rounded down where it is
looked up, so that spending is rounded up to the unit, once and not at every step. The policy itself
stays pure: all that changes is in the runner.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from tailpath.errors import OptionError, PolicyError
from tailpath.graph import members
from tailpath.model.cost_units import as_fraction
from tailpath.model.ssp import SSP, Name
from tailpath.texts import count


class Surprise(NamedTuple):
    """What the model did not foresee at a step, counted from 1, and what was done about it."""

    step: int
    kind: str
    text: str


class Runner:
    """One run of a policy in the world; `policy.start_run()` makes it.

    Attributes
    ----------
    policy : Policy
        The policy.
    state : hashable
        The name of the state observed last.
    memory : object
        What the policy remembers.
    cost : Fraction
        What was paid so far, exactly.
    steps : int
        The steps observed so far.
    surprises : list of Surprise
        What the model did not foresee: named tuples `step`, `kind` and `text`.
    """

    def __init__(self, policy: Any, seed: int | None = None) -> None:
        self.policy = policy
        self.state: Name = None
        self.memory: Any = None
        self.cost = Fraction(0)
        self.steps = 0
        self.surprises: list[Surprise] = []
        self._begun = False
        self._chosen: tuple[Name] | None = None
        self._random = random.Random(seed)

    def __repr__(self) -> str:
        met = count(len(self.surprises), "surprise")
        return (
            f"<Runner in {self.state!r} after {count(self.steps, 'step')} and a cost of"
            f" {float(self.cost):g}, {met}>"
        )

    def action(self, state: Name) -> Name:
        """The action to take in a state; the same one until something is observed.

        Parameters
        ----------
        state : hashable
            The name of the state.

        Returns
        -------
        hashable
            The name of an action.

        Raises
        ------
        PolicyError
            If the model has no such state, or the run has arrived.
        """
        state = _plain(state)
        if not self._begun:
            self.state, self.memory = state, self.policy.start(state)
            self._begun = True
        elif state != self.state:
            self._note(
                "moved",
                f"the run was in {self.state!r} and is now in {state!r}, which no step explains;"
                " the policy goes on from there",
            )
            self.memory = remember_roughly(
                self.policy, self.memory, self.state, None, Fraction(0), state
            )
            self.state, self._chosen = state, None
        if self._chosen is None:
            self._refuse_unknown(state)
            self._chosen = (self._drawn(self.policy.action(state, self.memory)),)
        return self._chosen[0]

    def observe(self, cost: Any, next_state: Name) -> Surprise | None:
        """Take note of what the action cost and where it led.

        Parameters
        ----------
        cost : number
            What the step cost.
        next_state : hashable
            The name of the state it led to.

        Returns
        -------
        Surprise or None
            The surprise, if it was one.

        Raises
        ------
        PolicyError
            If no action was asked for.
        OptionError
            If the cost is not a number.
        """
        if self._chosen is None:
            raise PolicyError("nothing to observe: call action() first")
        try:
            price = as_fraction(cost)
        except (TypeError, ValueError, OverflowError):
            raise OptionError(f"a cost must be a number, not {cost!r}") from None
        known, action = len(self.surprises), self._chosen[0]
        next_state = _plain(next_state)
        self.steps += 1
        self.cost += price
        foreseen = self._foreseen(self.state, action, price, next_state)
        step = self.state, action, price if foreseen is None else foreseen, next_state
        self.memory = (
            remember_roughly(self.policy, self.memory, *step)
            if foreseen is None
            else self.policy.remember(self.memory, *step)
        )
        self.state, self._chosen = next_state, None
        return self.surprises[-1] if len(self.surprises) > known else None

    def _foreseen(
        self, state: Name, action: Name, price: Fraction, next_state: Name
    ) -> float | None:
        """The cost as the model writes it; None, and a surprise noted, if it knows no such step."""
        ssp: SSP | None = getattr(self.policy, "ssp", None)
        if ssp is None:
            try:
                self.policy.remember(self.memory, state, action, float(price), next_state)
            except PolicyError as error:
                self._note(
                    "cost", f"{error}; the policy counts the nearest cost that it knows, or none"
                )
                return None
            return float(price)
        target = known_state(ssp, next_state)
        if target is None:
            self._note(
                "unknown",
                f"the model has no state {next_state!r}; the cost is charged, and there is no"
                " action until a known state is reached",
            )
            return None
        costs = outcomes_to(ssp, ssp.choice_index(ssp.state_index(state), action), target)
        if not costs:
            self._note(
                "forbidden",
                f"in the model, {action!r} in {state!r} does not lead to {next_state!r}; the policy"
                " goes on from there",
            )
            return None
        for known in costs:
            if as_fraction(known) == price or known == float(price):
                return known
        listed = ", ".join(f"{known:g}" for known in sorted(costs))
        seen = f"{action!r} in {state!r} led to {next_state!r} at a cost of {float(price):g}"
        self._note("cost", f"{seen}, where the model says {listed}; it counts as observed")
        return None

    def _refuse_unknown(self, state: Name) -> None:
        ssp: SSP | None = getattr(self.policy, "ssp", None)
        if ssp is None:
            return
        index = known_state(ssp, state)
        if index is None:
            raise PolicyError(
                f"the model has no state {state!r}, so the policy has no action there"
            )
        if ssp.is_goal[index]:
            raise PolicyError(f"the run has arrived in {state!r}; there is nothing left to do")

    def _drawn(self, decision: Any) -> Name:
        drawn: Name = decision
        if isinstance(decision, Mapping):
            drawn = self._random.choices(list(decision), list(decision.values()))[0]
        return drawn

    def _note(self, kind: str, text: str) -> None:
        self.surprises.append(Surprise(self.steps, kind, text))


def remember_roughly(policy: Any, memory: Any, *step: Any) -> Any:
    """What a policy remembers of a step that the model did not foresee; policies from outside need
    not have an answer.
    """
    known = hasattr(policy, "remember_roughly")
    return policy.remember_roughly(memory, *step) if known else memory


def outcomes_to(ssp: SSP, choice: int, target: int | None) -> dict[float, int]:
    """The outcomes of a choice that lead to a state, by cost; of equal ones the first."""
    return {
        float(ssp.observed[outcome]): outcome
        for outcome in reversed(members(ssp.choice_outcomes, choice) if choice >= 0 else ())
        if ssp.outcome_target[outcome] == target
    }


def observed_outcome(ssp: SSP, state: Name, action: Name, cost: float, next_state: Name) -> int:
    """The outcome of the model behind a step; refuses a step that it does not have."""
    choice = ssp.choice_index(ssp.state_index(state), action)
    known = outcomes_to(ssp, choice, ssp.state_index(next_state))
    if cost not in known:
        raise PolicyError(
            f"state {state!r}, action {action!r} has no outcome {next_state!r} at cost {cost!r}"
        )
    return known[cost]


def spent(memory: Any, cost: Fraction, unit: Any) -> Any:
    """A budget, in units, after a cost: exact, and never below 0."""
    remaining = max(Fraction(0), memory - cost / as_fraction(unit))
    return int(remaining) if remaining.denominator == 1 else remaining


def known_state(ssp: SSP, state: Name) -> int | None:
    """The index of a state; None if the model has no such state."""
    if isinstance(ssp.states, range):
        return int(state) if isinstance(state, int) and 0 <= state < ssp.n_states else None
    try:
        return ssp.state_index(state) if state in ssp.states else None
    except TypeError:
        raise PolicyError(f"{state!r} is not the name of a state") from None


def _plain(state: Any) -> Name:
    """An observation as names are: numbers of numpy become plain ones."""
    name: Name = (
        state.item() if getattr(state, "ndim", 1) == 0 and hasattr(state, "item") else state
    )
    return name
