"""A model whose probabilities are known to lie in intervals: low <= p <= high for every outcome, and nothing else is known.

*Nature* picks, at every visit and knowing all that has happened, any probabilities of the choice taken that lie in its intervals and sum to 1
(the model is (s, a)-rectangular). What is solved holds against the worst nature (`adversarial`) or with the best (`cooperative`); a fixed
truth inside the intervals lies between the two, for every policy.

All else is as in an `SSP`, which the model carries along: the same states, choices, outcomes and costs, with probabilities from inside the intervals.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, TypeVar

import numpy as np

from tailpath.errors import ModelError, OptionError, TailpathWarning
from tailpath.graph import offsets_of, owners
from tailpath.model.builders import arrays_from_outcomes
from tailpath.model.checks import ROW_TOLERANCE
from tailpath.model.cost_units import as_fraction
from tailpath.model.counts import Counted, counted_rows, interval_of_counts
from tailpath.model.records import Record, data_frame
from tailpath.model.ssp import SSP, FloatArray, Name
from tailpath.model.tables import NONE, outcomes_of_table

Found = TypeVar("Found")
Row = tuple[Name, Name, Name, Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class IntervalSSP(Record):
    """A stochastic shortest path problem with intervals for probabilities.

    Most users call `IntervalSSP.from_outcomes`, `from_counts`, `from_table`, `around` or
    `tailpath.read`. All but the probabilities is as in an `SSP`.

    Parameters
    ----------
    inside : SSP
        The model with probabilities from inside the intervals.
    low, high : array of float64, shape (n_outcomes,)
        The intervals, in the order of the outcomes of `inside`.
    estimate : array of float64, shape (n_outcomes,), optional
        The frequencies, where the intervals were counted.
    confidence : float, optional
        How sure it is that all intervals hold, where they were counted.

    Raises
    ------
    ModelError
        If an interval is none of probabilities, or those of a choice admit no distribution; the
        text names the state and the action.

    Notes
    -----
    Nature picks, at every visit and knowing all that has happened, any probabilities of the choice
    taken that lie in its intervals and sum to 1: the model is (s, a)-rectangular. What is solved
    holds against the worst nature (`adversarial`) or with the best (`cooperative`). Fixed
    probabilities inside the intervals lie between the two, for every policy.

    `solve_expected`, `solve_cvar_exact`, `solve_on_time`, `solve` and `evaluate` take such a model.
    All else needs known probabilities: those of `nominal()`.

    Examples
    --------
    >>> model = tp.IntervalSSP.from_outcomes([("home", "road", "work", (0.8, 0.95), 20),
    ...                                       ("home", "road", "work", (0.05, 0.2), 60),
    ...                                       ("home", "train", "work", 1, 30)], "home", ["work"])
    >>> model
    <IntervalSSP 2 states, 2 choices (1 uncertain), 3 outcomes, start 'home'>
    >>> tp.solve_expected(model)
    <RobustExpected 28 from 'home', adversarial nature, by ...>
    >>> tp.solve_expected(model, nature="cooperative")
    <RobustExpected 22 from 'home', cooperative nature, by ...>
    """

    inside: SSP
    low: FloatArray
    high: FloatArray
    estimate: FloatArray | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high", "estimate"):
            column = getattr(self, name)
            if column is not None:
                vars(self)[name] = np.array(column, dtype=np.float64)
                if vars(self)[name].shape != (self.inside.n_outcomes,):
                    raise ModelError(f"{name} needs a number for each of {self.inside.n_outcomes} outcomes")
        self._check()
        # Where nothing is open, the probabilities are those that the model without intervals would have.
        known = np.repeat(self.rest == 0, np.diff(self.inside.choice_outcomes))
        for column in (self.low, self.high):
            column[known] = self.inside.outcome_probability[known]
        self._freeze()

    def _check(self) -> None:
        ssp, low, high = self.inside, self.low, self.high
        for o in np.flatnonzero(~((low >= 0) & (low <= high) & (high <= 1 + ROW_TOLERANCE) & (high > 0)))[:1].tolist():
            raise ModelError(f"{self._where(o)} has the interval [{low[o]:g}, {high[o]:g}], which is none of probabilities")
        count = np.diff(ssp.choice_outcomes)
        least, most = self._sums(low), self._sums(high)
        for k in np.flatnonzero((least > 1 + ROW_TOLERANCE * count) | (most < 1 - ROW_TOLERANCE * count))[:1].tolist():
            what = f"at least {least[k]:.12g}" if least[k] > 1 else f"at most {most[k]:.12g}"
            raise ModelError(f"the intervals of {self._choice(k)} admit no distribution: probabilities sum to {what}, not 1")

    def _sums(self, terms: FloatArray) -> FloatArray:
        return self.inside.transitions.sums(terms)

    def _choice(self, choice: int) -> str:
        ssp = self.inside
        return f"state {ssp.states[int(ssp.choice_state[choice])]!r}, action {ssp.choice_name(choice)!r}"

    def _where(self, outcome: int) -> str:
        ssp = self.inside
        return f"{self._choice(int(ssp.outcome_choice[outcome]))} -> {ssp.states[int(ssp.outcome_target[outcome])]!r}"

    # ------------------------------------------------------------------ sizes and names, as in an SSP

    @property
    def n_states(self) -> int:
        """The number of states, goals included."""
        return self.inside.n_states

    @property
    def n_choices(self) -> int:
        """The number of choices, of all states together."""
        return self.inside.n_choices

    @property
    def n_outcomes(self) -> int:
        """The number of outcomes, of all choices together."""
        return self.inside.n_outcomes

    @property
    def start(self) -> Name:
        """The name of the state where runs begin."""
        return self.inside.start

    @property
    def goals(self) -> tuple[Name, ...]:
        """The names of the goals, in index order."""
        return self.inside.goals

    @property
    def states(self) -> Sequence[Name]:
        """The names of the states, in index order."""
        return self.inside.states

    @property
    def cost_unit(self) -> Fraction | None:
        """The largest Fraction of which every cost is a multiple; None where it is too fine."""
        return self.inside.cost_unit

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader assumed or changed, and what was never seen or tried: a tuple of str."""
        return self.inside.notes

    # ------------------------------------------------------------------ what is open

    @cached_property
    def rest(self) -> FloatArray:
        """By choice how much probability nature hands out above the low ones: shape (n_choices,).

        It is 0 where nothing is open.
        """
        rows = self.inside.choice_outcomes
        low, width = self.low, self.high - self.low
        open_ = np.add.reduceat(width, rows[:-1]) > 0 if len(rows) > 1 else np.zeros(0, dtype=np.bool_)
        rest = np.zeros(len(rows) - 1)
        for k in np.flatnonzero(open_).tolist():
            rest[k] = max(math.fsum((1.0, *(-low[rows[k] : rows[k + 1]]).tolist())), 0.0)
        return rest

    @property
    def is_certain(self) -> bool:
        """Whether every interval is a point."""
        return not self.rest.any()

    @property
    def n_uncertain(self) -> int:
        """How many choices have open probabilities."""
        return int(np.count_nonzero(self.rest))

    def nominal(self) -> SSP:
        """The model with one probability for each outcome.

        These are the frequencies counted, or else what divides the intervals of a choice alike.
        Outcomes that were never seen are left out, and a choice never tried keeps what divides its
        intervals alike.

        Returns
        -------
        SSP
            The model with known probabilities.

        Examples
        --------
        >>> rows = [("home", "road", "work", 45, 20), ("home", "road", "work", 5, 60)]
        >>> tp.IntervalSSP.from_counts(rows, "home", ["work"]).nominal().outcome_probability
        array([0.9, 0.1])
        """
        if self.estimate is None:
            return self.inside
        ssp, p = self.inside, self.estimate
        tried = self._sums(p)[ssp.outcome_choice] > 0
        p = np.where(tried, p, ssp.outcome_probability)
        rows = ssp.transitions.only(p > 0)
        return replace(
            ssp,
            choice_outcomes=rows.row_start,
            outcome_target=rows.target,
            outcome_probability=p[p > 0],
            outcome_cost=rows.cost,
            exact_unit=ssp.cost_unit,
        )

    def narrowed(self, choice: int, share: float = 0.5) -> IntervalSSP:
        """The model in which the intervals of one choice have shrunk.

        They shrink around the frequencies, where the choice was counted, or the probabilities of
        `inside`.

        Parameters
        ----------
        choice : int
            The choice, by index.
        share : float
            What is left of the width of its intervals, in [0, 1].

        Returns
        -------
        IntervalSSP
            The other model.

        Examples
        --------
        >>> model = tp.IntervalSSP.around(ssp, 0.5).narrowed(0)
        >>> (model.high - model.low).round(6)
        array([0.275, 0.05 , 0.   ])
        """
        rows = slice(*self.inside.choice_outcomes[choice : choice + 2].tolist())
        low, high, p = self.low.copy(), self.high.copy(), self.inside.outcome_probability
        if self.estimate is not None and self.estimate[rows].any():
            p = self.estimate
        for column in (low, high):
            column[rows] = p[rows] + share * (column[rows] - p[rows])
        return replace(self, low=low, high=high)

    # ------------------------------------------------------------------ what it cannot do

    def _refuse(self) -> NoReturn:
        raise OptionError(
            "this needs known probabilities, and the model has intervals; take model.nominal(), or what solves intervals:"
            " solve_expected, solve_cvar_exact, solve_on_time, solve and evaluate"
        )

    def __getattr__(self, name: str) -> NoReturn:
        # What only a model with known probabilities has.
        if not name.startswith("_") and (hasattr(SSP, name) or name in SSP.__dataclass_fields__):
            self._refuse()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def found_once(self, name: Hashable, find: Callable[[], Found]) -> Found:
        """What was found out about this model before under a name, or is found now.

        It is not pickled.

        Parameters
        ----------
        name : hashable
            What it is kept under.
        find : callable
            `find()` finds it out.

        Returns
        -------
        object
            What `find` returned, now or before.
        """
        known: dict[Hashable, Any] = vars(self).setdefault("_found", {})
        if name not in known:
            known[name] = find()
        found: Found = known[name]
        return found

    # ------------------------------------------------------------------ how it shows itself

    def __repr__(self) -> str:
        sure = "" if self.confidence is None else f", confidence {self.confidence:g}"
        return (
            f"<IntervalSSP {self.n_states} states, {self.n_choices} choices ({self.n_uncertain} uncertain), {self.n_outcomes} outcomes,"
            f" start {self.start!r}{sure}>"
        )

    def to_pandas(self) -> Any:
        """The outcomes as a DataFrame that `from_table` reads back, given start and goals.

        Returns
        -------
        pandas.DataFrame
            Columns `state`, `action`, `next_state`, `low`, `high` and `cost`, a row for each
            outcome.

        Raises
        ------
        OptionError
            If pandas is not installed.
        """
        frame = self.inside.to_pandas()
        columns = {name: frame[name] for name in ("state", "action", "next_state")}
        return data_frame({**columns, "low": self.low, "high": self.high, "cost": frame["cost"]})

    # ------------------------------------------------------------------ builders

    @classmethod
    def from_outcomes(cls, outcomes: Iterable[Row], start: Name, goals: Iterable[Name], *, notes: tuple[str, ...] = ()) -> IntervalSSP:
        """Build a model from rows `(state, action, next_state, (low, high), cost)`.

        States are numbered as they first appear. Rows that agree in all but the probability are
        added up; rows that cannot happen are left out.

        Parameters
        ----------
        outcomes : iterable of tuple
            The rows, in any order, as `SSP.from_outcomes` takes them, with a pair `(low, high)` or
            a number for each probability.
        start : hashable
            The state where runs begin.
        goals : iterable of hashable
            The states where runs end. A goal needs no rows; if it has any they must lead to itself
            at no cost.
        notes : tuple of str
            What was assumed or changed.

        Returns
        -------
        IntervalSSP
            The model.

        Raises
        ------
        ModelError
            If the rows do not make a problem, or the intervals of a choice admit no distribution;
            the text names the state and the action.

        Examples
        --------
        >>> rows = [("home", "road", "work", (0.8, 0.95), 20),
        ...         ("home", "road", "work", (0.05, 0.2), 60), ("home", "train", "work", 1, 30)]
        >>> model = tp.IntervalSSP.from_outcomes(rows, "home", ["work"])
        >>> model.low, model.high
        (array([0.8 , 0.05, 1.  ]), array([0.95, 0.2 , 1.  ]))
        """
        goals = goals if isinstance(goals, str) else list(goals)
        return cls._from_intervals(_added(outcomes, set(goals)), start, goals, notes)

    @classmethod
    def around(cls, ssp: SSP, margin: float) -> IntervalSSP:
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
        if not 0 <= margin <= 1:
            raise OptionError(f"the margin must lie in [0, 1], not {margin!r}")
        p = ssp.outcome_probability
        alone = np.repeat(np.diff(ssp.choice_outcomes) == 1, np.diff(ssp.choice_outcomes))
        low, high = np.where(alone, p, p * (1 - margin)), np.where(alone, p, np.minimum(p * (1 + margin), 1.0))
        return cls(ssp, low, high)

    @classmethod
    def _from_intervals(
        cls, merged: dict[tuple[Name, Name, Name, Any], tuple[float, float]], start: Name, goals: Any, notes: tuple[str, ...]
    ) -> IntervalSSP:
        keys, ends = list(merged), np.array(list(merged.values())).reshape(-1, 2)
        # The arrays are made with the number of each row for its probability, which tells where it went.
        rows = ((s, a, t, 1 if s in goals else i + 1, c) for i, (s, a, t, c) in enumerate(keys))
        arrays = arrays_from_outcomes(rows, start, goals)._asdict()
        place = np.rint(arrays["outcome_probability"]).astype(np.int64) - 1
        return cls.from_fields({**arrays, "notes": notes}, ends[place, 0], ends[place, 1])

    @classmethod
    def from_fields(cls, fields: dict[str, Any], low: FloatArray, high: FloatArray, **more: Any) -> IntervalSSP:
        """From the fields of an `SSP` but for the probabilities, and intervals for these.

        It is for readers of files. Outcomes that cannot happen are left out. The probabilities
        inside divide what is open of a choice alike.

        Parameters
        ----------
        fields : dict
            The arguments of `SSP` by name, without `outcome_probability`.
        low, high : array of float64, shape (n_outcomes,)
            The intervals.
        **more
            `estimate` and `confidence`, as the constructor takes them.

        Returns
        -------
        IntervalSSP
            The model.

        Raises
        ------
        ModelError
            If the fields do not make a problem, or the intervals of a choice admit no distribution.
        """
        count = len(fields["choice_action"])
        row = owners(np.asarray(fields["choice_outcomes"]))
        least = np.bincount(row, low, count)[row]
        possible = (low > 0) | ((high > 0) & (least < 1))
        # A choice of which nothing can happen is wrong, which the checks say.
        possible |= np.bincount(row, possible, count)[row] == 0
        columns = {name: np.asarray(fields[name])[possible] for name in ("outcome_target", "outcome_cost")}
        low, high, row, least = low[possible], high[possible], row[possible], least[possible]
        width = np.bincount(row, high - low, count)[row]
        share = np.where(width > 0, np.clip((1 - least) / np.where(width > 0, width, 1.0), 0.0, 1.0), 0.0)
        p = low + share * (high - low)
        total = np.bincount(row, p, count)[row]
        if not (np.all(p > 0) and np.all(np.abs(total - 1) <= ROW_TOLERANCE * np.bincount(row, minlength=count)[row])):
            p = 1.0 / np.bincount(row, minlength=count)[row]  # the checks of intervals say what is wrong
        fields = {**fields, **columns, "choice_outcomes": offsets_of(row, count), "outcome_probability": p}
        more = {
            name: None if value is None else np.asarray(value)[possible] if name == "estimate" else value for name, value in more.items()
        }
        return cls(SSP(**fields), low, high, **more)

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        start: Name | None = None,
        goals: Iterable[Name] | None = None,
        columns: Mapping[str, Any] = NONE,
        confidence: float = 0.95,
    ) -> IntervalSSP:
        """Build a model from a table with one row per outcome.

        Parameters
        ----------
        frame : DataFrame, table, or dict of columns
            As `SSP.from_table` takes it, with columns `low` and `high`, or `count`, for the
            probability.
        start : hashable, optional
            The state where runs begin; by default that of a column `start`, or of the first row.
        goals : iterable of hashable, optional
            The states where runs end; by default those of a column, or the states without rows.
        columns : mapping, optional
            What columns are called: `{"cost": "minutes"}`.
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
            If a column is missing or could be several, or the rows do not make a problem.
        OptionError
            If `columns` names something that a table does not have, or `confidence` is not in
            (0, 1).

        Examples
        --------
        >>> tp.IntervalSSP.from_table({"from": ["a", "a"], "to": ["b", "b"], "action": ["go", "go"],
        ...                            "low": [0.4, 0.4], "high": [0.6, 0.6], "time": [1, 3]})
        <IntervalSSP 2 states, 1 choices (1 uncertain), 2 outcomes, start 'a'>
        """
        found = outcomes_of_table(frame, start, goals, columns or NONE, intervals=True)
        if found.counted:
            return cls.from_counts(found.rows, found.start, found.goals, confidence, notes=found.notes)
        return cls.from_outcomes(found.rows, found.start, found.goals, notes=found.notes)

    @classmethod
    def from_counts(
        cls, rows: Iterable[Any], start: Name, goals: Iterable[Name], confidence: float = 0.95, *, notes: tuple[str, ...] = ()
    ) -> IntervalSSP:
        """Build a model from what was counted.

        All that may happen must be there, with a count of 0 where it was never seen.

        Parameters
        ----------
        rows : iterable of tuple
            Rows `(state, action, next_state, count, cost)`, or one row
            `(state, action, cost, next_state)` for each step seen.
        start : hashable
            The state where runs begin.
        goals : iterable of hashable
            The states where runs end.
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
            If the rows do not make a problem, or a count is no whole number from 0 on.
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
        if not 0 < confidence < 1:
            raise OptionError(f"confidence must lie in (0, 1), not {confidence!r}")
        goals = goals if isinstance(goals, str) else list(goals)
        counted: Counted = counted_rows(rows, set(goals))
        merged = interval_of_counts(counted, confidence)
        found = cls._from_intervals(merged, start, goals, (*notes, *counted.words()))
        for words in counted.words():
            warnings.warn(words, TailpathWarning, stacklevel=2)
        inside = found.inside
        names = inside.states
        key = zip(
            inside.choice_state[inside.outcome_choice].tolist(),
            inside.outcome_choice.tolist(),
            inside.outcome_target.tolist(),
            inside.outcome_cost.tolist(),
        )
        share = [counted.share(names[s], inside.choice_name(k), names[t], c) for s, k, t, c in key]
        return replace(found, estimate=np.array(share), confidence=float(confidence))


def _added(outcomes: Iterable[Row], goals: set[Name]) -> dict[tuple[Name, Name, Name, Any], tuple[float, float]]:
    """The interval of every outcome by state, action, next state and cost; equal rows added up, those that cannot happen left out."""
    found: dict[tuple[Name, Name, Name, Any], tuple[float, float]] = {}
    for number, row in enumerate(outcomes):
        try:
            state, action, next_state, chance, cost = row
            hash((state, action, next_state, cost))
        except (TypeError, ValueError):
            raise ModelError(f"outcome {number} is {row!r}; expected hashable (state, action, next_state, (low, high), cost)") from None
        low, high = _ends(chance, state, action, next_state)
        if state in goals:
            low, high = min(low, 1.0), min(high, 1.0)
        before = found.get((state, action, next_state, cost), (0.0, 0.0))
        found[state, action, next_state, cost] = (before[0] + low, min(before[1] + high, 1.0))
    least: dict[tuple[Name, Name], list[float]] = {}
    for (state, action, _, _), (low, _) in found.items():
        least.setdefault((state, action), []).append(low)
    full = {key for key, lows in least.items() if math.fsum(lows) >= 1}
    return {key: ends for key, ends in found.items() if key[0] in goals or ends[0] > 0 or (ends[1] > 0 and key[:2] not in full)}


def _ends(chance: Any, state: Name, action: Name, next_state: Name) -> tuple[float, float]:
    where = f"state {state!r}, action {action!r} -> {next_state!r}"
    try:
        pair = (chance, chance) if isinstance(chance, str) or np.ndim(chance) == 0 else tuple(chance)
        low, high = (float(as_fraction(end)) if isinstance(end, (str, Decimal)) else float(end) for end in pair)
    except (TypeError, ValueError, ArithmeticError):
        raise ModelError(f"{where} has probability {chance!r}, which is neither a number nor a pair (low, high)") from None
    if not 0 <= low <= high <= 1 + ROW_TOLERANCE:
        raise ModelError(f"{where} has the interval [{low:g}, {high:g}], which is none of probabilities")
    return low, high
