"""How models are built: from rows, tables and arrays, and from functions, by exploring the states
breadth first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from tailpath.errors import ModelError
from tailpath.model.ends import GAINS
from tailpath.model.frames import Frame, Rows
from tailpath.model.implicit import ActionsOf, ImplicitSSP, OutcomesOf, implicit, rows_of
from tailpath.model.matrices import Matrices
from tailpath.model.outcomes import Name
from tailpath.model.records import Record
from tailpath.model.tables import outcomes_of_table
from tailpath.options import Progress, check_integer


class SSPBuilder(Record):
    """The ways to make an `SSP`."""

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Iterable[tuple[Name, Name, Name, Any, Any]],
        start: Name,
        goals: Iterable[Name],
        *,
        geometry: Any = None,
        notes: tuple[str, ...] = (),
    ) -> Self:
        """Build a model from rows `(state, action, next_state, probability, cost)`.

        States are numbered as they first appear. Rows that agree in all but the probability are
        added up; rows with probability 0 are left out.

        Parameters
        ----------
        outcomes : iterable of tuple
            The rows, in any order, with any hashable names. The probabilities of a state and action
            sum to 1. Costs are ints, floats, decimals or fractions, and gains are negative costs;
            the cost unit is found from them exactly as given.
        start : hashable
            The state where runs begin.
        goals : iterable of hashable
            The states where runs end. A goal needs no rows; if it has any they must lead to itself
            at no cost.
        geometry : mapping or pair of int, optional
            Where the states lie on a grid, for pictures, as `SSP` takes it.
        notes : tuple of str
            What was assumed or changed.

        Returns
        -------
        SSP
            The model.

        Raises
        ------
        ModelError
            If the rows do not define a valid SSP; the text names the state and the action.

        Examples
        --------
        >>> ssp = tp.SSP.from_outcomes([("home", "road", "work", 0.9, 20),
        ...                             ("home", "road", "work", 0.1, 60),
        ...                             ("home", "train", "work", 1, 30)], "home", ["work"])
        >>> ssp.n_states
        2
        """
        table = Rows(outcomes, goals)
        found = outcomes_of_table(table, start, table.last)
        return cls(**found.all_fields(geometry=geometry, notes=notes))

    @classmethod
    def from_functions(
        cls,
        start: Any,
        actions: ActionsOf | None = None,
        outcomes: OutcomesOf | None = None,
        is_goal: Callable[[Any], bool] | None = None,
        *,
        limit: int = 10**6,
        rewards: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Build a model from Python functions, by exploring all that can be reached from `start`.

        States are numbered breadth first. They may be anything hashable; named tuples and
        dataclasses are shown by field.

        Parameters
        ----------
        start : hashable, or an object
            The state where runs begin; or an object with `start`, `actions`, `outcomes` and
            `is_goal`, and nothing else is given.
        actions : callable
            `actions(state)` gives the names of what can be done there.
        outcomes : callable
            `outcomes(state, action)` gives triples `(probability, next state, cost)`.
        is_goal : callable
            `is_goal(state)` is true where runs end.
        limit : int, 1 or more
            The most states; more are refused.
        rewards : bool
            The third of each triple is a gain: costs are minus these.
        progress : callable, optional
            `progress(explored, share)` is called now and then with the number of states explored
            and their share of those found.

        Returns
        -------
        SSP
            The model.

        Raises
        ------
        ModelError
            If there are more than `limit` states, no goal is reached, or a function returns
            something invalid.
        OptionError
            If a function is missing or not callable.

        Examples
        --------
        >>> walk = tp.SSP.from_functions(3, lambda n: ["toss"],
        ...                              lambda n, action: [(0.5, n, 1), (0.5, n - 1, 1)],
        ...                              lambda n: n == 0)
        >>> tp.solve_expected(walk).cost()
        6.0
        """
        functions = implicit(start, actions, outcomes, is_goal)
        rows, ends = explore(functions, check_integer(limit, "limit", 1), progress)
        found = outcomes_of_table(Rows(rows, ends), functions.start, ends, rewards=rewards)
        return cls(**found.all_fields(notes=(GAINS,) if rewards else ()))

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        start: Name | None = None,
        goals: Iterable[Name] | None = None,
        columns: Mapping[str, Any] | None = None,
        rewards: bool = False,
    ) -> Self:
        """Build a model from a table with one row per outcome.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, table of pyarrow, or dict of columns
            Columns are state, action, next_state, probability and cost; `from`, `to`, `p`, `prob`,
            `time`, `reward` and others are understood (`docs/tables.md` lists them). A column
            `times` holds samples instead of a cost.
        start : hashable, optional
            The state where runs begin; by default that of a column `start`, or of the first row.
        goals : iterable of hashable, optional
            The states where runs end; by default those of a column, or the states without rows.
        columns : mapping, optional
            The names of columns: `{"cost": "minutes"}`.
        rewards : bool
            The numbers are gains: costs are minus these, as for a column called `reward`.

        Returns
        -------
        SSP
            The model.

        Raises
        ------
        ModelError
            If a column is missing or could be several, or the rows do not define a valid SSP.
        OptionError
            If `columns` names something that a table does not have.

        Examples
        --------
        >>> tp.SSP.from_table({"from": ["a", "a"], "to": ["b", "b"], "action": ["go", "go"],
        ...                    "p": [0.5, 0.5], "time": [1, 3]})
        <SSP 2 states, 1 choice, 2 outcomes, start 'a'>
        """
        found = outcomes_of_table(Frame(frame), start, goals, columns or {}, rewards=rewards)
        return cls(**found.all_fields())

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
    ) -> Self:
        """Build a model from arrays as pymdptoolbox or QuantEcon hold them.

        Parameters
        ----------
        P : array, or sequence of matrices, dense or sparse
            Transition probabilities; the table below has the shapes.
        goals : iterable of int
            The indices of the goals, whose rows must be absorbing and free.
        start : int
            The index of the state where runs begin.
        costs : array, or sequence of matrices, optional
            Costs. Those per outcome stay on the outcome (pymdptoolbox averages them, which keeps
            the mean and changes the risk).
        rewards : array, or sequence of matrices, optional
            Minus the costs. Give either `costs` or `rewards`.
        s_indices, a_indices : array of int, shape (L,), optional
            The state and the action of each pair, in any order.
        layout : {"auto", "mdptoolbox", "quantecon"}
            Decides where A equals S and the shape alone cannot.

        Returns
        -------
        SSP
            The model; its states are called 0 .. S - 1.

        Raises
        ------
        ModelError
            If the shapes do not fit or the numbers do not define a valid SSP.
        OptionError
            If not exactly one of `costs` and `rewards` is given, or the layout is unknown.

        Notes
        -----
        | layout | `P` | `costs` or `rewards` |
        | --- | --- | --- |
        | pymdptoolbox | (A, S, S), or A matrices (S, S) | (S,), (S, A), (A, S, S) or A matrices |
        | QuantEcon product | (S, A, S) | (S, A), (S, A, S) |
        | QuantEcon pairs | (L, S), with `s_indices` and `a_indices` | (L,) |

        In (S, A) of QuantEcon an infinite entry marks an action that the state does not have.

        Examples
        --------
        >>> tp.SSP.from_arrays([[[0.5, 0.5], [0, 1]]], costs=[1, 0], start=0, goals=[1])
        <SSP 2 states, 1 choice, 2 outcomes, start 0>
        """
        table = Matrices(P, costs, rewards, goals, s_indices, a_indices, layout)
        found = outcomes_of_table(table, start, table.goals, rewards=rewards is not None)
        return cls(**found.all_fields(merge=False))


