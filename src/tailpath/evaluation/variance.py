"""The variance of the cost to go from every node of a chain.

With the surprise d = c + V(x') - V(x) of a step, whose mean is 0, the variance is the expected total of d^2: a non-negative rate, so nothing
cancels. Nobody asks for bounds on it, so that sweeps that stop at the tenth digit or beyond do; this takes a fraction of what V_mean takes.
"""

from __future__ import annotations

import numpy as np

from tailpath.analysis.absorption import expected_total, settled_total
from tailpath.kernels.absorption import Chain
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
    arrows, leak = (chain.row_start, chain.target, chain.probability), np.zeros(chain.n)
    if not proper.all():
        # What may never arrive counts as arrived at once: it is not asked for, and nothing that arrives leads there.
        arrows, leak = (*arrows[:2], np.where(proper[chain.source], chain.probability, 0.0)), np.where(proper, 0.0, 1.0)
        cost = np.where(proper, cost, 0.0)
    value = np.append(cost, 0.0)
    with np.errstate(over="ignore"):
        surprise = (chain.cost + value[chain.target] - value[chain.source]) ** 2
    rate = chain.sums(arrows[2] * surprise)
    # News travels from low to high values: in this order few sweeps do.
    variance = settled_total(Chain(*arrows, rate, leak), cost, SETTLED)
    if variance is None:
        variance = expected_total(*arrows, rate, cost, leak).value
    return np.where(proper, variance, np.inf)
