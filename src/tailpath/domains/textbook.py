"""Small problems with known answers.

Each answer is computed from a closed form in exact rational arithmetic and rounded once, so it
holds to the last digit at any alpha; nothing is subtracted from 1. With the tail `T(x) = P(Z > x)`
and the excess `E(x) = E[(Z - x)+]` of the total cost Z,

    VaR_alpha = min { x possible : T(x) <= alpha },  CVaR_alpha = VaR_alpha + E(VaR_alpha) / alpha.

A probability given as a float stands for the shortest decimal that prints it (0.1 is 1/10); a float
alpha stands for its exact binary value.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from tailpath.domains.register import Domain
from tailpath.errors import OptionError
from tailpath.model.cost_units import as_fraction
from tailpath.model.ssp import SSP, Name
from tailpath.options import check_integer
from tailpath.policies.kinds import MarkovPolicy
from tailpath.texts import did_you_mean

Number = Any  # int, float or Fraction
ClosedForm = Callable[[Number], float]
ProblemRow = tuple[Name, Name, Name, Number, Number]
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
    """Pay `cost` for each trial until the first success, which has probability `p`."""
    p, cost = _chance(p), _cost(cost, positive=True)
    rows = [("trying", "try", "done", p, cost), ("trying", "try", "trying", 1 - p, cost)]
    return _counted("geometric", rows, "trying", ["done"], cost, lambda n: [((1 - p) ** n, 1 / p)])


def negative_binomial(r: int = 3, p: Number = Fraction(1, 4), cost: Number = 1) -> Problem:
    """Pay `cost` for each trial until the `r`-th success. States count the successes.

    After n trials with j < r successes, (r - j) / p more are to be expected: the excess needs no
    infinite sum.
    """
    r, p = check_integer(r, "r", 1), _chance(p)
    cost = _cost(cost, positive=True)
    rows = [
        row for j in range(r) for row in ((j, "try", j + 1, p, cost), (j, "try", j, 1 - p, cost))
    ]

    def going_on(n: int) -> Continuations:
        for j in range(min(r, n + 1)):
            yield math.comb(n, j) * p**j * (1 - p) ** (n - j), (r - j) / p

    return _counted("negative-binomial", rows, 0, [r], cost, going_on)


def deterministic_chain(n: int = 5, cost: Number = 1) -> Problem:
    """`n` steps of the same cost, one after the other."""
    n, cost = check_integer(n, "n", 1), _cost(cost)
    rows = [(state, "step", state + 1, 1, cost) for state in range(n)]
    return _discrete("deterministic-chain", rows, 0, [n], [{n * cost: Fraction(1)}])


def lottery(p: Number = Fraction(1, 8), low: Number = 1, high: Number = 100) -> Problem:
    """One step that costs `high` with probability `p`, else `low`."""
    p, low = _chance(p), _cost(low)
    high = _cost(high)
    rows = [("ticket", "draw", "end", p, high), ("ticket", "draw", "end", 1 - p, low)]
    return _discrete("lottery", rows, "ticket", ["end"], [_added([(high, p), (low, 1 - p)])])


def gamblers_ruin(fortune: int = 3, target: int = 8, p: Number = Fraction(1, 2)) -> Problem:
    """Win or lose 1 with probability `p` and `1 - p`, at cost 1 a play, until the fortune is 0 or
    `target`.

    The paths that stay inside for n plays are counted by reflection at both ends.
    """
    fortune, target = check_integer(fortune, "fortune", 1), check_integer(target, "target", 2)
    win = _chance(p)
    if fortune >= target or win == 1:
        raise OptionError(
            f"gamblers-ruin needs fortune < target and p < 1, not fortune {fortune}, target"
            f" {target} and p {p}"
        )
    lose = 1 - win
    rows = [
        row
        for x in range(1, target)
        for row in ((x, "play", x + 1, win, 1), (x, "play", x - 1, lose, 1))
    ]

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

    return _counted("gamblers-ruin", rows, fortune, [0, target], Fraction(1), going_on)


def coupon_collector(n: int = 8) -> Problem:
    """Draw one of `n` kinds at cost 1 until all have been seen. States count the kinds seen; the
    tail is by inclusion and exclusion.
    """
    n = check_integer(n, "n", 1)
    rows = [
        row
        for k in range(n)
        for row in ((k, "draw", k + 1, Fraction(n - k, n), 1), (k, "draw", k, Fraction(k, n), 1))
    ]

    def going_on(t: int) -> Continuations:
        for j in range(1, n + 1):
            yield (-1) ** (j + 1) * math.comb(n, j) * Fraction(n - j, n) ** t, Fraction(n, j)

    return _counted("coupon-collector", rows, 0, [n], Fraction(1), going_on)


def counter_example() -> Problem:
    """Three ways to go on from s1, of which the dual decomposition takes the wrong one at alpha =
    0.5.

    The planners predict 600 and deliver 700; the optimum is 650, by a3. Costs are 700 minus the
    reward of the published example, on the last step. The optimum needs no randomising (CVaR is
    concave in mixtures), so it is the best of three distributions.
    """
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    actions = {
        "a1": [(1300, quarter), (100, 3 * quarter)],
        "a2": [(700, Fraction(1))],
        "a3": [(800, half), (300, half)],
    }
    rows: list[ProblemRow] = [("s0", "go", "s1", half, 0), ("s0", "go", "s2", half, 0)]
    rows += [
        ("s1", action, "end", chance, cost)
        for action, ends in actions.items()
        for cost, chance in ends
    ]
    rows += [("s2", "go", "end", 1, 500)]
    ends_of = [
        _added([(500, half), *((cost, half * chance) for cost, chance in ends)])
        for ends in actions.values()
    ]
    return _discrete("counter-example", rows, "s0", ["end"], ends_of)


def haddad_monmege(n: int = 20) -> Problem:
    """States 0 .. 2n, goals at both ends, start in the middle; the expected number of steps is 3 *
    2^(n-1) - 2.

    The middle moves to either side; any other state moves one step outwards or falls back to the
    middle, with 1/2 each. Naive value iteration stops far too early, and a plain sparse solve loses
    all digits.
    """
    n, half = check_integer(n, "n", 1), Fraction(1, 2)
    rows: list[ProblemRow] = [(n, "step", n - 1, half, 1), (n, "step", n + 1, half, 1)]
    for outwards in range(1, n):
        for side in (-1, 1):
            state = n + side * outwards
            rows += [(state, "step", state + side, half, 1), (state, "step", n, half, 1)]
    return Problem(
        "haddad-monmege", *_single(rows, n, [0, 2 * n]), mean=float(3 * 2 ** (n - 1) - 2)
    )


BUILDERS: tuple[Callable[..., Problem], ...] = (
    *(geometric, negative_binomial, deterministic_chain, lottery),
    *(gamblers_ruin, coupon_collector, counter_example, haddad_monmege),
)
#: Each name with its builder.
PROBLEMS = MappingProxyType({each.__name__.replace("_", "-"): each for each in BUILDERS})


def _problem(text: str) -> SSP | None:
    near = "" if text in PROBLEMS else did_you_mean(text, PROBLEMS)
    if near:
        raise OptionError(f"textbook:{text}: no such problem{near}")
    return PROBLEMS[text]().ssp if text in PROBLEMS else None


#: `textbook:NAME`.
DOMAIN = Domain(
    "textbook",
    _problem,
    f"no such problem; there are {', '.join(PROBLEMS)}",
    about=lambda text: _about(PROBLEMS[text]),
    problems=tuple(PROBLEMS),
)

# ---------------------------------------------------------------------- answers


def _about(builder: Callable[..., Problem]) -> str:
    """The first sentence of the builder's docstring, and the values of its parameters."""
    first = (builder.__doc__ or "").partition("\n\n")[0]
    summary = " ".join(first.replace("`", "").split()).rstrip(".")
    values = ", ".join(
        f"{name} = {own.default}" for name, own in inspect.signature(builder).parameters.items()
    )
    return f"{summary} ({values})" if values else summary


