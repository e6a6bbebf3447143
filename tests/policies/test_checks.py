"""Tables built by hand: every index, width and length is checked before a kernel may read by it."""

from dataclasses import fields, replace

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import PolicyError
from tests.formats.models import by_choice
from tests.formats.policies import atom_policy, budget_policy

#: State 0 of `by_choice` has the choices 0 and 1, and the steps 2: choice 0, 3: choice 1; the
#: others have one choice and no step.
WRONG_BUDGET = {
    "a negative budget": ({"budget": -1}, "budget is -1, outside"),
    "a budget that would overflow": ({"budget": 2**63}, "budget is"),
    "no whole budget": ({"budget": 1.5}, "budget must be a whole number, not 1.5"),
    "steps that do not begin at 0": (
        {"first": np.array([1, 2, 2, 2, 2])},
        "first must rise from 0 to 2, the number of steps",
    ),
    "steps that do not end with the last": (
        {"first": np.array([0, 1, 1, 1, 1])},
        "first must rise from 0 to 2",
    ),
    "steps beyond the last": ({"first": np.array([0, 3, 3, 3, 3])}, "first must rise from 0 to 2"),
    "steps that go back": ({"first": np.array([0, 2, 1, 2, 2])}, "first must rise from 0 to 2"),
    "steps of too few states": (
        {"first": np.array([0, 2, 2, 2])},
        "first must have the shape 5, not 4",
    ),
    "no steps of any state": (
        {"first": np.array([], dtype=np.int64)},
        "first must have the shape 5, not 0",
    ),
    "ends that are no whole numbers": (
        {"first": np.array([0, 1.5, 2, 2, 2])},
        "first must hold whole numbers, not float64",
    ),
    "too few budgets": ({"from_budget": np.array([2])}, "from_budget must have the shape 2, not 1"),
    "budgets that fall": (
        {"from_budget": np.array([3, 2])},
        "from_budget must rise within each state",
    ),
    "budgets that stay": (
        {"from_budget": np.array([2, 2])},
        "from_budget must rise within each state",
    ),
    "a step at budget 0": (
        {"from_budget": np.array([0, 3])},
        "from_budget must rise within each state, from 1 or more",
    ),
    "a step below 0": (
        {"from_budget": np.array([-1, 3])},
        "from_budget must rise within each state, from 1 or more",
    ),
    "a step that would overflow": (
        {"from_budget": np.array([2, 2**62])},
        "and stay below 4611686018427387904",
    ),
    "broken budgets": (
        {"from_budget": np.array([2.0, 3.0])},
        "from_budget must hold whole numbers, not float64",
    ),
    "a choice its state lacks": (
        {"choice": np.array([0, 2])},
        "choice has a choice that state 0 does not have",
    ),
    "a negative choice": (
        {"choice": np.array([0, -1])},
        "choice has a choice that state 0 does not have",
    ),
    "a choice beyond 32 bits": (
        {"choice": np.array([0, 2**32])},
        "choice must hold whole numbers that fit int32",
    ),
    "a step of a goal": (
        {"first": np.array([0, 1, 1, 1, 2])},
        "choice has a choice that state 3 does not have",
    ),
    "a table of choices": (
        {"choice": np.zeros((2, 5), dtype=np.int8)},
        "choice must have the shape any, not 2 x 5",
    ),
    "choices that are floats": ({"choice": np.zeros(2)}, "choice must hold whole numbers"),
    "a neutral choice of another state": (
        {"risk_neutral": np.array([2, 2, 3, -1])},
        "risk_neutral has a choice that state 0 does not have",
    ),
    "a neutral choice below -1": (
        {"risk_neutral": np.array([-2, 2, 3, -1])},
        "risk_neutral has a choice that state 0 does not have",
    ),
    "too few neutral choices": (
        {"risk_neutral": np.array([1, 2, 3])},
        "risk_neutral must have the shape 4, not 3",
    ),
    "too few levels": (
        {"level": np.zeros(3, dtype=np.int64)},
        "level must have the shape 7, not 3",
    ),
    "a negative level": ({"level": np.array([3, 3, 0, 4, 4, 1, -1])}, "level must not be negative"),
    "a level that would overflow": (
        {"level": np.array([3, 3, 0, 4, 4, 1, 2**62])},
        "level must be below",
    ),
    "no model": ({"ssp": None}, "a table policy needs its model, not a NoneType"),
    "a unit that is none": ({"unit": -1}, "unit must be a positive number"),
}
WRONG_ATOMS = {
    "a start beyond the atoms": ({"start_atom": 2}, r"start_atom is 2, outside 0\.\.1"),
    "a negative start": ({"start_atom": -1}, r"start_atom is -1, outside 0\.\.1"),
    "no whole start": ({"start_atom": True}, "start_atom must be a whole number"),
    "atoms that do not end at 1": ({"atoms": np.array([0.1, 0.5])}, "the last atom must be 1"),
    "no atoms": ({"atoms": np.array([])}, "atoms must be a non-empty list"),
    "too few atoms": ({"atoms": np.array([1.0])}, "choice must have the shape 4 x 1"),
    "a choice of another state": (
        {"choice": np.array([[0, 2], [2, 2], [3, 3], [-1, -1]])},
        "choice has a choice that state 0 does not have",
    ),
    "a choice far outside": (
        {"choice": np.array([[0, 10**6], [2, 2], [3, 3], [-1, -1]])},
        "choice has a choice that state 0",
    ),
    "choices of one axis": (
        {"choice": np.zeros(8, dtype=np.int32)},
        r"must have the shape 4 x 2",
    ),
    "an offset beyond xi": (
        {"xi_offset": np.array([[0, 2], [3, 5], [7, 10], [0, 0]])},
        "xi_offset points outside xi",
    ),
    "a negative offset": (
        {"xi_offset": np.array([[0, 2], [3, 5], [7, -1], [0, 0]])},
        "xi_offset points outside xi",
    ),
    "too few factors": ({"xi": np.ones(5)}, "xi_offset points outside xi"),
    "a negative factor": ({"xi": np.full(11, -1.0)}, "xi must be finite and not negative"),
    "a factor that is not a number": (
        {"xi": np.full(11, np.nan)},
        "xi must be finite and not negative",
    ),
}


