"""Places for the states of a model without a map: a column for each number of steps from the start."""

from __future__ import annotations

from typing import Any

import numpy as np


def layers(ssp: Any) -> tuple[list[float], list[float], float, float]:
    """Places for a graph: a column for each number of steps from the start, each column ordered by where its states are reached from."""
    following: list[set[int]] = [set() for _ in range(ssp.n_states)]
    for source, target in zip(ssp.choice_state[ssp.outcome_choice].tolist(), ssp.outcome_target.tolist()):
        following[source].add(target)
    column = {ssp.start_index: 0}
    queue = [ssp.start_index]
    for state in queue:
        for after in sorted(following[state]):
            if after not in column:
                column[after] = column[state] + 1
                queue.append(after)
    last = max(column.values())
    for state in range(ssp.n_states):
        column.setdefault(state, last + 1)
        if ssp.is_goal[state]:
            column[state] = max(column[state], last)
    x, y = [0.0] * ssp.n_states, [0.0] * ssp.n_states
    tallest = max(np.bincount(list(column.values())))
    for place in range(max(column.values()) + 1):
        members = [state for state in range(ssp.n_states) if column[state] == place]
        members.sort(key=lambda state: np.mean([y[s] for s in range(ssp.n_states) if state in following[s] and column[s] < place] or [0.0]))
        for rank, state in enumerate(members):
            x[state] = 1.0 + 2.2 * place
            # A little off the line, so that arrows along a row do not cover each other.
            y[state] = 0.6 + (rank + 0.5) * 1.8 * tallest / len(members) + 0.25 * (place % 2)
    return x, y, 2.0 + 2.2 * max(column.values()), 1.7 + 1.8 * float(tallest)
