"""Goals that are not sure: against enumeration in rationals on models without cycles, and against
all policies on models with them.
"""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath import SSP, MarkovPolicy
from tailpath.errors import GoalUnreachableError, ModelError, OptionError, TailpathError
from tailpath.solvers.arrival import solve_arrival
from tests import reference
from tests.reference import Model
from tests.strategies import any_models

TRAP = "trap"


@st.composite
def models_with_dead_ends(draw, most=4):
    """States in a row, every step leads on; some outcomes end in a trap. All probabilities are
    sixteenths.
    """
    names = [f"s{i}" for i in range(draw(st.integers(1, most)))]
    choices = {}
    for i, state in enumerate(names):
        actions = {}
        for k in range(draw(st.integers(1, 2))):
            n = draw(st.integers(1, 3))
            cuts = sorted(
                draw(st.lists(st.integers(1, 15), min_size=n - 1, max_size=n - 1, unique=True))
            )
            chance = [Fraction(b - a, 16) for a, b in zip([0, *cuts], [*cuts, 16], strict=True)]
            targets = draw(
                st.lists(
                    st.sampled_from([*names[i + 1 :], "goal", "goal", TRAP]), min_size=n, max_size=n
                )
            )
            costs = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
            actions[f"a{k}"] = [
                (t, p, Fraction(c, 2)) for t, p, c in zip(targets, chance, costs, strict=True)
            ]
        choices[state] = actions
    choices[TRAP] = {"stay": [(TRAP, Fraction(1), Fraction(1))]}
    return Model(choices, "s0", frozenset(["goal"]))


def best_chance(model, state="s0"):
    """The largest probability of arriving, by recursion along the row of states."""
    if state in model.goals or state == TRAP:
        return Fraction(int(state != TRAP))
    return max(
        sum(p * best_chance(model, t) for t, p, _ in outcomes)
        for outcomes in model.choices[state].values()
    )


def runs(model, policy, most_steps=20):
    """All runs of a policy of names: {(end state, cost, steps): probability}."""
    found, waiting = {}, [(model.start, Fraction(0), 0, Fraction(1))]
    while waiting:
        state, cost, steps, chance = waiting.pop()
        if state in model.goals or state == TRAP or steps == most_steps:
            found[state, cost, steps] = found.get((state, cost, steps), 0) + chance
            continue
        waiting.extend(
            (t, cost + c, steps + 1, chance * p) for t, p, c in model.choices[state][policy[state]]
        )
    return found


def all_policies(model):
    states = [s for s in model.choices if s != TRAP]
    return [
        dict(zip(states, picked, strict=True))
        for picked in itertools.product(*(model.choices[s] for s in states))
    ]


def distribution(ssp, policy):
    """Cost -> probability, with everything in the head."""
    found = tp.evaluate(ssp, policy, 1e-9)
    return {
        Fraction(cost).limit_denominator(2): p
        for cost, p in zip(found.costs.tolist(), found.probabilities.tolist(), strict=True)
    }


def totals(weighted):
    added = {}
    for cost, p in weighted:
        added[cost] = added.get(cost, 0) + p
    return {cost: float(p) for cost, p in added.items()}


@settings(max_examples=60, deadline=None)
@given(models_with_dead_ends())
def test_the_largest_probability_of_arriving(model):
    ssp = reference.to_ssp(model)
    found = solve_arrival(ssp)
    for state in ssp.states:
        assert_close(found, state, best_chance(model, state))
    assert found.probability("goal") == 1
    if TRAP in ssp.states:
        assert found.probability(TRAP) == 0


@settings(max_examples=60, deadline=None)
@given(any_models(max_states=3, dyadic=True))
def test_the_largest_probability_with_cycles(model):
    ssp = reference.to_ssp(model)
    states = list(model.choices)
    every = [
        dict(zip(states, picked, strict=True))
        for picked in itertools.product(*(model.choices[s] for s in states))
    ]
    best = max(1 - reference.unreached(model, MarkovPolicy(policy)) for policy in every)
    assert_close(solve_arrival(ssp), model.start, best)


