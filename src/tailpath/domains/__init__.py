"""Ready-made problems: the two domains of the paper, textbook problems, and the register where
others add theirs.
"""

from tailpath.domains import textbook
from tailpath.domains.paper import gridworld, river
from tailpath.domains.register import Domain, register

__all__ = [
    "Domain",
    "gridworld",
    "register",
    "river",
    "textbook",
]
