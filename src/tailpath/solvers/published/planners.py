"""CVaRVIQ, CVaR value iteration via quantiles (Stanko and Macek 2019), and CVaRVILI, with linear
interpolation (Chow et al. 2015); the paper's section 2, and `docs/planners.md`.

`y V(s, y)` of a state is the area under its quantile function, and between atoms the quantile
function is a step: slope VaR, width the distance of the atoms. The inner problem of the Bellman
operator, `max_xi sum_o P_o I_o(y xi_o) / y` with I_o the `y V` of outcome o's successor, is a
fractional knapsack. *CVaRVIQ* takes the successors' steps in order of falling slope (outcome costs
added), which solves it for all y at once. *CVaRVILI* solves a linear program per state, action and
atom in every sweep, which splits y xi_o into the segments of I_o, and as many once more for the
policy.

The factors xi follow from the VaR of the merged steps: all mass above it, none below. Mass *at* it
is shared among the outcomes in proportion to what they have there, or goes to the first of them, as
at a vertex of a linear program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tailpath.errors import OptionError
from tailpath.external.linear_programs import TailPrograms
from tailpath.graph import BoolArray, FloatArray, IntArray, members
from tailpath.kernels.atom_policy import VERTEX, beats
from tailpath.kernels.quantile import make_linear, write_node
from tailpath.kernels.segments import merge_node, new_scratch
from tailpath.model.ssp import SSP
from tailpath.options import Progress, takes_model, warn_caller
from tailpath.policies.atoms import Atoms
from tailpath.solvers.published.adaptive import ROUNDS, refined
from tailpath.solvers.published.solution import (
    AtomSolution,
    Tables,
    fill_factors,
    greedy_tables,
    make_arrive,
    run_offsets,
    solution_of,
)
from tailpath.solvers.published.sweeps import (
    Augmented,
    Settings,
    Sweep,
    augment,
    iterate,
    merge_sweep,
    start_from_risk_neutral,
)
from tailpath.texts import count


@takes_model
def solve_cvar_quantile(
    ssp: SSP,
    atoms: Atoms | None = None,
    tolerance: float = 1e-3,
    *,
    gamma: float = 1.0,
    max_sweeps: int = 10_000,
    progress: Progress | None = None,
    start: str = "neutral",
    factors: str = "shared",
    adapt: float | None = None,
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
        well below the alpha of interest. A mapping `{state: list}`, or a function of the state,
        gives every state atoms of its own.
    tolerance : float, positive
        Sweeps end when a full one moves no value by more than this.
    gamma : float in (0, 1]
        The discount: costs at stage t count with `gamma ** t`.
    max_sweeps : int, 1 or more
        The most sweeps; beyond it a warning is issued, and the result has `converged=False`.
    progress : callable, optional
        `progress(sweeps, residual)` is called after every sweep.
    start : {"neutral", "zero"}
        Values start above those of the risk-neutral policy and fall, or at 0 and rise as published.
    factors : {"shared", "vertex", "printed"}
        The risk factors of the policy share the mass at the VaR as published, give it to the first
        outcomes, or give all of it to each of them, the formula taken literally: then a warning
        says how far sum P xi exceeds 1.
    adapt : float, positive, optional
        Plan again, with more atoms in a state, as long as interpolation between its atoms, or below
        the first, makes its value wrong by more than this.

    Returns
    -------
    AtomSolution
        `cvar(alpha)`, as predicted, and `policy(alpha)`.

    Raises
    ------
    OptionError
        If an argument lies outside its range.
    GoalUnreachableError
        If the start cannot reach a goal with probability 1.

    Examples
    --------
    >>> planned = tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1])
    >>> round(planned.cvar(0.1), 3)
    30.0
    >>> tp.evaluate(ssp, planned, 0.1).cvar(0.1)
    30.0
    """
    settings = Settings(tolerance, gamma, max_sweeps, start, factors, adapt)
    return solve_by_sweeps(ssp, atoms, settings, MERGING, progress, "quantile")