def assert_close(found, state, exact):
    """The bounds hold the rational, and are relatively close to it, however small it is."""
    index = found.ssp.state_index(state)
    low, value, high = (float(of[index]) for of in (found.lower, found.value, found.upper))
    assert low <= exact <= high
    assert high - low <= 1e-12 * exact
    assert value == pytest.approx(float(exact), rel=1e-14)


def wide_model(seed, n=170, back=3, loss=50):
    """More open states than are solved in rationals by default: a long row with jumps back and
    forth and a risk in every step.
    """
    rng = np.random.default_rng(seed)
    rows = [("lost", "stay", "lost", 1, 1)]
    for i in range(n):
        for action in "ab"[: rng.integers(1, 3)]:
            ends = [
                i + 1,
                max(i - int(rng.integers(1, back + 1)), 0),
                min(i + int(rng.integers(1, 4)), n),
            ]
            weight = rng.integers(1, 20, len(ends))
            whole = int(weight.sum()) + int(rng.integers(1, 3))
            scale = loss * whole
            shares = [Fraction(int(w) * loss, scale) for w in weight]
            rows += [
                (i, action, end, p, int(rng.integers(1, 4)))
                for end, p in zip(ends, shares, strict=True)
            ]
            rows.append((i, action, "lost", 1 - sum(shares), 1))
    return SSP.from_outcomes(rows, 0, [n])


@pytest.mark.parametrize("seed", range(4))
def test_many_open_states(seed):
    """Policy iteration in rationals, on a chain of each policy, says how surely the best one
    arrives.
    """
    ssp = wide_model(seed)
    found, model = solve_arrival(ssp), by_decimals(ssp)
    policy = {state: next(iter(actions)) for state, actions in model.choices.items()}
    while True:
        chance = arrival_of(model, policy)
        better = {}
        for state, actions in model.choices.items():
            worth = {
                a: sum(p * chance[t] for t, p, _ in outcomes) for a, outcomes in actions.items()
            }
            best = max(worth, key=worth.get)
            better[state] = best if worth[best] > chance[state] else policy[state]
        if better == policy:
            break
        policy = better
    for state in model.choices:
        if state != "lost":
            assert_close(found, state, chance[state])


def by_decimals(ssp):
    """The model in rationals, each probability the decimal that its float stands for, divided by
    the sum of its row.
    """
    choices = {}
    for state, actions in reference.from_ssp(ssp).choices.items():
        s = ssp.state_index(state)
        for action, k in zip(
            actions, range(ssp.state_choices[s], ssp.state_choices[s + 1]), strict=True
        ):
            span = slice(ssp.choice_outcomes[k], ssp.choice_outcomes[k + 1])
            weight = [Fraction(repr(p)) for p in ssp.outcome_probability[span].tolist()]
            outcomes = [
                (t, w / sum(weight), c)
                for w, (t, _, c) in zip(weight, actions[action], strict=True)
            ]
            choices.setdefault(state, {})[action] = outcomes
    return Model(choices, ssp.start, frozenset(ssp.goals))


def arrival_of(model, policy):
    """The probability that a policy arrives, from every state: each row in terms of later states,
    by elimination, and then from the end back.
    """
    states = [state for state in model.choices if state != "lost"]
    onwards = {}
    for state in states:
        row = {}
        for t, p, _ in model.choices[state][policy[state]]:
            row[t] = row.get(t, 0) + p
        while earlier := [t for t in row if t in onwards]:
            first = min(earlier)
            share = row.pop(first)
            for t, p in onwards[first].items():
                row[t] = row.get(t, 0) + share * p
        stay = row.pop(state, 0)
        onwards[state] = {t: p / (1 - stay) for t, p in row.items()}
    chance = {**dict.fromkeys(model.goals, Fraction(1)), "lost": Fraction(0)}
    for state in reversed(states):
        chance[state] = sum(p * chance[t] for t, p in onwards[state].items())
    return chance


