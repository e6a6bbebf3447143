"""Models for ranks, and all that is found about one, as text that keeps every bit."""

import hashlib

import numpy as np

import tailpath as tp
from tailpath.distributed.ranks import Alone

#: Arriving is free, from d surely.
FREE = [
    ("a", "x", "b", 0.5, 2), ("a", "x", "g", 0.5, 0), ("b", "y", "c", 1, 1),
    ("c", "z", "d", 0.25, 3), ("c", "z", "a", 0.75, 2), ("d", "q", "g", 0.5, 0),
    ("d", "q", "b", 0.5, 3), ("d", "r", "g", 1, 0),
]  # fmt: skip
#: No step is cheaper than 3.
DEAR = [
    ("s", "a", "t", 0.5, 3),
    ("s", "a", "s", 0.5, 7),
    ("t", "b", "g", 0.5, 4),
    ("t", "b", "s", 0.5, 5),
]


def scattered(n: int, parts: int) -> tp.SSP:
    """A walk whose numbers jump, so that in so many parts every neighbour is on another rank."""
    number = np.argsort(np.argsort(np.arange(n) % parts, kind="stable")).tolist()
    rows = [
        (k, "creep", k, 0, 0) for k in range(n) if k != number[-1]
    ]  # left out, but for the order of numbers
    for back, here, on in zip([None, *number], number, number[1:]):
        rows.append((here, "creep", on, 1, 3))
        if back is not None:
            rows += [(here, "go", on, 0.7, 1), (here, "go", back, 0.3, 2)]
    return tp.SSP.from_outcomes(rows, number[0], [number[-1]])


def sparse(n: int) -> tp.SSP:
    """Outcomes lead anywhere, and one in six to the goal."""
    draw, rows = np.random.default_rng(5), []
    for state in range(n):
        for action in range(3):
            to = draw.choice(n, 3, replace=False)
            to[0] = n if draw.random() < 0.5 else to[0]
            for target, chance in zip(to.tolist(), (0.25, 0.5, 0.25)):
                rows.append((state, action, target, chance, int(draw.integers(1, 10))))
    return tp.SSP.from_outcomes(rows, 0, [n])


def layers(n: int, wide: int) -> tp.SSP:
    """Strong components in a row, some of one state, with costs in tenths."""
    draw, rows = np.random.default_rng(7), []
    for state in range(n):
        layer = state // wide
        for action in range(2):
            here = layer * wide + draw.integers(wide) if layer % 3 else state + 1
            to = min(int(draw.integers(1, 2 * wide)) + (layer + 1) * wide, n)
            rows.append((state, action, min(int(here), n), 0.75, draw.integers(1, 8) / 10))
            rows.append((state, action, to, 0.25, draw.integers(1, 8) / 10))
    return tp.SSP.from_outcomes(rows, 0, [n])


def apart() -> tp.SSP:
    """Two walks that know nothing of each other: in two parts nothing crosses."""
    rows: list[tuple[object, ...]] = []
    for first in (0, 6):
        for k in range(first, first + 5):
            rows += [(k, "go", k + 1, 0.7, 2), (k, "go", max(k - 1, first), 0.3, 1)]
            rows.append((k, "creep", k + 1, 1, 4))
    return tp.SSP.from_outcomes(rows, 0, [5, 11])


def models() -> dict[str, tp.SSP]:
    """Models that can be had in parts."""
    return {
        "river": tp.domains.river(rows=6, columns=4),
        "grid": tp.domains.gridworld("5x5"),
        "sparse": sparse(90),
        "free": tp.SSP.from_outcomes(FREE, "a", ["g"]),
        "dear": tp.SSP.from_outcomes(DEAR, "s", ["g"]),
        "scattered 2": scattered(12, 2),
        "scattered 4": scattered(12, 4),
        "layers": layers(24, 4),
        "apart": apart(),
    }


def bits(*found: object) -> str:
    """A text that differs where any bit of some arrays or numbers does."""
    digest = hashlib.sha256()
    for each in found:
        array = np.ascontiguousarray(each)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def table_bits(solution, policy) -> str:
    """The bits of a least CVaR, its table and its policy."""
    table = solution.budgets, solution.excess, *solution.sides.found
    steps = policy.first, policy.from_budget, policy.choice, policy.risk_neutral
    return bits(*table, *steps, solution.bounds(solution.alpha))


class Two(Alone):
    """Rank 0 of two, which hears that rank 1 has another part."""

    size = 2

    def __init__(self, other):
        self.other = other

    def allgather(self, mine):
        other = self.other
        about = other.bounds.tolist(), other.start, other.actions, other.unit
        return [mine, (other.index, *about, other.probability_error, other.model)]

    def Abort(self, code):
        raise SystemExit(code)
