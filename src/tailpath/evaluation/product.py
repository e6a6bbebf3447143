"""Model x policy where probabilities are intervals: a chain whose transitions have intervals,
that is, a model with one choice in every node.

A node at which the policy draws its action leads, at no cost, to one node for each action, where
nature decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.policies.chain import CostChain


def product_of(model: IntervalSSP, chain: CostChain) -> tuple[IntervalSSP, NDArray[np.int64]]:
    """The chain as a model with intervals, and the outcome behind each of its own."""
    assert chain.outcome is not None
    ssp = model.inside
    choice = ssp.outcome_choice[chain.outcome].astype(np.int64)
    # The transitions of a node stand by choice; of several choices each gets a node of its own.
    new = np.append(True, (np.diff(choice) != 0) | (np.diff(chain.source) != 0))[: len(choice)]
    group = np.cumsum(new) - 1
    owner = chain.source[new].astype(np.int64)
    count = np.bincount(owner, minlength=chain.n)
    drawn = count[owner] > 1
    number = np.where(drawn, chain.n + np.cumsum(drawn) - 1, owner)
    weight = np.bincount(group, chain.probability, len(owner)) / np.bincount(
        group, ssp.outcome_probability[chain.outcome], len(owner)
    )
    nodes = chain.n + int(drawn.sum())
    source = np.append(number[group], owner[drawn])
    target = np.append(np.where(chain.target < chain.n, chain.target, nodes), number[drawn])
    outcome = np.append(chain.outcome, np.full(int(drawn.sum()), -1))
    probability = np.append(ssp.outcome_probability[chain.outcome], weight[drawn])
    cost = np.append(chain.cost, np.zeros(int(drawn.sum())))
    order = np.argsort(source, kind="stable")
    low, high = (np.append(end[chain.outcome], weight[drawn]) for end in (model.low, model.high))
    inside = SSP(
        state_choices=np.append(np.arange(nodes + 1), nodes),
        choice_outcomes=np.append(0, np.cumsum(np.bincount(source, minlength=nodes))),
        outcome_target=target[order],
        outcome_probability=probability[order],
        outcome_cost=cost[order],
        choice_action=np.zeros(nodes, dtype=np.int32),
        is_goal=np.append(np.zeros(nodes, dtype=np.bool_), True),
        start_index=chain.start if chain.start < chain.n else nodes,
        states=range(nodes + 1),
        actions=("go on",),
        exact_unit=chain.unit,
    )
    return IntervalSSP(inside, low[order], high[order]), outcome[order]
