"""A model whose probabilities are known to lie in intervals: low <= p <= high for every outcome,
and nothing else is known. All else is as in an `SSP`, which the model carries along, with
probabilities from inside the intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from tailpath.errors import ModelError, OptionError
from tailpath.graph import first_of
from tailpath.model.checks import describe_choice, refuse_outcome
from tailpath.model.interval_builders import IntervalBuilder
from tailpath.model.outcomes import ROW_TOLERANCE, OutcomeColumns, outcomes_of_rows
from tailpath.model.records import data_frame
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import check_amount, check_index
from tailpath.texts import count


def _of_inside(name: str, doc: str) -> Any:
    """A property that the model inside has, too."""
    return property(lambda self: getattr(self.inside, name), doc=doc)


@dataclass(frozen=True, eq=False, repr=False)
class IntervalSSP(IntervalBuilder):
    """A stochastic shortest path problem with intervals for probabilities.

    Most users call `IntervalSSP.from_outcomes`, `from_counts`, `from_table`, `around` or
    `tailpath.read`. Everything but the probabilities is as in an `SSP`.

    Parameters
    ----------
    inside : SSP
        The model with probabilities from inside the intervals.
    low, high : array of float64, shape (n_outcomes,)
        The intervals, in the order of the outcomes of `inside`.
    estimate : array of float64, shape (n_outcomes,), optional
        The frequencies, where the intervals come from counts.
    confidence : float, optional
        The probability that all intervals hold, where they come from counts.

    Raises
    ------
    ModelError
        If an interval is not inside [0, 1], or those of a choice admit no distribution; the
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
    <ExpectedSolution 28 from 'home', adversarial nature, by ...>
    >>> tp.solve_expected(model, nature="cooperative")
    <ExpectedSolution 22 from 'home', cooperative nature, by ...>
    """

    def __post_init__(self) -> None:
        for name in ("low", "high", "estimate"):
            column = getattr(self, name)
            if column is not None:
                vars(self)[name] = np.array(column, dtype=np.float64)
                if vars(self)[name].shape != (self.inside.n_outcomes,):
                    raise ModelError(
                        f"{name} needs a number for each of {self.inside.n_outcomes} outcomes"
                    )
        self._check()
        # Where nothing is open, the probabilities are those that the model without intervals would
        # have.
        known = (self.rest == 0)[self.inside.outcome_choice]
        for column in (self.low, self.high):
            column[known] = self.inside.outcome_probability[known]
        self._freeze()

    def _check(self) -> None:
        ssp, low = self.inside, self.low
        high = self.high
        refuse_outcome(
            ssp,
            ssp.outcome_cost < 0,
            lambda o: (
                f"has the negative cost {ssp.outcome_cost[o]:g}; a model with intervals needs costs"
                " of 0 or more"
            ),
        )
        refuse_outcome(
            ssp,
            ~((low >= 0) & (low <= high) & (high <= 1 + ROW_TOLERANCE) & (high > 0)),
            lambda o: (
                f"has the interval [{low[o]:g}, {high[o]:g}], which is not an interval of"
                " probabilities"
            ),
        )
        count = np.diff(ssp.choice_outcomes)
        least, most = self._sums(low), self._sums(high)
        for k in first_of((least > 1 + ROW_TOLERANCE * count) | (most < 1 - ROW_TOLERANCE * count)):
            what = f"at least {least[k]:.12g}" if least[k] > 1 else f"at most {most[k]:.12g}"
            raise ModelError(
                f"the intervals of {describe_choice(ssp, k)} admit no distribution: probabilities"
                f" sum to {what}, not 1"
            )

    def _sums(self, terms: FloatArray) -> FloatArray:
        return self.inside.transitions.sums(terms)

    # ------------------------------------------------------------------ sizes and names

    n_states = _of_inside("n_states", "The number of states, goals included.")
    n_choices = _of_inside("n_choices", "The number of choices, of all states together.")
    n_outcomes = _of_inside("n_outcomes", "The number of outcomes, of all choices together.")
    start = _of_inside("start", "The name of the state where runs begin.")
    goals = _of_inside("goals", "The names of the goals, in index order.")
    states = _of_inside("states", "The names of the states, in index order.")
    notes = _of_inside("notes", "What was assumed or changed, and what was never seen or tried.")

    @property
    def cost_unit(self) -> Fraction | None:
        """The largest Fraction of which every cost is a multiple, or None."""
        return self.inside.cost_unit

    # ------------------------------------------------------------------ what is open

    @cached_property
    def rest(self) -> FloatArray:
        """The probability that nature distributes above the low ends: shape (n_choices,).

        It is 0 where nothing is open.
        """
        rows, rest = self.inside.choice_outcomes, np.zeros(self.n_choices)
        for k in np.flatnonzero(self._sums(self.high - self.low) > 0).tolist():
            rest[k] = max(math.fsum((1.0, *(-self.low[rows[k] : rows[k + 1]]).tolist())), 0.0)
        return rest

    @property
    def is_certain(self) -> bool:
        """Whether every interval is a point."""
        return not self.rest.any()

    @property
    def n_uncertain(self) -> int:
        """The number of choices whose probabilities are not all known."""
        return int(np.count_nonzero(self.rest))

    def nominal(self) -> SSP:
        """The model with one probability for each outcome.

        These are the counted frequencies, or else the distribution at the same relative position in
        every interval of a choice, as for a choice that was never tried. Outcomes that were never
        seen are left out.

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
        rows = rows.replaced(probability=p[p > 0])
        return replace(ssp, **outcomes_of_rows(rows), exact_unit=ssp.cost_unit)

    def narrowed(self, choice: int, share: float = 0.5) -> IntervalSSP:
        """The model in which the intervals of one choice have shrunk.

        They shrink around the frequencies, where the choice was counted, or the probabilities of
        `inside`.

        Parameters
        ----------
        choice : int
            The choice, by index.
        share : float
            The share of the width of its intervals that remains, in [0, 1].

        Returns
        -------
        IntervalSSP
            The other model.

        Raises
        ------
        OptionError
            If there is no such choice, or `share` is not in [0, 1].

        Examples
        --------
        >>> model = tp.IntervalSSP.around(ssp, 0.5).narrowed(0)
        >>> (model.high - model.low).round(6)
        array([0.275, 0.05 , 0.   ])
        """
        index = check_index(choice, self.n_choices, "the choice")
        if check_amount(share, "the share") > 1:
            raise OptionError(f"the share must lie in [0, 1], not {share!r}")
        rows = slice(*self.inside.choice_outcomes[index : index + 2].tolist())
        low, high = self.low.copy(), self.high.copy()
        p = self.inside.outcome_probability
        if self.estimate is not None and self.estimate[rows].any():
            p = self.estimate
        for column in (low, high):
            column[rows] = p[rows] + share * (column[rows] - p[rows])
        return replace(self, low=low, high=high)

    # ------------------------------------------------------------------ what it cannot do

    def __getattr__(self, name: str) -> NoReturn:
        # What only a model with known probabilities has.
        if not name.startswith("_") and (hasattr(SSP, name) or name in SSP.__dataclass_fields__):
            raise OptionError(
                "this needs known probabilities, and the model has intervals; use model.nominal(),"
                " or a function that accepts intervals: solve_expected, solve_cvar_exact,"
                " solve_on_time, solve and evaluate"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ------------------------------------------------------------------ how it shows itself

    def __repr__(self) -> str:
        counted = "" if self.confidence is None else f", confidence {self.confidence:g}"
        return (
            f"<IntervalSSP {count(self.n_states, 'state')}, {count(self.n_choices, 'choice')}"
            f" ({self.n_uncertain} uncertain), {count(self.n_outcomes, 'outcome')}, start"
            f" {self.start!r}{counted}>"
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

        Examples
        --------
        >>> tp.IntervalSSP.around(ssp, 0.5).to_pandas()
          state action next_state   low  high  cost
        0  home   road       work  0.45  1.00  20.0
        1  home   road       work  0.05  0.15  60.0
        2  home  train       work  1.00  1.00  30.0
        """
        frame = self.inside.to_pandas()
        columns = {name: frame[name] for name in ("state", "action", "next_state")}
        return data_frame({**columns, "low": self.low, "high": self.high, "cost": frame["cost"]})


def underlying_ssp(model: SSP | IntervalSSP) -> SSP:
    """The model itself, or the one with probabilities from inside of its intervals."""
    return model.inside if isinstance(model, IntervalSSP) else model


# ---------------------------------------------------------------------- either kind, by column


#: A model of the one kind or the other.
Model = TypeVar("Model", bound=SSP | IntervalSSP)


def columns_of(model: SSP | IntervalSSP) -> OutcomeColumns:
    """The outcomes of a model by column; intervals and frequencies stand behind the probabilities
    from inside of them.
    """
    ssp = underlying_ssp(model)
    shares = [ssp.outcome_probability]
    if isinstance(model, IntervalSSP):
        shares += [model.low, model.high, *([] if model.estimate is None else [model.estimate])]
    action = ssp.choice_action[ssp.outcome_choice]
    columns = (ssp.by_state.source, action, ssp.outcome_target, ssp.outcome_cost)
    return OutcomeColumns(*columns, tuple(shares))


def rebuilt(model: Model, rows: OutcomeColumns, **fields: Any) -> Model:
    """A model of the same kind with other outcomes, as `columns_of` has them, and other fields."""
    arrays = rows.fields(fields, merge=False)
    shares = np.atleast_2d(arrays["outcome_probability"].T)
    ssp = replace(underlying_ssp(model), **{**arrays, "outcome_probability": shares[0]}, paid=None)
    made: Any = ssp
    if isinstance(model, IntervalSSP):
        estimate = shares[3] if len(shares) > 3 else None
        made = IntervalSSP(ssp, shares[1], shares[2], estimate, model.confidence)
    return cast(Model, made)