def test_where_floats_are_of_no_help():
    """A row of 60 coins that all have to show heads, and start again at tails: some 2^60 steps,
    each with a risk of 2^-125.
    """
    n, risk = 60, Fraction(1, 2**125)
    rows = [("lost", "stay", "lost", 1, 1)]
    for i in range(n):
        rows += [
            (i, "toss", i + 1, Fraction(1, 2), 1),
            (i, "toss", 0, Fraction(1, 2) - risk, 1),
            (i, "toss", "lost", risk, 1),
        ]
        rows += [(i, "leave", n, Fraction(1, 2), 1), (i, "leave", "lost", Fraction(1, 2), 1)]
    ssp = SSP.from_outcomes(rows, 0, [n])
    found = solve_arrival(ssp)
    # 1 - H(0) = risk * steps to the first row of n heads, or less: 2^(n + 1) - 2 tosses.
    exact = 1 - risk * (2 ** (n + 1) - 2)
    low, high = found.bounds
    assert low <= exact <= high
    with pytest.raises(ModelError, match="is not known well enough to compute with"):
        tp.given_arrival(ssp)


def arms(n, p, share, cost, end, by_step=False):
    """From a hub one of two arms of n states, each of which goes on with p, or back to the hub, or
    by one step; the first arm ends at `end`.
    """
    rows = [("hub", "go", ("bad", 0), share, cost), ("hub", "go", ("good", 0), 1 - share, cost)]
    for arm, last in (("bad", end), ("good", "goal")):
        for i in range(n):
            rows += [
                ((arm, i), "go", (arm, i + 1) if i + 1 < n else last, p, cost),
                ((arm, i), "go", (arm, i - 1) if by_step and i else "hub", 1 - p, cost),
            ]
    return rows


ARMS = [(2, Fraction(1, 100), Fraction(1, 100)), (4, Fraction(1, 10), Fraction(1, 10))]
#: Attempts that get through with p^n, below every double.
FAR_ARMS = [
    (160, Fraction(1, 100), Fraction(1, 100)),
    (36, Fraction(1, 10**20), Fraction(1, 10)),
    (400, Fraction(1, 100), Fraction(1, 2)),
]


@pytest.mark.parametrize(("n", "p", "share"), FAR_ARMS)
def test_more_attempts_than_doubles_count_are_not_known(n, p, share):
    """Bounds hold, and say that nothing is known; costs are refused, or come with a warning."""
    lost = [*arms(n, p, share, 1, "pit"), ("pit", "stay", "pit", 1, 1)]
    ssp = SSP.from_outcomes(lost, "hub", ["goal"])
    low, high = solve_arrival(ssp).bounds
    assert low <= 1 - share <= high
    with pytest.raises(ModelError, match=r"is (not known well enough|too small) to compute with"):
        tp.given_arrival(ssp)
    paid = [*arms(n, p, share, 0, "desk"), ("desk", "go", "goal", 1, 1)]
    ssp = SSP.from_outcomes(paid, "hub", ["goal"])
    with pytest.warns(tp.TailpathWarning, match="no upper bound on an expected total"):
        low, high = tp.solve_expected(ssp).bounds
    assert low <= share <= high
    with pytest.raises(ModelError, match=r"at no cost .*'\w+'.* too small"):
        tp.evaluate(ssp, {s: "go" for s in ssp.states if s != "goal"}, 0.5)


