"""Limits on bytes are kept, and what cannot matter is not computed: measured in a process of its
own, beyond what loading takes.
"""

import math
import subprocess
import sys
from fractions import Fraction

import pytest

import tailpath as tp
from tailpath.certify.budgets import Share
from tailpath.errors import LimitExceededError, ModelError

SLOW = (
    "tp.SSP.from_outcomes([('s', 'a', 'g', 1e-7, 1), ('s', 'a', 's', 1 - 1e-7, 1), ('s', 'b', 'g',"
    " 1, 10**6)], 's', ['g'])"
)
TINY = (
    "tp.SSP.from_outcomes([('s', 'a', 'g', 0.5, 1), ('s', 'a', 's', 0.5, 1), ('s', 'b', 'g', 1,"
    " 9)], 's', ['g'])"
)
SCRIPT = """
import sys, resource
import tailpath as tp
from tailpath.errors import LimitExceededError

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

tiny, slow = {tiny}, {slow}
try:
    {first}
except LimitExceededError:
    pass
before = peak()
try:
    {then}
except LimitExceededError:
    pass
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted in other units elsewhere")
@pytest.mark.parametrize(
    ("verb", "options"),
    [("tp.solve_cvar_exact", "0.1"), ("tp.solve_on_time", "2e9")],
)
def test_a_limit_of_bytes_is_kept_within_a_fifth(verb, options):
    """What takes a megabyte loads compiled code, which is not counted."""
    first, then = (f"{verb}(slow, {options}, max_bytes=10**{k})" for k in (6, 8))
    assert bytes_taken(first, then) < 1.2 * 10**8


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted in other units elsewhere")
def test_a_limit_of_steps_takes_little_more_than_the_model_it_makes():
    """200,000 steps took 340 MB; the model has 34 MB of arrays, and as many names."""
    assert bytes_taken("tp.within(tiny, 2)", "tp.within(slow, 200_000)") < 1.5 * 10**8


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted in other units elsewhere")
def test_a_long_head_takes_little_more_than_its_costs_and_masses():
    """A loop of 1 - 1e-5 has 2.1 million costs before 1 - 1e-9 has arrived, two numbers each; 125
    bytes were taken for each of them, bounds included.
    """
    first = f"tp.evaluate({SLOW.replace('1e-7', '1e-4')}, {{'s': 'a'}}, 1e-9).bounds(1e-9)"
    loop = SLOW.replace("1e-7", "1e-5")
    for ask, most in (("cvar", 32), ("bounds", 70)):
        then = f"tp.evaluate(slow, {{'s': 'a'}}, 1e-9).{ask}(1e-9)"
        assert bytes_taken(first, then, loop) < most * 2.1e6


def bytes_taken(first, then, slow=SLOW):
    """What the second call takes beyond the first, at most."""
    script = SCRIPT.format(slow=slow, tiny=TINY, first=first, then=then)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def cyclic():
    rows = [
        ("s", "safe", "g", 1, 10),
        ("s", "risky", "g", 0.9, 1),
        ("s", "risky", "t", 0.1, 5),
        ("t", "a", "g", 0.5, 1),
        ("t", "a", "s", 0.5, 3),
    ]
    return tp.SSP.from_outcomes(rows, "s", ["g"])


@pytest.mark.parametrize("budget", [1e7, 1e12])
def test_a_budget_that_no_run_gets_to_takes_no_table(budget, monkeypatch):
    def refused(*_):
        raise AssertionError("a table")

    monkeypatch.setattr("tailpath.solvers.objectives.losses.fill_table", refused)
    ssp = cyclic()
    mean = tp.solve_expected(ssp)
    late, both = (
        tp.solve(ssp, tp.Shortfall(budget)),
        tp.solve(ssp, tp.Mean() + 2 * tp.Shortfall(budget)),
    )
    assert late.value == 0 and late.bounds[0] == 0 and late.bounds[1] < 1e-200
    assert (
        both.value == mean.cost()
        and both.bounds[0] <= mean.bounds[0] <= mean.bounds[1] <= both.bounds[1]
    )
    assert both.bounds[1] - both.bounds[0] < 1e-13


def test_a_deadline_that_no_run_gets_to_has_a_frontier_of_one_corner():
    """A table of 10^8 levels was asked of the memory, and refused."""
    ssp = cyclic()
    (corner,) = tp.frontier(ssp, tp.Late(1e8))
    assert (corner.mean, corner.risk) == (tp.solve_expected(ssp).cost(), 0)


def test_layers_that_come_again_are_not_looked_for():
    model = tp.within(cyclic(), 100_001)
    assert model.n_states == 100_001 + 2  # s and t in turn, the goal, and out of time
    some = tp.within(cyclic(), 7)
    keys = {(s, a) for s, a in zip(some.to_pandas()["state"], some.to_pandas()["action"])}
    assert keys <= {
        (s, a) for s, a in zip(model.to_pandas()["state"], model.to_pandas()["action"])
    } | {("out of time", "wait")}
    with pytest.raises(ModelError, match="pairs of state and step"):
        tp.within(cyclic(), 10**30)


def test_a_table_of_many_levels_and_few_states_is_counted():
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1e-9, 1), ("s", "a", "s", 1 - 1e-9, 1)], "s", ["g"])
    with pytest.raises(LimitExceededError, match="cost levels need more than"):
        tp.solve_cvar_exact(ssp, 0.1, max_bytes=10**7)


def test_bounds_are_numbers_where_a_block_of_free_moves_is_given_up():
    unknown = Share(math.inf, 0.0)
    for value in (0.0, 2.0):
        assert (unknown.below(value), unknown.above(value)) == (0.0, math.inf)
    rows = [
        (0, 0, 1, 1, 0.05),
        (1, 0, 2, 1 - 1e-16, 0),
        (1, 0, 3, 1e-16, 0),
        (2, 0, 3, 1, 0.05),
        (2, 0, 1, 1e-200, 0),
    ]
    for budget, truth in ((0.35, 0), (0.05, 0.05)):
        low, high = tp.solve(tp.SSP.from_outcomes(rows, 0, [3]), tp.Shortfall(budget)).bounds
        assert low <= truth <= high <= truth + 1e-12


def test_a_loss_beyond_a_block_that_is_given_up_has_bounds():
    """10^16 rounds for nothing, and then 0.05: the lower bound was no number."""
    rows = [("s", "a", "t", 1, 0), ("t", "a", "s", 1 - 1e-16, 0), ("t", "a", "g", 1e-16, 0.05)]
    # The chance to leave is no more than the rounding of a step, so that doubles cannot prove that
    # a run ends, and this is said.
    with pytest.warns(tp.TailpathWarning, match="no upper bound on an expected total"):
        low, high = tp.solve(tp.SSP.from_outcomes(rows, "s", ["g"]), tp.Shortfall(0.35)).bounds
    assert low == 0 and high == math.inf


def test_a_flat_loss_is_charged_what_vanishes():
    tiny = Fraction("1e-300")
    rows = [("s", "go", "t", tiny, 1), ("s", "go", "g", 1 - tiny, 1)]
    rows += [("t", "go", "g", tiny, 5), ("t", "go", "g", 1 - tiny, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for loss in (tp.Loss([(4, 0), (4, 1)]), tp.Loss([(4, 0), (6, 1)], 0), tp.Late(4)):
        low, high = tp.solve(ssp, loss).bounds
        assert low <= tiny**2 <= high <= 1e-200, loss
