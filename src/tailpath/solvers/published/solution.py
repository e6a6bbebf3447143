"""What CVaRVIQ and CVaRVILI return: predicted values over (state, atom), and the policy that goes
with them, made of the values as tables over the model's states.

The policy is greedy with respect to the values; choices that tie go to the lower index. It goes on
at the nearest atom, where the values interpolate, so it could walk in cycles: pairs (node, atom)
that cannot arrive take a *detour*: of all choices that may lead to a pair that does arrive, the one
with the least extra cost, the cheapest detours first. *Zero-cost components* were one node: its
member with the chosen choice takes it, and the others walk there, at no cost and with xi = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import OptionError
from tailpath.graph import FloatArray, IntArray, offsets_from_lengths
from tailpath.kernels.atom_policy import (
    Detours,
    Nearest,
    all_factors,
    choose,
    find_detours,
    mark_arriving,
)
from tailpath.kernels.jit import frozen
from tailpath.kernels.segments import new_scratch
from tailpath.model.border import Border
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, Name
from tailpath.options import check_alpha, takes_alpha, warn_caller
from tailpath.pictures.notebook import card
from tailpath.policies.atoms import AtomPolicy, Grids, borders_of, nearest_own
from tailpath.solvers.published.sweeps import Augmented, Progression, Settings
from tailpath.texts import Table, count

#: Detours whose regrets differ by less than this are taken together.
SAME_REGRET = 1e-12
#: A sum of factors beyond 1 by less than this is rounding.
SAME_SUM = 1e-6


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
        The CVaR predicted: 0 at goals, infinite where no policy arrives with probability
        1.
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
    factor_rule : str
        Which risk factors the policy has, the `factors` that the planner was given.
    factor_sum : float
        The largest sum P xi of a choice; 1 unless they are `"printed"`.
    grids : Grids or None
        Which atoms belong to which state, where every state has its own; values at others lie on
        the line between.
    linear_programs : int
        How many linear programs were solved.
    lp_seconds : float
        How long they took.

    Examples
    --------
    >>> tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1]).value[0].round(3)
    array([30., 28., 24.])
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
    factor_rule: str
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

        Examples
        --------
        >>> round(tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1]).cvar(0.5), 3)
        28.0
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

        Examples
        --------
        >>> tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1]).policy(0.1).action("home")
        'train'
        """
        start = nearest_own(self.atoms, self.grids, self.ssp.start_index, check_alpha(alpha))
        tables = {
            name: getattr(self, name)
            for name in ("ssp", "atoms", "choice", "xi_offset", "xi", "grids")
        }
        return AtomPolicy.trusted(**tables, start_atom=start)

    def factors(self, state: Name, atom: float) -> dict[Any, float]:
        """The risk factors xi of the policy's choice, by successor (the paper's xi(s, y, s')).

        Parameters
        ----------
        state : name
            The name of a state that is not a goal.
        atom : float in (0, 1]
            The tail mass y; the nearest atom in log distance counts.

        Returns
        -------
        dict of name to float
            After a step to s' the tail has mass y xi(s'). Where several outcomes lead to one state,
            the keys are pairs (state, cost).

        Raises
        ------
        OptionError
            If no choice is made there.

        Examples
        --------
        >>> tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1]).factors("home", 0.1)
        {'work': 1.0}
        """
        index = self.ssp.state_index(state)
        y = nearest_own(self.atoms, self.grids, index, check_alpha(atom))
        choice, begin = int(self.choice[index, y]), int(self.xi_offset[index, y])
        if choice < 0:
            raise OptionError(f"there is no choice in state {state!r}")
        outcomes = range(*self.ssp.choice_outcomes[choice : choice + 2].tolist())
        targets = [self.ssp.states[self.ssp.outcome_target[o]] for o in outcomes]
        keys = [
            target if targets.count(target) == 1 else (target, float(self.ssp.outcome_cost[o]))
            for o, target in zip(outcomes, targets)
        ]
        return dict(zip(keys, self.xi[begin : begin + len(keys)].tolist()))


@dataclass(eq=False)
class Tables:
    """Decisions over (node, atom): core choices, VaR, and where in `xi` their factors begin."""

    choice: IntArray
    var: FloatArray
    offset: IntArray
    xi: FloatArray
    detours: int = 0


def greedy_tables(augmented: Augmented, rule: int) -> Tables:
    """The greedy choices and their factors by the closed form."""
    model = augmented.model
    choice = np.zeros((augmented.n, len(model.atoms)), dtype=np.int64)
    var = np.zeros(choice.shape)
    choose(model, augmented.work, new_scratch(model), choice, var)
    offset, total = run_offsets(augmented, choice)
    tables = Tables(choice, var, offset, np.empty(total))
    fill_factors(augmented, tables, rule)
    return tables


def fill_factors(augmented: Augmented, tables: Tables, rule: int) -> None:
    choice, var, offset = (
        table.reshape(-1) for table in (tables.choice, tables.var, tables.offset)
    )
    atom = np.arange(len(choice)) % tables.choice.shape[1]
    all_factors(augmented.model, augmented.work.slope, choice, atom, var, offset, rule, tables.xi)