@pytest.mark.parametrize("cost", [0, 1])
@pytest.mark.parametrize(("n", "p", "share"), ARMS)
def test_arrival_after_many_attempts(n, p, share, cost):
    """Each attempt gets through with p^n: what counts is which arm it was."""
    ssp = SSP.from_outcomes(
        [*arms(n, p, share, cost, "pit"), ("pit", "stay", "pit", 1, 1)], "hub", ["goal"]
    )
    found = solve_arrival(ssp)
    assert found.bounds[0] <= 1 - share <= found.bounds[1]
    assert found.bounds[1] - found.bounds[0] < 1e-10
    sure = tp.given_arrival(ssp)
    assert "pit" not in sure.states
    # Given arrival the end of the bad arm leads back for sure, and the good arm, which gets through
    # with p^n, is as much likelier.
    chance = dict(
        zip(
            sure.to_pandas()[["state", "next_state"]].itertuples(index=False, name=None),
            sure.outcome_probability,
            strict=True,
        )
    )
    likelier = p**n + (1 - share) * (1 - p**n)
    assert chance["hub", ("good", 0)] == pytest.approx(float(likelier), rel=1e-10)
    assert chance[("bad", n - 1), "hub"] == 1
    if cost == 0:
        lost = tp.evaluate(
            ssp, {s: "stay" if s == "pit" else "go" for s in ssp.states if s != "goal"}, 0.999
        )
        assert lost.unreached == pytest.approx(float(share), rel=1e-10)


@pytest.mark.parametrize(("n", "p", "share"), ARMS)
def test_costs_after_many_attempts(n, p, share):
    """The same walk for nothing, where the bad arm has to pay 1 in the end."""
    ssp = SSP.from_outcomes(
        [*arms(n, p, share, 0, "desk"), ("desk", "go", "goal", 1, 1)], "hub", ["goal"]
    )
    found = tp.solve_expected(ssp)
    assert (
        found.bounds[0] <= share <= found.bounds[1]
        and found.bounds[1] - found.bounds[0] < 1e-10 * share
    )
    costs = tp.evaluate(ssp, found.policy, float(share))
    assert costs.mean_bounds[0] <= share <= costs.mean_bounds[1]
    assert costs.mean_bounds[1] - costs.mean_bounds[0] < 1e-10 * share
    assert costs.std == pytest.approx(float(share * (1 - share)) ** 0.5, rel=1e-9)
    low, high = costs.bounds(1.0)
    assert low <= share <= high and high - low < 1e-8 * share


@pytest.mark.parametrize(("n", "p"), [(2, 100), (4, 10), (5, 8)])
def test_walks_that_go_back(n, p):
    """They go back by one step, so that an attempt gets through with about (p - 1)^-n."""
    share = Fraction(1, min(p, 100))
    walk = [n, Fraction(1, p), share]
    free = SSP.from_outcomes(
        [*arms(*walk, 0, "desk", by_step=True), ("desk", "go", "goal", 1, 1)], "hub", ["goal"]
    )
    costs = tp.evaluate(free, {s: "go" for s in free.states if s != "goal"}, float(share))
    for low, high in (
        tp.solve_expected(free).bounds,
        costs.mean_bounds,
        costs.bounds(1.0),
        costs.bounds(tp.Late(0)),
    ):
        assert low <= share <= high and high - low < 1e-8 * share
    paid = SSP.from_outcomes(
        [*arms(*walk, 1, "pit", by_step=True), ("pit", "stay", "pit", 1, 1)], "hub", ["goal"]
    )
    low, high = solve_arrival(paid).bounds
    assert low <= 1 - share <= high and high - low < 1e-10
    assert "pit" not in tp.given_arrival(paid).states


def test_chances_below_the_doubles_are_refused_where_they_matter():
    """The only way home is a row of steps that go on with 1e-200 and are lost otherwise."""
    rows = [
        ("lost", "stay", "lost", 1, 1),
        *((i, "go", "lost", 1, 1) for i in range(2)),
        *((i, "go", i + 1, 1e-200, 1) for i in range(2)),
    ]
    ssp = SSP.from_outcomes(rows, 0, [2])
    assert solve_arrival(ssp).bounds[0] == 0 < solve_arrival(ssp).bounds[1] < 1e-300
    with pytest.raises(
        ModelError, match=r"^the probability of arriving from state 0 is too small to compute with"
    ):
        tp.given_arrival(ssp)


