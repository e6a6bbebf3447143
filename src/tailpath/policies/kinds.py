"""Policies that users write down: of the state alone, of a memory, of the whole history; and
mixtures of policies, which an optimum under limits needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tailpath.errors import PolicyError, kind_of
from tailpath.graph import Array
from tailpath.kernels.unrolling import Memories
from tailpath.model.ssp import SSP, Name
from tailpath.policies.checks import checked_choices
from tailpath.policies.policy import Decision, Kind, Policy, known, on_model
from tailpath.policies.running import remember_roughly
from tailpath.texts import count


@dataclass(frozen=True, eq=False, repr=False)
class MarkovPolicy(Kind):
    """One decision per state; nothing is remembered.

    Parameters
    ----------
    decisions : mapping
        `{state: action}` or `{state: {action: probability}}`, by names. States never visited may be
        left out.

    Raises
    ------
    PolicyError
        If `decisions` is not a mapping; `tailpath.policy` takes arrays and much else.

    Examples
    --------
    >>> tp.evaluate(ssp, tp.MarkovPolicy({"home": {"road": 0.5, "train": 0.5}}), 0.1).mean
    27.0
    """

    decisions: Mapping[Name, Decision]

    def __post_init__(self) -> None:
        if not isinstance(self.decisions, Mapping):
            raise PolicyError(
                "a MarkovPolicy takes a mapping of states to actions, not"
                f" {kind_of(self.decisions)}; use tailpath.policy(ssp, ...)"
            )
        object.__setattr__(self, "decisions", dict(self.decisions))

    def __repr__(self) -> str:
        return f"<MarkovPolicy {count(len(self.decisions), 'decision')}>"

    def _is_for(self, ssp: SSP) -> bool:
        return not self.decisions or any(name in self.decisions for name in ssp.states)

    def _choices_on(self, ssp: SSP) -> tuple[Array, int, Memories | None] | None:
        choices = named_choices(ssp, self.decisions)
        return None if choices is None else (choices, 0, None)

    def start(self, state: Name) -> None:
        return None

    def action(self, state: Name, memory: None = None) -> Decision:
        if state not in self.decisions:
            raise PolicyError(f"the policy has no action for state {state!r}")
        return self.decisions[state]

    def remember(
        self, memory: None, state: Name, action: Name, cost: float, next_state: Name
    ) -> None:
        return None

    @classmethod
    def from_choices(cls, ssp: SSP, choices: Array) -> MarkovPolicy:
        """Make a policy from one choice index per state.

        Parameters
        ----------
        ssp : SSP
            The model.
        choices : array of int, shape (n_states,)
            The choice of each state; -1 where the state is a goal or has no decision.

        Returns
        -------
        MarkovPolicy
            The policy.

        Raises
        ------
        PolicyError
            If a choice is not one of its state.

        Examples
        --------
        >>> tp.MarkovPolicy.from_choices(ssp, [1, -1]).decisions
        {'home': 'train'}
        """
        choices = checked_choices(choices, ssp)
        decisions = {
            ssp.states[s]: ssp.choice_name(k) for s, k in enumerate(choices.tolist()) if k >= 0
        }
        return cls(decisions)


def named_choices(ssp: SSP, decisions: Mapping[Name, Any]) -> Array | None:
    """The choice of every state (-1: none), if each decision names one of its actions."""
    number = {action: index for index, action in enumerate(ssp.actions)}
    state = ssp.state_indices(decisions)
    try:
        action = np.fromiter(map(number.__getitem__, decisions.values()), np.int64, len(state))
    except (KeyError, TypeError):  # unknown, or probabilities of several actions
        return None
    wanted = np.full(ssp.n_states, -1)
    wanted[state] = np.where(ssp.is_goal[state], -1, action)
    choice = np.full(ssp.n_states, -1, dtype=np.int32)
    fits = np.flatnonzero(ssp.choice_action == wanted[ssp.choice_state])
    choice[ssp.choice_state[fits]] = fits
    return choice if np.array_equal(choice >= 0, wanted >= 0) else None


def named_policy(ssp: SSP, table: Mapping[Any, Any]) -> MarkovPolicy | None:
    """The policy of a table that names one action for every state that is no goal, translated
    once; None of any other.
    """
    index = np.flatnonzero(~ssp.is_goal)
    states = [ssp.states[state] for state in index.tolist()]
    if ssp.origin is not None or not all(map(table.__contains__, states)):
        return None
    choices = named_choices(ssp, {state: table[state] for state in states})
    return None if choices is None else MarkovPolicy.from_choices(ssp, choices)


@dataclass(frozen=True, eq=False, repr=False)
class MemoryPolicy(Kind):
    """Any finite-memory controller, from its three functions or tables.

    Only a policy made of tables can be saved.

    Parameters
    ----------
    start_ : callable or hashable
        A function of the state, or the first memory itself.
    action_ : callable or mapping
        A function of state and memory, or a mapping keyed by `(state, memory)`; of actions, or of
        `{action: probability}`.
    remember_ : callable or mapping
        A function of memory, state, action, cost and next state, or a mapping keyed by these five.

    Examples
    --------
    >>> tries = tp.read("textbook:geometric")
    >>> counting = tp.MemoryPolicy(0, lambda state, n: "try", lambda n, *step: min(n + 1, 2))
    >>> tp.evaluate(tries, counting, 0.1).mean
    4.0
    """

    start_: Any
    action_: Any
    remember_: Any

    def __repr__(self) -> str:
        if callable(self.action_):
            return f"<MemoryPolicy of {_function(self.action_)}>"
        return (
            f"<MemoryPolicy {count(len(self.action_), 'decision')}, start"
            f" {'by function' if callable(self.start_) else repr(self.start_)}>"
        )

    def _is_for(self, ssp: SSP) -> bool:
        known = {state for state, _ in self.action_} if isinstance(self.action_, Mapping) else ()
        return any(state in known for state in ssp.states)

    def start(self, state: Name) -> Any:
        return self.start_(state) if callable(self.start_) else self.start_

    def _decision(self, state: Name, memory: Any) -> Decision:
        decision: Decision
        if callable(self.action_):
            decision = self.action_(state, memory)
        elif (state, memory) in self.action_:
            decision = self.action_[state, memory]
        else:
            raise PolicyError(
                f"the policy has no action for state {state!r} with memory {memory!r}"
            )
        return decision

    def remember(
        self, memory: Any, state: Name, action: Name, cost: float, next_state: Name
    ) -> Any:
        key = (memory, state, action, cost, next_state)
        if callable(self.remember_):
            return self.remember_(*key)
        if key not in self.remember_:
            raise PolicyError(f"the policy does not say what to remember after {key!r}")
        return self.remember_[key]

    def _costs_to(self, memory: Any, state: Name, action: Name, next_state: Name) -> list[float]:
        table, step = self.remember_, (memory, state, action, next_state)
        return [] if callable(table) else [key[3] for key in table if (*key[:3], key[4]) == step]


@dataclass(frozen=True, eq=False, repr=False)
class HistoryPolicy(Kind):
    """A policy of the whole history (the paper's h): `(s0, a0, c0, s1, ...)` is its memory.

    Parameters
    ----------
    function : callable
        `function((s0, a0, c0, s1, a1, c1, ..., s))` gives the name of an action or
        `{action: probability}`.

    Examples
    --------
    >>> tp.evaluate(ssp, tp.HistoryPolicy(lambda history: "road"), 0.1).cvar(0.1)
    60.0
    """

    function: Callable[[tuple[Any, ...]], Decision]
    endless = True

    def __repr__(self) -> str:
        return f"<HistoryPolicy of {_function(self.function)}>"

    def _is_for(self, ssp: SSP) -> bool:
        made_for: SSP | None = getattr(self.function, "ssp", None)
        return made_for is not None and made_for.states == ssp.states

    def start(self, state: Name) -> tuple[Any, ...]:
        return (state,)

    def _decision(self, state: Name, memory: tuple[Any, ...]) -> Decision:
        return self.function(memory)

    def remember(
        self, memory: tuple[Any, ...], state: Name, action: Name, cost: float, next_state: Name
    ) -> tuple[Any, ...]:
        return (*memory, action, cost, next_state)


def _function(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


Memory = tuple[tuple[int, float, Any], ...]


@dataclass(frozen=True, eq=False, repr=False)
class MixedPolicy(Kind):
    """A mixture of policies: one of them is drawn at the start and followed to the end.

    Parameters
    ----------
    members : sequence of Policy
        The policies.
    weights : sequence of float
        Their probabilities: positive, with a sum of 1.

    Raises
    ------
    PolicyError
        If the weights are not probabilities, or not one for each policy.

    Notes
    -----
    As a memory machine it needs no hidden draw: the memory holds the members that the actions so
    far do not rule out, with the probability that each was drawn, and the next action is drawn
    accordingly. In every run the actions come with the same probabilities as with a draw at the
    start (Kuhn 1953).

    Examples
    --------
    >>> road, train = tp.MarkovPolicy({"home": "road"}), tp.MarkovPolicy({"home": "train"})
    >>> tp.evaluate(ssp, tp.MixedPolicy([road, train], [0.5, 0.5]), 0.1).cvar(0.1)
    45.0
    """

    members: tuple[Policy, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        try:
            weights = tuple(float(weight) for weight in self.weights)
        except (TypeError, ValueError):
            raise PolicyError("the weights of a mixture are numbers") from None
        if not self.members or len(self.members) != len(weights):
            raise PolicyError(
                f"a mixture needs one weight for each of its policies; it has {len(self.members)}"
                f" and {len(weights)}"
            )
        total = math.fsum(weights)
        if not all(0 < weight <= 1 for weight in weights) or abs(total - 1) > 1e-9:
            raise PolicyError(
                "the weights of a mixture are positive and sum to 1; these are"
                f" {', '.join(f'{w:g}' for w in weights)}"
            )
        object.__setattr__(self, "weights", tuple(weight / total for weight in weights))

    @property
    def drawn(self) -> tuple[tuple[float, Policy], ...]:  # type: ignore[override]
        """Pairs (probability, policy), of which one is drawn at the start; none is a mixture."""
        return tuple(
            (weight * share, own)
            for weight, member in zip(self.weights, self.members)
            for share, own in known(member).drawn or ((1.0, member),)
        )

    def _moved_to(self, ssp: SSP) -> MixedPolicy:
        return replace(self, members=tuple(on_model(member, ssp) for member in self.members))

    def start(self, state: Name) -> Memory:
        return tuple(
            (i, weight, member.start(state))
            for i, (member, weight) in enumerate(zip(self.members, self.weights))
        )

    def _decision(self, state: Name, memory: Memory) -> Decision:
        shares: dict[Name, float] = {}
        total = math.fsum(weight for _, weight, _ in memory)
        for i, weight, own in memory:
            for action, share in _distribution(self.members[i].action(state, own)).items():
                shares[action] = shares.get(action, 0.0) + weight * share / total
        return next(iter(shares)) if len(shares) == 1 else shares

    def remember(
        self, memory: Memory, state: Name, action: Name, cost: float, next_state: Name
    ) -> Memory:
        later = []
        for i, weight, own in memory:
            member = self.members[i]
            share = _distribution(member.action(state, own)).get(action, 0.0)
            if share > 0:
                after = member.remember(own, state, action, cost, next_state)
                later.append((i, weight * share, after))
        if not later:
            raise PolicyError(f"no policy of the mixture takes {action!r} in state {state!r}")
        return tuple(later)

    def remember_roughly(
        self, memory: Memory, state: Name, action: Name, cost: Any, next_state: Name
    ) -> Memory:
        step = state, action, cost, next_state
        return tuple(
            (i, weight, remember_roughly(self.members[i], own, *step)) for i, weight, own in memory
        )

    def __repr__(self) -> str:
        return (
            f"<MixedPolicy of {len(self.members)} policies:"
            f" {' + '.join(f'{w:.3g} {m!r}' for w, m in zip(self.weights, self.members))}>"
        )


def by_coin(policies: Sequence[Policy], weights: Sequence[float]) -> Policy:
    """The mixture of some policies; the policy itself if it is the only one."""
    return policies[0] if len(policies) == 1 else MixedPolicy(tuple(policies), tuple(weights))


def _distribution(decision: Decision) -> Mapping[Name, float]:
    return decision if isinstance(decision, Mapping) else {decision: 1.0}
