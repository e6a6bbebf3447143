"""`costs.chains`: what a measure needs that the head does not decide. Expected sums
and products along chains against fractions, and two measures from outside that are built on them.
"""

import math
import pickle
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.risk import Measure


def in_fractions(rows: list[list[Fraction]], end: list[Fraction]) -> list[Fraction]:
    """The solution of v = end + rows v."""
    n = len(end)
    left = [[Fraction(int(i == j)) - rows[i][j] for j in range(n)] + [end[i]] for i in range(n)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if left[i][k] != 0)
        left[k], left[pivot] = left[pivot], left[k]
        for i in range(n):
            if i != k and left[i][k] != 0:
                share = left[i][k] / left[k][k]
                left[i] = [a - share * b for a, b in zip(left[i], left[k], strict=True)]
    return [row[n] / row[k] for k, row in enumerate(left)]


def random_chain(seed: int, n: int = 5) -> tp.CostChain:
    """Probabilities are eighths, so that floats are exact; some nodes may never arrive."""
    random = np.random.default_rng(seed)
    rows = []
    for state in range(n):
        share = random.multinomial(8, random.dirichlet(np.ones(n + 1)))
        rows += [
            (state, "go", to, Fraction(int(k), 8), int(random.integers(1, 5)))
            for to, k in enumerate(share.tolist())
            if k
        ]
    ssp = tp.SSP.from_outcomes(rows, 0, [n])
    return tp.unroll(ssp, dict.fromkeys(range(n), "go"))


@pytest.mark.parametrize("seed", range(60))
def test_products_in_fractions(seed: int) -> None:
    chain = random_chain(seed)
    factor = 1 + chain.cost / 32
    found = chain.expected_product(factor)
    arrives = np.flatnonzero(chain.arrives).tolist()
    number = {node: k for k, node in enumerate(arrives)}
    rows = [[Fraction(0)] * len(arrives) for _ in arrives]
    end = [Fraction(0)] * len(arrives)
    for s, t, p, f in zip(chain.source, chain.target, chain.probability, factor, strict=True):
        if s in number and t == chain.n:
            end[number[s]] += Fraction(float(p)) * Fraction(float(f))
        elif s in number and t in number:
            rows[number[s]][number[t]] += Fraction(float(p)) * Fraction(float(f))
    radius = max(abs(np.linalg.eigvals(np.array(rows, dtype=float))), default=0.0)
    if radius > 1:
        assert np.isinf(found.upper[arrives]).any()
        return
    for node, exact in zip(arrives, in_fractions(rows, end), strict=True):
        low, high = float(found.lower[node]), float(found.upper[node])
        assert Fraction(low) <= exact <= Fraction(high)
        assert high - low <= 1e-11 * high / (1 - radius)
        assert low <= found.value[node] <= high
    assert (found.upper[~chain.arrives] == 0).all()


@pytest.mark.parametrize(("factor", "exact"), [(1.0, 1.0), (1.5, 3.0), (1.875, 15.0), (2.5, None)])
def test_a_loop_is_left_every_other_time(factor: float, exact: float | None) -> None:
    """The sum of (factor / 2)^k, which ends below a factor of 2."""
    rows = [("s", "a", "s", 0.5, 1), ("s", "a", "goal", 0.5, 1)]
    chain = tp.unroll(tp.SSP.from_outcomes(rows, "s", ["goal"]), {"s": "a"})
    found = chain.expected_product(np.full(2, factor))
    if exact is None:
        assert found.value[0] == found.upper[0] == math.inf
    else:
        assert found.lower[0] <= exact <= found.upper[0]
        assert found.value[0] == pytest.approx(exact, rel=1e-14)


