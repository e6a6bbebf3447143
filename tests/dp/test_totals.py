"""Distributions by their head and what lies beyond it, against their atoms in fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from tailpath.dp import totals
from tailpath.dp.totals import Totals, mixed

Atoms = list[tuple[Fraction, Fraction]]
ZERO = Fraction(0)


def drawn(draw: random.Random, most: int = 9) -> Atoms:
    costs = sorted(draw.sample(range(1, 40), draw.randint(1, most)))
    cuts = sorted(draw.sample(range(1, 128), len(costs) - 1))
    return [
        (Fraction(c, 2), Fraction(b - a, 128)) for c, a, b in zip(costs, [0, *cuts], [*cuts, 128])
    ]


def known_of(atoms: Atoms, last: Fraction, dead: Fraction = ZERO) -> Totals:
    """The head up to a cost; all of what is `dead` is beyond it."""
    head = [(c, p) for c, p in atoms if c <= last]
    tail = [(c, p) for c, p in atoms if c > last]
    return Totals(
        np.array([float(c) for c, _ in head]),
        np.array([float(p) for _, p in head]),
        float(last),
        float(sum((p for _, p in tail), ZERO)),
        float(dead),
        float(sum((p * (c - last) for c, p in tail), ZERO)),
        float(sum((p * c for c, p in atoms), ZERO)),
        float(dead),
    )


def tail(atoms: Atoms, z: Fraction) -> Fraction:
    return sum((p for c, p in atoms if c > z), ZERO)


def excess(atoms: Atoms, z: Fraction) -> Fraction:
    return sum((p * (c - z) for c, p in atoms if c > z), ZERO)


@pytest.fixture(params=[1, 3, 1 << 16])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "BLOCK", request.param)


@pytest.mark.usefixtures("block")
def test_what_the_head_says() -> None:
    draw = random.Random(1)
    for _ in range(60):
        atoms = drawn(draw)
        last = draw.choice([c for c, _ in atoms]) + draw.choice([0, 0, Fraction(1, 4)])
        known = known_of(atoms, last)
        head = [c for c, _ in atoms if c <= last]
        assert known.tails.tolist() == [float(tail(atoms, c)) for c in head]
        assert known.tail_mass == float(tail(atoms, last))
        assert known.sum_of_means == float(sum(p * c for c, p in atoms))
        for alpha in (0.0, 0.125, 0.5, 1.0, float(tail(atoms, head[0]))):
            inside = [k for k, c in enumerate(head) if tail(atoms, c) <= Fraction(alpha)]
            position = inside[0] if inside else -1
            beyond = excess(atoms, head[position]) if inside else excess(atoms, last)
            assert known.at_quantile(alpha) == (position, float(beyond))
        for price in (0.5, 1.0, 8.0):
            true = min(c + Fraction(price) * excess(atoms, c) for c in head)
            assert known.least(price) == float(true)


@pytest.mark.usefixtures("block")
def test_what_never_arrives_is_in_every_tail() -> None:
    atoms, dead = [(Fraction(1), Fraction(1, 2)), (Fraction(2), Fraction(1, 4))], Fraction(1, 4)
    known = known_of(atoms, Fraction(2), dead)
    assert known.tails.tolist() == [0.5, 0.25] and known.tail_mass == 0.25
    assert known.at_quantile(0.3) == (1, 0.0) and known.at_quantile(0.2) == (-1, 0.0)


def test_no_head_has_no_least() -> None:
    nothing = Totals(np.empty(0), np.empty(0), 3.0, 0.5, 0.25, 1.5, 7.0, 0.25)
    assert nothing.least(2.0) == np.inf and nothing.at_quantile(0.9) == (-1, 1.5)
    assert nothing.tails.tolist() == [] and nothing.sum_of_means == 3 * 0.75 + 1.5


def test_a_head_that_is_cut() -> None:
    draw = random.Random(2)
    for _ in range(60):
        atoms = drawn(draw)
        last = draw.choice([c for c, _ in atoms])
        known, here = known_of(atoms, last), Fraction(draw.randint(1, 80), 4)
        cut = known.cut(float(here))
        assert cut.last == float(here)
        assert cut.costs.tolist() == [float(c) for c, _ in atoms if c <= min(here, last)]
        assert (cut.dead_mass, cut.mean, cut.missed) == (0, known.mean, 0)
        if here <= last:
            assert cut.open_mass == float(tail(atoms, here))
            assert cut.excess == float(excess(atoms, here))
        else:
            assert (cut.open_mass, cut.excess) == (known.open_mass, known.excess)
            less = known.cut(float(here), -1)
            assert (less.open_mass, less.excess) == (0, 0)
        below = known.cut(float(min(here, last)), -1)
        same = known.cut(float(min(here, last)), 1)
        assert (below.open_mass, below.excess) == (same.open_mass, same.excess)


def test_onto_other_costs() -> None:
    """A mass at a cost that is not in the new head is left out, or moves to the next one."""
    known = known_of([(Fraction(c), Fraction(1, 4)) for c in (1, 2, 3, 6)], Fraction(3))
    costs = np.array([1.0, 2.5, 3.0])
    less, more = known.onto(costs, 3.0, -1), known.onto(costs, 3.0, 1)
    assert less.masses.tolist() == [0.25, 0, 0.25] and more.masses.tolist() == [0.25, 0.25, 0.25]
    assert less.open_mass == more.open_mass == 0.25 and less.excess == more.excess == 0.75
    # Behind the last of the costs, though not beyond X: open.
    more = known.onto(np.array([1.0, 2.0]), 3.0, 1)
    assert more.masses.tolist() == [0.25, 0.25] and more.open_mass == 0.5
    assert known.onto(np.array([1.0, 2.0]), 3.0, -1).open_mass == 0.25
    same = known.onto(known.costs.copy(), 3.0, -1)
    assert same.masses is known.masses
    other = known.onto(known.costs, 2.0, -1)
    assert other.last == 2 and other.open_mass == 0.5


def test_mixtures_are_mixtures_of_atoms() -> None:
    draw = random.Random(3)
    for _ in range(40):
        parts = [drawn(draw) for _ in range(draw.randint(1, 3))]
        cuts = sorted(draw.sample(range(1, 16), len(parts) - 1))
        weights = [Fraction(b - a, 16) for a, b in zip([0, *cuts], [*cuts, 16])]
        last = min(atoms[-1][0] for atoms in parts)
        both: dict[Fraction, Fraction] = {}
        for weight, atoms in zip(weights, parts):
            for c, p in atoms:
                both[c] = both.get(c, ZERO) + weight * p
        found = mixed(
            [float(w) for w in weights],
            [known_of(atoms, atoms[-1][0]) for atoms in parts],
            float(last),
        )
        every = sorted(both.items())
        assert found.costs.tolist() == [float(c) for c, _ in every if c <= last]
        assert found.masses.tolist() == [float(p) for c, p in every if c <= last]
        assert found.open_mass == float(tail(every, last))
        assert found.excess == float(excess(every, last))
        assert found.mean == float(sum(c * p for c, p in every))
        assert (found.dead_mass, found.missed) == (0, 0)
