"""The table over (state, budget left): filled level by level, kept as small as the answers need.

Values live in a ring that holds no more levels than the largest cost to a state that is no goal; only the values at the start are kept. Decisions are
kept for every level, in the smallest integer type, in pieces, until it is known which budget is the largest one needed; then the rest is
dropped, and with it every state that the start cannot reach within that budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import BudgetExceededError
from tailpath.kernels.budget import Aim, cutoff_of, raise_budget
from tailpath.kernels.jit import cores
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress
from tailpath.solvers.exact.layout import Layout

#: A block with fewer outcomes than this is not worth waking the other cores for.
WORTH_THREADS = 100_000
#: A piece of the table of decisions has about this many entries.
PIECE = 2**23


@dataclass(frozen=True, eq=False)
class BudgetTable:
    """What the recursion found, in cost units, for budgets w = 0, 1, ..., len(excess) - 1.

    `excess[w]` is U(start, w); `mean[w]` the expected cost of the policy behind it, if it was asked for. `pieces` hold the decisions by level,
    from level 1 on, and node. `error` bounds the relative error that each level added to the excess.
    """

    layout: Layout
    excess: FloatArray
    mean: FloatArray | None
    pieces: list[NDArray[Any]]
    error: float


def fill_table(layout: Layout, aim: Aim, pairs: bool, max_bytes: int, progress: Progress | None = None) -> BudgetTable:
    """Raise the budget until no larger one can matter. `pairs` carries the expected cost of the policy along.

    The smaller the largest budget that may matter, the fewer states the start can reach within it. It is not known before the end; so where it
    pays, it is guessed, and raised if it was too small: a state beyond the guess does not touch the values of the budgets within.
    """
    diameter = float(layout.levels.least.max())
    guess = max(2 * layout.start_value, 16.0)
    while aim.weight > 0 and guess < 2 * diameter:
        table, best = _raise(layout, aim._replace(limit=guess), pairs, max_bytes, progress)
        if cutoff_of(aim, best) <= guess:
            return table
        guess = min(cutoff_of(aim, best), 2 * guess)
    return _raise(layout, aim, pairs, max_bytes, progress)[0]


def _raise(layout: Layout, aim: Aim, pairs: bool, max_bytes: int, progress: Progress | None) -> tuple[BudgetTable, float]:
    """One pass from budget 1 to the cutoff; also returns the best value at the start."""
    n, levels = layout.n, layout.levels
    blocks, reached = len(levels.block_joint), int(np.count_nonzero(levels.least <= aim.limit))
    threads = len(levels.target) > WORTH_THREADS * blocks and cores() > 1
    advance = raise_budget(threads, pairs, bool(levels.block_joint.any()))
    rows = int(np.clip(PIECE // n, 16, 4096))
    capacity = min(layout.reach, rows) + 1
    ring, ring_mean = np.zeros(capacity * n), np.zeros(capacity * n if pairs else 0)
    active, policy = levels.block_start[1:].copy(), levels.node_choices[:-1].copy()
    excess, mean = [np.array([layout.start_value])], [np.array([layout.start_value])]
    pieces: list[NDArray[Any]] = []
    best = (aim.excess_price + aim.mean_price) * layout.start_value
    error, gain_left, w, last = 0.0, 0.0, 1, 0
    while w > last:
        last = w + rows - 1
        if min(layout.reach, last) >= capacity:
            ring, ring_mean = (_longer(r, last, layout) for r in (ring, ring_mean))
            capacity = min(layout.reach, 2 * last) + 1
        # Pages that are never written take no memory, so only the states within reach count.
        piece = np.zeros((rows, n), dtype=levels.choice_label.dtype)
        needed = ring.nbytes + ring_mean.nbytes + (len(pieces) + 1) * rows * reached * piece.itemsize
        _check_memory(needed, max_bytes, layout, aim, w, best)
        piece_excess, piece_mean = np.empty(rows), np.empty(rows if pairs else 0)
        end, best, worst, left = advance(
            levels, layout.joint, aim, w, last, best, capacity, ring, ring_mean, active, policy, piece, piece_excess, piece_mean
        )
        pieces.append(piece)
        excess.append(piece_excess[: end - w])
        mean.append(piece_mean[: end - w])
        error, gain_left, w = max(error, worst), max(gain_left, left), end
        if progress is not None:
            progress(w - 1, best * float(layout.unit))
    # A joint block adds the error of its elimination, of what goes into it, and of choices that are not quite the best at every visit.
    joint = error + (gain_left + 4 * layout.rounding) * layout.visits if layout.visits else 0.0
    per_level = layout.depth * (layout.rounding + joint)
    table = BudgetTable(layout, np.concatenate(excess), np.concatenate(mean) if pairs else None, pieces, per_level)
    return table, best


def _longer(ring: FloatArray, last: int, layout: Layout) -> FloatArray:
    """A longer ring. It grows before it ever wraps, so its rows are levels 0, 1, ... in order."""
    if ring.size == 0:
        return ring
    longer = np.zeros((min(layout.reach, 2 * last) + 1) * layout.n)
    longer[: ring.size] = ring
    return longer


def _check_memory(needed: int, max_bytes: int, layout: Layout, aim: Aim, w: int, best: float) -> None:
    if needed <= max_bytes:
        return
    if aim.weight > 0:
        low = min(best, aim.weight * w + aim.floor)
    else:
        low, best = 0.0, np.inf
    raise BudgetExceededError(
        f"{layout.n} states x {w} cost levels need more than {max_bytes / 2**30:.3g} GiB, and more levels are to come; "
        "a coarser grid (delta=) or a larger max_bytes would help",
        (low * float(layout.unit), best * float(layout.unit)),
    )


def decisions(ssp: SSP, table: BudgetTable, budget: int, neutral: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The rows and the table of a `BudgetPolicy` for budgets up to `budget`. Empties `table.pieces` on the way, to save memory."""
    layout = table.layout
    nodes = np.flatnonzero(layout.levels.least < budget)
    # By level first: a policy's evaluation goes level by level.
    kept = np.zeros((budget + 1, len(nodes)), dtype=layout.levels.choice_label.dtype)
    take: Any = slice(0, len(nodes)) if nodes.size and nodes[-1] == len(nodes) - 1 else nodes
    level = 1
    while level <= budget:
        piece = table.pieces.pop(0)
        count = min(len(piece), budget + 1 - level)
        kept[level : level + count] = piece[:count, take]
        level += count
    table.pieces.clear()
    row_of_node = np.full(layout.n + 1, -1, dtype=np.int32)
    row_of_node[nodes] = np.arange(len(nodes))
    row = row_of_node[layout.node_of]
    if layout.collapsed[nodes].any():
        row, kept = _spread_components(ssp, layout, row, kept)
    states = np.flatnonzero(row >= 0)
    kept[0, row[states]] = neutral[states] - ssp.state_choices[states]
    kept.flags.writeable = row.flags.writeable = False
    return row, kept.T


