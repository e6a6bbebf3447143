"""Entropic risk and EVaR of a distribution, against closed forms and linear systems with fifty
digits.
"""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError, TailpathWarning
from tailpath.risk.entropic import _log_mean

HALF = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "goal", 0.5, 1)], "s", ["goal"])


def geometric(beta: str) -> Decimal:
    """ln E[exp(beta Z)] / beta of the number of tosses until the first head."""
    share = Decimal(beta).exp() / 2
    return (share / (1 - share)).ln() / Decimal(beta) if share < 1 else Decimal("inf")


@pytest.mark.parametrize(
    ("beta", "width"),
    [
        ("1e-12", 1e-13),
        ("1e-6", 1e-13),
        ("0.1", 1e-13),
        ("0.6", 1e-12),
        ("0.693", 1e-9),
        ("0.693147", 1e-6),
        ("0.693147180559", math.inf),
        ("0.6931471805599453", math.inf),
        ("0.6932", 0.0),
        ("1", 0.0),
        ("1e6", 0.0),
    ],
)
def test_a_geometric_number_of_steps(beta: str, width: float) -> None:
    """Up to ln 2, and beyond it."""
    costs, measure = tp.evaluate(HALF, {"s": "a"}, 0.5), tp.Entropic(float(beta))
    with localcontext() as context:
        context.prec = 50
        exact = geometric(beta)
        low, high = costs.bounds(measure)
        assert Decimal(low) <= exact <= Decimal(high)
        assert high - low <= width * high or low == high == math.inf
        assert math.isinf(high) or low <= measure(costs) <= high


def random_rows(seed: int) -> tuple[list[tuple[int, str, int, str, str]], int]:
    """A chain with loops, costs with decimals, some of them 0, and rare dear outcomes."""
    random = np.random.default_rng(seed)
    n, rows = int(random.integers(1, 7)), []
    for state in range(n):
        targets = random.choice(n + 1, size=min(n + 1, 3), replace=False).tolist()
        if max(targets) <= state:
            targets[0] = state + 1
        parts = random.multinomial(997, random.dirichlet(np.ones(len(targets)))) + 1
        parts[-1] += 1000 - parts.sum()
        for target, part in zip(targets, parts.tolist(), strict=True):
            cost = random.choice([0, 1, 0.1, 2.5, 13, 0.03]) * 10 ** float(random.integers(-2, 3))
            rows.append((state, "a", target, f"0.{part:03d}", f"{cost:.6g}"))
    return rows, n


def exact_entropic(rows: list[tuple[int, str, int, str, str]], n: int, beta: str) -> Decimal | None:
    """By the linear system; None if what solves it is not the limit from below."""
    one = Decimal(1)
    left = [[one if i == j else Decimal(0) for j in range(n)] + [Decimal(0)] for i in range(n)]
    for state, _, target, probability, cost in rows:
        weight = Decimal(probability) * (Decimal(beta) * Decimal(cost)).exp()
        if target == n:
            left[state][n] += weight
        else:
            left[state][target] -= weight
    # What leads to the end surely enough needs no pivots, and has positive ones only.
    for k in range(n - 1, -1, -1):
        if left[k][k] <= 0:
            return None
        for i in range(n):
            if i != k:
                share = left[i][k] / left[k][k]
                left[i] = [a - share * b for a, b in zip(left[i], left[k], strict=True)]
    if any(left[k][n] / left[k][k] <= 0 for k in range(n)):
        return None
    return (left[0][n] / left[0][0]).ln() / Decimal(beta)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("beta", ["1e-9", "0.001", "0.02", "0.3", "4"])
def test_random_chains(seed: int, beta: str) -> None:
    rows, n = random_rows(seed)
    ssp = tp.SSP.from_outcomes([(*row[:3], row[3], float(row[4])) for row in rows], 0, [n])
    with localcontext() as context:
        context.prec = 60
        costs, measure = tp.evaluate(ssp, dict.fromkeys(range(n), "a"), 1), tp.Entropic(float(beta))
        states = tp.unroll(ssp, dict.fromkeys(range(n), "a")).state.tolist()
        reached = [ssp.states[k] for k in states]
        number = {s: k for k, s in enumerate(reached)} | {n: len(reached)}
        own = [(number[s], a, number[t], p, c) for s, a, t, p, c in rows if s in number]
        exact = exact_entropic(own, len(reached), beta)
        low, high = costs.bounds(measure)
        if exact is None:
            assert measure(costs) == math.inf
            assert high == math.inf
            return
        assert Decimal(low) <= exact <= Decimal(high)
        assert low <= measure(costs) <= high
        assert high - low <= 1e-9 * high


