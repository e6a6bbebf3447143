"""Whether one total cost is no worse than another for everybody, in the first or the second order.

Z is no worse than Z' in the first order where P(Z > x) <= P(Z' > x) for all x: every measure that
rises with the cost agrees. In the second, the increasing convex order, E[(Z - x)+] <= E[(Z' - x)+]
for all x: everybody agrees who is averse to risk, every CVaR among them. What never arrives costs
more than any x, and makes every excess infinite.

The first difference P(Z > x) - P(Z' > x) rises only where P(Z' > x) falls, and the second is linear
between costs and bends down only there: the costs of Z' decide, up to a last cost X that both heads
reach. Beyond it Z is no worse,

- in the first order, if P(Z > X) <= P(Z' = infinity), and it is not if E[(Z - X)+] is larger;
- in the second, if Z' may never arrive, or if no cost of Z is above the mean m of Z' beyond X:
  E[(Z' - x)+] is at least P(Z' > X) (m - x), a line that a convex function lies below if it does at
  X, and is 0 from m on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tailpath.dp.totals import Totals
from tailpath.errors import OptionError
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import SAME_MASS, TINY
from tailpath.model.records import Record
from tailpath.pictures.distributions import plot_dominance
from tailpath.pictures.style import Axes

#: Bounds that are wider, relatively, leave it open which number is larger.
TOO_WIDE = 1e-6
NUMBERS = {1: "P(Z > x)", 2: "E[(Z - x)+]"}


class Witness(NamedTuple):
    """A cost x, and a number of both at x, P(Z > x) or E[(Z - x)+], that is proved to be larger."""

    cost: float
    this: float
    other: float
    number: str


@dataclass(frozen=True, eq=False, repr=False)
class Dominance(Record):
    """Whether a total cost is no worse than another, as `bool` says: up to a tail of mass `up_to`.

    Attributes
    ----------
    costs, other : CostDistribution
        What was compared.
    order : int
        1 or 2.
    witness : Witness or None
        Where it fails: the `cost` x, the numbers of `this` and the `other`, and which `number` they
        are. Of the first order E[(Z - x)+] may be a witness: then it fails somewhere beyond x.
    up_to : float
        The tail mass beyond both heads of which nothing is known; 0 if all is decided. Where tails
        never become 0, as on cycles, a smaller alpha makes it smaller, but never 0.

    Examples
    --------
    >>> found = costs.dominates(tp.evaluate(ssp, {"home": "train"}, 0.05))
    >>> bool(found), found.witness
    (False, Witness(cost=30.0, this=0.1, other=0.0, number='P(Z > x)'))
    """

    costs: Any
    other: Any
    order: int
    witness: Witness | None
    up_to: float

    def __bool__(self) -> bool:
        return self.witness is None

    @property
    def words(self) -> str:
        """One sentence that says it."""
        if self.witness is not None:
            x, this, other, number = self.witness
            return f"fails: {number} is {this:.6g} and not at most {other:.6g} at x = {x:.6g}"
        known = f", but for a tail of {self.up_to:.3g} of which nothing is known"
        return f"no worse in order {self.order}{known if self.up_to else ''}"

    def __repr__(self) -> str:
        return f"<Dominance: {self.words}>"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw P(Z > x) of both, or E[(Z - x)+] in the second order, and where it fails.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, without a window.

        Returns
        -------
        matplotlib Axes
            `.figure.savefig("tails.pdf")` saves it, and a notebook shows it.

        Examples
        --------
        >>> train = tp.evaluate(ssp, {"home": "train"}, 0.05)
        >>> costs.dominates(train).plot().get_ylabel()
        'P(Z > x)'
        """
        points = np.union1d(self.costs.costs, self.other.costs)
        points = points[points <= min(_known_to(self.costs), _known_to(self.other))]
        both = {"this": self.costs, "other": self.other}
        curves = {k: _numbers(of.costs, of.totals, self.order, points) for k, of in both.items()}
        witness = None if self.witness is None else self.witness.cost
        return plot_dominance(points, curves, NUMBERS[self.order], witness, self.words, ax)


