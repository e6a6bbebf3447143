"""The least CVaR of a model that is given by functions: `search.py` has the search, `sides.py` the
two tables, `docs/lazy.md` when it wins and when it loses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tailpath.errors import OptionError
from tailpath.lazy.expansion import Expansion, assumed
from tailpath.lazy.policy import LazyPolicy
from tailpath.lazy.search import Round, Search
from tailpath.lazy.sides import Asked, Side
from tailpath.model.cost_units import exact_number
from tailpath.model.implicit import BOUNDS, BoundOf, ImplicitSSP, implicit
from tailpath.model.outcomes import Name
from tailpath.model.records import Record
from tailpath.options import (
    Progress,
    alpha_from,
    answering,
    check_alpha,
    check_amount,
    check_integer,
    takes_alpha,
    warn_caller,
)
from tailpath.pictures.notebook import card
from tailpath.pictures.style import Axes, look, own_axes
from tailpath.progress import AFTER, progress_line
from tailpath.texts import Table, count

#: The most states that are expanded unless more are allowed.
MAX_STATES = 200_000
GIVE_UP = "give up"


@dataclass(frozen=True, eq=False, repr=False)
class LazyResult(Record):
    """What a lazy search knows: a bracket that may be made closer."""

    search: Search
    history: tuple[Round, ...]
    stopped: str
    below: Side | None
    above: Side | None

    @classmethod
    def _of(cls, search: Search) -> Any:
        """What a search has found so far."""
        below, above = search.sides or (None, None)
        return cls(search, tuple(search.history), search.stopped, below, above)

    @property
    def expanded(self) -> int:
        """The number of states that were expanded."""
        return self.history[-1].expanded

    @property
    def found(self) -> int:
        """The number of states that were found: those expanded, and where their outcomes lead."""
        return self.history[-1].found

    @property
    def unit(self) -> Fraction:
        """The cost unit of the rows that were expanded."""
        return Fraction(1) if self.below is None else self.below.rows.unit

    @property
    def assumed(self) -> str:
        """What the bounds rest on, in words."""
        return assumed(self.search.expansion.model)

    def refine(
        self,
        gap: float = 1e-3,
        *,
        max_states: int = MAX_STATES,
        progress: Progress | None = None,
    ) -> Any:
        """Go on from where the search stopped.

        Parameters
        ----------
        gap : float, 0 or more
            The largest difference of the two bounds, in cost.
        max_states : int
            The most states to expand, those expanded before among them.
        progress : callable, optional
            As of `solve_cvar_lazy`.

        Returns
        -------
        LazySolution or LazyExcess
            Another one; this one stays as it is.

        Examples
        --------
        >>> tp.solve_cvar_lazy(ssp, 0.1, gap=10).refine(gap=0.001).stopped
        'the gap is reached'
        """
        search = replace(self.search, history=list(self.history))
        return type(self)._of(_run(search, gap, max_states, progress))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both bounds against the states expanded.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, without a window.

        Returns
        -------
        matplotlib Axes
            The axes.

        Examples
        --------
        >>> tp.solve_cvar_lazy(ssp, 0.1).plot().get_xlabel()
        'states expanded'
        """
        ax = own_axes(ax)
        states = [each.expanded for each in self.history]
        for number, side in enumerate(("high", "low")):
            own = look(number)
            ends = [getattr(each, side) for each in self.history]
            ax.plot(states, ends, own.line, color=own.colour, label=f"{side} end")
        ax.set_xlabel("states expanded")
        ax.set_ylabel("cost")
        ax.legend()
        return ax

    def _policy(self, alpha: float) -> LazyPolicy:
        if self.above is None:
            raise OptionError(
                "no policy is known that surely arrives; expand more states (max_states=), or give"
                " upper=, surely= or give_up="
            )
        expansion, rows = self.search.expansion, self.above.rows
        done = len(rows.state)
        rank = {name: number for number, name in enumerate(expansion.expanded[:done])}
        actions = expansion.actions[: rows.state_choices[-1]]
        inside = self.above.policy(alpha)
        return LazyPolicy(expansion.model, inside, rank, actions)

    def _bracket(self, alpha: float) -> tuple[float, float]:
        if self.below is None:
            return 0.0, 0.0
        high = math.inf if self.above is None else self.above.bounds(alpha)[1]
        return self.below.bounds(alpha)[0], high

    def _words(self, bounds: tuple[float, float]) -> str:
        states = f"{count(self.expanded, 'state')} expanded, {self.found} found"
        return f"in [{bounds[0]:.9g}, {bounds[1]:.9g}], {states}: {self.stopped}"


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class LazySolution(LazyResult):
    """A bracket of the least CVaR for every `a >= alpha`, with a policy for each.

    Attributes
    ----------
    search : Search
        What was searched, which `refine` and `after` go on from.
    history : tuple of Round
        By round the states `expanded` and `found`, the ends `low` and `high` and the `seconds`.
    stopped : str
        Why the search ended.
    below, above : Side or None
        The tables of the two sides.

    Examples
    --------
    >>> best = tp.solve_cvar_lazy(ssp, 0.1)
    >>> best
    <LazySolution for alpha>=0.1: CVaR in [30, 30], 1 state expanded, 2 found: the gap is reached>
    >>> best.assumed
    'the functions of the model alone'
    """

    @property
    def alpha(self) -> float:
        """The smallest tail mass for which the bracket is known."""
        return self.search.asked.alpha

    def bounds(self, a: float | None = None) -> tuple[float, float]:
        """Proved bounds on the least CVaR.

        Parameters
        ----------
        a : float in (0, 1], optional
            The mass of the worst tail; by default `alpha`.

        Returns
        -------
        tuple (low, high)
            The policy for `a` costs no more than `high`, which is infinite while no policy is known
            that surely arrives.

        Raises
        ------
        OptionError
            If `a` is smaller than `alpha`.

        Examples
        --------
        >>> low, high = tp.solve_cvar_lazy(ssp, 0.1).bounds(1)
        >>> low <= 24 <= high < 24.000001
        True
        """
        a = self._check(a)
        return self._bracket(a)

    def cvar(self, a: float | None = None) -> float:
        """What the CVaR of the policy for `a` is at most: the upper end of the bracket.

        Parameters
        ----------
        a : float in (0, 1], optional
            The mass of the worst tail; by default `alpha`.

        Returns
        -------
        float
            The upper end.

        Examples
        --------
        >>> round(tp.solve_cvar_lazy(ssp, 0.1).cvar(0.1), 6)
        30.0
        """
        return self.bounds(a)[1]

    def policy(self, a: float | None = None) -> LazyPolicy:
        """The policy of the upper side.

        Parameters
        ----------
        a : float in (0, 1], optional
            The mass of the worst tail; by default `alpha`.

        Returns
        -------
        LazyPolicy
            Its CVaR is no more than `bounds(a)[1]`.

        Raises
        ------
        OptionError
            If no policy is known that surely arrives.

        Examples
        --------
        >>> tp.solve_cvar_lazy(ssp, 0.1).policy(0.1)
        <LazyPolicy budget of 3 units of 10, 1 state expanded>
        """
        return self._policy(self._check(a))

    def after(
        self,
        state: Name,
        budget: Any,
        *,
        gap: float = 1e-3,
        max_states: int = MAX_STATES,
        progress: Progress | None = None,
    ) -> LazyExcess:
        """Go on during a run: the least expected excess over the budget that is left.

        All that was expanded is used again.

        Parameters
        ----------
        state : hashable
            Where the run is.
        budget : int or Fraction
            What is left of the budget, in units, as the policy remembers it.
        gap : float
            The largest difference of the two bounds, in cost.
        max_states : int
            The most states to expand, those expanded before among them.
        progress : callable, optional
            As of `solve_cvar_lazy`.

        Returns
        -------
        LazyExcess
            `bounds` and `policy()` from there on.

        Examples
        --------
        >>> tp.solve_cvar_lazy(ssp, 0.1).after("home", 2)
        <LazyExcess in [4, 4], 1 state expanded, 2 found: the gap is reached>
        """
        left = math.floor(exact_number(budget, "the budget")) * self.unit
        expansion, asked = self.search.expansion, Asked(self.alpha, left)
        search = Search(expansion, expansion.number(state), asked)
        found: LazyExcess = LazyExcess._of(_run(search, gap, max_states, progress))
        return found

    def _check(self, a: float | None) -> float:
        if a is None:
            return self.alpha
        known = alpha_from(check_alpha(a), self.alpha)
        if known is None:
            raise OptionError(
                f"the tables were made for alpha >= {self.alpha:g}; solve with alpha={a:g}"
            )
        return known

    def __repr__(self) -> str:
        words = self._words(self.bounds())
        return f"<LazySolution for alpha>={self.alpha:g}: CVaR {words}>"

    def _repr_html_(self) -> str:
        ends = self.bounds()
        rows = [("at least", ends[0]), ("at most", ends[1]), ("states expanded", self.expanded)]
        return card(f"Least CVaR at {self.alpha:g}", [Table((), rows)], self.plot)