def test_later_bounds_count_what_the_probabilities_may_be_off():
    """Two ways home that are equally sure in rationals, and a cost that tells them apart: 100 coins
    each.
    """
    rng = np.random.default_rng(3)
    rows = [("lost", "stay", "lost", 1, 1)]
    for i in range(100):
        p = Fraction(int(rng.integers(1, 999)), 1000)
        for action, cost in (("left", 1), ("right", int(rng.integers(0, 3)))):
            rows += [(i, action, i + 1, p, cost), (i, action, "lost", 1 - p, 1)]
    ssp = SSP.from_outcomes(rows, 0, [100])
    sure = tp.given_arrival(ssp)
    # 25 units in each of 100 steps; twice for all policies, twice for both ends of a step.
    assert 0 < sure.probability_error < 2 * 2 * 2 * 100 * 25 * 2.0**-53 and sure.n_choices == 200
    best = sum(min(c for s, _, t, _, c in rows if s == i and t == i + 1) for i in range(100))
    low, high = tp.solve_expected(sure).bounds
    assert low <= best <= high and high - low < 1e-10 * best
    for changed in (tp.give_up(sure, 1000), tp.within(sure, 200, otherwise=5)):
        assert changed.probability_error == sure.probability_error


def test_bounds_hold_given_arrival_of_many_states():
    """A row of 400 steps, each lost with a probability of its own, against rationals."""
    rng = np.random.default_rng(5)
    n, rows = 400, [("lost", "stay", "lost", 1, 1)]
    law = {0: Fraction(1)}  # the cost of what is to come, times its probability, from the end on
    for i in reversed(range(n)):
        quick, slow = (Fraction(int(rng.integers(1, 400)), 1000) for _ in range(2))
        rows += [
            (i, "go", i + 1, quick, 1),
            (i, "go", i + 1, slow, 2),
            (i, "go", "lost", 1 - quick - slow, 1),
        ]
        after = {}
        for cost, p in law.items():
            for more, share in ((1, quick), (2, slow)):
                after[cost + more] = after.get(cost + more, 0) + p * share
        law = after
    ssp = SSP.from_outcomes(rows, 0, [n])
    whole = sum(law.values())
    assert solve_arrival(ssp).bounds[0] <= whole <= solve_arrival(ssp).bounds[1]
    costs = tp.evaluate(tp.given_arrival(ssp), {}, 0.01)
    for alpha in (Fraction(1, 100), Fraction(1, 2), Fraction(1)):
        left, tail = alpha, Fraction(0)
        for cost in sorted(law, reverse=True):
            taken = min(left, law[cost] / whole)
            left, tail = left - taken, tail + taken * cost
        low, high = costs.bounds(float(alpha))
        assert low <= tail / alpha <= high and high - low < 1e-9 * high


@settings(max_examples=40, deadline=None)
@given(models_with_dead_ends())
def test_given_arrival_is_the_model_of_the_runs_that_arrive(model):
    ssp = reference.to_ssp(model)
    best = best_chance(model)
    if best == 0:
        with pytest.raises(
            GoalUnreachableError, match=r"^from the start 's0' no policy reaches a goal at all"
        ):
            tp.given_arrival(ssp)
        return
    sure = tp.given_arrival(ssp)
    assert TRAP not in sure.states
    kept = {(sure.states[s], sure.choice_name(k)) for k, s in enumerate(sure.choice_state.tolist())}
    for policy in all_policies(model):
        every = runs(model, policy)
        reached = {
            state
            for state, p in visited(model, policy).items()
            if p > 0 and best_chance(model, state) > 0
        }
        arriving = {key: p for key, p in every.items() if key[0] in model.goals}
        inside = all(
            (state, policy[state]) in kept for state in reached if state not in model.goals
        )
        assert inside == (sum(arriving.values()) == best), (
            "the choices kept are those of the surest policies"
        )
        if inside:
            wanted = totals((cost, p / best) for (_, cost, _), p in arriving.items())
            assert distribution(
                sure, {s: a for s, a in policy.items() if s in sure.states}
            ) == pytest.approx(wanted, rel=1e-13)


