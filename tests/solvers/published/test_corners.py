"""A part of the search for faults (`tests/fuzz/corners.py`): goals that coincide once they are
merged, free cycles with discounts and under histories, parts.
"""

import warnings

import pytest

from tests.fuzz import corners


@pytest.mark.parametrize("number", range(32))
def test_what_once_went_wrong_is_right(number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert list(corners.attempt(number)), "something was looked at"
