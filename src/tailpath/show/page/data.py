"""What the page shows, as plain data: policies at every alpha, with their distributions, worst
runs, blame, and words about them.

First stands the policy with the least expected cost, last the one with the least CVaR; between them
those that were asked for: policies of one's own, and the plans of methods by name. Where a policy
remembers a budget or an atom, its decisions are told for all of them, otherwise those it takes most
often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import LimitExceededError, ModelError, OptionError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import Array, FloatArray, members
from tailpath.methods.comparison import Update, given_row
from tailpath.methods.method import Plan, find_method
from tailpath.model.checks import same_numbering
from tailpath.model.ssp import SSP, Name
from tailpath.pictures.states import layers
from tailpath.policies.atoms import AtomPolicy
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.display import met_most, usual_choices
from tailpath.policies.kinds import MarkovPolicy
from tailpath.policies.policy import Policy
from tailpath.policies.unrolling import unroll
from tailpath.policies.visits import Visits
from tailpath.show.page.sentences import above, sentences
from tailpath.show.runs import worst_runs
from tailpath.show.traces import Trace, WorstRuns
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.solvers.expectation import solve_expected
from tailpath.texts import name as name_in_words

ALPHAS = (0.5, 0.2, 0.1, 0.05, 0.01, 0.001)
AVERAGE, BEST = "average-best", "optimal"
#: Runs shown of each policy, outcomes blamed in a list, points of a curve, weights of the frontier.
RUNS, BLAMED = 3, 6
POINTS, WEIGHTS = 41, (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
#: Levels of a distribution worth a point of its own.
MAX_LEVELS = 400
#: Tails are shown until so small a part of alpha remains of the runs that arrive.
LEAST_SHOWN = 1e-3


class Case(NamedTuple):
    """One policy at one alpha, with its chain."""

    policy: Policy
    costs: CostDistribution
    worst: WorstRuns | None
    chain: CostChain


class Asked(NamedTuple):
    """What a page is asked for, as of `page`."""

    title: str
    alphas: Sequence[float]
    policies: Mapping[str, Any]
    methods: Sequence[str]
    unit: str


def page_data(ssp: SSP, asked: Asked, progress: Update = lambda text: None) -> dict[str, Any]:
    """All that `policies.js` needs."""
    alphas = sorted(asked.alphas, reverse=True)
    if ssp.reduced.cost_unit is None:  # here there is no delta to give
        raise ModelError(
            "the costs have no common unit that is coarse enough to count in, which a page needs;"
            " round the costs of the model"
        )
    names, plans = zip(*_plans(ssp, asked, alphas[-1], progress))
    cases = []
    for alpha in alphas:
        progress(f"alpha {alpha:g}")
        cases.append([_case(ssp, plan.policy(alpha), alpha, alphas[-1]) for plan in plans])
    scene = scene_of(ssp, np.sum([_weight(ssp, case) for row in cases for case in row], axis=0))
    shown = [place["state"] for place in scene["places"]]
    tables: dict[str, tuple[int, Any]] = {}  # the same decisions at several alphas are stored once
    predictions = [[plan.predict(alpha) for plan in plans] for alpha in alphas]
    described = [
        [_described(ssp, case, row[-1].costs.cvar(alpha), alpha, shown, tables) for case in row]
        for row, alpha in zip(cases, alphas)
    ]
    return {
        "name": asked.title,
        "costs": asked.unit,
        "states": ssp.n_states,
        "choices": ssp.n_choices,
        "start": ssp.start_index,
        # Where some cost is negative, budgets count beyond the least cost to go from a state.
        "ahead": ssp.reduction.values.tolist() if ssp.signed else None,
        "alphas": alphas,
        "scene": scene,
        "names": names,
        "cases": described,
        "tables": [table for _, table in tables.values()],
        "predicted": predictions,
        "curves": [_curve(plan, alphas, own) for plan, own in zip(plans, zip(*cases))],
        "frontier": [_frontier(ssp, alpha, progress) for alpha in alphas],
        "words": [
            sentences(ssp, alpha, dict(zip(names, row)), dict(zip(names, known)), asked.unit)
            for row, known, alpha in zip(cases, predictions, alphas)
        ],
    }


def _plans(ssp: SSP, asked: Asked, least: float, progress: Update) -> list[tuple[str, Plan]]:
    """All by name; only that of the optimum has its solution, which knows the curve."""
    own = [given_row(ssp, name, given) for name, given in asked.policies.items()]
    progress("the average-best policy")
    average = solve_expected(ssp).policy
    progress("the optimum")
    best = solve_cvar_exact(ssp, least)
    found = [(AVERAGE, Plan(lambda alpha: average)), *((row.name, row.plan) for row in own)]
    for method in map(find_method, asked.methods):
        progress(method.label)
        plan = method.make(ssp, least, {})
        found.append((method.label, Plan(plan.policy, plan.predict)))
    found.append((BEST, Plan(best.policy, solution=best)))
    names = [name for name, _ in found]
    for name in [name for k, name in enumerate(names) if name in names[:k]][:1]:
        raise OptionError(
            f"two policies of the page would be called {name!r}: give yours another name"
        )
    return found


def _case(ssp: SSP, policy: Policy, alpha: float, least: float) -> Case:
    try:
        worst = worst_runs(ssp, policy, alpha, RUNS)
    except (OptionError, LimitExceededError):  # too large to be looked at run by run
        worst = None
    return Case(policy, evaluate(ssp, policy, least), worst, unroll(ssp, policy))


def _weight(ssp: SSP, case: Case) -> FloatArray:
    """How much each state matters to a policy: how often it is met, and which part of the setbacks
    is its own.
    """
    weight = usual_choices(ssp, case.policy, case.chain)[1]
    if case.worst is not None:
        excess = max(case.worst.excess, 1e-300)
        for row in case.worst.blame:
            weight[ssp.state_index(row.state)] += max(row.setback, 0.0) / excess
    return weight


def _curve(plan: Plan, alphas: Sequence[float], cases: Sequence[Case]) -> list[tuple[float, float]]:
    """CVaR against alpha: fine where the policy is the same for all or the curve is known, and
    otherwise at the alphas asked for.
    """
    first, least = cases[0], alphas[-1]
    points = POINTS if least < 1 else 1
    fine = np.geomspace(least, 1.0, points).clip(least, 1.0).tolist()
    if plan.solution is not None:
        return list(zip(fine, plan.solution.curve(fine).tolist()))
    if any(case.policy is not first.policy for case in cases):
        return [(alpha, case.costs.cvar(alpha)) for alpha, case in zip(alphas, cases)]
    return [(alpha, first.costs.cvar(alpha)) for alpha in fine]


def _decisions(ssp: SSP, case: Case, shown: Sequence[int]) -> dict[str, Any]:
    """What a policy does at the states shown, by what it remembers: changes `[from memory,
    position]`.
    """
    policy = case.policy
    if isinstance(policy, BudgetPolicy) and same_numbering(policy.ssp, ssp):
        return {
            "remembers": "budget",
            "unit": float(policy.unit),
            "spare": int(policy.deadline),
            "decisions": [_steps_of(policy, state) for state in shown],
        }
    if isinstance(policy, AtomPolicy) and same_numbering(policy.ssp, ssp):
        rows = _positions(ssp, policy.choice[shown], shown)
        return {
            "remembers": "atom",
            "atoms": policy.atoms.tolist(),
            "decisions": [_runs_of(row) for row in rows],
        }
    choices = usual_choices(ssp, policy, case.chain)[0]
    known = policy.choices_for(ssp) if isinstance(policy, MarkovPolicy) else None
    positions = _positions(ssp, (choices if known is None else np.asarray(known))[shown], shown)
    remembers = "nothing" if isinstance(policy, MarkovPolicy) else "more"
    return {"remembers": remembers, "decisions": [[[0, int(position)]] for position in positions]}


def _positions(ssp: SSP, choices: Array, shown: Sequence[int]) -> Array:
    """Choices by position among those of their state; -1 where there is none."""
    first = ssp.state_choices[:-1][list(shown)]
    wide = first if choices.ndim == 1 else first[:, None]
    return np.where(choices >= 0, choices - wide, -1)


def _steps_of(policy: BudgetPolicy, state: int) -> list[list[int]]:
    """The choices of a state as `[from budget, position]`, one for each change."""
    steps, first = members(policy.first, state), int(policy.ssp.state_choices[state])
    changes = [(0, policy.risk_neutral[state])]
    changes += [(policy.from_budget[step], policy.choice[step]) for step in steps]
    return [[int(budget), int(k) - first if k >= 0 else -1] for budget, k in changes]


def _runs_of(row: Array) -> list[list[int]]:
    """A row of positions by memory as `[from, position]`, one for each change."""
    changes = np.flatnonzero(np.diff(row)) + 1
    return [[int(at), int(row[at])] for at in (0, *changes.tolist())]


def _met(chain: CostChain, shown: Sequence[int], counted: bool) -> list[Any]:
    """Per shown state: how often a run is there, the memory it most often has there, and the
    memories it may have, as `[from, to]`; 0 if never.

    Memories that are no numbers are not `counted`.
    """
    known = counted and chain.memory is not None
    memory = np.asarray(chain.memory) if known else np.zeros(chain.n, dtype=np.int64)
    visits = Visits(chain).expected if chain.n else np.zeros(0)
    found: dict[int, list[Any]] = {}
    for node in np.lexsort((memory, chain.state)).tolist():
        state, at = int(chain.state[node]), int(memory[node])
        often = float(visits[node])
        entry = found.setdefault(state, [0.0, at, [], 0.0])
        entry[0] += often
        if often > entry[3]:
            entry[1], entry[3] = at, often
        if entry[2] and entry[2][-1][1] >= at - 1:
            entry[2][-1][1] = at
        else:
            entry[2].append([at, at])
    return [found[state][:3] if state in found else 0 for state in shown]


def _described(
    ssp: SSP,
    case: Case,
    least: float,
    alpha: float,
    shown: Sequence[int],
    tables: dict[str, tuple[int, Any]],
) -> dict[str, Any]:
    """A case, how far it lies above the least CVaR, and the number of its table of decisions,
    which is added to `tables` if it is new.
    """
    costs = case.costs
    # Beyond these a run that will arrive looks like those that never do.
    known = int(np.searchsorted(-costs.tails, -(costs.unreached + LEAST_SHOWN * alpha))) + 1
    step = max(1, min(len(costs.costs), known) // MAX_LEVELS)
    table = _decisions(ssp, case, shown)
    number, _ = tables.setdefault(repr(table), (len(tables), table))
    return {
        "mean": costs.mean,
        "var": costs.var(alpha),
        "cvar": costs.cvar(alpha),
        "above": above(costs.cvar(alpha), least),
        "memory": getattr(case.policy, "budget", getattr(case.policy, "start_atom", 0)),
        "costs": costs.costs[:known:step].tolist(),
        "tails": costs.tails[:known:step].tolist(),
        "table": number,
        "met": _met(case.chain, shown, "atoms" in table or "unit" in table),
        **_worst(ssp, case.worst),
    }


def _worst(ssp: SSP, worst: WorstRuns | None) -> dict[str, Any]:
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
                "states": [ssp.state_index(state) for state in _visited(run)],
                "names": [name_in_words(state) for state in _visited(run)],
                "actions": [name_in_words(step.action) for step in run],
                "costs": [step.cost for step in run],
                "memories": [step.memory for step in run],
            }
            for run in worst
            if len(run)
        ],
        "blame": [[state, *entry] for state, entry in by_state.items()],
        "blamed": [
            [*map(name_in_words, row[:3]), row.cost, row.setback / setbacks]
            for row in blamed
            if row.setback > 0
        ],
    }


def _visited(run: Trace) -> list[Name]:
    """The states of a run, from the first to the last."""
    return [*(step.state for step in run), run[-1].next_state]


def _frontier(ssp: SSP, alpha: float, progress: Update) -> list[tuple[float, float]]:
    """Mean and CVaR of the policies that minimise a weighted sum of the two; between them lie
    mixtures by a coin at the start.
    """
    progress(f"the frontier at alpha {alpha:g}")
    points = []
    for weight in WEIGHTS:
        policy = solve_cvar_exact(ssp, alpha, weight == 1, weight=weight).policy(alpha)
        costs = evaluate(ssp, policy, alpha)
        points.append((costs.mean, costs.cvar(alpha)))
    return sorted(set(points))


#: Cells of a map and states of a graph that can still be told apart on a screen, and states of
#: those that are too large.
MAX_CELLS, MAX_NODES = 2_500, 250
MAX_MET = 30


# ---------------------------------------------------------------------- where states are drawn


def scene_of(ssp: SSP, weight: FloatArray) -> dict[str, Any]:
    """Where states are drawn, and their choices: on the model's own map, as a graph in layers, or,
    where there are too many, those with the most `weight`.
    """
    geometry = ssp.geometry
    kind, states = "graph", list(range(ssp.n_states))
    if geometry is None or ssp.n_states > MAX_CELLS:
        if ssp.n_states > MAX_NODES:
            kind, states = "part", met_most(ssp, weight, MAX_MET)
        x, y, width, height = layers(ssp, states)
    else:
        kind, states = "map", [s for s in states if geometry.row[s] >= 0]
        x, y = ([cell + 0.5 for cell in cells] for cells in (geometry.column, geometry.row))
        width, height = geometry.columns, geometry.rows
    return {
        "kind": kind,
        "width": width,
        "height": height,
        "places": [_place(ssp, state, x[state], y[state]) for state in states],
        "choices": _choices(ssp, states),
    }


def _place(ssp: SSP, state: int, x: float, y: float) -> dict[str, Any]:
    kind = "goal" if ssp.is_goal[state] else "start" if state == ssp.start_index else ""
    if ssp.geometry is not None and ssp.geometry.kind[state]:
        kind = ssp.geometry.kind[state]
    return {
        "state": state,
        "x": x,
        "y": y,
        "name": name_in_words(ssp.states[state]),
        "kind": kind,
        "goal": bool(ssp.is_goal[state]),
    }


def _choices(ssp: SSP, states: Iterable[int]) -> list[list[dict[str, Any]]]:
    """Per state its choices in order: name and outcomes `[target, probability, cost]`, the
    likeliest move first.
    """
    found = []
    for state in states:
        choices = []
        for k in members(ssp.state_choices, state):
            span = slice(*ssp.choice_outcomes[k : k + 2].tolist())
            columns = ssp.outcome_target, ssp.outcome_probability, ssp.outcome_cost
            rows = [list(row) for row in zip(*(column[span].tolist() for column in columns))]
            rows.sort(key=lambda row: (row[0] == state, -row[1]))
            choices.append({"name": name_in_words(ssp.choice_name(k)), "outcomes": rows})
        found.append(choices)
    return found
