"""What has been expanded of a model that is given by functions: rows of outcomes, which grow.

A state is *found* when an outcome leads to it, and *expanded* when its own outcomes are known. What
is found and not expanded is the *boundary*, of which only bounds are known. Everything a user
trusts us with is checked on every row that is expanded.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import FloatArray, IntArray
from tailpath.model.cost_units import MAX_UNITS, as_fraction, in_levels
from tailpath.model.implicit import BOUNDS, ImplicitSSP, rows_of
from tailpath.model.outcomes import ROW_TOLERANCE, Name

#: What a bound may miss its check by, relatively, and a whole number of units that it stands for.
TOLERANCE = 1e-9
#: How far a state is: a goal, or found only. States expanded are numbered from 0.
GOAL, BOUNDARY = -2, -1


def bounds_at(model: ImplicitSSP, state: Name) -> tuple[float, float, float, float]:
    """What is trusted of the cost to go from a state: `heuristic`, of the expected cost of every
    policy; `least`, of every run; `upper`, of the expected cost of some policy; and `surely`, of
    every run of some policy. 0 or infinite where nothing is known.
    """

    def asked(name: str, unknown: float) -> float:
        function = getattr(model, name)
        given = None if function is None else function(state)
        if given is None:
            return unknown
        try:
            value = float(given)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not value >= 0:
            raise ModelError(f"{name}({state!r}) is {given!r}, not a number of 0 or more")
        return value

    least = asked("least", 0.0)
    low = max(asked("heuristic", 0.0), least)
    return low, least, asked("upper", math.inf), asked("surely", math.inf)


def assumed(model: ImplicitSSP) -> str:
    """What is trusted, in words."""
    named = [name for name in BOUNDS if getattr(model, name) is not None]
    if not named:
        return "the functions of the model alone"
    return f"{', '.join(named)}: checked where states were expanded, trusted elsewhere"


class Snapshot(NamedTuple):
    """All rows at some moment, by expanded state, as arrays. `target` is the number of the found
    state that an outcome leads to, `rank` by found state says how far it is, and `bounds` (n, 4)
    has the columns of `bounds_at`.
    """

    state_choices: IntArray
    choice_outcomes: IntArray
    target: IntArray
    probability: FloatArray
    level: IntArray
    state: IntArray
    rank: IntArray
    bounds: FloatArray
    unit: Fraction


@dataclass
class Expansion:
    """The rows, by state in the order in which they were expanded.

    An interrupt may come between any two lines. What counts is `expanded`, the last that is
    written; what was begun after it is dropped before more is added.
    """

    model: ImplicitSSP
    found: dict[Name, int] = field(default_factory=dict)
    bounds: array[float] = field(default_factory=lambda: array("d"))
    rank: array[int] = field(default_factory=lambda: array("q"))
    expanded: list[Name] = field(default_factory=list)
    actions: list[Name] = field(default_factory=list)
    state_choices: array[int] = field(default_factory=lambda: array("q", [0]))
    choice_outcomes: array[int] = field(default_factory=lambda: array("q", [0]))
    target: array[int] = field(default_factory=lambda: array("q"))
    probability: array[float] = field(default_factory=lambda: array("d"))
    cost: array[float] = field(default_factory=lambda: array("d"))
    unit: Fraction = Fraction(0)
    largest: Fraction = Fraction(0)
    scaled: str = ""
    _exact: dict[Any, float] = field(default_factory=dict)
    _shares: dict[Any, float] = field(default_factory=dict)

    # ------------------------------------------------------------------ finding and expanding

    def number(self, state: Name) -> int:
        """The number of a state, which is found by this."""
        number = self.found.get(state)
        if number is None:
            number = len(self.found)
            is_goal = self.model.is_goal(state)
            bounds = (0.0, 0.0, 0.0, 0.0) if is_goal else bounds_at(self.model, state)
            del self.bounds[4 * number :], self.rank[number:]
            self.bounds.extend(bounds)
            self.rank.append(GOAL if is_goal else BOUNDARY)
            self.found[state] = number
        return number

    def expand(self, numbers: Iterable[int]) -> None:
        """Add the rows of states on the boundary."""
        names = list(self.found)
        for number in numbers:
            self._expand(names[number])

    def _expand(self, state: Name) -> None:
        rows = rows_of(self.model, state)
        if rows is None:
            raise ModelError(f"is_goal({state!r}) is not always the same")
        self._drop_what_was_begun()
        checks = _Checks(self, state)
        for action, outcomes in rows:
            if action in self.actions[self.state_choices[len(self.expanded)] :]:
                raise ModelError(f"actions({state!r}) has {action!r} twice")
            targets, shares, costs = [], [], []
            for given, target, cost in outcomes:
                share = self._shares.get(given)
                if share is None:
                    share = self._share(given, state, action, target)
                if share == 0.0:
                    continue
                paid = self._exact.get(cost)
                if paid is None:
                    paid = self._cost(cost, state, action, target)
                targets.append(self.number(target))
                shares.append(share)
                costs.append(paid)
            shares = self._summing_to_one(shares, state, action)
            checks.row(action, targets, shares, costs)
            self.target.extend(targets)
            self.probability.extend(shares)
            self.cost.extend(costs)
            self.choice_outcomes.append(len(self.target))
            self.actions.append(action)
        checks.state()
        self.state_choices.append(len(self.actions))
        self.expanded.append(state)
        self._number_the_last()

    def _number_the_last(self) -> None:
        if self.expanded:
            self.rank[self.found[self.expanded[-1]]] = len(self.expanded) - 1

    def _drop_what_was_begun(self) -> None:
        done = len(self.expanded)
        self._number_the_last()
        del self.state_choices[done + 1 :]
        choices = self.state_choices[-1]
        del self.actions[choices:], self.choice_outcomes[choices + 1 :]
        outcomes = self.choice_outcomes[-1]
        del self.target[outcomes:], self.probability[outcomes:], self.cost[outcomes:]

    # ------------------------------------------------------------------ numbers

    def _share(self, given: Any, state: Name, action: Name, target: Name) -> float:
        try:
            share = float(as_fraction(given) if isinstance(given, str) else given)
        except (TypeError, ValueError, ArithmeticError):
            share = math.nan
        if not 0 <= share <= 1 + ROW_TOLERANCE:
            raise ModelError(
                f"state {state!r}, action {action!r} -> {target!r} has probability {given!r}"
            )
        self._shares[given] = share
        return share

    def _cost(self, given: Any, state: Name, action: Name, target: Name) -> float:
        where = f"state {state!r}, action {action!r} -> {target!r} costs {given!r}"
        try:
            exact = as_fraction(given)
        except (TypeError, ValueError, ArithmeticError):
            raise ModelError(f"{where}, not a finite number") from None
        if exact < 0:
            raise ModelError(f"{where}; costs below 0 cannot be expanded lazily")
        # gcd(p1/q1, p2/q2) = gcd(p1, p2) / lcm(q1, q2)
        unit = Fraction(
            math.gcd(self.unit.numerator, exact.numerator),
            math.lcm(self.unit.denominator, exact.denominator),
        )
        largest = max(self.largest, exact)
        if largest > MAX_UNITS * unit and largest:
            raise ModelError(
                f"{where}; with it costs have no common unit that is coarse enough to count in:"
                " round them to a grid in the functions"
            )
        self.unit, self.largest = unit, largest
        self._exact[given] = float(exact)
        return float(exact)

    def _summing_to_one(self, shares: list[float], state: Name, action: Name) -> list[float]:
        total, size = math.fsum(shares), len(shares)
        if not abs(total - 1) <= ROW_TOLERANCE * size:
            raise ModelError(
                f"the probabilities of state {state!r}, action {action!r} sum to {total:.12g},"
                " not 1"
            )
        if abs(total - 1) <= 2.0**-52 * size:
            return shares
        if abs(total - 1) > 2.0**-50 * max(size, 4) and not self.scaled:
            self.scaled = f"state {state!r}, action {action!r}, off by {abs(total - 1):.3g}"
        return [share / total for share in shares]

    # ------------------------------------------------------------------ as arrays

    def snapshot(self) -> Snapshot:
        """All rows of the states that are expanded now."""
        self._number_the_last()
        done, unit = len(self.expanded), self.unit or Fraction(1)
        state_choices = np.array(self.state_choices[: done + 1])
        choice_outcomes = np.array(self.choice_outcomes[: state_choices[-1] + 1])
        size, count = choice_outcomes[-1], len(self.found)
        target, probability, cost = (
            np.array(column)[:size] for column in (self.target, self.probability, self.cost)
        )
        rank = np.array(self.rank)[:count]
        state = np.empty(done, dtype=np.int64)
        inside = np.flatnonzero(rank >= 0)
        state[rank[inside]] = inside
        bounds = np.array(self.bounds)[: 4 * count].reshape(-1, 4)
        return Snapshot(
            state_choices=state_choices,
            choice_outcomes=choice_outcomes,
            target=target,
            probability=probability,
            level=in_levels(cost, unit),
            state=state,
            rank=rank,
            bounds=bounds,
            unit=unit,
        )


class _Checks:
    """What the bounds of a state must keep with those of its successors, action by action. Staying
    at no cost is divided out, since any number would keep with itself.
    """

    def __init__(self, expansion: Expansion, state: Name) -> None:
        self.bounds, self.name = expansion.bounds, state
        self.number = expansion.found[state]
        self.low, self.least, self.upper, self.surely = self.bounds[4 * self.number :][:4]
        self.best_upper = self.best_surely = math.inf

    def row(
        self, action: Name, targets: list[int], shares: list[float], costs: list[float]
    ) -> None:
        bounds, own = self.bounds, self.number
        low = upper = surely = leaves = 0.0
        least = math.inf
        for number, share, cost in zip(targets, shares, costs):
            if number == own and cost == 0.0:
                continue
            at = 4 * number
            leaves += share
            low += share * (cost + bounds[at])
            least = min(least, cost + bounds[at + 1])
            upper += share * (cost + bounds[at + 2])
            surely = max(surely, cost + bounds[at + 3])
        if leaves == 0.0:
            return
        self.best_upper = min(self.best_upper, upper / leaves)
        self.best_surely = min(self.best_surely, surely)
        for name, claimed, most in (
            ("least", self.least, least),
            ("heuristic", self.low, low / leaves),
        ):
            if claimed > most + TOLERANCE * max(most, 1.0):
                raise ModelError(
                    f"{name}({self.name!r}) is {claimed:.12g}, but action {action!r} needs no more"
                    f" than {most:.12g} by the {name} of its successors"
                )

    def state(self) -> None:
        for name, claimed, needed in (
            ("upper", self.upper, self.best_upper),
            ("surely", self.surely, self.best_surely),
        ):
            if claimed < needed - TOLERANCE * max(claimed, 1.0):
                raise ModelError(
                    f"{name}({self.name!r}) is {claimed:.12g}, but by the {name} of successors its"
                    f" best action needs {needed:.12g}"
                )
