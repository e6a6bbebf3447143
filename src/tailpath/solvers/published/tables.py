"""From the values of a planner to its policy, as tables over the model's states.

The policy is greedy with respect to the values returned; choices that tie go to the lower index.
Two things need care.

- *It must arrive.* The values interpolate between atoms while the policy goes on at the nearest
  one, and they may still be a little too low, so a greedy policy could walk in cycles. Pairs (node,
  atom) that cannot arrive take a *detour*: of all choices that may meet a pair that does arrive,
  the one that costs least more, and the cheapest detours first. Every almost sure state has
  such a choice, so in the end all pairs arrive.
- *Zero-cost components* were one node. At each atom its member with the chosen choice takes it; the
  others walk there, at no cost and with xi = 1, which leaves y as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailpath.graph import BoolArray, FloatArray, IntArray, offsets_from_lengths
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
from tailpath.options import warn_caller
from tailpath.policies.atoms import borders_of
from tailpath.solvers.published.augmented import Augmented, Pool, Settings
from tailpath.solvers.published.solution import AtomSolution
from tailpath.solvers.published.sweeps import Progression

#: Detours whose regrets differ by less than this are taken together.
SAME_REGRET = 1e-12
#: A sum of factors beyond 1 by less than this is rounding.
SAME_SUM = 1e-6


@dataclass(eq=False)
class Tables:
    """Decisions over (node, atom): core choices, VaR, and where in `xi` the factors of the outcomes
    begin. `detours` counts the exceptions.
    """

    choice: IntArray
    var: FloatArray
    offset: IntArray
    xi: FloatArray
    detours: int = 0


def greedy_tables(augmented: Augmented, pool: Pool, rule: int) -> Tables:
    """The greedy choices and their factors by the closed form."""
    model, work = augmented.model, augmented.settled
    choice = np.zeros((augmented.n, len(model.atoms)), dtype=np.int64)
    var = np.zeros(choice.shape)

    def choose_some(first: int, last: int, part: int) -> None:
        choose(model, work, first, last, new_scratch(model), choice, var)

    augmented.share(pool, choose_some)
    offset, total = run_offsets(augmented, choice)
    tables = Tables(choice, var, offset, np.empty(total))

    def factors_of_some(first: int, last: int, part: int) -> None:
        fill_factors(augmented, tables, slice(first, last), rule)

    augmented.share(pool, factors_of_some)
    return tables


def fill_factors(augmented: Augmented, tables: Tables, nodes: slice, rule: int) -> None:
    """The factors of the choices of some nodes at every atom."""
    tabled = (tables.choice, tables.var, tables.offset)
    choice, var, offset = (table[nodes].reshape(-1) for table in tabled)
    n_atoms = tables.choice.shape[1]
    atom = np.arange(len(choice)) % n_atoms
    all_factors(augmented.model, augmented.work.slope, choice, atom, var, offset, rule, tables.xi)


def run_offsets(augmented: Augmented, choice: IntArray) -> tuple[IntArray, int]:
    """Where the factors of each pair begin if they are stored one after the other, and how many
    there are.
    """
    offsets = offsets_from_lengths(np.diff(augmented.core.choice_outcomes)[choice.reshape(-1)])
    return offsets[:-1].reshape(choice.shape), int(offsets[-1])


def make_arrive(augmented: Augmented, tables: Tables, rule: int) -> None:
    """Give detours to the pairs from which the policy would never arrive."""
    model, work = augmented.model, augmented.settled
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
        _replace(augmented, tables, taken, found, rule)
        tables.detours += int(taken.sum())


def _replace(
    augmented: Augmented, tables: Tables, taken: BoolArray, found: Detours, rule: int
) -> None:
    """Other choices at some pairs; their factors go to the end of the list."""
    choice, var = found.choice[taken], found.var[taken]
    offset = len(tables.xi) + offsets_from_lengths(np.diff(augmented.core.choice_outcomes)[choice])
    xi = np.append(tables.xi, np.empty(offset[-1] - len(tables.xi)))
    pairs = choice, np.nonzero(taken)[1], var, offset[:-1]
    all_factors(augmented.model, augmented.work.slope, *pairs, rule, xi)
    tables.choice[taken], tables.var[taken] = choice, var
    tables.offset[taken], tables.xi = offset[:-1], xi


def _over_states(
    augmented: Augmented, tables: Tables
) -> tuple[NDArray[np.int32], IntArray, FloatArray]:
    """Choices, offsets and factors over the model's states; -1 and 0 at goals and where no policy
    surely arrives.
    """
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
    formula's.
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
            "the factors F(VaR) / y, to the letter, hand out more than the whole tail at"
            f" {over} of {len(sums)} pairs of state and atom: sum P xi is up to"
            f" {sums.max():.3g}, and the policy believes in larger tails than it has"
        )


def solution_of(
    augmented: Augmented, tables: Tables, progression: Progression, settings: Settings, inner: str
) -> AtomSolution:
    """Everything over the model's own states."""
    sums = factor_sums(augmented, tables)
    warn_of_excess(sums)
    choice, offset, xi = _over_states(augmented, tables)
    grids = augmented.grids
    if grids is not None:
        choice[~grids.rows()] = -1
    given = augmented.given
    more = given.reduction.values[:, None] if given.signed else 0.0
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
        residual=progression.residual,
        sweeps=progression.sweeps,
        converged=progression.converged,
        detours=tables.detours,
        inner=inner,
        start=settings.start,
        factors=settings.factors,
        factor_sum=float(sums.max(initial=1.0)),
        grids=grids,
    )
