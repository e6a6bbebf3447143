"""From rows (state, action, target, probability, cost), given as numbers in any order, to the arrays of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.model.builders import merge_equal_outcomes
from tailpath.model.ragged import offsets_of


def model_arrays(
    state: NDArray[Any],
    action: NDArray[Any],
    target: NDArray[Any],
    probability: NDArray[Any],
    cost: NDArray[Any],
    n_states: int,
    *,
    merge: bool,
) -> dict[str, Any]:
    """The arrays of an SSP. Choices stand by state and then as they first appear, outcomes as they appear; rows of probability 0 are left
    out, but their choice stays. With `merge`, outcomes of a choice with the same target and the same cost become one.
    """
    n_actions = int(action.max(initial=0)) + 1
    key, first, of_row = np.unique(state.astype(np.int64) * n_actions + action, return_index=True, return_inverse=True)
    order = np.lexsort((first, key // n_actions))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    possible = probability != 0
    rows = (rank[of_row][possible], target[possible], probability[possible], cost[possible])
    if merge:
        rows = merge_equal_outcomes(*rows)
    else:
        by_choice = np.argsort(rows[0], kind="stable")
        rows = (rows[0][by_choice], rows[1][by_choice], rows[2][by_choice], rows[3][by_choice])
    return {
        "state_choices": offsets_of(key[order] // n_actions, n_states),
        "choice_outcomes": offsets_of(rows[0], len(key)),
        "outcome_target": rows[1],
        "outcome_probability": rows[2],
        "outcome_cost": rows[3],
        "choice_action": key[order] % n_actions,
    }
