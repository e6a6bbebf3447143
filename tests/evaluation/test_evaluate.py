"""Both engines against exact rational arithmetic, on random models and policies."""

from __future__ import annotations

import math
import multiprocessing
import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.dp import forward
from tailpath.errors import EvaluationInterrupted, LimitExceededError
from tailpath.evaluation.engine import Request
from tailpath.evaluation.evaluate import evaluate_request
from tailpath.model.border import Border
from tests import reference, strategies

ENGINES = [("lattice", "min"), ("lattice", "zero"), ("queue", "min"), ("queue", "zero")]


def close(value: float, exact: Any, tolerance: float = 1e-12) -> bool:
    if exact == math.inf:
        return value == math.inf
    return abs(value - float(exact)) <= tolerance * max(
        abs(float(exact)), 1e-300
    ) or value == float(exact)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(), alpha=st.sampled_from([1.0, 0.5, 0.05, 1e-3]), engine=st.sampled_from(ENGINES)
)
def test_agrees_with_rationals(data: Any, alpha: float, engine: tuple[str, str]) -> None:
    model = data.draw(strategies.proper_models())
    policy = data.draw(strategies.policies(model))
    exact = reference.cost_distribution(model, policy, alpha)
    found = tp.evaluate(
        reference.to_ssp(model), policy, alpha, engine=engine[0], heuristic=engine[1]
    )
    assert found.engine == engine[0]
    assert close(found.mean, exact.mean)
    cvar, var = exact.cvar(alpha), exact.var(alpha)
    assert close(found.cvar(alpha), cvar)
    assert close(found.var(alpha), var, 1e-15)
    low, high = found.bounds(alpha)
    assert low <= cvar <= high
    assert (high - low) <= 1e-9 * high, "a thousand steps, each charged with some hundred roundings"
    assert found.mean_bounds[0] <= exact.mean <= found.mean_bounds[1]
    head = [(z, p) for z, p in exact.head if z <= var]
    assert len(found.costs) >= len(head)
    for (z, p), cost, probability in zip(head, found.costs, found.probabilities, strict=False):
        assert close(cost, z, 1e-15)
        assert close(probability, p)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), engine=st.sampled_from(ENGINES))
def test_agrees_at_a_tail_of_one_in_a_billion(data: Any, engine: tuple[str, str]) -> None:
    model = data.draw(strategies.proper_models(max_states=3))
    policy = data.draw(strategies.deterministic_policies(model))
    exact = reference.cost_distribution(model, policy, Fraction(1, 10**9))
    found = tp.evaluate(
        reference.to_ssp(model), policy, 1e-9, engine=engine[0], heuristic=engine[1]
    )
    for alpha in (1e-9, 1e-6, 1e-3, 0.3, 1.0):
        # A tail of exactly 10^-6 equals the alpha that the user wrote, though not the float, which
        # is a little less.
        written = Fraction(repr(alpha))
        cvar = exact.cvar(written)
        assert close(found.cvar(alpha), cvar)
        assert close(found.var(alpha), exact.var(written), 1e-15)
        low, high = found.bounds(alpha)
        assert low <= cvar <= high


@settings(max_examples=120, deadline=None)
@given(data=st.data(), engine=st.sampled_from(ENGINES))
def test_improper_policies(data: Any, engine: tuple[str, str]) -> None:
    model = data.draw(strategies.any_models(max_states=4))
    policy = data.draw(strategies.policies(model))
    lost = reference.unreached(model, policy)
    ssp = reference.to_ssp(model)
    alpha = min(1.0, float(lost) + 0.05)
    try:
        found = tp.evaluate(ssp, policy, alpha, engine=engine[0], heuristic=engine[1])
    except tp.TailpathError as error:
        assert "costs nothing and never reaches a goal" in str(error)
        assert lost > 0
        return
    assert close(found.unreached, lost)
    if lost == 0:
        return
    assert found.mean == math.inf
    assert found.cvar(alpha) == math.inf
    assert found.stuck
    exact = reference.cost_distribution(model, policy, alpha) if lost < 1 else None
    assert found.var(alpha) == (math.inf if exact is None else float(exact.var(alpha)))


