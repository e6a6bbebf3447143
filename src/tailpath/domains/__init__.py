"""Ready-made problems: the two domains of the paper, textbook problems that carry their answers,
problems from real data, and the register where others add theirs."""

from tailpath.domains import textbook
from tailpath.domains.ctp import RoadMap, canadian_traveller
from tailpath.domains.flights import flights
from tailpath.domains.paper import gridworld, river
from tailpath.domains.register import Domain, register
from tailpath.domains.sepsis import sepsis

__all__ = [
    "Domain",
    "RoadMap",
    "canadian_traveller",
    "flights",
    "gridworld",
    "register",
    "river",
    "sepsis",
    "textbook",
]
