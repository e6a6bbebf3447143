"""A model in parts: each rank has a range of states, with their choices and outcomes, and no more.

A part is a range of state numbers, so two numbers say what it has. It comes from a model
(`Part.of`), from a file (`files.py`), or from arrays.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.ranks import joined, ranks_of, together
from tailpath.errors import ModelError, OptionError, kind_of
from tailpath.graph import Array, FloatArray, IntArray, members_of, offsets_from_lengths, owners
from tailpath.model.checks import (
    LARGEST_COST,
    check_choices,
    check_lengths,
    checked_probabilities,
    model_mark,
    refuse_outcome,
)
from tailpath.model.cost_units import MAX_UNITS
from tailpath.model.potential import refuse_signed
from tailpath.model.ssp import SSP

ARRAYS = {
    "bounds": np.int64,
    "state_choices": np.int64,
    "choice_outcomes": np.int64,
    "outcome_target": np.int32,
    "outcome_probability": np.float64,
    "outcome_level": np.int32,
    "choice_action": np.int32,
    "is_goal": np.bool_,
}


@dataclass(frozen=True, eq=False)
class Part:
    """States `bounds[index] : bounds[index + 1]` of a model.

    Parameters
    ----------
    bounds : array of int64, shape (parts + 1,)
        Where the states of each part begin, and where the last ends; all states have a number.
    index : int
        Which part this is, from 0.
    state_choices : array of int64, shape (n + 1,)
        Where the choices of each of its n states begin, from 0.
    choice_outcomes : array of int64, shape (choices + 1,)
        Where the outcomes of each choice begin, from 0.
    outcome_target : array of int32, shape (outcomes,)
        The numbers of states, those of other parts included.
    outcome_probability : array of float64, shape (outcomes,)
        Positive; those of a choice sum to 1.
    outcome_level : array of int32, shape (outcomes,)
        Costs, in units.
    choice_action : array of int32, shape (choices,)
        The index in `actions` of the name of each choice.
    is_goal : array of bool, shape (n,)
        Goals have no choices.
    start : int
        The number of the state where runs begin.
    actions : tuple of hashable
        Names.
    unit : Fraction
        The unit of costs.
    probability_error : float
        The relative error of probabilities besides rounding, as in `SSP`.
    model : str
        The hash of the model, if it was whole before: its parts belong together.

    Raises
    ------
    ModelError
        If the arrays do not make a part; the text names the state and the action.
    """

    bounds: IntArray
    index: int
    state_choices: IntArray
    choice_outcomes: IntArray
    outcome_target: NDArray[np.int32]
    outcome_probability: FloatArray
    outcome_level: NDArray[np.int32]
    choice_action: NDArray[np.int32]
    is_goal: NDArray[np.bool_]
    start: int
    actions: tuple[Any, ...]
    unit: Fraction
    probability_error: float = 0.0
    model: str = ""

    def __post_init__(self) -> None:
        for name, kind in ARRAYS.items():
            array: Array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            object.__setattr__(self, name, array)
        self._check_place()
        rows = self._rows()
        check_lengths(rows)
        rows.choice_state = owners(self.state_choices)
        check_choices(rows)
        target, level, n = self.outcome_target, self.outcome_level, self.n_states
        most = min(MAX_UNITS, int(LARGEST_COST / self.unit))
        refuse_outcome(
            rows,
            (target < 0) | (target >= n) | (level < 0) | (level > most),
            lambda o: (
                f"leads to state {target[o]} at a cost of {level[o]} units, but states lie"
                f" in 0..{n - 1} and costs in 0..{most}"
            ),
        )
        object.__setattr__(self, "outcome_probability", checked_probabilities(rows))
        for name in ARRAYS:
            getattr(self, name).flags.writeable = False

    def __str__(self) -> str:
        size = f"{len(self.is_goal)} states and {len(self.outcome_target)} outcomes"
        return f"part {self.index} of {len(self.bounds) - 1} ({size})"

    @property
    def first(self) -> int:
        """The number of its first state."""
        return int(self.bounds[self.index])

    @property
    def n_states(self) -> int:
        """How many states all parts have together."""
        return int(self.bounds[-1])

    @property
    def outcome_cost(self) -> FloatArray:
        """The cost of each outcome: the float nearest to its multiple of the unit."""
        cost = self.outcome_level * float(self.unit.numerator) / float(self.unit.denominator)
        return np.asarray(cost, dtype=np.float64)

    def on_ranks(self, comm: Any, *asked: Any, **options: bool) -> Any:
        """The result of `solve_cvar_exact` over ranks; options for one process are refused."""
        for name, given in options.items():
            if given:
                raise OptionError(
                    f"{name} needs a single process; leave it out to solve over ranks"
                )
        comm = ranks_of(comm)
        solving = importlib.import_module("tailpath.distributed.solving")
        return together(comm, partial(solving.solve_cvar, self, comm, *asked), str(self))

    def _check_place(self) -> None:
        """Check the place of the part, and its costs."""
        steps = np.diff(self.bounds)
        if len(steps) == 0 or self.bounds[0] != 0 or not np.all((steps >= 0) & (steps < 2**31)):
            raise ModelError("the first states of parts must rise from 0")
        if not 0 <= self.index < len(steps) or steps[self.index] != len(self.is_goal):
            n = len(self.is_goal)
            raise ModelError(f"part {self.index} has {n} states, which does not match its bounds")
        if type(self.start) is not int or not 0 <= self.start < self.n_states < 2**31:
            raise ModelError(f"the start {self.start!r} is not one of {self.n_states} states")
        error, model = self.probability_error, self.model
        if type(error) not in (int, float) or not 0 <= error < 1 or not isinstance(model, str):
            raise ModelError(f"invalid probability_error {error!r} or model hash {model!r}")
        if not 1 / LARGEST_COST <= self.unit <= LARGEST_COST:
            raise ModelError("the unit of costs is out of range")

    def _rows(self) -> Any:
        """The part as the checks of a model need it; messages leave out targets of outcomes."""
        return SimpleNamespace(
            n_states=len(self.state_choices) - 1,
            n_choices=len(self.choice_outcomes) - 1,
            n_outcomes=len(self.outcome_target),
            **{name: getattr(self, name) for name in ARRAYS if name != "outcome_target"},
            outcome_target=np.broadcast_to(-1, len(self.outcome_target)),
            outcome_cost=self.outcome_level,
            states=range(self.first, self.first + len(self.is_goal)),
            actions=self.actions,
            choice_name=lambda choice: self.actions[self.choice_action[choice]],
        )

    @classmethod
    def here(cls, model: Any, comm: Any) -> Part:
        """The part of this rank, if every rank has the whole model."""
        comm = ranks_of(comm)
        return cls.of(model, comm.rank, comm.size)

    @classmethod
    def of(cls, ssp: SSP, index: int, parts: int, mark: str | None = None) -> Part:
        """Part `index` of `parts` parts of a model whose costs have a unit, with about equally many
        states; `mark` is the hash of the model, if it is known.
        """
        if not isinstance(ssp, SSP):
            raise ModelError(f"ranks solve models with known probabilities, not {kind_of(ssp)}")
        refuse_signed(ssp, "a model in parts")
        if ssp.cost_unit is None:
            raise ModelError("a model in parts needs costs with a common unit")
        bounds = even_bounds(ssp.n_states, parts)
        states = slice(bounds[index], bounds[index + 1] + 1)
        choices = ssp.state_choices[states]
        outcome, rows = members_of(ssp.choice_outcomes, np.arange(choices[0], choices[-1]))
        return cls(
            bounds=bounds,
            index=index,
            state_choices=choices - choices[0],
            choice_outcomes=rows,
            outcome_target=ssp.outcome_target[outcome],
            outcome_probability=ssp.outcome_probability[outcome],
            outcome_level=ssp.outcome_level[outcome].astype(np.int32),
            choice_action=ssp.choice_action[choices[0] : choices[-1]],
            is_goal=ssp.is_goal[bounds[index] : bounds[index + 1]],
            start=int(ssp.start_index),
            actions=tuple(ssp.actions),
            unit=ssp.cost_unit,
            probability_error=ssp.probability_error,
            model=model_mark(ssp) if mark is None else mark,
        )


def whole_of(comm: Any, part: Part) -> SSP:
    """The model of all parts, on every rank, with numbers for names; all ranks call this."""
    lengths = np.diff(part.state_choices), np.diff(part.choice_outcomes)
    return SSP(
        state_choices=offsets_from_lengths(joined(comm, lengths[0])),
        choice_outcomes=offsets_from_lengths(joined(comm, lengths[1])),
        outcome_target=joined(comm, part.outcome_target),
        outcome_probability=joined(comm, part.outcome_probability),
        outcome_cost=joined(comm, part.outcome_cost),
        choice_action=joined(comm, part.choice_action),
        is_goal=joined(comm, part.is_goal),
        start_index=part.start,
        states=range(part.n_states),
        actions=part.actions,
        exact_unit=part.unit,
        probability_error=part.probability_error,
    )


def even_bounds(n_states: int, parts: int) -> IntArray:
    """Where each of `parts` parts begins, with about equally many states."""
    if parts < 1:
        raise OptionError(f"a model has 1 or more parts, not {parts}")
    return np.arange(parts + 1, dtype=np.int64) * n_states // parts
