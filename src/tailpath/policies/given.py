"""A policy from whatever a user holds: `policy`, whose docstring lists what it takes.

`as_policy` is the same for verbs: every verb passes the policy it is given through it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailpath.errors import PolicyError
from tailpath.model.ssp import SSP, Name
from tailpath.policies.atom_policy import AtomPolicy
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.decisions import Actions, checked_decision, known_actions
from tailpath.policies.kinds import HistoryPolicy, MarkovPolicy, MemoryPolicy
from tailpath.policies.mixed import MixedPolicy
from tailpath.policies.policy import AT_START, Decision, Kind, Policy

KINDS = (MarkovPolicy, AtomPolicy, BudgetPolicy, MemoryPolicy, HistoryPolicy)


def policy(
    ssp: SSP, anything: Any, *, minimise: bool | None = None, alpha: float | None = None
) -> Policy:
    """Make a policy for a model from whatever you hold: a table, a function, a solution, an agent.

    Every function that takes a policy takes all this, too; here what is missing or wrong in a state
    that the policy reaches is refused at once.

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
    What can be given, and what it is taken as:

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
        _walk(ssp, lambda state, name: found.decisions.get(name))
    return found


def as_policy(
    ssp: SSP, anything: Any, *, minimise: bool | None = None, alpha: float | None = None
) -> Policy:
    """As `policy`, for verbs that will meet what is missing themselves."""
    if isinstance(anything, (*KINDS, Policy)):
        return anything if ssp.origin is None else _on_pairs(ssp, anything)
    if hasattr(anything, "predict"):  # before .policy: an agent has one of its own kind
        return _of_function(ssp, _predictor(anything))
    if hasattr(anything, "policy"):
        return policy_of(anything, alpha)
    table = _table(anything)
    if minimise is not None:
        return _of_values(ssp, table, minimise)
    if isinstance(table, Mapping):
        return _of_entries(ssp, lambda asked: table.get(asked.key(table)), table)
    if isinstance(table, (np.ndarray, list, tuple)):
        try:
            return _of_entries(ssp, _by_place(ssp, table))
        except PolicyError as error:
            hint = (
                "; if these are values, not probabilities, say minimise=True or minimise=False"
                if np.ndim(table) == 2
                else ""
            )
            raise PolicyError(f"{error}{hint}") from None
    if callable(anything):
        return _of_callable(ssp, anything)
    raise PolicyError(
        f"cannot make a policy of a {type(anything).__name__}; give a policy, a solution, a mapping"
        " of states to actions, an array with the action of every state, a matrix of"
        " probabilities, a function or an agent"
    )


# ---------------------------------------------------------------------- tables


class _Asked:
    """A state where a decision is needed: its index and its `own` name in the model, and its
    number and name in the model that it was made of, for which policies are mostly written.
    """

    def __init__(self, index: int, own: Name, name: Name, number: int) -> None:
        self.index, self.own, self.name, self.number = index, own, name, number

    def key(self, table: Mapping[Any, Any]) -> Name:
        """The name under which a table has the state, if it has it."""
        return self.own if self.own in table else self.name


def _asked_states(ssp: SSP) -> list[_Asked]:
    """All states but goals."""
    names, number = (
        (ssp.states, range(ssp.n_states))
        if ssp.origin is None
        else (ssp.origin.states, ssp.origin.index.tolist())
    )
    known = [(s, number[s]) for s in np.flatnonzero(~ssp.is_goal).tolist()]
    return [_Asked(s, ssp.states[s], names[k] if k >= 0 else ssp.states[s], k) for s, k in known]


