"""What a double can and cannot tell: every constant of rounding, with the reason for its size. Plain numbers, for kernels and all others."""

from __future__ import annotations

#: The unit roundoff: one operation on doubles is off by this share of its result at most.
UNIT = 2.0**-53
#: A probability this close to alpha, relatively, counts as equal to it, since VaR jumps there. Sums of 10^4 masses are off by 1e-12 at most.
SAME_MASS = 1e-12
#: Values of the recursion over budgets that differ by less, relatively, count as equal: some hundred roundings.
SAME_VALUE = 1e-13
#: Values below this are taken for 0: they mean nothing, and numbers near the smallest double are slow to compute with.
TINY = 1e-280
