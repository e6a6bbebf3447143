"""Cycles of cost 0 that leak: solved as small linear systems before the search, so that no level is
unrolled for ever.

Inside a strong component of zero-cost edges a walker moves at no cost until it takes an edge out of
it. Let Q hold the probabilities inside and R those of leaving, a column for each target and cost;
then (I - Q)^-1 R says with which probability a walker leaves by which of them. Replacing the rows
of the component by these changes neither the distribution of the total cost nor V_mean nor V_min,
and leaves no cycle of cost 0. Only nodes where the component is entered need a row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.elimination import eliminate_dense
from tailpath.dp.rational import eliminated_exits
from tailpath.errors import ModelError
from tailpath.graph import offsets_of
from tailpath.kernels.rounding import FIXED, ROW, UNIT
from tailpath.model.builders import merge_equal_outcomes
from tailpath.policies.chain import CostChain


def without_zero_cost_cycles(chain: CostChain) -> tuple[CostChain, float]:
    """An equivalent chain whose zero-cost edges have no cycle, and what that may have added to the
    relative error of a probability.
    """
    zero_cost = (
        (chain.cost == 0) & (chain.target < chain.n) & np.append(chain.arrives, False)[chain.target]
    )
    component, cyclic = chain.only(zero_cost).cycles()
    if not cyclic.any():
        return chain, 0.0

    inside = zero_cost & chain.within(component)
    error = 0.0
    # A state that may stay at no cost is common, and needs no linear system: its other edges share
    # all of the probability.
    loop = cyclic & (np.bincount(component, minlength=len(cyclic)) == 1)
    stays = inside & loop[component[chain.source]]
    others = chain.without_self_loops(stays)
    edge = np.flatnonzero(~stays)
    alone = loop[component[others.source]]
    if alone.any():
        error = ((ROW + 1) * int(np.bincount(others.source[alone]).max()) + FIXED + 2) * UNIT
    mask = ~(cyclic & ~loop)[component[others.source]]
    pieces = [(others.source[mask], edge[mask], others.probability[mask])]
    edges = np.flatnonzero((cyclic & ~loop)[component[chain.source]])
    label = component[chain.source[edges]]
    edges = edges[np.argsort(label, kind="stable")]
    ends = np.cumsum(np.bincount(label, minlength=len(cyclic))[cyclic & ~loop])
    position = np.full(chain.n, -1)
    entered = np.zeros(chain.n + 1, dtype=np.bool_)
    entered[chain.start] = True
    entered[chain.target[~inside]] = True
    for of_members in np.split(edges, ends[:-1]) if edges.size else ():
        rows, leaving, probability, part_error = _exit_rows(
            chain, of_members, inside, entered, position
        )
        pieces.append((rows, leaving, probability))
        error = max(error, part_error)
    source, edge, probability = (np.concatenate(parts) for parts in zip(*pieces))
    price: NDArray[Any] = chain.cost if chain.level is None else chain.level
    source, target, probability, price = merge_equal_outcomes(
        source, chain.target[edge], probability, price[edge]
    )
    cost, level = (price, None) if chain.level is None else (price * float(chain.unit or 1), price)
    row_start = offsets_of(source, chain.n)
    return (
        replace(
            chain,
            row_start=row_start,
            target=target,
            probability=probability,
            cost=cost,
            level=level,
            outcome=None,
        ),
        error,
    )


def _exit_rows(
    chain: CostChain,
    of_members: NDArray[Any],
    inside: NDArray[np.bool_],
    entered: NDArray[np.bool_],
    position: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], float]:
    """New rows for the nodes of one component: (node, an old edge of the same target and cost,
    probability) triples, and their relative error. `position` is a scratch array over all nodes.
    """
    inner, outer = of_members[inside[of_members]], of_members[~inside[of_members]]
    # The last goes first: nodes with few neighbours, so that hubs do not fill the matrix early.
    members, degree = np.unique(
        np.concatenate((chain.source[inner], chain.target[inner])), return_counts=True
    )
    members = members[np.argsort(-degree, kind="stable")]
    m = len(members)
    position[members] = np.arange(m)
    exits = np.stack((chain.target[outer].astype(np.float64), chain.cost[outer]))
    _, edge, column = np.unique(exits, axis=1, return_index=True, return_inverse=True)
    q, r = np.zeros((m, m)), np.zeros((m, len(edge)))
    steps = position[chain.source[inner]], position[chain.target[inner]], chain.probability[inner]
    exit_ = position[chain.source[outer]], column.ravel(), chain.probability[outer]
    np.add.at(q, steps[:2], steps[2])
    np.add.at(r, exit_[:2], exit_[2])
    longest = int(np.bincount(position[chain.source[of_members]]).max())
    error = (2 * m + 2) * (((ROW + 1) * longest + FIXED + 3) * UNIT + chain.ssp.probability_error)
    solved, underflowed = eliminate_dense(q, r.sum(axis=1), r)
    if not underflowed and np.isfinite(solved):
        error += solved
    elif not eliminated_exits(steps, exit_, r):
        raise ModelError(
            f"from {chain.label(int(members[0]))} runs can go around at no cost for too long to"
            " compute with"
        )
    rows, columns = np.nonzero(r * entered[members, None])
    return members[rows], outer[edge[columns]], r[rows, columns], error
