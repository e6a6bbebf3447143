"""Where a number stands among others, beside numpy's answer."""

import numpy as np
import pytest

from tailpath.kernels.unrolling import SEARCHED_ABOVE, first_at_least


@pytest.mark.parametrize(
    "size",
    [0, 1, 2, SEARCHED_ABOVE, SEARCHED_ABOVE + 1, 2 * SEARCHED_ABOVE, 2 * SEARCHED_ABOVE + 1, 500],
)
def test_a_number_stands_before_its_equals(size: int) -> None:
    rng = np.random.default_rng(size)
    for rising in np.sort(rng.random(size)), np.sort(rng.integers(0, 40, size)).astype(float):
        for y in (-1.0, 20.0, 100.0, *rising, *(rising + 1e-9)):
            assert first_at_least.plain(rising, y) == np.searchsorted(rising, y)