def test_var_is_finite_exactly_down_to_the_probability_of_missing_the_goal() -> None:
    rows = [("s", "a", "g", 0.75, 1), ("s", "a", "trap", 0.25, 1), ("trap", "stay", "trap", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.MarkovPolicy({"s": "a", "trap": "stay"})
    found = tp.evaluate(ssp, policy, 0.1)
    assert found.unreached == 0.25
    assert found.var(0.25) == 1
    assert found.var(0.2499) == math.inf
    assert found.cvar(1.0) == math.inf
    assert "'trap'" in found.stuck


@pytest.mark.parametrize("budget", [1, 10**4, 2**61])
def test_a_budget_is_not_spent_where_nothing_leads_to_the_goal(budget: int) -> None:
    rows = [("s", "a", "g", 0.75, 1), ("s", "a", "trap", 0.25, 1), ("trap", "stay", "trap", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    choices = [{"s": 0, "trap": 1}.get(state, -1) for state in ssp.states]
    policy = tp.BudgetPolicy.from_table(ssp, [[c, c] for c in choices], choices)
    found = tp.evaluate(ssp, policy.with_budget(budget), 0.1, max_nodes=100)
    low, high = found.bounds(tp.Late(math.inf))
    assert low <= 0.25 <= high and high - low < 1e-13
    assert found.unreached == 0.25 and found.var(0.25) == 1 and found.cvar(1.0) == math.inf
    assert "'trap'" in found.stuck


def test_alpha_equal_to_a_tail_mass() -> None:
    rows = [("s", "a", "g", p, c) for p, c in ((0.3, 1), (0.6, 2), (0.1, 3))]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for engine, heuristic in ENGINES:
        found = tp.evaluate(
            ssp, tp.MarkovPolicy({"s": "a"}), 0.1, engine=engine, heuristic=heuristic
        )
        assert found.var(0.1) == 2
        assert found.cvar(0.1) == pytest.approx(3, rel=1e-14)
        assert found.var(0.7) == 1
        assert found.var(1.0) == 1


@pytest.mark.parametrize("more", ["0.00000000000025", "-0.00000000000025", "0.0000000000004"])
def test_a_tail_close_to_alpha_has_the_least_of_both_costs(more: str) -> None:
    """P(Z > 1) is alpha but for some 1e-13, which counts as equal for VaR and not for CVaR."""
    above = Fraction("0.25") + Fraction(more)
    rows = [("s", "a", "g", p, c) for p, c in ((Fraction("0.5") - Fraction(more), 1), (above, 40))]
    rows.append(("s", "a", "g", Fraction("0.25"), 20))
    ssp = tp.SSP.from_outcomes([(*row[:3], float(row[3]), row[4]) for row in rows], "s", ["g"])
    beyond = {w: sum(p * max(c - w, 0) for *_, p, c in rows) for w in (1, 20)}
    truth = min(w + 2 * excess for w, excess in beyond.items())
    for engine, heuristic in ENGINES:
        found = tp.evaluate(ssp, {"s": "a"}, 0.3, engine=engine, heuristic=heuristic)
        low, high = found.bounds(0.5)
        assert found.var(0.5) == 1
        assert low <= found.cvar(0.5) <= high and low <= truth <= high


def test_start_is_a_goal() -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 1)], "g", ["g"])
    for engine, heuristic in ENGINES:
        found = tp.evaluate(
            ssp, tp.MarkovPolicy({"s": "a"}), 0.01, engine=engine, heuristic=heuristic
        )
        assert (found.mean, found.var(0.5), found.cvar(0.01), found.std) == (0, 0, 0, 0)
        assert found.bounds(0.01) == (0, 0)


def test_decimal_costs_group_exactly() -> None:
    rows = [
        ("s", "a", "u", 0.5, 0.1),
        ("s", "a", "v", 0.5, 0.2),
        ("u", "a", "g", 1, 0.2),
        ("v", "a", "g", 1, 0.1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for engine, heuristic in ENGINES:
        found = tp.evaluate(
            ssp, tp.MarkovPolicy(dict.fromkeys("suv", "a")), 0.5, engine=engine, heuristic=heuristic
        )
        assert found.costs.tolist() == [0.3]
        assert found.probabilities.tolist() == [1.0]


def test_huge_jumps_need_no_huge_buffer() -> None:
    rows = [
        ("s", "a", "s", 0.5, 1),
        ("s", "a", "t", 0.25, 10**6),
        ("s", "a", "g", 0.25, 3),
        ("t", "a", "s", 1, 10**6),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.MarkovPolicy({"s": "a", "t": "a"})
    by_level, queue = (
        tp.evaluate(ssp, policy, 1e-3, engine=engine) for engine in ("lattice", "queue")
    )
    assert by_level.costs.tolist() == queue.costs.tolist()
    assert by_level.expanded == queue.expanded
    assert by_level.cvar(1e-3) == pytest.approx(queue.cvar(1e-3), rel=1e-13)


def test_leaking_free_cycles_are_solved_within_their_level() -> None:
    rows = [
        ("s", "a", "t", 1, 0),
        ("t", "a", "s", 0.999, 0),
        ("t", "a", "u", 0.001, 0),
        ("u", "a", "s", 0.5, 1),
        ("u", "a", "g", 0.5, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.MarkovPolicy(dict.fromkeys("stu", "a"))
    for engine, heuristic in ENGINES:
        found = tp.evaluate(ssp, policy, 1e-3, engine=engine, heuristic=heuristic)
        assert found.probabilities == pytest.approx([0.5**k for k in range(1, 11)], rel=1e-12)
        assert found.expanded < 100


def test_a_limit_on_nodes_ends_in_sound_bounds() -> None:
    ssp = tp.domains.gridworld("8x9")
    policy = tp.solve_expected(ssp).policy
    true = tp.evaluate(ssp, policy, 1e-6).cvar(1e-6)
    for engine in ("lattice", "queue"):
        with pytest.raises(tp.TailpathError, match="limit of 500 nodes") as error:
            tp.evaluate(ssp, policy, 1e-6, engine=engine, max_nodes=500)
        low, high = error.value.bounds
        assert low < true < high


def test_nothing_beyond_var_is_expanded() -> None:
    ssp = tp.domains.gridworld("5x5")
    policy = tp.solve_expected(ssp).policy
    chain = tp.unroll(ssp, policy)
    by_level, queue = (
        tp.evaluate(ssp, policy, 0.01, engine=engine) for engine in ("lattice", "queue")
    )
    assert by_level.expanded == queue.expanded
    # Every pair (node, level) with level + V_min <= VaR at most.
    var = by_level.var(0.01)
    assert by_level.expanded <= sum(
        int(var - least) + 1 for least in chain.least_cost[:-1].tolist() if least <= var
    )


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_discounted_costs(gamma: float) -> None:
    """Geometric number of steps T: Z = (1 - gamma^T) / (1 - gamma)."""
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])
    found = tp.evaluate(ssp, tp.MarkovPolicy({"s": "a"}), 0.01, gamma=gamma)
    steps = range(1, 200)
    cost = [(1 - gamma**t) / (1 - gamma) for t in steps]
    mean = math.fsum(z * 0.5**t for z, t in zip(cost, steps))
    assert found.engine == "queue"
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert found.var(0.01) == pytest.approx(cost[6], rel=1e-12)
    tail = math.fsum(z * 0.5**t for z, t in zip(cost, steps) if t > 7) + (0.01 - 0.5**7) * cost[6]
    assert found.cvar(0.01) == pytest.approx(tail / 0.01, rel=1e-10)
    low, high = found.bounds(0.01)
    assert low <= tail / 0.01 <= high


def test_history_dependent_policy_equals_its_markov_twin() -> None:
    rows = [("s", "a", "s", 0.25, 1), ("s", "a", "g", 0.75, 2), ("s", "b", "g", 1, 9)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    markov = tp.evaluate(ssp, tp.MarkovPolicy({"s": "a"}), 1e-3)
    history = tp.evaluate(ssp, tp.HistoryPolicy(lambda h: "a"), 1e-3)
    for alpha in (1e-3, 0.1, 1.0):
        assert history.cvar(alpha) == pytest.approx(markov.cvar(alpha), rel=1e-11)
        assert history.var(alpha) == markov.var(alpha)
    assert history.bounds(1e-3)[0] <= markov.cvar(1e-3)


def test_history_that_ends_is_exact() -> None:
    """After two failures the policy gives up and takes the sure way; the history is
    needed to know.
    """
    rows = [("s", "a", "s", 0.25, 1), ("s", "a", "g", 0.75, 2), ("s", "b", "g", 1, 9)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    seen = []

    def act(history: tuple[Any, ...]) -> str:
        seen.append(history)
        return "a" if len(history) < 7 else "b"

    found = tp.evaluate(ssp, tp.HistoryPolicy(act), 0.001)
    assert found.costs.tolist() == [2, 3, 11]
    assert found.probabilities.tolist() == [0.75, 0.1875, 0.0625]
    assert found.bounds(0.5)[1] == pytest.approx(found.cvar(0.5), rel=1e-11)
    assert ("s", "a", 1.0, "s", "a", 1.0, "s") in seen


def test_no_common_unit_takes_the_queue() -> None:
    rows = [("s", "a", "s", 0.5, math.pi), ("s", "a", "g", 0.5, math.e)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    assert ssp.cost_unit is None
    found = tp.evaluate(ssp, tp.MarkovPolicy({"s": "a"}), 0.25)
    assert found.engine == "queue"
    assert found.var(0.25) == pytest.approx(math.e + math.pi, rel=1e-15)
    assert found.mean == pytest.approx(math.e + math.pi, rel=1e-15)
    with pytest.raises(tp.TailpathError, match="no common unit"):
        tp.evaluate(ssp, tp.MarkovPolicy({"s": "a"}), 0.25, engine="lattice")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"s": "fly"}, "action 'fly' in state 's', which only has 'a'"),
        ({}, "no action for state 's'"),
        ({"s": {"a": 0.5}}, "in state 's' sum to 0.5"),
        ({"s": {"a": -1.0}}, "probability -1.0"),
        ({"nowhere": "a"}, "no state 'nowhere'"),
    ],
)
def test_policies_that_do_not_fit(policy: dict[str, Any], message: str) -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 1)], "s", ["g"])
    with pytest.raises(tp.TailpathError, match=message):
        tp.evaluate(ssp, tp.MarkovPolicy(policy), 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha must lie in"),
        ({"alpha": 1.5}, "alpha must lie in"),
        ({"alpha": math.nan}, "alpha must lie in"),
        ({"alpha": "x"}, "alpha must be a number"),
        ({"alpha": 0.5, "engine": "warp"}, "unknown engine 'warp'"),
        ({"alpha": 0.5, "heuristic": "max"}, "unknown heuristic 'max'; use 'min' or 'zero'"),
        ({"alpha": 0.5, "heuristic": {"s": 1}}, "unknown heuristic {'s': 1}; use 'min' or 'zero'"),
        ({"alpha": 0.5, "heuristic": [0.0, 0.0]}, "unknown heuristic"),
        ({"alpha": 0.5, "gamma": 1.5}, "gamma must lie in"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 1)], "s", ["g"])
    with pytest.raises(tp.TailpathError, match=message):
        tp.evaluate(ssp, tp.MarkovPolicy({"s": "a"}), **options)


