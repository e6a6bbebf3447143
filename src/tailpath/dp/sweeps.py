"""Value iteration in the order in which values propagate: one strong component after the other, and
inside each from the end outwards.

Sweeps run over rows *without self-loops*: states stand in the order in which they are swept, the
end is left out, and the chance of staying is divided out of every row by the sum of its other
probabilities, never by 1 - p. A round chooses anew in every state and then evaluates the choices a
few times (modified policy iteration); each value takes the place of the last one at once (Gauss and
Seidel). States near the end settle first, and are left out until a last check of all.

Where a component mixes well but is seldom left, what is missing shrinks slowly and in one
direction: once two sweeps move values along the same direction, by a share q of each other, the
remainder, q / (1 - q) times the last move, is taken at once (Aitken).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import Rows, best_row, row_value
from tailpath.graph import FloatArray, Transitions, grouped
from tailpath.kernels.jit import Array, frozen, kernel
from tailpath.kernels.rounding import LONGEST, NONZERO, ROUNDING_NOISE, SETTLED, STRICT
from tailpath.kernels.shortest_paths import dijkstra

#: How often a round evaluates its choices, how often once it leaps, and the rounds before that.
EVALUATIONS, SLOW_EVALUATIONS = 4, 8
PLAIN_ROUNDS = 16
#: Rounds that have to gain a digit, and the most of them.
PATIENCE, MAX_ROUNDS = 48, 400
#: Checks of all states before changes that come from rounding count as none.
CHECKS = 4
#: Changes below this that no longer shrink come from rounding: of long ways, or of leaps.
STALLED = 1e-12
#: Two moves have the same direction if the square of their cosine exceeds this.
SAME_DIRECTION = 0.9
#: By how much a leap may make a value fall, and rise, at most: as a share of it.
MAX_FALL, MAX_RISE = 0.1, 1e6


@kernel
def without_self_loops(rows: Rows, order: Array, out: Rows) -> None:
    """Rows in the given order without self-loops. Those that never leave their state go."""
    n, one = np.uint64(len(order)), np.uint64(1)
    first_row, row_start, target, probability, rate = rows
    out_first, out_start, out_target, out_probability, out_rate = out
    number = np.empty(len(order) + 1, dtype=np.uint32)
    for position in range(n):
        number[np.uint64(order[position])] = position
    kept, outcomes = np.uint64(0), np.uint64(0)
    out_first[0] = out_start[0] = 0
    for position in range(n):
        state = np.uint64(order[position])
        for row in range(np.uint64(first_row[state]), np.uint64(first_row[state + one])):
            first, last = np.uint64(row_start[row]), np.uint64(row_start[row + one])
            leave = 0.0
            for outcome in range(first, last):
                if np.uint64(target[outcome]) != state:
                    leave += probability[outcome]
            if leave == 0.0:
                continue
            for outcome in range(first, last):
                to = np.uint64(target[outcome])
                if to != state and to < n:
                    out_target[outcomes] = number[to]
                    out_probability[outcomes] = probability[outcome] / leave
                    outcomes += one
            out_rate[kept] = rate[row] / leave
            kept += one
            out_start[kept] = outcomes
        out_first[position + one] = kept


@kernel
def choose_rows(
    loop_free: Rows,
    first: int,
    last: int,
    tolerance: float,
    out_value: Array,
    out_chosen: Array,
) -> tuple[float, int]:
    """Give every state in a row its best choice and that choice's value; the largest relative
    change beyond the tolerance, and the first state that made one.
    """
    first_row, row_start, target, probability, rate = loop_free
    change = 0.0
    moved: Any = last
    for state in range(np.uint64(first), np.uint64(last)):
        best, row = best_row(first_row, row_start, target, probability, rate, state, out_value)
        step = abs(best - out_value[state])
        out_value[state] = best
        if row >= 0:
            out_chosen[state] = row
        if step > tolerance * abs(best):
            moved = min(moved, np.int64(state))
            change = max(change, step / (abs(best) + NONZERO))
    return change, moved


@kernel
def evaluate_rows(loop_free: Rows, first: int, last: int, chosen: Array, out_value: Array) -> None:
    _, row_start, target, probability, rate = loop_free
    for state in range(np.uint64(first), np.uint64(last)):
        row = np.uint64(chosen[state])
        out_value[state] = rate[row] + row_value(row_start, target, probability, row, 0, out_value)


@kernel
def leap_length(cross: float, first_square: float, second_square: float, most: float) -> float:
    """q / (1 - q) from what `moves` has found, or `most` if that is less; 0 if the moves differ in
    direction.
    """
    if 0.0 < cross < first_square and cross**2 > SAME_DIRECTION * first_square * second_square:
        return min(cross / (first_square - cross), most)
    return 0.0


@kernel
def moves(
    first: int, last: int, before: Array, old: Array, value: Array
) -> tuple[float, float, float, float]:
    """Two moves of values, from `before` to `old` and from there to `value`, as shares of these:
    the sums of their products and of the squares of each, and how far a leap may go.
    """
    cross, first_square = 0.0, 0.0
    second_square, most = 0.0, np.inf
    for state in range(first, last):
        size = abs(value[state]) + NONZERO
        one, two = (old[state] - before[state]) / size, (value[state] - old[state]) / size
        cross += one * two
        first_square += one * one
        second_square += two * two
        if two != 0.0:
            most = min(most, (MAX_FALL if two * value[state] < 0.0 else MAX_RISE) / abs(two))
    return cross, first_square, second_square, most


@kernel
def _leap(
    loop_free: Rows,
    first: int,
    last: int,
    chosen: Array,
    scratch: Array,
    out_value: Array,
) -> bool:
    """Evaluate the choices twice, and go on as far as the second move leads if it has the direction
    of the first; whether it has.
    """
    before, old = scratch[0], scratch[1]
    before[first:last] = out_value[first:last]
    evaluate_rows(loop_free, first, last, chosen, out_value)
    old[first:last] = out_value[first:last]
    evaluate_rows(loop_free, first, last, chosen, out_value)
    length = leap_length(*moves(first, last, before, old, out_value))
    for state in range(first, last if length > 0.0 else first):
        out_value[state] += length * (out_value[state] - old[state])
    return bool(length > 0.0)


@kernel(small=500)  # rounds are many
def settle(
    component_start: Array,
    loop_free: Rows,
    tolerance: float,
    most: int,
    out_value: Array,
    out_chosen: Array,
    scratch: Array,
) -> int:
    """Value iteration until a round moves no value by more than `tolerance`, relatively; the most
    rounds of a component, `most` + 1 if one was given up.

    Rounding can keep the last bits moving for ever: a component has also settled when changes are
    that small and no longer shrink, and after some checks of all states what is left of them is
    rounding. One that gains less than a digit in `PATIENCE` rounds is given up.
    """
    worst = 0
    for component in range(len(component_start) - 1):
        first, last = component_start[component], component_start[component + 1]
        begin, previous, milestone = first, np.inf, np.inf
        rounds, checks = 0, 0
        while True:
            change, moved = choose_rows(loop_free, begin, last, tolerance, out_value, out_chosen)
            if last - first == 1:
                break
            rounds += 1
            if moved == last or (change <= ROUNDING_NOISE and change >= previous):
                if begin == first:
                    break
                checks += 1
                begin, previous = first, np.inf if checks < CHECKS else 0.0
                continue
            if rounds % PATIENCE == 0:
                if not change < 0.1 * milestone or rounds >= most:
                    rounds = rounds if change < STALLED else most + 1
                    break
                milestone = change
            begin, previous = moved, change
            for _ in range(EVALUATIONS if rounds < PLAIN_ROUNDS else SLOW_EVALUATIONS):
                evaluate_rows(loop_free, begin, last, out_chosen, out_value)
            if rounds >= PLAIN_ROUNDS and _leap(
                loop_free, first, last, out_chosen, scratch, out_value
            ):
                begin, previous = first, np.inf
        worst = max(worst, rounds)
    return worst


def loop_free_rows(rows: Rows, order: Array) -> Rows:
    """The rows that are swept. Their indices have no sign: the compiler need not ask whether they
    count from the end.
    """
    edges, count = len(rows.target), len(rows.rate)
    index = np.uint32 if edges < 2**32 else np.uint64
    kept = np.empty(len(rows.first_row), index), np.empty(count + 1, index)
    found = Rows(*kept, np.empty(edges, np.uint32), np.empty(edges), np.empty(count))
    without_self_loops(rows, *frozen(order), found)
    return found


def incoming_edges(rows: Transitions, rate: FloatArray, extra: float) -> tuple[Array, Array, Array]:
    """The states that lead to each state and to the end: where they begin, which they are, and how
    far away.

    An outcome is as long as its row's rate, in size, plus `extra`, divided by its probability:
    about what it costs to wait for it.
    """
    first_row, target = rows.state_rows, rows.target
    # Beyond the end where others have states, too.
    end = max(len(first_row) - 1, int(target.max(initial=0)))
    order, start = grouped(target, end + 1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        length = np.repeat(np.abs(rate) + extra, np.diff(rows.row_start)) / rows.probability
    # A rare outcome of a dear row may be longer than any float.
    return start, rows.joined().source[order], np.fmin(length, LONGEST)[order]


@dataclass(frozen=True, eq=False)
class Sweeps:
    """States in the order in which they are swept, and where each strong component begins in it."""

    order: NDArray[Any]
    component_start: NDArray[Any]

    @classmethod
    def of_chain(cls, rows: Transitions, outwards: Array | None = None) -> Sweeps:
        """Inside components in the order `outwards`, from the end. By default that is from the last
        node to the first, since chains are numbered as they are found from the start.
        """
        order = np.arange(rows.n)[::-1] if outwards is None else outwards
        return cls._by_component(rows, order)

    @classmethod
    def outwards(cls, rows: Transitions, rate: FloatArray) -> tuple[Sweeps, FloatArray]:
        """Inside components by the distance to the end; and these distances, which are fair first
        values.
        """
        n = len(rows.state_rows) - 1
        least, dearest = np.full(n + 1, np.inf), float(np.abs(rate).max(initial=0.0))
        # A little more per step makes the order strict where steps are free.
        dijkstra(*incoming_edges(rows, rate, STRICT * dearest), n, least)
        order = np.argsort(least[:-1], kind="stable")
        return cls._by_component(rows.joined(), order), least[:-1]

    @classmethod
    def _by_component(cls, rows: Transitions, order: Array) -> Sweeps:
        """Components after those they lead to, and inside each states in the order given."""
        component, count = rows.components()
        ordered, component_start = grouped(component[order], count)
        return cls(order[ordered], component_start)

    def run(
        self, rows: Transitions, rate: FloatArray, first: FloatArray, tolerance: float = SETTLED
    ) -> tuple[FloatArray, int]:
        """Value iteration from `first`: values by state, and the most rounds of a component; beyond
        `MAX_ROUNDS` it was given up.
        """
        order, component_start = frozen(self.order, self.component_start)
        loop_free = loop_free_rows(rows.columns(rate), order)
        settled, value = first[order], np.empty_like(first)
        chosen, scratch = np.zeros_like(loop_free.first_row), np.empty((2, len(order)))
        rounds = settle(component_start, loop_free, tolerance, MAX_ROUNDS, settled, chosen, scratch)
        value[order] = settled
        return value, int(rounds)
