import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailpath import log_atoms
from tailpath.errors import OptionError
from tailpath.policies.atoms import checked_atoms, nearest_atom


def test_the_grid_of_the_paper():
    np.testing.assert_allclose(
        log_atoms(1e-3, 7), [1e-3, 10**-2.5, 1e-2, 10**-1.5, 1e-1, 10**-0.5, 1], rtol=1e-15
    )
    np.testing.assert_allclose(log_atoms(0.01, 3), [0.01, 0.1, 1], rtol=1e-15)


@given(st.floats(1e-12, 0.9), st.integers(2, 60))
def test_atoms_are_evenly_spaced_in_the_logarithm_and_end_exactly(alpha0, n):
    atoms = log_atoms(alpha0, n)
    assert (len(atoms), atoms[0], atoms[-1]) == (n, alpha0, 1.0)
    steps = np.diff(np.log(atoms))
    np.testing.assert_allclose(steps, -math.log(alpha0) / (n - 1), rtol=1e-9)
    assert checked_atoms(atoms).tolist() == atoms.tolist()


def test_a_single_atom_is_1():
    assert log_atoms(0.1, 1).tolist() == log_atoms(1, 1).tolist() == [1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_atoms(0, 5), "alpha0 must lie in (0, 1], not 0"),
        (lambda: log_atoms(1.5, 5), "alpha0 must lie in (0, 1], not 1.5; 1.5 % is 0.015"),
        (lambda: log_atoms(math.nan, 5), "alpha0 must lie in (0, 1], not nan"),
        (
            lambda: log_atoms(0.1, 0),
            "the number of atoms must be a whole number of at least 1, not 0",
        ),
        (lambda: log_atoms(1, 2), "cannot place 2 different atoms between alpha0 = 1 and 1"),
        (
            lambda: log_atoms(0.1, 2.5),
            "the number of atoms must be a whole number of at least 1, not 2.5",
        ),
        (
            lambda: log_atoms(0.1, math.inf),
            "the number of atoms must be a whole number of at least 1, not inf",
        ),
        (
            lambda: log_atoms(0.1, math.nan),
            "the number of atoms must be a whole number of at least 1, not nan",
        ),
        (
            lambda: log_atoms(0.1, None),
            "the number of atoms must be a whole number of at least 1, not None",
        ),
        (lambda: log_atoms("a", 3), "alpha0 must be a number in (0, 1], not 'a'"),
        (lambda: log_atoms(1e-320, 3), "alpha0 = 1e-320 is too small for floating point"),
        (
            lambda: checked_atoms([1e-320, 1]),
            "the first atom = 1e-320 is too small for floating point",
        ),
        (lambda: checked_atoms([]), "atoms must be a non-empty list of numbers"),
        (lambda: checked_atoms([[0.5, 1]]), "atoms must be a non-empty list of numbers"),
        (lambda: checked_atoms(["x"]), "atoms must be numbers, not ['x']"),
        (lambda: checked_atoms([0, 1]), "atoms must lie in (0, 1], not 0.0"),
        (lambda: checked_atoms([0.5, math.nan, 1]), "atoms must lie in (0, 1], not nan"),
        (lambda: checked_atoms([0.5, 1.5]), "atoms must lie in (0, 1], not 1.5"),
        (lambda: checked_atoms([0.5, 0.5, 1]), "atoms must increase: 0.5 is followed by 0.5"),
        (lambda: checked_atoms([0.7, 0.5, 1]), "atoms must increase: 0.7 is followed by 0.5"),
        (lambda: checked_atoms([0.1, 0.5]), "the last atom must be 1, not 0.5"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(OptionError) as error:
        call()
    assert str(error.value) == message


@given(st.floats(0, 1), st.integers(2, 30))
def test_nearest_in_log_distance(y, n):
    atoms = log_atoms(1e-4, n)
    chosen = int(nearest_atom(atoms, y))
    if y == 0:
        assert chosen == 0
        return
    distance = np.abs(np.log(atoms) - math.log(y))
    assert distance[chosen] <= distance.min() + 1e-12


def test_ties_go_to_the_smaller_atom():
    atoms = np.array([1 / 16, 1 / 4, 1.0])
    assert nearest_atom(
        atoms, [1 / 8, 1 / 2, 1 / 8 * (1 + 1e-15), 1 / 2 * (1 + 1e-15)]
    ).tolist() == [0, 1, 1, 2]


def test_outside_the_grid_the_ends_are_nearest():
    atoms = log_atoms(1e-3, 4)
    assert nearest_atom(atoms, [0.0, 1e-9, 1e-3, 1.0]).tolist() == [0, 0, 0, 3]
    assert int(nearest_atom(np.ones(1), 0.3)) == 0
