"""One run drawn from those beyond the threshold, for policies whose single runs are too improbable
to be told.

A run of thousands of random steps has a probability below every double, though all runs beyond VaR
together have one of alpha. So instead of the most probable run one is drawn, exactly from the law
of the runs that cost more than VaR: at (x, r) of `beyond.py` an edge is taken with probability p
chance(y, r - c) / chance(x, r), and past the threshold with probability p.
"""

from __future__ import annotations

import numpy as np

from tailpath.show.beyond import Beyond

#: Steps after which a run is given up.
MOST_STEPS = 500_000


def typical_run(beyond: Beyond, seed: int = 0) -> list[int] | None:
    """The edges of a run that ends beyond the threshold; None where there is none, or it takes too
    long to tell.
    """
    chain, remaining = beyond.chain, beyond.threshold
    node, edges = min(chain.start, chain.n), list[int]()
    if beyond.missed_only or not beyond.chance[remaining, node] > 0:
        return None
    random = np.random.default_rng(seed)
    certain = np.ones(chain.n + 1)
    while not beyond.ends[node]:
        if len(edges) >= MOST_STEPS:
            return None
        ways = np.arange(chain.row_start[node], chain.row_start[node + 1])
        weight = (
            chain.probability[ways]
            if remaining < 0
            else chain.probability[ways] * beyond.after(beyond.chance, certain, remaining, ways)
        )
        total = np.cumsum(weight)
        if not total[-1] > 0:  # a chance that is too small to go on with
            return None
        edge = int(ways[np.searchsorted(total, random.random() * total[-1], side="right")])
        edges.append(edge)
        node, remaining = int(chain.target[edge]), remaining - int(beyond.level[edge])
    return edges
