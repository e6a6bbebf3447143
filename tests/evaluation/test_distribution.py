"""The laws of VaR and CVaR on random models, and the edges of a distribution."""

import gc
import itertools
import math
import pickle
import weakref
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.evaluation import evaluate as evaluation
from tests import reference, strategies, textbook
from tests.reference import Model

LEAST = 1e-3
GRID = [1.0, 0.7, 0.31, 0.1, 0.02, LEAST]


def mapped(model, outcome=lambda t, p, c: [(t, p, c)], name=lambda state: state):
    """The model with every outcome replaced by some, and every state renamed."""
    choices = {
        name(s): {
            a: [(name(t2), p2, c2) for t, p, c in outcomes for t2, p2, c2 in outcome(t, p, c)]
            for a, outcomes in actions.items()
        }
        for s, actions in model.choices.items()
    }
    return Model(choices, name(model.start), frozenset(name(g) for g in model.goals))


def evaluated(model, policy, alpha=LEAST, **options):
    return tp.evaluate(reference.to_ssp(model), policy, alpha, **options)


def assert_same(one, two, scale=1.0, shift=0.0):
    """`two` is `scale * one + shift`, in every respect, to 12 digits. VaR may only differ where a
    tail mass meets alpha within rounding.
    """
    assert two.mean == pytest.approx(scale * one.mean + shift, rel=1e-12)
    assert two.std == pytest.approx(scale * one.std, rel=1e-9, abs=1e-9 * two.mean)
    for alpha in GRID:
        assert two.var(alpha) == pytest.approx(scale * one.var(alpha) + shift, rel=1e-12)
        assert two.cvar(alpha) == pytest.approx(scale * one.cvar(alpha) + shift, rel=1e-12)


models_and_policies = strategies.proper_models().flatmap(
    lambda model: st.tuples(st.just(model), strategies.policies(model))
)
plain = strategies.proper_models().flatmap(
    lambda model: st.tuples(st.just(model), strategies.randomised_policies(model))
)


# ---------------------------------------------------------------------- laws


@given(models_and_policies, st.sampled_from(["lattice", "queue"]))
def test_order(drawn, engine):
    """CVaR_1 is the mean; both fall as alpha grows; CVaR is at least VaR and at least the mean."""
    found = evaluated(*drawn, engine=engine)
    assert found.cvar(1.0) == pytest.approx(found.mean, rel=1e-12)
    for larger, smaller in itertools.pairwise(GRID):
        assert found.var(smaller) >= found.var(larger)
        assert found.cvar(smaller) >= found.cvar(larger) * (1 - 1e-14)
    for alpha in GRID:
        assert found.cvar(alpha) >= max(found.var(alpha), found.mean * (1 - 1e-12))
        low, high = found.bounds(alpha)
        assert low <= found.cvar(alpha) <= high


@given(models_and_policies)
def test_alpha_times_cvar_grows_by_var(drawn):
    """alpha CVaR_alpha is the integral of VaR from 0 to alpha: between a and b it grows by (b - a)
    VaR_b at least and (b - a) VaR_a at most.
    """
    found = evaluated(*drawn)
    for a, b in itertools.pairwise(np.geomspace(LEAST, 1, 12).tolist()):
        growth = b * found.cvar(b) - a * found.cvar(a)
        rounding = 1e-12 * b * found.cvar(b)
        assert (b - a) * found.var(b) - rounding <= growth <= (b - a) * found.var(a) + rounding


@given(plain, st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(1, 10), Fraction(50)]))
def test_a_constant_on_the_last_step_shifts(drawn, constant):
    model, policy = drawn
    later = mapped(model, lambda t, p, c: [(t, p, c + constant if t in model.goals else c)])
    assert_same(evaluated(model, policy), evaluated(later, policy), shift=float(constant))


@given(plain, st.sampled_from([Fraction(1), Fraction(7, 3), Fraction(100)]))
def test_a_constant_on_the_first_step_shifts(drawn, constant):
    model, policy = drawn
    choices = {"before": {"pay": [(model.start, Fraction(1), constant)]}, **model.choices}
    paying = tp.MarkovPolicy({"before": "pay", **policy.decisions})
    assert_same(
        evaluated(model, policy),
        evaluated(Model(choices, "before", model.goals), paying),
        shift=float(constant),
    )


@given(plain, st.sampled_from([Fraction(2), Fraction(1, 3), Fraction(1, 1000), Fraction(12345)]))
def test_scaling(drawn, factor):
    model, policy = drawn
    assert_same(
        evaluated(model, policy),
        evaluated(mapped(model, lambda t, p, c: [(t, p, c * factor)]), policy),
        scale=float(factor),
    )


