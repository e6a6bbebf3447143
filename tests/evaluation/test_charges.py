"""Everything that a search leaves out or rounds is charged to the bounds: small models on which it
once was not.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

import tailpath as tp
from tailpath.errors import LimitExceededError, OptionError
from tailpath.evaluation.engine import Request
from tailpath.evaluation.evaluate import evaluate_request
from tailpath.model.border import Border
from tailpath.policies.budget import BudgetPolicy
from tailpath.verify.distribution import check_distribution


def chain_of(rows, start="s"):
    """A model with one action per state, and the policy that takes it."""
    ssp = tp.SSP.from_outcomes([(s, "a", t, p, c) for s, t, p, c in rows], start, ["g"])
    return ssp, tp.MarkovPolicy({s: "a" for s in ssp.states if s != "g"})


@pytest.mark.parametrize("nodes", [3, 10, 30, 40])
def test_a_history_cut_short_knows_what_is_certain(nodes):
    """A coin at cost 1 a throw; CVaR at 0.2 is 3 + 0.125 * 2 / 0.2. The search for histories goes
    on far beyond VaR.
    """
    ssp, _ = chain_of([("s", "s", 0.5, 1), ("s", "g", 0.5, 1)])
    with pytest.raises(LimitExceededError) as caught:
        tp.evaluate(ssp, tp.HistoryPolicy(lambda h: "a"), 0.2, max_nodes=nodes)
    low, high = caught.value.bounds
    assert 3.9 <= low <= 4.25 <= high


@pytest.mark.parametrize("alpha", [1.0, 0.5, 1e-3])
@pytest.mark.parametrize("dear", [1e300, 10**7])
def test_tiny_probabilities_of_huge_costs_count(alpha, dear):
    rows = [
        ("s", "g", 1, 10),
        ("s", "X", 1e-290, 0),
        ("X", "g", 0.5, 1),
        ("X", "Y", 0.5, 1),
        ("Y", "g", 1, dear),
    ]
    found = tp.evaluate(*chain_of(rows), alpha)
    tiny = Fraction("1e-290") / (1 + Fraction("1e-290"))
    truth = 10 + tiny * Fraction(1, 2) * (Fraction(repr(float(dear))) + 1 - 10) / Fraction(alpha)
    low, high = found.bounds(alpha)
    assert low <= truth <= high
    assert found.cvar(alpha) == pytest.approx(float(truth), rel=1e-9)
    assert found.cvar(alpha) >= found.mean


def test_a_long_row_of_unlikely_steps_is_not_lost():
    """Each step goes on with 2^-33, so that 91 of them are beyond every double; what waits at the
    end is dear.
    """
    rows = (
        [(i, i + 1, 2.0**-33, 1) for i in range(91)]
        + [(i, "g", 1 - 2.0**-33, 1) for i in range(91)]
        + [(91, "g", 1, 10**6)]
    )
    found = tp.evaluate(*chain_of(rows, 0), 1e-6)
    p = Fraction(1, 2**33)
    mean = sum(p**i for i in range(91)) + p**91 * 10**6
    assert found.mean_bounds[0] <= mean <= found.mean_bounds[1]
    for alpha in (1e-6, 0.5, 1.0):
        above = sum(p**i for i in range(1, 91)) + p**91 * 10**6
        truth = 1 + above / Fraction(alpha)
        assert found.bounds(alpha)[0] <= truth <= found.bounds(alpha)[1]
        assert found.cvar(alpha) >= found.mean


def test_costs_without_a_unit_are_added_up_with_care():
    """55 steps of 1.3 and one of 1e-8: the float sum lies below the sum."""
    rows = [(i, i + 1, 1, 1.3) for i in range(55)] + [(55, "g", 1, 1e-8)]
    found = tp.evaluate(*chain_of(rows, 0), 0.5)
    assert found.engine == "queue"
    low, high = found.bounds(0.5)
    assert Fraction(low) <= Fraction("71.50000001") <= Fraction(high)
    assert high - low < 1e-9


def test_rows_that_miss_one_are_scaled_whoever_asks():
    """A loop whose row lacks 3e-15: over 10^5 steps that is 3e-10, for the mean and for
    CVaR alike.
    """
    stay, leave = Fraction("0.999989999999997"), Fraction("0.00001")
    found = tp.evaluate(*chain_of([("s", "s", float(stay), 1), ("s", "g", float(leave), 1)]), 1e-3)
    mean = (stay + leave) / leave
    assert found.mean_bounds[0] <= mean <= found.mean_bounds[1]
    n, p = round(found.var(1e-3)), stay / (stay + leave)
    tail = math.exp(n * math.log1p(-float(leave / (stay + leave))))
    assert abs(tail - 1e-3) < 1e-8
    # The tail beyond n is a coin again: P(Z > n) = p^n, and CVaR = n + p^n / (1 - p) / alpha, here
    # in 60 digits.
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        exact = (
            n
            + (Decimal(p.numerator) / Decimal(p.denominator)) ** n
            * Decimal(mean.numerator)
            / Decimal(mean.denominator)
            * 1000
        )
        low, high = found.bounds(1e-3)
        assert Decimal(low) <= exact <= Decimal(high)
    assert (high - low) / high < 1e-7


def test_missing_the_goal_with_a_probability_below_every_double():
    rows = [
        ("s", "g", 1, 1),
        ("s", "a", 1e-200, 1),
        ("a", "g", 1, 1),
        ("a", "b", 1e-200, 1),
        ("b", "b", 1, 1),
    ]
    found = tp.evaluate(*chain_of(rows), 0.5)
    assert 0 < found.unreached < 1e-300
    assert (found.mean, found.cvar(0.5), found.var(0.5), found.std) == (
        math.inf,
        math.inf,
        1,
        math.inf,
    )
    assert found.stuck == "state 'b'"


def test_a_budget_that_decides_nothing_is_no_memory():
    """A model may have more states than pairs of state and memory are unrolled."""
    ssp = tp.domains.gridworld("5x5")
    best = tp.solve_cvar_exact(ssp, 0.05)
    policy = best.policy(1.0)
    assert isinstance(policy, BudgetPolicy) and policy.budget == 0
    found = evaluate_request(Request(Border(ssp), policy, "lattice", 0.05, pairs=5))
    assert (found.engine, found.reason) == ("lattice", "")
    assert found.mean == pytest.approx(best.cvar(1.0), rel=1e-12)
    assert set(tp.unroll(ssp, policy).memory.tolist()) == {0}


@pytest.mark.parametrize("engine", ["lattice", "queue"])
def test_a_memory_that_does_not_end_is_followed_lazily(engine):
    ssp, _ = chain_of([("s", "s", 0.5, 1), ("s", "g", 0.5, 1)])
    counting = tp.MemoryPolicy(0, lambda state, count: "a", lambda count, *step: count + 1)
    found = evaluate_request(Request(Border(ssp), counting, engine, 0.2, limit=10**6, pairs=50))
    assert found.cvar(0.2) == pytest.approx(4.25, rel=1e-11)
    assert found.bounds(0.2)[0] <= 4.25


@pytest.mark.parametrize("engine", ["lattice", "queue"])
def test_memory_ends_in_bounds(engine):
    ssp, policy = chain_of([("s", "s", 1 - 1e-6, 1), ("s", "g", 1e-6, 1)])
    with pytest.raises(
        LimitExceededError, match=r"memory limit of 0.000977 GiB is reached with 0\.0"
    ) as caught:
        tp.evaluate(ssp, policy, 1e-3, engine=engine, max_bytes=2**20)
    low, high = caught.value.bounds
    assert low <= 1e6 * (1 + math.log(1000)) <= high < 1e10


def test_a_budget_cut_short_claims_nothing_about_what_is_left():
    """The policy pays 5 for sure while there is budget; its risk-neutral part would pay 2.5 on
    average, and is not what is followed.
    """
    gamble = [("t", "risky", "g", 0.5, 0), ("t", "risky", "u", 0.5, 0), ("u", "on", "g", 1, 5)]
    ssp = tp.SSP.from_outcomes(
        [("s", "safe", "t", 1, 1), ("t", "safe", "g", 1, 5), *gamble], "s", ["g"]
    )
    policy = tp.solve_cvar_exact(ssp, 0.01).policy(0.01)
    truth = tp.evaluate(ssp, policy, 0.01).cvar(0.01)
    for nodes in range(3):
        try:
            tp.evaluate(ssp, policy, 0.01, max_nodes=nodes)
        except LimitExceededError as error:
            assert error.bounds[0] <= truth <= error.bounds[1]


@pytest.mark.parametrize("engine", ["lattice", "queue"])
@pytest.mark.parametrize("alpha", [1e-250, 1e-285, 1e-290])
def test_tails_near_the_smallest_floats(alpha: float, engine: str) -> None:
    """A coin is tossed until it falls: P(Z > k) = 2^-k and E[(Z - w)+] = 2^(1 - w)."""
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])
    found = tp.evaluate(ssp, {"s": "a"}, alpha, engine=engine)
    var = math.ceil(-math.log2(alpha))
    cvar = var + Fraction(2) ** (1 - var) / Fraction(alpha)
    low, high = found.bounds(alpha)
    assert found.var(alpha) == var
    assert found.cvar(alpha) == pytest.approx(float(cvar), rel=1e-12)
    assert low <= cvar <= high and high - low <= 1e-10 * cvar


def test_tails_below_what_masses_are_followed_to_are_refused():
    ssp, policy = chain_of([("s", "g", 1, 1)])
    with pytest.raises(OptionError, match="the least is 1e-290"):
        tp.evaluate(ssp, policy, 9e-291)


@pytest.mark.parametrize("p", [1e-4, 1e-5])
def test_the_tail_is_charged_for_its_masses(p):
    """Geometric costs: E[(Z - k)+] = (1 - p)^k / p, after as many roundings as there are steps."""
    found = tp.evaluate(*chain_of([("s", "g", p, 1), ("s", "s", 1 - p, 1)]), 1e-3)
    k, q = int(found.costs[-1]), Decimal(repr(p))
    with localcontext() as context:
        context.prec = 60
        truth = Fraction((1 - q) ** k / q)
    loss = tp.Loss([(0, 0), (k, 0)], slope=2)
    for low, high in (
        found.tail_excess_bounds,
        found.bounds(tp.Shortfall(k)),
        [b / 2 for b in found.bounds(loss)],
    ):
        assert low <= truth <= high
        assert high - low < 1e-8 * high


@pytest.mark.parametrize("rare", [9e-8, 5e-13, 1e-15])
@pytest.mark.parametrize("alpha", [0.6, 0.5, 1e-3])
def test_what_may_arrive_late_is_told_from_what_never_does(rare, alpha):
    """A loss that comes back to 0 is worth nothing where a run never ends: what counts is the rare
    way that takes long.
    """
    rows = [
        ("s", "g", 0.5, 1),
        ("s", "pit", 0.5 - rare, 1),
        ("s", "t", rare, 1),
        ("t", "g", 1, 100_000),
        ("pit", "pit", 1, 1),
    ]
    found = tp.evaluate(*chain_of(rows), alpha)
    low, high = found.bounds(tp.Loss([(1, 0), (100_001, 100_000), (200_000, 0)]))
    weight = Fraction(1, 2) + Fraction(repr(0.5 - rare)) + Fraction(repr(rare))
    truth = Fraction(repr(rare)) * 100_000 / weight
    assert low <= truth <= high
    assert found.unreached == pytest.approx(0.5 - rare, rel=1e-15)


def test_what_is_late_is_decided_by_the_costs_as_written():
    """0.1 + 0.2 is 0.3, though not as floats; beside a cost of three million there is no common
    unit worth the name.
    """
    found = tp.evaluate(
        *chain_of([("s", "t", 1, 0.1), ("t", "g", 0.5, 0.2), ("t", "g", 0.5, 3e6)]), 0.1
    )
    assert found.engine == "queue"
    assert found.cdf(0.3) == 0.5
    low, high = found.bounds(tp.Late(0.3))
    assert low <= 0.5 <= high < low + 1e-13
    found = tp.evaluate(*chain_of([("s", "t", 1, 1e7), ("t", "g", 1, 0.2)]), 0.1)
    low, high = found.bounds(tp.Shortfall(1e7))
    assert low <= Fraction(1, 5) <= high


@pytest.mark.parametrize("heuristic", ["min", "zero"])
def test_a_small_excess_over_a_cost_without_a_unit(heuristic):
    """One run in 200 pays 1e-8 more than 3.14...: the difference of two float sums has half of its
    digits.
    """
    rows = [("s", "g", 0.995, math.pi), ("s", "t", 0.005, math.pi), ("t", "g", 1, 1e-8)]
    found = tp.evaluate(*chain_of(rows), 0.01, heuristic=heuristic)
    low, high = found.tail_excess_bounds
    assert found.engine == "queue" and found.costs.tolist() == [math.pi]
    assert low <= Fraction(1, 200) / 10**8 <= high < low * (1 + 1e-12)


@pytest.mark.parametrize("budget", [0, 3, 40])
def test_a_budget_policy_that_misses_the_goal_comes_to_an_end(budget):
    """Half of the runs fall into a pit at once, more than alpha: once the budget is spent nothing
    is left to follow.
    """
    ssp, _ = chain_of([("s", "g", 0.5, 1), ("s", "pit", 0.5, 1), ("pit", "pit", 1, 1)])
    neutral = [0 if state == "s" else 1 if state == "pit" else -1 for state in ssp.states]
    policy = tp.BudgetPolicy.from_table(
        ssp, [[-1] + [choice] * budget for choice in neutral], neutral
    )
    told: list[tuple[int, float]] = []
    found = tp.evaluate(ssp, policy, 0.2, max_nodes=10**7, progress=lambda *news: told.append(news))
    assert not told
    assert found.expanded <= budget + 2
    assert (found.unreached, found.stuck, found.reason) == (0.5, "state 'pit' with memory 0", "")
    assert (found.var(0.5), found.var(0.4)) == (1.0, math.inf)


def test_a_cost_beyond_the_floats_is_finite_all_the_same():
    """Every run arrives, half of them after 1e200 steps of 1e150 on average: no bound below is
    infinite, and the checker takes them.
    """
    rows = [("s", "go", "g", 0.5, 1), ("s", "go", "t", 0.5, 1e300)]
    rows += [("t", "go", "g", 1e-200, 1e150), ("t", "go", "t", 1.0, 1e150)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.MarkovPolicy({"s": "go", "t": "go"})
    with pytest.warns(tp.TailpathWarning, match="no upper bound"):
        found = tp.evaluate(ssp, policy, 0.5)
    assert (found.unreached, found.mean) == (0.0, math.inf)
    for low, high in (found.tail_excess_bounds, found.bounds(0.5), found.mean_bounds):
        assert 0 <= low < math.inf == high
    # Of the mean nothing is proved below either: its certificate would need a number that is not a
    # float. The excess over 1 is 5e299 + 5e349, and the floats end between the two.
    assert found.tail_excess_bounds[0] > 4.99e299
    assert 0.999e300 < found.bounds(0.5)[0] <= found.cvar(0.5)
    assert check_distribution(found, ssp, policy).proved