class Operator(NamedTuple):
    """How a planner solves its inner problems: in sweeps, and for the policy at the end."""

    sweep: Callable[[Augmented], Sweep]
    tables: Callable[[Augmented, int], Tables]


#: By merged segments.
MERGING = Operator(merge_sweep, greedy_tables)


def solve_by_sweeps(
    ssp: SSP,
    atoms: Atoms | None,
    settings: Settings,
    operator: Operator,
    progress: Progress | None,
    inner: str,
) -> AtomSolution:
    """Values by sweeps of an operator, and the policy that is greedy for them; again with more
    atoms as long as states lack some, if they are to adapt.
    """

    def plan(atoms: Atoms | None) -> AtomSolution:
        tolerance = settings.tolerance
        augmented = augment(ssp, atoms, settings)
        if settings.start == "neutral":
            start_from_risk_neutral(augmented, tolerance)
        sweep = operator.sweep(augmented)
        progression = iterate(sweep, tolerance, settings.max_sweeps, progress)
        tables = operator.tables(augmented, settings.rule)
        if not progression.converged:
            warn_caller(
                f"no convergence within {count(progression.sweeps, 'sweep')}: the last one still"
                f" moved a value by {progression.residual:.3g}, the tolerance is {tolerance:g}"
            )
        make_arrive(augmented, tables, settings.rule)
        return solution_of(augmented, tables, progression, settings, inner)

    solution = plan(atoms)
    first, sweeps = float(solution.atoms[0]), solution.sweeps
    for _ in range(ROUNDS if settings.adapt is not None else 0):
        finer = refined(solution, settings, first)
        if finer is None:
            break
        solution = plan(finer)
        sweeps += solution.sweeps
    return replace(solution, sweeps=sweeps)


@takes_model
def solve_cvar_interpolation(
    ssp: SSP,
    atoms: Atoms | None = None,
    tolerance: float = 1e-3,
    inner: str = "lp",
    *,
    gamma: float = 1.0,
    max_sweeps: int = 10_000,
    progress: Progress | None = None,
    start: str = "neutral",
    factors: str = "vertex",
    adapt: float | None = None,
) -> AtomSolution:
    """CVaRVILI: predicted CVaR and VaR, a policy and its risk factors, for every state and atom.

    The prediction is in general neither the CVaR of the policy nor the least CVaR there is;
    `evaluate` says what the policy delivers, and `solve_cvar_exact` finds the optimum.

    Parameters
    ----------
    ssp : SSP
        The model.
    atoms : array of float, mapping or callable, optional
        As in `solve_cvar_quantile`.
    tolerance : float, positive
        Sweeps end when a full one moves no value by more than this.
    inner : {"lp", "greedy"}
        Solve every inner problem as a linear program by HiGHS, one after the other, or in closed
        form, hundreds of times faster.
    gamma : float in (0, 1]
        The discount: costs at stage t count with `gamma ** t`.
    max_sweeps : int, 1 or more
        The most sweeps; beyond it a warning is issued, and the result has `converged=False`.
    progress : callable, optional
        `progress(sweeps, residual)` is called after every sweep.
    start : {"neutral", "zero"}
        As in `solve_cvar_quantile`; the planner as published starts from `"zero"`.
    factors : {"vertex", "shared", "printed"}
        As in `solve_cvar_quantile`; the planner as published takes the factors of the linear
        programs' own vertices.
    adapt : float, positive, optional
        As in `solve_cvar_quantile`.

    Returns
    -------
    AtomSolution
        `cvar(alpha)`, as predicted, and `policy(alpha)`; `linear_programs` and `lp_seconds` are the
        number of linear programs solved and the time that took.

    Raises
    ------
    OptionError
        If an argument lies outside its range.
    GoalUnreachableError
        If the start cannot reach a goal with probability 1.

    Examples
    --------
    >>> planned = tp.solve_cvar_interpolation(ssp, [0.1, 0.5, 1], inner="greedy")
    >>> round(planned.cvar(0.1), 3)
    30.0
    """
    settings = Settings(tolerance, gamma, max_sweeps, start, factors, adapt)
    if inner == "greedy":
        return solve_by_sweeps(ssp, atoms, settings, MERGING, progress, inner)
    if inner != "lp":
        raise OptionError(f"unknown inner problem solver {inner!r}; use 'lp' or 'greedy'")
    programs = TailPrograms()
    by_programs = Operator(
        lambda augmented: program_sweep(augmented, programs),
        lambda augmented, rule: _tables(augmented, programs, rule),
    )
    solution = solve_by_sweeps(ssp, atoms, settings, by_programs, progress, inner)
    return replace(solution, linear_programs=programs.solved, lp_seconds=programs.seconds)


