"""Value iteration in the order in which news travels: one strong component after the other, and
inside each from the end outwards.

Sweeps run over rows *without self-loops*: states stand in the order in which they are swept, the
end is left out, and the chance of staying is divided out of every row by the sum of its other
probabilities, never by 1 - p. A round chooses anew in every state and then follows the choices a
few times; each value takes the place of the last one at once (Gauss and Seidel). States near the
end settle first, and are left out until a last look at all.

Where a component mixes well but is seldom left, what is missing shrinks slowly and in one
direction: once two sweeps move values along the same direction, by a share q of each other, the
rest of that way, q / (1 - q) times the last move, is taken in one leap.

States as far from the end as each other stand in the order of their numbers, and the moves of a
leap are summed as integers: on several ranks, each with its own states, the same values result
(`distributed/sweeps.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.across import FULL, ONE_PROCESS, OneProcess
from tailpath.dp.backup import Decisions, best_row, row_value
from tailpath.graph import grouped, owners
from tailpath.kernels.forward import cheapest_way
from tailpath.kernels.graph import strong_components
from tailpath.kernels.jit import frozen, kernel
from tailpath.kernels.rounding import FLUTTER, LONGEST, NOTHING, STRICT

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
#: How often a round follows its choices, how often once it leaps, and the rounds before that.
FOLLOWED, FOLLOWED_SLOWLY = 4, 8
PLAIN = 16
#: Two moves have the same direction if the square of their cosine exceeds this.
ALIKE = 0.9
#: What a leap may take off a value, as a share of it, and how many times that it may add.
LEAST_LEFT, MOST_TIMES = 0.1, 1e6
#: Rounds that have to gain a digit, and the most of them.
PATIENCE, MOST_ROUNDS = 48, 400
#: Looks at all states before changes that come from rounding count as none.
LOOKS = 4
#: Changes below this that no longer shrink come from rounding: of long ways, or of leaps.
STALLED = 1e-12
#: What a component does after a round: it has settled, looks at all its states, or goes on.
DONE, LOOK, GO_ON = range(3)


class Pace(NamedTuple):
    """How a component settles: the change of the last round and of the last digit gained, rounds,
    and looks at all states."""

    previous: float = np.inf
    marked: float = np.inf
    rounds: int = 0
    looks: int = 0


@kernel
def without_self_loops(decisions: Decisions, order: Array, out: Decisions) -> tuple[int, int]:
    """Rows in the given order without self-loops; returns how many rows and outcomes are left.
    Rows that never leave their state are left out.
    """
    n = len(order)
    state_choices, choice_outcomes, target, probability, rate, _ = decisions
    out_choices, out_outcomes, out_target, out_probability, out_rate, _ = out
    number = np.empty(n + 1, dtype=np.int32)
    for position in range(n):
        number[order[position]] = position
    rows, outcomes = 0, 0
    out_choices[0] = out_outcomes[0] = 0
    for position in range(n):
        state = order[position]
        for row in range(state_choices[state], state_choices[state + 1]):
            first, last = np.uint64(choice_outcomes[row]), np.uint64(choice_outcomes[row + 1])
            leave = 0.0
            for outcome in range(first, last):
                if target[outcome] != state:
                    leave += probability[outcome]
            if leave == 0.0:
                continue
            for outcome in range(first, last):
                to = target[outcome]
                if to != state and to < n:
                    out_target[outcomes] = number[to]
                    out_probability[outcomes] = probability[outcome] / leave
                    outcomes += 1
            out_rate[rows] = rate[row] / leave
            rows += 1
            out_outcomes[rows] = outcomes
        out_choices[position + 1] = rows
    return rows, outcomes


@kernel
def choose_rows(
    loop_free: Decisions,
    first: int,
    last: int,
    tolerance: float,
    out_value: Array,
    out_chosen: Array,
) -> tuple[float, int]:
    """Give every state in a row its best choice and that choice's value; the largest relative
    change beyond the tolerance, and the first state that made one.
    """
    state_choices, choice_outcomes, target, probability, rate, _ = loop_free
    change = 0.0
    moved: Any = last
    for state in range(np.uint64(first), np.uint64(last)):
        best, row = best_row(
            state_choices, choice_outcomes, target, probability, rate, state, out_value
        )
        step = abs(best - out_value[state])
        out_value[state] = best
        if row >= 0:
            out_chosen[state] = row
        if step > tolerance * abs(best):
            moved = min(moved, np.int64(state))
            change = max(change, step / (abs(best) + NOTHING))
    return change, moved


@kernel
def follow_rows(
    loop_free: Decisions, first: int, last: int, chosen: Array, out_value: Array
) -> None:
    _, choice_outcomes, target, probability, rate, _ = loop_free
    for state in range(np.uint64(first), np.uint64(last)):
        row = np.uint64(chosen[state])
        out_value[state] = rate[row] + row_value(
            choice_outcomes, target, probability, row, 0, out_value
        )


@kernel
def largest_move(first: int, last: int, before: Array, old: Array, value: Array) -> float:
    """The largest of two moves of a state, from `before` to `old` and from there to `value`, as a
    share of its value."""
    most = 0.0
    for state in range(first, last):
        size = max(abs(value[state] - old[state]), abs(old[state] - before[state]))
        size /= abs(value[state]) + NOTHING
        if not size < np.inf:
            return np.inf
        most = max(most, size)
    return most


@kernel
def direction(
    first: int, last: int, before: Array, old: Array, value: Array, most: float, full: float
) -> tuple[int, int, int]:
    """The products of the first move with the second, with itself, and of the second with itself,
    summed over states: integers, in which the square of the largest move is `full`. So sums do not
    depend on the order of the states.
    """
    along: Any = 0
    once: Any = 0
    again: Any = 0
    for state in range(first, last):
        weight = 1.0 / ((abs(value[state]) + NOTHING) * most)
        move, then = (old[state] - before[state]) * weight, (value[state] - old[state]) * weight
        along += np.int64(np.rint(move * then * full))
        once += np.int64(np.rint(move * move * full))
        again += np.int64(np.rint(then * then * full))
    return along, once, again


@kernel
def leap_length(along: int, once: int, again: int) -> float:
    """How many times the second move is left, from the sums of `direction`; 0 if it has another
    direction than the first."""
    if not (0 < along < once and float(along) * along > ALIKE * float(once) * again):
        return 0.0
    return along / (once - along)


@kernel
def leap_limit(first: int, last: int, old: Array, value: Array, far: float) -> float:
    """No farther than so that a value changes its sign, or its size by much."""
    for state in range(first, last):
        move = value[state] - old[state]
        if move * value[state] < 0.0:
            far = min(far, LEAST_LEFT * abs(value[state] / move))
        elif move != 0.0:
            far = min(far, MOST_TIMES * abs(value[state] / move))
    return far


@kernel
def leap(first: int, last: int, old: Array, far: float, out_value: Array) -> None:
    for state in range(first, last):
        out_value[state] += far * (out_value[state] - old[state])


@kernel
def _leap(
    loop_free: Decisions,
    first: int,
    last: int,
    chosen: Array,
    before: Array,
    old: Array,
    out_value: Array,
) -> bool:
    """Follow the choices twice, and go on as far as the second time leads if it has the direction
    of the first; whether it has.
    """
    for state in range(first, last):
        before[state] = out_value[state]
    follow_rows(loop_free, first, last, chosen, out_value)
    for state in range(first, last):
        old[state] = out_value[state]
    follow_rows(loop_free, first, last, chosen, out_value)
    most = largest_move(first, last, before, old, out_value)
    if not 0.0 < most < np.inf:
        return False
    far = leap_length(*direction(first, last, before, old, out_value, most, FULL / (last - first)))
    if far == 0.0:
        return False
    leap(first, last, old, leap_limit(first, last, old, out_value, far), out_value)
    return True


@kernel
def after_round(
    change: float, settled: bool, everywhere: bool, most: int, pace: Pace
) -> tuple[int, Pace]:
    """What a component does after a round that changed values by no more than `change` or, if
    `settled`, none; `everywhere` if it looked at all states.

    Rounding can keep the last bits moving for ever: a component has also settled when changes are
    that small and no longer shrink. One that gains less than a digit in `PATIENCE` rounds is given
    up, with more than `most` rounds.
    """
    previous, marked, rounds, looks = pace
    rounds += 1
    if settled or (change <= FLUTTER and change >= previous):
        # The last bits may go round for ever; after some looks at all states what is left of them
        # is rounding.
        looks += 1
        return (
            DONE if everywhere else LOOK,
            Pace(np.inf if looks < LOOKS else 0.0, marked, rounds, looks),
        )
    if rounds % PATIENCE == 0:
        if not change < 0.1 * marked or rounds >= most:
            return DONE, Pace(change, marked, rounds if change < STALLED else most + 1, looks)
        marked = change
    return GO_ON, Pace(change, marked, rounds, looks)


@kernel
def settle(
    part_start: Array,
    loop_free: Decisions,
    tolerance: float,
    most: int,
    out_value: Array,
    out_chosen: Array,
    scratch: Array,
) -> int:
    """Value iteration until a round moves no value by more than `tolerance`, relatively; the most
    rounds of a component, `most` + 1 if one was given up.
    """
    worst = 0
    for part in range(len(part_start) - 1):
        first, last = part_start[part], part_start[part + 1]
        begin, pace = first, Pace(np.inf, np.inf, 0, 0)
        while True:
            change, moved = choose_rows(loop_free, begin, last, tolerance, out_value, out_chosen)
            if last - first == 1:
                break
            what, pace = after_round(change, moved == last, begin == first, most, pace)
            if what == DONE:
                break
            begin = first if what == LOOK else moved
            if what == LOOK:
                continue
            for _ in range(FOLLOWED if pace.rounds < PLAIN else FOLLOWED_SLOWLY):
                follow_rows(loop_free, begin, last, out_chosen, out_value)
            if pace.rounds >= PLAIN and _leap(
                loop_free, first, last, out_chosen, scratch[0], scratch[1], out_value
            ):
                begin, pace = first, Pace(np.inf, pace.marked, pace.rounds, pace.looks)
        worst = max(worst, pace.rounds)
    return worst


@kernel
def likeliest_order(
    row_start: Array, target: Array, probability: Array, work: Array, out_order: Array
) -> None:
    """Nodes of a chain from the end outwards, each after its most probable successor other than
    itself, but for one of every cycle of such successors; `work` (5, n + 2) comes with zeros.
    """
    n, one = len(out_order), np.uint64(1)
    likeliest, followers = work[0], work[1]
    position, placed = work[2], work[3]
    first = work[4]  # of those that follow a node, or the end
    for node in range(np.uint64(n)):
        most, to = 0.0, n
        for edge in range(np.uint64(row_start[node]), np.uint64(row_start[node + one])):
            if probability[edge] > most and target[edge] != node:
                most, to = probability[edge], target[edge]
        likeliest[node] = to
        first[np.uint64(to) + one] += 1
    for node in range(np.uint64(n) + one):
        first[node + one] += first[node]
        position[node] = first[node]
    for node in range(np.uint64(n)):
        followers[position[likeliest[node]]] = node
        position[likeliest[node]] += 1
    here: Any = np.uint64(n)
    done, size = np.uint64(0), np.uint64(0)
    root = np.uint64(0)
    while True:
        for i in range(np.uint64(first[here]), np.uint64(first[here + one])):
            if placed[followers[i]] == 0:
                out_order[size], placed[followers[i]] = followers[i], 1
                size += one
        while done == size and root < n:
            if placed[root] == 0:
                # The likeliest way from here ends in a cycle: it begins where the way meets itself.
                here = root
                while placed[here] == 0:
                    placed[here], here = 2, np.uint64(likeliest[here])
                meets, here = here, root
                while placed[here] == 2:
                    placed[here], here = 0, np.uint64(likeliest[here])
                out_order[size], placed[meets] = meets, 1
                size += one
            root += one
        if done == size:
            break
        here = np.uint64(out_order[done])
        done += one


def ways_back(decisions: Decisions, extra: float) -> tuple[Array, Array, Array]:
    """The states that lead to each state and to the end: where they begin, which they are, and how
    far away.

    An outcome is as long as its row's rate, plus `extra`, divided by its probability: about what it
    costs to wait for it.
    """
    outcome, into_start = grouped(decisions.target, len(decisions.state_choices))
    source = owners(decisions.choice_outcomes[decisions.state_choices], np.int32)
    rate = np.repeat(decisions.rate + extra, np.diff(decisions.choice_outcomes))
    with np.errstate(all="ignore"):  # a rare outcome of a dear row may be longer than any float
        length = np.fmin(rate / decisions.probability, LONGEST)
    return into_start, source[outcome], length[outcome]


def room_for(decisions: Decisions) -> Decisions:
    """Room for rows without self-loops. Indices have no sign: the compiler need not ask whether
    they count from the end.
    """
    rows, outcomes = len(decisions.rate), len(decisions.target)
    position = np.uint32 if outcomes < 2**32 else np.uint64
    return Decisions(
        np.empty(len(decisions.state_choices), position),
        np.empty(rows + 1, position),
        np.empty(outcomes, np.uint32),
        np.empty(outcomes),
        np.empty(rows),
    )


@dataclass(frozen=True, eq=False)
class Sweeps:
    """States in the order in which they are swept, and where each strong component begins in it."""

    order: NDArray[Any]
    part_start: NDArray[Any]

    @classmethod
    def by(cls, row_start: NDArray[Any], target: NDArray[Any], order: NDArray[Any]) -> Sweeps:
        """Components after those they lead to, and inside them in the order given."""
        component = np.empty(len(order), dtype=np.int32)
        count = strong_components(*frozen(row_start, target), component)
        ordered, part_start = grouped(component[order], count)
        return cls(order[ordered], part_start)

    @classmethod
    def of_chain(
        cls, row_start: NDArray[Any], target: NDArray[Any], probability: FloatArray
    ) -> Sweeps:
        """Inside components every node after its likeliest successor, so that one sweep carries a
        value all the way along the likeliest way; those near the end settle first.
        """
        n = len(row_start) - 1
        work, order = np.zeros((5, n + 2), dtype=np.uint32), np.empty(n, dtype=np.int64)
        likeliest_order(*frozen(row_start, target, probability), work, order)
        return cls.by(row_start, target, order)

    @classmethod
    def outwards(cls, decisions: Decisions) -> tuple[Sweeps, FloatArray]:
        """Inside components by the distance to the end; and these distances, which are fair first
        values.
        """
        n = len(decisions.state_choices) - 1
        least, rate = np.full(n + 1, np.inf), np.abs(decisions.rate)
        # A little more per step makes the order strict where steps are free.
        start, source, length = ways_back(
            decisions._replace(rate=next(frozen(rate))), STRICT * rate.max(initial=0.0)
        )
        cheapest_way(start, source, length, n, least)
        order = np.argsort(least[:-1], kind="stable")
        return cls.by(
            decisions.choice_outcomes[decisions.state_choices], decisions.target, order
        ), least[:-1]

    @property
    def n(self) -> int:
        """How many states there are, those of other ranks included."""
        return len(self.order)

    @property
    def across(self) -> OneProcess:
        return ONE_PROCESS

    def run(
        self, decisions: Decisions, first: FloatArray, tolerance: float
    ) -> tuple[FloatArray, int]:
        """Value iteration from `first`: values by state, and the most rounds of a component; beyond
        `MOST_ROUNDS` it was given up.
        """
        order, part_start = frozen(self.order, self.part_start)
        loop_free = room_for(decisions)
        without_self_loops(decisions, order, loop_free)
        settled, value = first[order], np.empty_like(first)
        chosen, scratch = np.zeros_like(loop_free.state_choices), np.empty((2, len(order)))
        rounds = settle(part_start, loop_free, tolerance, MOST_ROUNDS, settled, chosen, scratch)
        value[order] = settled
        return value, int(rounds)
