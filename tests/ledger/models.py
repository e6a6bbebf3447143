"""The models of the ledger: bundled and textbook problems, 44 drawn by seeds, grids and shapes.

A drawn model depends on its name alone. The kinds are unlike each other on purpose: most of them
have a path of their own through the program.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction as F
from functools import partial
from typing import Any, NamedTuple

from benchmarks import shapes
from benchmarks.measure import large_grid
from examples.commute import ROADS

import tailpath as tp
from tests import textbook

S, T = "small", "tall"


class Model(NamedTuple):
    """How a model is built, and how much is asked of it: all if `small`, then less.

    `tall` are total costs of 10^5 and more, where all that goes by budgets would take hours.
    """

    build: Callable[[], tp.SSP]
    size: str = "small"


def _model(rows: list[Any], goals: tuple[Any, ...] = ("goal",)) -> tp.SSP:
    return tp.SSP.from_outcomes(rows, rows[0][0], goals)


def _chances(draw: random.Random, n: int) -> list[F]:
    """`n` probabilities in hundredths."""
    cuts = sorted(draw.sample(range(1, 100), n - 1))
    return [F(high - low, 100) for low, high in zip([0, *cuts], [*cuts, 100], strict=True)]


# ---------------------------------------------------------------------- drawn by a seed


def lotteries(draw: random.Random) -> tp.SSP:
    """One to three decisions, one after the other, each between a sure cost and lotteries."""
    stages = draw.randint(1, 3)
    rows: list[Any] = []
    for stage in range(stages):
        then = stage + 1 if stage + 1 < stages else "goal"
        rows.append((stage, "safe", then, 1, draw.randint(15, 25)))
        for risky in range(draw.randint(1, 2)):
            costs = draw.sample(range(10, 40), 3)
            for p, cost in zip(_chances(draw, 3), costs, strict=True):
                rows.append((stage, f"risky {risky}", then, p, cost))
    return _model(rows)


def walk(draw: random.Random) -> tp.SSP:
    """A long line with slips backwards, fewer of them for a dearer step."""
    n = draw.randint(30, 80)
    care = draw.randint(2, 3)
    slip = F(draw.randint(20, 40), 100)
    rows: list[Any] = []
    for x in range(n):
        for action, cost, back in (("run", 1, slip), ("walk", care, slip / 5)):
            rows += [
                (x, action, x + 1, 1 - back, cost),
                (x, action, max(x - draw.randint(1, 3), 0), back, cost),
            ]
    return _model(rows, (n,))


def free(draw: random.Random) -> tp.SSP:
    """Many moves cost nothing, cycles of them included, all of which can be left."""
    n = draw.randint(5, 10)
    rows: list[Any] = []
    for x in range(n):
        rows.append((x, "circle", draw.randrange(n), 1, 0))
        for action in ("a", "b"):
            targets = [draw.randrange(n), draw.randrange(x + 1, n + 1), n]
            for to, p in zip(targets, _chances(draw, 3), strict=True):
                rows.append((x, action, to, p, draw.choice([0, 0, 1, 2, 5])))
    return _model(rows, (n,))


def unitless(draw: random.Random) -> tp.SSP:
    """Costs that are multiples of nothing; without cycles, since no two ways cost the same."""
    n = draw.randint(5, 9)
    rows: list[Any] = []
    for x in range(n):
        for action in ("a", "b"):
            for p in _chances(draw, 3):
                rows.append((x, action, draw.randrange(x + 1, n + 1), p, draw.uniform(0.1, 3)))
    return _model(rows, (n,))


def missed(draw: random.Random) -> tp.SSP:
    """A pit that dear steps avoid."""
    return _pit(draw, lambda fall: F(0))


def lost(draw: random.Random) -> tp.SSP:
    """A pit that can only be made less likely: no policy surely arrives."""
    return _pit(draw, lambda fall: fall / draw.randint(2, 9))


def _pit(draw: random.Random, less: Callable[[F], F]) -> tp.SSP:
    n = draw.randint(4, 8)
    rows: list[Any] = []
    for x in range(n):
        jump, cost = F(draw.randint(1, 20), 100), draw.randint(2, 6)
        step = less(jump)
        rows += [(x, "jump", "pit", jump, 1), (x, "jump", min(x + 2, n), 1 - jump, 1)]
        rows += [(x, "step", "pit", step, 2)] if step else []
        rows.append((x, "step", x + 1, 1 - step, cost))
    return _model([*rows, ("pit", "wait", "pit", 1, 1)], (n,))


def extreme(draw: random.Random) -> tp.SSP:
    """Probabilities down to 1e-12 with costs up to 1e6: what is rare is what counts."""
    n = draw.randint(3, 6)
    rows: list[Any] = []
    for x in range(n):
        for action in ("a", "b"):
            rare = F(draw.randint(1, 9), 10 ** draw.choice([3, 6, 9, 12]))
            again = F(draw.randint(0, 90), 100)
            left = 1 - rare - again * (1 - rare)
            rows += [
                (x, action, n, rare, 10 ** draw.randint(2, 6)),
                (x, action, x + 1, left, draw.randint(1, 9)),
            ]
            rows += [(x, action, x, again * (1 - rare), 1)] if again else []
    return _model(rows, (n,))


def decisions(draw: random.Random) -> tp.SSP:
    """Three actions in every state of a graph with cycles."""
    return _graph(draw, draw.randint(8, 20), lambda: draw.randint(1, 9), F(1, 2), actions=3)


def gaps(draw: random.Random) -> tp.SSP:
    """Costs 1 and 1000003: few budgets, far apart."""
    return _graph(draw, draw.randint(3, 5), lambda: draw.choice([1, 1, 1, 1000003]), F(9, 10))


def stubborn(draw: random.Random) -> tp.SSP:
    """Moves that mostly fail: long tails."""
    n = draw.randint(2, 5)
    rows: list[Any] = []
    for x in range(n):
        for action, least in (("a", 80), ("b", 40)):
            stay = F(draw.randint(least, least + 19), 100)
            cost = draw.randint(1, 2) if action == "a" else draw.randint(3, 7)
            rows += [(x, action, x, stay, cost), (x, action, x + 1, 1 - stay, cost)]
    return _model(rows, (n,))


def fine(draw: random.Random) -> tp.SSP:
    """Costs with a unit such as 1/12."""
    unit = F(draw.randint(1, 3), draw.randint(4, 40))
    return _graph(draw, draw.randint(4, 8), lambda: unit * draw.randint(0, 30), F(2, 5))


def _graph(draw: random.Random, n: int, cost: Callable[[], Any], onwards: F, actions=2) -> tp.SSP:
    """`n` states; every action goes on towards the goal, and elsewhere with what is left."""
    rows: list[Any] = []
    for x in range(n):
        for action in "abc"[:actions]:
            rows.append((x, action, draw.randrange(x + 1, n + 1), onwards, cost()))
            for p in _chances(draw, 2):
                rows.append((x, action, draw.randrange(n), p * (1 - onwards), cost()))
    return _model(rows, (n,))


KINDS = (lotteries, walk, free, unitless, missed, lost)
KINDS += (extreme, decisions, gaps, stubborn, fine)


# ---------------------------------------------------------------------- all of them


def _drawn() -> Iterator[tuple[str, Model]]:
    for kind, seed in itertools.product(KINDS, range(4)):
        name = f"{kind.__name__} {seed}"
        yield name, Model(lambda kind=kind, name=name: kind(random.Random(name)))


def _named() -> Iterator[tuple[str, Model]]:
    """Bundled and textbook problems."""
    sizes = {"gridworld:14x16": "medium", "river:30x10": "medium", "textbook:haddad-monmege": T}
    names = ["gridworld:5x5", "gridworld:8x9", "gridworld:14x16"]
    names += ["river:10x3", "river:16x6", "river:30x10"]
    for name in [*names, *(f"textbook:{problem}" for problem in textbook.PROBLEMS)]:
        yield name, Model(partial(tp.read, name), sizes.get(name, "small"))


def _shapes(n: int, word: str, **sizes: str) -> Iterator[tuple[str, Model]]:
    """The shapes of `benchmarks/shapes.py`, with layers and components to match."""
    part = min(n // 8, 1000)
    yield f"{word} way", Model(partial(shapes.way, n), sizes["way"])
    yield f"{word} layers", Model(partial(shapes.layers, n, part), sizes["layers"])
    yield f"{word} components of 10", Model(partial(shapes.components, n, 10), sizes["parts"])
    yield f"{word} components", Model(partial(shapes.components, n, part), sizes["parts"])
    yield f"{word} random targets", Model(partial(shapes.random_targets, n), sizes["targets"])
    yield f"{word} slips", Model(partial(shapes.walk, n, 0.4), sizes["slips"])


#: Two models on which frontiers and limits were wrong, with a third on which a corner was.
_A = [("s", "safe", "goal", 1, 22), ("s", "risky", "goal", 0.6, 17)]
_A += [("s", "risky", "goal", 0.2, 24), ("s", "risky", "goal", 0.2, 33)]
_B = [("s", "safe", "goal", 1, 19), ("s", "risky", "goal", 0.1, 26)]
_B += [("s", "risky", "goal", 0.1, 38), ("s", "risky", "goal", 0.8, 12)]
_C = [("s", "go", "m", 0.64, 5), ("s", "go", "t", 0.36, 0.125), ("t", "go", "m", 1, 0.125)]
_C += [("m", "slow", "goal", 1, 5), ("m", "fast", "goal", 0.994, 1), ("m", "fast", "m", 0.006, 1)]

MODELS: dict[str, Model] = {
    **dict(_named()),
    "geometric, rare": Model(lambda: textbook.geometric(F(1, 1000)).ssp),
    "negative binomial, 20": Model(lambda: textbook.negative_binomial(20, F(1, 10)).ssp),
    "chain of 1000": Model(lambda: textbook.deterministic_chain(1000, F(1, 3)).ssp),
    "lottery, rare": Model(lambda: textbook.lottery(F(1, 10**9), 1, 10**6).ssp),
    "ruin, 60": Model(lambda: textbook.gamblers_ruin(30, 60, F(2, 5)).ssp),
    "coupons, 40": Model(lambda: textbook.coupon_collector(40).ssp),
    "haddad-monmege, 5": Model(lambda: textbook.haddad_monmege(5).ssp),
    "commute": Model(lambda: _model(ROADS, ("work",))),
    "lottery A": Model(lambda: _model(_A)),
    "lottery B": Model(lambda: _model(_B)),
    "lottery C": Model(lambda: _model(_C)),
    **dict(_drawn()),
    **dict(_shapes(200, "small", way=S, layers=S, parts=S, targets="large", slips=S)),
    "grid 100": Model(partial(large_grid, 100), "large"),
    "grid 300": Model(partial(large_grid, 300), "large"),
    **dict(_shapes(10**5, "large", way="wide", layers="wide", parts=T, targets=T, slips=T)),
}
