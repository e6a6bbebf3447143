"""Bounds on the CVaR of a discounted cost, without its distribution.

At stage t a pair still has a total Z between its cost x and x + gamma^t M, M
being the most that can still come, with the mean m = x + gamma^t V_mean. (Z - w)+ is convex in Z:
its mean is at least (m - w)+, and at most that of a total that is either x or x + gamma^t M with
the same mean. So the CVaR lies between those of two distributions, and only pairs that may lie on
either side of the VaR have to be followed.
"""

from __future__ import annotations

import numpy as np

from tailpath.certify.rounding import AFTERWARDS, compounded, row_error, sum_error
from tailpath.certify.totals import Enclosure
from tailpath.certify.values import Bounds
from tailpath.dp.totals import Totals
from tailpath.graph import FloatArray, Transitions

#: No further stage is looked at beyond so many pairs or stages, nor where all that can still come
#: is such a share of the VaR.
MOST_PAIRS, MOST_STAGES, CLOSE_ENOUGH = 200_000, 2_000, 1e-12


def enclosed(
    chain: Transitions, start: int, gamma: float, alpha: float, to_go: Bounds, off: float
) -> Enclosure:
    """Two distributions with the CVaR at alpha between theirs, by pairs of node and cost."""
    mean = [np.append(each, 0.0) for each in (to_go.lower, to_go.upper)]
    most = float(chain.cost.max(initial=0.0)) / (1 - gamma) * (1 + AFTERWARDS)
    node, cost, mass = np.array([start]), np.zeros(1), np.ones(1)
    settled: list[FloatArray] = []  # rows: least, means from below and above, most, mass
    error, stage = 0.0, 0
    while True:
        left = gamma**stage
        ends = [cost, *(cost + left * each[node] for each in mean), cost + left * most]
        open_ = np.where(node == chain.n, [cost] * 4 + [mass], [*ends, mass])
        every = np.concatenate([*settled, open_], axis=1)
        first, last = (_quantile(every[end], every[-1], alpha) for end in (0, 3))
        follow = (node < chain.n) & (open_[3] >= first) & (open_[0] <= last)
        done = left * most <= CLOSE_ENOUGH * last or stage == MOST_STAGES
        if done or not follow.any() or every.shape[1] > MOST_PAIRS:
            break
        settled.append(open_[:, ~follow])
        node, cost, mass = node[follow], cost[follow], mass[follow]
        size, edge = np.diff(chain.row_start)[node], chain.edges(node)
        cost = np.repeat(cost, size) + left * chain.cost[edge]
        mass, node = np.repeat(mass, size) * chain.probability[edge], chain.target[edge]
        order = np.lexsort((cost, node))
        new = np.append(True, (np.diff(cost[order]) != 0) | (np.diff(node[order]) != 0))
        at = np.flatnonzero(new)
        additions = np.diff(np.append(at, len(order))).max()
        node, cost, mass = node[order][at], cost[order][at], np.add.reduceat(mass[order], at)
        error += row_error(size.max(), additions, off)
        stage += 1
    least, below, above, top, mass = every
    share = np.clip((above - least) / np.maximum(top - least, np.finfo(float).tiny), 0.0, 1.0)

    def side_of(side: int, costs: FloatArray, masses: FloatArray) -> Totals:
        order = np.argsort(costs)
        rest = float(costs.max()), 0.0, 0.0, 0.0, float(mean[side > 0][start]), 0.0
        return Totals(costs[order], masses[order] * compounded(error, 1, side), *rest)

    return Enclosure(
        side_of(-1, np.repeat(below, 2), np.repeat(mass / 2, 2)),
        side_of(1, np.append(least, top), np.append(mass * (1 - share), mass * share)),
        sum_error(2 * stage),
    )


def _quantile(costs: FloatArray, masses: FloatArray, alpha: float) -> float:
    """The least cost that is exceeded with probability alpha at most, but for rounding."""
    order = np.argsort(-costs)
    beyond = np.cumsum(masses[order])
    return float(costs[order][np.argmax(beyond >= min(alpha, beyond[-1]))])
