"""What a double can and cannot represent: every constant of rounding, with the reason for its size.
Plain numbers, for kernels and all others.
"""

from __future__ import annotations

#: The unit roundoff: one operation on doubles is off by this share of its result at most.
ROUNDOFF = 2.0**-53
#: A probability this close to alpha, or to an atom, relatively, counts as equal to it, since VaR
#: jumps there. Sums of 10^4 masses are off by 1e-12 at most.
SAME_MASS = 1e-12
#: Values that differ by less, relatively, count as equal: some hundred roundings.
SAME_VALUE = 1e-13
#: Values below this are taken for 0: they mean nothing, and numbers near the smallest double are
#: slow to compute with.
TINY = 1e-280
#: Below this, products with probabilities that are not tiny lose digits: they fall below the
#: doubles that have all of them.
NEAR_UNDERFLOW = 1e-290
#: A sweep that moves no value by more, relatively, has settled: a last bit. Proofs of shares are as
#: close as values are.
SETTLED = 2 * ROUNDOFF
#: Changes up to this may go on for ever, since they come from rounding in rows of some ten
#: outcomes.
ROUNDING_NOISE = 64 * ROUNDOFF
#: Added to what is divided by, so that nothing is divided by 0.
NONZERO = 1e-300
#: No way counts as longer than this, lest sums of them overflow.
LONGEST = 1e300
#: The share of the largest cost that every step costs more where steps are ordered by their cost,
#: and may be free.
STRICT = 1e-9
