"""A model as an environment of Gymnasium, for agents that learn by trying; and the budget left as a
part of what they observe, without which no agent can learn a static CVaR.

Over a fixed budget w, a policy of least CVaR is one of least E[(Z - w)+]. With the budget left
beside the state, and what a step costs beyond it as its cost, that is a plain mean: the rewards of
an episode sum to -(Z - w)+.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np

from tailpath.errors import OptionError, PolicyError
from tailpath.graph import members
from tailpath.model.cost_units import exact_number, in_units
from tailpath.model.ssp import SSP, Name
from tailpath.options import check_integer


class ModelEnv(gymnasium.Env):  # type: ignore[misc]
    """Observations are numbers of states, actions are numbers of `ssp.actions`, and a reward is
    minus a cost. With a budget, in cost units, observations are `(state, units left)`, and rewards
    minus what a step costs beyond it.

    An action that the state does not have changes nothing and costs `penalty`; the info has what a
    step costs (`cost`), and which actions the state has (`action_mask`).
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012

    def __init__(
        self, ssp: SSP, budget: int | None, max_steps: int | None, render_mode: str | None
    ) -> None:
        self.ssp, self.budget = ssp, budget
        self.max_steps, self.render_mode = max_steps, render_mode
        spaces = gymnasium.spaces
        self.observation_space = spaces.Discrete(ssp.n_states)
        if budget is not None:
            self.observation_space = spaces.MultiDiscrete([ssp.n_states, budget + 1])
        self.action_space = spaces.Discrete(max(len(ssp.actions), 1))
        self.penalty = float(np.abs(ssp.outcome_cost).max(initial=0.0)) or 1.0
        self.state, self.left, self.steps = ssp.start_index, budget or 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.state, self.left, self.steps = self.ssp.start_index, self.budget or 0, 0
        return self._observed(), self._info(0.0)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        ssp = self.ssp
        self.steps += 1
        cost = 0.0 if ssp.is_goal[self.state] else self.penalty
        for choice in members(ssp.state_choices, self.state):
            if ssp.choice_action[choice] == int(action):
                outcomes = members(ssp.choice_outcomes, choice)
                chances = ssp.outcome_probability[outcomes.start : outcomes.stop].cumsum()
                drawn = np.searchsorted(chances, self.np_random.random() * chances[-1], "right")
                outcome = outcomes[int(drawn)]
                self.state = int(ssp.outcome_target[outcome])
                cost = float(ssp.outcome_cost[outcome])
                break
        arrived, paid = bool(ssp.is_goal[self.state]), cost
        late = self.max_steps is not None and self.steps >= self.max_steps
        if self.budget is not None:
            level = _levels(ssp, cost)
            paid = float(max(level - self.left, 0) * Fraction(ssp.cost_unit or 1))
            self.left = max(self.left - level, 0)
        return self._observed(), -paid, arrived, late and not arrived, self._info(cost)

    def render(self) -> Any:
        return f"{self.ssp.states[self.state]} after {self.steps} steps"

    def _observed(self) -> Any:
        return self.state if self.budget is None else np.array([self.state, self.left])

    def _info(self, cost: float) -> dict[str, Any]:
        mask = np.zeros(len(self.ssp.actions), dtype=np.int8)
        own = members(self.ssp.state_choices, self.state)
        mask[self.ssp.choice_action[own.start : own.stop]] = 1
        return {"state": self.ssp.states[self.state], "cost": cost, "action_mask": mask}

    def policy(self, agent: Any) -> AgentPolicy:
        """What an agent that was trained here does, as a policy for the model, which remembers the
        budget left if there is one.
        """
        return AgentPolicy(self.ssp, agent, self.budget)


def _levels(ssp: SSP, cost: float) -> int:
    assert ssp.cost_unit is not None
    return round(in_units(cost, ssp.cost_unit))


class AgentPolicy:
    """An agent with `predict`, or a function of observations, as a policy by names; its memory is
    the budget left, if it observes that.
    """

    def __init__(self, ssp: SSP, agent: Any, budget: int | None) -> None:
        if not callable(agent) and not hasattr(agent, "predict"):
            raise PolicyError(f"expected a function, or an agent with predict, not {agent!r}")
        self.ssp, self.agent, self.budget = ssp, agent, budget

    def start(self, state: Name) -> int | None:
        return self.budget

    def action(self, state: Name, memory: int | None) -> Name:
        index, agent = self.ssp.state_index(state), self.agent
        observed: Any = index if memory is None else np.array([index, memory])
        found = (
            agent.predict(observed, deterministic=True)
            if hasattr(agent, "predict")
            else agent(observed)
        )
        # A prediction is an action, or an action and the state of the agent.
        number = int(np.ravel(found[0] if isinstance(found, tuple) else found)[0])
        if not 0 <= number < len(self.ssp.actions):
            raise PolicyError(
                f"the agent chose action {number}, outside 0..{len(self.ssp.actions) - 1}"
            )
        name = self.ssp.actions[number]
        if self.ssp.choice_index(index, name) < 0:
            left = "" if memory is None else f" with {memory} units left"
            raise PolicyError(
                f"the agent chose action {name!r} in state {state!r}{left}, where it is not"
                " available; mask its actions with info['action_mask']"
            )
        return name

    def remember(
        self, memory: int | None, state: Name, action: Name, cost: float, next_state: Name
    ) -> int | None:
        return None if memory is None else max(memory - _levels(self.ssp, cost), 0)


def environment(ssp: SSP, budget: Any, max_steps: int | None, render_mode: str | None) -> ModelEnv:
    """The environment of `SSP.to_gym`."""
    most = None if max_steps is None else check_integer(max_steps, "max_steps", 1)
    if render_mode not in (None, "ansi"):
        raise OptionError(f"render_mode must be 'ansi' or None, not {render_mode!r}")
    if budget is None:
        return ModelEnv(ssp, None, most, render_mode)
    if ssp.signed:
        raise OptionError("a budget needs costs of 0 or more; use ssp.reduced")
    if ssp.cost_unit is None:
        raise OptionError("a budget needs costs with a common unit; round them to a grid first")
    units = exact_number(budget, "the budget") / ssp.cost_unit
    return ModelEnv(ssp, int(units), most, render_mode)
