"""What CVaRVIQ and CVaRVILI return: predicted values over (state, atom), and the policy over
(state, atom) that goes with them.

The prediction is the fixed point of an approximate decomposition. It is in general neither the CVaR
of the policy it comes with nor the best CVaR there is, at any number of atoms (`docs/planners.md`);
`tailpath.evaluate` says what the policy really delivers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.graph import FloatArray, IntArray
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, Name
from tailpath.options import check_alpha, takes_alpha
from tailpath.pictures.notebook import card
from tailpath.policies.atoms import AtomPolicy, Grids, nearest_own
from tailpath.texts import Table, count


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class AtomSolution(Record):
    """The result of a published planner: predictions over (state, atom), and a policy.

    The prediction is in general neither the CVaR of the policy nor the least CVaR there is. Arrays
    are in index order, and read-only.

    Attributes
    ----------
    ssp : SSP
        The model.
    atoms : array of float64, shape (n_atoms,)
        Tail masses y, rising to 1.
    value : array of float64, shape (n_states, n_atoms)
        The CVaR predicted: 0 at goals, infinite where no policy surely arrives.
    var : array of float64, shape (n_states, n_atoms)
        The VaR that goes with it.
    choice, xi_offset, xi : arrays
        The tables of the policy, see `AtomPolicy`.
    gamma : float
        The discount.
    tolerance : float
        What the last sweep was to stay within.
    residual : float
        The largest change in the last full sweep; no bound on the error.
    sweeps : int
        How many there were.
    converged : bool
        Whether the residual met the tolerance.
    detours : int
        Pairs (state, atom) where the greedy choice was given up because it would never arrive.
    inner : str
        How the inner problem was solved.
    start : str
        Where the values started.
    factors : str
        Which risk factors the policy has.
    factor_sum : float
        The largest sum P xi of a choice; 1 unless they are `"printed"`.
    grids : Grids or None
        Which atoms belong to which state, where every state has its own; values at others lie on
        the line between.
    linear_programs : int
        How many linear programs were solved.
    lp_seconds : float
        How long they took.
    """

    ssp: SSP
    atoms: FloatArray
    value: FloatArray
    var: FloatArray
    choice: NDArray[np.int32]
    xi_offset: IntArray
    xi: FloatArray
    gamma: float
    tolerance: float
    residual: float
    sweeps: int
    converged: bool
    detours: int
    inner: str
    start: str
    factors: str
    factor_sum: float
    grids: Grids | None = None
    linear_programs: int = 0
    lp_seconds: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        self._freeze()

    def _repr_html_(self) -> str:
        shown = self.atoms[:: max(1, len(self.atoms) // 5)].tolist()
        facts = [
            ("atoms", f"{len(self.atoms)} from {self.atoms[0]:g}"),
            ("sweeps", self.sweeps),
            ("residual", float(self.residual)),
        ]
        predicted = Table(("alpha", "predicted CVaR"), [(a, float(self.cvar(a))) for a in shown])
        return card("CVaR as a published planner predicts it", [Table((), facts), predicted])

    def __repr__(self) -> str:
        sweeps = f"{count(self.sweeps, 'sweep')}{'' if self.converged else ', not converged'}"
        return (
            f"<AtomSolution {len(self.value)} states, {len(self.atoms)} atoms, inner"
            f" {self.inner!r}, {sweeps}>"
        )

    def cvar(self, alpha: Any, state: Name | None = None) -> Any:
        """The predicted CVaR from a state.

        Between atoms `y V(s, y)` is linear, through (0, 0) as well; below the first atom V is
        constant.

        Parameters
        ----------
        alpha : float in (0, 1], or array of them
            The mass of the worst tail.
        state : hashable, optional
            The name of a state; by default the start.

        Returns
        -------
        float, or array of float64 of the shape of `alpha`
            What was predicted; `evaluate` says what is delivered.

        Raises
        ------
        OptionError
            If `alpha` lies outside its range.
        """
        levels = np.asarray(alpha, dtype=np.float64)
        for level in levels.ravel().tolist():
            check_alpha(level)
        values = self.value[self.ssp.start_index if state is None else self.ssp.state_index(state)]
        found = np.full(levels.shape, np.inf)
        if np.isfinite(values[0]):
            area = np.append(0.0, self.atoms * values)
            found = np.interp(levels, np.append(0.0, self.atoms), area) / levels
        return float(found) if np.ndim(alpha) == 0 else found

    def policy(self, alpha: float) -> AtomPolicy:
        """The policy that starts at the atom nearest to `alpha` in log distance.

        Parameters
        ----------
        alpha : float in (0, 1]
            The mass of the worst tail.

        Returns
        -------
        AtomPolicy
            The policy.
        """
        start = int(nearest_own(self.atoms, self.grids, self.ssp.start_index, check_alpha(alpha)))
        tables = {
            name: getattr(self, name)
            for name in ("ssp", "atoms", "choice", "xi_offset", "xi", "grids")
        }
        return AtomPolicy.trusted(**tables, start_atom=start)
