"""Expected totals of an absorbing chain, in plain doubles.

A chain has transient nodes 0 .. n - 1, and n is where it ends. With `rate` r collected at each
visit, the expected total is the solution of v = r + P v. The expected cost of a policy, its
expected number of steps and the probability of ending in a trap all have this form.

1. *Sweeps* (`sweeps.py`) find v where the chain mixes quickly.
2. Where they settle too slowly, *elimination* without subtraction (`elimination.py`) finds it to a
   few roundings however long runs take (2^N steps in Haddad and Monmege's chain), on small
   components.
3. A *sparse LU* finds v on large chains that mix slowly and are narrow.

How far v may be off, `certify/values.py` proves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.dp.elimination import eliminate
from tailpath.dp.sweeps import MAX_ROUNDS, Sweeps
from tailpath.graph import Array, FloatArray, Transitions, owners
from tailpath.kernels.rounding import SETTLED

#: The largest component that is eliminated, and the most products of all: a dense elimination of m
#: nodes takes m^3 / 3.
LARGEST_ELIMINATION, MAX_PRODUCTS = 2_500, 2_500**3
#: Nodes times band beyond which a chain is not factorised: the factors of a graph without small
#: separators would fill gigabytes.
LARGEST_FACTORS = 200_000_000
#: Components up to this size are factorised one after the other, in the order of the nodes.
SMALL_COMPONENT = 500
#: Diagonal entries are pivots if they are this share of the largest of their column: what leads to
#: the end surely needs no other.
PIVOT = 1e-3
#: The method of totals that sweeps found.
SWEEPS = "sweeps"


def total(
    rows: Transitions,
    rate: FloatArray,
    *,
    directly: bool = False,
    tolerance: float = SETTLED,
    outwards: Array | None = None,
) -> tuple[FloatArray, str]:
    """The expected total of `rate` (n,) from every node of a chain, and the method that found it.

    The end must be reached with probability 1; where the probability of leaving a component
    underflows, totals are infinite. `directly` skips the sweeps, which otherwise come first and
    stop when they move no value by more than `tolerance`, relatively. `outwards` has the nodes
    from the end, if an order is known.
    """
    sweeps = Sweeps.of_chain(rows, outwards)
    if not directly:
        value, rounds = sweeps.run(rows, rate, np.zeros(rows.n), tolerance)
        if rounds <= MAX_ROUNDS and np.isfinite(value).all():
            return value, SWEEPS
    found = _eliminated(rows, rate, sweeps) or factorised(rows, rate)
    if found is None and directly:
        return total(rows, rate, tolerance=tolerance, outwards=outwards)
    return (value, SWEEPS) if found is None else found


def _eliminated(
    rows: Transitions, rate: FloatArray, sweeps: Sweeps
) -> tuple[FloatArray, str] | None:
    size = np.diff(sweeps.component_start).astype(np.float64)
    if size.max(initial=0.0) > LARGEST_ELIMINATION or np.sum(size**3) > MAX_PRODUCTS:
        return None
    n = rows.n
    # The last of a component goes first: nodes with few neighbours, so that hubs do not fill the
    # matrix early.
    degree = np.diff(rows.row_start) + np.bincount(rows.target, minlength=n + 1)[:n]
    component = np.empty(n, dtype=np.int64)
    component[sweeps.order] = owners(sweeps.component_start)
    value = np.zeros(n + 1)
    order = np.lexsort((-degree, component))
    found = eliminate(order, sweeps.component_start, rows.columns(rate), value)
    return value[:-1] if found else np.full(n, np.inf), "elimination"


def factorised(rows: Transitions, rate: FloatArray) -> tuple[FloatArray, str] | None:
    """By a sparse LU, where its factors do not fill too much; rows may sum to more than 1."""
    from scipy.sparse import csgraph, csr_array, eye_array, linalg

    n, inside = rows.n, rows.target < rows.n
    source = rows.source[inside]
    matrix = csr_array((rows.probability[inside], (source, rows.target[inside])), shape=(n, n))
    number = np.empty(n, dtype=np.int64)
    number[csgraph.reverse_cuthill_mckee(matrix)] = np.arange(n)
    # How far from the diagonal the matrix reaches in this order is what its factors fill, per row,
    # at the worst.
    band = int(np.abs(number[source] - number[rows.target[inside]]).max(initial=0))
    if n * band > LARGEST_FACTORS:
        return None
    order: Any = slice(None)
    system, how = eye_array(n, format="csr") - matrix, "COLAMD"
    component, count = rows.components()
    if np.bincount(component, minlength=count).max(initial=0) <= SMALL_COMPONENT:
        # One after the other, against the edges, they fill nothing between them.
        order, how = np.argsort(component, kind="stable"), "NATURAL"
        system, matrix, rate = system[order][:, order], matrix[order][:, order], rate[order]
    try:
        factors = linalg.splu(system.tocsc(), permc_spec=how, diag_pivot_thresh=PIVOT)
    except (RuntimeError, MemoryError):
        return None
    value = np.empty_like(rate)
    with np.errstate(invalid="ignore", over="ignore"):  # sums beyond the floats are no values
        found = factors.solve(rate)
        value[order] = found + factors.solve(rate - found + matrix @ found)
    return (value, "factorisation") if np.isfinite(value).all() else None


def variances(chain: Transitions, mean: Any) -> FloatArray:
    """The variance of the total cost from every node, given the mean (its `value` and by which
    `method`); infinite where that is.

    With the surprise d = c + V(x') - V(x) of a step, whose mean is 0, it is the expected total of
    d^2: a non-negative rate, so nothing cancels.
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
    rate = chain.sums(chain.probability * surprise)
    found, _ = total(chain.replaced(target=target), rate, directly=mean.method != SWEEPS)
    return np.where(proper, found, np.inf)