def program_sweep(augmented: Augmented, programs: TailPrograms) -> Sweep:
    """The sweep of CVaRVILI: every node, every choice, every atom."""
    model, work = augmented.model, augmented.work

    def sweep() -> float:
        change = 0.0
        for node in range(augmented.n):
            begin, end = model.node_choices[node : node + 2]
            own = model.own[model.grid[node]]
            best = np.min(
                [_areas(augmented, programs, choice, own) for choice in range(begin, end)], axis=0
            )
            make_linear(model, node, best)
            change = max(change, float(write_node(model, work, best, node)))
        return change

    return sweep


def _areas(augmented: Augmented, programs: TailPrograms, choice: int, own: BoolArray) -> FloatArray:
    """y Q(y) of a choice at all atoms that a state has, one program each; 0 at others."""
    load(augmented, programs, choice)
    areas, atoms = np.zeros(len(own)), augmented.model.atoms[own]
    areas[own] = atoms * programs.solve_all(atoms)
    return areas


def load(augmented: Augmented, programs: TailPrograms, choice: int) -> None:
    """The segments of a choice: those of its first outcome, then of its second, and so on."""
    model, slope = augmented.model, augmented.work.slope
    outcomes = model.outcomes
    some = members(outcomes.choice_outcomes, choice)
    slopes = outcomes.cost[some, None] + outcomes.gamma * slope[outcomes.target[some]]
    programs.load(slopes.reshape(-1), np.outer(outcomes.probability[some], model.width).reshape(-1))


def _tables(augmented: Augmented, programs: TailPrograms, rule: int) -> Tables:
    """The greedy choices, with the factors of the programs' vertices, or by another rule."""
    model, scratch = augmented.model, new_scratch(augmented.model)
    choice: IntArray = np.zeros((augmented.n, len(model.atoms)), dtype=np.int64)
    var, runs = np.zeros(choice.shape), [np.empty(0)]
    for node in range(augmented.n):
        merge_node(model, augmented.work, node, scratch)
        own, choices = model.own[model.grid[node]], members(model.node_choices, node)
        areas, factors = [], []
        for k in choices:
            areas.append(_areas(augmented, programs, k, own))
            factors.append(_factors(augmented, programs, k))
        solved = np.cumsum(own) - 1  # of each atom that the state has its number among those
        for i, floor in enumerate((model.atoms * model.floor).tolist()):
            best = 0
            for k in range(1, len(choices) if own[i] else 0):
                best = k if beats(areas[k][i], areas[best][i], floor) else best
            choice[node, i] = choices[best]
            var[node, i] = scratch.var[best, i] if own[i] else 0.0
            # Nobody gets to atoms that a state does not have.
            runs.append(factors[best][solved[i]] if own[i] else np.ones(factors[best].shape[1]))
    offset, _ = run_offsets(augmented, choice)
    tables = Tables(choice, var, offset, np.concatenate(runs))
    if rule != VERTEX:
        fill_factors(augmented, tables, rule)
    return tables


def _factors(augmented: Augmented, programs: TailPrograms, choice: int) -> FloatArray:
    """xi of each outcome at the levels just solved: its share of the tail by its probability."""
    outcomes, shares = augmented.model.outcomes, programs.shares()
    by_outcome = shares.reshape(len(shares), -1, len(augmented.model.atoms)).sum(axis=2)
    return np.asarray(by_outcome / outcomes.probability[members(outcomes.choice_outcomes, choice)])
