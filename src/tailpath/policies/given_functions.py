"""Policies from functions of the state or of the history, and from agents that predict."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tailpath.errors import PolicyError
from tailpath.model.ssp import SSP, Name
from tailpath.policies.decisions import (
    Actions,
    decisions_met,
    missing_decision,
    only_action,
    own_name,
)
from tailpath.policies.kinds import HistoryPolicy, MarkovPolicy
from tailpath.policies.policy import Decision, Policy


def policy_of_callable(ssp: SSP, function: Callable[..., Any]) -> Policy:
    """The policy of a function of the state, of the history, or of both, as its parameters say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return policy_of_function(ssp, function)  # a built-in function does not say
    needed = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) == 2:
        return HistoryPolicy(FunctionOfHistory(ssp, function, with_state=True))
    if needed == ["history"]:
        return HistoryPolicy(FunctionOfHistory(ssp, function, with_state=False))
    if len(needed) > 2:
        raise PolicyError(
            "a function that is a policy takes the state, the history or both, not"
            f" {', '.join(needed)}"
        )
    return policy_of_function(ssp, function)


class FunctionOfHistory:
    """A user's function of the history as `HistoryPolicy` calls it, with its answers understood."""

    def __init__(self, ssp: SSP, function: Callable[..., Any], *, with_state: bool) -> None:
        self.ssp, self.function = ssp, function
        self.with_state = with_state
        self.actions = Actions(ssp)
        self.__qualname__ = getattr(function, "__qualname__", type(function).__name__)

    def __call__(self, history: tuple[Any, ...]) -> Decision:
        ssp, state = self.ssp, self.ssp.state_index(history[-1])
        if ssp.origin is not None:
            if own_name(ssp, state) is None:  # out of time
                return only_action(ssp, state)
            history = tuple(
                part if i % 3 else own_name(ssp, ssp.state_index(part))
                for i, part in enumerate(history)
            )
        answer = self.function(history[-1], history) if self.with_state else self.function(history)
        decision = self.actions.understood(state, answer)
        if decision is None:
            raise PolicyError(missing_decision(self.ssp, state))
        return decision


def policy_of_function(ssp: SSP, function: Callable[[Any], Any]) -> MarkovPolicy:
    """Ask a function about every state it leads to."""
    actions = Actions(ssp)

    def ask(state: int, name: Name) -> Decision | None:
        only, own = only_action(ssp, state), own_name(ssp, state)
        if only is not None:
            return only
        return actions.understood(state, function(name if own is None else own))

    return MarkovPolicy(decisions_met(ssp, ask))


def predictor(agent: Any) -> Callable[[Any], Any]:
    """What an agent with a method `predict` says to a state."""

    def predict(state: Any) -> Any:
        try:
            answer = agent.predict(state, deterministic=True)
        except TypeError:
            answer = agent.predict(state)
        return answer[0] if isinstance(answer, tuple) else answer

    return predict
