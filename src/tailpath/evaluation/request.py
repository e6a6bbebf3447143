"""What an evaluation was asked for, handed as one thing to every pipeline and engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tailpath.evaluation.watch import Watch


class Tuning(NamedTuple):
    """What decides time and memory, and never a number.

    An engine looks at the user every so many expansions. The ring of the lattice engine is capped, in rows and in cells, so that it stays near
    the size of the caches; longer jumps go to a second ring for the nodes they lead to, within caps of its own, and beyond wait in lists.
    """

    lattice_pause: int = 5_000_000
    queue_pause: int = 20_000
    ring_rows: int = 1 << 10
    ring_cells: int = 1 << 22
    far_rows: int = 1 << 14
    far_cells: int = 1 << 23


USUAL = Tuning()


@dataclass(frozen=True, eq=False)
class Request:
    """One evaluation: the tail mass, the heuristic (`min` or `zero`), the discount, the most expanded pairs, and who watches."""

    alpha: float
    heuristic: str
    gamma: float
    limit: int
    watch: Watch
    tuning: Tuning = USUAL
