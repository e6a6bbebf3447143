"""How models with intervals are built: from rows, counts, tables, arrays and models."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from tailpath.errors import OptionError, TailpathWarning
from tailpath.model.columns import NONE
from tailpath.model.frames import Frame
from tailpath.model.interval_rows import (
    counted_rows,
    fields_of_rows,
    interval_rows,
    intervals_of_counts,
    with_inside,
    words_of_counts,
)
from tailpath.model.matrices import interval_arrays_from_matrices
from tailpath.model.outcome_columns import OutcomeColumns
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray, Name
from tailpath.model.tables import outcomes_of_table
from tailpath.options import check_amount

GivenRow = tuple[Name, Name, Name, Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class IntervalBuilder(Record):
    """The fields of an `IntervalSSP`, and the ways to make one."""

    inside: SSP
    low: FloatArray
    high: FloatArray
    estimate: FloatArray | None = None
    confidence: float | None = None

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Iterable[GivenRow],
        start: Name,
        goals: Iterable[Name],
        *,
        notes: tuple[str, ...] = (),
    ) -> Self:
        """Build a model from rows `(state, action, next_state, (low, high), cost)`.

        Rows that agree in all but the probability are added up; those that cannot happen are left
        out.

        Parameters
        ----------
        outcomes : iterable of tuple
            The rows, with a pair `(low, high)` or a number for each probability.
        start : hashable
            The state where runs begin.
        goals : iterable of hashable
            The states where runs end, as `SSP.from_outcomes` takes them.
        notes : tuple of str
            What was assumed or changed.

        Returns
        -------
        IntervalSSP
            The model.

        Raises
        ------
        ModelError
            If the rows do not define a valid SSP, or the intervals of a choice admit no
            distribution.

        Examples
        --------
        >>> rows = [("home", "road", "work", (0.8, 0.95), 20),
        ...         ("home", "road", "work", (0.05, 0.2), 60), ("home", "train", "work", 1, 30)]
        >>> model = tp.IntervalSSP.from_outcomes(rows, "home", ["work"])
        >>> model.low, model.high
        (array([0.8 , 0.05, 1.  ]), array([0.95, 0.2 , 1.  ]))
        """
        goals = goals if isinstance(goals, str) else list(goals)
        fields, (low, high) = fields_of_rows(interval_rows(outcomes, goals), start, goals, 2)
        return cls.from_fields({**fields, "notes": notes}, low, np.minimum(high, 1.0))

    @classmethod
    def around(cls, ssp: SSP, margin: float) -> Self:
        """A model guessed with a margin: p (1 - margin) to p (1 + margin) for every probability p.

        No interval goes above 1, and what is alone in its choice stays sure.

        Parameters
        ----------
        ssp : SSP
            The model with the probabilities p.
        margin : float
            How far, relatively, each of them may be off, in [0, 1].

        Returns
        -------
        IntervalSSP
            The model with intervals.

        Raises
        ------
        OptionError
            If the margin lies outside [0, 1].

        Examples
        --------
        >>> model = tp.IntervalSSP.around(ssp, 0.5)
        >>> model.low, model.high
        (array([0.45, 0.05, 1.  ]), array([1.  , 0.15, 1.  ]))
        """
        margin = check_amount(margin, "a margin")
        if margin > 1:
            raise OptionError(f"the margin must lie in [0, 1], not {margin!r}")
        p = ssp.outcome_probability
        alone = np.repeat(np.diff(ssp.choice_outcomes) == 1, np.diff(ssp.choice_outcomes))
        low, high = (
            np.where(alone, p, p * (1 - margin)),
            np.where(alone, p, np.minimum(p * (1 + margin), 1.0)),
        )
        return cls(ssp, low, high)

    @classmethod
    def from_fields(
        cls, fields: dict[str, Any], low: FloatArray, high: FloatArray, **more: Any
    ) -> Self:
        """From the fields of an `SSP` but for the probabilities, and intervals for these.

        It is for readers of files. Outcomes that cannot happen are left out. The probabilities
        inside divide what is open of a choice alike.

        Parameters
        ----------
        fields : dict
            The arguments of `SSP` by name, without `outcome_probability`.
        low, high : array of float64, shape (n_outcomes,)
            The intervals.
        **more : array of float64, or float
            `estimate` and `confidence`, as the constructor takes them.

        Returns
        -------
        IntervalSSP
            The model.

        Raises
        ------
        ModelError
            If the fields do not define a valid SSP, or the intervals of a choice admit no
            distribution.

        Examples
        --------
        >>> fields = dict(state_choices=[0, 1, 1], choice_outcomes=[0, 2], outcome_target=[1, 1],
        ...               outcome_cost=[20, 60], choice_action=[0], is_goal=[False, True],
        ...               start_index=0, states=("home", "work"), actions=("road",))
        >>> import numpy as np
        >>> low, high = np.array([0.8, 0.05]), np.array([0.95, 0.2])
        >>> tp.IntervalSSP.from_fields(fields, low, high)
        <IntervalSSP 2 states, 1 choice (1 uncertain), 2 outcomes, start 'home'>
        """
        fields, possible = with_inside(fields, low, high)
        if more.get("estimate") is not None:
            more["estimate"] = np.asarray(more["estimate"])[possible]
        return cls(SSP(**fields), low[possible], high[possible], **more)

    @classmethod
    def from_arrays(
        cls,
        low: Any,
        high: Any,
        *,
        goals: Iterable[int],
        start: int,
        costs: Any = None,
        rewards: Any = None,
        **layout: Any,
    ) -> Self:
        """Build a model from arrays in the layouts of pymdptoolbox and QuantEcon, low and high.

        Parameters
        ----------
        low, high : array, or sequence of matrices, dense or sparse
            The least and the greatest transition probabilities, each as `SSP.from_arrays` takes
            `P`.
        goals : iterable of int
            The indices of the goals, whose rows must be absorbing and free.
        start : int
            The index of the state where runs begin.
        costs, rewards : array, or sequence of matrices, optional
            As `SSP.from_arrays` takes them; costs are 0 or more.
        **layout : array of int, or str
            `s_indices`, `a_indices` and `layout`, as `SSP.from_arrays` takes them.

        Returns
        -------
        IntervalSSP
            The model; its states are called 0 .. S - 1.

        Raises
        ------
        ModelError
            If the shapes do not fit, the numbers do not define a valid SSP, or the intervals of a
            choice admit no distribution.
        OptionError
            If not exactly one of `costs` and `rewards` is given, or the layout is unknown.

        Examples
        --------
        >>> tp.IntervalSSP.from_arrays([[[0.4, 0.4], [0, 1]]], [[[0.6, 0.6], [0, 1]]],
        ...                            costs=[1, 0], start=0, goals=[1])
        <IntervalSSP 2 states, 1 choice (1 uncertain), 2 outcomes, start 0>
        """
        for word in layout.keys() - {"s_indices", "a_indices", "layout"}:
            raise TypeError(f"from_arrays() got an unexpected keyword argument {word!r}")
        given = {"s_indices": None, "a_indices": None, "layout": "auto", **layout}
        arrays, least = interval_arrays_from_matrices(
            low, high, costs, rewards, *given.values(), start, goals
        )
        return cls.from_fields(arrays._asdict(), least, arrays.outcome_probability)

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        start: Name | None = None,
        goals: Iterable[Name] | None = None,
        columns: Mapping[str, Any] = NONE,
        confidence: float = 0.95,
    ) -> Self:
        """Build a model from a table with one row per outcome.

        Parameters
        ----------
        frame : DataFrame, table, or dict of columns
            As `SSP.from_table` takes it, with columns `low` and `high`, or `count`, for the
            probability.
        start, goals, columns : optional
            As `SSP.from_table` takes them.
        confidence : float
            With what probability all intervals hold at once, where they are counted
            (`from_counts`).

        Returns
        -------
        IntervalSSP
            The model.

        Raises
        ------
        ModelError
            If a column is missing or could be several, or the rows do not define a valid SSP.
        OptionError
            If `columns` names something that a table does not have, or `confidence` is not in
            (0, 1).

        Examples
        --------
        >>> tp.IntervalSSP.from_table({"from": ["a", "a"], "to": ["b", "b"], "action": ["go", "go"],
        ...                            "low": [0.4, 0.4], "high": [0.6, 0.6], "time": [1, 3]})
        <IntervalSSP 2 states, 1 choice (1 uncertain), 2 outcomes, start 'a'>
        """
        found = outcomes_of_table(Frame(frame), start, goals, columns or NONE, intervals=True)
        return interval_model(cls, found.rows, found.fields, confidence if found.counted else None)

    @classmethod
    def from_counts(
        cls,
        rows: Iterable[Any],
        start: Name,
        goals: Iterable[Name],
        confidence: float = 0.95,
        *,
        notes: tuple[str, ...] = (),
    ) -> Self:
        """Build a model from what was counted.

        All that may happen must be there, with a count of 0 where it was never seen.

        Parameters
        ----------
        rows : iterable of tuple, or a table
            Rows `(state, action, next_state, count, cost)`, or one row
            `(state, action, cost, next_state)` for each step seen. A table is one that `from_table`
            takes.
        start : hashable
            The state where runs begin.
        goals : iterable of hashable
            The states where runs end, as `SSP.from_outcomes` takes them.
        confidence : float
            With what probability all intervals hold at once, in (0, 1).
        notes : tuple of str
            What was assumed or changed.

        Returns
        -------
        IntervalSSP
            The model; `estimate` are the frequencies.

        Raises
        ------
        ModelError
            If the rows do not define a valid SSP, or a count is not a whole number of 0 or more.
        OptionError
            If `confidence` is not in (0, 1).

        Warns
        -----
        TailpathWarning
            If outcomes were never seen, or choices never tried: how many there are.

        Notes
        -----
        Each interval is that of Clopper and Pearson, at such a level that all of them hold at once
        with probability `confidence` (union bound). An outcome never seen has low = 0 and a
        positive high; a choice never tried may do anything; what is alone in its choice is sure.

        Examples
        --------
        >>> rows = [("home", "road", "work", 45, 20), ("home", "road", "work", 5, 60)]
        >>> model = tp.IntervalSSP.from_counts(rows, "home", ["work"])
        >>> model.low.round(3), model.high.round(3)
        (array([0.764, 0.028]), array([0.972, 0.236]))
        """
        goals = goals if isinstance(goals, str) else list(goals)
        if hasattr(rows, "columns") or isinstance(rows, Mapping):
            return cls.from_table(rows, start=start, goals=goals, confidence=confidence)
        known = set(goals)
        steps = ((*row[:4], (row[4],)) for row in counted_rows(rows) if row[0] not in known)
        fields, (count,) = fields_of_rows(steps, start, goals, 1)
        return cls.from_fields_counted({**fields, "notes": notes}, count, confidence)

    @classmethod
    def from_fields_counted(
        cls, fields: dict[str, Any], count: FloatArray, confidence: float
    ) -> Self:
        """From the fields of an `SSP` but for the probabilities, and counts for these.

        It is for readers of files; `from_counts` says more.

        Parameters
        ----------
        fields : dict
            The arguments of `SSP` by name, without `outcome_probability`.
        count : array of float64, shape (n_outcomes,)
            How often each outcome was seen.
        confidence : float
            With what probability all intervals hold at once, in (0, 1).

        Returns
        -------
        IntervalSSP
            The model.

        Raises
        ------
        OptionError
            If `confidence` is not in (0, 1).

        Examples
        --------
        >>> fields = dict(state_choices=[0, 1, 1], choice_outcomes=[0, 2], outcome_target=[1, 1],
        ...               outcome_cost=[20, 60], choice_action=[0], is_goal=[False, True],
        ...               start_index=0, states=("home", "work"), actions=("road",), notes=())
        >>> import numpy as np
        >>> tp.IntervalSSP.from_fields_counted(fields, np.array([45, 5]), 0.95).estimate
        array([0.9, 0.1])
        """
        low, high, estimate = intervals_of_counts(
            count, np.asarray(fields["choice_outcomes"]), confidence
        )
        words = words_of_counts(fields, count)
        fields = {**fields, "notes": (*fields["notes"], *words)}
        found = cls.from_fields(fields, low, high, estimate=estimate, confidence=float(confidence))
        for each in words:
            warnings.warn(each, TailpathWarning, stacklevel=3)
        return found


Model = TypeVar("Model", bound=IntervalBuilder)


def interval_model(
    kind: type[Model], rows: OutcomeColumns, fields: dict[str, Any], confidence: float | None
) -> Model:
    """The model of outcomes by column, with both ends of intervals or one probability; with a
    confidence, of counts.
    """
    fields = rows.fields(fields, plain=False)
    low, *high = fields["outcome_probability"].T
    if confidence is not None:
        return kind.from_fields_counted(fields, low, confidence)
    return kind.from_fields(fields, low, np.minimum([low, *high][-1], 1.0))