def test_the_ends_of_beta() -> None:
    rows = [("s", "a", "goal", 0.9, 20), ("s", "a", "goal", 0.1, 60)]
    costs = tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["goal"]), {"s": "a"}, 0.5)
    assert tp.Entropic(0)(costs) == costs.mean
    assert tp.Entropic(0).bounds_of(costs) == costs.mean_bounds
    for beta in (1e3, 1e6, 1e9, 1e12):  # exp(60 beta) is beyond every float
        exact = Decimal(60) + (Decimal("0.1")).ln() / Decimal(beta)
        low, high = costs.bounds(tp.Entropic(beta))
        assert Decimal(low) <= exact <= Decimal(high)
        assert high - low < 1e-11
    with pytest.raises(OptionError, match="0 or more"):
        tp.Entropic(-1)
    with pytest.raises(OptionError, match="finite"):
        tp.Entropic(math.inf)


def test_costs_of_any_sign() -> None:
    rows = [("s", "a", "t", 1, -50), ("t", "a", "goal", 0.9, 20), ("t", "a", "goal", 0.1, 60)]
    costs = tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["goal"]), dict.fromkeys("st", "a"), 0.5)
    exact = math.log(0.9 * math.exp(2) + 0.1 * math.exp(6)) / 0.1 - 50
    low, high = costs.bounds(tp.Entropic(0.1))
    assert low <= exact <= high
    assert high - low < 1e-9


def test_a_goal_that_may_be_missed() -> None:
    rows = [("s", "a", "goal", 0.9, 1), ("s", "a", "t", 0.1, 1), ("t", "a", "t", 1, 1)]
    costs = tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["goal"]), dict.fromkeys("st", "a"), 0.5)
    for measure in (tp.Entropic(0.1), tp.Entropic(0), tp.EVaR(0.1), tp.EVaR(1)):
        assert measure(costs) == math.inf
        assert costs.bounds(measure)[1] == math.inf


def test_mixtures() -> None:
    rows = [("s", "a", "goal", 0.9, 20), ("s", "a", "goal", 0.1, 60), ("s", "b", "goal", 1, 30)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["goal"])
    parts = tp.MarkovPolicy({"s": "a"}), tp.MarkovPolicy({"s": "b"})
    costs = tp.evaluate(ssp, tp.MixedPolicy(parts, (0.25, 0.75)), 0.5)
    with localcontext() as context:
        context.prec = 50
        for text in ("1e-9", "0.01", "1", "50"):
            beta = Decimal(text)
            pairs = [("0.225", 20), ("0.025", 60), ("0.75", 30)]
            exact = sum(Decimal(p) * (beta * z).exp() for p, z in pairs).ln() / beta
            low, high = costs.bounds(tp.Entropic(float(text)))
            assert Decimal(low) <= exact <= Decimal(high)
            assert high - low < 1e-10


@pytest.mark.parametrize(
    ("alpha", "exact"), [(0.1, 7.589009), (0.05, 8.820408), (0.01, 11.552339), (1, 2)]
)
def test_evar_of_a_geometric_number(alpha: float, exact: float) -> None:
    costs, measure = tp.evaluate(HALF, {"s": "a"}, 0.5), tp.EVaR(alpha)
    assert measure(costs) == pytest.approx(exact, abs=5e-7)
    low, high = costs.bounds(measure)
    assert low <= measure(costs) <= high
    assert high - low <= 1e-9 * high
    # On a grid nothing is less than the lower bound.
    with localcontext() as context:
        context.prec = 40
        for k in range(1, 693 if alpha < 1 else 1):
            beta = f"{k / 1000:.3f}"
            penalty = -Decimal(str(alpha)).ln() / Decimal(beta)
            assert geometric(beta) + penalty >= Decimal(low)


def test_evar_where_its_minimum_is_a_limit() -> None:
    """Towards beta = infinity, if alpha is no more than the probability of the worst cost."""
    rows = [("s", "a", "goal", 0.9, 20), ("s", "a", "goal", 0.1, 60)]
    costs = tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["goal"]), {"s": "a"}, 0.5)
    for alpha in (0.1, 0.01, 1e-9):
        low, high = costs.bounds(tp.EVaR(alpha))
        assert low <= 60 <= high
        assert high - low <= 1e-7
        assert low <= tp.EVaR(alpha)(costs) <= high
    sure = tp.evaluate(
        tp.SSP.from_outcomes([("s", "a", "goal", 1, 7)], "s", ["goal"]), {"s": "a"}, 1
    )
    low, high = sure.bounds(tp.EVaR(0.3))
    assert low <= 7 <= high
    assert tp.EVaR(0.3)(sure) == pytest.approx(7, rel=1e-9)