def test_asking_below_alpha_says_what_to_do() -> None:
    ssp = tp.domains.gridworld("5x5")
    found = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 0.01)
    with pytest.raises(tp.TailpathError, match=r"call evaluate with alpha=0\.001"):
        found.cvar(0.001)
    with pytest.raises(tp.TailpathError, match="known up to cost"):
        found.cdf(1e6)


def test_a_cost_beyond_the_head_is_told_the_alpha_that_reaches_it() -> None:
    ssp = tp.domains.river(rows=6, columns=4)
    policy = tp.solve_expected(ssp).policy
    with pytest.raises(tp.TailpathError, match=r"an alpha of about .* reaches 60$") as refusal:
        tp.evaluate(ssp, policy, 0.2).cdf([3, 60])
    alpha = float(str(refusal.value).split("about ")[1].split(" ")[0])
    assert 1 - tp.evaluate(ssp, policy, alpha).cdf(60) == pytest.approx(3.6886e-10, rel=1e-4)


@pytest.mark.parametrize("ring_cells", [0, 1 << 9, 1 << 12, 1 << 22])
@pytest.mark.parametrize("lists", [1, 3, 1 << 14])
def test_where_long_jumps_wait_changes_nothing(
    ring_cells: int, lists: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ring and the lists are two places for the same entries, and epochs may share a list."""
    monkeypatch.setattr(forward, "MAX_LISTS", lists)
    ssp = tp.domains.gridworld("8x9", obstacle_cost=150)
    policy = tp.solve_expected(ssp).policy
    queue = tp.evaluate(ssp, policy, 1e-4, engine="queue")
    found = evaluate_request(Request(Border(ssp), policy, "lattice", 1e-4, ring_cells=ring_cells))
    assert found.expanded == queue.expanded
    assert found.costs.tolist() == queue.costs.tolist()
    assert found.probabilities == pytest.approx(queue.probabilities, rel=1e-12)
    assert found.cvar(1e-4) == pytest.approx(queue.cvar(1e-4), rel=1e-13)
    assert found.tail_mass == pytest.approx(queue.tail_mass, rel=1e-12)


def test_what_waits_in_lists_is_open_once() -> None:
    """Of 200 costs as likely, 180 are the head, also where most of them wait in lists."""
    rows = [("s", "a", "g", Fraction(1, 200), 100 * k + 1) for k in range(200)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.MarkovPolicy({"s": "a"})
    for cells in (1 << 9, 1 << 22):
        found = evaluate_request(Request(Border(ssp), policy, "lattice", 0.1, ring_cells=cells))
        assert len(found.costs) == 180


def test_costs_that_are_no_floats_are_off() -> None:
    """An odd number beyond 2^53 exceeds the nearest float by 1, which floats do not tell."""
    unit, steps = 3**19, 7750003
    total = unit * steps
    assert 2**53 < total < 2**54 and total - int(float(total)) == 1
    rows = [("s", "a", "t", 1, unit * (steps - 1)), ("t", "a", "g", 1, unit)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.evaluate(ssp, {"s": "a", "t": "a"}, 0.5, engine="lattice")
    low, high = found.bounds(tp.Shortfall(int(float(total))))
    assert low <= 1 <= high


@pytest.mark.parametrize(
    "error",
    [LimitExceededError("too many", (1.0, 2.5)), EvaluationInterrupted("stopped", (0.5, math.inf))],
)
def test_an_early_end_survives_a_pickle(error: Any) -> None:
    """A pool of processes hands errors over by pickle; one that cannot be read back hangs it."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.bounds) == (str(error), error.bounds)


def test_a_pool_hands_over_what_is_certain() -> None:
    with (
        multiprocessing.get_context("spawn").Pool(1) as pool,
        pytest.raises(LimitExceededError, match="limit of 3 nodes") as caught,
    ):
        pool.apply(_too_few_nodes)
    assert (
        caught.value.bounds[0] <= tp.evaluate(*_coin(), 1e-6).cvar(1e-6) <= caught.value.bounds[1]
    )


def _coin() -> tuple[tp.SSP, tp.MarkovPolicy]:
    rows = [("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)]
    return tp.SSP.from_outcomes(rows, "s", ["g"]), tp.MarkovPolicy({"s": "a"})


def _too_few_nodes() -> None:
    tp.evaluate(*_coin(), 1e-6, max_nodes=3)


@pytest.mark.filterwarnings("ignore::tailpath.TailpathWarning", "ignore::RuntimeWarning")
def test_no_number_lies_outside_of_its_bounds_where_nothing_could_be_proved():
    """A state that is left once in 10^200 steps: elimination in floats gave a mean of -1e222."""
    rows = [
        (0, 0, 2, 0.125, 100),
        (0, 0, 3, 0.875, 300),
        (0, 1, 3, 0.9999997583527832, 0),
        (0, 1, 5, 1.4207578475346023e-07, 200),
    ]
    rows += [
        (0, 1, 3, 9.95714320116198e-08, 100),
        (0, 2, 4, 0.06821751428901068, 100),
        (0, 2, 0, 0.26023028953679944, 0),
    ]
    rows += [
        (0, 2, 1, 0.4117312508642794, 0),
        (0, 2, 4, 0.25982094530991046, 300),
        (2, 0, 4, 1.0, 200),
        (2, 0, 5, 1e-290, 300),
    ]
    rows += [
        (2, 0, 2, 1e-100, 5000),
        (2, 0, 2, 1e-30, 100),
        (3, 0, 5, 1.0, 0),
        (3, 1, 2, 7 / 19, 100),
        (3, 1, 3, 7 / 19, 300),
    ]
    rows += [
        (3, 1, 0, 5 / 19, 200),
        (3, 2, 5, 1.0, 100),
        (4, 0, 3, 1.0, 0),
        (1, 0, 1, 6 / 7, 200),
        (1, 0, 1, 1 / 7, 100),
    ]
    rows += [(1, 1, 1, 1.0, 0), (1, 1, 0, 1e-200, 200), (1, 1, 2, 1e-290, 300)]
    ssp = tp.SSP.from_outcomes(rows, 0, [5])
    policy = tp.MarkovPolicy({0: 2, 1: {1: 1e-6, 0: 0.999999}, 2: 0, 3: 1, 4: 0})
    for engine in ("lattice", "queue"):
        costs = tp.evaluate(ssp, policy, 1.0, engine=engine, max_nodes=3_000)
        low, high = costs.bounds(1.0)
        assert costs.mean_bounds[0] <= costs.mean <= costs.mean_bounds[1] and costs.mean >= 0
        assert low <= costs.cvar(1.0) <= high


def test_what_a_history_may_still_cost_is_bounded_by_nothing() -> None:
    """A memory without end is followed step by step; what it does later nobody has looked at."""
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "s", 0.5, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    low, high = tp.evaluate(ssp, tp.HistoryPolicy(lambda history: "a"), 1e-2).bounds(1e-2)
    truth = tp.evaluate(ssp, {"s": "a"}, 1e-2).cvar(1e-2)
    assert 0.99 * truth < low <= truth and high == math.inf
