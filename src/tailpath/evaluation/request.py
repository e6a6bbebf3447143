"""What an evaluation was asked for, handed as one thing to every pipeline and engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tailpath.evaluation.heuristics import Heuristic
from tailpath.evaluation.watch import Watch


class End(Enum):
    """How a search ended."""

    FINISHED = "finished"
    NODES = "the limit on nodes is reached"
    MEMORY = "the memory limit is reached"
    STOPPED = "the user stopped it"


class Tuning(NamedTuple):
    """What decides time and memory, and never a number.

    A policy with more than `pairs` pairs of state and memory is followed lazily, not unrolled beforehand. An engine looks at the user every so
    many expansions. The ring of the lattice engine is capped, in rows and in cells, so that it stays near the size of the caches; longer jumps go
    to a second ring for the nodes they lead to, within caps of its own, and beyond wait in lists.
    """

    pairs: int = 200_000
    lattice_pause: int = 5_000_000
    queue_pause: int = 20_000
    ring_rows: int = 1 << 10
    ring_cells: int = 1 << 22
    far_rows: int = 1 << 14
    far_cells: int = 1 << 23


USUAL = Tuning()
#: What grows with the search may take this much memory.
MOST_BYTES = 4 * 2**30


@dataclass(frozen=True, eq=False)
class Request:
    """One evaluation: the tail mass, the heuristic (`min`, `zero` or one value per state), the discount, the most expanded pairs, the most
    memory, who watches, and whether the standard deviation is found at once.
    """

    alpha: float
    heuristic: Heuristic
    gamma: float
    limit: int
    watch: Watch
    max_bytes: int = MOST_BYTES
    tuning: Tuning = USUAL
    deviation: bool = False
