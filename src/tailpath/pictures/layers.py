"""Where the states of a model without a map are drawn: a column for each number of steps from the
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Columns of a part of a model; states that are far from each other share one.
MOST_COLUMNS = 14


def layers(ssp: Any, states: Sequence[int]) -> tuple[list[float], list[float], float, float]:
    """`x` and `y` of every state, of use for those of `states`, with the width and the height they
    take.

    Each column is ordered by where its states are reached from; goals stand in the last.
    """
    source, target = ssp.choice_state[ssp.outcome_choice], ssp.outcome_target
    shown = np.zeros(ssp.n_states, dtype=np.bool_)
    shown[list(states)] = True
    column = _columns(ssp, shown)
    from_: dict[int, set[int]] = {}
    for before, after in zip(source[shown[source]].tolist(), target[shown[source]].tolist()):
        if column[before] < column[after]:
            from_.setdefault(after, set()).add(before)
    x, y = [0.0] * ssp.n_states, [0.0] * ssp.n_states
    last = max(column[state] for state in states)
    tallest = int(np.bincount([column[state] for state in states]).max())
    for position in range(last + 1):
        members = [state for state in states if column[state] == position]
        members.sort(
            key=lambda state: np.mean([y[before] for before in from_.get(state, ())] or [0.0])
        )
        for rank, state in enumerate(members):
            x[state] = 0.9 + 2.2 * position
            # A little off the line, so that arrows along a row do not cover each other.
            y[state] = (rank + 0.5) * 1.8 * tallest / len(members) + 0.25 * (position % 2)
    return x, y, 1.8 + 2.2 * last, 0.25 + 1.8 * float(tallest)


def _columns(ssp: Any, shown: NDArray[np.bool_]) -> list[int]:
    """The column of every state: its steps from the start, without the numbers that no state of
    these has.
    """
    row_start, target = ssp.by_state.row_start.tolist(), ssp.outcome_target.tolist()
    steps = {ssp.start_index: 0}
    queue = [ssp.start_index]
    for state in queue:
        for after in target[row_start[state] : row_start[state + 1]]:
            if after not in steps:
                steps[after] = steps[state] + 1
                queue.append(after)
    far = max(steps.values())
    depth = np.array([steps.get(state, far + 1) for state in range(ssp.n_states)])
    depth[ssp.is_goal] = np.maximum(depth[ssp.is_goal], far)
    found, column = np.unique(np.where(shown, depth, 0), return_inverse=True)
    if len(found) > MOST_COLUMNS and not shown.all():
        column = column * (MOST_COLUMNS - 1) // (len(found) - 1)
    columns: list[int] = column.tolist()
    return columns
