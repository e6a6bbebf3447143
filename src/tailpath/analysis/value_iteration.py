"""Value iteration, in the order in which news travels: over the decisions of a core, or over a chain, where there is nothing to decide.

*First values* are distances to the goal where an outcome is as long as its choice's cost divided by its probability: about what it costs to
wait for it. Sorted by strong component, then by district and distance (`kernels/order`), states are renumbered (`kernels/bellman.fold`), so that a
sweep reads memory from one end to the other and finds the successors that matter already done. A component is swept until only its last bits
move; blocks that read nothing new are left out. The few components that are slow to settle continue with leaps along the direction of their slow
error.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import Core
from tailpath.analysis.equations import approached
from tailpath.analysis.reachability import is_one_component, strong_components, surely_free_states
from tailpath.kernels.bellman import BLOCK, FOLLOWED, Decisions, divide, fold, least_values, linked_blocks, play_round
from tailpath.kernels.jit import cores, frozen
from tailpath.kernels.order import outward_order
from tailpath.kernels.rounding import UNIT
from tailpath.model.ragged import grouped, members_of
from tailpath.model.ssp import FloatArray

#: Rounds (each chooses once and follows eight times) before a component counts as slow, and before it is given up.
PLAIN_ROUNDS, MOST_ROUNDS = 24, 400
#: No outcome counts as longer than this.
LONGEST = 1e300
#: Cores beyond this many nodes are worth a second thread, and components beyond this many may be dense.
LARGE, MIXING = 100_000, 10_000
#: How many nodes a district has room for.
DISTRICT = 2_048
#: Rounds before the policy of a dense component is evaluated by products, how exactly, and the most pairs of products.
FEW_ROUNDS, ROUGHLY, MOST_PRODUCTS = 2, 1e-2, 60
#: How many of the last rounds a leap combines.
REMEMBERED = 4


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Nodes in the order in which they are swept, and where each strong component begins in it."""

    order: NDArray[Any]
    part_start: NDArray[Any]

    @classmethod
    def by(cls, row_start: NDArray[Any], target: NDArray[Any], order: NDArray[Any]) -> Sweeps:
        """Components after those they lead to, and inside them in the order given."""
        return cls.among(_components(row_start, target), order)

    @classmethod
    def among(cls, components: tuple[NDArray[Any], int] | None, order: NDArray[Any]) -> Sweeps:
        """As `by`, for components that are known; None where there is only one."""
        if components is None:
            return cls(order, np.array([0, len(order)]))
        place, part_start = grouped(components[0][order], components[1])
        return cls(order[place], part_start)

    def folded(self, given: Decisions, leak: FloatArray | None = None) -> Decisions:
        """Decisions as value iteration takes them: in the order of the sweeps, with the chance to stay divided out."""
        n_choices, n_outcomes = len(given.rate), len(given.target)
        small = np.int32 if n_outcomes < 2**31 else np.int64
        out = Decisions(
            np.empty(len(given.state_choices), dtype=small),
            np.empty(n_choices + 1, dtype=small),
            np.empty(n_outcomes, dtype=np.int32),
            np.empty(n_outcomes),
            np.empty(n_choices),
        )
        choices, outcomes = fold(given, *frozen(np.zeros(n_choices) if leak is None else leak), self.order, out)
        return Decisions(
            out.state_choices, out.choice_outcomes[: choices + 1], out.target[:outcomes], out.probability[:outcomes], out.rate[:choices]
        )

    def run(self, folded: Decisions, first: FloatArray, tolerance: float) -> tuple[FloatArray, int]:
        """Value iteration from `first`; node values in and out, and the most rounds of a component; beyond `MOST_ROUNDS` it was given up.

        The folded decisions serve once: those of components that are played in halves are changed.
        """
        n = len(first)
        value, chosen = np.tile(first[self.order], 2), np.zeros(n, dtype=np.int32)
        part, rounds = least_values(self.part_start, 0, folded, tolerance, PLAIN_ROUNDS, value, chosen)
        while part < len(self.part_start) - 1:
            slow = _Slow(folded, int(self.part_start[part]), int(self.part_start[part + 1]), value, chosen)
            rounds = max(rounds, slow.settle(tolerance))
            if rounds > MOST_ROUNDS:
                break
            part, more = least_values(self.part_start, part + 1, folded, tolerance, PLAIN_ROUNDS, value, chosen)
            rounds = max(rounds, more)
        result = np.empty(n)
        result[self.order] = value[:n]
        return result, rounds


def _components(row_start: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[Any], int] | None:
    """The strong component of every node and their count; None where there is only one."""
    return None if is_one_component(row_start, target) else strong_components(row_start, target)


def first_sweeps(core: Core) -> tuple[Sweeps, FloatArray]:
    """The sweeps over a core, and first values by node: distances to the goals."""
    least, order = np.full(core.n + 1, np.inf), np.empty(core.n, dtype=np.int64)
    rows = core.choice_outcomes[core.state_choices], core.target
    with ThreadPoolExecutor(1) as pool:
        # Components and order do not need each other; where it is worth a thread, one finds them while the other is found.
        components = pool.submit(_components, *rows) if core.n > LARGE and cores() > 1 else None
        # A little more per step makes the order strict where steps are free.
        outward_order(core.decisions(), 1e-9 * core.rate.max(initial=0.0), LONGEST, DISTRICT, least, order)
    first = least[:-1]
    sweeps = Sweeps.among(components.result() if components else _components(*rows), order)
    if not core.rate.all():
        # Elsewhere values are positive; these are exactly 0, and a sweep that starts from 0 keeps them so.
        first[core.gather(surely_free_states(core.ssp))] = 0.0
    return sweeps, first


