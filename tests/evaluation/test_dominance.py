"""Dominance of total costs beside fractions on all breakpoints, and what lies beyond two heads."""

import math
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import OptionError
from tests import reference, strategies

ALL = 1e-12  # less than any mass of a small law


def law(masses, alpha=ALL, shift=0):
    rows = [("s", "a", "g", p, c + shift) for c, p in masses.items()]
    return tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["g"]), {"s": "a"}, alpha)


def waits(p, cost=1, alpha=1e-3):
    """A geometric number of waits."""
    rows = [("s", "a", "g", p, cost), ("s", "a", "s", 1 - p, cost)]
    return tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["g"]), {"s": "a"}, alpha)


def missing(mass, alpha=0.01, cost=1):
    rows = [("s", "a", "g", 1 - mass, cost), ("s", "a", "pit", mass, cost)]
    rows += [("pit", "a", "pit", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    return tp.evaluate(ssp, {"s": "a", "pit": "a"}, alpha)


def number(masses, order, x):
    """P(Z > x) or E[(Z - x)+] of a finite law, exactly."""
    return sum((p * (c - x) ** (order - 1) for c, p in masses.items() if c > x), F(0))


def holds(one, two, order):
    """By brute force at every breakpoint of both."""
    return all(number(one, order, x) <= number(two, order, x) for x in {0, *one, *two})


def laws(most=6):
    """Few costs and masses, so that ties and dominance are common."""
    weights = st.dictionaries(st.integers(0, most), st.integers(1, 4), min_size=1, max_size=4)
    return weights.map(lambda w: {F(c, 10): F(k, sum(w.values())) for c, k in w.items()})


@given(laws(), laws(), st.sampled_from([1, 2]), st.sampled_from([0, -1, F(10**6)]))
def test_finite_laws_as_by_brute_force(one, two, order, shift):
    found = law(one, shift=shift).dominates(law(two, shift=shift), order)
    assert bool(found) == holds(one, two, order)
    assert found.up_to == 0
    if not found:
        x, this, other, _ = found.witness
        exact = F(round((F(x) - shift) * 10), 10)
        assert float(this) == pytest.approx(float(number(one, order, exact)), rel=1e-8)
        assert float(other) == pytest.approx(float(number(two, order, exact)), rel=1e-8, abs=1e-9)
        assert number(one, order, exact) > number(two, order, exact)


@given(strategies.acyclic_models(dyadic=False), st.data(), st.sampled_from([1, 2]))
def test_policies_of_one_model_as_by_brute_force(model, data, order):
    policies = [data.draw(strategies.randomised_policies(model)) for _ in range(2)]
    one, two = (dict(reference.cost_distribution(model, each, 0).head) for each in policies)
    ssp = reference.to_ssp(model)
    found = [tp.evaluate(ssp, each, 1e-200) for each in policies]
    assert bool(found[0].dominates(found[1], order)) == holds(one, two, order)


@given(laws(), laws(), st.sampled_from([1, 2]), *[st.sampled_from([1, 0.5, 0.3, 0.1, ALL])] * 2)
def test_any_two_alphas_say_the_truth_or_refuse(one, two, order, first, second):
    try:
        found = law(one, first).dominates(law(two, second), order)
    except OptionError as refused:
        assert "unknown beyond it; evaluate" in str(refused)
        alpha = float(str(refused).split("alpha=")[1].split()[0])
        if "evaluate this" in str(refused):
            assert alpha < first
        else:
            assert alpha < second
    else:
        if found.up_to == 0:
            assert bool(found) == holds(one, two, order)
        else:
            assert found
            assert min(first, second) > ALL


def test_less_spread_is_better_in_the_second_order_alone():
    sure, gamble = law({2: 1}), law({1: F(1, 2), 3: F(1, 2)})
    assert sure.dominates(gamble, 2)
    found = sure.dominates(gamble)
    assert found.witness == (1, 1, 0.5, "P(Z > x)")
    assert found.words == "fails: P(Z > x) is 1 and not at most 0.5 at x = 1"
    assert not gamble.dominates(sure, 1)
    assert gamble.dominates(sure, 2).witness == (2, 0.5, 0, "E[(Z - x)+]")


def test_tails_without_end_hold_up_to_a_mass():
    for order in (1, 2):
        found = waits(0.5).dominates(waits(0.4, alpha=0.01), order)
        assert found
        assert found.up_to == waits(0.4, alpha=0.01).tail_mass
        assert "of which nothing is known" in found.words
        assert not waits(0.4).dominates(waits(0.5), order)


def test_the_excess_beyond_both_heads_refutes_the_first_order():
    def rare(p):
        rows = [("s", "a", "g", 0.99, 1), ("s", "a", "w", 0.01, 1)]
        rows += [("w", "a", "g", p, 1), ("w", "a", "w", 1 - p, 1)]
        ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
        return tp.evaluate(ssp, {"s": "a", "w": "a"}, 0.1)

    found = rare(0.1).dominates(rare(0.5))
    assert not found
    assert found.witness[:3] == pytest.approx((1, 0.1, 0.02), rel=1e-9)
    assert found.witness.number == "E[(Z - x)+]"
    assert rare(0.5).dominates(rare(0.1)).up_to == pytest.approx(0.01)


def test_a_cost_with_an_end_beside_a_tail_without_one():
    known = waits(0.1, alpha=0.5)
    assert known.costs[-1] == 7
    assert law({10: 1}).dominates(known, 2).up_to == 0  # which lies 10 beyond 7 on average
    refused = (
        "no worse up to cost 7, and unknown beyond it; evaluate the other with alpha=0.05 or less"
    )
    rare = {1: F(9, 10), 10: F(1, 10)}
    with pytest.raises(OptionError, match=refused):
        law(rare).dominates(known)
    assert law(rare).dominates(waits(0.1, alpha=0.1)).up_to == 0
    with pytest.raises(OptionError, match="no worse up to cost 7"):
        known.dominates(law({18: 1}), 2)
    assert not waits(0.1).dominates(law({18: 1}), 2)


def test_never_arriving_costs_more_than_anything():
    for order in (1, 2):
        assert law({5: 1}).dominates(missing(0.2, cost=5), order)
        assert not missing(0.2).dominates(law({50: 1}), order)
        assert missing(0.2).dominates(missing(0.2), order)
        assert missing(0.2).dominates(missing(0.3), order).up_to == 0
    rarely = missing(0.3, cost=9)
    assert missing(0.4).dominates(rarely).witness == (9, 0.4, 0.3, "P(Z > x)")
    assert missing(0.4).dominates(rarely, 2)  # both excesses are infinite
    assert missing(0.2).dominates(law({5: 1}), 2).witness.this == math.inf
    lost = tp.SSP.from_outcomes([("s", "a", "s", 1, 1), ("s", "b", "g", 1, 1)], "s", ["g"])
    nowhere = tp.evaluate(lost, {"s": "a"}, 0.5)
    for order in (1, 2):
        assert waits(0.5).dominates(nowhere, order).up_to == 0
        assert not nowhere.dominates(waits(0.5), order)
        assert nowhere.dominates(nowhere, order)


@given(strategies.any_models(max_states=3), st.data(), st.sampled_from([1, 2]))
def test_a_distribution_is_no_worse_than_itself(model, data, order):
    policy = data.draw(strategies.randomised_policies(model))
    try:
        found = tp.evaluate(reference.to_ssp(model), policy, 0.1)
        again = found.dominates(found, order)
    except tp.TailpathError:
        return
    assert again
    assert again.up_to <= found.tail_mass


def test_costs_that_differ_by_rounding_are_equal():
    thirds = {F(1, 3): F(1, 3), F(2, 3): F(2, 3)}
    ways = [law(thirds), law({float(c): F(p) for c, p in thirds.items()})]
    ways += [tp.evaluate(ways[1].ssp, {"s": "a"}, ALL, engine="queue")]
    for order in (1, 2):
        assert all(one.dominates(two, order) for one in ways for two in ways)


def test_a_policy_without_end_is_compared_by_its_tails_alone():
    rows = [("s", "b", "g", 0.9, 1), ("s", "b", "t", 0.1, 1)]
    rows += [("t", "c", "g", 0.5, 2), ("t", "c", "t", 0.5, 2)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    history = tp.HistoryPolicy(lambda history: "b" if history[-1] == "s" else "c")
    endless, plain = (tp.evaluate(ssp, each, 0.01) for each in (history, {"s": "b", "t": "c"}))
    assert endless.dominates(plain).up_to == plain.dominates(endless).up_to > 0
    with pytest.raises(OptionError, match="are too wide to compare"):
        endless.dominates(plain, 2)  # no upper bound on its excess is known


def test_discounted_costs():
    ssp = tp.read("gridworld:5x5")
    policy = tp.solve_expected(ssp).policy
    cheap, dear = (tp.evaluate(ssp, policy, 0.1, gamma=gamma) for gamma in (0.8, 0.9))
    assert cheap.dominates(dear)
    assert cheap.dominates(cheap)
    assert not dear.dominates(cheap)


def test_what_is_asked_is_checked():
    with pytest.raises(OptionError, match="order must be 1 or 2, not 3"):
        law({1: 1}).dominates(law({1: 1}), 3)
    with pytest.raises(OptionError, match="other must be a CostDistribution"):
        law({1: 1}).dominates(5)


def test_the_picture_shows_both_and_the_witness():
    sure, gamble = law({2: 1}), law({1: F(1, 2), 3: F(1, 2)})
    axes = sure.dominates(gamble).plot()
    assert [line.get_label() for line in axes.lines][:2] == ["this", "other"]
    assert list(axes.lines[2].get_xdata()) == [1, 1]
    assert len(sure.dominates(gamble, 2).plot().lines) == 2
    for order in (1, 2):
        missing(0.4).dominates(missing(0.2), order).plot().figure.canvas.draw()
