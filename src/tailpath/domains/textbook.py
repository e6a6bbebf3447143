"""Small problems whose answers can be found with paper and pencil: for teaching and for tests.

A probability given as a float stands for the shortest decimal that prints it (0.1 is 1/10).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from tailpath.domains.register import Domain
from tailpath.errors import OptionError
from tailpath.model.cost_units import as_fraction
from tailpath.model.ssp import SSP, Name
from tailpath.options import check_integer
from tailpath.texts import did_you_mean

Number = Any  # int, float or Fraction
ProblemRow = tuple[Name, Name, Name, Number, Number]


def geometric(p: Number = Fraction(1, 4), cost: Number = 1) -> SSP:
    """Pay `cost` for each trial until the first success, which has probability `p`."""
    p, cost = _chance(p), _cost(cost, positive=True)
    rows = [("trying", "try", "done", p, cost), ("trying", "try", "trying", 1 - p, cost)]
    return SSP.from_outcomes(rows, "trying", ["done"])


def negative_binomial(r: int = 3, p: Number = Fraction(1, 4), cost: Number = 1) -> SSP:
    """Pay `cost` for each trial until the `r`-th success. States count the successes."""
    r, p = check_integer(r, "r", 1), _chance(p)
    cost = _cost(cost, positive=True)
    rows = [
        row for j in range(r) for row in ((j, "try", j + 1, p, cost), (j, "try", j, 1 - p, cost))
    ]
    return SSP.from_outcomes(rows, 0, [r])


def deterministic_chain(n: int = 5, cost: Number = 1) -> SSP:
    """`n` steps of the same cost, one after the other."""
    n, cost = check_integer(n, "n", 1), _cost(cost)
    rows = [(state, "step", state + 1, 1, cost) for state in range(n)]
    return SSP.from_outcomes(rows, 0, [n])


def lottery(p: Number = Fraction(1, 8), low: Number = 1, high: Number = 100) -> SSP:
    """One step that costs `high` with probability `p`, else `low`."""
    p, low = _chance(p), _cost(low)
    high = _cost(high)
    rows = [("ticket", "draw", "end", p, high), ("ticket", "draw", "end", 1 - p, low)]
    return SSP.from_outcomes(rows, "ticket", ["end"])


def gamblers_ruin(fortune: int = 3, target: int = 8, p: Number = Fraction(1, 2)) -> SSP:
    """Win or lose 1 with probability `p` and `1 - p`, at cost 1 a play, until the fortune is 0 or
    `target`.
    """
    fortune, target = check_integer(fortune, "fortune", 1), check_integer(target, "target", 2)
    win = _chance(p)
    if fortune >= target or win == 1:
        raise OptionError(
            f"gamblers-ruin needs fortune < target and p < 1, not fortune {fortune}, target"
            f" {target} and p {p}"
        )
    rows = [
        row
        for x in range(1, target)
        for row in ((x, "play", x + 1, win, 1), (x, "play", x - 1, 1 - win, 1))
    ]
    return SSP.from_outcomes(rows, fortune, [0, target])


def coupon_collector(n: int = 8) -> SSP:
    """Draw one of `n` kinds at cost 1 until all have been seen. States count the kinds seen."""
    n = check_integer(n, "n", 1)
    rows = [
        row
        for k in range(n)
        for row in ((k, "draw", k + 1, Fraction(n - k, n), 1), (k, "draw", k, Fraction(k, n), 1))
    ]
    return SSP.from_outcomes(rows, 0, [n])


def counter_example() -> SSP:
    """Three ways to go on from s1, of which the dual decomposition takes the wrong one at alpha =
    0.5.

    The planners predict 600 and deliver 700; the optimum is 650, by a3. Costs are 700 minus the
    reward of the published example, on the last step.
    """
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    rows: list[ProblemRow] = [
        ("s0", "go", "s1", half, 0),
        ("s0", "go", "s2", half, 0),
        ("s1", "a1", "end", quarter, 1300),
        ("s1", "a1", "end", 3 * quarter, 100),
        ("s1", "a2", "end", 1, 700),
        ("s1", "a3", "end", half, 800),
        ("s1", "a3", "end", half, 300),
        ("s2", "go", "end", 1, 500),
    ]
    return SSP.from_outcomes(rows, "s0", ["end"])


def haddad_monmege(n: int = 20) -> SSP:
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
    return SSP.from_outcomes(rows, n, [0, 2 * n])


BUILDERS: tuple[Callable[..., SSP], ...] = (
    *(geometric, negative_binomial, deterministic_chain, lottery),
    *(gamblers_ruin, coupon_collector, counter_example, haddad_monmege),
)
#: Each name with its builder.
PROBLEMS = MappingProxyType({each.__name__.replace("_", "-"): each for each in BUILDERS})


def _problem(text: str) -> SSP | None:
    near = "" if text in PROBLEMS else did_you_mean(text, PROBLEMS)
    if near:
        raise OptionError(f"textbook:{text}: no such problem{near}")
    return PROBLEMS[text]() if text in PROBLEMS else None


#: `textbook:NAME`.
DOMAIN = Domain(
    "textbook",
    _problem,
    f"no such problem; there are {', '.join(PROBLEMS)}",
    about=lambda text: _about(PROBLEMS[text]),
)


def _about(builder: Callable[..., SSP]) -> str:
    """The first sentence of the builder's docstring, and the values of its parameters."""
    first = (builder.__doc__ or "").partition("\n\n")[0]
    summary = " ".join(first.replace("`", "").split()).rstrip(".")
    values = ", ".join(
        f"{name} = {own.default}" for name, own in inspect.signature(builder).parameters.items()
    )
    return f"{summary} ({values})" if values else summary


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