class _Slow:
    """A component that is played round by round: because it has several blocks, or because it is slow to settle.

    Where it is not small and its blocks read nearly all others, it is *dense*: no order is better than another. Two threads play a half each, which
    sees the other as it was before the round, so that threads change nothing, and after `FEW_ROUNDS` the equations of the policy are solved, roughly,
    after every round: where everything mixes that takes few products. Elsewhere, after `PLAIN_ROUNDS`, every round is followed by a leap
    (Anderson): if f is what a round changes and g its result, the combination of the last rounds with the least f is where they are all
    heading. On models whose slow error is of a few kinds only (a rare exit, say) the leaps replace thousands of rounds.
    """

    def __init__(self, folded: Decisions, first: int, last: int, value: FloatArray, chosen: NDArray[Any]) -> None:
        self.folded, self.first, self.last, self.value, self.chosen = folded, first, last, value, chosen
        blocks = -(-(last - first) // BLOCK)
        self.links = linked_blocks(folded, first, last)
        self.parts = [(0, blocks)]
        self.dense = last - first > MIXING and bool(self.links[0][-1] < 0)
        if self.dense:
            self.parts = [(0, blocks // 2), (blocks // 2, blocks)]
            divide(folded, first, first + blocks // 2 * BLOCK, last)
        self.moved = np.full((2, blocks), np.inf)
        self.results: list[FloatArray] = []
        self.changes: list[FloatArray] = []

    def settle(self, tolerance: float) -> int:
        """Rounds until the component has settled; returns how many, or `MOST_ROUNDS` + 1."""
        previous, reached = np.inf, {}
        # Where blocks read few others, as on a long walk, there are better ways.
        patience = 60 if self.links[0][-1] < 0 else 16
        with ThreadPoolExecutor(1) as pool:
            for rounds in range(1 if self.last - self.first > BLOCK else PLAIN_ROUNDS, MOST_ROUNDS + 1):
                before = self.value[self.first : self.last].copy()
                change = self._round(tolerance, 1 if self.dense and rounds > FEW_ROUNDS else FOLLOWED, pool)
                if change <= tolerance or (change <= 64 * UNIT and change >= previous):
                    return rounds
                previous = change
                if rounds >= PLAIN_ROUNDS:
                    reached[rounds] = change
                # What gains less than a digit in so many rounds will not end in time.
                if change > 0.1 * reached.get(rounds - patience, np.inf):
                    break
                if not (self.dense and rounds >= FEW_ROUNDS and change > 64 * UNIT and self._evaluate(pool)) and rounds in reached:
                    self._leap(before)
        return MOST_ROUNDS + 1

    def _round(self, quiet: float, followed: int, pool: ThreadPoolExecutor) -> float:
        self.moved[0] = self.moved[1]
        if len(self.parts) > 1:
            n = len(self.chosen)
            self.value[n + self.first : n + self.last] = self.value[self.first : self.last]

        def play(part: tuple[int, int]) -> float:
            return play_round(self.folded, self.first, self.last, *part, *self.links, quiet, followed, self.moved, self.value, self.chosen)  # type: ignore[no-any-return]

        others = [pool.submit(play, part) for part in self.parts[1:] if cores() > 1]
        changes = [play(part) for part in (self.parts[:1] if others else self.parts)]
        return max(changes + [other.result() for other in others])

    def _evaluate(self, pool: ThreadPoolExecutor) -> bool:
        """Put the values of the policy in place of the present ones, as far as a few products tell; whether that worked."""
        from scipy.sparse import csr_array

        first, last, n = self.first, self.last, len(self.chosen)
        outcome, row_start = members_of(self.folded.choice_outcomes, self.chosen[first:last])
        target, probability = self.folded.target[outcome], self.folded.probability[outcome]
        target -= np.where(target < n, 0, n).astype(target.dtype)
        outside = np.flatnonzero((target < first) | (target >= last))
        rate = self.folded.rate[self.chosen[first:last]]
        np.add.at(rate, np.searchsorted(row_start, outside, side="right") - 1, probability[outside] * self.value[target[outside]])
        probability[outside], target[outside] = 0.0, first
        middle, end = (last - first) // 2, last - first
        half = row_start[middle]
        lower = csr_array((probability[:half], target[:half] - first, row_start[: middle + 1]), shape=(middle, end))
        upper = csr_array((probability[half:], target[half:] - first, row_start[middle:] - half), shape=(end - middle, end))

        def product(x: FloatArray) -> FloatArray:
            other = pool.submit(lambda: lower @ x) if cores() > 1 else None
            above = upper @ x
            return np.concatenate([other.result() if other else lower @ x, above])

        found = approached(product, rate, self.value[first:last], ROUGHLY, MOST_PRODUCTS)
        if found is None or not np.isfinite(found).all() or found.min() < 0.0:
            return False
        self.value[first:last] = found
        self.moved[1] = np.inf
        return True

    def _leap(self, before: FloatArray) -> None:
        here = self.value[self.first : self.last]
        self.results.append(here.copy())
        self.changes.append(here - before)
        if len(self.changes) > 1:
            weight = 1.0 / (np.abs(here) + 1e-9 * np.abs(here).max())
            turn = np.diff(np.array(self.changes), axis=0) * weight
            products = turn @ turn.T
            if np.isfinite(products).all():
                share = np.linalg.lstsq(products, turn @ (self.changes[-1] * weight), rcond=1e-14)[0]
                here -= share @ np.diff(np.array(self.results), axis=0)
                self.moved[1] = np.inf
        del self.results[:-REMEMBERED], self.changes[:-REMEMBERED]
