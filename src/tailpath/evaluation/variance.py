"""The variance of the cost to go from every node of a chain.

With the surprise d = c + V(x') - V(x) of a step, whose mean is 0, the variance is the expected
total of d^2: a non-negative rate, so nothing cancels. Nobody asks for bounds on it, so that sweeps
that stop at the tenth digit or beyond do; this takes a fraction of what V_mean takes.
"""

from __future__ import annotations

import numpy as np

from tailpath.dp.expected import SWEEPS, chain_of, expected_total, settled_total
from tailpath.model.ssp import FloatArray
from tailpath.policies.chain import CostChain

#: Where sweeps end: the relative change of the worst node.
SETTLED = 1e-13


def standard_deviation(chain: CostChain) -> float:
    """That of the cost from the start of a chain."""
    return float(np.sqrt(np.append(node_variance(chain), 0.0)[chain.start]))


def node_variance(chain: CostChain) -> FloatArray:
    """The variance per node; infinite where the goal may be missed."""
    cost = chain.expected_cost.value
    proper = np.isfinite(cost)
    target = chain.target
    if not proper.all():
        # What may never arrive counts as arrived at once: it is not asked for, and nothing that
        # arrives leads there.
        target = np.where(proper[chain.source], target, chain.n).astype(np.int32)
        cost = np.where(proper, cost, 0.0)
    value = np.append(cost, 0.0)
    cost_to_go = np.where(proper[chain.source], chain.cost + value[target], 0.0)
    # A step is compared with the mean of its row, which is V_mean but for rounding: what is sure
    # varies by nothing.
    row_mean = chain.sums(chain.probability * cost_to_go)
    with np.errstate(over="ignore"):
        surprise = (cost_to_go - row_mean[chain.source]) ** 2
    rate = chain.sums(chain.probability * surprise)
    rows = chain.row_start, target, chain.probability, rate
    # Where V_mean was not found by sweeps, changes get small long before values are right.
    variance = (
        settled_total(chain_of(*rows), SETTLED) if chain.expected_cost.method == SWEEPS else None
    )
    return np.where(proper, expected_total(*rows).value if variance is None else variance, np.inf)
