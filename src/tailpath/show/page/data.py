"""What the page shows, as plain data: three policies at every alpha, with their distributions, worst runs, blame, and words about them.

| policy | remembers |
| --- | --- |
| average-best, the least expected cost | nothing |
| published planner, CVaRVIQ on a grid of atoms | the atom y |
| optimal, the least CVaR of any policy | the budget left |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import ModelError, OptionError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
from tailpath.model.ssp import SSP
from tailpath.options import check_invertible_alpha
from tailpath.policies.atoms import log_atoms
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import Policy
from tailpath.policies.unrolling import unroll
from tailpath.policies.visits import Visits
from tailpath.show.page.scene import FEW, can_be_drawn, scene_of
from tailpath.show.page.sentences import sentences
from tailpath.show.runs import WorstRuns, worst_runs
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.published.quantile import solve_cvar_quantile
from tailpath.texts import name as name_in_words

ALPHAS = (0.5, 0.2, 0.1, 0.05, 0.01, 0.001)
NAMES = ("average-best", "published planner", "optimal")
#: Runs told of each policy, outcomes blamed in a list, atoms of the published planner, points of a curve, weights of the frontier.
RUNS, BLAMED, ATOMS, POINTS, WEIGHTS = 3, 6, 25, 41, (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
#: Levels of a distribution worth a point of its own.
MOST_LEVELS = 400

#: Told, in words, what is being worked on.
Tell = Callable[[str], None]


def silent(text: str) -> None:
    pass


class Case(NamedTuple):
    """One policy at one alpha."""

    policy: Policy
    costs: CostDistribution
    worst: WorstRuns | None


def page_data(ssp: SSP, name: str, alphas: Sequence[float] = ALPHAS, tell: Tell = silent) -> dict[str, Any]:
    """All that `page.js` needs."""
    alphas = sorted({check_invertible_alpha(a) for a in alphas}, reverse=True)
    least = alphas[-1]
    if ssp.cost_unit is None:  # here there is no delta to give
        raise ModelError(
            "the costs have no common unit that is coarse enough to count in, which a page needs; round the costs of the model"
        )
    tell("the average-best policy")
    average = solve_expected(ssp)
    tell("the optimum")
    best = solve_cvar_exact(ssp, least)
    tell("the published planner")
    plan = solve_cvar_quantile(ssp, log_atoms(least / 10, ATOMS))
    cases = []
    for alpha in alphas:
        tell(f"alpha {alpha:g}")
        cases.append([_case(ssp, policy, alpha, least) for policy in (average.policy, plan.policy(alpha), best.policy(alpha))])
    scene = scene_of(ssp, () if can_be_drawn(ssp) else _that_matter(ssp, cases))
    shown = [place["state"] for place in scene["places"]]
    fine = np.geomspace(least, 1.0, POINTS).tolist() if least < 1 else [1.0]
    first = cases[0][0].costs
    return {
        "name": name,
        "states": ssp.n_states,
        "choices": ssp.n_choices,
        "start": ssp.start_index,
        "unit": float(best.policy(least).unit),
        "alphas": alphas,
        "scene": scene,
        "names": NAMES,
        "decisions": [
            [_runs_of(np.array([position])) for position in _positions(ssp, average.choices[shown], shown)],
            [_runs_of(row) for row in _positions(ssp, plan.policy(alphas[0]).choice[shown], shown)],
            [_steps_of(best.policy(least), state) for state in shown],
        ],
        "atoms": plan.atoms.tolist(),
        "cases": [[{**_told(ssp, case, alpha), "met": _met(ssp, case.policy, shown)} for case in row] for row, alpha in zip(cases, alphas)],
        "curve": {
            "alphas": fine,
            "average-best": [first.cvar(a) for a in fine],
            "optimal": best.curve(fine).tolist(),
            "predicted": [plan.cvar(alpha) for alpha in alphas],
        },
        "frontier": [_frontier(ssp, alpha, tell) for alpha in alphas],
        "words": [sentences(ssp, alpha, row[0], row[1], row[2], plan.cvar(alpha)) for row, alpha in zip(cases, alphas)],
    }


def _case(ssp: SSP, policy: Policy, alpha: float, least: float) -> Case:
    try:
        worst = worst_runs(ssp, policy, alpha, RUNS)
    except OptionError:  # too large to be looked at run by run
        worst = None
    return Case(policy, evaluate(ssp, policy, least), worst)


def _that_matter(ssp: SSP, cases: list[list[Case]]) -> list[int]:
    """The states at which bad runs of the policies turn bad, or are at all, the most."""
    weight: dict[int, float] = {}
    for row in cases:
        for case in row:
            for blame in case.worst.blame if case.worst else ():
                state = ssp.state_index(blame.state)
                weight[state] = weight.get(state, 0.0) + max(blame.setback, 0.0) / max(case.worst.excess if case.worst else 1.0, 1e-300)
    goal = int(np.flatnonzero(ssp.is_goal)[0])
    return [*sorted(weight, key=lambda state: -weight[state])[: FEW - 2], goal]


def _positions(ssp: SSP, choices: NDArray[Any], shown: Sequence[int]) -> NDArray[Any]:
    """Choices as places among those of their state; -1 where there is none."""
    first = ssp.state_choices[:-1][list(shown)]
    wide = first if choices.ndim == 1 else first[:, None]
    return np.where(choices >= 0, choices - wide, -1)


def _steps_of(policy: BudgetPolicy, state: int) -> list[list[int]]:
    """The choices of a state as `[from budget, position]`, one for each change."""
    begin, end, first = int(policy.first[state]), int(policy.first[state + 1]), int(policy.ssp.state_choices[state])
    changes = zip([0, *policy.from_budget[begin:end].tolist()], [int(policy.risk_neutral[state]), *policy.choice[begin:end].tolist()])
    return [[budget, choice - first if choice >= 0 else -1] for budget, choice in changes if budget <= policy.budget]


def _runs_of(row: NDArray[Any]) -> list[list[int]]:
    """A row of positions by memory as `[from, position]`, one for each change."""
    changes = np.flatnonzero(np.diff(row)) + 1
    return [[int(at), int(row[at])] for at in (0, *changes.tolist())]


def _met(ssp: SSP, policy: Policy, shown: Sequence[int]) -> list[Any]:
    """Per shown state: how often a run is there, the memory it most often has there, and the memories it may have, as `[from, to]`; 0 if never."""
    chain = unroll(ssp, policy)
    memory = np.zeros(chain.n, dtype=np.int64) if chain.memory is None else np.asarray(chain.memory)
    visits = Visits(chain).expected if chain.n else np.zeros(0)
    found: dict[int, list[Any]] = {}
    for node in np.lexsort((memory, chain.state)).tolist():
        state, at, often = int(chain.state[node]), int(memory[node]), float(visits[node])
        entry = found.setdefault(state, [0.0, at, [], 0.0])
        entry[0] += often
        if often > entry[3]:
            entry[1], entry[3] = at, often
        if entry[2] and entry[2][-1][1] == at - 1:
            entry[2][-1][1] = at
        else:
            entry[2].append([at, at])
    return [found[state][:3] if state in found else 0 for state in shown]


def _told(ssp: SSP, case: Case, alpha: float) -> dict[str, Any]:
    costs = case.costs
    step = max(1, len(costs.costs) // MOST_LEVELS)
    return {
        "mean": costs.mean,
        "var": costs.var(alpha),
        "cvar": costs.cvar(alpha),
        "memory": getattr(case.policy, "budget", getattr(case.policy, "start_atom", 0)),
        "costs": costs.costs[::step].tolist(),
        "tails": costs.tails[::step].tolist(),
        **_told_worst(ssp, case.worst),
    }


def _told_worst(ssp: SSP, worst: WorstRuns | None) -> dict[str, Any]:
    if worst is None:
        return {"chance": None, "excess": None, "runs": [], "blame": [], "blamed": []}
    by_state: dict[int, list[float]] = {}
    setbacks = sum(max(row.setback, 0.0) for row in worst.blame)
    for row in worst.blame:
        entry = by_state.setdefault(ssp.state_index(row.state), [0.0, 0.0])
        entry[0] += max(row.setback, 0.0) / setbacks
        entry[1] += row.share / worst.excess
    blamed = sorted(worst.blame, key=lambda row: -row.setback)[:BLAMED]
    return {
        "chance": worst.chance,
        "excess": worst.excess,
        "runs": [
            {
                "probability": run.probability,
                "cost": run.cost,
                "states": [ssp.state_index(step.state) for step in run] + [ssp.state_index(run[-1].next_state)],
                "names": [name_in_words(step.state) for step in run] + [name_in_words(run[-1].next_state)],
                "actions": [name_in_words(step.action) for step in run],
                "costs": [step.cost for step in run],
                "memories": [step.memory for step in run],
            }
            for run in worst
        ],
        "blame": [[state, *entry] for state, entry in by_state.items()],
        "blamed": [
            [name_in_words(row.state), name_in_words(row.action), name_in_words(row.next_state), row.cost, row.setback / setbacks]
            for row in blamed
            if row.setback > 0
        ],
    }


def _frontier(ssp: SSP, alpha: float, tell: Tell) -> list[tuple[float, float]]:
    """Mean and CVaR of the policies that minimise a weighted sum of the two; between them lie mixtures by a coin at the start."""
    tell(f"the frontier at alpha {alpha:g}")
    points = []
    for weight in WEIGHTS:
        policy = solve_cvar_exact(ssp, alpha, weight == 1, weight=weight).policy(alpha)
        costs = evaluate(ssp, policy, alpha)
        points.append((costs.mean, costs.cvar(alpha)))
    return sorted(set(points))
