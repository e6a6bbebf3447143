"""Value iteration, in the order in which news travels: over the decisions of a core, or over a chain, where there is nothing to decide.

*First values* are distances to the goal where an outcome is as long as its choice's cost divided by its probability: about what it costs to
wait for it. Sorted by strong component and then by distance, states are renumbered (`kernels/bellman.fold`), so that a sweep reads memory from one
end to the other and finds the successors that matter already done. A component is swept until only its last bits move. The few that are slow
to settle continue with leaps along the direction of their slow error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import Core
from tailpath.analysis.reachability import strong_components, surely_free_states
from tailpath.kernels.bellman import Decisions, fold, least_values, play_round
from tailpath.kernels.forward import cheapest_way
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import UNIT
from tailpath.model.ragged import grouped, offsets_of
from tailpath.model.ssp import FloatArray

#: Rounds (each chooses once and follows eight times) before a component counts as slow, and before it is given up.
PLAIN_ROUNDS, MOST_ROUNDS = 24, 400
#: No outcome counts as longer than this.
LONGEST = 1e300
#: How many of the last rounds a leap combines.
REMEMBERED = 4


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Nodes in the order in which they are swept, and where each strong component begins in it."""

    order: NDArray[Any]
    part_start: NDArray[Any]

    @classmethod
    def by(cls, row_start: NDArray[Any], target: NDArray[Any], distance: NDArray[Any] | None) -> Sweeps:
        """Components after those they lead to, and inside them by any number that tends to fall towards the exit."""
        component, count = strong_components(row_start, target)
        if count == 1 and distance is not None:
            order = np.argsort(distance, kind="stable")
        else:
            order = np.lexsort((distance, component)) if distance is not None else np.argsort(component, kind="stable")
        return cls(order, offsets_of(component, count))

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
        """Value iteration from `first`; node values in and out, and the most rounds of a component; beyond `MOST_ROUNDS` it was given up."""
        value, chosen = first[self.order], np.zeros(len(first), dtype=np.int32)
        part, rounds = least_values(self.part_start, 0, folded, tolerance, PLAIN_ROUNDS, value, chosen)
        while part < len(self.part_start) - 1:
            within = int(self.part_start[part]), int(self.part_start[part + 1])
            rounds = max(rounds, _settle_slowly(folded, *within, tolerance, value, chosen))
            if rounds > MOST_ROUNDS:
                break
            part, more = least_values(self.part_start, part + 1, folded, tolerance, PLAIN_ROUNDS, value, chosen)
            rounds = max(rounds, more)
        result = np.empty_like(value)
        result[self.order] = value
        return result, rounds


def first_sweeps(core: Core) -> tuple[Sweeps, FloatArray]:
    """The sweeps over a core, and first values by node."""
    first = _distances(core)
    sweeps = Sweeps.by(core.choice_outcomes[core.state_choices], core.target, first)
    if not core.rate.all():
        # Elsewhere values are positive; these are exactly 0, and a sweep that starts from 0 keeps them so.
        first[core.gather(surely_free_states(core.ssp))] = 0.0
    return sweeps, first


def _distances(core: Core) -> FloatArray:
    """Distance to the goals from every node, where an outcome is as long as its choice's rate divided by its probability.

    A little more per step makes the order strict where steps are free.
    """
    into, into_start = grouped(core.target, core.n + 1)
    rate = np.repeat(core.rate + 1e-9 * core.rate.max(initial=0.0), np.diff(core.choice_outcomes))
    # A rare outcome of a dear choice may be longer than any float.
    length = np.where(rate < LONGEST * core.probability, rate / np.maximum(core.probability, rate / LONGEST), LONGEST)
    least = np.full(core.n + 1, np.inf)
    cheapest_way(into_start, core.outcome_node()[into].astype(np.int32), length[into], core.n, least)
    return least[:-1]


def _settle_slowly(decisions: Decisions, first: int, last: int, tolerance: float, out_value: FloatArray, out_chosen: NDArray[Any]) -> int:
    """More rounds over a component that is slow to settle, each followed by a leap (Anderson's): returns how many, or `MOST_ROUNDS` + 1.

    If f is what a round changes and g its result, the combination of the last rounds with the least f is where they are all heading. On models
    whose slow error is of a few kinds only (a rare exit, say) the leaps replace thousands of rounds.
    """
    results: list[FloatArray] = []
    changes: list[FloatArray] = []
    previous, reached = np.inf, {}
    for rounds in range(PLAIN_ROUNDS, MOST_ROUNDS + 1):
        before = out_value[first:last].copy()
        change = play_round(decisions, first, last, out_value, out_chosen)
        if change <= tolerance or (change <= 64 * UNIT and change >= previous):
            return rounds
        reached[rounds] = previous = change
        # What gains less than a digit in 60 rounds will not end in time.
        if change > 0.1 * reached.get(rounds - 60, np.inf):
            break
        results.append(out_value[first:last].copy())
        changes.append(results[-1] - before)
        if len(changes) > 1:
            weight = 1.0 / (np.abs(results[-1]) + 1e-9 * np.abs(results[-1]).max())
            turn = np.diff(np.array(changes), axis=0) * weight
            products = turn @ turn.T
            if np.isfinite(products).all():
                share = np.linalg.lstsq(products, turn @ (changes[-1] * weight), rcond=1e-14)[0]
                out_value[first:last] -= share @ np.diff(np.array(results), axis=0)
        del results[:-REMEMBERED], changes[:-REMEMBERED]
    return MOST_ROUNDS + 1