def test_evar_lies_above_cvar_and_below_the_worst() -> None:
    ssp = tp.read("gridworld:5x5")
    costs = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 0.001)
    before = 0.0
    for alpha in (1, 0.999, 0.5, 0.1, 0.01, 0.001):
        value = tp.EVaR(alpha)(costs)
        assert value >= max(costs.cvar(alpha), before) * (1 - 1e-12)
        before = value
    assert tp.EVaR(0.9999999)(costs) == pytest.approx(costs.mean, rel=1e-2)


def test_text_and_sums() -> None:
    costs = tp.evaluate(HALF, {"s": "a"}, 0.5)
    both = 2 * tp.Entropic(0.1) + tp.EVaR(0.05)
    assert str(both) == "2 * entropic(0.1) + evar(0.05)"
    assert both(costs) == 2 * tp.Entropic(0.1)(costs) + tp.EVaR(0.05)(costs)
    low, high = costs.bounds(both)
    assert low <= both(costs) <= high


def test_costs_whose_decimals_doubles_do_not_hold() -> None:
    """1.0000000000000003e18 is 44 more than its double, which is many digits of exp."""
    rows = [("s", "a", "t", 1e-120, 1.0000000000000003e18), ("s", "a", "goal", 1, 0)]
    rows += [("t", "a", "goal", 1, -1e18)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["goal"])
    with pytest.warns(TailpathWarning, match="no upper bound"):
        costs = tp.evaluate(ssp, {"s": "a", "t": "a"}, 1)
        low, high = tp.Entropic(1).bounds_of(costs)
    with localcontext() as context:
        context.prec = 60
        exact = (1 + Decimal("1e-120") * (Decimal(300).exp() - 1)).ln()
        assert Decimal(low) <= exact <= Decimal(high)


@pytest.mark.parametrize("beta", [1e-323, 1e-312, 1e-290])
def test_betas_at_the_end_of_the_floats(beta: float) -> None:
    ssp = tp.SSP.from_outcomes([(k, "a", k + 1, 1, 0.3) for k in range(40)], 0, [40])
    costs, measure = tp.evaluate(ssp, dict.fromkeys(range(40), "a"), 1), tp.Entropic(beta)
    for low, high in (costs.bounds(measure), tp.solve(ssp, measure).bounds):
        assert 11.999 <= low <= 12 <= high


def test_a_beta_that_is_too_large() -> None:
    rows = [("s", "a", "goal", 1, 1e300)]
    costs = tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["goal"]), {"s": "a"}, 1)
    with pytest.raises(OptionError, match=r"a beta of 1e\+09 is too large for these costs"):
        tp.Entropic(1e9)(costs)


@pytest.mark.parametrize("cost", [1e-160, 1e160, 1e300])
def test_evar_of_costs_whose_squares_are_no_floats(cost: float) -> None:
    rows = [("s", "a", "s", 0.5, cost), ("s", "a", "goal", 0.5, cost)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["goal"])
    costs = tp.evaluate(ssp, {"s": "a"}, 1)
    assert tp.EVaR(0.1)(costs) == pytest.approx(7.589009 * cost, rel=1e-6)
    assert tp.solve(ssp, tp.EVaR(0.1)).value == pytest.approx(7.589009 * cost, rel=1e-6)
    low, high = tp.EVaR(0.1).bounds_of(costs)
    assert low <= tp.EVaR(0.1)(costs) <= high
    assert high - low <= 1e-9 * high


def test_evar_of_what_costs_nothing() -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "goal", 1, 0)], "s", ["goal"])
    costs = tp.evaluate(ssp, {"s": "a"}, 1)
    for measure in (tp.EVaR(0.1), tp.Entropic(3)):
        assert measure(costs) == 0
        assert costs.bounds(measure) == (0, 0)
        assert tp.solve(ssp, measure).bounds == (0, 0)


def test_a_part_of_which_nothing_is_known_adds_nothing() -> None:
    low = _log_mean([0.5, 0.5], [-math.inf, 5.0], -1)
    assert low <= 5 - math.log(2)
