"""The distribution of a total cost Z, as far as it is known: the *head*, every cost up to a last
one X, and three numbers of the rest, its mass P(Z > X), what of it may still arrive, and its excess
E[(Z - X)+]. What P(Z > z) and E[(Z - z)+] are for any z of the head follows by sums of non-negative
terms,

    P(Z > z_k) = P(Z > z_{k+1}) + p_{k+1}
    E[(Z - z_k)+] = E[(Z - z_{k+1})+] + (z_{k+1} - z_k) P(Z > z_k),

so that all of them rise with every probability, and keep their digits however small they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tailpath.graph import FloatArray

#: Costs of the head that are looked at together.
BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Totals:
    """A distribution: the head, and what is known beyond X, its last cost; 0 without a head.

    `open_mass` may arrive, and `dead_mass` never does. `missed` is the probability of never
    arriving; of what is open some may not, either.
    """

    costs: FloatArray  # (H,), rising
    masses: FloatArray  # (H,)
    last: float  # X
    open_mass: float
    dead_mass: float
    excess: float
    mean: float
    missed: float

    @property
    def tail_mass(self) -> float:
        """P(Z > X), with what never arrives."""
        return self.open_mass + self.dead_mass

    def _blocks(self) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """From the last costs of the head to the first: where a block begins, and P(Z > z) and
        E[(Z - z)+] for each of its costs. Long heads are not copied.
        """
        tail, excess, after = self.tail_mass, self.excess, self.last
        for end in range(len(self.costs), 0, -BLOCK):
            begin = max(end - BLOCK, 0)
            costs = self.costs[begin:end]
            tails = np.append(self.masses[begin + 1 : end], tail)[::-1]
            np.cumsum(tails, out=tails)
            excesses = np.append(costs[1:], after)[::-1]
            excesses -= costs[::-1]
            excesses *= tails
            excesses[0] += excess
            np.cumsum(excesses, out=excesses)
            yield begin, tails[::-1], excesses[::-1]
            tail, excess, after = tails[-1] + self.masses[begin], excesses[-1], costs[0]

    @property
    def tails(self) -> FloatArray:
        """P(Z > z) for every cost z of the head: (H,)."""
        tails = np.empty(len(self.costs))
        for begin, found, _ in self._blocks():
            tails[begin : begin + len(found)] = found
        return tails

    def at_quantile(self, alpha: float) -> tuple[int, float]:
        """The position in the head of the least cost z with P(Z > z) <= alpha, and E[(Z - z)+]; -1
        and the excess beyond X if z lies beyond the head.
        """
        position, beyond = -1, self.excess
        for begin, tails, excesses in self._blocks():
            inside = int(np.argmax(tails <= alpha))
            if tails[inside] > alpha:
                break
            position, beyond = begin + inside, float(excesses[inside])
            if inside > 0:
                break
        return position, beyond

    def least(self, price: float) -> float:
        """The least z + price E[(Z - z)+] over the costs z of the head; infinite without one."""
        least = np.inf
        for begin, _, excesses in self._blocks():
            costs = self.costs[begin : begin + len(excesses)]
            least = min(least, float(np.min(costs + excesses * price)))
        return least

    @property
    def sum_of_means(self) -> float:
        """E[Z] as a sum over the head and beyond it, where everything arrives."""
        tail, excess, first = self.tail_mass, self.excess, self.last
        for begin, tails, excesses in self._blocks():
            tail, excess = tails[0] + self.masses[begin], excesses[0]
            first = self.costs[begin]
        return float(first * tail + excess)

    def cut(self, last: float, side: int = 0) -> Totals:
        """The same with its head cut off beyond a cost. Where it ends before, some of what is open
        may arrive in between: it counts as lying behind, unless less is to be said (`side` -1).
        """
        kept = int(np.searchsorted(self.costs, last, side="right"))
        beyond, masses = self.costs[kept:], self.masses[kept:]
        open_mass, excess = self.open_mass, self.excess
        if self.last > last:
            excess += float(np.sum(masses * (beyond - last)))
            excess += (self.last - last) * self.tail_mass
            open_mass += float(np.sum(masses))
        elif self.last < last and side < 0:
            open_mass = excess = 0.0
        head = self.costs[:kept], self.masses[:kept]
        return Totals(*head, last, open_mass, self.dead_mass, excess, self.mean, self.missed)

    def onto(self, costs: FloatArray, last: float, side: int) -> Totals:
        """The same with a head of these costs up to X. What it has of others, which is close to 0,
        is left out (`side` -1) or moved to the next cost (+1).
        """
        if self.last == last and (self.costs is costs or np.array_equal(self.costs, costs)):
            return replace(self, costs=costs)
        own = self.cut(last, side)
        at = np.searchsorted(costs, own.costs)
        masses = own.masses if side > 0 else np.where(np.isin(own.costs, costs), own.masses, 0.0)
        moved = np.bincount(at, weights=masses, minlength=len(costs) + 1).astype(np.float64)
        # Behind the last of the costs, and not beyond X: it is counted as open.
        more = own.open_mass + float(moved[-1])
        rest = own.dead_mass, own.excess, own.mean, own.missed
        return Totals(costs, moved[:-1], last, more, *rest)


def mixed(weights: Sequence[float], parts: Sequence[Totals], last: float, side: int = 0) -> Totals:
    """The distribution of a mixture, by one coin at the start, up to a cost."""
    parts = [part.cut(last, side) for part in parts]
    costs, at = np.unique(np.concatenate([part.costs for part in parts]), return_inverse=True)
    masses = np.concatenate([weight * part.masses for weight, part in zip(weights, parts)])

    def mean_of(numbers: Iterable[float]) -> float:
        return float(np.dot(weights, list(numbers)))

    return Totals(
        costs,
        np.bincount(at.ravel(), weights=masses, minlength=len(costs)).astype(np.float64),
        last,
        mean_of(part.open_mass for part in parts),
        mean_of(part.dead_mass for part in parts),
        mean_of(part.excess for part in parts),
        mean_of(part.mean for part in parts),
        mean_of(part.missed for part in parts),
    )
