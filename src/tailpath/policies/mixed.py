"""A mixture of policies: one coin at the start decides which of them is followed to the end.

That is what an optimum under limits needs (`solve(..., subject_to=...)`): the values of all
mixtures are the convex hull of those of their members.

Members that never randomise keep their weights, so the memory stays finite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailpath.errors import PolicyError
from tailpath.model.ssp import Name
from tailpath.policies.policy import Decision, Kind, Policy
from tailpath.policies.running import beyond_the_model

Memory = tuple[tuple[int, float, Any], ...]


@dataclass(frozen=True, eq=False, repr=False)
class MixedPolicy(Kind):
    """A mixture of policies: one coin at the start decides which of them is followed to the end.

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
    As a memory machine it needs no hidden coin: the memory holds the members that the actions so
    far do not rule out, with the probability that the coin fell on each, and the next action is
    drawn accordingly. In every run the actions come with the same probabilities as with the coin
    (Kuhn 1953).

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
            object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        except (TypeError, ValueError):
            raise PolicyError("the weights of a mixture are numbers") from None
        if not self.members or len(self.members) != len(self.weights):
            raise PolicyError(
                f"a mixture needs one weight for each of its policies; it has {len(self.members)}"
                f" and {len(self.weights)}"
            )
        if (
            not all(0 < weight <= 1 for weight in self.weights)
            or abs(math.fsum(self.weights) - 1) > 1e-9
        ):
            raise PolicyError(
                "the weights of a mixture are positive and sum to 1; these are"
                f" {', '.join(f'{w:g}' for w in self.weights)}"
            )

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
        return self._own("remember_roughly", memory, state, action, cost, next_state)

    def moved(self, memory: Memory, state: Name, next_state: Name) -> Memory:
        return self._own("moved", memory, state, next_state)

    def _own(self, method: str, memory: Memory, *observed: Any) -> Memory:
        """What each member remembers of what the model did not foresee."""
        return tuple(
            (i, weight, beyond_the_model(self.members[i], method)(own, *observed))
            for i, weight, own in memory
        )

    def __repr__(self) -> str:
        return (
            "<MixedPolicy by a coin at the start:"
            f" {' + '.join(f'{w:.3g} {m!r}' for w, m in zip(self.weights, self.members))}>"
        )


def _distribution(decision: Decision) -> Mapping[Name, float]:
    return decision if isinstance(decision, Mapping) else {decision: 1.0}
