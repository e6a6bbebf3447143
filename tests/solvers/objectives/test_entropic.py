"""The least entropic risk and EVaR, against every stationary policy, and every policy that
remembers, over a short horizon.
"""

import itertools
import math

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError


def random_model(seed: int) -> tuple[tp.SSP, list[dict[int, str]]]:
    """Up to four states with up to three actions, loops, free steps and free cycles; and all
    stationary policies."""
    random = np.random.default_rng(seed)
    n, rows = int(random.integers(1, 5)), []
    names = [["a", "b", "c"][: int(random.integers(1, 4))] for _ in range(n)]
    for state in range(n):
        for name in names[state]:
            targets = random.choice(
                n + 1, size=min(n + 1, int(random.integers(1, 4))), replace=False
            )
            if name == "a" and state == n - 1:
                targets[0] = n
            elif name == "a":
                targets = np.unique([state + 1, *targets[1:]])
            share = random.multinomial(16 - len(targets), random.dirichlet(np.ones(len(targets))))
            for target, part in zip(targets.tolist(), (share + 1).tolist(), strict=True):
                cost = float(random.choice([0, 1, 2, 0.5, 7.25]))
                rows.append((state, name, target, part / 16, cost))
    policies = [dict(enumerate(chosen)) for chosen in itertools.product(*names)]
    return tp.SSP.from_outcomes(rows, 0, [n]), policies


def least_of_all(ssp: tp.SSP, policies: list[dict[int, str]], measure: tp.risk.Measure) -> float:
    values = []
    for policy in policies:
        try:
            values.append(measure(tp.evaluate(ssp, policy, 1)))
        except tp.TailpathError:  # a free cycle without an end
            continue
    return min(values)


