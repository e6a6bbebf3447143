"""What `solve_on_time` found: the least probability of being late at every deadline, the least VaR,
and the policies that have them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tailpath.analysis.reachability import almost_sure_states
from tailpath.certify.budgets import Later, TableSides
from tailpath.errors import OptionError
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import SAME_MASS
from tailpath.kernels.shortest_paths import dijkstra_tree
from tailpath.model.ssp import SSP
from tailpath.options import check_alpha, takes_alpha
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.layout import model_as_counted
from tailpath.solvers.exact.solution import ByBudget
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.losses import counting_losses

LESS_THAN_ONE = math.nextafter(1.0, 0.0)


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class OnTimeSolution(ByBudget):
    """The largest probability of arriving within every deadline up to `deadline`.

    With `delta`, all values are those of the costs rounded up, and the unit is delta.

    Attributes
    ----------
    deadline : float
        The largest deadline that is answered.
    lateness : array of float64, shape (n,)
        The least P(Z > t) for t = 0, 1, ... units.
    missed : tuple of float
        Bounds on the least probability of never arriving.
    largest : BudgetPolicy
        The policy for the last deadline; its steps are those of all others.
    sides : Later
        Bounds on the lateness, found when `bounds` first asks for them.
    floor : OnTimeSolution or None
        With `delta`, the solution for the costs rounded down, whose lateness is a lower bound.
    nature : str
        On a model with intervals, whether nature is the "adversarial" or the "cooperative" one.

    Examples
    --------
    >>> tp.solve_on_time(ssp, 30).lateness
    array([1. , 1. , 0.1, 0. ])
    """

    deadline: float
    lateness: FloatArray
    missed: tuple[float, float]
    largest: BudgetPolicy
    sides: Later = field(compare=False)
    floor: OnTimeSolution | None = None
    nature: str = ""

    def probability(self, t: float) -> float:
        """The largest probability of a total cost of at most `t`.

        Parameters
        ----------
        t : float
            A deadline, `self.deadline` at most.

        Returns
        -------
        float
            1 - `late(t)`.

        Raises
        ------
        OptionError
            If `t` is later than the table answers.

        Examples
        --------
        >>> tp.solve_on_time(ssp, 60).probability(20)
        0.9
        """
        return 1.0 - self.late(t)

    def late(self, t: float) -> float:
        """The least probability of a total cost above `t`, or of never arriving.

        Parameters
        ----------
        t : float
            A deadline, `self.deadline` at most.

        Returns
        -------
        float
            With all its digits, however small.

        Raises
        ------
        OptionError
            If `t` is later than the table answers.

        Examples
        --------
        >>> tp.solve_on_time(ssp, 60).late(20)
        0.1
        """
        level = self._level(t)
        if level < 0 or math.isinf(t):
            return 1.0 if level < 0 else self.missed[0]
        return float(self.lateness[min(level, len(self.lateness) - 1)])

    def bounds(self, t: float) -> tuple[float, float]:
        """Proved bounds on `probability(t)`.

        Parameters
        ----------
        t : float
            A deadline, `self.deadline` at most.

        Returns
        -------
        tuple (low, high)
            With `delta`, they enclose the largest probability for the costs as they are.

        Examples
        --------
        >>> low, high = tp.solve_on_time(ssp, 60).bounds(20)
        >>> low <= 0.9 <= high
        True
        """
        low, high = self.late_bounds(t)
        return max(1.0 - high - 2e-16, 0.0), min(1.0 - low + 2e-16, 1.0) if low < 1 else 0.0

    def late_bounds(self, t: float) -> tuple[float, float]:
        """Proved bounds on `late(t)`, which keep the digits of a small one.

        Parameters
        ----------
        t : float
            A deadline, `self.deadline` at most.

        Returns
        -------
        tuple (low, high)
            With `delta`, they enclose the least probability for the costs as they are.

        Examples
        --------
        >>> low, high = tp.solve_on_time(ssp, 60).late_bounds(20)
        >>> low <= 0.1 <= high
        True
        """
        level = self._level(t)
        if level < 0 or math.isinf(t):
            low, high = (1.0, 1.0) if level < 0 else self.missed
        else:
            sides: TableSides = self.sides.found
            known = min(level, len(self.lateness) - 1)
            # Beyond the table less may be late, but no less than never arrives. A cost of t is on
            # time with t left: budgets are one unit more.
            low = self.missed[0] if level > known else float(sides.low[known + 1])
            high = float(sides.high[known + 1, 0])
        below = low if self.floor is None else self.floor.late_bounds(t)[0]
        return min(below, 1.0), min(high, 1.0)

    def var(self, alpha: float) -> float:
        """The least VaR of any policy: the least t with a lateness of at most `alpha`.

        Parameters
        ----------
        alpha : float in (0, 1]
            The mass of the worst tail.

        Returns
        -------
        float
            Infinite if no t will do.

        Raises
        ------
        OptionError
            If it lies beyond the deadline.

        Examples
        --------
        >>> tp.solve_on_time(ssp, 60).var(0.1), tp.solve_on_time(ssp, 60).var(0.05)
        (20.0, 30.0)
        """
        a = check_alpha(alpha)
        enough = np.flatnonzero(self.lateness <= self._most_late(a))
        if self.missed[0] > a * (1 + SAME_MASS):
            return math.inf
        if enough.size:
            level = int(enough[0])
            if self.lateness[level] > 1 - SAME_MASS:  # a chance that cannot be told from none
                nearest = cheapest_run(model_as_counted(self.largest))[0]
                if math.isinf(nearest):
                    return nearest
                level = max(level, int(nearest))
            return self._total_cost(level)
        last = self._total_cost(len(self.lateness) - 1)
        raise OptionError(
            f"the VaR at {a:g} lies beyond the deadline {last:g}; solve with a later one, or solve"
            f" for var({a:g})"
        )

    def _most_late(self, alpha: float) -> float:
        """The largest lateness at a VaR: masses are rounded; and what is possible need not be where
        nature may keep it from happening.
        """
        most = alpha * (1 + SAME_MASS)
        return min(most, 1 - SAME_MASS) if self.nature == "adversarial" else most

    def var_bounds(self, alpha: float) -> tuple[float, float]:
        """Proved bounds on `var(alpha)`, which differ where a tail mass may be `alpha`.

        Parameters
        ----------
        alpha : float in (0, 1]
            The mass of the worst tail.

        Returns
        -------
        tuple (low, high)
            From the first t that may have a lateness of at most `alpha` to the first that surely
            has, infinite where the table has none.

        Examples
        --------
        >>> tp.solve_on_time(ssp, 60).var_bounds(0.05)
        (30.0, 30.0)
        """
        t, most = self.var(alpha), min(alpha, LESS_THAN_ONE)
        if math.isinf(t) or (alpha == 1 and self.nature != "adversarial"):
            return t, t
        low = high = self._level(t)
        last = len(self.lateness) - 1
        while low > 0 and self.late_bounds(self._total_cost(low - 1))[0] <= alpha:
            low -= 1
        while high <= last and self.late_bounds(self._total_cost(high))[1] > most:
            high += 1
        return self._total_cost(low), math.inf if high > last else self._total_cost(high)

    def policy(self, t: float | None = None) -> BudgetPolicy:
        """The policy that arrives within `t` with the largest probability.

        Parameters
        ----------
        t : float, optional
            A deadline, `self.deadline` at most, which is the default; for ever (infinite) it is the
            surest policy.

        Returns
        -------
        BudgetPolicy
            All of them share one table.

        Examples
        --------
        >>> best = tp.solve_on_time(ssp, 60)
        >>> best.policy(20).action("home"), best.policy(30).action("home")
        ('road', 'train')
        """
        t = self.deadline if t is None else t
        if math.isinf(t) and self.missed[0] < 1:
            # At the least mean if arriving is sure, else with the fewest dead ends entered.
            ssp = self.largest.ssp
            sure = almost_sure_states(ssp)[0][ssp.start_index]
            return self.largest.spent(solve_expected(ssp if sure else counting_losses(ssp)).choices)
        level = min(self._level(t), len(self.lateness) - 1)
        return self.largest.with_budget(0 if math.isinf(t) else max(level + 1, 0))

    def cheapest(self) -> BudgetPolicy:
        """A policy that may arrive at the least cost at which any run can, however improbable.

        Returns
        -------
        BudgetPolicy
            Elsewhere it is risk-neutral.

        Examples
        --------
        >>> tp.solve_on_time(ssp, 60).cheapest().action("home")
        'road'
        """
        choices = self.largest.risk_neutral.copy()
        model = model_as_counted(self.largest)
        for choice in cheapest_run(model)[1]:
            choices[model.choice_state[choice]] = choice
        return self.largest.spent(choices)

    def _level(self, t: float) -> int:
        """The deadline `t` in units, rounded down."""
        if math.isnan(t) or t > self.deadline:
            raise OptionError(
                f"the table was made for deadlines up to {self.deadline:g}; solve with"
                f" deadline={t:g}"
            )
        if math.isinf(t):
            return len(self.lateness)
        return math.floor(self._border.units(t, self.largest.unit))

    def __repr__(self) -> str:
        return f"<OnTimeSolution {self.probability(self.deadline):.6g} within {self.deadline:g}>"


def cheapest_run(ssp: SSP) -> tuple[float, list[int]]:
    """The least cost at which any run arrives, in units, and the choices along it."""
    rows, level = ssp.by_state, ssp.outcome_level
    least = np.full(ssp.n_states, np.inf)
    order, before = np.full((2, ssp.n_states), -1, dtype=np.int32)
    edges = rows.row_start, rows.target, level.astype(np.float64)
    dijkstra_tree(*edges, ssp.start_index, least, order, before)
    at_goals = np.where(ssp.is_goal, least, np.inf)
    state = int(np.argmin(at_goals))
    cost, choices = float(at_goals[state]), []
    while state != ssp.start_index and cost < np.inf:
        between = np.flatnonzero((rows.source == before[state]) & (rows.target == state))
        choices.append(int(ssp.outcome_choice[between[np.argmin(level[between])]]))
        state = int(before[state])
    return cost, choices
