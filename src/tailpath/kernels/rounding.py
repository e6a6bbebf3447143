"""Thresholds of algorithms that compute in doubles: what counts as equal, as settled, as nothing.
Proofs do not rest on them; the unit roundoff is in `certify/rounding.py`.
"""

from __future__ import annotations

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
SETTLED = 2.0**-52
#: Changes up to this may go on for ever, since they come from rounding in rows of some ten
#: outcomes.
ROUNDING_NOISE = 2.0**-47
#: Added to what is divided by, so that nothing is divided by 0.
NONZERO = 1e-300
#: No way counts as longer than this, lest sums of them overflow.
LONGEST = 1e300
#: The share of the largest cost that every step costs more where steps are ordered by their cost,
#: and may be free.
STRICT = 1e-9
