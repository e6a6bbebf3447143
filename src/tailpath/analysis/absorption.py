"""Expected totals of an absorbing chain, with bounds that are proved and not merely observed.

A chain has transient nodes 0 .. n-1; a target >= n means absorbed. With `rate` r >= 0 collected at each visit, the expected total is the
least solution of v = r + P v. The expected cost of a policy, its expected number of steps and the probability of ending in a trap all
have this form.

A small residual is no error bound: on a chain that needs 10^6 steps a residual of 10^-10 may hide an error of 10^-4. So every answer is a
`Bracket` whose `lower` and `upper` are verified, by one of two proofs:

- *Sweeps* find v: quick passes along the likeliest ways (`kernels/passes.py`), and where they do not settle, `value_iteration` by components.
  If every rate is positive, the defect of each node compared with its rate proves a share by which v may be off. Otherwise sweeps find the
  expected steps t, too; if v is off by the defect e at most and t decreases by the drift d at least, then |V - v| <= max(e / d) t. With all
  rounding charged to the bad side both are proofs, and tight for the chains that arise from planning.
- *Elimination* without subtraction carries a relative error bound of its own that does not depend on the conditioning. It rescues the
  chains that break sweeps and sparse LU alike (Haddad and Monmege's takes 2^N steps).

Between the two, for large chains that mix slowly, a sparse LU provides v and t, and the same proof as for the sweeps accepts or refuses
them. Bounds hold for the decimals that probabilities and rates stand for, each row scaled to 1 (`kernels/rounding.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.value_iteration import MOST_ROUNDS, Sweeps
from tailpath.errors import TailpathWarning
from tailpath.kernels.absorption import Chain, certified_shares, certify, eliminate
from tailpath.kernels.bellman import Decisions
from tailpath.kernels.jit import frozen
from tailpath.kernels.passes import pass_over, room_for
from tailpath.kernels.rounding import UNIT
from tailpath.model.ragged import owners

FloatArray = NDArray[np.float64]
#: A proved relative error above this makes the solver look for a better method.
WIDE = 1e-11
#: Components beyond this size are not eliminated: the dense elimination takes m^3 / 3 operations.
LARGEST_ELIMINATION = 2_500
#: Nodes times band beyond which a chain is not factorised: the factors of a graph without small separators would fill gigabytes.
LARGEST_FACTORS = 200_000_000
#: A band up to which factorising is quicker than anything else.
NARROW = 16
#: Passes after which a chain counts as slow, and is left to sweeps by component.
MOST_PASSES = 160


@dataclass(frozen=True, eq=False)
class Bracket:
    """Values per node with verified bounds: lower <= true value <= upper. `method` says which proof holds.

    `share` is by how much the bounds of any node lie apart, relatively, where that was proved for all alike. Where the proof goes by expected
    steps, the true value lies within `slack` of value + `fine`, and as much again away from these the proof only gets easier.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    method: str
    share: float = np.inf
    fine: FloatArray | None = None
    slack: FloatArray | None = None


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
    chain = Chain(*frozen(row_start, target, probability, rate, np.zeros(len(rate)) if leak is None else leak))
    if len(rate) == 0:
        return Bracket(rate, rate, rate, "sweeps")
    bracket = _by_sweeps(chain)
    if bracket.share <= WIDE or not is_wide(bracket.lower, bracket.upper):
        return bracket
    bracket = _the_hard_way(chain, bracket, distance)
    if not np.all(np.isfinite(bracket.upper)):
        warnings.warn(
            "no upper bound on an expected total could be proved; the chain mixes too slowly for its size", TailpathWarning, stacklevel=2
        )
        # What elimination has left may be anything, even negative; what is told must lie inside of its bounds.
        return replace(bracket, value=np.clip(np.nan_to_num(bracket.value, posinf=np.inf), bracket.lower, bracket.upper))
    return bracket


