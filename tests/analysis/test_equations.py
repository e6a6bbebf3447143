"""The diagonal of an inverse from its factors, against the inverse itself."""

import numpy as np
import pytest

import tailpath as tp
from tailpath.analysis.equations import equations, own_visits
from tailpath.policies.unrolling import unroll
from tailpath.policies.visits import Visits


def random_chain(n, seed):
    random = np.random.default_rng(seed)
    rows = random.random((n, n)) * (random.random((n, n)) < min(1.0, 4 / n))
    rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1e-9) * random.uniform(1.001, 2, (n, 1))
    source, target = np.nonzero(rows)
    return rows, source, target


@pytest.mark.parametrize("n", [1, 2, 7, 60, 250])
def test_own_visits_are_the_diagonal_of_the_inverse(n):
    rows, source, target = random_chain(n, n)
    found = own_visits(equations(source, target, rows[source, target], n, diagonal=True))
    assert found == pytest.approx(np.diag(np.linalg.inv(np.eye(n) - rows)), rel=1e-12)


def test_ever_being_there_on_a_large_cyclic_chain():
    """As probabilities of reaching a node, each from a system of its own."""
    ssp = tp.domains.gridworld("\n".join(["S" + "." * 13, *["." * 14] * 10, "." * 13 + "G"]))
    chain = unroll(ssp, tp.solve_expected(ssp).policy)
    visits = Visits(chain)
    assert visits.cyclic
    found = visits.first(np.arange(chain.n))
    dense = np.zeros((chain.n, chain.n + 1))
    np.add.at(dense, (chain.source, chain.target), chain.probability)
    for node in range(0, chain.n, 17):
        others = np.delete(np.arange(chain.n), node)
        reach = np.linalg.solve(
            np.eye(len(others)) - dense[np.ix_(others, others)], dense[others, node]
        )
        wanted = 1.0 if node == chain.start else reach[np.searchsorted(others, chain.start)]
        assert found[node] == pytest.approx(wanted, rel=1e-9)
