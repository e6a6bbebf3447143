"""How models with intervals are built: from rows, counts, tables and models, as an `SSP` is, with
two numbers or a count for each probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from tailpath.errors import ModelError, OptionError
from tailpath.graph import Array, offsets_of, owners
from tailpath.model.checks import describe_choice
from tailpath.model.columns import NONE
from tailpath.model.frames import COUNT, INTERVAL, Frame, Rows
from tailpath.model.outcomes import ROW_TOLERANCE, can_happen
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray, Name
from tailpath.model.tables import outcomes_of_table
from tailpath.options import check_amount, warn_caller
from tailpath.texts import count

Counts = tuple[FloatArray, FloatArray, FloatArray]


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
        outcomes: Iterable[tuple[Name, Name, Name, Any, Any]],
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
        table = Rows(outcomes, goals, INTERVAL)
        found = outcomes_of_table(table, start, table.last, intervals=True)
        return interval_model(cls, found.all_fields(notes=notes))

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
        margins = np.where(np.diff(ssp.choice_outcomes) > 1, margin, 0.0)[ssp.outcome_choice]
        return cls(ssp, p * (1 - margins), np.minimum(p * (1 + margins), 1.0))

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
        return interval_model(cls, found.all_fields(), confidence if found.counted else None)

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
        steps = (step for step in _steps(rows) if step[0] not in goals)
        table = Rows(steps, goals, COUNT)
        found = outcomes_of_table(table, start, table.last, intervals=True)
        return interval_model(cls, found.all_fields(notes=notes), confidence)


Model = TypeVar("Model", bound=IntervalBuilder)


def interval_model(
    kind: type[Model], fields: dict[str, Any], confidence: float | None = None
) -> Model:
    """The model of the fields of an `SSP` whose `outcome_probability` has columns, (n_outcomes, k):
    probabilities or, with a confidence, counts; the ends of intervals; these and frequencies.

    Outcomes that cannot happen are left out.
    """
    first, *ends = np.atleast_2d(fields["outcome_probability"].T)
    row, counted = (
        owners(np.asarray(fields["choice_outcomes"])),
        confidence is not None and not ends,
    )
    if confidence is not None and counted:
        first, *ends = _intervals_of_counts(first, row, confidence)
    low, high = first, np.minimum(ends[0], 1.0) if ends else first
    possible = can_happen(row, low, high)
    # A choice of which nothing can happen is invalid, which the checks report.
    possible |= (np.bincount(row, possible) == 0)[row]
    row, low, high = row[possible], low[possible], high[possible]
    columns = {name: fields[name][possible] for name in ("outcome_target", "outcome_cost")}
    columns["choice_outcomes"] = offsets_of(row, len(fields["choice_action"]))
    ssp = SSP(**{**fields, **columns, "outcome_probability": _inside(row, low, high)})
    estimate = ends[1][possible] if len(ends) > 1 else None
    if counted and estimate is not None and (words := _never_seen(ssp, estimate)):
        for each in words:
            warn_caller(each)
        ssp = replace(ssp, notes=(*ssp.notes, *words))
    return kind(ssp, low, high, estimate, None if confidence is None else float(confidence))


def _inside(row: Array, low: FloatArray, high: FloatArray) -> FloatArray:
    """Probabilities from inside the intervals: the open mass of a choice is divided in proportion
    to their widths.
    """
    least, width = np.bincount(row, low)[row], np.bincount(row, high - low)[row]
    share = np.where(width > 0, np.clip((1 - least) / np.where(width > 0, width, 1.0), 0, 1), 0.0)
    p, size = low + share * (high - low), np.bincount(row)[row]
    if np.all(p > 0) and np.all(np.abs(np.bincount(row, p)[row] - 1) <= ROW_TOLERANCE * size):
        return p
    return np.asarray(1.0 / size)  # the checks of intervals report what is invalid


# ---------------------------------------------------------------------- counts


def _steps(rows: Iterable[Any]) -> Iterator[Any]:
    """Rows `(state, action, next_state, count, cost)`: as given, or of the steps of a run
    `(state, action, cost, state, ..., cost, state)`.
    """
    for number, row in enumerate(rows):
        size = len(row) if hasattr(row, "__len__") else 0
        if size == 5:
            yield row
            continue
        if size < 4 or size % 3 != 1:
            raise ModelError(
                f"row {number} is {row!r}; expected (state, action, next_state, count, cost), or a"
                " run (state, action, cost, next_state, ...)"
            )
        for at in range(0, size - 1, 3):
            state, action, cost, next_state = row[at : at + 4]
            yield state, action, next_state, 1, cost


def _intervals_of_counts(seen: FloatArray, row: Array, confidence: float) -> Counts:
    """Low and high ends so that all hold at once with this probability, and the frequencies, which
    are 0 for a choice that was never tried; by outcome, like the counts and their choices.
    """
    from scipy.special import betainccinv, betaincinv

    confidence = check_amount(confidence, "confidence", signed=True)
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie in (0, 1), not {confidence!r}")
    tried, together = np.bincount(row, seen)[row], (np.bincount(row) > 1)[row]
    half = (1 - confidence) / max(int(np.count_nonzero(together)), 1) / 2
    low, high = np.where(together, 0.0, 1.0), np.ones(len(seen))
    some, less = together & (seen > 0), together & (seen < tried)
    low[some] = betaincinv(seen[some], (tried - seen)[some] + 1, half)
    high[less] = betainccinv(seen[less] + 1, (tried - seen)[less], half)
    return low, high, np.where(tried > 0, seen / np.maximum(tried, 1), 0.0)


def _never_seen(ssp: SSP, estimate: FloatArray) -> list[str]:
    """Notes on outcomes that were never seen, and choices that were never tried."""
    several, tried = np.diff(ssp.choice_outcomes) > 1, ssp.transitions.sums(estimate) > 0
    unseen = np.flatnonzero((estimate == 0) & (several & tried)[ssp.outcome_choice])
    untried = np.flatnonzero(several & ~tried)
    found = []
    if len(unseen):
        choice = describe_choice(ssp, int(ssp.outcome_choice[unseen[0]]))
        target = ssp.states[ssp.outcome_target[unseen[0]]]
        found.append((unseen, "outcome", "seen", f"{choice} -> {target!r}"))
    if len(untried):
        what = "tried, so that anything may happen"
        found.append((untried, "choice", what, describe_choice(ssp, int(untried[0]))))
    return [
        f"{count(len(which), noun)} never {what}: {first}{', ..' if len(which) > 1 else ''}"
        for which, noun, what, first in found
    ]
