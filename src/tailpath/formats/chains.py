"""A cost chain as a model with one choice in each state, for the formats of Storm and PRISM, which
then hold a DTMC. State x is node x of the chain, and the last node is the goal.
"""

from __future__ import annotations

import numpy as np

from tailpath.graph import owners
from tailpath.model.outcomes import arrays_from_rows
from tailpath.model.ssp import SSP
from tailpath.policies.chain import CostChain


def chain_model(chain: CostChain) -> SSP:
    node, n_states = owners(chain.row_start), chain.n + 1
    columns = np.zeros_like(node), chain.target, chain.probability, chain.cost
    return SSP(
        **arrays_from_rows(node, *columns, n_states, merge=True),
        is_goal=np.arange(n_states) == chain.n,
        start_index=chain.start,
        states=range(n_states),
        actions=range(1),
        exact_unit=chain.ssp.exact_unit,
    )