def _of_entries(
    ssp: SSP, entry: Callable[[_Asked], Any], given: Mapping[Any, Any] | None = None
) -> MarkovPolicy:
    """From what is said about each state; a state with one action needs nothing said, and what is
    wrong in states never reached is passed over.
    """
    actions, asked_states = Actions(ssp), _asked_states(ssp)
    if given and not any(asked.key(given) in given for asked in asked_states):
        shown = next(iter(given))
        raise PolicyError(
            f"the policy decides in {shown!r} and other states, none of which the model has; its"
            f" states are {_some(ssp)}"
        )
    decisions: dict[Name, Decision] = {}
    wrong: dict[Name, PolicyError] = {}
    for asked in asked_states:
        name = ssp.states[asked.index]
        try:
            decision = _decision(
                ssp, actions, asked, None if _stuck(ssp, asked.index) else entry(asked)
            )
        except PolicyError as error:
            wrong[name] = error
            continue
        if decision is not None:
            decisions[name] = decision

    def ask(state: int, name: Name) -> Decision | None:
        if name in wrong:
            raise wrong[name]
        return decisions.get(name)

    _walk(ssp, ask)
    return MarkovPolicy(decisions)


def _stuck(ssp: SSP, state: int) -> bool:
    """Whether a state is a dead end that only leads to itself: tables of agents have an entry
    there, and it does not matter.
    """
    first, last = int(ssp.state_choices[state]), int(ssp.state_choices[state + 1])
    if last - first != 1:
        return False
    after = ssp.outcome_target[ssp.choice_outcomes[first] : ssp.choice_outcomes[last]]
    if ssp.origin is None:
        return bool((after == state).all())
    own = ssp.origin.index[after]  # -1 where time is up
    return bool(((own == ssp.origin.index[state]) | (own < 0)).all())


def _decision(ssp: SSP, actions: Actions, asked: _Asked, said: Any) -> Decision | None:
    decision = None if said is None else actions.understood(asked.index, said)
    if decision is not None:
        checked_decision(ssp, asked.index, decision)
    elif ssp.state_choices[asked.index + 1] - ssp.state_choices[asked.index] == 1:
        decision = ssp.choice_name(int(ssp.state_choices[asked.index]))
    return decision


def _by_place(ssp: SSP, table: Any) -> Callable[[_Asked], Any]:
    """The entry of a state in a sequence: by the number that is its name, or by its place."""
    base = ssp.states if ssp.origin is None else ssp.origin.states
    numbers = [
        name for name in base if isinstance(name, (int, np.integer)) and not isinstance(name, bool)
    ]
    if getattr(table, "ndim", 1) > 2:
        raise PolicyError(
            f"the policy has {table.ndim} axes; expected one, an action for every state, or two,"
            " states by actions"
        )
    length = len(table)
    if numbers and min(numbers) >= 0 and length > max(numbers):
        return lambda asked: (
            table[asked.name] if isinstance(asked.name, (int, np.integer)) else None
        )
    if length == len(base):
        return lambda asked: table[asked.number] if asked.number >= 0 else None
    more = f", or more than {max(numbers)}, to be read by the states' numbers" if numbers else ""
    raise PolicyError(
        f"the policy has {length} entries; expected one for each of the {len(base)} states{more}"
    )


def _of_values(ssp: SSP, table: Any, minimise: bool) -> MarkovPolicy:
    """The greedy policy of a Q-table; the first of equally good actions."""
    if (
        isinstance(table, Mapping)
        and table
        and all(isinstance(key, tuple) and len(key) == 2 for key in table)
    ):
        by_state: dict[Name, dict[Name, Any]] = {}
        for (state, action), value in table.items():
            by_state.setdefault(state, {})[action] = value
        if not any(key in set(ssp.states) for key in table):
            table = by_state
    if not isinstance(table, (Mapping, np.ndarray, list, tuple)):
        raise PolicyError(
            f"cannot read a {type(table).__name__} as a Q-table; give an array or a mapping of"
            " states to values"
        )
    if isinstance(table, np.ndarray) and table.ndim != 2:
        raise PolicyError(
            "a Q-table has a row for every state and a number for every action, not the shape"
            f" {table.shape}"
        )
    row_of = (
        (lambda asked: table.get(asked.key(table)))
        if isinstance(table, Mapping)
        else _by_place(ssp, table)
    )
    actions = Actions(ssp)

    def best(asked: _Asked) -> Any:
        row = row_of(asked)
        if row is None:
            return None
        if isinstance(row, Mapping):
            # Tables often have a value for every action, whether the state has it or not.
            values = {
                action: value
                for action, value in row.items()
                if ssp.choice_index(asked.index, action) >= 0
            }
        else:
            values = actions.row(asked.index, row)
        known = {
            action: float(value)
            for action, value in values.items()
            if value is not np.ma.masked and not np.isnan(value)
        }
        return (min if minimise else max)(known, key=known.__getitem__, default=None)

    return _of_entries(ssp, best, table if isinstance(table, Mapping) else None)