# ---------------------------------------------------------------------- functions explored


#: States between two calls of `progress`.
PAUSE = 5_000


def explore(
    model: ImplicitSSP, limit: int, progress: Progress | None
) -> tuple[list[Any], list[Any]]:
    """The outcomes of all states that can be reached, row by row, and the goals.

    Each function is called once for each state or choice, and goals are not asked for actions.
    """
    found = {model.start: None}
    waiting, rows = list(found), list[Any]()
    goals = list[Any]()
    for position, state in enumerate(waiting):
        if progress is not None and position % PAUSE == 0:
            progress(position, position / len(waiting))
        choices = rows_of(model, state)
        if choices is None:
            goals.append(state)
            continue
        for action, outcomes in choices:
            for probability, target, cost in outcomes:
                rows.append((state, action, target, probability, cost))
                if target not in found:
                    found[target] = None
                    waiting.append(target)
        if len(waiting) > limit:
            raise ModelError(
                f"more than {limit} states (limit=): {len(waiting)} were found up to the"
                f" successors of {state!r}, the last is {waiting[-1]!r}; solve_cvar_lazy (--lazy)"
                " does not list them"
            )
    if not goals:
        raise ModelError(
            f"is_goal is true for none of the states that can be reached, {len(waiting)} in all"
        )
    return rows, goals
