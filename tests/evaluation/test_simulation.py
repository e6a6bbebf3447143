"""Monte Carlo against the exact distributions, and its intervals against closed forms. All seeds
are fixed, so nothing here is left to chance.
"""

import itertools
import math
import subprocess
import sys
import textwrap
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import tailpath as tp
from tailpath.errors import OptionError, PolicyError
from tailpath.evaluation.estimation import MIN_TAIL_RUNS
from tailpath.evaluation.following import Follower
from tailpath.evaluation.simulation import RunTuning, simulate_request
from tests import textbook

GRID = tp.domains.gridworld("8x9")
RIVER = tp.domains.river(rows=16, columns=6)
RETRY = tp.SSP.from_outcomes(
    [
        ("s", "a", "s", 0.25, 1),
        ("s", "a", "g", 0.75, 2),
        ("s", "b", "g", 0.5, 3),
        ("s", "b", "s", 0.5, 5),
    ],
    "s",
    ["g"],
)


def random_row(n, seed):
    """One step with n different costs and uneven probabilities, given in the order of the costs."""
    weight = np.random.default_rng(seed).integers(1, 100, n)
    rows = [
        ("s", "a", "g", Fraction(int(w), int(weight.sum())), cost)
        for cost, w in enumerate(weight, 1)
    ]
    return tp.SSP.from_outcomes(rows, "s", ["g"]), tp.MarkovPolicy({"s": "a"})