def _table(anything: Any) -> Any:
    """Frames, series and sequences as mappings or arrays."""
    if hasattr(anything, "to_dict") and hasattr(anything, "index"):  # pandas
        return (
            anything.to_dict("index") if getattr(anything, "ndim", 1) == 2 else anything.to_dict()
        )
    if (
        isinstance(anything, (list, tuple))
        and anything
        and all(isinstance(row, (list, np.ndarray)) for row in anything)
    ):
        try:
            return np.array(anything, dtype=np.float64)
        except (TypeError, ValueError):
            raise PolicyError(
                "the rows of a matrix must hold one number for every action"
            ) from None
    return anything


def policy_of(solution: Any, alpha: float | None = None) -> Policy:
    """The policy of a solution, or a policy itself.

    A solution for one question has a property `policy`; one that answers many, for every alpha or
    every deadline, a method `policy(...)`.
    """
    if isinstance(solution, (*KINDS, Policy)) or not hasattr(solution, "policy"):
        given: Policy = solution
        return given
    found = solution.policy
    if isinstance(found, Policy):
        return found
    if hasattr(solution, "deadline"):  # a policy for every deadline: the one it was asked for
        on_time: Policy = found(solution.deadline)
        return on_time
    level = alpha if alpha is not None else getattr(solution, "alpha", None)
    if level is None:
        raise PolicyError(
            f"this {type(solution).__name__} has a policy for every alpha; give alpha=, or its"
            " .policy(alpha)"
        )
    chosen: Policy = found(level)
    return chosen


# ---------------------------------------------------------------------- policies of the model that
# a product was made from


@dataclass(frozen=True, eq=False, repr=False)
class _OnPairs(Kind):
    """A policy of a model, followed in the product that `within` made of it: it is told the names
    of its own states.
    """

    ssp: SSP
    policy: Policy

    def __repr__(self) -> str:
        return f"{self.policy!r} by steps taken"

    def _own(self, state: Name) -> Name | None:
        """The name of a state in the model itself; None for the ends that the product has added."""
        return _own_name(self.ssp, self.ssp.state_index(state))

    def start(self, state: Name) -> Any:
        return self.policy.start(self._own(state))

    def action(self, state: Name, memory: Any = AT_START) -> Decision:
        own = self._own(state)
        memory = self.start(state) if memory is AT_START and own is not None else memory
        if own is None:  # out of time: there is one choice
            return self.ssp.choice_name(int(self.ssp.state_choices[self.ssp.state_index(state)]))
        decision: Decision = self.policy.action(own, memory)
        return decision

    def remember(
        self, memory: Any, state: Name, action: Name, cost: float, next_state: Name
    ) -> Any:
        after = self._own(next_state)
        return (
            memory
            if after is None
            else self.policy.remember(memory, self._own(state), action, cost, after)
        )


def _own_name(ssp: SSP, state: int) -> Name | None:
    """The name of a state in the model that policies are written for; None where that has no such
    state.
    """
    if ssp.origin is None:
        return ssp.states[state]
    index = int(ssp.origin.index[state])
    return None if index < 0 else ssp.origin.states[index]


def _on_pairs(ssp: SSP, policy: Any) -> Policy:
    """A policy for a product: as it is if it decides in pairs, told the states of the model itself
    if not; as a function is.
    """
    if isinstance(policy, MixedPolicy):
        return MixedPolicy(
            tuple(_on_pairs(ssp, member) for member in policy.members), policy.weights
        )
    if isinstance(policy, MarkovPolicy):
        known = not policy.decisions or any(name in policy.decisions for name in ssp.states)
        return policy if known else as_policy(ssp, policy.decisions)
    if isinstance(policy, (AtomPolicy, BudgetPolicy)):
        known = policy.ssp.states[policy.ssp.start_index] == ssp.states[ssp.start_index]
    elif isinstance(policy, MemoryPolicy) and isinstance(policy.action_, Mapping):
        known = any(state in set(ssp.states) for state, _ in policy.action_)
    else:  # any other object keeps to the names of the model it is asked about
        known = not isinstance(policy, (MemoryPolicy, HistoryPolicy)) or isinstance(
            getattr(policy, "function", None), _OfHistory
        )
    return policy if known else _OnPairs(ssp, policy)


