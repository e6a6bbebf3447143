"""The stochastic shortest path problem: who can go where, with which probability, at which cost.

A model is three levels of arrays, state -> choice -> outcome. The cost sits on the *outcome*. Goal
states are absorbing and free and have no choices. Costs are minimised, and may have any sign as
long as no cycle has a negative cost (`potential.py`). All checks happen once, when it is built
(`checks.py`); an SSP that exists is sound. Arrays are read-only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import ModelError, OptionError
from tailpath.graph import BoolArray, Transitions, owners
from tailpath.graph import FloatArray as FloatArray
from tailpath.graph import IntArray as IntArray
from tailpath.model.checks import (
    check_outcomes,
    check_structure,
    check_unit,
    checked_probabilities,
    model_mark,
)
from tailpath.model.cost_units import common_unit, in_levels
from tailpath.model.geometry import Geometry as Geometry
from tailpath.model.geometry import geometry_of
from tailpath.model.outcomes import Name as Name
from tailpath.model.potential import Reduction, reduction_of, unmoved
from tailpath.model.records import Record, data_frame, hand_over, own_array
from tailpath.model.ssp_builders import SSPBuilder
from tailpath.options import check_index
from tailpath.pictures.notebook import model_card
from tailpath.registers import module_of
from tailpath.texts import count, did_you_mean

#: The arrays of a model, each with its type.
ARRAYS: dict[str, Any] = {
    "state_choices": np.int64,
    "choice_outcomes": np.int64,
    "outcome_target": np.int32,
    "outcome_probability": np.float64,
    "outcome_cost": np.float64,
    "choice_action": np.int32,
    "is_goal": np.bool_,
}


def _names(given: Any, what: str) -> Sequence[Name]:
    """Names as a tuple, which does not change with the caller's list, or as a range."""
    try:
        return given if isinstance(given, range) else tuple(given)
    except TypeError:
        raise ModelError(f"{what} must be a sequence of names, not {given!r}") from None


def _renamed(given: Any, names: Sequence[Name], what: str) -> Any:
    """Names in the place of others: `{old: new}`, a function of the old one, or one for each."""
    if isinstance(given, Mapping):
        for name in given.keys() - set(names):
            raise OptionError(
                f"the model has no {what} {name!r} to rename{did_you_mean(name, names)}"
            )
        return tuple(given.get(name, name) for name in names)
    return names if given is None else tuple(map(given, names)) if callable(given) else given


@dataclass(frozen=True, eq=False, repr=False)
class Origin(Record):
    """Of a model made from another: `index[s]` is the state of the other model that state s stands
    for, or -1; `states` are its names.
    """

    states: Sequence[Name]
    index: IntArray

    def __post_init__(self) -> None:
        self._freeze()


