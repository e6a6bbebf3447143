"""The checker accepts what is true, on random models and on known ones, and refuses what was
tampered with.
"""

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.certify.budgets import Later, TableSides
from tailpath.errors import OptionError, RefutedError
from tailpath.policies.kinds import MarkovPolicy
from tailpath.verify.distribution import check_distribution, enclose
from tests import reference, strategies
from tests.fuzz import models

GRID = tp.domains.gridworld("5x5")
EXPECTED = tp.solve_expected(GRID)
COSTS = tp.evaluate(GRID, EXPECTED.policy, 0.01)
BEST = tp.solve_cvar_exact(GRID, 0.05)


@settings(max_examples=40)
@given(st.data(), st.sampled_from([0.5, 0.1, 0.01]))
def test_the_enclosure_is_the_truth(data, alpha):
    """The checker itself, against the reference in fractions."""
    model = data.draw(strategies.proper_models(max_states=4))
    policy = data.draw(strategies.policies(model))
    exact = reference.cost_distribution(model, policy, alpha)
    found = enclose(reference.to_ssp(model), policy, Fraction(exact.var(alpha)))
    low, high = found.cvar(Fraction(alpha))
    # The floats of the model stand for decimals, not for the sevenths that were written.
    assert abs(low - exact.cvar(alpha)) <= Fraction(1, 10**12) * (1 + exact.cvar(alpha))
    assert 0 <= high - low <= Fraction(1, 10**60) * (1 + high)


@pytest.mark.filterwarnings("ignore::tailpath.TailpathWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("number", range(40))
def test_random_models_with_extreme_numbers(number):
    assert list(models.attempt(number)), "something was looked at"


@pytest.mark.filterwarnings("ignore::tailpath.TailpathWarning")
@pytest.mark.filterwarnings("ignore::tailpath.TailpathWarning")
def test_an_optimum_at_the_scale_of_the_checker():
    """A least CVaR of 2e-290: the bounds of doubles are wide, and the checker accepts them."""
    assert "optimum" in list(models.attempt(2411002887))


def test_what_was_proved_is_said():
    proof = COSTS.verify()
    assert "CVaR at alpha 0.01 lies in" in str(proof)
    assert 0 < proof.width < 1e-10
    assert "no policy has a CVaR below" in str(BEST.verify())
    assert f"from all {GRID.n_states} states" in str(EXPECTED.verify())
    assert BEST.verify(0.5).width < 1e-10


def moved(array, at, by):
    changed = np.array(array)
    changed[at] += by
    return changed


def claimed(costs, **bounds):
    """What is proved of a distribution with other bounds on some of its numbers."""
    known = costs.enclosure
    low, high = ({name: ends[side] for name, ends in bounds.items()} for side in (0, 1))
    return replace(known, low=replace(known.low, **low), high=replace(known.high, **high))


@pytest.mark.parametrize(
    "change",
    [
        {"mean": COSTS.mean + 1e-6},
        {"proof": claimed(COSTS, mean=[bound + 1e-6 for bound in COSTS.mean_bounds])},
        {"proof": claimed(COSTS, mean=(COSTS.mean_bounds[1], COSTS.mean_bounds[1]))},
        {"tail_excess": COSTS.tail_excess * (1 + 1e-6)},
        {"proof": claimed(COSTS, excess=[e * (1 + 1e-6) for e in COSTS.tail_excess_bounds])},
        {"proof": claimed(COSTS, masses=(COSTS.probabilities * (1 + 1e-10),) * 2)},
        {"tail_mass": COSTS.tail_mass * (1 + 1e-6)},
        {"probabilities": moved(COSTS.probabilities, 2, 1e-6)},
        {"probabilities": COSTS.enclosure.high.masses * (1 + 1e-15)},
        {"probabilities": COSTS.enclosure.low.masses * (1 - 1e-15)},
        {"tail_mass": COSTS.enclosure.tail_mass[1] * (1 + 1e-15)},
        {"costs": moved(COSTS.costs, 1, 1e-6)},
        {"costs": np.delete(COSTS.costs, 1), "probabilities": np.delete(COSTS.probabilities, 1)},
        {"policy": MarkovPolicy({**EXPECTED.policy.decisions, GRID.start: "E"})},
    ],
    ids=lambda change: ", ".join(change),
)
def test_a_tampered_distribution_is_refused(change):
    with pytest.raises(RefutedError):
        replace(COSTS, **change).verify()


@pytest.mark.parametrize("field", ["lower", "upper", "value"])
def test_a_tampered_expectation_is_refused(field):
    sign = {"lower": 1, "upper": -1, "value": 1}[field]
    with pytest.raises(RefutedError):
        replace(
            EXPECTED, **{field: moved(getattr(EXPECTED, field), GRID.start_index, sign * 1e-6)}
        ).verify()


def test_a_tampered_optimum_is_refused():
    w = BEST.budget(0.05)
    for by in (1e-6, -1e-6):
        with pytest.raises(RefutedError):
            replace(BEST, excess=moved(BEST.excess, slice(w, w + 1), by)).verify()
    with pytest.raises(RefutedError):
        replace(
            BEST,
            largest=replace(BEST.largest, risk_neutral=_other_choice(BEST.largest.risk_neutral)),
        ).verify()


def _other_choice(neutral):
    """Every choice replaced by the next one of the same state."""
    changed = np.array(neutral)
    for state in range(GRID.n_states):
        first, end = GRID.state_choices[state], GRID.state_choices[state + 1]
        if end - first > 1:
            changed[state] = first + (changed[state] - first + 1) % (end - first)
    return changed


def test_a_pickle_leaves_functions_behind():
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])
    copy = pickle.loads(pickle.dumps(tp.evaluate(ssp, tp.MarkovPolicy({"s": "a"}), 0.1)))
    assert copy.verify().width < 1e-10
    functions = tp.MemoryPolicy(0, lambda s, m: "a", lambda m, *step: m)
    found = tp.evaluate(ssp, functions, 0.1)
    assert found.verify().width < 1e-10
    with pytest.raises(OptionError, match="pickl"):
        pickle.loads(pickle.dumps(found)).verify()


