"""Large files: memory follows the number of outcomes, in every format."""

import tracemalloc

import pytest

import tailpath as tp
from tests.formats.models import differences, many_numbers

N_STATES = 3_000
#: Bytes held at the worst moment, per outcome. A million outcomes then need at most a gigabyte.
MOST = {"json": 1000, "npz": 300, "drn": 1000, "drn.gz": 1000, "tra": 1000, "umb": 400, "csv": 1000}


@pytest.mark.parametrize("suffix", MOST)
def test_memory_follows_the_outcomes(suffix, tmp_path):
    model = many_numbers(N_STATES)
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
