"""The policy of the published planners: its memory is an atom of the grid Y.

Its tables are arrays over the model's indices, for `unroll` and the kernels to use directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import PolicyError
from tailpath.graph import FloatArray, IntArray
from tailpath.model.ssp import SSP, Name
from tailpath.policies.atoms import Grids, atom_borders, nearest_own
from tailpath.policies.checks import atom_tables
from tailpath.policies.policy import Kind
from tailpath.policies.running import (
    known_state,
    nearest_cost,
    observed_outcome,
    outcomes_to,
)


@dataclass(frozen=True, eq=False, repr=False)
class AtomPolicy(Kind):
    """The policy of CVaRVILI and CVaRVIQ: decisions over (state, atom), and what moves the atom.

    After outcome o of the chosen choice, y becomes the atom nearest in log distance to `y * xi`
    (the process y_t = y_{t-1} xi of the paper). Made by `solve_cvar_quantile` and
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

    @cached_property
    def borders(self) -> FloatArray:
        """Up to where each atom, but the last, is the nearest: an array, shape (n_atoms - 1,)."""
        return atom_borders(self.atoms)

    def start(self, state: Name) -> int:
        return self._nearest(state, self.start_atom)

    def _nearest(self, state: Name, atom: int) -> int:
        """The atom of a state that is nearest to an atom."""
        if self.grids is None:
            return atom
        return int(
            nearest_own(self.atoms, self.grids, self.ssp.state_index(state), self.atoms[atom])
        )

    def _decision(self, state: Name, memory: int) -> Name:
        choice = int(self.choice[self.ssp.state_index(state), memory])
        if choice < 0:
            raise PolicyError(
                f"the policy has no action for state {state!r} at y = {self.atoms[memory]:g}"
            )
        return self.ssp.choice_name(choice)

    def remember(
        self, memory: int, state: Name, action: Name, cost: float, next_state: Name
    ) -> int:
        source = self.ssp.state_index(state)
        choice = int(self.choice[source, memory])
        if choice < 0 or self.ssp.choice_name(choice) != action:
            raise PolicyError(
                f"the policy did not choose {action!r} in state {state!r} at y ="
                f" {self.atoms[memory]:g}"
            )
        outcome = observed_outcome(self.ssp, state, action, cost, next_state)
        return self._moved(memory, source, outcome)

    def _moved(self, memory: int, state: int, outcome: int) -> int:
        """The atom after an outcome of the choice at a state."""
        first = self.ssp.choice_outcomes[self.choice[state, memory]]
        y = self.atoms[memory] * self.xi[self.xi_offset[state, memory] + outcome - first]
        return int(nearest_own(self.atoms, self.grids, self.ssp.outcome_target[outcome], y))

    def remember_roughly(
        self, memory: int, state: Name, action: Name, cost: Fraction, next_state: Name
    ) -> int:
        source = self.ssp.state_index(state)
        choice = int(self.choice[source, memory])
        near = outcomes_to(self.ssp, choice, known_state(self.ssp, next_state))
        if not near:
            return self._nearest(next_state, memory)
        return self._moved(memory, source, near[nearest_cost(near, cost)])
