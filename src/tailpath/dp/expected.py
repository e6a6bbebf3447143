"""Expected totals of an absorbing chain, with bounds that are proved and not merely observed.

A chain has transient nodes 0 .. n - 1, and n is where it ends. With `rate` r >= 0 collected at each
visit, the expected total is the least solution of v = r + P v. The expected cost of a policy, its
expected number of steps and the probability of ending in a trap all have this form.

1. *Sweeps* (`sweeps.py`) find v, and a certificate (`certificates.py`) proves how far it may be
   off.
2. Where they settle too slowly, *elimination* without subtraction (`dp/elimination.py`) carries a
   relative error bound of its own that does not depend on the conditioning. It rescues small chains
   that break sweeps and sparse LU alike (Haddad and Monmege's takes 2^N steps).
3. A *sparse LU* finds v on large chains that mix slowly and are narrow, and the same certificate
   accepts or refuses it.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import Decisions
from tailpath.dp.bounds import (
    WIDE,
    Bounds,
    bounds_within,
    narrower,
    unproved,
    within_shares,
)
from tailpath.dp.certificates import Certificate, proved, relative_bounds
from tailpath.dp.elimination import eliminate
from tailpath.dp.rational import eliminated
from tailpath.dp.sweeps import MAX_ROUNDS, Sweeps
from tailpath.errors import TailpathWarning
from tailpath.graph import FloatArray, Transitions, owners
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import CLOSE, ROUNDING_NOISE, SAME_VALUE, SETTLED

#: The largest component that is eliminated, and the most products of all: a dense elimination of m
#: nodes takes m^3 / 3.
LARGEST_ELIMINATION, MAX_PRODUCTS = 2_500, 2_500**3
#: The largest chain that is eliminated in decimals where nothing else proves anything.
LARGEST_DECIMALS = 50_000
#: Nodes times band beyond which a chain is not factorised: the factors of a graph without small
#: separators would fill gigabytes.
LARGEST_FACTORS = 200_000_000
#: How exactly weights are summed up, and what is missing in values: at first, and where that proves
#: little.
ROUGHLY, FINELY = (1e-5, 1e-4), (1e-10, 1e-10)
#: So many nodes are few.
FEW_NODES = 100
#: The method of totals that sweeps found.
SWEEPS = "sweeps"

Total = tuple[Bounds, Certificate | None]


def chain_of(
    row_start: NDArray[Any],
    target: NDArray[Any],
    probability: FloatArray,
    rate: FloatArray,
    error: float = 0.0,
) -> Decisions:
    """The rows of a chain, one for each node, as kernels take them."""
    columns = frozen(np.arange(len(rate) + 1), row_start, target, probability, rate)
    return Decisions(*columns)._replace(error=error)


def expected_total(
    row_start: NDArray[Any],
    target: NDArray[Any],
    probability: FloatArray,
    rate: FloatArray,
    error: float = 0.0,
    close: float | None = None,
) -> Bounds:
    """The expected total of `rate` (n,) until the end, from each of n nodes. The end, target n,
    must be reached surely from all of them.

    `error` is how far probabilities may be off, relatively, beside rounding. Bounds of small chains
    that are not `close` get a second proof.
    """
    if len(rate) == 0:
        return Bounds(rate, rate, rate, SWEEPS)
    found, _ = total_of(chain_of(row_start, target, probability, rate, error), close=close)
    if found.lower.min() < 0.0:
        lower = np.maximum(found.lower, 0.0)
        found = replace(found, value=np.clip(found.value, lower, found.upper), lower=lower)
    warn_if_unproved(found)
    return found


def warn_if_unproved(found: Bounds) -> None:
    if not found.upper.max(initial=0.0) < np.inf:
        text = (
            "no upper bound on an expected total could be proved; the chain mixes too slowly for"
            " its size"
        )
        warnings.warn(text, TailpathWarning, stacklevel=3)


def close_enough(n: int) -> float:
    """How close, relatively, the bounds of n nodes must be to need no second proof, which may be
    closer: on few nodes that takes no time.
    """
    return ROUNDING_NOISE if n <= FEW_NODES else CLOSE if n <= LARGEST_ELIMINATION else WIDE


def total_of(chain: Decisions, *, slow: bool = False, close: float | None = None) -> Total:
    """The expected total of a chain that is not empty, and what weights prove of it, if they do. On
    a `slow` one sweeps are not tried.
    """
    close = close_enough(len(chain.rate)) if close is None else close
    if slow:
        sweeps = Sweeps.of_chain(chain.choice_outcomes, chain.target, chain.probability)
        found: Total = unproved(np.zeros(len(chain.rate)), SWEEPS), None
    else:
        bounds, proof, sweeps, is_close = _by_sweeps(chain, close)
        found = bounds, proof
        if is_close:
            return found
    size = np.diff(sweeps.component_start).astype(np.float64)
    if found[0].is_wide and size.max() <= LARGEST_ELIMINATION and np.sum(size**3) <= MAX_PRODUCTS:
        found = _tighter(found, (by_elimination(chain, sweeps), None))
    if found[0].is_wide:
        found = _tighter(found, by_factorisation(chain))
    if not np.isfinite(found[0].width) and len(chain.rate) <= LARGEST_DECIMALS:
        return eliminated(chain), None
    return found


def _tighter(first: Total, second: Total) -> Total:
    return second if second[0].width < first[0].width else first


def settled_total(chain: Decisions, tolerance: float) -> FloatArray | None:
    """Expected totals without a proof: what sweeps settle to, or None if they do not."""
    sweeps = Sweeps.of_chain(chain.choice_outcomes, chain.target, chain.probability)
    value, rounds = sweeps.run(chain, np.zeros(len(chain.rate)), tolerance)
    return value if rounds <= MAX_ROUNDS and np.isfinite(value).all() else None


def variances(chain: Transitions, mean: Bounds) -> FloatArray:
    """The variance of the total cost from every node, given the mean; infinite where that is.

    With the surprise d = c + V(x') - V(x) of a step, whose mean is 0, it is the expected total of
    d^2: a non-negative rate, so nothing cancels. Nobody asks for bounds on it, so that sweeps that
    stop at the tenth digit or beyond do; this takes a fraction of what the mean takes.
    """
    proper, target = np.isfinite(mean.value), chain.target
    cost = np.where(proper, mean.value, 0.0)
    if not proper.all():
        # What may never arrive counts as arrived at once: it is not asked for, and nothing that
        # arrives leads there.
        target = np.where(proper[chain.source], target, chain.n).astype(np.int32)
    cost_to_go = chain.cost + np.append(cost, 0.0)[target]
    cost_to_go = np.where(proper[chain.source], cost_to_go, 0.0)
    # A step is compared with the mean of its row, which is V but for rounding: what is sure varies
    # by nothing.
    row_mean = chain.sums(chain.probability * cost_to_go)
    with np.errstate(over="ignore"):
        surprise = (cost_to_go - row_mean[chain.source]) ** 2
    rows = chain.row_start, target, chain.probability, chain.sums(chain.probability * surprise)
    # Where V was not found by sweeps, changes get small long before values are right.
    found = settled_total(chain_of(*rows), SAME_VALUE) if mean.method == SWEEPS else None
    return np.where(proper, expected_total(*rows).value if found is None else found, np.inf)


def _by_sweeps(chain: Decisions, close: float) -> tuple[Bounds, Certificate | None, Sweeps, bool]:
    """What sweeps find, what weights prove of it unless shares are `close`, the order of the
    sweeps, and whether nobody need look for a better method.
    """
    sweeps = Sweeps.of_chain(chain.choice_outcomes, chain.target, chain.probability)
    value, rounds = sweeps.run(chain, np.zeros(len(chain.rate)), SETTLED)
    if rounds > MAX_ROUNDS or not (value.min() >= 0.0 and value.max() < np.inf):
        return unproved(np.zeros(len(value)), SWEEPS), None, sweeps, False
    below, above = relative_bounds(chain, np.append(value, 0.0), chain.state_choices)
    shares = below + above
    found = within_shares(value, below, above, SWEEPS) if shares <= max(close, WIDE) else None
    if found is not None and shares <= close:
        return found, None, sweeps, True
    other, proof = proof_by_sweeps(chain, sweeps, value)
    # On small chains both proofs take no time, and either may be closer.
    both = other if found is None else narrower(found, other)
    return both, proof, sweeps, not other.is_wide


def _bounded(value: FloatArray, proof: Certificate | None, method: str) -> Total:
    return (unproved(value, method) if proof is None else bounds_by(proof, method)), proof


def proof_by_sweeps(chain: Decisions, sweeps: Sweeps, value: FloatArray) -> Total:
    """What weights prove of these values, where sweeps sum them up; they need be quick,
    not exact.
    """
    across, size = sweeps.across, np.abs(value)
    rough, fine = (_SweepSolver(chain, sweeps, size, *how) for how in (ROUGHLY, FINELY))
    found = _bounded(value, proved(chain, value, rough, across), SWEEPS)
    if not across.is_wide(found[0]):
        return found
    finely = _bounded(value, proved(chain, value, fine, across), SWEEPS)
    return finely if across.width(finely[0]) < across.width(found[0]) else found


def bounds_by(proof: Certificate, method: str) -> Bounds:
    """What a proof says."""
    return bounds_within(proof.value, proof.fine, proof.slack, method)


class _SweepSolver:
    """Solves x = c + P x by sweeps, which take positive numbers: a little of c beside the weights,
    whose total was asked for first.
    """

    def __init__(
        self, chain: Decisions, sweeps: Sweeps, first: FloatArray, weights: float, missing: float
    ) -> None:
        self.chain, self.sweeps = chain, sweeps
        self.first, self.weights = first, weights
        self.missing = missing
        self.total: FloatArray | None = None

    def __call__(self, constant: FloatArray, weight: FloatArray) -> FloatArray | None:
        if self.total is None:
            self.total = self._summed(weight, self.first + weight, self.weights)
            return self.total
        share = 2.0 * self.sweeps.across.most(float(np.max(np.abs(constant) / weight, initial=0.0)))
        if share == 0.0:
            return np.zeros_like(constant)
        found = self._summed(constant / share + weight, self.total, self.missing)
        return None if found is None else share * (found - self.total)

    def _summed(self, rate: FloatArray, first: FloatArray, tolerance: float) -> FloatArray | None:
        total, rounds = self.sweeps.run(
            self.chain._replace(rate=next(frozen(rate))), first, tolerance
        )
        settled = rounds <= MAX_ROUNDS and np.isfinite(total).all()
        return total if self.sweeps.across.every(settled) else None


def by_elimination(chain: Decisions, sweeps: Sweeps) -> Bounds:
    """One component after the other; in numbers of any size where products fall below
    the doubles.
    """
    n = len(chain.rate)
    # The last of a component goes first: nodes with few neighbours, so that hubs do not fill the
    # matrix early.
    degree = np.diff(chain.choice_outcomes) + np.bincount(chain.target, minlength=n + 1)[:n]
    component = np.empty(n, dtype=np.int64)
    component[sweeps.order] = owners(sweeps.component_start)
    order = np.lexsort((-degree, component))
    value, error = np.zeros(n + 1), np.zeros(n + 1)
    if not eliminate(order, sweeps.component_start, chain, value, error):
        return eliminated(chain)
    value, error = value[:-1], error[:-1]
    if not np.all(np.isfinite(value)) or not np.all(error < 0.5):
        return unproved(value, "elimination")
    error = error / (1 - error)
    return within_shares(value, error, error, "elimination")


def by_factorisation(chain: Decisions) -> Total:
    """By a sparse LU, where its factors do not fill too much."""
    from scipy.sparse import csgraph, csr_array, eye_array, linalg

    n, inside = len(chain.rate), chain.target < len(chain.rate)
    source = owners(chain.choice_outcomes)[inside]
    matrix = csr_array((chain.probability[inside], (source, chain.target[inside])), shape=(n, n))
    number = np.empty(n, dtype=np.int64)
    number[csgraph.reverse_cuthill_mckee(matrix)] = np.arange(n)
    # How far from the diagonal the matrix reaches in this order is what its factors fill, per row,
    # at the worst.
    band = int(np.abs(number[source] - number[chain.target[inside]]).max(initial=0))
    failed = unproved(np.zeros(n), "factorisation"), None
    if n * band > LARGEST_FACTORS:
        return failed
    try:
        factors = linalg.splu((eye_array(n, format="csr") - matrix).tocsc())
    except (RuntimeError, MemoryError):
        return failed
    with np.errstate(invalid="ignore", over="ignore"):  # sums beyond the floats are no values
        value = factors.solve(chain.rate)
        value += factors.solve(chain.rate - value + matrix @ value)
    if not (np.all(np.isfinite(value)) and value.min() >= 0):
        return failed
    return _bounded(
        value, proved(chain, value, lambda constant, _: factors.solve(constant)), "factorisation"
    )
