"""The problems of `tailpath.domains.textbook` with their answers.

Each answer is computed from a closed form in exact rational arithmetic and rounded once, so it
holds to the last digit at any alpha; nothing is subtracted from 1. With the tail `T(x) = P(Z > x)`
and the excess `E(x) = E[(Z - x)+]` of the total cost Z,

    VaR_alpha = min { x possible : T(x) <= alpha },  CVaR_alpha = VaR_alpha + E(VaR_alpha) / alpha.

A probability given as a float stands for the shortest decimal that prints it (0.1 is 1/10); a float
alpha stands for its exact binary value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tailpath.domains import textbook
from tailpath.errors import OptionError
from tailpath.model.cost_units import as_fraction
from tailpath.model.ssp import SSP
from tailpath.policies.kinds import MarkovPolicy

Number = Any  # int, float or Fraction
ClosedForm = Callable[[Number], float]
#: Pairs of a probability and an expected number of steps.
Continuations = Iterable[tuple[Fraction, Fraction]]


@dataclass(frozen=True)
class Problem:
    """A model with its answers: those of `policy`, or of the optimum over all policies where
    `policy` is `None`.

    `var` and `cvar` are functions of alpha, `None` where no closed form is known.
    """

    name: str
    ssp: SSP
    policy: MarkovPolicy | None
    mean: float
    var: ClosedForm | None = None
    cvar: ClosedForm | None = None


def geometric(p: Number = Fraction(1, 4), cost: Number = 1) -> Problem:
    """What is to come after n failures is what was to come at the start."""
    ssp, p = textbook.geometric(p, cost), as_fraction(p)
    return _counted("geometric", ssp, as_fraction(cost), lambda n: [((1 - p) ** n, 1 / p)])


def negative_binomial(r: int = 3, p: Number = Fraction(1, 4), cost: Number = 1) -> Problem:
    """After n trials with j < r successes, (r - j) / p more are to be expected: the excess needs no
    infinite sum.
    """
    ssp, p = textbook.negative_binomial(r, p, cost), as_fraction(p)

    def going_on(n: int) -> Continuations:
        for j in range(min(r, n + 1)):
            yield math.comb(n, j) * p**j * (1 - p) ** (n - j), (r - j) / p

    return _counted("negative-binomial", ssp, as_fraction(cost), going_on)


def deterministic_chain(n: int = 5, cost: Number = 1) -> Problem:
    ends = {n * as_fraction(cost): Fraction(1)}
    return _discrete("deterministic-chain", textbook.deterministic_chain(n, cost), [ends])


def lottery(p: Number = Fraction(1, 8), low: Number = 1, high: Number = 100) -> Problem:
    ssp, p = textbook.lottery(p, low, high), as_fraction(p)
    ends = _added([(as_fraction(high), p), (as_fraction(low), 1 - p)])
    return _discrete("lottery", ssp, [ends])


def gamblers_ruin(fortune: int = 3, target: int = 8, p: Number = Fraction(1, 2)) -> Problem:
    """The paths that stay inside for n plays are counted by reflection at both ends."""
    ssp, win = textbook.gamblers_ruin(fortune, target, p), as_fraction(p)
    lose = 1 - win

    def inside(n: int, x: int) -> Fraction:
        """The probability of being at x after n plays, never having left."""
        paths = 0
        for turn in range(-(n // (2 * target)) - 1, n // (2 * target) + 2):
            paths += _paths(n, x - fortune + 2 * turn * target) - _paths(
                n, x + fortune + 2 * turn * target
            )
        ups = (n + x - fortune) // 2
        return paths * win**ups * lose ** (n - ups) if paths else Fraction(0)

    def plays_left(x: int) -> Fraction:
        if win == lose:
            return Fraction(x * (target - x))
        odds = lose / win
        return (x - target * (1 - odds**x) / (1 - odds**target)) / (lose - win)

    def going_on(n: int) -> Continuations:
        return ((inside(n, x), plays_left(x)) for x in range(1, target))

    return _counted("gamblers-ruin", ssp, Fraction(1), going_on)


def coupon_collector(n: int = 8) -> Problem:
    """The tail is by inclusion and exclusion."""

    def going_on(t: int) -> Continuations:
        for j in range(1, n + 1):
            yield (-1) ** (j + 1) * math.comb(n, j) * Fraction(n - j, n) ** t, Fraction(n, j)

    return _counted("coupon-collector", textbook.coupon_collector(n), Fraction(1), going_on)


def counter_example() -> Problem:
    """The optimum needs no randomising (CVaR is concave in mixtures), so it is the best of three
    distributions.
    """
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    actions = [[(1300, quarter), (100, 3 * quarter)], [(700, 1)], [(800, half), (300, half)]]
    ends_of = [
        _added([(500, half), *((cost, half * chance) for cost, chance in ends)]) for ends in actions
    ]
    return _discrete("counter-example", textbook.counter_example(), ends_of)


def haddad_monmege(n: int = 20) -> Problem:
    ssp = textbook.haddad_monmege(n)
    return Problem("haddad-monmege", ssp, _only_policy(ssp), mean=float(3 * 2 ** (n - 1) - 2))


#: Each name with its builder.
PROBLEMS: dict[str, Callable[..., Problem]] = {
    name: globals()[builder.__name__] for name, builder in textbook.PROBLEMS.items()
}


def _counted(
    name: str,
    ssp: SSP,
    cost: Fraction,
    going_on: Callable[[int], Continuations],
) -> Problem:
    """A problem whose cost is `cost` times a number of steps N. `going_on(n)` are the ways in which
    a run has not ended after n steps: the probability of each, and the steps still expected.

    P(N > n) is the sum of the probabilities, and E[(N - n)+] that of the products.
    """

    def tail(n: int) -> Fraction:
        return sum((p for p, _ in going_on(n)), Fraction(0))

    def excess(n: int) -> Fraction:
        return sum((p * steps for p, steps in going_on(n)), Fraction(0))

    def below_var(n: int, alpha: Fraction) -> bool:
        return tail(n) > alpha or tail(n) == 1  # VaR at alpha = 1 is the least cost that can happen

    def steps(alpha: Fraction) -> int:
        high = 1
        while below_var(high, alpha):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if below_var(middle, alpha) else (low, middle)
        return high

    def cvar(alpha: Number) -> float:
        mass = _mass(alpha)
        n = steps(mass)
        return float(cost * (n + excess(n) / mass))

    return Problem(
        name,
        ssp,
        _only_policy(ssp),
        float(cost * excess(0)),
        lambda alpha: float(cost * steps(_mass(alpha))),
        cvar,
    )


def _discrete(
    name: str,
    ssp: SSP,
    policies: list[dict[Fraction, Fraction]],
) -> Problem:
    """A problem with few total costs: `{cost: probability}` for each policy there is."""

    def at(ends: dict[Fraction, Fraction], mass: Fraction) -> tuple[Fraction, Fraction]:
        x = min(x for x in ends if sum(p for z, p in ends.items() if z > x) <= mass)
        return x, x + sum((p * (z - x) for z, p in ends.items() if z > x), Fraction(0)) / mass

    def cvar(alpha: Number) -> float:
        return float(min(at(ends, _mass(alpha))[1] for ends in policies))

    if len(policies) > 1:
        return Problem(name, ssp, None, cvar(1), None, cvar)
    return Problem(
        name,
        ssp,
        _only_policy(ssp),
        cvar(1),
        lambda alpha: float(at(policies[0], _mass(alpha))[0]),
        cvar,
    )


def _only_policy(ssp: SSP) -> MarkovPolicy:
    """That of a model with one action in each state."""
    states = [ssp.states[state] for state in ssp.choice_state]
    return MarkovPolicy({state: ssp.choice_name(c) for c, state in enumerate(states)})


def _added(pairs: Iterable[tuple[Number, Fraction]]) -> dict[Fraction, Fraction]:
    """The distribution `{cost: probability}` of pairs in which costs may repeat; impossible costs
    are left out.
    """
    ends: dict[Fraction, Fraction] = {}
    for cost, probability in pairs:
        if probability:
            ends[Fraction(cost)] = ends.get(Fraction(cost), Fraction(0)) + probability
    return ends


def _paths(n: int, ahead: int) -> int:
    """The number of ways to get `ahead` in n steps of +1 or -1."""
    return math.comb(n, (n + ahead) // 2) if abs(ahead) <= n and (n + ahead) % 2 == 0 else 0


def _mass(alpha: Number) -> Fraction:
    if not 0 < alpha <= 1:
        raise OptionError(f"alpha must lie in (0, 1], not {alpha!r}")
    return Fraction(alpha)
