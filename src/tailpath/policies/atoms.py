"""The grid Y of confidence levels on which the published planners keep their values.

`Y = { alpha0 ** ((N - i) / (N - 1)) : i = 1 .. N }` is log-spaced and ends at 1. Between atoms `y V(s, y)` is linear, through (0, 0) as well,
so that `V(s, y) = V(s, y_1)` below the first atom.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailpath.errors import OptionError

#: More atoms than any table could hold for a model of any size.
MOST_ATOMS = 1_000_000


def log_atoms(alpha0: float, n: int) -> NDArray[np.float64]:
    """`n` log-spaced atoms from `alpha0` to 1. With `n = 1` the only atom is 1."""
    if not 0 < alpha0 <= 1:
        raise OptionError(f"alpha0 must lie in (0, 1], not {alpha0!r}")
    if n != int(n):
        raise OptionError(f"the number of atoms must be whole, not {n!r}")
    if n > MOST_ATOMS:
        raise OptionError(f"{n} atoms are too many; the most are {MOST_ATOMS}")
    if n < 1 or (n > 1 and alpha0 == 1):
        raise OptionError(f"cannot place {n} different atoms between alpha0 = {alpha0:g} and 1")
    if n == 1:
        return np.ones(1)
    atoms = np.power(float(alpha0), np.arange(n - 1, -1, -1) / (n - 1))
    atoms[0], atoms[-1] = alpha0, 1.0
    return atoms


def checked_atoms(atoms: ArrayLike) -> NDArray[np.float64]:
    """The atoms as an array; refuses what is not increasing, not in (0, 1] or does not end at 1."""
    try:
        array = np.array(atoms, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"atoms must be numbers, not {atoms!r}") from None
    if array.ndim != 1 or array.size == 0:
        raise OptionError("atoms must be a non-empty list of numbers")
    for value in array[~((array > 0) & (array <= 1))][:1].tolist():
        raise OptionError(f"atoms must lie in (0, 1], not {value!r}")
    for index in np.flatnonzero(np.diff(array) <= 0)[:1].tolist():
        raise OptionError(f"atoms must increase: {array[index]:g} is followed by {array[index + 1]:g}")
    if array[-1] != 1.0:
        raise OptionError(f"the last atom must be 1, not {array[-1]:g}")
    return array


def nearest_atom(atoms: NDArray[np.float64], y: Any) -> Any:
    """The index of the atom nearest to `y` in log distance; exact ties go to the smaller atom, `y = 0` to the first."""
    return np.searchsorted(atom_borders(atoms), np.asarray(y, dtype=np.float64), side="left")


def atom_borders(atoms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Up to where each atom, but the last, is the nearest: the midpoint of two in log distance is their geometric mean."""
    return np.sqrt(atoms[:-1] * atoms[1:])
