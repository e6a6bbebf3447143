"""A cost chain as a model with one choice in each state, for the formats of Storm and PRISM, which
then hold a DTMC.

State x is node x of the chain, and the last node is the goal. Where the steps of a node differ in
cost, each leads to an auxiliary state for its target and its cost, which pays and goes on: such
files have costs on choices. The auxiliary states come after the goal.
"""

from __future__ import annotations

import numpy as np

from tailpath.graph import Array, owners
from tailpath.model.outcomes import arrays_from_rows
from tailpath.model.ssp import SSP
from tailpath.policies.chain import CostChain


def chain_model(chain: CostChain) -> SSP:
    node = owners(chain.row_start)
    target, cost = chain.target.astype(np.int64), chain.cost
    moved = _differs(chain)[node] & (cost != 0)
    pairs = np.stack([target[moved].astype(np.float64), cost[moved]], axis=1)
    auxiliary, number = np.unique(pairs, axis=0, return_inverse=True)
    target[moved] = chain.n + 1 + number.ravel()
    first = np.where(moved, 0.0, cost)
    n_states = chain.n + 1 + len(auxiliary)
    state = np.append(node, np.arange(chain.n + 1, n_states))
    return SSP(
        **arrays_from_rows(
            state,
            np.zeros(len(state), dtype=np.int64),
            np.append(target, auxiliary[:, 0].astype(np.int64)),
            np.append(chain.probability, np.ones(len(auxiliary))),
            np.append(first, auxiliary[:, 1]),
            n_states,
            merge=True,
        ),
        is_goal=np.arange(n_states) == chain.n,
        start_index=chain.start,
        states=range(n_states),
        actions=range(1),
        exact_unit=chain.ssp.exact_unit,
    )


def _differs(chain: CostChain) -> Array:
    """Whether the steps of each node differ in cost."""
    node = owners(chain.row_start)
    first = chain.cost[np.minimum(chain.row_start[:-1], len(chain.cost) - 1)]
    return np.bincount(node, chain.cost != first[node], minlength=chain.n) > 0