@dataclass(frozen=True, eq=False, repr=False)
class SSP(SSPBuilder):
    """An immutable stochastic shortest path problem: states, choices, outcomes, a start and goals.

    Most users call `SSP.from_outcomes`, `SSP.from_functions`, `SSP.from_arrays`, `tailpath.read` or
    a function of `tailpath.domains`. The constructor takes the arrays themselves and checks them.

    Parameters
    ----------
    state_choices : array of int64, shape (n_states + 1,)
        The choices of state s are state_choices[s] .. state_choices[s + 1] - 1.
    choice_outcomes : array of int64, shape (n_choices + 1,)
        The outcomes of choice k are choice_outcomes[k] .. choice_outcomes[k + 1] - 1.
    outcome_target : array of int32, shape (n_outcomes,)
        The state that each outcome leads to.
    outcome_probability : array of float64, shape (n_outcomes,)
        Positive; those of a choice sum to 1.
    outcome_cost : array of float64, shape (n_outcomes,)
        Finite, of any sign: gains are negative costs.
    choice_action : array of int32, shape (n_choices,)
        The index in `actions` of the name of each choice.
    is_goal : array of bool, shape (n_states,)
        Goals have no choices: they are absorbing and free.
    start_index : int
        The state where runs begin.
    states : sequence of hashable, length n_states
        Names, all different; a `range` costs no memory.
    actions : sequence of hashable
        Names, all different.
    exact_unit : Fraction, optional
        The cost unit, where the costs are known as rationals; otherwise it is found from the
        floats.
    geometry : Geometry, mapping or pair of int, optional
        Where the states lie on a grid, for pictures: `{state: (row, column)}`, with a third entry
        for the kind of the cell, or `(rows, columns)` where states are numbers of cells.
    notes : tuple of str
        What a reader assumed or changed: signs, redirected goals, a shift.
    origin : Origin, optional
        Set where a state stands for a state of another model, so that policies for that one are
        understood. Files do not keep it.
    probability_error : float
        How far, relatively, each probability may be off beside rounding, where the model was
        computed from another, or one is below the doubles with all digits; bounds count it. Files
        do not keep it.
    paid : array of float64, shape (n_outcomes,), optional
        The cost of each outcome as policies observe it, where that is another number than its cost:
        set in `reduced`.

    Raises
    ------
    ModelError
        If the numbers or names do not define a valid SSP; the text names the state and the action.

    Notes
    -----
    The cost sits on the outcome. Two outcomes of one choice that lead to the same state at
    different costs stay two outcomes: merging them would keep the mean and change the risk.

    `cost_unit` is the largest rational u such that every cost is a whole number of u. With it
    accumulated costs are integers, and equal costs are equal exactly (0.1 + 0.2 is 0.3): a float is
    read as the shortest decimal that prints it.

    Examples
    --------
    >>> ssp = tp.SSP.from_outcomes([("home", "road", "work", 0.9, 20),
    ...                             ("home", "road", "work", 0.1, 60),
    ...                             ("home", "train", "work", 1, 30)], "home", ["work"])
    >>> ssp
    <SSP 2 states, 2 choices, 3 outcomes, start 'home'>
    >>> ssp.states, ssp.goals, ssp.cost_unit
    (('home', 'work'), ('work',), Fraction(10, 1))
    """

    state_choices: IntArray
    choice_outcomes: IntArray
    outcome_target: NDArray[np.int32]
    outcome_probability: FloatArray
    outcome_cost: FloatArray
    choice_action: NDArray[np.int32]
    is_goal: BoolArray
    start_index: int
    states: Sequence[Name]
    actions: Sequence[Name]
    exact_unit: Fraction | None = None
    geometry: Geometry | None = None
    notes: tuple[str, ...] = ()
    origin: Origin | None = None
    probability_error: float = 0.0
    paid: FloatArray | None = None

    def __post_init__(self) -> None:
        dtypes = ARRAYS if self.paid is None else {**ARRAYS, "paid": np.float64}
        arrays = {name: own_array(getattr(self, name), name, dtypes[name]) for name in dtypes}
        names = {name: _names(getattr(self, name), name) for name in ("states", "actions")}
        vars(self).update(arrays | names)
        geometry: Any = self.geometry
        if not isinstance(geometry, Geometry):
            vars(self)["geometry"] = geometry_of(geometry, self.states)
        check_structure(self)
        check_outcomes(self)
        check_unit(self)
        vars(self)["outcome_probability"] = checked_probabilities(self)
        least = float(self.outcome_probability.min(initial=1.0))
        if least < sys.float_info.min:  # it was read with fewer digits than others
            error = max(self.probability_error, 2.0**-1074 / max(least, 2.0**-1074))
            vars(self)["probability_error"] = error
        self._freeze()
        for name in dtypes:
            hand_over(getattr(self, name))

    # ------------------------------------------------------------------ sizes and names

    @property
    def n_states(self) -> int:
        """The number of states, goals included."""
        return len(self.state_choices) - 1

    @property
    def n_choices(self) -> int:
        """The number of choices, of all states together."""
        return len(self.choice_outcomes) - 1

    @property
    def n_outcomes(self) -> int:
        """The number of outcomes, of all choices together."""
        return len(self.outcome_target)

    @property
    def start(self) -> Name:
        """The name of the state where runs begin."""
        return self.states[self.start_index]

    @property
    def goals(self) -> tuple[Name, ...]:
        """The names of the goals, in index order."""
        return tuple(self.states[s] for s in np.flatnonzero(self.is_goal).tolist())

    @cached_property
    def _state_index(self) -> dict[Name, int]:
        return {name: index for index, name in enumerate(self.states)}

    def state_index(self, state: Name) -> int:
        """The index of a state.

        Parameters
        ----------
        state : hashable
            The name of a state.

        Returns
        -------
        int
            Its index, 0 .. n_states - 1.

        Raises
        ------
        ModelError
            If the model has no such state.

        Examples
        --------
        >>> ssp.state_index("work")
        1
        """
        if isinstance(self.states, range) and isinstance(state, (int, np.integer)):
            if 0 <= state < self.n_states:
                return int(state)
        elif state in self._state_index:
            return self._state_index[state]
        raise ModelError(f"the model has no state {state!r}")

    def state_indices(self, states: Collection[Name]) -> IntArray:
        """The indices of several states.

        Parameters
        ----------
        states : collection of hashable
            Names of states.

        Returns
        -------
        numpy.ndarray of int, (states,)
            The index of each.

        Raises
        ------
        ModelError
            If the model lacks one of them.

        Examples
        --------
        >>> ssp.state_indices(["work", "home"])
        array([1, 0])
        """
        find: Callable[[Name], int] = self.state_index
        if not isinstance(self.states, range) and all(map(self._state_index.__contains__, states)):
            find = self._state_index.__getitem__
        return np.fromiter(map(find, states), dtype=np.int64, count=len(states))

    def choice_index(self, state: int, action: Name) -> int:
        """The choice of a state that carries an action's name.

        Parameters
        ----------
        state : int
            The index of a state.
        action : hashable
            The name of an action.

        Returns
        -------
        int
            The index of the choice, or -1 where the state has no such action.

        Examples
        --------
        >>> ssp.choice_index(0, "train"), ssp.choice_index(0, "walk")
        (1, -1)
        """
        state = check_index(state, self.n_states, "state")
        for choice in range(self.state_choices[state], self.state_choices[state + 1]):
            if self.actions[self.choice_action[choice]] == action:
                return choice
        return -1

    def choice_name(self, choice: int) -> Name:
        """The action name of a choice.

        Parameters
        ----------
        choice : int
            The index of a choice.

        Returns
        -------
        hashable
            The name of its action.

        Examples
        --------
        >>> ssp.choice_name(1)
        'train'
        """
        choice = check_index(choice, self.n_choices, "choice")
        name: Name = self.actions[int(self.choice_action[choice])]
        return name

    @cached_property
    def choice_state(self) -> NDArray[np.int32]:
        """The state each choice belongs to: an array of int32, shape (n_choices,)."""
        return hand_over(owners(self.state_choices, np.int32))

    @property
    def outcome_choice(self) -> NDArray[np.int32]:
        """The choice each outcome belongs to: an array of int32, shape (n_outcomes,)."""
        return self.transitions.source

    # ------------------------------------------------------------------ the graph

    @cached_property
    def transitions(self) -> Transitions:
        """The outcomes with a row for each choice, whose targets are states.

        Levels are left out: to find the unit takes time.
        """
        return Transitions(
            self.choice_outcomes,
            self.outcome_target,
            self.outcome_probability,
            self.outcome_cost,
            None,
        )

    @property
    def by_state(self) -> Transitions:
        """The outcomes with one row for each state, over all its choices: where a step may lead."""
        return self.transitions.joined(self.state_choices)

    # ------------------------------------------------------------------ exact costs

    @cached_property
    def cost_unit(self) -> Fraction | None:
        """The largest Fraction of which every cost is a multiple; None where it is too fine."""
        if self.exact_unit is not None:
            return self.exact_unit
        return common_unit(np.unique(self.outcome_cost).tolist())

    @cached_property
    def outcome_level(self) -> IntArray:
        """The cost of each outcome in cost units: an array of int64, shape (n_outcomes,).

        Raises
        ------
        ModelError
            If the costs have no common unit.
        """
        if self.cost_unit is None:
            raise ModelError("the costs have no common unit; round them to a grid first")
        # At most 10^7 units, so the quotient is within 1e-8 of the whole number it stands for.
        return hand_over(in_levels(self.outcome_cost, self.cost_unit))

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of all that decides the numbers of a run, the start included.

        Two models have the same if their choices, probabilities, costs, goals and starts are the
        same; names do not matter.
        """
        return model_mark(self)

    # ------------------------------------------------------------------ costs of any sign

    @cached_property
    def signed(self) -> bool:
        """Whether some cost is negative."""
        return bool((self.outcome_cost < 0).any())

    @property
    def observed(self) -> FloatArray:
        """The cost of each outcome as policies observe it: an array of float64, (n_outcomes,)."""
        return self.outcome_cost if self.paid is None else self.paid

    @property
    def reduction(self) -> Reduction:
        """The reduced model with the potential of each state; where no cost is negative, 0.

        Raises
        ------
        ModelError
            If a cycle has a negative cost; the text names it.
        """
        return self._reduction if self.signed else unmoved(self)

    @cached_property
    def _reduction(self) -> Reduction:
        return reduction_of(self)

    @property
    def reduced(self) -> SSP:
        """The model with costs of 0 or more that is solved; itself where no cost is negative.

        Every run that arrives costs `shift` less in it, whatever the policy.
        """
        reduced: SSP = self.reduction.ssp
        return reduced

    @property
    def shift(self) -> Fraction:
        """How much more every run costs than in `reduced`.

        It is the least cost of any way to a goal if some cost is negative, and 0 if none is.
        """
        return self.reduction.of(self.start_index)

    # ------------------------------------------------------------------ other names, other shapes

    def renamed(self, *, states: Any = None, actions: Any = None) -> SSP:
        """The same model with other names.

        Parameters
        ----------
        states, actions : mapping, callable or sequence, optional
            `{old: new}`, where names may be left out; a function of the old name; or all names, in
            index order.

        Returns
        -------
        SSP
            The model, with the same indices.

        Raises
        ------
        OptionError
            If a name is not one of the model.
        ModelError
            If names are missing, or two are the same.

        Examples
        --------
        >>> ssp.renamed(actions={"road": "motorway"}).actions
        ('motorway', 'train')
        """
        names = {
            "states": _renamed(states, self.states, "state"),
            "actions": _renamed(actions, self.actions, "action"),
        }
        return replace(self, **names)

    def to_gym(
        self, *, budget: Any = None, max_steps: int | None = None, render_mode: str | None = None
    ) -> Any:
        """The model as a Gymnasium environment, for agents that learn by trying.

        Observations are state indices and actions are indices of `actions`. A reward is minus a
        cost. An action that a state does not have changes nothing and costs as much as the dearest
        outcome; `info["action_mask"]` marks those that it has, `info["cost"]` is the cost of the
        step.

        Parameters
        ----------
        budget : number, optional
            Adds the budget left to the observation, in cost units: `(state, left)`. Rewards are
            then minus what is spent beyond the budget, so that an agent that maximises their sum
            minimises E[(Z - budget)+]. With the budget `solve_cvar_exact(ssp, alpha).var(alpha)`
            that is the least CVaR.
        max_steps : int, optional
            Truncate episodes after this many steps.
        render_mode : {"ansi"}, optional
            As Gymnasium takes it.

        Returns
        -------
        gymnasium.Env
            `env.policy(agent)` is the policy of an agent with `predict`, or of a function of
            observations, which `evaluate` takes.

        Raises
        ------
        OptionError
            If Gymnasium is not installed, or a budget is given and costs are negative or have no
            unit.

        Examples
        --------
        >>> env = ssp.to_gym(budget=30)
        >>> env.reset(seed=0)[0], env.step(1)[:3]
        (array([0, 3]), (array([1, 0]), -0.0, True))
        >>> tp.evaluate(ssp, env.policy(lambda observed: 1), 0.1).mean
        30.0
        """
        module_of("gymnasium", "gym")
        made = import_module("tailpath.formats.environment")
        return made.environment(self, budget, max_steps, render_mode)

    # ------------------------------------------------------------------ how it shows itself

    def __repr__(self) -> str:
        return (
            f"<SSP {count(self.n_states, 'state')}, {count(self.n_choices, 'choice')},"
            f" {count(self.n_outcomes, 'outcome')}, start {self.start!r}>"
        )

    def _repr_html_(self) -> str:
        return model_card(self)

    # ------------------------------------------------------------------ what it holds, as a table

    def to_pandas(self) -> Any:
        """The outcomes as a DataFrame that `from_table` reads back, given start and goals.

        Returns
        -------
        pandas.DataFrame
            Columns `state`, `action`, `next_state`, `probability` and `cost`, a row for each
            outcome.

        Raises
        ------
        OptionError
            If pandas is not installed.

        Examples
        --------
        >>> ssp.to_pandas()
          state action next_state  probability  cost
        0  home   road       work          0.9  20.0
        1  home   road       work          0.1  60.0
        2  home  train       work          1.0  30.0
        """
        state = self.choice_state[self.outcome_choice]
        return data_frame(
            {
                "state": [self.states[s] for s in state.tolist()],
                "action": [self.choice_name(k) for k in self.outcome_choice.tolist()],
                "next_state": [self.states[t] for t in self.outcome_target.tolist()],
                "probability": self.outcome_probability,
                "cost": self.outcome_cost,
            }
        )
