"""Passes over a chain in the order of its likeliest ways.

Where there is nothing to decide, news travels along the arrow that is taken most often. A node comes after the most probable successor it has, so
that one pass carries a value all the way along the likeliest way, and the first pass, which counts successors that have no value yet as if they were
not there, is a fair guess. What a pass finds stale are the arrows that lead back; values are settled after as many passes as a run takes such arrows
with a probability that still counts. Nodes near the exit settle first, and passes leave them out until a last look at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.absorption import Chain
from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import UNIT

Array = NDArray[Any]


class Room(NamedTuple):
    """Room for the order of the nodes, their numbers in it, the folded rows and their values, and for what it takes to find the order."""

    order: Array
    number: Array
    row_start: Array
    target: Array
    probability: Array
    rate: Array
    value: Array
    likeliest: Array
    first: Array
    into: Array
    placed: Array


def room_for(chain: Chain) -> Room:
    n, arrows = len(chain.rate), len(chain.target)
    order, likeliest, into = (np.empty(n, dtype=np.int32) for _ in range(3))
    folded = np.empty(n + 1, dtype=np.uint32), np.empty(arrows, dtype=np.uint32), np.empty(arrows), np.empty(n), np.empty(n)
    return Room(order, np.empty(n, dtype=np.uint32), *folded, likeliest, np.zeros(n + 2, dtype=np.int64), into, np.zeros(n, dtype=np.uint8))


@kernel
def pass_over(chain: Chain, room: Room, tolerance: float, most: int, out_value: Array) -> int:
    """Expected totals, without a proof; returns how many passes they took, or `most` + 1 where they did not settle.

    Passes run over *folded* rows: nodes stand in their order, the exit is left out, and the chance of staying is divided out of every row by
    the sum of its other probabilities, never by 1 - p.
    """
    n = len(chain.rate)
    order, number, row_start, target, probability, rate, value = room[:7]
    likeliest_first(chain, room)
    for place in range(n):
        number[order[place]] = place
    size = 0
    row_start[0] = 0
    for place in range(n):
        node = order[place]
        first, last, leave = chain.row_start[node], chain.row_start[node + 1], chain.leak[node]
        for arrow in range(first, last):
            if chain.target[arrow] != node:
                leave += chain.probability[arrow]
        if leave == 0.0:  # smaller than any float
            return most + 1
        for arrow in range(first, last):
            to = chain.target[arrow]
            if to != node and to < n:
                target[size], probability[size] = number[to], chain.probability[arrow] / leave
                size += 1
        rate[place] = chain.rate[node] / leave
        row_start[place + 1] = size
    passes = _settle(row_start, target, probability, rate, tolerance, most, value)
    for place in range(n):
        out_value[order[place]] = value[place]
        if not value[place] >= 0.0:
            passes = most + 1
    return int(passes)


@kernel
def likeliest_first(chain: Chain, room: Room) -> None:
    """Set `room.order` to one in which every node follows its most probable successor other than itself.

    Where likeliest ways end in a circle, one of its nodes comes before its successor.
    """
    n, row_start, target, probability = len(chain.rate), chain.row_start, chain.target, chain.probability
    out_order, likeliest, first, into, placed = room.order, room.likeliest, room.first, room.into, room.placed
    for node in range(n):
        most, to = -1.0, n
        for arrow in range(row_start[node], row_start[node + 1]):
            if probability[arrow] > most and target[arrow] != node:
                most, to = probability[arrow], min(target[arrow], n)
        likeliest[node] = to
        first[to + 2 if to < n else 1] += 1  # the exit comes first
    for place in range(1, n + 1):
        first[place + 1] += first[place]
    for node in range(n):
        place = likeliest[node] + 1 if likeliest[node] < n else 0
        into[first[place]] = node
        first[place] += 1
    # Now first[i] is where the group after i begins: node x is followed by into[first[x] : first[x + 1]].
    size, done, root = 0, 0, 0
    for i in range(first[0]):
        out_order[size] = into[i]
        placed[into[i]] = 1
        size += 1
    while size < n:
        while done < size:
            node = out_order[done]
            done += 1
            for i in range(first[node], first[node + 1]):
                if placed[into[i]] == 0:
                    placed[into[i]] = 1
                    out_order[size] = into[i]
                    size += 1
        while root < n and placed[root] == 1:
            root += 1
        if root < n:
            # Its way ends in a circle, which has to begin somewhere: where the way meets itself.
            node = root
            while placed[node] == 0:
                placed[node] = 2
                node = likeliest[node]
            begin, node = node, root
            while placed[node] == 2:
                placed[node] = 0
                node = likeliest[node]
            placed[begin] = 1
            out_order[size] = begin
            size += 1


@kernel
def _settle(row_start: Array, target: Array, probability: Array, rate: Array, tolerance: float, most: int, out_value: Array) -> int:
    """Sweep v = r + P v, each value at once in the place of the last, until a pass moves none by more than `tolerance` relative.

    Returns how many passes that took, or `most` + 1. The rows list transient targets only, and no node itself. One pass in four looks at the
    changes. Rounding can keep the last bits moving for ever: passes also end when changes are that small and no longer shrink.
    """
    n = len(rate)
    for node in range(n):
        known, total = 1.0, 0.0
        for arrow in range(row_start[node], row_start[node + 1]):
            to = target[arrow]
            if to < node:
                total += probability[arrow] * out_value[to]
            else:
                known -= probability[arrow]
        out_value[node] = rate[node] + (total / known if known > 1e-9 else 0.0)
    begin, previous, passed, unwatched = 0, np.inf, 0, 3
    while passed < most:
        for _ in range(unwatched):
            _pass(row_start, target, probability, rate, begin, out_value)
        change, moved = _watched_pass(row_start, target, probability, rate, tolerance, begin, out_value)
        passed += unwatched + 1
        if moved == n or (change <= 64 * UNIT and (change >= previous or unwatched == 0)):
            if begin == 0:
                return passed
            begin, previous, unwatched = 0, np.inf, 0  # one look at all
        else:
            begin, previous, unwatched = moved, change, 3
    return most + 1


@kernel
def _pass(row_start: Array, target: Array, probability: Array, rate: Array, begin: int, out_value: Array) -> None:
    """A pass from a node on. Arrows are taken two at a time: rows are short, and to ask for the end of one takes as long as an arrow."""
    arrow = int(row_start[begin])
    for node in range(begin, len(rate)):
        total = rate[node]
        last = row_start[node + 1]
        while arrow + 1 < last:
            total += probability[arrow] * out_value[target[arrow]]
            total += probability[arrow + 1] * out_value[target[arrow + 1]]
            arrow += 2
        if arrow < last:
            total += probability[arrow] * out_value[target[arrow]]
            arrow += 1
        out_value[node] = total


@kernel
def _watched_pass(
    row_start: Array, target: Array, probability: Array, rate: Array, tolerance: float, begin: int, out_value: Array
) -> tuple[float, int]:
    """A pass; returns the largest relative change beyond the tolerance and the first node that made one."""
    change, moved = 0.0, len(rate)
    for node in range(begin, len(rate)):
        total = rate[node]
        for arrow in range(row_start[node], row_start[node + 1]):
            total += probability[arrow] * out_value[target[arrow]]
        step = abs(total - out_value[node])
        out_value[node] = total
        if step > tolerance * abs(total):
            moved = min(moved, node)
            change = max(change, step / (abs(total) + 1e-300))
    return change, moved
