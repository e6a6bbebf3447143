"""How often a policy is where, and what is still to come from there.

*Visits.* The expected visits N of the nodes of a chain solve N = start + N P. A closed class, which
no run leaves again, counts as one node without edges: N is the probability of entering it.

*Risk to go.* E(x, w) = E[(cost to go - w)+] from node x satisfies E(x, w) = sum P E(y, w - c), with
V_mean(x) - w for w <= 0, and CVaR is the least w + E / alpha, for a mixture of nodes as for one. No
w above the best value found can win, which ends the search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.dp.budget_model import EXCESS
from tailpath.dp.budgets import node_values
from tailpath.dp.layout_builders import chain_layout
from tailpath.graph import Array, FloatArray, Transitions, positions
from tailpath.model.border import prepare
from tailpath.options import Progress
from tailpath.policies.chain import CostChain

#: Edges times levels beyond which a risk to go is not worth its time: about a minute.
MAX_WORK = 20_000_000_000
#: Values that are computed at a time.
AT_A_TIME = 2**20
#: What every level takes beside its edges, in edges; and the most values that are stored of the
#: levels still needed.
EACH_LEVEL, MAX_VALUES = 1_000, 2**27


def visits_of(chain: CostChain) -> FloatArray:
    """The expected visits of every node; in a closed class, the probability of entering it."""
    component, closed = chain.closed()
    inside = closed[component]
    _, first = np.unique(component, return_index=True)
    representative = np.where(inside, first[component], np.arange(chain.n))
    selected, node = np.unique(representative, return_inverse=True)
    rows = chain.only(~inside[chain.source] & (chain.target < chain.n))
    begin = (selected == representative[chain.start]).astype(np.float64)
    return np.asarray(expected_visits(rows.collapse(node, len(selected)), begin)[node])


def expected_visits(inner: Transitions, first: FloatArray) -> FloatArray:
    """The expected visits of every node, once runs start there with these masses."""
    factors = equations(inner.source, inner.target, inner.probability, inner.n)
    found: FloatArray = factors.solve(first, trans="T")
    return found


def cvar_to_go(
    chain: CostChain,
    node: Array,
    group: Array,
    weight: FloatArray,
    count: int,
    alpha: float,
    progress: Progress | None = None,
) -> FloatArray:
    """The CVaR of the cost to go for each of `count` groups: a run starts at `node[i]` with weight
    `weight[i]` among those of group `group[i]`.

    Infinite where the goal may be missed; not a number for a group without weight, a chain without
    a cost unit, or too many levels. Where some cost is negative, the nodes of a group are of one
    state.
    """
    border = prepare(chain.ssp)
    if border.moves:
        more = np.zeros(count)
        more[group] = border.potential[chain.state[node]]
        return cvar_to_go(chain.reduced, node, group, weight, count, alpha) + more
    result = np.full(count, np.nan)
    selected = weight > 0
    node, group = node[selected], group[selected]
    weight = weight[selected]
    if chain.level is None or chain.unit is None or node.size == 0:
        return result
    unit = float(chain.unit)
    mean = np.append(chain.expected_cost.value, 0.0) / unit
    total = np.bincount(group, weights=weight, minlength=count)
    share = weight / total[group]

    def of_groups(excess: FloatArray) -> FloatArray:
        return np.bincount(group, weights=share * excess[node], minlength=count).astype(np.float64)

    best = of_groups(mean) / alpha
    wanted = np.isfinite(best) & (total > 0)
    result[(total > 0) & ~wanted] = np.inf
    inside = np.isfinite(mean[:-1])  # they lead to one another, and to the goal
    if chain.level.max(initial=0) * chain.n > MAX_VALUES or not wanted.any():
        return result
    rows = chain.restrict(inside).renumber(positions(inside))
    layout, order = chain_layout(rows, mean[:-1][inside])
    node_of, excess = np.flatnonzero(inside)[order], np.zeros(chain.n + 1)
    w, needed = 0, min(float(best[wanted].max()), AT_A_TIME // len(order))
    for values in node_values(layout, layout.objective(EXCESS), int(needed) + 1):
        for row in values:
            w += 1
            excess[node_of] = row
            best = np.minimum(best, w + of_groups(excess) / alpha)
            if w >= best[wanted].max():
                result[wanted] = best[wanted] * unit
                return result
        if progress is not None:
            progress(w, min(w / float(best[wanted].max()), 1.0))
        if w * (len(chain.target) + EACH_LEVEL) > MAX_WORK:
            break
    return result


def zero_cost_walks(chain: CostChain, trans: str = "N") -> Any:
    """A function that follows the zero-cost edges of a chain to their end: it solves x = constant +
    F x, F these edges (or their transpose). Traps are not followed.
    """
    assert chain.level is not None
    arrives = np.append(chain.arrives, False)
    zero_cost = chain.only((chain.level == 0) & arrives[chain.target] & arrives[chain.source])
    if len(zero_cost.target) == 0:
        return lambda constant: constant
    factors = equations(zero_cost.source, zero_cost.target, zero_cost.probability, chain.n)
    return lambda constant: factors.solve(np.asarray(constant, dtype=np.float64), trans=trans)


def equations(source: Array, target: Array, probability: FloatArray, n: int) -> Any:
    """The factors of I - P for n nodes: `solve(constant)`, or with `trans="T"` for the transpose. A
    singular matrix is a RuntimeError.
    """
    import scipy.sparse.linalg

    edges = scipy.sparse.csc_array((probability, (source, target)), shape=(n, n))
    return scipy.sparse.linalg.splu((scipy.sparse.eye_array(n, format="csc") - edges).tocsc())