@given(plain)
def test_splitting_an_outcome_changes_nothing(drawn):
    """Two halves of one outcome are added up again when the model is built; two halves by way of a
    free step are not.
    """
    model, policy = drawn
    assert_same(
        evaluated(model, policy),
        evaluated(mapped(model, lambda t, p, c: [(t, p / 2, c), (t, p / 2, c)]), policy),
    )
    halves = mapped(model, lambda t, p, c: [(t, p / 2, c), (("on the way to", t), p / 2, c)])
    ways = {
        target
        for actions in halves.choices.values()
        for outcomes in actions.values()
        for target, _, _ in outcomes
        if isinstance(target, tuple)
    }
    choices = {
        **halves.choices,
        **{way: {"on": [(way[1], Fraction(1), Fraction(0))]} for way in ways},
    }
    walking = tp.MarkovPolicy({**policy.decisions, **dict.fromkeys(ways, "on")})
    assert_same(
        evaluated(model, policy), evaluated(Model(choices, model.start, model.goals), walking)
    )


@given(plain, st.randoms(use_true_random=False))
def test_names_and_order_of_states_change_nothing(drawn, random):
    model, policy = drawn
    found = evaluated(model, policy)
    renamed = mapped(model, name=lambda state: (state, 7))
    assert_same(
        found, evaluated(renamed, tp.MarkovPolicy({(s, 7): d for s, d in policy.decisions.items()}))
    )
    rows = model.rows()
    random.shuffle(rows)
    assert_same(
        found, tp.evaluate(tp.SSP.from_outcomes(rows, model.start, model.goals), policy, LEAST)
    )


@given(
    strategies.proper_models(dyadic=True).flatmap(
        lambda model: st.tuples(st.just(model), strategies.policies(model))
    )
)
def test_deviation_against_rationals(drawn):
    """The second moment m2 solves m2(x) = sum p (c^2 + 2 c m1(y) + m2(y)), exactly."""
    model, policy = drawn
    chain = reference.unroll(model, policy)
    means = reference.chain_means(chain)
    inner = [pair for pair in chain.outcomes if pair not in chain.goals]

    def equation(pair):
        factor = {}
        for y, p, _ in chain.outcomes[pair]:
            if y not in chain.goals:
                factor[y] = factor.get(y, Fraction(0)) + p
        return factor, sum(
            (p * (c * c + 2 * c * means[y]) for y, p, c in chain.outcomes[pair]), Fraction(0)
        )

    second = reference.solve(inner, equation)[chain.start]
    variance = second - means[chain.start] ** 2
    for engine in ("lattice", "queue"):
        assert evaluated(model, policy, engine=engine).std == pytest.approx(
            math.sqrt(variance), rel=1e-12, abs=1e-12 * float(means[chain.start])
        )


# ---------------------------------------------------------------------- reading a distribution


@given(models_and_policies)
def test_one_run_answers_every_larger_alpha(drawn):
    found = evaluated(*drawn)
    for alpha in GRID:
        alone = evaluated(*drawn, alpha=alpha)
        assert alone.var(alpha) == found.var(alpha)
        assert alone.cvar(alpha) == pytest.approx(found.cvar(alpha), rel=1e-12)


@given(models_and_policies)
def test_the_distribution_function(drawn):
    found = evaluated(*drawn)
    points = found.costs
    steps = found.cdf(points)
    assert np.all(np.diff(steps) >= 0)
    assert found.cdf(points[-1]) == pytest.approx(1 - found.tail_mass, rel=1e-12)
    assert steps == pytest.approx(np.cumsum(found.probabilities), rel=1e-12)
    assert found.cdf(points[0] * (1 - 1e-12) - 1e-300) == 0
    assert found.tails == pytest.approx(1 - steps, rel=1e-9, abs=1e-15)
    for array in (found.costs, found.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_distribution_is_plain_data():
    """It compares by content and pickles, and nothing that was needed to find it stays alive with
    it.
    """
    ssp = tp.domains.gridworld("5x5")
    policy = tp.solve_expected(ssp).policy
    found, again = (tp.evaluate(ssp, policy, 0.01) for _ in range(2))
    copy = pickle.loads(pickle.dumps(found))
    assert found == again == copy
    assert hash(found) == hash(copy)
    assert found != tp.evaluate(ssp, policy, 0.02)
    assert (copy.std, copy.cvar(0.01), copy.bounds(0.01)) == (
        found.std,
        found.cvar(0.01),
        found.bounds(0.01),
    )
    assert not copy.costs.flags.writeable
    assert (
        f"{found!r}"
        == f"<CostDistribution alpha>=0.01: mean {found.mean:.6g}, VaR {found.var(0.01):.6g}, CVaR"
        f" {found.cvar(0.01):.6g}>"
    )


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_a_distribution_lets_go_of_its_chain(gamma, monkeypatch):
    chains = []

    def remembered(*arguments, **options):
        chain = tp.unroll(*arguments, **options)
        chains.append(weakref.ref(chain))
        return chain

    monkeypatch.setattr(evaluation, "unroll", remembered)
    ssp = tp.domains.gridworld("5x5")
    found = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 0.01, gamma=gamma)
    assert [chain() is None for chain in chains] == [False], "bounds may be asked for"
    assert found.bounds(0.01)[0] <= found.cvar(0.01)
    gc.collect()
    assert [chain() for chain in chains] == [None]
    assert found.std > 0


