"""Problems that come with data, as a user of `tailpath`: intensive care, flights out of New York,
roads that may be closed, and the planning competitions, whose language is RDDL.
"""

from tailpath_cases.ctp import RoadMap, canadian_traveller
from tailpath_cases.flights import flights
from tailpath_cases.sepsis import sepsis

__all__ = ["RoadMap", "canadian_traveller", "flights", "sepsis"]
