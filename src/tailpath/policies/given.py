"""A policy from whatever a user holds: `policy`, and `as_policy`, which every verb passes the
policy it is given through.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from tailpath.errors import PolicyError, kind_of
from tailpath.model.ssp import SSP, Name
from tailpath.options import takes_alpha, takes_model
from tailpath.policies.checks import Actions, decisions_met, missing_decision, only_action, own_name
from tailpath.policies.given_tables import (
    as_table,
    by_position,
    entry_of,
    greedy_policy,
    policy_of_entries,
)
from tailpath.policies.kinds import HistoryPolicy, MarkovPolicy, MixedPolicy, named_policy
from tailpath.policies.policy import AT_START, Decision, Kind, Policy


@takes_model
@takes_alpha
def policy(
    ssp: SSP, anything: Any, *, minimise: bool | None = None, alpha: float | None = None
) -> Policy:
    """Make a policy for a model from whatever you hold: a table, a function, a solution, an agent.

    Every function that takes a policy accepts all of these, too; here anything missing or wrong in
    a state that the policy reaches is an error at once.

    Parameters
    ----------
    ssp : SSP
        The model.
    anything : object
        One of the things below.
    minimise : bool, optional
        If given, a table of numbers is a Q-table, whose best action is the least (True, costs) or
        the greatest (False, rewards).
    alpha : float in (0, 1], optional
        The mass of the worst tail: picks the policy of a solution that has one for every alpha.

    Returns
    -------
    Policy
        A `MarkovPolicy`, or the policy that was given or found.

    Raises
    ------
    PolicyError
        If nothing can be made of it, an action is unknown, a state that is reached has none, or
        probabilities do not sum to 1.

    Notes
    -----
    What is accepted, and what it becomes:

    - a policy: itself;
    - a solution: its policy; where it has one for every alpha, the one for `alpha`; for every
      deadline, the one it was solved with;
    - a mapping, a Series: `{state: action}` or `{state: {action: probability}}`;
    - a list or array of one axis, shape (n_states,): the action of every state, a name or its
      number; -1, None, NaN or masked where there is none;
    - an array of two axes, shape (n_states, n_actions), a DataFrame: the probability of every
      action in every state;
    - the same with `minimise`: a Q-table, the best action of every state; also as
      `{state: {action: value}}` or `{(state, action): value}`;
    - a function of the state: its action in every state it reaches; it must always answer the same;
    - a function of `history`, or of the state and the history: a `HistoryPolicy`; the history is
      `(s0, a0, c0, s1, ...)`;
    - an agent with `predict`: `predict(state, deterministic=True)`.

    Where the states of the model are themselves numbers, as those of Gymnasium are, entry s is
    about the state called s, and entries for states that the model has not kept are passed over.
    Where they have other names, entry i is about `ssp.states[i]`. Actions likewise. A model made by
    `within` takes policies for the model it was made from. Goals, states with one action and states
    that are never reached need no entry.

    Examples
    --------
    >>> tp.policy(ssp, {"home": "train"}).action("home")
    'train'
    >>> tp.policy(ssp, [1, -1]).action("home")
    'train'
    >>> tp.policy(ssp, lambda state: {"road": 0.5, "train": 0.5}).action("home")
    {'road': 0.5, 'train': 0.5}
    >>> tp.policy(ssp, [[24, 30], [0, 0]], minimise=True).action("home")
    'road'
    """
    found = as_policy(ssp, anything, minimise=minimise, alpha=alpha)
    if isinstance(found, MarkovPolicy):
        decisions_met(ssp, lambda state, name: found.decisions.get(name))
    return found


def as_policy(
    ssp: SSP, anything: Any, *, minimise: bool | None = None, alpha: float | None = None
) -> Policy:
    """As `policy`, for verbs that will meet what is missing themselves."""
    if isinstance(anything, (Kind, Policy)):  # a protocol takes long to ask
        return anything if ssp.origin is None else _on_pairs(ssp, anything)
    if hasattr(anything, "predict"):  # before .policy: an agent has one of its own kind
        return policy_of_function(ssp, predictor(anything))
    if hasattr(anything, "policy"):
        return policy_of(anything, alpha)
    table = as_table(anything)
    if minimise is not None:
        return greedy_policy(ssp, table, minimise)
    if isinstance(table, Mapping):
        named = named_policy(ssp, table)
        return named or policy_of_entries(ssp, entry_of(ssp, table), table)
    if isinstance(table, (np.ndarray, list, tuple)):
        try:
            return policy_of_entries(ssp, by_position(ssp, table))
        except PolicyError as error:
            hint = (
                "; if these are values, not probabilities, pass minimise=False (more is better,"
                " as in Q-learning) or minimise=True"
                if np.ndim(table) == 2
                else ""
            )
            raise PolicyError(f"{error}{hint}") from None
    if callable(anything):
        return policy_of_callable(ssp, anything)
    raise PolicyError(
        f"cannot make a policy of {kind_of(anything)}; give a policy, a solution, a mapping"
        " of states to actions, an array with the action of every state, a matrix of"
        " probabilities, a function or an agent"
    )


def policy_of(solution: Any, alpha: float | None = None) -> Policy:
    """The policy of a solution, or a policy itself. A solution that answers many questions, for
    every alpha or every deadline, has a method `policy(...)`.
    """
    found: Any = solution
    if not isinstance(found, Policy) and hasattr(found, "policy"):
        found = solution.policy
        if not isinstance(found, Policy):
            alpha = getattr(solution, "alpha", None) if alpha is None else alpha
            # Of a policy for every deadline, the one it was asked for.
            asked = getattr(solution, "deadline", alpha)
            if asked is None:
                raise PolicyError(
                    f"this {type(solution).__name__} has a policy for every alpha; give alpha=, or"
                    " its .policy(alpha)"
                )
            found = found(asked)
    chosen: Policy = found
    return chosen


# ---------------------------------------------------------------------- policies of the model that
# a product was made from


@dataclass(frozen=True, eq=False, repr=False)
class _OnPairs(Kind):
    """A policy followed in the product that `within` made of its model, by the names of its own
    states.
    """

    ssp: SSP
    policy: Policy

    def __repr__(self) -> str:
        return f"{self.policy!r} by steps taken"

    def _own(self, state: Name) -> Name | None:
        """The name of a state in the model itself; None for the ends that the product has added."""
        return own_name(self.ssp, self.ssp.state_index(state))

    def start(self, state: Name) -> Any:
        return self.policy.start(self._own(state))

    def action(self, state: Name, memory: Any = AT_START) -> Any:
        own = self._own(state)
        if own is None:  # out of time
            return only_action(self.ssp, self.ssp.state_index(state))
        return self.policy.action(own, self.start(state) if memory is AT_START else memory)

    def remember(
        self, memory: Any, state: Name, action: Name, cost: float, next_state: Name
    ) -> Any:
        after = self._own(next_state)
        if after is None:
            return memory
        return self.policy.remember(memory, self._own(state), action, cost, after)


def _on_pairs(ssp: SSP, policy: Any) -> Policy:
    """A policy for a product: as it is if it decides in pairs."""
    if isinstance(policy, MixedPolicy):
        return replace(policy, members=tuple(_on_pairs(ssp, one) for one in policy.members))
    # Any other object keeps to the names of the model it is asked about.
    if not isinstance(policy, Kind) or policy._is_for(ssp):
        return cast(Policy, policy)
    return (
        as_policy(ssp, policy.decisions)
        if isinstance(policy, MarkovPolicy)
        else _OnPairs(ssp, policy)
    )


# ---------------------------------------------------------------------- policies of functions


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
            raise missing_decision(self.ssp, state)
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