@pytest.mark.parametrize("case", WRONG_BUDGET)
def test_a_budget_policy_checks_its_steps(case):
    changes, message = WRONG_BUDGET[case]
    with pytest.raises(PolicyError, match=message) as caught:
        replace(budget_policy(), **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("budget", [-1, 2**62, 1.5, True])
def test_another_budget_is_checked_as_well(budget):
    with pytest.raises(PolicyError, match=r"^budget (must be a whole number|is .*, outside)"):
        budget_policy().with_budget(budget)


@pytest.mark.parametrize(
    ("table", "risk_neutral", "message"),
    [
        (
            [[-1, 0]],
            [1, 2, 3, -1],
            "table needs a row for each of 4 states and a column for each budget from 0 on",
        ),
        ([-1, 0, 0, 1], [1, 2, 3, -1], "table needs a row for each of 4 states"),
        (np.zeros((4, 0), dtype=np.int64), [1, 2, 3, -1], "a column for each budget from 0 on"),
        (np.full((4, 2), -1), [1, 2, 3], "table needs a row for each of 4 states"),
        (
            np.full((4, 2), -1),
            [2, 2, 3, -1],
            "risk_neutral has a choice that state 0 does not have",
        ),
        (
            [[-1, 0], [-1, 0], [-1, 3], [-1, -1]],
            [1, 2, 3, -1],
            "choice has a choice that state 1 does not have",
        ),
        (
            [[-1, 0.5], [-1, 2], [-1, 3], [-1, -1]],
            [1, 2, 3, -1],
            "choice must hold whole numbers, not float64",
        ),
    ],
)
def test_a_table_is_checked_before_it_becomes_steps(table, risk_neutral, message):
    with pytest.raises(PolicyError, match=message):
        tp.BudgetPolicy.from_table(by_choice(), table, risk_neutral)


@pytest.mark.parametrize("case", WRONG_ATOMS)
def test_an_atom_policy_checks_its_tables(case):
    changes, message = WRONG_ATOMS[case]
    with pytest.raises(PolicyError, match=message):
        replace(atom_policy(), **changes)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([0, 2, 3], "choices must have the shape 4, not 3"),
        ([0, 2, 99, -1], "a choice that state 2"),
        ([2, 2, 3, -1], "a choice that state 0"),
    ],
)
def test_choices_of_a_markov_policy(choices, message):
    with pytest.raises(PolicyError, match=message):
        tp.MarkovPolicy.from_choices(by_choice(), np.array(choices))


@pytest.mark.parametrize("make", [atom_policy, budget_policy])
def test_a_policy_does_not_change_with_its_makers_arrays(make):
    made = make()
    arrays = {
        field.name: np.array(getattr(made, field.name))
        for field in fields(made)
        if isinstance(getattr(made, field.name), np.ndarray)
    }
    policy = replace(made, **arrays)
    for name, array in arrays.items():
        array[...] = array.flat[0]
        assert np.array_equal(getattr(policy, name), getattr(made, name)), name
        assert not getattr(policy, name).flags.writeable
