"""ForPECVaR as the paper prints it: Algorithms 1 to 3, with its names, and its lines by number.

This is a witness for `tailpath.evaluate` and a text to read beside the paper, not a tool: what is
wrong in the print is wrong here (errata.md). It differs where the print leaves no choice: costs may
depend on the next state, and X holds the pairs that a policy can get to. An augmented state is
(state, memory), where the memory is the policy's own: an atom, a history, or nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve

import tailpath as tp

Augmented = tuple[Any, Any]
Transitions = dict[Augmented, list[tuple[float, float, Augmented]]]
Heuristic = Callable[[Augmented], float]


class Evaluation(NamedTuple):
    """What line 28 returns, and how many nodes were taken from the queue and expanded."""

    cvar: float
    var: float
    expanded: int


def create_extended_mdp(ssp: tp.SSP, policy: tp.Policy) -> Transitions:
    """Algorithm 3: the probability, the cost and the next pair of every step of the policy."""
    first = (ssp.start, policy.start(ssp.start))
    T: Transitions = {}
    found = [first]
    while found:  # line 3
        x = s, memory = found.pop()  # line 4
        k = ssp.state_index(s)
        if x in T or ssp.is_goal[k]:
            continue
        a = policy.action(s, memory)  # line 5
        choice, T[x] = ssp.choice_index(k, a), []
        for o in range(ssp.choice_outcomes[choice], ssp.choice_outcomes[choice + 1]):  # line 6
            c, s_next = float(ssp.outcome_cost[o]), ssp.states[ssp.outcome_target[o]]
            x_next = (s_next, policy.remember(memory, s, a, c, s_next))  # lines 7 to 9
            T[x].append((float(ssp.outcome_probability[o]), c, x_next))  # lines 10 and 12
            found.append(x_next)
    return T  # line 14


def mdp_policy_evaluation(T: Transitions, gamma: float = 1.0) -> tuple[Any, Any]:
    """Algorithm 2: V_mean and V_min of every augmented state that is no goal."""
    number = {x: k for k, x in enumerate(T)}
    steps = [
        (number[x], number[n], p) for x, row in T.items() for p, _, n in row if n in number
    ]  # line 2
    rows, columns, p = (list(part) for part in zip(*steps)) if steps else ([], [], [])
    size = (len(T), len(T))
    P = csr_array((np.array(p, dtype=float), (rows, columns)), shape=size)
    c = np.array([sum(p * cost for p, cost, _ in row) for row in T.values()])
    V_mean = spsolve((eye_array(len(T)) - gamma * P).tocsc(), c)  # line 3
    V_min, before = dict.fromkeys(T, 0.0), None
    while V_min != before:  # line 4: every outcome is a choice
        before = V_min
        V_min = {
            x: min(cost + gamma * before.get(n, 0.0) for _, cost, n in row) for x, row in T.items()
        }
    return dict(zip(T, np.atleast_1d(V_mean).tolist())), V_min  # line 5


def forpecvar(
    ssp: tp.SSP,
    policy: tp.Policy,
    alpha: float,
    heuristic: Heuristic | None = None,
    gamma: float = 1.0,
    ties: str = "insertion",
) -> Evaluation:
    """Algorithm 1; its heuristic is V_min by default.

    The print does not say which of two nodes of equal priority is taken first: the one that was
    inserted first, or with `ties="cost"` the one that has cost less.
    """
    T = create_extended_mdp(ssp, policy)
    P_X = V_leX = 0.0  # line 2
    tick, expanded = itertools.count(), 0
    q: list[tuple[float, float, int, tuple[Augmented, float]]] = []  # line 3
    nodes: dict[tuple[Augmented, float], list[Any]] = {}
    V_mean, V_min = mdp_policy_evaluation(T, gamma)  # line 5
    h: Heuristic = heuristic or (lambda x: float(V_min.get(x, 0.0)))

    def insert_and_group(x: Augmented, cost: float, prob: float, t: int, priority: float) -> None:
        if (x, cost) in nodes:
            nodes[x, cost][0] += prob
        else:
            nodes[x, cost] = [prob, t]
            heappush(q, (priority, cost if ties == "cost" else 0.0, next(tick), (x, cost)))

    start = (ssp.start, policy.start(ssp.start))
    insert_and_group(start, 0.0, 1.0, 0, 0.0)  # line 4
    while alpha < 1 - P_X:  # line 6
        d_x, d_cost = heappop(q)[-1]  # line 7
        d_prob, d_t = nodes.pop((d_x, d_cost))
        if d_x in T:  # line 8
            expanded += 1
            for p, c, x_next in T[d_x]:  # lines 9 to 11, and 14
                cost = d_cost + gamma**d_t * c  # line 12
                priority = cost + gamma ** (d_t + 1) * h(x_next)  # line 16
                insert_and_group(x_next, cost, d_prob * p, d_t + 1, priority)  # 13, 15 and 17
        else:  # line 19
            V_leX = (V_leX * P_X + d_cost * d_prob) / (P_X + d_prob)  # line 20
            P_X += d_prob  # line 21
            y_X = 1 - P_X  # line 22
            V_yX = (V_mean.get(start, 0.0) - V_leX * P_X) / y_X  # line 23
            X = d_cost  # line 24
    if not P_X:
        raise ValueError("line 27 needs y^X and X, which are set in the loop: alpha = 1 skips it")
    return Evaluation((y_X * V_yX + (alpha - y_X) * X) / alpha, X, expanded)  # lines 27 and 28