def run_offsets(augmented: Augmented, choice: IntArray) -> tuple[IntArray, int]:
    """Where the factors of each pair begin if they are stored one after the other, and their
    number.
    """
    sizes = np.diff(augmented.core.transitions.row_start)
    offsets = offsets_from_lengths(sizes[choice.reshape(-1)])
    return offsets[:-1].reshape(choice.shape), int(offsets[-1])


def make_arrive(augmented: Augmented, tables: Tables, rule: int) -> None:
    """Give detours to the pairs from which the policy would never arrive."""
    model, work = augmented.model, augmented.work
    nearest = Nearest(*frozen(*borders_of(model.atoms, model.own)))
    # Nobody gets to atoms that a state does not have.
    arrives = ~model.own[model.grid[: augmented.n]]
    order = np.arange(augmented.n)
    while not mark_arriving(
        model, order, nearest, tables.choice, tables.offset, tables.xi, arrives
    ):
        regret = np.full(arrives.shape, np.inf)
        found = Detours(tables.choice.copy(), tables.var.copy(), regret)
        find_detours(model, work, nearest, arrives, rule, new_scratch(model), found)
        taken = regret <= regret.min() + SAME_REGRET
        choice, var = found.choice[taken], found.var[taken]
        offset, total = run_offsets(augmented, choice)
        # Their factors go to the end of the list.
        offset, xi = offset + len(tables.xi), np.append(tables.xi, np.empty(total))
        pairs = choice, np.ascontiguousarray(np.nonzero(taken)[1]), var, offset
        all_factors(model, work.slope, *pairs, rule, xi)
        tables.choice[taken], tables.var[taken] = choice, var
        tables.offset[taken], tables.xi = offset, xi
        tables.detours += int(taken.sum())


def _over_states(
    augmented: Augmented, tables: Tables
) -> tuple[NDArray[np.int32], IntArray, FloatArray]:
    """Choices, offsets and factors over the model's states; -1 and 0 where there are none."""
    ssp, core = augmented.core.ssp, augmented.core
    shape = (ssp.n_states, len(augmented.model.atoms))
    choice, offset = np.full(shape, -1, dtype=np.int32), np.zeros(shape, dtype=np.int64)
    offset[(core.node_of >= 0) & (core.node_of < core.n)] = len(tables.xi)
    leaving = core.choice[tables.choice]
    pairs = ssp.choice_state[leaving], np.arange(shape[1])
    choice[pairs], offset[pairs] = leaving, tables.offset
    if core.zero_cost.max(initial=-1) < 0:
        return choice, offset, tables.xi
    for atom in range(shape[1]):
        choice[:, atom] = core.walks_to(leaving[:, atom])
    unmoved = np.ones(int(np.diff(ssp.choice_outcomes).max(initial=1)))
    return choice, offset, np.append(tables.xi, unmoved)


def factor_sums(augmented: Augmented, tables: Tables) -> FloatArray:
    """sum P xi at every pair (node, atom): 1, but for rounding, unless the factors are the printed
    ones.
    """
    rows = augmented.core.transitions.restrict(tables.choice.reshape(-1))
    first = rows.row_start[:-1]
    position = (tables.offset.reshape(-1) - first)[rows.source] + np.arange(len(rows.target))
    products = rows.probability * tables.xi[position]
    own = augmented.model.own[augmented.model.grid[: augmented.n]].reshape(-1)
    return np.add.reduceat(products, first)[own] if len(first) else products


def warn_of_excess(sums: FloatArray) -> None:
    over = int(np.sum(sums > 1 + SAME_SUM))
    if over:
        warn_caller(
            "the factors F(VaR) / y, taken literally, add up to more than the whole tail at"
            f" {over} of {len(sums)} pairs of state and atom: sum P xi is up to"
            f" {sums.max():.3g}, and the policy assumes larger tails than it has"
        )


def solution_of(
    augmented: Augmented, tables: Tables, progression: Progression, settings: Settings, inner: str
) -> AtomSolution:
    sums = factor_sums(augmented, tables)
    warn_of_excess(sums)
    choice, offset, xi = _over_states(augmented, tables)
    grids = augmented.grids
    if grids is not None:
        choice[~grids.rows()] = -1
    given = augmented.given
    more = Border(given).potential[:, None]
    return AtomSolution(
        ssp=given,
        atoms=augmented.model.atoms,
        value=augmented.core.to_states(augmented.work.value) + more,
        var=augmented.core.to_states(tables.var) + more,
        choice=choice,
        xi_offset=offset,
        xi=xi,
        gamma=augmented.model.outcomes.gamma,
        tolerance=settings.tolerance,
        **vars(progression),
        detours=tables.detours,
        inner=inner,
        start=settings.start,
        factor_rule=settings.factors,
        factor_sum=float(sums.max(initial=1.0)),
        grids=grids,
    )