def may_miss():
    """Half of the runs arrive after 1, 2, ... steps; the others end where every step costs and none
    arrives.
    """
    rows = [
        ("s", "a", "s", 0.5, 1),
        ("s", "a", "g", 0.25, 1),
        ("s", "a", "t", 0.25, 2),
        ("t", "a", "u", 1, 0),
        ("u", "a", "t", 1, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    return tp.evaluate(ssp, dict.fromkeys("stu", "a"), 0.6)


def test_a_policy_that_may_miss_the_goal():
    proof = may_miss().verify()
    assert "the probability of never arriving lies in [0.49999" in str(
        proof
    ) and "every CVaR are infinite" in str(proof)


@settings(max_examples=60)
@given(st.data())
def test_policies_on_models_with_traps(data):
    """Whatever the policy, what is said of it is accepted, and the probability of never arriving is
    the reference's.
    """
    model = data.draw(strategies.any_models(max_states=4, dyadic=True))
    policy = data.draw(strategies.policies(model))
    ssp, missed = reference.to_ssp(model), reference.unreached(model, policy)
    try:
        costs = tp.evaluate(ssp, policy, 0.1)
    except tp.TailpathError:
        return  # cycles that cost nothing
    if len(costs.costs):
        assert ("never arriving" in str(costs.verify())) == (missed > 0)
        low, high = enclose(ssp, policy, Fraction(0)).missed
        assert Fraction(low, 1 << 400) <= missed <= Fraction(high, 1 << 400)


@pytest.mark.parametrize(
    "change",
    [
        {"unreached": 0.5 + 1e-6},
        {"unreached": 0.0},
        {"unreached": 0.0, "mean": 2.0, "proof": claimed(may_miss(), mean=(2.0, 2.0))},
        {"tail_mass": may_miss().tail_mass - 1e-6},
        {"mean": 3.0},
    ],
    ids=lambda change: ", ".join(change),
)
def test_a_tampered_miss_is_refused(change):
    with pytest.raises(RefutedError):
        replace(may_miss(), **change).verify()
    with pytest.raises(RefutedError):
        replace(COSTS, unreached=1e-6).verify()


@pytest.mark.filterwarnings("ignore:delta")
@pytest.mark.parametrize("delta", [0.75, 0.3, 3, 150])
def test_an_optimum_on_a_grid(delta):
    """From the costs rounded down, from a finer grid, or from the least expected cost: whichever it
    is, it is proved.
    """
    best = tp.solve_cvar_exact(GRID, 0.05, delta=delta)
    low, high = best.bounds(0.05)
    assert f"no policy has a CVaR below {low:.15g}" in str(best.verify())
    exact = BEST.cvar(0.05)
    # Where rounding made moves free, the checker cannot tell what is wrong from what is too hard
    # for it.
    with pytest.raises(RefutedError if delta < 1 else (RefutedError, OptionError)):
        replace(best, least=exact + 1e-6).verify()
    cheap = tp.evaluate(GRID, best.policy(0.05), 0.05).cvar(0.05) / high
    with pytest.raises(RefutedError):
        replace(
            best,
            excess=best.excess * 0,
            sides=Later(lambda: TableSides(best.excess * 0, best.excess[:, None] * 0)),
            budgets=np.floor(best.budgets * cheap * 0.99).astype(np.int64),
        ).verify()
    if best.floor is not None and best.floor.bounds(0.05)[0] > best.least:
        dearer = replace(
            best.floor.largest.ssp, outcome_cost=best.floor.largest.ssp.outcome_cost * 2
        )
        with pytest.raises(RefutedError, match="higher than the model's"):
            replace(best, floor=replace(best.floor, largest=best.floor.largest.on(dearer))).verify()


def test_an_optimum_without_a_unit():
    ssp = tp.SSP.from_outcomes(
        [("s", "a", "s", 0.5, 2**0.5), ("s", "a", "g", 0.5, 1), ("s", "b", "g", 1, 4.3)], "s", ["g"]
    )
    best = tp.solve_cvar_exact(ssp, 0.05, delta=0.01)
    assert best.verify().width < 0.02


def test_an_optimum_on_pairs():
    """Costs far apart, where the full table would have millions of levels."""
    ways = (("a", 0.75, 1), ("a", 0.25, 1_000_003), ("b", 1, 60_000))
    rows = [(i, action, i + 1, p, cost) for i in range(10) for action, p, cost in ways]
    best = tp.solve_cvar_exact(tp.SSP.from_outcomes(rows, 0, [10]), 0.05)
    assert best.verify().width < 1e-10
    place = list(best.budgets).index(best.budget(0.05))
    for by in (1e-3, -1e-3):
        with pytest.raises(RefutedError):
            replace(best, excess=moved(best.excess, slice(place, place + 1), by)).verify()


def test_a_state_that_is_given_up_for_lost_is_refused():
    """Without its best way on, the start would have a higher optimum."""
    rows = [("s", "a", "m", 1, 1), ("s", "b", "g", 1, 10), ("m", "a", "g", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.solve_expected(ssp)
    lost, m = np.array(found.choices), ssp.state_index("m")
    lost[m], lost[ssp.start_index] = -1, ssp.choice_index(ssp.start_index, "b")
    value = np.where(
        np.arange(3) == m, np.inf, np.where(np.arange(3) == ssp.start_index, 10.0, found.value)
    )
    with pytest.raises(RefutedError, match="'m' is claimed"):
        replace(found, choices=lost, value=value, lower=value, upper=value).verify()


def test_a_policy_that_walks_in_a_free_circle_attains_nothing():
    """From s and t one may go home, or to each other at no cost; decisions changed to go on for
    ever leave every cost that arrives as it was.
    """
    rows = [
        ("s", "home", "g", 0.5, 3),
        ("s", "home", "g", 0.5, 9),
        ("s", "over", "t", 1, 0),
        ("t", "back", "s", 1, 0),
        ("t", "home", "g", 1, 20),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    best = tp.solve_cvar_exact(ssp, 0.3)
    assert best.budget(0.3) > 0
    cycle = np.full((ssp.n_states, best.largest.budget + 1), -1)
    for state, action in (("s", "over"), ("t", "back")):
        cycle[ssp.state_index(state)] = ssp.choice_index(ssp.state_index(state), action)
    with pytest.raises(RefutedError, match="may miss the goal"):
        replace(
            best, largest=tp.BudgetPolicy.from_table(ssp, cycle, best.largest.risk_neutral)
        ).verify()


def test_an_optimum_below_the_scale_of_the_checker_is_not_refuted():
    """A loss of a seventh with probability 1e-100: the bounds are right, and the checker agrees."""
    third, seventh = 1 / 3, Fraction(1, 7)
    rows = [
        ("s", "a", "g", third, 3 * seventh),
        ("s", "a", "g", 0.26666666666666666, seventh),
        ("s", "a", "t", 0.4, 2 * seventh),
    ]
    rows += [
        ("s", "lucky", "g", 1, 0),
        ("s", "lucky", "s", 1e-100, seventh),
        ("s", "lucky", "t", 1e-200, 3 * seventh),
    ]
    rows += [
        ("t", "on", "g", 0.5454545454545454, 0),
        ("t", "on", "g", 0.45454545454545453, 50 * seventh),
    ]
    best = tp.solve_cvar_exact(tp.SSP.from_outcomes(rows, "s", ["g"]), 0.5)
    low, high = best.bounds(0.5)
    assert Fraction(low) <= 2 * seventh / 10**100 <= Fraction(high)
    assert "no policy has a CVaR below 2.857" in str(best.verify())


def near_half(more: float) -> tp.SSP:
    """Of the total cost a little less than half, by `more`, is 2; then come 5 and 10."""
    rows = [
        ("s", "a", "g", 0.5 - more, 2),
        ("s", "a", "g", 0.3, 5),
        ("s", "a", "g", 0.2 + more, 10),
    ]
    return tp.SSP.from_outcomes(rows, "s", ["g"])


@pytest.mark.parametrize("more", [5e-14, 1e-13, 2e-13, 4e-13, 1e-12])
def test_an_optimum_where_alpha_is_a_tail_mass_but_for_rounding(more):
    """The best budget is 5, and from 2 on all are as good to 13 digits. By hand: the worst half is
    5 with 0.3 - more and 10 with 0.2 + more."""
    ssp = near_half(more)
    best = tp.solve_cvar_exact(ssp, 0.5)
    low, high = best.bounds(0.5)
    assert low <= 2 * (5 * (0.3 - more) + 10 * (0.2 + more)) <= high
    assert best.verify(0.5).proved
    assert best.var(0.5) in (2, 5)


@pytest.mark.parametrize("last", [2, 4, 5, 10])
def test_the_enclosure_of_cvar_holds_wherever_it_stops(last):
    ssp = near_half(2e-13)
    found = enclose(ssp, MarkovPolicy({"s": "a"}), Fraction(last)).cvar(Fraction(1, 2))
    more = Fraction("2e-13")
    # The model takes 0.5 - 2e-13 as the float that it is.
    truth = 2 * (5 * (Fraction("0.3") - more) + 10 * (Fraction("0.2") + more))
    assert found[0] - Fraction("1e-15") <= truth <= found[1] + Fraction("1e-15")


def test_a_probability_of_the_last_cost_is_checked_as_sharply_as_claimed():
    """Sums of integers are exact as floats, also where the costs of a model have no unit."""
    rows = [("s", "a", "g", 0.001, 4), ("s", "a", "t", 0.999, 7), ("t", "a", "g", 1, 1e150)]
    ssp, policy = tp.SSP.from_outcomes(rows, "s", ["g"]), MarkovPolicy({"s": "a", "t": "a"})
    costs = tp.evaluate(ssp, policy, 1.0)
    assert ssp.cost_unit is None and costs.costs.tolist() == [4.0]
    assert check_distribution(costs, ssp, policy).proved
    with pytest.raises(RefutedError, match=r"total cost of 4\.0"):
        check_distribution(
            replace(costs, probabilities=costs.probabilities * (1 - 2e-12)), ssp, policy
        )


@pytest.mark.parametrize("p", [3.67293375085215e-07, 0.25, 0.5])
def test_a_small_excess_behind_a_cost_that_is_a_float(p):
    """Where costs have no unit the last cost of the head is off by its rounding, which counts
    beside an excess of 1e-8.
    """
    rows = [("s", "t", 1.0), ("t", "u", p), ("t", "g", 1 - p)]
    outcomes = [(state, "go", to, chance, math.pi) for state, to, chance in rows]
    ssp = tp.SSP.from_outcomes([*outcomes, ("u", "go", "g", 1, 1e-8)], "s", ["g"])
    costs = tp.evaluate(ssp, dict.fromkeys("stu", "go"), 0.6)
    assert ssp.cost_unit is None and costs.tail_excess == pytest.approx(p * 1e-8, rel=1e-12)
    assert "E[(Z - last cost)+]" in str(costs.verify())
    proof = claimed(costs, excess=(p * 1.1e-8, p * 1.2e-8))
    wrong = replace(costs, proof=proof, tail_excess=p * 1.15e-8)
    with pytest.raises(RefutedError):
        check_distribution(wrong, ssp, MarkovPolicy(dict.fromkeys("stu", "go")))