def _the_hard_way(chain: Chain, bracket: Bracket, distance: NDArray[Any] | None) -> Bracket:
    """For chains that mix slowly: sweeps by component if quick ones did not settle, elimination, factorisation, until bounds are tight.

    Where chains are large and narrow, as a walk is, factors are found in no time, and come first.
    """
    if len(chain.rate) > LARGEST_ELIMINATION:
        bracket = _tighter(bracket, _by_factorisation(chain, NARROW * len(chain.rate)))
        if not is_wide(bracket.lower, bracket.upper):
            return bracket
    sweeps = _ordered_sweeps(chain, distance)
    if not np.all(np.isfinite(bracket.upper)):
        bracket = _by_sweeps(chain, sweeps)
    if is_wide(bracket.lower, bracket.upper) and np.diff(sweeps.part_start).max() <= LARGEST_ELIMINATION:
        bracket = _tighter(bracket, _by_elimination(chain, sweeps))
    return _tighter(bracket, _by_factorisation(chain)) if is_wide(bracket.lower, bracket.upper) else bracket


def _ordered_sweeps(chain: Chain, distance: NDArray[Any] | None) -> Sweeps:
    order = np.arange(len(chain.rate)) if distance is None else np.argsort(distance, kind="stable")
    return Sweeps.by(chain.row_start, chain.target, order)


def settled_total(chain: Chain, distance: NDArray[Any], tolerance: float) -> FloatArray | None:
    """Expected totals without a proof: what sweeps settle to, or None if they do not."""
    value, settled = swept(chain, tolerance)
    if not settled:
        value, settled = swept(chain, tolerance, _ordered_sweeps(chain, distance))
    return value if settled else None


def swept(chain: Chain, tolerance: float, sweeps: Sweeps | None = None) -> tuple[FloatArray, bool]:
    """Expected totals by sweeps in a given order, or else by quick passes along the likeliest ways, and whether they settled."""
    if sweeps is None:
        value = np.zeros(len(chain.rate))
        return value, pass_over(Chain(*frozen(*chain)), room_for(chain), tolerance, MOST_PASSES, value) <= MOST_PASSES
    each = Decisions(*frozen(np.arange(len(chain.rate) + 1), *chain[:4]))
    value, rounds = sweeps.run(sweeps.folded(each, chain.leak), chain.rate, tolerance)
    return value, rounds <= MOST_ROUNDS and value.min(initial=0.0) >= 0.0


def is_wide(lower: FloatArray, upper: FloatArray) -> bool:
    """Whether bounds are worth a better method. Values far below the largest are allowed the width that comes with its rounding."""
    scale = lower + 1e-3 * lower.max(initial=0.0)
    return not bool(np.all(upper - lower <= 2 * WIDE * scale))


def proved(
    chain: Chain, value: FloatArray, steps: FloatArray, method: str, solve: Callable[[FloatArray], FloatArray] | None = None, times: int = 2
) -> Bracket:
    """Bounds around values of a chain by way of its expected steps; neither needs to be exact.

    With a way to `solve` x = c + P x roughly, what the floats of the values have no room for is found, too, so many `times`: on long ways bounds
    are narrower then.
    """
    fine, gain = np.zeros(len(value)), np.empty(len(value))
    eps = certify(chain, value, fine, steps, gain)
    for _ in range(times):
        if solve is not None and np.isfinite(eps):
            finer = fine + solve(gain)
            better = certify(chain, value, finer, steps, gain)
            fine, eps = (finer, better) if better < eps else (fine, eps)
    if not np.isfinite(eps):
        return _unproved(value, method)
    slack = (eps * steps) * (1 + 1e-15)
    lower, upper = np.nextafter(value + (fine - slack), -np.inf), np.nextafter(value + (fine + slack), np.inf)
    return Bracket(value, np.maximum(lower, 0.0), upper, method, fine=fine, slack=slack)


def _unproved(value: FloatArray, method: str) -> Bracket:
    return Bracket(value, np.zeros_like(value), np.full_like(value, np.inf), method)


