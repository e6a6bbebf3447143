"""Sweeps over a chain in the order of its likeliest ways.

Where there is nothing to decide, news travels along the arrow that is taken most often. A node comes after the most probable successor it has, so
that one pass carries a value all the way along the likeliest way, and the first pass, which counts successors that have no value yet as if they were
not there, is a fair guess. What a pass finds stale are the arrows that lead back; values are settled after as many passes as a run takes such arrows
with a probability that still counts. Nodes near the exit settle first, and passes leave them out until a last look at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.value_iteration import MOST_ROUNDS, Sweeps
from tailpath.kernels.absorption import likeliest_first, settle
from tailpath.kernels.bellman import Decisions
from tailpath.kernels.jit import frozen
from tailpath.model.ssp import FloatArray

#: Passes after which a chain counts as slow, and is left to sweeps by component.
MOST_PASSES = 160


@dataclass(frozen=True, eq=False)
class Passes(Sweeps):
    """Sweeps over all nodes as if they were one component, for chains: no strong components are looked for."""

    @classmethod
    def along(cls, row_start: NDArray[Any], target: NDArray[Any], probability: FloatArray) -> Passes:
        """In the order of the likeliest ways."""
        order = np.empty(len(row_start) - 1, dtype=np.int64)
        likeliest_first(*frozen(row_start, target, probability), order)
        return cls(order, np.array([0, len(order)]))

    def run(self, folded: Decisions, first: FloatArray, tolerance: float) -> tuple[FloatArray, int]:
        """As `Sweeps.run`; the first values are its own."""
        value = np.empty(len(self.order))
        rows = (array.view(f"u{array.itemsize}") for array in (folded.choice_outcomes, folded.target))
        passes = settle(*rows, folded.probability, folded.rate, tolerance, MOST_PASSES, value)
        result = np.empty_like(value)
        result[self.order] = value
        return result, passes if passes <= MOST_PASSES else MOST_ROUNDS + 1