def dominance(costs: Any, other: Any, order: int) -> Dominance:
    """Whether `costs` is no worse than `other`."""
    if order not in NUMBERS:
        raise OptionError(f"order must be 1 or 2, not {order!r}")
    if not isinstance(other, type(costs)):
        raise OptionError(f"other must be a CostDistribution, not {type(other).__name__}")
    end = min(_known_to(costs), _known_to(other))
    last = [end] if math.isfinite(end) else []
    points = [*other.costs[other.costs <= end], *last]
    asked = [(1, [*points, math.inf]), (2, last)] if order == 1 else [(2, points)]
    found = (_witness(costs, other, k, np.array(at), k == order) for k, at in asked)
    witness = next(filter(None, found), None)
    undecided = _undecided(costs, other, order, end) if last and witness is None else 0.0
    return Dominance(costs, other, order, witness, undecided)


def _known_to(of: Any) -> float:
    """The last cost at which tails and excesses are known."""
    if of.tail_mass == 0 or of._tail_never_arrives:
        return math.inf
    return float(of.costs[-1]) if of.costs.size else of._border.cost(0.0)


def _numbers(costs: FloatArray, totals: Totals, order: int, points: FloatArray) -> FloatArray:
    """P(Z > x) or E[(Z - x)+] at points up to where they are known, with the head at `costs`."""
    place = np.searchsorted(costs, points, side="right")
    tails = np.append(totals.masses, totals.tail_mass)[::-1].cumsum()[::-1]
    if order == 1:
        return np.where(np.isinf(points), totals.missed, tails[place])
    if totals.missed > 0:
        return np.full(len(points), math.inf)
    ends = np.append(costs, costs[-1:] if costs.size else 0.0)
    excesses = np.append(np.diff(ends) * tails[1:], totals.excess)[::-1].cumsum()[::-1]
    found: FloatArray = excesses[place] + (ends[place] - points) * tails[place]
    return np.maximum(found, 0.0)


def _witness(
    costs: Any, other: Any, order: int, points: FloatArray, closely: bool
) -> Witness | None:
    """The first point where the number of `costs` is proved to be larger. Costs that differ by
    rounding are equal; what bounds cannot tell apart is no larger, and refused if they are wide and
    it should be known `closely`, which beyond both heads it is not.
    """
    one, two, moved = costs.enclosure, other.enclosure, costs.costs
    for of in (costs, other):
        off = max(of.enclosure.cost_error, of._border.cost_error, of.enclosure.of_sums)
        moved = moved - off * np.abs(of.costs).max(initial=0.0)
    low, most = (_numbers(moved, side, order, points) for side in (one.low, one.high))
    least, high = (_numbers(other.costs, side, order, points) for side in (two.low, two.high))
    fails = low > high * (1 + SAME_MASS + one.of_sums + two.of_sums)
    if fails.any():
        first = points[fails][:1]
        this, that = (_numbers(of.costs, of.totals, order, first) for of in (costs, other))
        return Witness(float(first[0]), float(this[0]), float(that[0]), NUMBERS[order])
    unsure = np.isfinite(points) & (most > least * (1 + TOO_WIDE) + TINY)
    if closely and unsure.any():
        x = points[unsure][0]
        raise OptionError(f"the bounds on {NUMBERS[order]} at x = {x:.6g} are too wide to compare")
    return None


def _undecided(costs: Any, other: Any, order: int, end: float) -> float:
    """The tail mass that nothing is known of if `costs` is no worse up to a cost `end`."""
    at_end = np.array([end])
    tails = [float(_numbers(of.costs, of.totals, 1, at_end)[0]) for of in (costs, other)]
    if order == 1:
        decided = tails[0] <= other.unreached * (1 + SAME_MASS)
    else:
        mean = end + other.enclosure.low.excess / other.enclosure.high.tail_mass
        decided = other.unreached > 0 or (costs.tail_mass == 0 and costs.costs[-1] <= mean)
    if not decided and math.inf in (_known_to(costs), _known_to(other)):
        name, tail = ("this", tails[0]) if _known_to(costs) == end else ("the other", tails[1])
        rest = f"evaluate {name} with alpha={tail / 10:.1g} or less"
        raise OptionError(f"no worse up to cost {end:.6g}, and unknown beyond it; {rest}")
    return 0.0 if decided else max(tails)