@pytest.mark.parametrize("seed", range(40))
def test_entropic_risk_against_all_policies(seed: int) -> None:
    ssp, policies = random_model(seed)
    for beta in (1e-7, 0.01, 0.1, 0.5, 2):
        measure = tp.Entropic(beta)
        least = least_of_all(ssp, policies, measure)
        if math.isinf(least):
            with pytest.raises(OptionError, match=r"is infinite under every policy|do not decide"):
                tp.solve(ssp, measure)
            continue
        found = tp.solve(ssp, measure)
        low, high = found.bounds
        assert low <= least * (1 + 1e-12) + 1e-14
        assert high >= least * (1 - 1e-12)
        assert found.value == pytest.approx(least, rel=1e-9, abs=1e-12)
        assert high - low <= 1e-8 * high + 1e-12
        assert found.risk(measure) == pytest.approx(found.value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_evar_against_all_policies(seed: int) -> None:
    ssp, policies = random_model(seed)
    for alpha in (0.9, 0.3, 0.01):
        measure = tp.EVaR(alpha)
        least = least_of_all(ssp, policies, measure)
        found = tp.solve(ssp, measure)
        low, high = found.bounds
        assert low <= least * (1 + 1e-12) + 1e-14
        assert found.value == pytest.approx(least, rel=1e-6)
        assert low <= found.value * (1 + 1e-12)
        assert high - low <= 2e-3 * high + 1e-12


def test_policies_that_remember_have_no_less() -> None:
    """Three rounds of a bet, with every policy that looks at what was paid before."""
    bets = {"safe": [(1.0, 3)], "risky": [(0.75, 1), (0.25, 7)], "wild": [(0.9, 0), (0.1, 19)]}
    rounds = 3
    rows = [
        (k, name, k + 1, p, cost)
        for k in range(rounds)
        for name, ways in bets.items()
        for p, cost in ways
    ]
    ssp = tp.SSP.from_outcomes(rows, 0, [rounds])

    def sums(k: int) -> list[dict[float, float]]:
        """The distribution of what is left to pay, for every way to go on that remembers."""
        if k == rounds:
            return [{0.0: 1.0}]
        found = []
        for ways in bets.values():
            for after in itertools.product(sums(k + 1), repeat=len(ways)):
                total: dict[float, float] = {}
                for (p, cost), rest in zip(ways, after, strict=True):
                    for z, q in rest.items():
                        total[z + cost] = total.get(z + cost, 0.0) + p * q
                found.append(total)
        return found

    def mean(way: dict[float, float], beta: float) -> float:
        return sum(p * math.exp(beta * z) for z, p in way.items())

    every = sums(0)
    assert len(every) > 300
    for beta in (0.01, 0.1, 0.5, 3):
        least = min(math.log(mean(way, beta)) / beta for way in every)
        assert tp.solve(ssp, tp.Entropic(beta)).value == pytest.approx(least, rel=1e-12)
    for alpha in (0.5, 0.1):
        grid = [2 ** (k / 16) / 100 for k in range(160)]
        least = min(
            min(max(way), *((math.log(mean(way, b)) - math.log(alpha)) / b for b in grid))
            for way in every
        )
        found = tp.solve(ssp, tp.EVaR(alpha))
        assert found.bounds[0] <= found.value <= least * (1 + 1e-12)
        assert found.value == pytest.approx(least, rel=1e-3)


REFERENCE = [
    ("river:30x10", 0.5, 23.345065),
    ("river:30x10", 0.1, 30.499042),
    ("river:30x10", 0.01, 37.677243),
    ("gridworld:14x16", 0.5, 52.222974),
    ("gridworld:14x16", 0.1, 69.493676),
    ("gridworld:14x16", 0.01, 89.866407),
    ("river:10x10", 0.01, 26.0),
]


@pytest.mark.parametrize(("model", "alpha", "value"), REFERENCE)
def test_numbers_of_another_implementation(model: str, alpha: float, value: float) -> None:
    found = tp.solve(tp.read(model), tp.EVaR(alpha))
    assert found.value == pytest.approx(value, abs=6e-7)
    low, high = found.bounds
    assert low <= value + 6e-7
    assert high >= value - 6e-7
    assert high - low <= 1e-4 * high


def test_beyond_every_policy() -> None:
    rows = [("s", "a", "s", 0.5, 1), ("s", "a", "goal", 0.5, 1), ("t", "a", "s", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "t", ["goal"])
    with pytest.raises(OptionError, match=r"infinite under every policy: from state 's'.*0\.69"):
        tp.solve(ssp, tp.Entropic(1))
    assert tp.solve(ssp, tp.Entropic(0.6)).value < 8


def test_a_part_that_is_infinite_is_avoided() -> None:
    """The cheaper way leads through a loop that is too risky; a third never matters."""
    rows = [("s", "a", "loop", 1, 0), ("s", "b", "goal", 1, 30), ("s", "c", "far", 1, 3)]
    rows += [("loop", "a", "loop", 0.5, 1), ("loop", "a", "goal", 0.5, 1)]
    rows += [("far", "a", "loop", 0.001, 1), ("far", "a", "goal", 0.999, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["goal"])
    assert tp.solve(ssp, tp.Entropic(0.1)).policy.action("s") == "a"
    found = tp.solve(ssp, tp.Entropic(1))
    assert found.policy.action("s") == "b"
    assert found.bounds[0] <= 30 <= found.bounds[1] <= 30 * (1 + 1e-12)


def test_costs_without_a_unit_and_of_any_sign() -> None:
    rows = [("s", "a", "goal", 0.9, math.pi), ("s", "a", "goal", 0.1, 60), ("s", "b", "goal", 1, 9)]
    assert tp.solve(tp.SSP.from_outcomes(rows, "s", ["goal"]), "entropic(1)").value == 9
    rows = [("s", "a", "t", 1, -50), ("t", "a", "goal", 0.9, 20), ("t", "a", "goal", 0.1, 60)]
    rows += [("t", "b", "goal", 1, 30)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["goal"])
    assert tp.solve(ssp, "entropic(1)").value == pytest.approx(-20, rel=1e-12)
    assert tp.solve(ssp, "evar(0.1)").value == pytest.approx(-20, rel=1e-9)
    assert tp.solve(ssp, "entropic(0)").value == pytest.approx(-26, rel=1e-12)
