"""The distribution of a total cost Z, as far as it is known: the *head*, every cost up to a last
one X, and three numbers of the rest, its mass P(Z > X), what of it may still arrive, and its excess
E[(Z - X)+]. What P(Z > z) and E[(Z - z)+] are for any z of the head follows by sums of non-negative
terms,

    P(Z > z_k) = P(Z > z_{k+1}) + p_{k+1}
    E[(Z - z_k)+] = E[(Z - z_{k+1})+] + (z_{k+1} - z_k) P(Z > z_k),

so that all of them rise with every probability, and keep their digits however small they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tailpath.graph import FloatArray


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

    @property
    def tails(self) -> FloatArray:
        """P(Z > z) for every cost z of the head: (H,)."""
        if self.costs.size == 0:
            return np.empty(0)
        after = np.append(self.masses[1:], self.tail_mass)
        return np.cumsum(after[::-1], out=after[::-1])[::-1]

    @property
    def excesses(self) -> FloatArray:
        """E[(Z - z)+] for every cost z of the head: (H,)."""
        if self.costs.size == 0:
            return np.empty(0)
        steps = np.append(self.costs[1:], self.last)
        steps -= self.costs
        steps *= self.tails
        steps[-1] += self.excess
        return np.cumsum(steps[::-1], out=steps[::-1])[::-1]

    @property
    def sum_of_means(self) -> float:
        """E[Z] as a sum over the head and beyond it, where everything arrives."""
        if self.costs.size == 0:
            return self.last * self.tail_mass + self.excess
        everything = self.tails[0] + self.masses[0]
        return float(self.costs[0] * everything + self.excesses[0])

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
        if self.last == last and np.array_equal(self.costs, costs):
            return self
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