CASES = {
    "markov": (GRID, tp.solve_expected(GRID).policy),
    "randomised": (RETRY, tp.MarkovPolicy({"s": {"a": 0.25, "b": 0.75}})),
    "budget": (RIVER, tp.solve_cvar_exact(RIVER, 0.01).policy(0.01)),
    "memory": (RETRY, tp.MemoryPolicy(0, lambda s, m: "ab"[m % 2], lambda m, *step: (m + 1) % 4)),
    "history": (RETRY, tp.HistoryPolicy(lambda h: "ab"[len(h) // 3 % 2])),
    "long row": random_row(500, 1),
    "short row": random_row(16, 2),
}
RUNS = {"history": 10_000}


def p_value(ssp, policy, costs):
    """Of the chi-square test of a sample against the exact distribution of a policy."""
    found = tp.evaluate(ssp, policy, 1e-4)
    often = len(costs) * found.probabilities >= 10
    # All rare costs together are one more class; so that it is not rare itself, it takes the rarest
    # of the others with it.
    often[np.flatnonzero(often)[-1]] = False
    observed = np.array([np.sum(costs == cost) for cost in found.costs[often]])
    expected = len(costs) * found.probabilities[often]
    observed, expected = (
        np.append(counts, len(costs) - counts.sum()) for counts in (observed, expected)
    )
    assert np.all(expected > 9)
    return chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1)


@pytest.mark.parametrize("name", CASES)
def test_the_sample_has_the_exact_distribution(name):
    ssp, policy = CASES[name]
    costs = tp.simulate(ssp, policy, RUNS.get(name, 200_000), 1)
    assert p_value(ssp, policy, costs) > 1e-3


def test_a_sample_of_another_policy_would_be_noticed():
    ssp, policy = CASES["randomised"]
    other = tp.MarkovPolicy({"s": {"a": 0.26, "b": 0.74}})
    assert p_value(ssp, policy, tp.simulate(ssp, other, 200_000, 1)) < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_estimates_agree_with_the_exact_values(name):
    ssp, policy = CASES[name]
    found = tp.evaluate(ssp, policy, 0.01)
    costs = tp.simulate(ssp, policy, RUNS.get(name, 200_000), 2)
    for alpha in (0.01, 0.1, 1.0):
        estimate = tp.estimate(costs, alpha, 0.999)
        assert estimate.mean_interval[0] <= found.mean <= estimate.mean_interval[1]
        assert estimate.var_interval[0] <= found.var(alpha) <= estimate.var_interval[1]
        assert estimate.cvar_interval[0] <= found.cvar(alpha) <= estimate.cvar_interval[1]
        assert estimate.cvar_interval[0] <= estimate.cvar <= estimate.cvar_interval[1]
        assert estimate.unreached == 0


# ---------------------------------------------------------------------- the same seed, the same
# runs


@pytest.mark.parametrize("name", ["markov", "budget"])
def test_runs_do_not_depend_on_threads_blocks_or_pauses(name):
    ssp, policy = CASES[name]
    alone = tp.simulate(ssp, policy, 20_000, 5, threads=1)
    assert np.array_equal(tp.simulate(ssp, policy, 20_000, 5, threads=3), alone)
    assert np.array_equal(tp.simulate(ssp, policy, 137, 5), alone[:137])
    assert np.array_equal(simulate_request(ssp, policy, 500, 5, 1, RunTuning(pause=7)), alone[:500])
    assert np.array_equal(
        simulate_request(ssp, policy, 5_000, 5, 2, RunTuning(block=100)), alone[:5_000]
    )
    assert not np.array_equal(tp.simulate(ssp, policy, 20_000, 6), alone)


def test_history_runs_repeat():
    ssp, policy = CASES["history"]
    assert np.array_equal(tp.simulate(ssp, policy, 100, 3), tp.simulate(ssp, policy, 100, 3))
    assert not np.array_equal(tp.simulate(ssp, policy, 100, 3), tp.simulate(ssp, policy, 100, 4))


def test_runs_are_independent_of_each_other():
    """First steps of neighbouring runs, and of the same run under neighbouring seeds: a table of
    pairs of 8 outcomes each.
    """
    ssp = tp.SSP.from_outcomes(
        [("s", "a", "g", Fraction(1, 8), cost) for cost in range(8)], "s", ["g"]
    )
    one, two = (
        tp.simulate(ssp, tp.MarkovPolicy({"s": "a"}), 100_000, seed).astype(int)
        for seed in (10, 11)
    )
    for first, second in ((one[::2], one[1::2]), (one, two), (one[:50_000], one[50_000:])):
        pairs = np.bincount(8 * first + second, minlength=64)
        expected = len(first) / 64
        assert chi2.sf(np.sum((pairs - expected) ** 2 / expected), 63) > 1e-3


# ---------------------------------------------------------------------- budgets


def by_functions(policy):
    return tp.MemoryPolicy(policy.start, policy.action, policy.remember)


@pytest.mark.parametrize("alpha", [0.001, 0.1, 1.0])
def test_the_budget_walk_is_the_walk_on_the_product(alpha):
    policy = tp.solve_cvar_exact(RIVER, 0.001).policy(alpha)
    assert np.array_equal(
        tp.simulate(RIVER, policy, 5_000, 9), tp.simulate(RIVER, by_functions(policy), 5_000, 9)
    )


def test_a_budget_in_rounded_units():
    ssp = replace(RIVER, outcome_cost=RIVER.outcome_cost * math.pi, exact_unit=None)
    policy = tp.solve_cvar_exact(ssp, 0.05, delta=0.5).policy(0.1)
    assert ssp.cost_unit is None
    assert policy.budget > 0
    costs = tp.simulate(ssp, policy, 2_000, 1)
    assert np.array_equal(costs, tp.simulate(ssp, by_functions(policy), 2_000, 1))
    assert len(set(costs.tolist())) > 5


def test_a_budget_with_a_free_circle_walks_the_product():
    """Waiting costs nothing and changes nothing; with budget left a run could wait for ever without
    ever spending it.
    """
    rows = [
        ("s", "wait", "t", 1, 0),
        ("t", "back", "s", 1, 0),
        ("s", "go", "g", 0.5, 1),
        ("s", "go", "s", 0.5, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    wait, back, go = (
        ssp.choice_index(ssp.state_index(s), a)
        for s, a in (("s", "wait"), ("t", "back"), ("s", "go"))
    )
    policy = tp.BudgetPolicy.from_table(ssp, [[-1, wait], [-1, back], [-1, -1]], [go, back, -1])
    assert np.all(np.isinf(tp.simulate(ssp, policy, 50, 1)))


def test_a_budget_policy_that_gets_lost():
    """At no budget the policy cycles at a price: such runs never arrive."""
    rows = [("s", "go", "g", 0.5, 1), ("s", "go", "s", 0.5, 1), ("s", "loop", "s", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.BudgetPolicy.from_table(ssp, [[-1, 0, 0], [-1, -1, -1]], [1, -1])
    costs = tp.simulate(ssp, policy, 4_000, 1)
    assert np.array_equal(costs, tp.simulate(ssp, by_functions(policy), 4_000, 1))
    assert set(costs.tolist()) == {1.0, 2.0, math.inf}
    assert np.mean(np.isinf(costs)) == pytest.approx(0.25, abs=0.03)


def test_a_budget_policy_without_an_action():
    """State t has no risk-neutral choice, and it is met with the budget spent."""
    ssp = tp.SSP.from_outcomes([("s", "go", "t", 1, 1), ("t", "go", "g", 1, 1)], "s", ["g"])
    policy = tp.BudgetPolicy.from_table(ssp, [[-1, 0], [-1, -1], [-1, -1]], [-1, -1, -1])
    with pytest.raises(PolicyError, match="no action for state 't'"):
        tp.simulate(ssp, policy, 10, 1)


# ---------------------------------------------------------------------- edges


def test_costs_come_out_exact():
    rows = [
        ("s", "a", "u", 0.5, 0.1),
        ("s", "a", "v", 0.5, 0.2),
        ("u", "a", "g", 1, 0.2),
        ("v", "a", "g", 1, 0.1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    assert set(tp.simulate(ssp, tp.MarkovPolicy(dict.fromkeys("suv", "a")), 100, 0).tolist()) == {
        0.3
    }
    assert set(tp.simulate(ssp, tp.HistoryPolicy(lambda h: "a"), 100, 0).tolist()) == {0.3}


def test_costs_without_a_unit():
    ssp = tp.SSP.from_outcomes([("s", "a", "t", 1, math.pi), ("t", "a", "g", 1, 1)], "s", ["g"])
    assert ssp.cost_unit is None
    for policy in (tp.MarkovPolicy({"s": "a", "t": "a"}), tp.HistoryPolicy(lambda h: "a")):
        assert tp.simulate(ssp, policy, 3, 0).tolist() == [math.pi + 1] * 3


def test_the_start_is_a_goal():
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 1)], "g", ["g"])
    budget = tp.solve_cvar_exact(ssp, 0.5).policy(0.5)
    for policy in (tp.MarkovPolicy({"s": "a"}), tp.HistoryPolicy(lambda h: "a"), budget):
        assert tp.simulate(ssp, policy, 4, 0).tolist() == [0] * 4


def test_lost_runs_cost_infinity():
    rows = [
        ("s", "a", "g", 0.75, 1),
        ("s", "a", "trap", 0.25, 1),
        ("trap", "stay", "trap", 1, 1),
        ("s", "b", "s", 1, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for policy, n in (
        (tp.MarkovPolicy({"s": "a", "trap": "stay"}), 20_000),
        (tp.HistoryPolicy(lambda h: "a"), 2_000),
    ):
        costs = tp.simulate(ssp, policy, n, 1)
        assert set(costs.tolist()) == {1.0, math.inf}
        share = np.mean(np.isinf(costs))
        assert share == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / n))
        estimate = tp.estimate(costs, 0.5)
        assert (estimate.unreached, estimate.var, estimate.mean, estimate.cvar) == (
            share,
            1.0,
            math.inf,
            math.inf,
        )
        assert estimate.var_interval == (1.0, 1.0)
        assert estimate.cvar_interval == (math.inf, math.inf)
        assert tp.estimate(costs, 0.1).var_interval == (math.inf, math.inf)
    assert np.all(np.isinf(tp.simulate(ssp, tp.MarkovPolicy({"s": "b"}), 5, 1))), (
        "the start itself is lost"
    )


def test_a_history_that_goes_nowhere_is_noticed():
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 1), ("s", "b", "s", 1, 1)], "s", ["g"])
    with pytest.raises(PolicyError, match="after 50 steps; it is in state 's'"):
        simulate_request(ssp, tp.HistoryPolicy(lambda h: "b"), 1, 0, 1, RunTuning(steps=50))


def test_a_memory_that_does_not_end_is_walked_step_by_step():
    counting = tp.MemoryPolicy(0, lambda s, m: "ab"[m % 2], lambda m, *step: m + 1)
    costs = simulate_request(RETRY, counting, 10_000, 1, 1, RunTuning(pairs=50))
    assert p_value(RETRY, CASES["history"][1], costs) > 1e-3


def test_no_runs_at_all():
    ssp, policy = CASES["markov"]
    for any_policy in (policy, tp.HistoryPolicy(lambda h: "N")):
        costs = tp.simulate(ssp, any_policy, 0, 0)
        assert (costs.shape, costs.dtype) == ((0,), np.float64)


@pytest.mark.parametrize("n", [-1, 1.5, "many", None, math.nan, math.inf])
def test_numbers_of_runs_that_are_none(n):
    with pytest.raises(
        OptionError, match="the number of runs must be a whole number of at least 0"
    ):
        tp.simulate(*CASES["markov"], n, 0)


@pytest.mark.parametrize("seed", [-1, 0.5, None])
def test_seeds_that_are_none(seed):
    with pytest.raises(OptionError, match="the seed must be a whole number"):
        tp.simulate(*CASES["markov"], 1, seed)


def test_any_whole_number_is_a_seed():
    seen = {
        tuple(tp.simulate(*CASES["markov"], 20, seed).tolist())
        for seed in (0, 1, 2**64, 2**64 + 1, 2**200, np.int64(7))
    }
    assert len(seen) == 6
    assert np.array_equal(
        tp.simulate(*CASES["markov"], 20.0, 7),
        tp.simulate(*CASES["markov"], np.int32(20), np.uint8(7)),
    )


def test_an_action_the_state_does_not_have():
    for policy in (tp.MarkovPolicy({"s": "fly"}), tp.HistoryPolicy(lambda h: "fly")):
        with pytest.raises(PolicyError, match="action 'fly' in state 's', which only has 'a', 'b'"):
            tp.simulate(RETRY, policy, 1, 0)


@pytest.mark.kill
def test_an_interrupt_ends_threads_too():
    """Each run needs 3 * 2^39 steps."""
    code = """
        import os, signal, threading
        import tailpath as tp
        from tests import textbook
        short, problem = map(textbook.haddad_monmege, (3, 40))
        # Compiles what is needed: an interrupt of the compiler is another matter.
        tp.simulate(short.ssp, short.policy, 10, 0, threads=2)
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            tp.simulate(problem.ssp, problem.policy, 20_000, 0, threads=2)
        except KeyboardInterrupt:
            print("interrupted")
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "interrupted\n", "")


# ---------------------------------------------------------------------- intervals


def test_estimates_by_hand():
    """Ten costs 1 .. 10; the worst 25 % are 10, 9 and half of 8."""
    estimate = tp.estimate([3, 1, 2, 10, 5, 4, 6, 9, 8, 7], 0.25, 0.9)
    assert (estimate.runs, estimate.alpha, estimate.confidence, estimate.mean) == (
        10,
        0.25,
        0.9,
        5.5,
    )
    assert estimate.var == 8
    assert estimate.cvar == pytest.approx((10 + 9 + 8 / 2) / 2.5)
    # binomial(10, 3/4): P(X <= 4) = 0.0197, P(X <= 5) = 0.0781, P(X >= 10) = 0.0563
    assert estimate.var_interval == (5, math.inf)
    assert estimate.cvar_interval == (5, math.inf), f"fewer than {MIN_TAIL_RUNS} runs in the tail"
    assert tp.estimate([4.0] * 100, 0.5).cvar_interval == (4, 4)


def test_a_run_at_the_least_cost_leaves_the_least_as_a_bound():
    assert tp.estimate([0.0, 0.0, 1.0], 0.9).var_interval[0] == 0.0
    assert tp.estimate([-1.0, 0.0, 1.0], 0.9).var_interval[0] == -math.inf


def test_the_interval_of_a_tail_is_that_of_the_mean_excess_over_alpha():
    """By the normal law on a large sample, where Hall's transformation changes little."""
    sample, alpha = np.random.default_rng(1).exponential(10.0, 40_000), 0.05
    found = tp.estimate(sample, alpha)
    excess = np.maximum(sample - found.var, 0.0)
    error = 1.96 * excess.std() / math.sqrt(len(sample)) / alpha
    low, high = found.cvar_interval
    assert found.cvar - low == pytest.approx(error, rel=0.1)
    assert high - found.cvar == pytest.approx(error, rel=0.1)


@pytest.mark.parametrize(
    ("n", "alpha", "confidence"),
    [(40, 0.1, 0.9), (200, 0.5, 0.99), (300, 0.05, 0.95), (15, 1.0, 0.95), (10, 0.001, 0.9)],
)
def test_order_statistics_against_the_binomial_distribution(n, alpha, confidence):
    p, miss = 1 - Fraction(str(alpha)), (1 - Fraction(str(confidence))) / 2
    up_to = list(
        itertools.accumulate(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1))
    )
    lower = max((k for k in range(1, n + 1) if up_to[k - 1] <= miss), default=0)
    upper = min((k for k in range(1, n + 1) if 1 - up_to[k - 1] <= miss), default=math.inf)
    assert tp.estimate(np.arange(1, n + 1), alpha, confidence).var_interval == (lower, upper)


@pytest.mark.parametrize(
    ("problem", "alpha", "n"),
    [
        (textbook.geometric(), 0.1, 300),
        (textbook.geometric(), 0.01, 5_000),
        (textbook.negative_binomial(), 0.05, 2_000),
        (textbook.coupon_collector(), 0.1, 1_000),
        (textbook.gamblers_ruin(), 0.2, 500),
        (textbook.lottery(), 0.5, 2_000),
        (textbook.geometric(), 1.0, 100),
    ],
)
def test_intervals_hold_as_often_as_they_say(problem, alpha, n):
    """600 samples, 95 % intervals. For VaR the promise is at least; for CVaR and the mean it holds
    for large samples: four standard errors and one percent are allowed for chance and for the size.
    """
    samples = 600
    costs = tp.simulate(problem.ssp, problem.policy, n * samples, 4).reshape(samples, n)
    found = [tp.estimate(sample, alpha) for sample in costs]

    def held(interval, value):
        return (
            sum(
                low <= value <= high
                for low, high in (getattr(estimate, interval) for estimate in found)
            )
            / samples
        )

    chance = 4 * math.sqrt(0.05 * 0.95 / samples)
    assert held("var_interval", problem.var(alpha)) >= 0.95 - chance
    assert abs(held("cvar_interval", problem.cvar(alpha)) - 0.95) <= chance + 0.01
    assert abs(held("mean_interval", problem.mean) - 0.95) <= chance + 0.01


@pytest.mark.parametrize(
    ("costs", "alpha", "confidence", "message"),
    [
        ([], 0.5, 0.9, "an estimate needs"),
        ([1, math.nan], 0.5, 0.9, "an estimate needs"),
        ([-math.inf, 1], 0.5, 0.9, "an estimate needs"),
        ([1, 2], 0, 0.9, "alpha must lie in"),
        ([1, 2], 0.5, 1, "confidence must lie between 0 and 1"),
        ([1, 2], 0.5, math.nan, "confidence must lie between 0 and 1"),
    ],
)
def test_bad_estimates(costs, alpha, confidence, message):
    with pytest.raises(OptionError, match=message):
        tp.estimate(costs, alpha, confidence)


def test_runs_of_a_mixture_are_runs_of_its_members():
    """One coin a run: shares as given, the same for the same seed, and more runs go on alike."""
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 3), ("s", "b", "g", 1, 5)], "s", ["g"])
    members = tuple(tp.MarkovPolicy({"s": action}) for action in "ab")
    mixture = tp.MixedPolicy(members, (0.25, 0.75))
    costs = tp.simulate(ssp, mixture, 4_000, 1)
    assert set(costs.tolist()) == {3.0, 5.0}
    assert np.mean(costs == 3) == pytest.approx(0.25, abs=0.03)
    assert np.array_equal(costs, tp.simulate(ssp, mixture, 4_000, 1))
    assert not np.array_equal(costs, tp.simulate(ssp, mixture, 4_000, 2))


