"""The least that lines below U allow, against fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tailpath.certify import real_budgets
from tailpath.certify.real_budgets import _between, _Stretch


def drawn(draw: random.Random) -> tuple[_Stretch, float]:
    """Some lines that fall, and an alpha."""
    x = draw.random()
    y, size = x + 0.01 + draw.random() * (1 - x), draw.choice([0.1, 1, 3])
    lines = []
    for _ in range(draw.randint(2, 5)):
        left = draw.random() * size
        lines.append((left, left - draw.random() * (y - x)))
    stretch = _Stretch(draw.randrange(5), x, y, tuple(lines))
    return stretch, draw.choice([0.5, 0.1, 0.01, 1e-4])


def exactly(stretch: _Stretch, alpha: float) -> Fraction:
    """The least w + U / alpha that the lines allow."""
    x, width = Fraction(stretch.x), Fraction(stretch.y) - Fraction(stretch.x)
    ends = [(Fraction(left), Fraction(right)) for left, right in stretch.lines]
    steep = [(left, (right - left) / width) for left, right in ends]
    met = {(c - a) / (b - d) for a, b in steep for c, d in steep if b != d}
    return min(
        stretch.k + x + t + max(a + b * t for a, b in steep) / Fraction(alpha)
        for t in (Fraction(0), width, *met)
        if 0 <= t <= width
    )


@pytest.mark.parametrize("charged", [True, False])
def test_what_lines_allow_is_rounded_down(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines meet far below their ends, whose rounding counts, divided by alpha."""
    if not charged:
        monkeypatch.setattr(real_budgets, "AFTERWARDS", 0.0)
    draw = random.Random(5)
    cases = [drawn(draw) for _ in range(500)]
    right = [Fraction(some.least(alpha)[0]) <= exactly(some, alpha) for some, alpha in cases]
    assert all(right) == charged


@pytest.mark.parametrize("charged", [True, False])
def test_a_line_that_is_cut_is_no_higher(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not charged:
        monkeypatch.setattr(real_budgets, "AFTERWARDS", 0.0)
    draw, right = random.Random(6), []
    for _ in range(100):
        begin, end, share = (draw.random() for _ in range(3))
        there = Fraction(begin) + Fraction(share) * (Fraction(end) - Fraction(begin))
        right.append(Fraction(_between((begin, end), share)) <= there)
    assert all(right) == charged


def test_steep_lines_cross_inside_a_narrow_stretch() -> None:
    """4 - 16 t and 16 t on a quarter: the least of 0.5 + t + their larger one is at t = 1/8."""
    value, at = _Stretch(0, 0.5, 0.75, ((4.0, 0.0), (0.0, 4.0))).least(1.0)
    assert (value, at) == (pytest.approx(2.625, rel=1e-12), 0.625)