def test_what_may_vanish_is_not_proved() -> None:
    rows = [("s", "a", "t", 1, 1), ("t", "a", "goal", 1, 1)]
    chain = tp.unroll(tp.SSP.from_outcomes(rows, "s", ["goal"]), {"s": "a", "t": "a"})
    found = chain.expected_product(np.full(2, 1e-130))
    assert found.value == pytest.approx([1e-260, 1e-130], rel=1e-14)
    assert found.lower.tolist() == [0, 0]
    assert np.isinf(found.upper).all()


@dataclass(frozen=True)
class Exponential(Measure):
    """log(E[exp(beta Z)]) / beta."""

    beta: float

    def _ends(self, costs: tp.CostDistribution) -> list[float]:
        total = np.zeros(3)
        for weight, chain in costs.chains:
            found = chain.expected_product(np.exp(self.beta * chain.cost))
            total += weight * np.array(
                [e[chain.start] for e in (found.value, found.lower, found.upper)]
            )
        return [math.log(end) / self.beta for end in total]

    def __call__(self, costs: tp.CostDistribution) -> float:
        return self._ends(costs)[0]

    def bounds_of(self, costs: tp.CostDistribution) -> tuple[float, float]:
        _, low, high = self._ends(costs)
        return low - 1e-12 * abs(low), high + 1e-12 * abs(high)


@dataclass(frozen=True)
class SecondMoment(Measure):
    """E[Z^2], by c^2 + 2 c V(next) at every step."""

    def _ends(self, costs: tp.CostDistribution) -> list[float]:
        total = np.zeros(3)
        for weight, chain in costs.chains:
            mean = chain.expected_cost
            for k, side in enumerate(("value", "lower", "upper")):
                ahead = np.append(getattr(mean, side), 0.0)[chain.target]
                price = chain.cost**2 + 2 * chain.cost * ahead
                total[k] += weight * getattr(chain.expected_sum(price), side)[chain.start]
        return total.tolist()

    def __call__(self, costs: tp.CostDistribution) -> float:
        return self._ends(costs)[0]

    def bounds_of(self, costs: tp.CostDistribution) -> tuple[float, float]:
        _, low, high = self._ends(costs)
        return low * (1 - 1e-12), high * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["budget", "mixture"])
def test_measures_of_the_whole_distribution(kind: str) -> None:
    """Against sums over nearly all of it."""
    ssp = tp.read("gridworld:5x5")
    policy = tp.solve_cvar_exact(ssp, 0.05).policy(0.05)
    if kind == "mixture":
        inner = tp.MixedPolicy((policy, tp.solve_expected(ssp).policy), (0.5, 0.5))
        policy = tp.MixedPolicy((policy, inner), (0.25, 0.75))
    costs, all_of_it = tp.evaluate(ssp, policy, 0.1), tp.evaluate(ssp, policy, 1e-15)
    z, p = all_of_it.costs, all_of_it.probabilities
    second, mean = float(p @ z**2), costs.mean
    low, high = costs.bounds(SecondMoment())
    assert low <= SecondMoment()(costs) <= high
    assert SecondMoment()(costs) == pytest.approx(second, rel=1e-9)
    assert math.sqrt(second - mean**2) == pytest.approx(costs.std, rel=1e-9)
    measure = Exponential(0.01)
    low, high = costs.bounds(measure)
    assert low <= measure(costs) <= high
    assert high - low <= 1e-8 * high
    assert measure(costs) == pytest.approx(math.log(float(p @ np.exp(0.01 * z))) / 0.01, rel=1e-9)


def test_what_has_no_chain_says_so() -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "goal", 1, 1)], "s", ["goal"])
    with pytest.raises(OptionError, match="discounted costs"):
        _ = tp.evaluate(ssp, {"s": "a"}, 0.1, gamma=0.5).chains
    costs = tp.evaluate(ssp, tp.HistoryPolicy(lambda past: "a"), 0.5)
    with pytest.raises(OptionError, match="policies without end"):
        _ = costs.chains
    with pytest.raises(OptionError, match="pickled"):
        _ = pickle.loads(pickle.dumps(costs)).chains
