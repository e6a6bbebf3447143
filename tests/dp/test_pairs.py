"""Pairs of a node and an amount, against a search that is written down plainly."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tailpath.dp.pairs import PairMoves, reach_pairs


@pytest.mark.parametrize("sign", [-1, 1])
def test_pairs_that_can_be_met(sign: int) -> None:
    draw = random.Random(sign)
    for _ in range(80):
        n = draw.randint(1, 6)
        joint = draw.randint(0, n)  # these nodes reach one another at no cost
        edges = [
            [(draw.randint(-1, n - 1), draw.randint(1, 5)) for _ in range(draw.randint(1, 3))]
            for _ in range(n)
        ]
        start_of = np.concatenate(([0], np.cumsum([len(row) for row in edges])))
        first_in = np.array([0 if node < joint else node for node in range(n)])
        end_in = np.array([joint if node < joint else node for node in range(n)])
        moves = PairMoves(
            start_of,
            np.array([to for row in edges for to, _ in row]),
            np.array([cost for row in edges for _, cost in row]),
            first_in,
            end_in,
        )
        start, largest = draw.randrange(n), draw.randint(5, 14)
        first = np.array(sorted(draw.sample(range(largest + 1), draw.randint(1, 3))))
        least = draw.choice([0, 1])
        known = {(start, int(amount)) for amount in first}
        todo = list(known)
        while todo:
            node, amount = todo.pop()
            if node == n:
                continue
            then = [(other, amount) for other in range(first_in[node], end_in[node])]
            for to, cost in edges[node]:
                if least <= amount + sign * cost <= largest and (to >= 0 or sign > 0):
                    then.append((to if to >= 0 else n, amount + sign * cost))
            todo += [pair for pair in then if pair not in known]
            known |= set(then)
        found = reach_pairs(moves, start, first, sign, least, largest, 10**6)
        pairs = [(int(key) % (n + 1), int(key) // (n + 1)) for key in found]
        assert set(pairs) == known and len(pairs) == len(known)
        assert [amount for node, amount in pairs[: len(first)]] == first.tolist()
        if len(known) > len(first) + 1:
            few = reach_pairs(moves, start, first, sign, least, largest, len(first))
            assert len(first) < len(few)
