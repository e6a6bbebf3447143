"""What tests of the charges share: once with a charge and once without, and whether bounds hold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

CHARGED = pytest.mark.parametrize("charged", [True, False])


def holds(bounds: Any, truth: Fraction) -> bool:
    low, high = map(float, bounds)
    return Fraction(low) <= truth <= (math.inf if high == math.inf else Fraction(high))
