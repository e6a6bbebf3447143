"""Expected visits of a chain, against sums over its steps."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import tailpath as tp
from tailpath.policies.unrolling import unroll
from tailpath.show.visits import visits_of


def test_visits_are_the_sum_over_all_steps():
    ssp = tp.domains.gridworld("\n".join(["S" + "." * 13, *["." * 14] * 10, "." * 13 + "G"]))
    chain = unroll(ssp, tp.solve_expected(ssp).policy)
    inside = chain.target < chain.n
    entries = chain.probability[inside], (chain.target[inside], chain.source[inside])
    steps = csr_array(entries, shape=(chain.n, chain.n))
    here = np.zeros(chain.n)
    here[chain.start] = 1.0
    total = np.zeros(chain.n)
    while here.sum() > 1e-14:
        total, here = total + here, steps @ here
    assert visits_of(chain) == pytest.approx(total, rel=1e-11, abs=1e-13)


def test_a_class_that_is_never_left_counts_once():
    rows = [("a", "go", "b", 0.75, 1), ("a", "go", "g", 0.25, 1)]
    rows += [("b", "go", "c", 1, 1), ("c", "go", "b", 0.5, 1), ("c", "go", "c", 0.5, 1)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    chain = unroll(ssp, tp.MarkovPolicy(dict.fromkeys("abc", "go")))
    assert visits_of(chain) == pytest.approx([1.0, 0.75, 0.75])
