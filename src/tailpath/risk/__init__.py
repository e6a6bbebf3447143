"""Measures of risk (`measures.py`), what they have in common (`measure.py`), and their text.

`Measure` is the base of measures from outside, and `curve_of` makes the loss of one.
"""

from tailpath.risk.curves import curve_of
from tailpath.risk.measure import Measure

__all__ = ["Measure", "curve_of"]
