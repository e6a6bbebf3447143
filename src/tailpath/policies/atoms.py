"""The grid Y of confidence levels on which the published planners store their values.

`Y = { alpha0 ** ((N - i) / (N - 1)) : i = 1 .. N }` is log-spaced and ends at 1. Between atoms `y
V(s, y)` is linear, through (0, 0) as well, so that `V(s, y) = V(s, y_1)` below the first atom.

Every state may have atoms of its own, Y(s). All of them together, `atoms`, then number the columns
of every table, and `Grids` says which belong to which state: between those of its own `y V(s, y)`
is linear, and only there a policy decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailpath.errors import OptionError
from tailpath.graph import BoolArray, FloatArray, IntArray, first_of
from tailpath.model.records import Record
from tailpath.model.ssp import SSP
from tailpath.options import check_integer, check_invertible_alpha

#: What planners take: one list of atoms, or one for every state, as a mapping or a function of its
#: name.
Atoms = ArrayLike | Mapping[Any, ArrayLike] | Callable[[Any], ArrayLike | None]
#: More atoms than any table could hold for a model of any size.
MAX_ATOMS = 1_000_000
#: Atoms of different states that differ by less than this, relatively, are taken for one.
SAME_ATOM = 1e-6
#: alpha0 and the number of atoms where nothing else is said.
DEFAULT = (1e-3, 25)


def log_atoms(alpha0: float, n: int) -> FloatArray:
    """Log-spaced atoms from `alpha0` to 1, for the published planners.

    Parameters
    ----------
    alpha0 : float in (0, 1]
        The least atom.
    n : int, 1 or more
        The number of atoms. With 1 the only atom is 1.

    Returns
    -------
    array of float64, shape (n,)
        `alpha0 ** ((n - i) / (n - 1))` for i = 1 .. n.

    Raises
    ------
    OptionError
        If an argument lies outside its range.

    Examples
    --------
    >>> tp.log_atoms(0.01, 3)
    array([0.01, 0.1 , 1.  ])
    """
    alpha0 = check_invertible_alpha(alpha0, "alpha0")
    n = check_integer(n, "the number of atoms", least=1)
    if n > MAX_ATOMS:
        raise OptionError(f"{n} atoms are too many; the most are {MAX_ATOMS}")
    if n > 1 and alpha0 == 1:
        raise OptionError(f"cannot place {n} different atoms between alpha0 = {alpha0:g} and 1")
    if n == 1:
        return np.ones(1)
    atoms = np.power(float(alpha0), np.arange(n - 1, -1, -1) / (n - 1))
    atoms[0], atoms[-1] = alpha0, 1.0
    return atoms


def checked_atoms(atoms: ArrayLike) -> FloatArray:
    """The atoms as an array; refuses what is not increasing, not in (0, 1] or does not end at 1."""
    try:
        array = np.array(atoms, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"atoms must be numbers, not {atoms!r}") from None
    if array.ndim != 1 or array.size == 0:
        raise OptionError("atoms must be a non-empty list of numbers")
    for value in array[~((array > 0) & (array <= 1))][:1].tolist():
        raise OptionError(f"atoms must lie in (0, 1], not {value!r}")
    check_invertible_alpha(array.min(), "the first atom")
    for index in first_of(np.diff(array) <= 0):
        raise OptionError(
            f"atoms must increase: {array[index]:g} is followed by {array[index + 1]:g}"
        )
    if array[-1] != 1.0:
        raise OptionError(f"the last atom must be 1, not {array[-1]:g}")
    return array


@dataclass(frozen=True, eq=False)
class Grids(Record):
    """Which of the atoms belong to which state: `own[g]` marks those of grid g, and `of_state[s]`
    is the grid of state s.
    """

    own: BoolArray
    of_state: NDArray[np.int32]

    def __post_init__(self) -> None:
        self._freeze()

    def rows(self) -> BoolArray:
        """The atoms of every state, marked."""
        return np.asarray(self.own[self.of_state])


def borders_of(atoms: FloatArray, own: BoolArray) -> tuple[FloatArray, IntArray]:
    """For every grid: up to where each of its atoms, but the last, is the nearest, filled up with
    infinities; and the numbers of its atoms.
    """
    border, atom = np.full(own.shape, np.inf), np.zeros(own.shape, dtype=np.int64)
    for grid, mine in enumerate(own):
        position = np.flatnonzero(mine)
        border[grid, : len(position) - 1] = atom_borders(atoms[position])
        atom[grid, : len(position)] = position
    return border, atom


def nearest_own(atoms: FloatArray, grids: Grids | None, state: Any, y: Any) -> Any:
    """The index of the atom of a state nearest to `y`, as in `nearest_atom`; for one state and one
    `y`, or for arrays of both.
    """
    if grids is None:
        return nearest_atom(atoms, y)
    grid, y = np.broadcast_arrays(grids.of_state[state], np.asarray(y, dtype=np.float64))
    found = np.zeros(y.shape, dtype=np.int64)
    for g in np.unique(grid).tolist():
        position = np.flatnonzero(grids.own[g])
        found[grid == g] = position[nearest_atom(atoms[position], y[grid == g])]
    return found[()]


def grids_of(ssp: SSP, atoms: Atoms | None) -> tuple[FloatArray, Grids | None]:
    """All atoms, and which belong to which state; None where all belong to all.

    `atoms` is a rising list in (0, 1] that ends at 1 (by default 25, log-spaced from 1e-3), or such
    a list for every state: a mapping, or a function of the state's name. Goals need none; states
    that a mapping leaves out, and those for which the function returns None, have the default.
    """
    if atoms is None:
        return log_atoms(*DEFAULT), None
    if not callable(atoms) and not isinstance(atoms, Mapping):
        return checked_atoms(atoms), None
    if isinstance(atoms, Mapping):
        for name in atoms:
            ssp.state_index(name)
    known: dict[bytes, int] = {}
    lists: list[FloatArray] = []
    of_state = np.zeros(ssp.n_states, dtype=np.int32)
    for state in np.flatnonzero(~ssp.is_goal).tolist():
        name = ssp.states[state]
        mine = atoms.get(name) if isinstance(atoms, Mapping) else atoms(name)
        try:
            grid = log_atoms(*DEFAULT) if mine is None else checked_atoms(mine)
        except OptionError as error:
            raise OptionError(f"state {name!r}: {error}") from None
        of_state[state] = known.setdefault(grid.tobytes(), len(known))
        if len(known) > len(lists):
            lists.append(grid)
    every = _distinct(np.unique(np.concatenate(lists or [np.ones(1)])))
    lists = [every[np.searchsorted(every, grid * (1 - SAME_ATOM))] for grid in lists]
    if every.size > MAX_ATOMS:
        raise OptionError(f"all states together have {every.size} atoms; the most are {MAX_ATOMS}")
    own = np.array([np.isin(every, grid) for grid in lists]).reshape(-1, len(every))
    return every, None if own.all() else Grids(own, of_state)


def _distinct(atoms: FloatArray) -> FloatArray:
    """Of atoms of different states that are nearly the same only the largest: slopes between them
    would be nothing but rounding.
    """
    return np.asarray(atoms[np.append(atoms[1:] * (1 - SAME_ATOM) > atoms[:-1], True)])


def nearest_atom(atoms: FloatArray, y: Any) -> Any:
    """The index of the atom nearest to `y` in log distance; exact ties go to the smaller atom, `y =
    0` to the first.
    """
    return np.searchsorted(atom_borders(atoms), np.asarray(y, dtype=np.float64), side="left")


def atom_borders(atoms: FloatArray) -> FloatArray:
    """Up to where each atom, but the last, is the nearest: the midpoint of two in log distance is
    their geometric mean.
    """
    return np.sqrt(atoms[:-1] * atoms[1:])
