"""Ready-made problems: the two domains of the paper, and textbook problems that carry their answers."""

from tailpath.domains import textbook
from tailpath.domains.gridworld import gridworld
from tailpath.domains.river import river

__all__ = ["gridworld", "river", "textbook"]
