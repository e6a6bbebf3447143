"""What a policy says in one state, checked against the model: pairs (choice, probability)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tailpath.errors import PolicyError
from tailpath.graph import members
from tailpath.model.ssp import SSP, Name
from tailpath.policies.policy import Decision, Policy

#: The probabilities of a decision may miss 1 by this, for each action.
TOLERANCE = 1e-9


def decide(ssp: SSP, policy: Policy, state: int, memory: Any) -> list[tuple[int, float]]:
    """What a policy does at a state (by index): pairs (choice, probability), checked."""
    return checked_decision(ssp, state, policy.action(ssp.states[state], memory))


def checked_decision(ssp: SSP, state: int, decision: Any) -> list[tuple[int, float]]:
    """A decision, an action or a distribution over actions, as pairs (choice, probability)."""
    if not isinstance(decision, Mapping):
        choice = ssp.choice_index(state, decision)
        if choice < 0:
            raise unknown_action(ssp, state, decision)
        return [(choice, 1.0)]
    pairs = []
    for action, weight in decision.items():
        choice = ssp.choice_index(state, action)
        if choice < 0:
            raise unknown_action(ssp, state, action)
        least = min(ssp.outcome_probability[o] for o in members(ssp.choice_outcomes, choice))
        vanishes = 0 < weight < 1 and weight * float(least) < sys.float_info.min
        if vanishes or not 0 <= weight <= 1 + TOLERANCE:
            raise PolicyError(
                f"the policy takes action {action!r} in state {ssp.states[state]!r} with"
                f" probability {weight!r}{', too small to compute with' if vanishes else ''}"
            )
        if weight > 0:
            pairs.append((choice, float(weight)))
    total = sum(weight for _, weight in pairs)
    if abs(total - 1) > TOLERANCE * max(len(pairs), 1):
        raise PolicyError(
            f"the action probabilities of the policy in state {ssp.states[state]!r} sum to"
            f" {total:.12g}, not 1"
        )
    return [(choice, weight / total) for choice, weight in pairs] if len(pairs) > 1 else pairs


def known_actions(ssp: SSP, state: int) -> str:
    names = [repr(ssp.choice_name(k)) for k in members(ssp.state_choices, state)]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def unknown_action(ssp: SSP, state: int, action: Any) -> PolicyError:
    """What to raise where the state does not have the action."""
    return PolicyError(
        f"the policy takes action {action!r} in state {ssp.states[state]!r}, which only has"
        f" {known_actions(ssp, state)}"
    )


def only_action(ssp: SSP, state: int) -> Name | None:
    """The action of a state that has one; None where there is something to decide."""
    choices = members(ssp.state_choices, state)
    return ssp.choice_name(choices[0]) if len(choices) == 1 else None


class Actions:
    """How others name the actions of a model: by name, or, where names are no numbers, by index."""

    def __init__(self, ssp: SSP) -> None:
        self.ssp = ssp
        # Where there is nothing to decide, nobody needs to name the action.
        decisive = np.unique(
            ssp.choice_action[(np.diff(ssp.state_choices) > 1)[ssp.choice_state]]
        ).tolist()
        names: list[Any] = [ssp.actions[action] for action in decisive]
        self.numbered = all(is_number(name) for name in names)
        #: Numbers in a row over all actions.
        self.width: int = max(names, default=-1) + 1 if self.numbered else len(ssp.actions)

    def understood(self, state: int, answer: Any) -> Decision | None:
        """What was said about a state, as the model names it; None for no decision (None, -1, NaN,
        masked).
        """
        if isinstance(answer, Mapping):
            shares = {
                self.name(state, key): float(share)
                for key, share in answer.items()
                if share and share == share
            }
            return shares or None
        if (
            isinstance(answer, np.ndarray)
            and answer.ndim == 1
            and answer.dtype.kind in "fiu"
            and answer.size > 1
        ):
            return self.understood(state, self.row(state, answer))
        # -1 may be an action.
        if _is_nothing(answer) and (
            answer is np.ma.masked or self.ssp.choice_index(state, answer) < 0
        ):
            return None
        return self.name(state, answer)

    def name(self, state: int, answer: Any) -> Name:
        """The action that a name or a number stands for in a state."""
        plain = _plain(answer)
        if isinstance(plain, float) and plain.is_integer():
            plain = int(plain)
        try:
            known = self.ssp.choice_index(state, plain) >= 0
            hash(plain)
        except (TypeError, ValueError):
            known, plain = False, repr(plain)
        by_number = not known and not self.numbered and is_number(plain)
        if by_number and 0 <= plain < len(self.ssp.actions):
            plain = self.ssp.actions[int(plain)]
            known = self.ssp.choice_index(state, plain) >= 0
        if not known:
            raise unknown_action(self.ssp, state, plain)
        name: Name = plain
        return name

    def row(self, state: int, values: Any) -> dict[Name, Any]:
        """A row of numbers, one for each action, by the names of the actions that the state has."""
        ssp = self.ssp
        if len(values) != self.width and not (self.numbered and len(values) > self.width):
            raise PolicyError(
                f"the row of state {ssp.states[state]!r} has {len(values)} numbers; expected one"
                f" for each of {self.width} actions"
            )
        choices = list(members(ssp.state_choices, state))
        names: list[Any] = [ssp.choice_name(choice) for choice in choices]
        positions = names if self.numbered else ssp.choice_action[choices].tolist()
        return {name: values[position] for name, position in zip(names, positions)}


def is_number(name: Any) -> bool:
    return isinstance(name, (int, np.integer)) and not isinstance(name, bool)


def _plain(answer: Any) -> Any:
    """A single number of numpy as a plain one; anything else as it is."""
    single = isinstance(answer, (np.ndarray, np.generic)) and np.size(answer) == 1
    return answer.item() if single else answer


def _is_nothing(answer: Any) -> bool:
    if answer is None or answer is np.ma.masked:
        return True
    answer = _plain(answer)
    return isinstance(answer, (int, float)) and (answer == -1 or answer != answer)


def own_name(ssp: SSP, state: int) -> Name | None:
    """The name of a state in the model that policies are written for, if it has one there."""
    if ssp.origin is None:
        return ssp.states[state]
    index = int(ssp.origin.index[state])
    return None if index < 0 else ssp.origin.states[index]


def decisions_met(ssp: SSP, ask: Callable[[int, Name], Decision | None]) -> dict[Name, Decision]:
    """The decisions in all states that they lead to, from the start on."""
    decisions: dict[Name, Decision] = {}
    seen, waiting = {ssp.start_index}, [ssp.start_index]
    while waiting:
        state = waiting.pop()
        if ssp.is_goal[state]:
            continue
        decision = ask(state, ssp.states[state])
        if decision is None:
            raise PolicyError(missing_decision(ssp, state))
        decisions[ssp.states[state]] = decision
        for choice, _ in checked_decision(ssp, state, decision):
            for outcome in members(ssp.choice_outcomes, choice):
                target = int(ssp.outcome_target[outcome])
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
    return decisions


def missing_decision(ssp: SSP, state: int) -> str:
    return (
        f"the policy has no action for state {ssp.states[state]!r}, which it can reach; expected"
        f" one of {known_actions(ssp, state)}"
    )
