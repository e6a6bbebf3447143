"""Tables built by hand: every index, width and length is checked before a kernel may read by it."""

from dataclasses import fields, replace

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import PolicyError
from tests.formats.models import by_choice
from tests.formats.policies import atom_policy, budget_policy, sparse_budget_policy

WRONG_BUDGET = {
    "a budget beyond the table": ({"budget": 5}, "the budget is 5, but the table ends at 4"),
    "a budget far beyond the table": ({"budget": 10**6}, "the budget is 1000000, but the table ends at 4"),
    "a negative budget": ({"budget": -1}, "budget is -1, outside"),
    "a budget that would overflow": ({"budget": 2**63}, "budget is"),
    "no whole budget": ({"budget": 1.5}, "budget must be a whole number, not 1.5"),
    "a row beyond the table": ({"row": np.array([0, 2, -1, -1])}, "row points outside the table"),
    "a row below -1": ({"row": np.array([0, -2, -1, -1])}, "row points outside the table"),
    "too few rows": ({"row": np.array([0, 1, -1])}, "row and neutral need an entry per state"),
    "rows that are no whole numbers": ({"row": np.array([0, 1, -1, 0.5])}, "row must hold whole numbers, not float64"),
    "a choice its state lacks": ({"position": np.array([[0, 1, 0, 1, 2], [0] * 5])}, "a choice that state 0 does not have"),
    "a negative choice": ({"position": np.array([[0, 1, 0, 1, -1], [0] * 5])}, "a choice that state 0 does not have"),
    "a flat table": ({"position": np.zeros(5, dtype=np.int8)}, "table must be any x any, not 5"),
    "a table of floats": ({"position": np.zeros((2, 5))}, "table must hold whole numbers"),
    "a neutral choice of another state": ({"neutral": np.array([2, 2, 3, -1])}, "neutral has a choice that state 0 does not have"),
    "a neutral choice below -1": ({"neutral": np.array([-2, 2, 3, -1])}, "neutral has a choice that state 0 does not have"),
    "too few levels": ({"level": np.zeros(3, dtype=np.int64)}, "level one per outcome"),
    "a negative level": ({"level": np.array([3, 3, 0, 4, 4, 1, -1])}, "level must not be negative"),
    "a level that would overflow": ({"level": np.array([3, 3, 0, 4, 4, 1, 2**62])}, "level must stay below"),
    "no model": ({"ssp": None}, "a table policy needs its model, not a NoneType"),
    "a unit that is none": ({"unit": -1}, "unit must be a positive number"),
}
WRONG_PAIRS = {
    "first does not begin at 0": ({"first": np.array([1, 2, 3])}, "first must rise from 0"),
    "first does not end with the table": ({"first": np.array([0, 2, 4])}, "first must rise from 0"),
    "a row without budgets": ({"first": np.array([0, 3, 3])}, "first must rise from 0"),
    "a row beyond the table": ({"row": np.array([0, 2, -1, -1])}, "row points outside the table"),
    "two states with one row": ({"row": np.array([0, 0, -1, -1])}, "every state needs a row of its own"),
    "too few budgets": ({"left": np.array([2, 4])}, "left must be 3, not 2"),
    "budgets that fall": ({"left": np.array([4, 2, 1])}, "left must rise within each row"),
    "a budget of 0": ({"left": np.array([2, 4, 0])}, "left must rise within each row"),
    "a budget that would overflow": ({"left": np.array([2, 2**61, 1])}, "and stay below"),
    "a choice its state lacks": ({"position": np.array([0, 2, 0])}, "a choice that state 0 does not have"),
    "a negative choice": ({"position": np.array([0, 0, -1])}, "a choice that state 1 does not have"),
    "a table of rows": ({"position": np.zeros((2, 5), dtype=np.int8)}, "table must be any, not 2 x 5"),
    "too few levels": ({"level": np.zeros(3, dtype=np.int64)}, "level one per outcome"),
}
WRONG_ATOMS = {
    "a start beyond the atoms": ({"start_atom": 2}, r"start_atom is 2, outside 0\.\.1"),
    "a negative start": ({"start_atom": -1}, r"start_atom is -1, outside 0\.\.1"),
    "no whole start": ({"start_atom": True}, "start_atom must be a whole number"),
    "atoms that do not end at 1": ({"atoms": np.array([0.1, 0.5])}, "the last atom must be 1"),
    "no atoms": ({"atoms": np.array([])}, "atoms must be a non-empty list"),
    "too few atoms": ({"atoms": np.array([1.0])}, "choice and xi_offset must be 4 x 1"),
    "a choice of another state": (
        {"choice": np.array([[0, 2], [2, 2], [3, 3], [-1, -1]])},
        "choice has a choice that state 0 does not have",
    ),
    "a choice far outside": ({"choice": np.array([[0, 10**6], [2, 2], [3, 3], [-1, -1]])}, "choice has a choice that state 0"),
    "choices of one axis": ({"choice": np.zeros(8, dtype=np.int32)}, "choice and xi_offset must be 4 x 2"),
    "an offset beyond xi": ({"xi_offset": np.array([[0, 2], [3, 5], [7, 10], [0, 0]])}, "xi_offset points outside xi"),
    "a negative offset": ({"xi_offset": np.array([[0, 2], [3, 5], [7, -1], [0, 0]])}, "xi_offset points outside xi"),
    "too few factors": ({"xi": np.ones(5)}, "xi_offset points outside xi"),
    "a negative factor": ({"xi": np.full(11, -1.0)}, "xi must be finite and not negative"),
    "a factor that is no number": ({"xi": np.full(11, np.nan)}, "xi must be finite and not negative"),
}