def visited(model, policy):
    found, waiting = {}, [(model.start, Fraction(1))]
    while waiting:
        state, chance = waiting.pop()
        found[state] = found.get(state, 0) + chance
        if state not in model.goals and state != TRAP:
            waiting.extend((t, chance * p) for t, p, _ in model.choices[state][policy[state]])
    return found


def least_excess(model, price, state, budget):
    """U(s, w): the least expected excess over a budget where a run may be given up, over all that
    policies may remember.
    """
    up = max(price - budget, Fraction(0))
    if state in model.goals:
        return max(-budget, Fraction(0))
    if state == TRAP:
        return up  # to wait only costs more
    return min(
        up,
        *(
            sum(p * least_excess(model, price, t, budget - c) for t, p, c in o)
            for o in model.choices[state].values()
        ),
    )


def least_mean(model, price, state):
    if state in model.goals:
        return Fraction(0)
    if state == TRAP:
        return price
    return min(
        price,
        *(
            sum(p * (c + least_mean(model, price, t)) for t, p, c in o)
            for o in model.choices[state].values()
        ),
    )


@settings(max_examples=40, deadline=None)
@given(
    models_with_dead_ends(most=3),
    st.sampled_from([Fraction(0), Fraction(5, 2), Fraction(7), Fraction(100, 3)]),
)
def test_giving_up(model, price):
    sure = tp.give_up(reference.to_ssp(model), price)
    assert tp.solve_expected(sure).cost() == pytest.approx(
        float(least_mean(model, price, "s0")), rel=1e-13
    )
    costs = {c for policy in all_policies(model) for _, c, _ in runs(model, policy)}
    for part in itertools.accumulate(
        [Fraction(0), Fraction(1, 2), Fraction(1, 2), Fraction(1, 2), Fraction(1)]
    ):
        costs.add(part)
    budgets = {c + p for c in costs for p in (0, price)}
    for alpha in (0.5, 0.1):
        wanted = min(w + least_excess(model, price, "s0", w) / Fraction(alpha) for w in budgets)
        assert tp.solve_cvar_exact(sure, alpha).cvar(alpha) == pytest.approx(
            float(wanted), rel=1e-12
        )


@settings(max_examples=40, deadline=None)
@given(
    models_with_dead_ends(),
    st.integers(1, 5),
    st.sampled_from([None, Fraction(0), Fraction(9, 2)]),
    st.data(),
)
def test_within(model, steps, price, data):
    limited = tp.within(reference.to_ssp(model), steps, otherwise=price)
    policy = data.draw(st.sampled_from(all_policies(model)))
    every = runs(model, policy, steps)
    if price is None:
        late = sum(p for (state, _, _), p in every.items() if state not in model.goals)
        assert tp.evaluate(limited, policy, 1e-9).unreached == pytest.approx(
            float(late), rel=1e-13, abs=1e-300
        )
        best = max(
            sum(p for (s, _, _), p in runs(model, other, steps).items() if s in model.goals)
            for other in all_policies(model)
        )
        assert solve_arrival(limited).probability() >= best
        return
    wanted = totals(
        (cost if state in model.goals else cost + (steps - at if state == TRAP else 0) + price, p)
        for (state, cost, at), p in every.items()
    )
    assert distribution(limited, policy) == pytest.approx(wanted, rel=1e-13)


LAKE = SSP.from_outcomes(
    [
        ("ice", "go", "home", 0.5, 1),
        ("ice", "go", "hole", 0.25, 1),
        ("ice", "go", "ice", 0.25, 1),
        ("hole", "stay", "hole", 1, 1),
    ],
    "ice",
    ["home"],
)


