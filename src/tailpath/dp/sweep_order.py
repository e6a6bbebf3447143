"""The orders in which states are swept (`sweeps.py`): by the likeliest successor, and what a search
from the end outwards needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import Decisions
from tailpath.graph import grouped, owners
from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import LONGEST

Array = NDArray[Any]


@kernel
def likeliest_order(
    row_start: Array, target: Array, probability: Array, work: Array, out_order: Array
) -> None:
    """Nodes of a chain from the end outwards, each after its most probable successor other than
    itself, but for one of every cycle of such successors; `work` (5, n + 2) comes with zeros.
    """
    n, one = len(out_order), np.uint64(1)
    likeliest, followers = work[0], work[1]
    position, placed = work[2], work[3]
    first = work[4]  # of those that follow a node, or the end
    for node in range(np.uint64(n)):
        most, to = 0.0, n
        for edge in range(np.uint64(row_start[node]), np.uint64(row_start[node + one])):
            if probability[edge] > most and target[edge] != node:
                most, to = probability[edge], target[edge]
        likeliest[node] = to
        first[np.uint64(to) + one] += 1
    for node in range(np.uint64(n) + one):
        first[node + one] += first[node]
        position[node] = first[node]
    for node in range(np.uint64(n)):
        followers[position[likeliest[node]]] = node
        position[likeliest[node]] += 1
    here: Any = np.uint64(n)
    done, size = np.uint64(0), np.uint64(0)
    root = np.uint64(0)
    while True:
        for i in range(np.uint64(first[here]), np.uint64(first[here + one])):
            if placed[followers[i]] == 0:
                out_order[size], placed[followers[i]] = followers[i], 1
                size += one
        while done == size and root < n:
            if placed[root] == 0:
                # The likeliest way from here ends in a cycle: it begins where the way meets itself.
                here = root
                while placed[here] == 0:
                    placed[here], here = 2, np.uint64(likeliest[here])
                meets, here = here, root
                while placed[here] == 2:
                    placed[here], here = 0, np.uint64(likeliest[here])
                out_order[size], placed[meets] = meets, 1
                size += one
            root += one
        if done == size:
            break
        here = np.uint64(out_order[done])
        done += one


def incoming_edges(decisions: Decisions, extra: float) -> tuple[Array, Array, Array]:
    """The states that lead to each state and to the end: where they begin, which they are, and how
    far away.

    An outcome is as long as its row's rate, plus `extra`, divided by its probability: about what it
    costs to wait for it.
    """
    outcome, into_start = grouped(decisions.target, len(decisions.state_choices))
    source = owners(decisions.choice_outcomes[decisions.state_choices], np.int32)
    rate = np.repeat(decisions.rate + extra, np.diff(decisions.choice_outcomes))
    with np.errstate(all="ignore"):  # a rare outcome of a dear row may be longer than any float
        length = np.fmin(rate / decisions.probability, LONGEST)
    return into_start, source[outcome], length[outcome]