def _tighter(a: Bracket, b: Bracket) -> Bracket:
    """The one with the smaller worst relative width; a width that is not a number loses."""
    width = [float(np.nan_to_num(np.max((x.upper - x.lower) / np.maximum(x.value, 1e-300)), nan=np.inf)) for x in (a, b)]
    return b if width[1] < width[0] else a


def _by_sweeps(chain: Chain, sweeps: Sweeps | None = None) -> Bracket:
    value, settled = swept(chain, 4 * UNIT, sweeps)
    if not settled:
        return _unproved(value, "sweeps")
    share = certified_shares(chain, value)
    return shares(value, share, "sweeps") if sum(share) <= WIDE else by_steps(chain, sweeps, value, "sweeps")


def by_steps(chain: Chain, sweeps: Sweeps | None, value: FloatArray, method: str) -> Bracket:
    """Bounds around values by way of the expected steps, which are found on the way.

    A drift that is nearly 1 proves as much as one that is 1 exactly, so the steps need not settle to the last bit.
    """
    steps, settled = swept(chain._replace(rate=next(frozen(np.ones(len(value))))), 1e-9, sweeps)
    return proved(chain, value, steps, method) if settled else _unproved(value, method)


def shares(value: FloatArray, share: tuple[float, float], method: str) -> Bracket:
    """Bounds that lie the proved shares below and above."""
    low, high = share
    return Bracket(value, value * max(1 - low, 0.0) * (1 - 1e-15), value * (1 + high) * (1 + 1e-15), method, low + high)


def _by_elimination(chain: Chain, sweeps: Sweeps) -> Bracket:
    n = len(chain.rate)
    # The last of a component goes first: nodes with few neighbours, so that hubs do not fill the matrix early.
    degree = np.diff(chain.row_start) + np.bincount(chain.target[chain.target < n], minlength=n)
    component = np.empty(n, dtype=np.int64)
    component[sweeps.order] = owners(sweeps.part_start)
    order = np.lexsort((-degree, component))
    value, error = np.zeros(n), np.zeros(n)
    try:
        eliminate(order, sweeps.part_start, chain, value, error)
    except ZeroDivisionError:  # the chance to leave a component is smaller than any float
        return _unproved(np.zeros(n), "elimination")
    if not np.all(np.isfinite(value)) or not np.all(error < 0.5):
        return _unproved(value, "elimination")
    error = error / (1 - error)
    return Bracket(value, value * (1 - error) * (1 - 1e-15), value * (1 + error) * (1 + 1e-15), "elimination")


def _by_factorisation(chain: Chain, largest: int = LARGEST_FACTORS) -> Bracket:
    from scipy.sparse import csgraph, csr_array, eye_array, linalg

    n = len(chain.rate)
    inside = chain.target < n
    matrix = csr_array((chain.probability[inside], (owners(chain.row_start)[inside], chain.target[inside])), shape=(n, n))
    failed = _unproved(np.zeros(n), "factorisation")
    if n * _band(matrix, csgraph.reverse_cuthill_mckee(matrix)) > largest:
        return failed
    try:
        factors = linalg.splu((eye_array(n, format="csr") - matrix).tocsc())
    except (RuntimeError, MemoryError):
        return failed
    value, steps = factors.solve(chain.rate), factors.solve(np.ones(n))
    for _ in range(2):
        value += factors.solve(chain.rate - value + matrix @ value)
        steps += factors.solve(1.0 - steps + matrix @ steps)
    if not (np.all(np.isfinite(value)) and np.all(np.isfinite(steps)) and value.min() >= 0 and steps.min() > 0):
        return failed
    return proved(chain, value, steps, "factorisation", factors.solve)


def _band(matrix: Any, order: NDArray[Any]) -> int:
    """How far from the diagonal a matrix reaches when its nodes are numbered in this order: what its factors fill, per row, at the worst."""
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    entries = matrix.tocoo()
    return int(np.abs(number[entries.row] - number[entries.col]).max(initial=0))
