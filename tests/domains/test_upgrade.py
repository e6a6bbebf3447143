"""Upgrading: the published chances, and expected costs in closed form."""

from fractions import Fraction as F

import pytest

import tailpath as tp
from tailpath.domains import upgrade
from tailpath.errors import OptionError
from tests.reference import expected_optimum, from_ssp

#: Success, stay, fall, destroyed, in tenths of a percent, as published for each number of stars.
PUBLISHED = """
12 400 600 0 0
13 350 650 0 0
14 300 700 0 0
15 300 679 0 21
16 300 0 679 21
17 300 0 679 21
18 300 0 672 28
19 300 0 672 28
20 300 630 0 70
21 300 0 630 70
22 30 0 776 194
23 20 0 686 294
24 10 0 594 396
"""


def test_the_chances_are_the_published_ones():
    ssp = upgrade(25)
    for line in PUBLISHED.split("\n")[1:-1]:
        stars, *chances = map(int, line.split())
        choice = ssp.choice_index(ssp.state_index(stars), "try")
        found = {}
        for outcome in range(ssp.choice_outcomes[choice], ssp.choice_outcomes[choice + 1]):
            key = (ssp.states[ssp.outcome_target[outcome]], ssp.outcome_cost[outcome])
            found[key] = ssp.outcome_probability[outcome]
        wanted = zip([(stars + 1, 1), (stars, 1), (stars - 1, 1), (12, 21)], chances, strict=True)
        assert found == {
            key: pytest.approx(chance / 1000, rel=1e-15) for key, chance in wanted if chance
        }


def test_expected_costs_in_closed_form():
    safe = F(10, 4) + F(100, 35) + F(10, 3)
    assert tp.solve_expected(upgrade(15)).cost() == pytest.approx(float(safe), rel=1e-12)
    # E = 1 + .679 E + .021 (spare + safe + E), or 2 + .7 E when protected.
    for spare in (0, 20, F(81, 2), 1000):
        careless, protected = (1 + F(21, 1000) * (spare + safe)) / F(3, 10), F(20, 3)
        found = tp.solve_expected(upgrade(16, spare))
        assert found.cost() == pytest.approx(float(safe + min(careless, protected)), rel=1e-12)
        assert found.policy.action(15) == ("try" if careless < protected else "protect")


def test_the_optimum_in_fractions():
    ssp = upgrade(19)
    value = expected_optimum(from_ssp(ssp))
    assert tp.solve_expected(ssp).cost() == pytest.approx(float(value[12]), rel=1e-9)


def test_the_scheme():
    assert tp.read("upgrade:17") == upgrade()
    for text in ("12", "26", "x", "1e1", ""):
        with pytest.raises(
            OptionError, match=r"write the stars to reach, 13 to 25, e\.g\. upgrade:17"
        ):
            tp.read(f"upgrade:{text}")
    with pytest.raises(OptionError, match="the target must be at most 25 stars, not 26"):
        upgrade(26)
    with pytest.raises(OptionError, match="the price of a spare item must be a number, not 'dear'"):
        upgrade(18, "dear")
