"""A labelled MDP, as PRISM and Storm have it: choices by state, branches by choice, labels and
reward structures. `labelled_ssp.py` makes a stochastic shortest path problem of it.

What is a branch here, as in UMB, is a transition in the files of DRN and PRISM, and becomes an
outcome of the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from tailpath.formats.extras import Extras
from tailpath.graph import Array, BoolArray, FloatArray
from tailpath.model.ssp import Name

T = TypeVar("T")


@dataclass(frozen=True)
class Reward:
    """One reward structure: a number per state, per choice, per branch, each optional."""

    state: FloatArray | None = None
    choice: FloatArray | None = None
    branch: FloatArray | None = None


class Lazy(Mapping[str, T]):
    """Arrays by name, each built when it is asked for: there may be as many labels as states."""

    def __init__(self, names: Iterable[str], build: Callable[[str], T]) -> None:
        self._names, self._build = dict.fromkeys(names), build

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        return self._build(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


Labels = Lazy[BoolArray]


def labels_of_codes(members: Mapping[str, Sequence[int]], codes: Array) -> Labels:
    """Labels by the codes that carry them, where each state has a code, (n,)."""
    return Lazy(members, lambda label: np.isin(codes, np.array(members[label], dtype=np.int64)))


@dataclass(frozen=True)
class LabelledMDP:
    """A labelled MDP as a file has it. `choice_action` numbers `actions`; -1 is a choice without a
    name. Where probabilities are intervals, `low` has their low ends and `probability` the high
    ones. Runs begin in the states that are `initial`; without it, in those with the label `init`.
    """

    path: str
    state_choices: Array
    choice_branches: Array
    target: Array
    probability: FloatArray
    choice_action: Array
    actions: Sequence[str]
    labels: Labels
    rewards: Lazy[Reward]
    can_write_action: Callable[[str], bool] = bool
    states: Sequence[Name] | None = None
    initial: BoolArray | None = None
    low: FloatArray | None = None
    extras: Extras = field(default_factory=Extras)

    @property
    def n_states(self) -> int:
        return len(self.state_choices) - 1
