"""A part of the search for faults (`tests/fuzz/objectives.py`), and what it has found."""

import pytest

from tests.fuzz import objectives


@pytest.mark.parametrize("number", [*range(20), 34, 48, 109, 127, 133])
def test_bounds_hold_what_is_known_exactly(number):
    """From 34 on: a limit that rounding alone decides about; the upper bound was not rounded
    outwards.
    """
    assert list(objectives.attempt(number)), "something was looked at"
