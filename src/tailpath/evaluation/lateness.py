"""The probability of a total cost above t, for t = 0, 1, ... units, with the nature that is best or
worst for each t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tailpath.analysis.robust import robust
from tailpath.errors import LimitExceededError
from tailpath.kernels.rounding import SAME_MASS
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import FloatArray

#: Tables of lateness have so many levels at first, and at most.
SHORT, LONGEST = 64, 10**7
#: A lateness that a deadline twice as late does not lower by more, relatively, is what never
#: arrives, as far as doubles tell.
CONVERGED = 1e-15


def has_converged(model: IntervalSSP, units: int, late: float, before: float) -> bool:
    """Whether all that is late at a deadline of some units never arrives, given what was late at
    half of them.
    """
    # From anywhere nature cannot keep from arriving at all, a run of one visit to each state may
    # arrive.
    longest = model.n_states * int(model.inside.outcome_level.max(initial=1))
    return units > longest and float(late) >= before * (1 - CONVERGED)


@dataclass
class Lateness:
    """A table that grows as later t are asked for.

    `product` is a model with one choice in every node, and `almost_sure` says whether it surely
    arrives with this nature.
    """

    product: IntervalSSP
    nature: int
    almost_sure: bool
    _late: FloatArray = field(default_factory=lambda: np.empty(0))

    def up_to(self, units: int) -> FloatArray:
        """The lateness for t = 0 .. units at least."""
        if len(self._late) <= units:
            # Runs that never arrive end beyond every t that counts.
            penalty = 0 if self.almost_sure else units + 2
            found = robust(self.product, self.nature, penalty).late(units + 1)
            self._late = found.values[1:, 0]
        return self._late

    def at(self, level: int) -> float:
        """The lateness at one t."""
        return float(self.up_to(max(SHORT, 1 << level.bit_length()))[level])

    def quantile(self, alpha: float) -> float:
        """The least t with a lateness of at most `alpha`, in units; infinite if there is none."""
        units, before = SHORT, 2.0
        while units <= LONGEST:
            late = self.up_to(units)
            enough = np.flatnonzero(late <= alpha * (1 + SAME_MASS) if alpha < 1 else late < 1)
            if len(enough):
                return float(enough[0])
            if not self.almost_sure and has_converged(self.product, units, late[-1], before):
                return math.inf
            units, before = 2 * units, float(late[-1])
        assert self.product.cost_unit is not None
        raise LimitExceededError(
            f"the VaR at {alpha:g} lies more than {LONGEST} cost units away",
            (LONGEST * float(self.product.cost_unit), math.inf),
        )
