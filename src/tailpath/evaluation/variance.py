"""The variance of the cost to go from every node of a chain.

With the surprise d = c + V(x') - V(x) of a step, whose mean is 0, the variance is the expected total of d^2: a non-negative rate, so nothing
cancels. Nobody asks for bounds on it, so that sweeps that stop at the tenth digit or beyond do; this takes a fraction of what V_mean takes.
"""

from __future__ import annotations

import numpy as np

from tailpath.analysis.absorption import expected_total
from tailpath.analysis.reachability import strong_components
from tailpath.kernels.absorption import Chain, sweep_values
from tailpath.model.ragged import offsets_of
from tailpath.model.ssp import FloatArray
from tailpath.policies.chain import CostChain

#: Where sweeps end: the relative change of the worst node, and how many of them at most before other methods are tried.
SETTLED = 1e-13
MOST_SWEEPS = 2_000


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
    surprise = (chain.cost + value[chain.target] - value[chain.source]) ** 2
    rate = np.bincount(chain.source, weights=arrows[2] * surprise, minlength=chain.n).astype(np.float64)
    component, count = strong_components(chain.row_start, chain.target)
    # News travels from low to high values: in this order few sweeps do.
    order = np.lexsort((cost, component))
    variance = np.zeros(chain.n)
    if sweep_values(order, offsets_of(component, count), Chain(*arrows, rate, leak), SETTLED, MOST_SWEEPS, variance) > MOST_SWEEPS:
        variance = expected_total(*arrows, rate, cost, leak).value
    return np.where(proper, variance, np.inf)
