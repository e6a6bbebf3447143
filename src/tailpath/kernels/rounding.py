"""What a double can and cannot tell: every constant of rounding, with the reason for its size. Plain numbers, for kernels and all others."""

from __future__ import annotations

#: The unit roundoff: one operation on doubles is off by this share of its result at most.
UNIT = 2.0**-53
#: A stored probability of a row of k lies within (3 k + 3) UNIT, relatively, of the decimal as written divided by the sum of its row: one UNIT to
#: read the decimal, and what the float row may miss 1 by (`model/ssp.py`). A policy that mixes actions multiplies it by a weight of its own. So
#: (ROW * k + FIXED) UNIT covers an arrow of a chain row of k.
ROW, FIXED = 3, 9
#: A probability this close to alpha, relatively, counts as equal to it, since VaR jumps there. Sums of 10^4 masses are off by 1e-12 at most.
SAME_MASS = 1e-12
#: Values of the recursion over budgets that differ by less, relatively, count as equal: some hundred roundings.
SAME_VALUE = 1e-13
#: More than what a sum of products may lose because they fall below the smallest double.
VANISHED = 1e-300
#: Values below this are taken for 0: they mean nothing, and numbers near the smallest double are slow to compute with.
TINY = 1e-280
