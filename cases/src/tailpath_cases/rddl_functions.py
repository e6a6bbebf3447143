"""RDDL problems as functions, for those that are too large to be listed: states are pairs of the
steps taken and the values of the state fluents.

The reward is a term of a few fluents. Over all their values it has a least and a greatest one,
which say what a step costs at most; where it is 0, and its fluents stay as they are whatever all
others do, nothing more will be paid, and the run has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from tailpath import ImplicitSSP
from tailpath.errors import FormatError
from tailpath_cases.rddl import checked, files_of, horizon_of
from tailpath_cases.rddl_problem import GroundProblem
from tailpath_cases.rddl_terms import TROUBLES

#: The most fluents that a reward may depend on.
MOST_FLUENTS = 16


class Timed(NamedTuple):
    """The steps taken, and the values of the state fluents."""

    step: int
    fluents: tuple[Any, ...]


class GroundFunctions:
    """The functions of a grounded problem with a horizon."""

    def __init__(self, problem: GroundProblem, horizon: int) -> None:
        self.problem, self.horizon = problem, horizon
        self.start = Timed(0, problem.start)
        scope = problem.reward.scope
        if len(scope) > MOST_FLUENTS or not all(map(self._is_boolean, scope)):
            raise FormatError(
                f"{problem.location}: the reward depends on {len(scope)} fluents; its bounds are"
                f" found for up to {MOST_FLUENTS}, all of them bool"
            )
        ways = product((False, True), repeat=len(scope))
        rewards = [problem.reward.value(dict(zip(scope, way))) for way in ways]
        self.shift = max(*rewards, 0)
        if self.shift and problem.over:
            raise FormatError(
                f"{problem.location}: rewards are positive, and runs may end before the horizon"
            )
        self.dearest = self.shift - min(rewards)
        self.stays = {key: rule for key, rule in problem.happens if key[:-1] in scope}
        self.settles = not self.shift and len(self.stays) == len(scope)

    def _is_boolean(self, name: str) -> bool:
        problem = self.problem
        return name in problem.none or isinstance(
            dict(zip(problem.names, problem.start)).get(name), bool
        )

    def actions(self, state: Timed) -> list[str]:
        return self.problem.actions(state.fluents)

    def outcomes(self, state: Timed, action: str) -> Iterator[tuple[Any, Timed, Any]]:
        for target, share, gain in self.problem.outcomes(state.fluents, action):
            yield share, Timed(state.step + 1, target), self.shift - gain

    def is_goal(self, state: Timed) -> bool:
        done = state.step >= self.horizon or self.problem.ended(state.fluents)
        return done or (self.settles and self._settled(state))

    def surely(self, state: Timed) -> Any:
        return (self.horizon - state.step) * self.dearest

    def _settled(self, state: Timed) -> bool:
        values = dict(zip(self.problem.names, state.fluents))
        own = {name: values[name] for name in self.problem.reward.scope}
        try:
            if self.problem.reward.value(own) != 0:
                return False
            return all(
                [value for value, _ in rule.term.law(own)] == [own[key[:-1]]]
                for key, rule in self.stays.items()
            )
        except TROUBLES:  # it depends on others
            return False


def functions(source: str, reading: Any) -> ImplicitSSP:
    """The problem `DOMAIN/INSTANCE`, or two files, as functions."""
    location = f"rddl:{source}"
    model = checked(*files_of(source, location), location)
    horizon = horizon_of(reading.constants, model.horizon, location)
    if horizon is None or model.discount != 1:
        raise FormatError(f"{location}: as functions it needs a horizon, and no discount")
    problem = GroundProblem(model, location)
    problem.work.limit = math.inf
    of = GroundFunctions(problem, horizon)
    return ImplicitSSP(of.start, of.actions, of.outcomes, of.is_goal, surely=of.surely)
