"""Limits of 0, limits of next to nothing, and limits at the least that can be had: against every
mixture of all policies, in fractions.
"""

import random

import pytest

import tailpath as tp
from tailpath.errors import InfeasibleError
from tests.solvers.objectives.edges import check

FORBIDDEN = [
    ("s", "y", "g", 0.9, 4),
    ("s", "y", "g", 0.1, 5),
    ("s", "x", "t", 1, 3),
    ("t", "x", "g", 0.98, 1),
    ("t", "x", "g", 0.02, 3),
    ("t", "y", "g", 1, 2),
]


@pytest.mark.parametrize("bound", [0, 1e-300, 1e-20, 1e-17])
@pytest.mark.parametrize("forbids", [tp.Late(5), tp.Shortfall(5)])
def test_what_is_forbidden_is_not_done(forbids, bound):
    """y costs 4.1, x then y always 5, and x then x, 4.04, is late in 2 of 100 runs."""
    ssp, tail = tp.SSP.from_outcomes(FORBIDDEN, "s", ["g"]), tp.CVaR(0.2)
    for objective, limits, truth in [
        (tp.Mean(), [forbids <= bound], 4.1),
        (tail, [forbids <= bound], 4.5),
        (tp.Mean(), [forbids <= bound, tail <= 4.6], 4.1),
        (tp.Mean(), [tail <= 4.6, forbids <= bound], 4.1),
    ]:
        found = tp.solve(ssp, objective, limits)
        assert found.value == pytest.approx(truth, rel=1e-12)
        assert found.bounds[0] <= truth <= found.bounds[1] <= truth * (1 + 1e-12)
        assert found.risk(forbids) <= bound


@pytest.mark.parametrize("number", range(80))
def test_limits_at_the_edge(number):
    assert list(check(random.Random(number), number))


def test_a_forbidden_cost_that_cannot_be_avoided_is_refused():
    ssp = tp.SSP.from_outcomes(FORBIDDEN, "s", ["g"])
    with pytest.raises(InfeasibleError, match="no policy keeps late\\(4\\) <= 0"):
        tp.solve(ssp, "mean", ["late(4) <= 0"])


def test_what_is_forbidden_is_not_done_however_seldom_it_happens():
    """Both lateness and shortfall of a are below all floats, and yet it may be late."""
    rare = 1e-200
    rows = [
        ("s", "a", "t", 1 - rare, 1),
        ("s", "a", "u", rare, 1),
        ("t", "a", "g", 1, 1),
        ("u", "a", "g", 1 - rare, 1),
        ("u", "a", "g", rare, 9),
        ("s", "b", "g", 1, 5),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for limits in (
        ["late(5) <= 0"],
        ["shortfall(5) <= 0"],
        ["late(5) <= 0", "cvar(0.5) <= 5"],
        ["cvar(0.5) <= 5", "shortfall(5) <= 0"],
    ):
        found = tp.solve(ssp, "mean", limits)
        assert found.value == 5 and found.bounds == pytest.approx((5, 5), rel=1e-12)
        assert found.bounds[0] <= 5 <= found.bounds[1]
        assert tp.evaluate(ssp, found.policy, 0.5).costs.tolist() == [5]
    rows = [("s", "a", "s", 0.4, 1), ("s", "a", "g", 0.6, 1)]
    with pytest.raises(InfeasibleError, match="a few runs of each break it"):
        tp.solve(tp.SSP.from_outcomes(rows, "s", ["g"]), "mean", ["late(1000) <= 0"])
