"""Expected totals of an absorbing chain, with bounds that are proved and not merely observed.

A chain has transient nodes 0 .. n-1; a target >= n means absorbed. With `rate` r >= 0 collected at each visit, the expected total is the
least solution of v = r + P v. The expected cost of a policy, its expected number of steps and the probability of ending in a trap all
have this form.

A small residual is no error bound: on a chain that needs 10^6 steps a residual of 10^-10 may hide an error of 10^-4. So every answer is a
`Bracket` whose `lower` and `upper` are verified, by one of two proofs:

- *Sweeps* (Gauss-Seidel by strong component) find v and the expected steps t together; if v is off by the defect e at most and t
decreases by the
  drift d at least, then |V - v| <= max(e / d) t. With all rounding charged to the bad side this is a proof, and it is tight for the
  chains that arise from planning: about 2^-53 times the number of steps.
- *Elimination* without subtraction carries a relative error bound of its own that does not depend on the conditioning. It rescues the
chains
  that break sweeps and sparse LU alike (Haddad and Monmege's takes 2^N steps).

Between the two, for large chains that mix slowly, a sparse LU provides v and t, and the same proof as for the sweeps accepts or refuses
them. Bounds hold for every chain whose probabilities are within 2 units in the last place of the given ones.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import strong_components
from tailpath.errors import TailpathWarning
from tailpath.kernels.absorption import certify, eliminate, sweep_components
from tailpath.model.ragged import offsets_of

FloatArray = NDArray[np.float64]
#: Sweeps over one component before it counts as slow.
MOST_SWEEPS = 2_000
#: A proved relative error above this makes the solver look for a better method.
WIDE = 1e-11
#: Components beyond this size are not eliminated: the dense elimination takes m^3 / 3 operations.
LARGEST_ELIMINATION = 2_500


@dataclass(frozen=True, eq=False)
class Bracket:
    """Values per node with verified bounds: lower <= true value <= upper. `method` says which proof holds."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    method: str


def expected_total(
    row_start: NDArray[Any],
    target: NDArray[Any],
    probability: FloatArray,
    rate: FloatArray,
    distance: NDArray[Any] | None = None,
    leak: FloatArray | None = None,
) -> Bracket:
    """The expected total of `rate` until absorption, from every node. Absorption must be sure from all of them.

    `distance` (any number that tends to fall towards the exit) orders the sweeps inside a component; it affects speed only.
    `leak[x]` is a probability of absorption that the rows do not list, such as 1 - gamma for a discount.
    """
    n = len(rate)
    if leak is None:
        leak = np.zeros(n)
    if n == 0:
        empty = np.zeros(0)
        return Bracket(empty, empty, empty, "sweeps")
    component, count = strong_components(row_start, target)
    part_start = offsets_of(component, count)
    bracket = _by_sweeps(component, part_start, row_start, target, probability, rate, leak, distance)
    if is_wide(bracket.lower, bracket.upper) and np.diff(part_start).max() <= LARGEST_ELIMINATION:
        bracket = _tighter(bracket, _by_elimination(component, part_start, row_start, target, probability, rate, leak))
    if is_wide(bracket.lower, bracket.upper):
        bracket = _tighter(bracket, _by_factorisation(row_start, target, probability, rate))
    if not np.all(np.isfinite(bracket.upper)):
        warnings.warn(
            "no upper bound on an expected total could be proved; the chain mixes too slowly for its size", TailpathWarning, stacklevel=2
        )
    return bracket


def is_wide(lower: FloatArray, upper: FloatArray) -> bool:
    """Whether bounds are worth a better method. Values far below the largest are allowed the width that comes with its rounding."""
    scale = lower + 1e-3 * lower.max(initial=0.0)
    return not bool(np.all(upper - lower <= 2 * WIDE * scale))


def _tighter(a: Bracket, b: Bracket) -> Bracket:
    """The one with the smaller worst relative width; a width that is not a number loses."""
    width = [float(np.nan_to_num(np.max((x.upper - x.lower) / np.maximum(x.value, 1e-300)), nan=np.inf)) for x in (a, b)]
    return b if width[1] < width[0] else a


def _proved(
    value: FloatArray,
    steps: FloatArray,
    row_start: NDArray[Any],
    target: NDArray[Any],
    probability: FloatArray,
    rate: FloatArray,
    method: str,
) -> Bracket:
    eps = certify(row_start, target, probability, rate, value, steps)
    if not np.isfinite(eps):
        return Bracket(value, np.zeros_like(value), np.full_like(value, np.inf), method)
    slack = (eps * steps) * (1 + 1e-15)
    return Bracket(value, np.maximum(np.nextafter(value - slack, -np.inf), 0.0), np.nextafter(value + slack, np.inf), method)


def _by_sweeps(
    component: NDArray[Any],
    part_start: NDArray[Any],
    row_start: NDArray[Any],
    target: NDArray[Any],
    probability: FloatArray,
    rate: FloatArray,
    leak: FloatArray,
    distance: NDArray[Any] | None,
) -> Bracket:
    order = np.lexsort((distance, component)) if distance is not None else np.argsort(component, kind="stable")
    value, steps = np.zeros(len(rate)), np.zeros(len(rate))
    sweeps = sweep_components(order, part_start, row_start, target, probability, rate, leak, MOST_SWEEPS, value, steps)
    if sweeps > MOST_SWEEPS:
        return Bracket(value, np.zeros_like(value), np.full_like(value, np.inf), "sweeps")
    return _proved(value, steps, row_start, target, probability, rate, "sweeps")


def _by_elimination(
    component: NDArray[Any],
    part_start: NDArray[Any],
    row_start: NDArray[Any],
    target: NDArray[Any],
    probability: FloatArray,
    rate: FloatArray,
    leak: FloatArray,
) -> Bracket:
    n = len(rate)
    # The last of a component goes first: nodes with few neighbours, so that hubs do not fill the matrix early.
    degree = np.diff(row_start) + np.bincount(target[target < n], minlength=n)
    order = np.lexsort((-degree, component))
    value, error = np.zeros(n), np.zeros(n)
    eliminate(order, part_start, row_start, target, probability, rate, leak, value, error)
    if not np.all(np.isfinite(value)) or not np.all(error < 0.5):
        return Bracket(value, np.zeros_like(value), np.full_like(value, np.inf), "elimination")
    error = error / (1 - error)
    return Bracket(value, value * (1 - error) * (1 - 1e-15), value * (1 + error) * (1 + 1e-15), "elimination")


def _by_factorisation(row_start: NDArray[Any], target: NDArray[Any], probability: FloatArray, rate: FloatArray) -> Bracket:
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.linalg import splu

    n = len(rate)
    inside = target < n
    source = np.repeat(np.arange(n), np.diff(row_start))[inside]
    chain = csr_array((probability[inside], (source, target[inside])), shape=(n, n))
    failed = Bracket(np.zeros(n), np.zeros(n), np.full(n, np.inf), "factorisation")
    try:
        factors = splu((eye_array(n, format="csr") - chain).tocsc())
    except (RuntimeError, MemoryError):
        return failed
    value, steps = factors.solve(rate), factors.solve(np.ones(n))
    for _ in range(2):
        value += factors.solve(rate - value + chain @ value)
        steps += factors.solve(1.0 - steps + chain @ steps)
    if not (np.all(np.isfinite(value)) and np.all(np.isfinite(steps)) and value.min() >= 0 and steps.min() > 0):
        return failed
    return _proved(value, steps, row_start, target, probability, rate, "factorisation")