def test_the_whole_distribution_of_a_policy_that_ends():
    rows = [("s", "a", "g", 0.25, 1), ("s", "a", "g", 0.5, 2), ("s", "a", "g", 0.25, 7)]
    found = tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["g"]), tp.MarkovPolicy({"s": "a"}), 1e-6)
    assert (found.costs.tolist(), found.probabilities.tolist(), found.tail_mass) == (
        [1, 2, 7],
        [0.25, 0.5, 0.25],
        0,
    )
    assert found.cdf(np.array([0, 1, 1.5, 2, 7, 1e9])).tolist() == [0, 0.25, 0.25, 0.75, 1, 1]
    assert (found.var(0.25), found.cvar(0.25), found.cvar(0.5), found.cvar(1e-6)) == (2, 7, 4.5, 7)
    assert found.std == math.sqrt(0.25 * 1 + 0.5 * 4 + 0.25 * 49 - 3**2)


# ---------------------------------------------------------------------- pictures


@pytest.fixture
def river():
    ssp = tp.domains.river(rows=10, columns=3)
    return tp.evaluate(ssp, tp.solve_expected(ssp).policy, 0.01)


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_picture_marks_what_matters(river, tmp_path):
    from matplotlib.axes import Axes

    axes = river.plot(0.1)
    assert isinstance(axes, Axes)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("total cost", "probability")
    assert axes.get_legend().get_title().get_text() == "alpha = 0.1"
    assert labels(axes) == [
        "mean 3.15",
        "VaR 4",
        "CVaR 5.356",
        f"beyond 7: probability {river.tail_mass:.3g}",
    ]
    bars = sorted(
        (bar.get_x() + bar.get_width() / 2, bar.get_height())
        for bar in axes.patches
        if bar.get_height() < 1
    )
    assert np.array(bars) == pytest.approx(np.column_stack((river.costs, river.probabilities)))
    for line, value in zip(axes.lines, (river.mean, river.var(0.1), river.cvar(0.1))):
        assert line.get_xdata().tolist() == [value, value]
    assert len({line.get_linestyle() for line in axes.lines}) == 3, "told apart without colour"
    axes.figure.savefig(tmp_path / "picture.png")


def test_a_picture_in_a_figure_of_the_users(river):
    from matplotlib.figure import Figure

    left, right = Figure().subplots(1, 2)
    assert river.plot(ax=right) is right
    assert not left.has_data()
    assert right.get_legend().get_title().get_text() == "alpha = 0.01"


def test_pictures_leave_no_global_state(river):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    river.plot()
    assert plt.get_fignums() == before


def test_pictures_of_extremes(tmp_path):
    trap = tp.SSP.from_outcomes(
        [("s", "a", "g", 0.75, 1), ("s", "a", "t", 0.25, 1), ("t", "a", "t", 1, 1)], "s", ["g"]
    )
    lost = tp.SSP.from_outcomes([("s", "a", "s", 1, 1), ("t", "a", "g", 1, 1)], "s", ["g"])
    free = tp.SSP.from_outcomes([("s", "a", "g", 1, 0)], "s", ["g"])
    always = tp.MarkovPolicy({"s": "a", "t": "a"})
    geometric = textbook.geometric(0.001)
    cases = [
        (
            tp.evaluate(trap, always, 0.1),
            ["mean inf", "VaR inf", "CVaR inf", "beyond 1: probability 0.25, never arriving 0.25"],
        ),
        (
            tp.evaluate(lost, always, 0.1),
            ["mean inf", "VaR inf", "CVaR inf", "beyond 0: probability 1, never arriving 1"],
        ),
        (tp.evaluate(free, tp.MarkovPolicy({"s": "a"}), 0.1), ["mean 0", "VaR 0", "CVaR 0"]),
        (
            tp.evaluate(geometric.ssp, geometric.policy, 0.1),
            [
                "mean 1000",
                "VaR 2302",
                f"CVaR {geometric.cvar(0.1):.6g}",
                "beyond 6212: probability 0.002",
            ],
        ),
    ]
    for found, texts in cases:
        axes = found.plot()
        assert labels(axes) == texts
        axes.figure.savefig(tmp_path / "picture.png")


