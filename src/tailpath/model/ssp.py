"""The stochastic shortest path problem: who can go where, with which probability, at which cost.

A model is three levels of arrays, state -> choice -> outcome:

    the choices of state s    are  state_choices[s] .. state_choices[s + 1]
    the outcomes of choice k  are  choice_outcomes[k] .. choice_outcomes[k + 1]
    outcome o leads to outcome_target[o] with outcome_probability[o] and costs outcome_cost[o]

The cost sits on the *outcome*. Two outcomes of one choice that lead to the same state at different costs stay two outcomes:
merging them would keep the mean and change the risk. Goal states are absorbing and free and have no choices.

Costs are minimised and never negative. `cost_unit` is the largest rational u such that every cost is a whole number of u; with it
accumulated costs are integers, and equal costs are equal exactly (0.1 + 0.2 is 0.3). A float is read as the shortest decimal that prints it.
All checks happen once, when it is built (`checks.py`); an SSP that exists is sound. Arrays are read-only.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import ModelError
from tailpath.graph import Transitions, owners
from tailpath.kernels.jit import frozen
from tailpath.model.builders import arrays_from_outcomes
from tailpath.model.checks import check_outcomes, check_structure, check_unit, checked_probabilities
from tailpath.model.cost_units import common_unit
from tailpath.model.exploring import Actions, Functions, Outcomes, explore
from tailpath.model.matrices import arrays_from_matrices
from tailpath.model.records import Record, data_frame
from tailpath.model.tables import is_graph, outcomes_of_graph, outcomes_of_table
from tailpath.options import Progress, check_whole
from tailpath.pictures.notebook import model_card

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Name = Hashable
Found = TypeVar("Found")
Asked = ParamSpec("Asked")


class _Findings:
    """What was found out about a model, and the lock under which more is found."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}
        self.lock = threading.RLock()


def found_once(find: Callable[Concatenate[SSP, Asked], Found]) -> Callable[Concatenate[SSP, Asked], Found]:
    """Have a function find out what it says of a model once for each of its other arguments, whichever thread asks first, and store it
    with the model. It is not pickled."""

    @functools.wraps(find)
    def known(ssp: SSP, /, *asked: Asked.args, **named: Asked.kwargs) -> Found:
        findings: _Findings = ssp.__dict__.setdefault("_findings", _Findings())
        key = find, asked, tuple(named.items())
        if key not in findings.known:
            with findings.lock:
                if key not in findings.known:
                    findings.known[key] = find(ssp, *asked, **named)
        found: Found = findings.known[key]
        return found

    return known


@dataclass(frozen=True)
class Geometry:
    """Where the states of a grid lie, so that maps and policies can be drawn. States off the grid have row and column -1."""

    rows: int
    columns: int
    row: tuple[int, ...]
    column: tuple[int, ...]
    kind: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Origin(Record):
    """Of a model made from another: `index[s]` is the state of the other model that state s stands for, or -1; `states` are its names."""

    states: Sequence[Name]
    index: NDArray[np.int64]

    def __post_init__(self) -> None:
        self._freeze()