def test_members_of_a_mixture_draw_for_themselves():
    """Two members that do the same, but not in the same runs."""
    policy = tp.MarkovPolicy({"s": {"a": 0.5, "b": 0.5}})
    mixture = tp.MixedPolicy((policy, policy), (0.5, 0.5))
    costs = tp.simulate(RETRY, mixture, 20_000, 3)
    exact = tp.evaluate(RETRY, policy, 0.01)
    assert np.mean(costs) == pytest.approx(exact.mean, rel=0.03)
    assert p_value(RETRY, policy, costs) > 1e-3


def test_a_function_that_gives_no_action_is_told_with_its_state():
    rows = [("s", "a", "t", 1, 1), ("t", "a", "g", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.BudgetPolicy.from_table(ssp, [[-1, 0], [-1, -1], [-1, -1]], [0, -1, -1])
    with pytest.raises(PolicyError, match="no action for state 't'"):
        simulate_request(ssp, policy, 70, 1, 1, RunTuning(pairs=0))


def test_policies_that_look_at_the_state_alone_are_followed_in_arrays():
    """Others are not, though they have a table of choices."""
    river = tp.domains.river(rows=6, columns=4)
    policy = tp.solve_expected(river).policy
    follower = Follower(river, policy)
    assert follower.of_state is not None and follower.of_state.shape == (river.n_states,)
    by_atoms = tp.solve_cvar_quantile(river, [0.1, 0.5, 1]).policy(0.1)
    assert Follower(river, by_atoms).of_state is None
