"""Value iteration in the order in which values propagate: one strong component after the other, and
inside each from the end outwards.

Sweeps run over rows *without self-loops*: states stand in the order in which they are swept, the
end is left out, and the chance of staying is divided out of every row by the sum of its other
probabilities, never by 1 - p. A round chooses anew in every state and then evaluates the choices a
few times (modified policy iteration); each value takes the place of the last one at once (Gauss and
Seidel). States near the end settle first, and are left out until a last check of all. Where that is
slow, values are extrapolated (`extrapolation.py`).

States as far from the end as each other stand in the order of their numbers: on several ranks, each
with its own states, the same values result (`distributed/expected.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.across import FULL, ONE_PROCESS, OneProcess
from tailpath.dp.backup import Decisions, best_row, row_value
from tailpath.dp.extrapolation import (
    extrapolate,
    extrapolation_length,
    extrapolation_limit,
    largest_move,
    move_products,
)
from tailpath.dp.sweep_order import incoming_edges, likeliest_order
from tailpath.graph import grouped
from tailpath.kernels.graph import strong_components
from tailpath.kernels.jit import frozen, kernel
from tailpath.kernels.rounding import FLUTTER, NOTHING, STRICT
from tailpath.kernels.shortest_paths import dijkstra

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
#: How often a round evaluates its choices, how often once it extrapolates, and the rounds before
#: that.
EVALUATIONS, SLOW_EVALUATIONS = 4, 8
PLAIN_ROUNDS = 16
#: Rounds that have to gain a digit, and the most of them.
PATIENCE, MOST_ROUNDS = 48, 400
#: Checks of all states before changes that come from rounding count as none.
CHECKS = 4
#: Changes below this that no longer shrink come from rounding: of long ways, or of
#: extrapolation.
STALLED = 1e-12
#: What a component does after a round: it has settled or was given up, checks all
#: its states, or goes on.
DONE, CHECK, GO_ON = range(3)


class Convergence(NamedTuple):
    """How a component settles: the change of the last round and at the last digit gained, rounds,
    and checks of all states."""

    previous: float = np.inf
    milestone: float = np.inf
    rounds: int = 0
    checks: int = 0


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
def evaluate_rows(
    loop_free: Decisions, first: int, last: int, chosen: Array, out_value: Array
) -> None:
    _, choice_outcomes, target, probability, rate, _ = loop_free
    for state in range(np.uint64(first), np.uint64(last)):
        row = np.uint64(chosen[state])
        out_value[state] = rate[row] + row_value(
            choice_outcomes, target, probability, row, 0, out_value
        )


@kernel
def _extrapolate(
    loop_free: Decisions,
    first: int,
    last: int,
    chosen: Array,
    before: Array,
    old: Array,
    out_value: Array,
) -> bool:
    """Evaluate the choices twice, and go on as far as the second move leads if it has the direction
    of the first; whether it has.
    """
    for state in range(first, last):
        before[state] = out_value[state]
    evaluate_rows(loop_free, first, last, chosen, out_value)
    for state in range(first, last):
        old[state] = out_value[state]
    evaluate_rows(loop_free, first, last, chosen, out_value)
    most = largest_move(first, last, before, old, out_value)
    if not 0.0 < most < np.inf:
        return False
    length = extrapolation_length(
        *move_products(first, last, before, old, out_value, most, FULL / (last - first))
    )
    if length == 0.0:
        return False
    length = extrapolation_limit(first, last, old, out_value, length)
    extrapolate(first, last, old, length, out_value)
    return True


@kernel
def after_round(
    change: float, settled: bool, everywhere: bool, most: int, convergence: Convergence
) -> tuple[int, Convergence]:
    """What a component does after a round that changed values by no more than `change` or, if
    `settled`, none; `everywhere` if it checked all states.

    Rounding can keep the last bits moving for ever: a component has also settled when changes are
    that small and no longer shrink. One that gains less than a digit in `PATIENCE` rounds is given
    up, with more than `most` rounds.
    """
    previous, milestone, rounds, checks = convergence
    rounds += 1
    if settled or (change <= FLUTTER and change >= previous):
        # The last bits may go round for ever; after some checks of all states what is left of them
        # is rounding.
        checks += 1
        return (
            DONE if everywhere else CHECK,
            Convergence(np.inf if checks < CHECKS else 0.0, milestone, rounds, checks),
        )
    if rounds % PATIENCE == 0:
        if not change < 0.1 * milestone or rounds >= most:
            rounds = rounds if change < STALLED else most + 1
            return DONE, Convergence(change, milestone, rounds, checks)
        milestone = change
    return GO_ON, Convergence(change, milestone, rounds, checks)


@kernel
def settle(
    component_start: Array,
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
    for component in range(len(component_start) - 1):
        first, last = component_start[component], component_start[component + 1]
        begin, convergence = first, Convergence(np.inf, np.inf, 0, 0)
        while True:
            change, moved = choose_rows(loop_free, begin, last, tolerance, out_value, out_chosen)
            if last - first == 1:
                break
            action, convergence = after_round(
                change, moved == last, begin == first, most, convergence
            )
            if action == DONE:
                break
            begin = first if action == CHECK else moved
            if action == CHECK:
                continue
            for _ in range(EVALUATIONS if convergence.rounds < PLAIN_ROUNDS else SLOW_EVALUATIONS):
                evaluate_rows(loop_free, begin, last, out_chosen, out_value)
            if convergence.rounds >= PLAIN_ROUNDS and _extrapolate(
                loop_free, first, last, out_chosen, scratch[0], scratch[1], out_value
            ):
                begin = first
                convergence = Convergence(
                    np.inf, convergence.milestone, convergence.rounds, convergence.checks
                )
        worst = max(worst, convergence.rounds)
    return worst


def empty_decisions(decisions: Decisions) -> Decisions:
    """Arrays for rows without self-loops. Indices have no sign: the compiler need not ask whether
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
    component_start: NDArray[Any]

    @classmethod
    def by(cls, row_start: NDArray[Any], target: NDArray[Any], order: NDArray[Any]) -> Sweeps:
        """Components after those they lead to, and inside them in the order given."""
        component = np.empty(len(order), dtype=np.int32)
        count = strong_components(*frozen(row_start, target), component)
        ordered, component_start = grouped(component[order], count)
        return cls(order[ordered], component_start)

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
        start, source, length = incoming_edges(
            decisions._replace(rate=next(frozen(rate))), STRICT * rate.max(initial=0.0)
        )
        dijkstra(start, source, length, n, least)
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
        order, component_start = frozen(self.order, self.component_start)
        loop_free = empty_decisions(decisions)
        without_self_loops(decisions, order, loop_free)
        settled, value = first[order], np.empty_like(first)
        chosen, scratch = np.zeros_like(loop_free.state_choices), np.empty((2, len(order)))
        rounds = settle(
            component_start, loop_free, tolerance, MOST_ROUNDS, settled, chosen, scratch
        )
        value[order] = settled
        return value, int(rounds)