def _spread_components(ssp: SSP, layout: Layout, row: NDArray[np.int32], kept: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Give every state of a free component its own row: it walks, at no cost, to the state that leaves, which then leaves."""
    row = row.copy()
    columns = [kept]
    states = np.flatnonzero((row >= 0) & layout.collapsed[layout.node_of])
    states = states[np.argsort(layout.node_of[states], kind="stable")]
    first = np.flatnonzero(np.append(True, np.diff(layout.node_of[states]) != 0))
    for members in np.split(states, first[1:]):
        node = int(layout.node_of[members[0]])
        picked = int(layout.levels.node_choices[node]) + kept[:, row[members[0]]].astype(np.int64)
        own = np.zeros((len(kept), len(members)), dtype=np.min_scalar_type(int(np.diff(ssp.state_choices).max())))
        for choice in np.unique(picked).tolist():
            own[picked == choice] = _walk_to(ssp, members, int(layout.choice[choice])) - ssp.state_choices[members]
        columns.append(own)
    row[states] = np.arange(kept.shape[1], kept.shape[1] + len(states))
    return row, np.concatenate(columns, axis=1)


def _walk_to(ssp: SSP, members: NDArray[Any], exit_choice: int) -> NDArray[np.int64]:
    """The choice of each member of a free component so that all surely come to the state of `exit_choice`, and there take it."""
    inside = set(members.tolist())
    settled = {int(ssp.choice_state[exit_choice]): exit_choice}
    into: dict[int, list[tuple[int, int]]] = {}
    for state in inside:
        for choice in range(ssp.state_choices[state], ssp.state_choices[state + 1]):
            ends = slice(ssp.choice_outcomes[choice], ssp.choice_outcomes[choice + 1])
            targets = ssp.outcome_target[ends].tolist()
            if inside.issuperset(targets) and not ssp.outcome_cost[ends].any():
                for target in targets:
                    into.setdefault(target, []).append((state, choice))
    waiting = list(settled)
    for reached in waiting:  # grows while it is read: a search against the arrows
        for state, choice in into.get(reached, ()):
            if state not in settled:
                settled[state] = choice
                waiting.append(state)
    return np.array([settled[state] for state in members.tolist()])
