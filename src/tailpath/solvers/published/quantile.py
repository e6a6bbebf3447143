"""CVaRVIQ: CVaR value iteration via quantiles (Stanko and Macek 2019; the paper's section 2).

`y V(s, y)` of a state is the area under its quantile function, and between atoms the quantile
function is a step: slope VaR, width the distance of the atoms. The inner problem of the Bellman
operator, `max_xi sum_o P_o I_o(y xi_o) / y` with concave piecewise-linear I_o, is a fractional
knapsack, so taking the successors' steps in order of falling slope (outcome costs added) solves it
exactly for all y at once: one merge instead of one linear program per atom. Sweeps, order and
stopping rule are those of `solvers.sweeps`.

The factors xi follow from the VaR of the merged steps: all mass above it, none below. Mass *at* it
is shared among the outcomes in proportion to what they have there, as in the authors' code
(github.com/Silvicek/cvar-algorithms, `single_var_yc_xis_from_t` in
`cvar/gridworld/core/cvar_computation.py`). *The published planner* is `start="zero"`: the same
operator, fixed point and factors. The formula as it is printed, xi = F(VaR) / y, is shorthand: to
the letter it gives all mass at the VaR to each outcome, and where several have some sum P xi
exceeds 1; `factors="printed"` keeps it for contrast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tailpath.model.ssp import SSP
from tailpath.options import Progress, takes_model
from tailpath.policies.atoms import Atoms
from tailpath.solvers.published.augmented import Augmented, Pool, Settings, augment
from tailpath.solvers.published.solution import AtomSolution
from tailpath.solvers.published.sweeps import (
    SLACK,
    Sweep,
    iterate,
    merge_sweep,
    pool_for,
    start_from_risk_neutral,
    warn_unless_converged,
)
from tailpath.solvers.published.tables import Tables, greedy_tables, make_arrive, solution_of


@takes_model
def solve_cvar_quantile(
    ssp: SSP,
    atoms: Atoms | None = None,
    tolerance: float = 1e-3,
    *,
    gamma: float = 1.0,
    max_sweeps: int = 10_000,
    threads: int | None = None,
    progress: Progress | None = None,
    start: str = "neutral",
    factors: str = "shared",
) -> AtomSolution:
    """CVaRVIQ: predicted CVaR and VaR, and a policy, for every state and atom.

    The prediction is in general neither the CVaR of the policy nor the least CVaR there is;
    `evaluate` says what the policy delivers, and `solve_cvar_exact` finds the optimum.

    Parameters
    ----------
    ssp : SSP
        The model.
    atoms : array of float, mapping or callable, optional
        Tail masses in (0, 1], rising to 1; by default 25, log-spaced from 1e-3. Choose the first
        well below the alpha you are after. A mapping `{state: list}`, or a function of the state,
        gives every state atoms of its own.
    tolerance : float, positive
        Sweeps end when a full one moves no value by more.
    gamma : float in (0, 1]
        The discount: costs at stage t count with `gamma ** t`.
    max_sweeps : int, 1 or more
        After so many a warning says so, and the result has `converged=False`.
    threads : int, 1 or more, optional
        The most threads; by default all processors. The result does not depend on it.
    progress : callable, optional
        `progress(sweeps, residual)` is called after every sweep.
    start : {"neutral", "zero"}
        Values start above those of the risk-neutral policy and fall, or at 0 and rise as published.
    factors : {"shared", "vertex", "printed"}
        The risk factors of the policy share the mass at the VaR as published, give it to the first
        outcomes, or give all of it to each of them, the formula to the letter: then a warning says
        how far sum P xi exceeds 1.

    Returns
    -------
    AtomSolution
        `cvar(alpha)`, as predicted, and `policy(alpha)`.

    Raises
    ------
    OptionError
        If an argument lies outside its range.
    GoalUnreachableError
        If the start cannot surely reach a goal.

    Examples
    --------
    >>> planned = tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1])
    >>> round(planned.cvar(0.1), 3)
    30.0
    >>> tp.evaluate(ssp, planned, 0.1).cvar(0.1)
    30.0
    """
    settings = Settings(tolerance, gamma, max_sweeps, start, factors)
    return solve_by_sweeps(ssp, atoms, settings, MERGING, threads, progress, "quantile")


class Operator(NamedTuple):
    """How a planner solves its inner problems: by sweeps over the values, and for the policy at the
    end, by `settings.rule`.
    """

    sweep: Callable[[Augmented, Pool, float], Sweep]
    tables: Callable[[Augmented, Pool, int], Tables]


#: By merged segments.
MERGING = Operator(merge_sweep, greedy_tables)


def solve_by_sweeps(
    ssp: SSP,
    atoms: Atoms | None,
    settings: Settings,
    operator: Operator,
    threads: int | None,
    progress: Progress | None,
    inner: str,
) -> AtomSolution:
    """Values by sweeps of an operator, and the policy that is greedy for them; `settings.factors`
    decides how mass at the VaR goes to the outcomes (see `kernels.atom_policy.factors`).
    """
    tolerance = settings.tolerance
    augmented = augment(ssp, atoms, settings)
    with pool_for(augmented, threads) as pool:
        if settings.start == "neutral":
            start_from_risk_neutral(augmented, pool, tolerance)
        sweep = operator.sweep(augmented, pool, SLACK * tolerance)
        progression = iterate(augmented, sweep, tolerance, settings.max_sweeps, progress)
        tables = operator.tables(augmented, pool, settings.rule)
    warn_unless_converged(progression, tolerance)
    make_arrive(augmented, tables, settings.rule)
    return solution_of(augmented, tables, progression, settings, inner)