@dataclass(frozen=True, eq=False, repr=False)
class SSP(Record):
    """An immutable stochastic shortest path problem. See the module's docstring for the arrays.

    Most users call `SSP.from_outcomes`, `SSP.from_arrays`, `tailpath.read` or a function of `tailpath.domains`.
    `states` and `actions` are sequences of names in index order; a `range` costs no memory. `choice_action[k]` is the index of the name
    of choice k. `exact_unit` is given by builders that know the costs as rationals; otherwise the unit is found from the floats.
    `notes` tell what a reader assumed or changed (signs, redirected goals, a shift), for the command line to repeat. `origin` is set where a state
    stands for a state of another model, so that policies for that one are understood. `probability_error` is how far, relatively, each
    probability may be off beside rounding, where the model was computed from another; bounds count it. Files keep neither.
    """

    state_choices: IntArray
    choice_outcomes: IntArray
    outcome_target: NDArray[np.int32]
    outcome_probability: FloatArray
    outcome_cost: FloatArray
    choice_action: NDArray[np.int32]
    is_goal: NDArray[np.bool_]
    start_index: int
    states: Sequence[Name]
    actions: Sequence[Name]
    exact_unit: Fraction | None = None
    geometry: Geometry | None = None
    notes: tuple[str, ...] = ()
    origin: Origin | None = None
    probability_error: float = 0.0

    def __post_init__(self) -> None:
        dtypes = {
            "state_choices": np.int64,
            "choice_outcomes": np.int64,
            "outcome_target": np.int32,
            "outcome_probability": np.float64,
            "outcome_cost": np.float64,
            "choice_action": np.int32,
            "is_goal": np.bool_,
        }
        for name, dtype in dtypes.items():
            given = np.asarray(getattr(self, name))
            if given.ndim != 1:
                raise ModelError(f"{name} must have one axis, not {given.ndim}")
            array: NDArray[Any] = np.ascontiguousarray(given.astype(dtype, copy=False))
            if array.dtype.kind == "i" and given.dtype != array.dtype and not np.array_equal(array, given):
                raise ModelError(f"{name} must hold whole numbers that fit {array.dtype}")
            if array.flags.writeable and given is getattr(self, name) and np.may_share_memory(array, given):
                array = array.copy()  # or the model would change with the caller's array
            object.__setattr__(self, name, array)
        for name in ("states", "actions"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        check_structure(self)
        check_outcomes(self)
        check_unit(self)
        object.__setattr__(self, "outcome_probability", checked_probabilities(self))
        self._freeze()

    # ------------------------------------------------------------------ sizes and names

    @property
    def n_states(self) -> int:
        return len(self.state_choices) - 1

    @property
    def n_choices(self) -> int:
        return len(self.choice_outcomes) - 1

    @property
    def n_outcomes(self) -> int:
        return len(self.outcome_target)

    @property
    def start(self) -> Name:
        return self.states[self.start_index]

    @property
    def goals(self) -> tuple[Name, ...]:
        return tuple(self.states[s] for s in np.flatnonzero(self.is_goal).tolist())

    @cached_property
    def _state_index(self) -> dict[Name, int]:
        return {name: index for index, name in enumerate(self.states)}

    def state_index(self, state: Name) -> int:
        """The index of a state's name."""
        if isinstance(self.states, range) and isinstance(state, (int, np.integer)):
            if 0 <= state < self.n_states:
                return int(state)
        elif state in self._state_index:
            return self._state_index[state]
        raise ModelError(f"the model has no state {state!r}")

    def choice_index(self, state: int, action: Name) -> int:
        """The choice of a state (by index) that carries this action name, or -1."""
        for choice in range(self.state_choices[state], self.state_choices[state + 1]):
            if self.actions[self.choice_action[choice]] == action:
                return choice
        return -1

    def choice_name(self, choice: int) -> Name:
        """The action name of a choice."""
        name: Name = self.actions[int(self.choice_action[choice])]
        return name

    @cached_property
    def choice_state(self) -> NDArray[np.int32]:
        """The state each choice belongs to."""
        return next(frozen(owners(self.state_choices, np.int32)))

    @property
    def outcome_choice(self) -> NDArray[np.int32]:
        """The choice each outcome belongs to."""
        return self.transitions.source

    # ------------------------------------------------------------------ the graph

    @cached_property
    def transitions(self) -> Transitions:
        """The outcomes with a row for each choice, whose targets are states. Levels are left out: to find the unit takes time."""
        return Transitions(self.choice_outcomes, self.outcome_target, self.outcome_probability, self.outcome_cost, None)

    @property
    def by_state(self) -> Transitions:
        """The outcomes with a row for each state, of all its choices: the graph of where one may get."""
        return self.transitions.joined(self.state_choices)

    # ------------------------------------------------------------------ exact costs

    @cached_property
    def cost_unit(self) -> Fraction | None:
        """The largest rational of which every cost is a whole multiple; `None` where it would be too fine to use."""
        if self.exact_unit is not None:
            return self.exact_unit
        return common_unit(np.unique(self.outcome_cost).tolist())

    @cached_property
    def outcome_level(self) -> IntArray:
        """Each outcome's cost as a whole number of cost units."""
        if self.cost_unit is None:
            raise ModelError("the costs have no common unit; round them to a grid first")
        # At most 10^7 units, so the quotient is within 1e-8 of the whole number it stands for.
        levels = np.rint(self.outcome_cost * (self.cost_unit.denominator / self.cost_unit.numerator)).astype(np.int64)
        levels.flags.writeable = False
        return levels

    # ------------------------------------------------------------------ how it shows itself

    def __repr__(self) -> str:
        return f"<SSP {self.n_states} states, {self.n_choices} choices, {self.n_outcomes} outcomes, start {self.start!r}>"

    def _repr_html_(self) -> str:
        return model_card(self)

    # ------------------------------------------------------------------ builders

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Iterable[tuple[Name, Name, Name, Any, Any]],
        start: Name,
        goals: Iterable[Name],
        *,
        geometry: Geometry | None = None,
        notes: tuple[str, ...] = (),
    ) -> SSP:
        """Build a model from rows `(state, action, next_state, probability, cost)`, in any order, with any hashable names.

        States are numbered as they first appear. Rows that agree in all but the probability are added up; rows with probability 0 are left
        out. Costs may be ints, floats, decimals or fractions; the cost unit is found from them exactly as given.
        A goal needs no rows; if it has any they must lead to itself at no cost.
        """
        return cls(**arrays_from_outcomes(outcomes, start, goals)._asdict(), geometry=geometry, notes=notes)

    @classmethod
    def from_functions(
        cls,
        start: Any,
        actions: Actions | None = None,
        outcomes: Outcomes | None = None,
        is_goal: Callable[[Any], bool] | None = None,
        *,
        limit: int = 10**6,
        progress: Progress | None = None,
    ) -> SSP:
        """Build a model from Python functions, by exploring all that can be reached from `start`.

        `actions(state)` gives names, `outcomes(state, action)` triples (probability, next state, cost),
        `is_goal(state)` a truth value. States may be anything hashable; named tuples and dataclasses
        are shown by field. An object with `start`, `actions`, `outcomes` and `is_goal` may be given
        instead. States are numbered breadth first. More than `limit` of them are refused. `progress`
        is told the states explored and their share of those found.
        """
        functions = Functions.of(start, actions, outcomes, is_goal)
        return cls(**explore(functions, check_whole(limit, "limit", 1), progress)._asdict())

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        start: Name | None = None,
        goals: Iterable[Name] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> SSP:
        """Build a model from a table with one row per outcome: a DataFrame of pandas or polars, a table of pyarrow, a dictionary of columns.

        Columns are state, action, next_state, probability and cost; `from`, `to`, `p`, `prob`, `time`, `reward` and others are understood
        (`docs/formats.md` lists them), and `columns={"cost": "minutes"}` names any other. A column `times` holds samples instead of a cost. Start
        and goals are given here or in columns of the table; otherwise the start is the state of the first row and states without rows are the goals.
        A graph of networkx with such attributes on its edges is taken, too.
        """
        found = (outcomes_of_graph if is_graph(frame) else outcomes_of_table)(frame, start, goals, columns or {})
        return cls.from_outcomes(found.rows, found.start, found.goals, notes=found.notes)

    def to_pandas(self) -> Any:
        """The outcomes as a DataFrame that `from_table` reads back, given start and goals."""
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

    @classmethod
    def from_arrays(
        cls,
        P: Any,
        *,
        goals: Iterable[int],
        start: int,
        costs: Any = None,
        rewards: Any = None,
        s_indices: Any = None,
        a_indices: Any = None,
        layout: str = "auto",
    ) -> SSP:
        """Build a model from arrays as pymdptoolbox or QuantEcon hold them.

        | layout | `P` | `costs` or `rewards` |
        | --- | --- | --- |
        | pymdptoolbox | (A, S, S), or a sequence of A matrices (S, S), dense or sparse | (S,), (S, A), (A, S, S) or A matrices |
        | QuantEcon product | (S, A, S) | (S, A), where an infinite entry marks an action the state does not have; (S, A, S) |
        | QuantEcon pairs | (L, S) dense or sparse, with `s_indices` and `a_indices` (L,) in any order | (L,) |

        Give either `costs` or `rewards`; a cost is minus its reward. Costs per outcome stay on the outcome (pymdptoolbox averages them,
        which keeps the mean and changes the risk). `start` and `goals` are state indices; the rows of a goal must be absorbing and free.
        `layout="mdptoolbox"` or `"quantecon"` decides where A equals S and the shape alone cannot.
        """
        arrays = arrays_from_matrices(P, costs, rewards, s_indices, a_indices, layout, start, goals)
        return cls(**arrays._asdict())