class LazyExcess(LazyResult):
    """A bracket of the least E[(Z - w)+], Z the cost still to come and w the budget left.

    Examples
    --------
    >>> tp.solve_cvar_lazy(ssp, 0.1).after("home", 1)
    <LazyExcess in [14, 14], 1 state expanded, 2 found: the gap is reached>
    """

    @property
    def bounds(self) -> tuple[float, float]:
        """Proved bounds on it, as costs; the policy's is no more than the upper one."""
        return self._bracket(1.0)

    def policy(self) -> LazyPolicy:
        """The policy from there on, which starts with the budget left.

        Returns
        -------
        LazyPolicy
            The policy.

        Examples
        --------
        >>> tp.solve_cvar_lazy(ssp, 0.1).after("home", 2).policy().action("home")
        'road'
        """
        return self._policy(1.0)

    def __repr__(self) -> str:
        return f"<LazyExcess {self._words(self.bounds)}>"


@takes_alpha
@answering
def solve_cvar_lazy(
    model: Any,
    alpha: float,
    *,
    gap: float = 1e-3,
    heuristic: BoundOf | None = None,
    least: BoundOf | None = None,
    upper: BoundOf | None = None,
    surely: BoundOf | None = None,
    give_up: Any = None,
    max_states: int = MAX_STATES,
    progress: Progress | None = None,
) -> LazySolution:
    """Find bounds on the least CVaR over all policies, looking only at the states that decide.

    For models too large to be listed, of which a goal is near or most states are never met. Where a
    model can be listed, `solve_cvar_exact` is usually faster.

    Parameters
    ----------
    model : ImplicitSSP, or an object with `start`, `actions`, `outcomes` and `is_goal`, or SSP
        The model; costs are 0 or more.
    alpha : float in (0, 1]
        The least mass of the worst tail that the result answers.
    gap : float, 0 or more
        The search ends when the two bounds differ by no more than this, in cost.
    heuristic : callable, optional
        `heuristic(state)` is at most the expected cost to go of every policy.
    least : callable, optional
        `least(state)` is at most the cost of every run from there. It is a heuristic, too.
    upper : callable, optional
        `upper(state)` is at least the expected cost to go of some policy.
    surely : callable, optional
        `surely(state)` is a cost that some policy keeps in every run from there, which closes the
        gap fastest.
    give_up : number, optional
        Lets every policy end the run in any state at this price, as `tailpath.give_up` does.
    max_states : int
        The most states to expand.
    progress : callable, optional
        `progress(expanded, gap)` is called after every round.

    Returns
    -------
    LazySolution
        `bounds(a)` and `policy(a)` for every `a >= alpha`. Ctrl-C ends the search, too: the result
        has what is proved by then.

    Raises
    ------
    ModelError
        If a function returns something invalid, or a bound contradicts a row; the text names the
        state, the action and both numbers.
    GoalUnreachableError
        If the start cannot reach a goal with probability 1.
    OptionError
        If an argument lies outside its range.

    Notes
    -----
    `heuristic`, `least`, `upper` and `surely` are 0 or infinite where they return None or are not
    given, here or as attributes of the model. Wherever a state is expanded they are checked: h <=
    r + P h for every action, least <= c + least' for every outcome; upper >= r + P upper, and
    surely >= c + surely' for all outcomes, for one action. Elsewhere they are trusted.

    Examples
    --------
    >>> walk = tp.ImplicitSSP(10**18, lambda n: ["walk", "ride"],
    ...                       lambda n, action: [(1, n - 1, 2)] if action == "walk" else
    ...                                         [(0.5, n - 1, 1), (0.5, n - 1, 4)],
    ...                       lambda n: n == 10**18 - 5)
    >>> tp.solve_cvar_lazy(walk, 0.05, least=lambda n: n - 10**18 + 5)
    <LazySolution for alpha>=0.05: CVaR in [10, 10], 5 states expanded, 6 found: the gap is reached>
    """
    bounds = zip(BOUNDS, (heuristic, least, upper, surely))
    given: dict[str, Any] = {name: own for name, own in bounds if own is not None}
    known = replace(implicit(model), **given)
    if give_up is not None:
        known = _giving_up(known, exact_number(give_up, "give_up"))
    expansion = Expansion(known)
    search = Search(expansion, expansion.number(known.start), Asked(check_alpha(alpha)))
    found: LazySolution = LazySolution._of(_run(search, gap, max_states, progress))
    return found


def _run(search: Search, gap: float, max_states: int, progress: Progress | None) -> Search:
    gap, most = check_amount(gap, "gap", finite=True), check_integer(max_states, "max_states", 1)
    with progress_line("solve_cvar_lazy", after=AFTER) as update:
        report = progress or (lambda n, apart: update(f"{n} states expanded, gap {apart:.3g}"))
        search.run(gap, most, report)
    if search.expansion.scaled:
        warn_caller(f"probabilities were scaled to sum to 1; {search.expansion.scaled}")
    return search


class _GaveUp:
    """The goal of giving up, which is no state of the model."""

    def __repr__(self) -> str:
        return "gave up"


def _giving_up(model: ImplicitSSP, price: Fraction) -> ImplicitSSP:
    end = _GaveUp()

    def outcomes(state: Name, action: Name) -> Any:
        return [(1, end, price)] if action == GIVE_UP else model.outcomes(state, action)

    def surely(state: Name) -> float:
        own = None if model.surely is None else model.surely(state)
        return float(price) if own is None else min(float(own), float(price))

    return replace(
        model,
        actions=lambda state: [*model.actions(state), GIVE_UP],
        outcomes=outcomes,
        is_goal=lambda state: state is end or model.is_goal(state),
        surely=surely,
    )
