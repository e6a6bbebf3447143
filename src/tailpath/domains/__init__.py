"""Ready-made problems: the two domains of the paper, textbook problems, roads that may be closed,
and the register where others add theirs.
"""

from tailpath.domains import textbook
from tailpath.domains.ctp import RoadMap, canadian_traveller
from tailpath.domains.paper import gridworld, river
from tailpath.domains.register import Domain, register

__all__ = [
    "Domain",
    "RoadMap",
    "canadian_traveller",
    "gridworld",
    "register",
    "river",
    "textbook",
]