def _counted(
    name: str,
    rows: Sequence[ProblemRow],
    start: Name,
    goals: list[Name],
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

    ssp, policy = _single(rows, start, goals)
    return Problem(
        name,
        ssp,
        policy,
        float(cost * excess(0)),
        lambda alpha: float(cost * steps(_mass(alpha))),
        cvar,
    )


def _discrete(
    name: str,
    rows: Sequence[ProblemRow],
    start: Name,
    goals: list[Name],
    policies: list[dict[Fraction, Fraction]],
) -> Problem:
    """A problem with few total costs: `{cost: probability}` for each policy there is."""

    def at(ends: dict[Fraction, Fraction], mass: Fraction) -> tuple[Fraction, Fraction]:
        x = min(x for x in ends if sum(p for z, p in ends.items() if z > x) <= mass)
        return x, x + sum((p * (z - x) for z, p in ends.items() if z > x), Fraction(0)) / mass

    def cvar(alpha: Number) -> float:
        return float(min(at(ends, _mass(alpha))[1] for ends in policies))

    if len(policies) > 1:
        return Problem(name, SSP.from_outcomes(rows, start, goals), None, cvar(1), None, cvar)
    return Problem(
        name,
        *_single(rows, start, goals),
        cvar(1),
        lambda alpha: float(at(policies[0], _mass(alpha))[0]),
        cvar,
    )


def _single(rows: Sequence[ProblemRow], start: Name, goals: list[Name]) -> tuple[SSP, MarkovPolicy]:
    return SSP.from_outcomes(rows, start, goals), MarkovPolicy(
        {state: action for state, action, *_ in rows}
    )


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


# ---------------------------------------------------------------------- parameters


def _mass(alpha: Number) -> Fraction:
    if not 0 < alpha <= 1:
        raise OptionError(f"alpha must lie in (0, 1], not {alpha!r}")
    return Fraction(alpha)


def _chance(p: Number) -> Fraction:
    if not 0 < p <= 1:
        raise OptionError(f"p must lie in (0, 1], not {p!r}")
    return as_fraction(p)


def _cost(cost: Number, *, positive: bool = False) -> Fraction:
    if not 0 <= cost < math.inf or (positive and cost == 0):
        raise OptionError(
            f"the cost must be {'positive' if positive else '0 or more'} and finite, not {cost!r}"
        )
    return as_fraction(cost)