# ---------------------------------------------------------------------- functions


def _of_callable(ssp: SSP, function: Callable[..., Any]) -> Policy:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _of_function(ssp, function)  # a built-in function does not say
    needed = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) == 2:
        return HistoryPolicy(_OfHistory(ssp, function, with_state=True))
    if needed == ["history"]:
        return HistoryPolicy(_OfHistory(ssp, function, with_state=False))
    if len(needed) > 2:
        raise PolicyError(
            "a function that is a policy takes the state, the history or both, not"
            f" {', '.join(needed)}"
        )
    return _of_function(ssp, function)


class _OfHistory:
    """A user's function of the history as `HistoryPolicy` calls it, with its answers understood."""

    def __init__(self, ssp: SSP, function: Callable[..., Any], *, with_state: bool) -> None:
        self.ssp, self.function, self.with_state = ssp, function, with_state
        self.actions = Actions(ssp)
        self.__qualname__ = getattr(function, "__qualname__", type(function).__name__)

    def __call__(self, history: tuple[Any, ...]) -> Decision:
        ssp, state = self.ssp, self.ssp.state_index(history[-1])
        if ssp.origin is not None:
            if _own_name(ssp, state) is None:  # out of time: there is one choice
                return ssp.choice_name(int(ssp.state_choices[state]))
            history = tuple(
                part if i % 3 else _own_name(ssp, ssp.state_index(part))
                for i, part in enumerate(history)
            )
        said = self.function(history[-1], history) if self.with_state else self.function(history)
        decision = self.actions.understood(state, said)
        if decision is None:
            raise PolicyError(_missing(self.ssp, state))
        return decision


def _of_function(ssp: SSP, function: Callable[[Any], Any]) -> MarkovPolicy:
    """Ask a function about every state it leads to."""
    actions = Actions(ssp)

    def ask(state: int, name: Name) -> Decision | None:
        if ssp.state_choices[state + 1] - ssp.state_choices[state] == 1:
            return ssp.choice_name(int(ssp.state_choices[state]))
        own = _own_name(ssp, state)
        return actions.understood(state, function(name if own is None else own))

    return MarkovPolicy(_walk(ssp, ask))


def _predictor(agent: Any) -> Callable[[Any], Any]:
    def predict(state: Any) -> Any:
        try:
            answer = agent.predict(state, deterministic=True)
        except TypeError:
            answer = agent.predict(state)
        return answer[0] if isinstance(answer, tuple) else answer

    return predict


def _walk(ssp: SSP, ask: Callable[[int, Name], Decision | None]) -> dict[Name, Decision]:
    """The decisions in all states that they lead to, from the start on."""
    decisions: dict[Name, Decision] = {}
    seen, waiting = {ssp.start_index}, [ssp.start_index]
    while waiting:
        state = waiting.pop()
        if ssp.is_goal[state]:
            continue
        decision = ask(state, ssp.states[state])
        if decision is None:
            raise PolicyError(_missing(ssp, state))
        decisions[ssp.states[state]] = decision
        for choice, _ in checked_decision(ssp, state, decision):
            for target in ssp.outcome_target[
                ssp.choice_outcomes[choice] : ssp.choice_outcomes[choice + 1]
            ].tolist():
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
    return decisions


def _missing(ssp: SSP, state: int) -> str:
    return (
        f"the policy has no action for state {ssp.states[state]!r}, which it can reach; expected"
        f" one of {known_actions(ssp, state)}"
    )


def _some(ssp: SSP) -> str:
    return ", ".join(repr(name) for name in ssp.states[:5]) + (", ..." if ssp.n_states > 5 else "")
