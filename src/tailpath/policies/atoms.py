"""The grid Y of confidence levels on which the published planners store their values, and their
policy, whose memory is an atom of it.

`Y = { alpha0 ** ((N - i) / (N - 1)) : i = 1 .. N }` is log-spaced and ends at 1. Between atoms `y
V(s, y)` is linear, through (0, 0) as well, so that `V(s, y) = V(s, y_1)` below the first atom.

Every state may have atoms of its own, Y(s). All of them together, `atoms`, then number the columns
of every table, and `Grids` says which belong to which state: between those of its own `y V(s, y)`
is linear, and a policy decides only there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailpath.errors import OptionError, PolicyError, kind_of
from tailpath.graph import Array, BoolArray, FloatArray, IntArray, first_of
from tailpath.kernels.unrolling import Memories
from tailpath.model.checks import same_numbering
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, Name
from tailpath.options import check_alpha, check_integer
from tailpath.policies.checks import finite_numbers, integer, integers, own_choices, require_model
from tailpath.policies.policy import Kind
from tailpath.policies.running import observed_outcome

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
    """Log-spaced atoms from `alpha0` to 1, for the published planners (the paper's Y).

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
    alpha0 = check_alpha(alpha0, "alpha0")
    n = check_integer(n, "the number of atoms", least=1)
    if n > MAX_ATOMS:
        raise OptionError(f"{n} atoms are too many; the limit is {MAX_ATOMS}")
    if n > 1 and alpha0 == 1:
        raise OptionError(f"cannot place {n} different atoms between alpha0 = {alpha0:g} and 1")
    if n == 1:
        return np.ones(1)
    atoms = np.power(float(alpha0), np.arange(n - 1, -1, -1) / (n - 1))
    atoms[0], atoms[-1] = alpha0, 1.0
    return atoms


def checked_atoms(atoms: ArrayLike) -> FloatArray:
    """The atoms as an array: rising, in (0, 1], and 1 at the end."""
    try:
        array = np.array(atoms, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"atoms must be numbers, not {atoms!r}") from None
    if array.ndim != 1 or array.size == 0:
        raise OptionError("atoms must be a non-empty list of numbers")
    for value in array[~((array > 0) & (array <= 1))][:1].tolist():
        raise OptionError(f"atoms must lie in (0, 1], not {value!r}")
    check_alpha(array.min(), "the first atom")
    for index in first_of(np.diff(array) <= 0):
        raise OptionError(
            f"atoms must increase: {array[index]:g} is followed by {array[index + 1]:g}"
        )
    if array[-1] != 1.0:
        raise OptionError(f"the last atom must be 1, not {array[-1]:g}")
    return array


@dataclass(frozen=True, eq=False)
class Grids(Record):
    """`own[g]` marks the atoms of grid g, and `of_state[s]` is the grid of state s."""

    own: BoolArray
    of_state: NDArray[np.int32]

    def __post_init__(self) -> None:
        self._freeze()

    def rows(self) -> BoolArray:
        return np.asarray(self.own[self.of_state])


def borders_of(atoms: FloatArray, own: BoolArray) -> tuple[FloatArray, IntArray]:
    """For every grid `atom_borders`, filled up with infinities, and the numbers of its atoms."""
    border, atom = np.full(own.shape, np.inf), np.zeros(own.shape, dtype=np.int64)
    for grid, mine in enumerate(own):
        position = np.flatnonzero(mine)
        border[grid, : len(position) - 1] = atom_borders(atoms[position])
        atom[grid, : len(position)] = position
    return border, atom


def nearest_own(atoms: FloatArray, grids: Grids | None, state: int, y: float) -> int:
    """`nearest_atom` among those of a state."""
    if grids is None:
        return int(nearest_atom(atoms, y))
    own = np.flatnonzero(grids.own[grids.of_state[state]])
    return int(own[nearest_atom(atoms[own], y)])


def grids_of(ssp: SSP, atoms: Atoms | None) -> tuple[FloatArray, Grids | None]:
    """All atoms, and which belong to which state; None where all belong to all.

    `atoms` is one list, or one for every state: a mapping, or a function of its name. Goals need
    none; states that a mapping leaves out, and those for which the function returns None, have the
    default.
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
        raise OptionError(f"all states together have {every.size} atoms; the limit is {MAX_ATOMS}")
    own = np.array([np.isin(every, grid) for grid in lists]).reshape(-1, len(every))
    return every, None if own.all() else Grids(own, of_state)


def _distinct(atoms: FloatArray) -> FloatArray:
    """Of atoms that are nearly the same the largest: slopes between them would be nothing but
    rounding.
    """
    return np.asarray(atoms[np.append(atoms[1:] * (1 - SAME_ATOM) > atoms[:-1], True)])


def nearest_atom(atoms: FloatArray, y: Any) -> Any:
    """The index of the atom nearest to `y` in log distance; exact ties go to the smaller one."""
    return np.searchsorted(atom_borders(atoms), np.asarray(y, dtype=np.float64), side="left")


def atom_borders(atoms: FloatArray) -> FloatArray:
    """Up to where each atom, but the last, is the nearest: the geometric mean of two."""
    return np.sqrt(atoms[:-1] * atoms[1:])


@dataclass(frozen=True, eq=False, repr=False)
class AtomPolicy(Kind):
    """The policy of CVaRVILI and CVaRVIQ: decisions over (state, atom), and what moves the atom.

    After outcome o of the chosen choice, y becomes the atom nearest in log distance to `y * xi`
    (the paper's Eq. 19). Made by `solve_cvar_quantile` and
    `solve_cvar_interpolation`.

    Parameters
    ----------
    ssp : SSP
        The model whose numbers of states, choices and outcomes the arrays use.
    atoms : array of float64, shape (n_atoms,)
        Tail masses y in (0, 1], rising to 1.
    choice : array of int32, shape (n_states, n_atoms)
        The choice at each state and atom; -1 at goals and dead ends.
    xi_offset : array of int64, shape (n_states, n_atoms)
        Where in `xi` the factors of the outcomes of that choice stand, in the model's order.
    xi : array of float64
        The risk factors.
    start_atom : int
        The index of the atom at the start.
    grids : Grids, optional
        Which atoms belong to which state, where every state has its own: y becomes the nearest of
        those of the next state, and at others there is no choice.

    Raises
    ------
    PolicyError
        If the tables do not fit the model.

    Examples
    --------
    >>> tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1]).policy(0.1)
    <AtomPolicy 2 states, 3 atoms, start at y = 0.1>
    """

    ssp: SSP
    atoms: FloatArray
    choice: NDArray[np.int32]
    xi_offset: IntArray
    xi: FloatArray
    start_atom: int
    grids: Grids | None = None

    def __post_init__(self) -> None:
        self.__setstate__(atom_tables(self))

    def __repr__(self) -> str:
        return (
            f"<AtomPolicy {self.choice.shape[0]} states, {len(self.atoms)} atoms, start at y ="
            f" {self.atoms[self.start_atom]:g}>"
        )

    def _choices_on(self, ssp: SSP) -> tuple[Array, int, Memories | None] | None:
        if not same_numbering(self.ssp, ssp):
            return None
        own, of_state = np.ones((1, len(self.atoms)), dtype=np.bool_), np.zeros(ssp.n_states)
        grids = self.grids or Grids(own, of_state.astype(np.int32))
        moves = Memories(
            len(self.atoms),
            self.atoms,
            self.xi_offset.reshape(-1),
            self.xi,
            grids.of_state,
            *borders_of(self.atoms, grids.own),
        )
        return self.choice, self.start(ssp.start), moves

    def start(self, state: Name) -> int:
        return self._own(self.ssp.state_index(state), self.start_atom)

    def _own(self, state: int, atom: int) -> int:
        """An atom, or the nearest that a state has."""
        return nearest_own(self.atoms, self.grids, state, self.atoms[atom])

    def _decision(self, state: Name, memory: int) -> Name:
        index = self.ssp.state_index(state)
        memory = self._own(index, memory)
        choice = int(self.choice[index, memory])
        if choice < 0:
            raise PolicyError(
                f"the policy has no action for state {state!r} at y = {self.atoms[memory]:g}"
            )
        return self.ssp.choice_name(choice)

    def remember(
        self, memory: int, state: Name, action: Name, cost: float, next_state: Name
    ) -> int:
        source = self.ssp.state_index(state)
        memory = self._own(source, memory)
        choice = int(self.choice[source, memory])
        if choice < 0 or self.ssp.choice_name(choice) != action:
            raise PolicyError(
                f"the policy did not choose {action!r} in state {state!r} at y ="
                f" {self.atoms[memory]:g}"
            )
        outcome = observed_outcome(self.ssp, state, action, cost, next_state)
        y = (
            self.atoms[memory]
            * self.xi[self.xi_offset[source, memory] + outcome - self.ssp.choice_outcomes[choice]]
        )
        return nearest_own(self.atoms, self.grids, int(self.ssp.outcome_target[outcome]), y)


def atom_tables(policy: Any) -> dict[str, Any]:
    try:
        atoms = checked_atoms(policy.atoms)
    except OptionError as error:
        raise PolicyError(str(error)) from None
    shape = (require_model(policy.ssp).n_states, len(atoms))
    choice = integers(policy.choice, "choice", shape, np.int32)
    xi_offset = integers(policy.xi_offset, "xi_offset", shape, np.int64)
    xi, grids = finite_numbers(policy.xi, "xi"), policy.grids
    start_atom = integer(policy.start_atom, "start_atom", len(atoms))
    own_choices(choice, policy.ssp, "choice")
    taken = choice >= 0
    length = np.diff(policy.ssp.choice_outcomes)[choice[taken]]
    if ((xi_offset[taken] < 0) | (xi_offset[taken] > len(xi) - length)).any():
        raise PolicyError("xi_offset points outside xi")
    return {
        "atoms": atoms,
        "choice": choice,
        "xi_offset": xi_offset,
        "xi": xi,
        "start_atom": start_atom,
        "grids": None if grids is None else _checked_grids(grids, shape),
    }


def _checked_grids(grids: Any, shape: tuple[int, int]) -> Grids:
    """Each grid has the last atom, which is 1, so that every y has a nearest."""
    if not isinstance(grids, Grids):
        raise PolicyError(f"grids must be Grids, not {kind_of(grids)}")
    own, of_state = np.array(grids.own), integers(grids.of_state, "of_state", shape[:1], np.int32)
    if own.shape != (len(own), shape[1]) or own.dtype != np.bool_ or not own[:, -1].all():
        raise PolicyError(
            f"own must mark some of {shape[1]} atoms for every grid, and the last one always"
        )
    if not 0 <= of_state.min() <= of_state.max() < len(own):
        raise PolicyError(
            f"of_state must name one of {len(own)} grids for each of {shape[0]} states"
        )
    return Grids(own, of_state)
