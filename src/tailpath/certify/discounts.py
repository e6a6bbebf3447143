"""Bounds on the CVaR of a discounted cost, without its distribution.

The total Z of a run that has paid x when it reaches a node at stage t lies between x and
x + gamma^t M, where M is the most that can still come, and has the mean m = x + gamma^t V(node).
(Z - w)+ is convex in Z: its mean is at least (m - w)+ (Jensen), and at most that of a total that is
either x or x + gamma^t M with the same mean (the *chord*). So the CVaR lies between those of two
distributions, and only the pairs (node, x) that may lie on either side of the VaR are followed.
"""

from __future__ import annotations

import numpy as np

from tailpath.certify.rounding import AFTERWARDS, ROUNDOFF, compounded, row_error, sum_error
from tailpath.certify.totals import Enclosure
from tailpath.certify.values import Bounds, expected_total
from tailpath.dp.totals import Totals
from tailpath.graph import FloatArray, Transitions

#: No further stage is looked at beyond so many pairs or stages, nor where all that can still come
#: is such a share of the VaR.
MOST_PAIRS, MOST_STAGES, CLOSE_ENOUGH = 200_000, 2_000, 1e-12


def discounted_total(
    chain: Transitions, price: FloatArray, gamma: float, ends: float, off: float
) -> Bounds:
    """The expected discounted sum of a price per transition, by node (n,).

    `ends` is 1 - gamma, and `off` how far probabilities may be off, relatively, beside rounding.
    """
    # One more transition for each node, which ends the run.
    end = chain.row_start[1:]
    rows = Transitions(
        chain.row_start + np.arange(chain.n + 1),
        np.insert(chain.target, end, chain.n),
        np.insert(gamma * chain.probability, end, ends),
        np.insert(price, end, 0.0),
        None,
    )
    # Both factors and their product are rounded.
    return expected_total(rows, chain.sums(chain.probability * price), off + 4 * ROUNDOFF)


def enclosed(
    chain: Transitions,
    start: int,
    gamma: float,
    ends: float,
    alpha: float,
    to_go: Bounds,
    off: float,
) -> Enclosure:
    """Two distributions, whose CVaRs at this alpha, and no other, enclose that of the chain.

    `ends` is 1 - gamma, `to_go` the expected discounted cost by node (n,), and `off` how far
    probabilities may be off, relatively, beside rounding. The two sides have different costs.
    """
    dearest = float(chain.cost.max(initial=0.0)) / ends * (1 + AFTERWARDS)
    mean, upper_mean, most = (
        np.append(each, 0.0) for each in (to_go.lower, to_go.upper, np.full(chain.n, dearest))
    )
    # The weight of the upper end of the chord. As a quotient of differences between costs, x among
    # them, it would lose the digits in which what is still to come is smaller than x.
    weight = np.clip(upper_mean / max(dearest, np.finfo(float).tiny), 0.0, 1.0)
    node, cost, mass = np.array([start]), np.zeros(1), np.ones(1)
    # Rows: x, the lower bound on m, the upper end of the chord and its weight, and the mass.
    settled: list[FloatArray] = []
    error, stage = 0.0, 0
    while True:
        left = gamma**stage
        open_ = np.array(
            [cost, cost + left * mean[node], cost + left * most[node], weight[node], mass]
        )
        every = np.concatenate([*settled, open_], axis=1)
        first, last = (_quantile(every[end], every[-1], alpha) for end in (0, 2))
        follow = (node < chain.n) & (open_[2] >= first) & (open_[0] <= last)
        done = left * dearest <= CLOSE_ENOUGH * last or stage == MOST_STAGES
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
    least, below, top, share, mass = every

    def side_of(side: int, costs: FloatArray, masses: FloatArray) -> Totals:
        order = np.argsort(costs)
        of_start = float((upper_mean if side > 0 else mean)[start])
        rest = float(costs.max()), 0.0, 0.0, 0.0, of_start, 0.0
        return Totals(costs[order], masses[order] * compounded(error, 1, side), *rest)

    return Enclosure(
        # Each cost twice: sums over either head are charged by the length of the lower one.
        side_of(-1, np.repeat(below, 2), np.repeat(mass / 2, 2)),
        side_of(1, np.append(least, top), np.append(mass * (1 - share), mass * share)),
        sum_error(2 * stage),
    )


def _quantile(costs: FloatArray, masses: FloatArray, alpha: float) -> float:
    """The least cost that is exceeded with probability alpha at most, but for rounding."""
    order = np.argsort(-costs)
    beyond = np.cumsum(masses[order])
    return float(costs[order][np.argmax(beyond >= min(alpha, beyond[-1]))])