@pytest.mark.parametrize("case", WRONG_PAIRS)
def test_a_policy_of_pairs_checks_its_tables(case):
    changes, message = WRONG_PAIRS[case]
    with pytest.raises(PolicyError, match=message):
        replace(sparse_budget_policy(), **changes)


@pytest.mark.parametrize("case", WRONG_BUDGET)
def test_a_budget_policy_checks_its_tables(case):
    changes, message = WRONG_BUDGET[case]
    with pytest.raises(PolicyError, match=message):
        replace(budget_policy(), **changes)


@pytest.mark.parametrize("case", WRONG_ATOMS)
def test_an_atom_policy_checks_its_tables(case):
    changes, message = WRONG_ATOMS[case]
    with pytest.raises(PolicyError, match=message):
        replace(atom_policy(), **changes)


@pytest.mark.parametrize(
    ("choices", "message"),
    [([0, 2, 3], "choices must be 4, not 3"), ([0, 2, 99, -1], "a choice that state 2"), ([2, 2, 3, -1], "a choice that state 0")],
)
def test_choices_of_a_markov_policy(choices, message):
    with pytest.raises(PolicyError, match=message):
        tp.MarkovPolicy.from_choices(by_choice(), np.array(choices))


@pytest.mark.parametrize("make", [atom_policy, budget_policy])
def test_a_policy_does_not_change_with_its_makers_arrays(make):
    made = make()
    arrays = {
        field.name: np.array(getattr(made, field.name)) for field in fields(made) if isinstance(getattr(made, field.name), np.ndarray)
    }
    policy = replace(made, **arrays)
    for name, array in arrays.items():
        array[...] = array.flat[0]
        assert np.array_equal(getattr(policy, name), getattr(made, name)), name
        assert not getattr(policy, name).flags.writeable


def test_a_file_whose_budget_exceeds_its_table(tmp_path):
    """It was read, and the evaluation read on beyond the table."""
    tp.write_policy(budget_policy(), tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text()
    for budget in (5, 36, 10**9):
        (tmp_path / "p.json").write_text(text.replace('"budget": 4', f'"budget": {budget}'))
        with pytest.raises(tp.TailpathError, match=rf"p\.json: the budget is {budget}, but the table ends at 4"):
            tp.read_policy(tmp_path / "p.json", by_choice())
