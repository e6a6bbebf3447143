"""Ready-made problems: the two domains of the paper, textbook problems that carry their answers, and the register where others add theirs."""

from tailpath.domains import textbook
from tailpath.domains.gridworld import gridworld
from tailpath.domains.register import Domain, register
from tailpath.domains.river import river
from tailpath.domains.upgrade import upgrade

__all__ = ["Domain", "gridworld", "register", "river", "textbook", "upgrade"]