def test_a_picture_below_alpha_is_refused(river):
    with pytest.raises(tp.TailpathError, match="call evaluate with alpha"):
        river.plot(1e-4)


def test_a_policy_that_never_arrives_is_late_at_every_deadline():
    rows = [("s", "stay", "s", 1, 1), ("s", "go", "g", 1, 3)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for engine in ("lattice", "queue"):
        found = tp.evaluate(ssp, {"s": "stay"}, 0.1, engine=engine)
        for measure in (tp.Late(0), tp.Late(5), tp.Late(math.inf), tp.Loss([(5, 0), (5, 1)])):
            low, high = found.bounds(measure)
            assert low <= 1 <= high and high - low < 1e-12, measure
        assert found.cdf(4) == 0 and found.cdf(1e9) == 0


def never(found):
    return found.bounds(tp.Late(math.inf))


def test_the_bounds_of_never_arriving_are_proved():
    tiny = Fraction("1e-200")
    rows = [
        ("s", "go", "t", tiny, 1),
        ("s", "go", "g", 1 - tiny, 1),
        ("t", "go", "d", tiny, 1),
        ("t", "go", "g", 1 - tiny, 1),
        ("d", "go", "d", 1, 1),
    ]
    ssp, always = tp.SSP.from_outcomes(rows, "s", ["g"]), dict.fromkeys("std", "go")
    found = tp.evaluate(ssp, always, 0.1)
    low, high = never(found)
    assert found.unreached > 0 and low <= tiny**2 <= high <= 1e-300
    assert low <= found.unreached <= high

    # What a history leaves open may never arrive, too.
    tiny = Fraction("1e-16")
    rows = [("s", "go", "t", tiny, 1), ("s", "go", "g", 1 - tiny, 1), ("t", "go", "d", 1, 1)]
    ssp = tp.SSP.from_outcomes([*rows, ("d", "go", "d", 1, 1)], "s", ["g"])
    for policy in (dict.fromkeys("std", "go"), tp.HistoryPolicy(lambda history: "go")):
        low, high = never(tp.evaluate(ssp, policy, 0.6))
        assert low <= tiny <= high and high - low < 2e-16
    # One step that cannot miss, then either: a mixture, and a policy by budget.
    rows = [("s", "a", "g", 1, 5), ("s", "b", "g", 0.7, 1), ("s", "b", "d", 0.3, 1)]
    ssp = tp.SSP.from_outcomes([*rows, ("d", "go", "d", 1, 1)], "s", ["g"])
    risky, safe = (tp.MarkovPolicy({"s": a, "d": "go"}) for a in "ba")
    low, high = never(tp.evaluate(ssp, tp.MixedPolicy((risky, safe), (0.25, 0.75)), 0.5))
    assert low <= Fraction(3, 40) <= high and high - low < 1e-12
    low, high = never(tp.evaluate(ssp, tp.solve_on_time(ssp, 3).policy(3), 0.5))
    assert low <= Fraction(3, 10) <= high and high - low < 1e-12


def test_a_number_is_answered_with_a_number(river):
    """And an array with an array of its shape."""
    last = float(river.costs[-1])
    for ask, one in ((river.cdf, last), (river.cvar, 0.5), (river.var, 0.5)):
        assert type(ask(one)) is float
        several = ask([one, one])
        assert isinstance(several, np.ndarray) and several.tolist() == [ask(one)] * 2


def test_a_policy_of_functions_is_left_behind():
    """Functions cannot be pickled; what was found can, with its deviation."""
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])
    policy = tp.MemoryPolicy(0, lambda state, memory: "a", lambda memory, *step: 0)
    found = tp.evaluate(ssp, policy, 0.25)
    again = pickle.loads(pickle.dumps(found))
    assert again.policy is None and again.cvar(0.25) == found.cvar(0.25)
    assert again.std == found.std


def test_what_is_open_is_told_from_what_never_arrives():
    """1 in 2 arrives at 1, and of the rest, half at 10 or never: at an alpha of 0.6 nobody has
    looked farther than 1.
    """
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "u", 0.25, 1), ("s", "a", "t", 0.25, 1)]
    rows += [("u", "a", "g", 1, 9), ("t", "a", "t", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.MarkovPolicy(dict.fromkeys("sut", "a"))
    found = tp.evaluate(ssp, policy, 0.6)
    assert found.costs.tolist() == [1.0] and found.unreached == 0.25
    for ask in (lambda: found.cdf(5), lambda: found.mean_loss(tp.Late(5).curve)):
        with pytest.raises(OptionError, match="known up to cost"):
            ask()
    found = tp.evaluate(ssp, policy, 0.3)
    assert (found.cdf(20), found.mean_loss(tp.Late(20).curve)) == (0.75, 0.25)