def test_an_unsure_goal_names_the_ways_out():
    with pytest.raises(GoalUnreachableError) as refusal:
        tp.solve_expected(LAKE)
    for way in ("give_up", "--give-up", "given_arrival", "--given-arrival", "within", "--within"):
        assert way in str(refusal.value)


def test_new_names_do_not_clash_and_old_ones_stay():
    twice = tp.give_up(tp.give_up(LAKE, 3), "1/3")
    assert twice.states == ("ice", "home", "hole", "gave up", "gave up'")
    assert twice.actions == ("go", "stay", "give up", "give up'")
    assert twice.cost_unit == Fraction(1, 3)
    assert len(twice.notes) == 2
    limited = tp.within(tp.within(LAKE, 3), 2)
    assert limited.origin.states == LAKE.states
    assert pickle.loads(pickle.dumps(limited)) == limited
    assert (
        tp.evaluate(limited, {"ice": "go"}, 0.5).unreached
        == tp.evaluate(tp.within(LAKE, 2), ["go", None, "stay"], 0.5).unreached
        == 3 / 8
    )


def test_a_model_that_starts_at_a_goal_needs_no_time():
    done = SSP.from_outcomes([("a", "go", "b", 1, 1)], "b", ["b"])
    assert tp.within(done, 5) is done


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tp.give_up(LAKE, -1), r"^the price of giving up must be 0 or more, not -1$"),
        (
            lambda: tp.give_up(LAKE, "dear"),
            r"^the price of giving up must be a number, not 'dear'$",
        ),
        (lambda: tp.give_up(LAKE, np.inf), r"^the price of giving up must be a number, not inf$"),
        (
            lambda: tp.within(LAKE, 0),
            r"^the number of steps must be a whole number of at least 1, not 0$",
        ),
        (
            lambda: tp.within(LAKE, 2, otherwise=-1),
            r"^the price of being late must be 0 or more, not -1$",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(OptionError, match=message):
        call()


def test_a_product_too_large_is_refused():
    with pytest.raises(
        TailpathError, match=r"^50 steps make more than 3 pairs of state and step \(max_pairs=\)$"
    ):
        tp.within(LAKE, 50, max_pairs=3)


def test_a_product_beyond_four_gigabytes_is_refused_before_it_is_built():
    with pytest.raises(TailpathError, match=r"^1000000 steps make more than \d+ pairs"):
        tp.within(tp.domains.gridworld("5x5"), 10**6)


def test_an_infinite_deadline_is_the_surest_policy():
    pytest.importorskip("gymnasium")
    lake = tp.read("gym:FrozenLake-v1")
    punctual, surest = tp.solve_on_time(lake, np.inf), tp.solve_arrival(lake)
    assert punctual.probability(np.inf) == pytest.approx(surest.probability(), rel=1e-12)
    assert 1 - tp.evaluate(lake, punctual.policy(np.inf), 0.5).unreached == pytest.approx(
        surest.probability(), rel=1e-9
    )


@pytest.mark.parametrize("lost", ["9/10", "5/9", "1/3", "1e-12", "1e-300", "1", "0"])
def test_never_arriving_is_enclosed_however_it_is_asked_for(lost):
    p = Fraction(lost)
    rows = [("s", "go", "d", p, 1), ("s", "go", "g", 1 - p, 1), ("d", "go", "d", 1, 1)]
    near = Fraction("1e-300")
    rows += [("t", "go", "g", near, 1), ("t", "go", "d", 1 - near, 1), ("u", "go", "g", 1, 1)]
    rows = [row for row in rows if row[3]]
    for start, truth in (("s", p), ("t", 1 - near), ("u", Fraction(0)), ("d", Fraction(1))):
        ssp = tp.SSP.from_outcomes(rows, start, ["g"])
        for low, high in (
            tp.solve(ssp, tp.Late(math.inf)).bounds,
            tp.solve_on_time(ssp, math.inf).late_bounds(math.inf),
        ):
            assert low <= truth <= high and high - low < 1e-14, (low, high)
