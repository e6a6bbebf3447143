"""The diagonal of an inverse from its factors, against the inverse itself."""

import numpy as np
import pytest
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import spsolve

import tailpath as tp
from tailpath.policies.unrolling import unroll
from tailpath.show.visits import Visits, diagonal_factors, equations, own_visits


def random_chain(n, seed):
    random = np.random.default_rng(seed)
    rows = random.random((n, n)) * (random.random((n, n)) < min(1.0, 4 / n))
    rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1e-9) * random.uniform(1.001, 2, (n, 1))
    source, target = np.nonzero(rows)
    return rows, source, target


@pytest.mark.parametrize("n", [1, 2, 7, 60, 250])
def test_own_visits_are_the_diagonal_of_the_inverse(n):
    rows, source, target = random_chain(n, n)
    found = equations(source, target, rows[source, target], n, diagonal=True)
    own = own_visits(diagonal_factors(found))[found.perm_c]
    assert own == pytest.approx(np.diag(np.linalg.inv(np.eye(n) - rows)), rel=1e-12)


def test_ever_being_there_on_a_large_cyclic_chain():
    """As probabilities of reaching a node, each from a system of its own."""
    ssp = tp.domains.gridworld("\n".join(["S" + "." * 13, *["." * 14] * 10, "." * 13 + "G"]))
    chain = unroll(ssp, tp.solve_expected(ssp).policy)
    visits = Visits(chain)
    assert visits.cyclic
    found = visits.first(np.arange(chain.n))
    entries = chain.probability, (chain.source, chain.target)
    steps = csc_array(entries, shape=(chain.n, chain.n + 1))
    for node in range(0, chain.n, 17):
        others = np.delete(np.arange(chain.n), node)
        inside = eye_array(len(others)) - steps[others][:, others]
        reach = spsolve(inside.tocsc(), steps[others][:, [node]].toarray()[:, 0])
        wanted = 1.0 if node == chain.start else reach[np.searchsorted(others, chain.start)]
        assert found[node] == pytest.approx(wanted, rel=1e-9)


ROWS = [
    *(("a", "go", "b", 0.5, 0), ("a", "go", "c", 0.5, 1)),  # a and b are joined by free steps
    *(("b", "back", "a", 0.6, 0), ("b", "back", "c", 0.4, 2)),
    *(("c", "try", "a", 0.3, 1), ("c", "try", "d", 0.7, 1)),
    *(("d", "on", "c", 0.2, 1), ("d", "on", "goal", 0.8, 3)),
]


@pytest.mark.parametrize(
    "ssp",
    [tp.read("gridworld:5x5"), tp.SSP.from_outcomes(ROWS, "a", ["goal"])],
    ids=["budgets fall", "free cycles at every budget"],
)
@pytest.mark.parametrize("falls", [True, False])
def test_where_groups_are_first_entered(ssp, falls):
    """As the ways there from the start that meet no other member before, from a system of each
    group's own: all nodes of a state, with the budget left and spent.
    """
    chain = unroll(ssp, tp.solve_cvar_exact(ssp, 0.05).policy())
    assert len(chain.state) > 2 * len(np.unique(chain.state))
    visits = Visits(chain, np.array(list(chain.memory)) if falls else None)
    told = []
    found = visits.first(chain.state, lambda steps, share: told.append(share))
    assert told[-1] == 1
    entries = chain.probability, (chain.source, chain.target)
    steps = csc_array(entries, shape=(chain.n, chain.n + 1))
    for state in np.unique(chain.state):
        inside = np.flatnonzero(chain.state == state)
        others = np.flatnonzero(chain.state != state)
        if chain.start in inside:
            wanted = (inside == chain.start).astype(float)
        else:
            outside = eye_array(len(others)) - steps[others][:, others]
            met = spsolve(outside.T.tocsc(), (others == chain.start).astype(float))
            wanted = met @ steps[others][:, inside]
        assert found[inside] == pytest.approx(wanted, rel=1e-9, abs=1e-15)
