"""Problems from real data, as a user of `tailpath`: intensive care, and flights out of New York."""

from tailpath_cases.flights import flights
from tailpath_cases.sepsis import sepsis

__all__ = ["flights", "sepsis"]
