"""Large files: memory follows the number of outcomes, in every format."""

import tracemalloc

import numpy as np
import pytest

import tailpath as tp
from tests.formats.models import differences

N_STATES = 3_000
#: Bytes held at the worst moment, per outcome. A million outcomes then need at most a gigabyte.
MOST = {"json": 1000, "npz": 300, "drn": 1000, "drn.gz": 1000, "tra": 1000, "umb": 400, "csv": 1000}


def large():
    """Two choices of four outcomes in every state, with probabilities that need all their digits."""
    rng = np.random.default_rng(0)
    n_choices = 2 * (N_STATES - 1)
    # Four different successors, or equal outcomes would be merged.
    target = (rng.integers(0, N_STATES, size=(n_choices, 1)) + np.arange(4) * 7) % N_STATES
    probability = rng.random((n_choices, 4)) + 0.1
    return tp.SSP(
        state_choices=np.append(2 * np.arange(N_STATES), n_choices),
        choice_outcomes=4 * np.arange(n_choices + 1),
        outcome_target=target.ravel(),
        outcome_probability=(probability / probability.sum(axis=1, keepdims=True)).ravel(),
        outcome_cost=np.repeat(rng.integers(1, 9, size=n_choices) / 2, 4),
        choice_action=np.tile(np.arange(2), N_STATES - 1),
        is_goal=np.arange(N_STATES) == N_STATES - 1,
        start_index=0,
        states=range(N_STATES),
        actions=range(2),
    )


@pytest.mark.parametrize("suffix", MOST)
def test_memory_follows_the_outcomes(suffix, tmp_path):
    model = large()
    path = tmp_path / f"m.{suffix}"
    tp.write(model, path)
    tp.read(path)  # so that imports are not counted
    tracemalloc.start()
    try:
        again = tp.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert differences(model, again, notes=suffix != "csv") == []
    assert peak < MOST[suffix] * model.n_outcomes
