"""What the page shows, as plain data: policies at every alpha, with their distributions, worst
runs, blame, and words about them.

First stands the policy with the least expected cost, last the one with the least CVaR; between them
those that were asked for: policies of one's own, and the plans of methods by name. Where a policy
remembers a budget or an atom, its decisions are told for all of them, otherwise those it takes most
often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError, OptionError
from tailpath.evaluation.evaluate import evaluate_inside
from tailpath.graph import Array, FloatArray, members
from tailpath.methods.comparison import Update, given_row
from tailpath.methods.method import Plan, find_method
from tailpath.model.border import rounded
from tailpath.model.checks import same_numbering
from tailpath.model.ssp import SSP, Name
from tailpath.pictures.states import layers
from tailpath.policies.atoms import AtomPolicy
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import MarkovPolicy
from tailpath.show.display import met_most
from tailpath.show.followed import Followed
from tailpath.show.page.places import places_of
from tailpath.show.page.sentences import above, headline, sentences
from tailpath.show.runs import bad_runs
from tailpath.show.traces import Trace, WorstRuns
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.solve import solve
from tailpath.texts import name as name_in_words

ALPHAS: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.01, 0.001)
AVERAGE, BEST = "average-best", "optimal"
#: Runs shown of each policy, outcomes blamed in a list, points of a curve, weights of the frontier.
RUNS, BLAMED = 3, 6
POINTS, WEIGHTS = 41, (0.1, 0.35, 0.02, 0.6, 0.2, 0.05)
#: Seconds for the frontiers of a page.
SECONDS = 2.0
#: Levels of a distribution worth a point of its own.
MAX_LEVELS = 400
#: Tails are shown until so small a part of alpha remains of the runs that arrive.
LEAST_SHOWN = 1e-3


class Case(NamedTuple):
    """One policy at one alpha: what it does, and its worst runs, if there is a way to look at
    them.
    """

    of: Followed
    worst: WorstRuns | None


class Asked(NamedTuple):
    """What a page is asked for, as of `page`."""

    title: str
    alphas: Sequence[float]
    policies: Mapping[str, Any]
    methods: Sequence[str]
    unit: str
    delta: Any = None
    positions: Any = None


def page_data(ssp: SSP, asked: Asked, progress: Update = lambda text: None) -> dict[str, Any]:
    """All that `policies.js` needs."""
    alphas = sorted(asked.alphas, reverse=True)
    if asked.delta is not None:
        ssp = rounded(ssp, asked.delta, up=True)
    if ssp.reduced.cost_unit is None:
        raise ModelError(
            "the costs have no common unit that is coarse enough to count in, which a page needs;"
            " round them up to multiples of D with --delta D (delta=)"
        )
    places = None if asked.positions is None else places_of(asked.positions, ssp)
    names, plans = zip(*_plans(ssp, asked, alphas[-1], progress))
    policies = [[plan.policy(alpha) for plan in plans] for alpha in alphas]
    # What the alpha does not change is found once for each policy.
    known = {id(one): Followed(ssp, one, alphas[-1]) for row in policies for one in row}
    cases = []
    for alpha, row in zip(alphas, policies):
        progress(f"alpha {alpha:g}")
        cases.append([_case(known[id(one)], alpha) for one in row])
    weight = np.sum([_weight(ssp, case) for row in cases for case in row], axis=0)
    scene = scene_of(ssp, weight, places)
    shown = [place["state"] for place in scene["places"]]
    tables: dict[str, tuple[int, Any]] = {}  # the same decisions at several alphas are stored once
    predictions = [[plan.predict(alpha) for plan in plans] for alpha in alphas]
    described = [
        [_described(ssp, case, row[-1].of.costs.cvar(alpha), alpha, shown, tables) for case in row]
        for row, alpha in zip(cases, alphas)
    ]
    frontiers, weights = _frontiers(ssp, cases, alphas, progress)
    return {
        "name": asked.title,
        "costs": asked.unit,
        "states": ssp.n_states,
        "choices": ssp.n_choices,
        "start": ssp.start_index,
        # Where some cost is negative, budgets count beyond the least cost to go from a state.
        "ahead": ssp.reduction.values.tolist() if ssp.signed else None,
        "alphas": alphas,
        "simulated": max(
            max(case.of.simulated, 0 if case.worst is None else case.worst.simulated)
            for row in cases
            for case in row
        ),
        "scene": scene,
        "names": names,
        "cases": described,
        "tables": [table for _, table in tables.values()],
        "predicted": predictions,
        "curves": [_curve(plan, alphas, own) for plan, own in zip(plans, zip(*cases))],
        "frontier": frontiers,
        "weights": weights,
        "delta": None if asked.delta is None else float(asked.delta),
        "headlines": [
            headline(ssp, alpha, row[0], row[-1], asked.unit) for row, alpha in zip(cases, alphas)
        ],
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


def _case(followed: Followed, alpha: float) -> Case:
    try:
        return Case(followed, bad_runs(followed, alpha, RUNS))
    except OptionError:  # too long to be looked at step by step
        return Case(followed, None)


def _weight(ssp: SSP, case: Case) -> FloatArray:
    """How much each state matters to a policy: how often it is met, and which part of the setbacks
    is its own.
    """
    weight = case.of.visits.copy()
    if case.worst is not None:
        excess = max(case.worst.excess, 1e-300)
        for row in case.worst.blame:
            part = row.share if case.worst.simulated else max(row.setback, 0.0)
            weight[ssp.state_index(row.state)] += part / excess
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
    if any(case.of is not first.of for case in cases):
        return [(alpha, case.of.costs.cvar(alpha)) for alpha, case in zip(alphas, cases)]
    return [(alpha, first.of.costs.cvar(alpha)) for alpha in fine]


def _decisions(ssp: SSP, case: Case, shown: Sequence[int]) -> dict[str, Any]:
    """What a policy does at the states shown, by what it remembers: changes `[from memory,
    position]`.
    """
    policy = case.of.policy
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
    by_state = policy._choices_on(ssp) if isinstance(policy, MarkovPolicy) else None
    choices = case.of.usual if by_state is None else by_state[0]
    positions = _positions(ssp, choices[shown], shown)
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


def _met(case: Case, shown: Sequence[int]) -> list[Any]:
    """Per shown state: how often a run is there, the memory it most often has there, and the
    memories it may have, as `[from, to]`; 0 if never.
    """
    state, memory, visits = case.of.pairs
    found: list[Any] = []
    for place in shown:
        own = slice(*np.searchsorted(state, (place, place + 1)).tolist())
        at, often = memory[own], visits[own]
        if not at.size:
            found.append(0)
            continue
        gaps = np.flatnonzero(np.diff(at) > 1)
        spans = np.column_stack((at[np.append(0, gaps + 1)], at[np.append(gaps, -1)]))
        found.append([float(often.sum()), int(at[np.argmax(often)]), spans.tolist()])
    return found


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
    costs = case.of.costs
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
        "memory": getattr(case.of.policy, "budget", getattr(case.of.policy, "start_atom", 0)),
        "costs": costs.costs[:known:step].tolist(),
        "tails": costs.tails[:known:step].tolist(),
        "table": number,
        "met": _met(case, shown),
        **_worst(ssp, case.worst),
    }


def _worst(ssp: SSP, worst: WorstRuns | None) -> dict[str, Any]:
    if worst is None:
        return {"chance": None, "excess": None, "runs": [], "blame": [], "blamed": []}
    by_state: dict[int, list[float]] = {}
    # Of simulated runs setbacks are not known, and where the excess is paid has to do.
    turned = [row.share if worst.simulated else max(row.setback, 0.0) for row in worst.blame]
    total = sum(turned)
    for row, part in zip(worst.blame, turned):
        entry = by_state.setdefault(ssp.state_index(row.state), [0.0, 0.0])
        entry[0] += part / total
        entry[1] += row.share / worst.excess
    typical = [] if worst.typical is None else [worst.typical]
    blamed = sorted(zip(worst.blame, turned), key=lambda pair: -pair[1])[:BLAMED]
    return {
        "chance": worst.chance,
        "excess": worst.excess,
        "runs": [
            {
                "typical": run is worst.typical,
                "probability": run.probability,
                "cost": run.cost,
                "states": [ssp.state_index(state) for state in _visited(run)],
                "names": [name_in_words(state) for state in _visited(run)],
                "actions": [name_in_words(step.action) for step in run],
                "costs": [step.cost for step in run],
                "memories": [step.memory for step in run],
            }
            for run in [*typical, *worst]
            if len(run)
        ],
        "blame": [[state, *entry] for state, entry in by_state.items()],
        "blamed": [
            [*map(name_in_words, row[:3]), row.cost, part / total]
            for row, part in blamed
            if part > 0
        ],
    }


def _visited(run: Trace) -> list[Name]:
    """The states of a run, from the first to the last."""
    return [*(step.state for step in run), run[-1].next_state]


def _frontiers(
    ssp: SSP, cases: Sequence[Sequence[Case]], alphas: Sequence[float], progress: Update
) -> tuple[list[list[tuple[float, float]]], int]:
    """Mean and CVaR of policies that minimise weighted sums of the two, for each alpha, and how
    many weights there was time for; between them lie mixtures by a coin at the start.

    The ends are the policies known already. One weight after the other is then tried for all
    alphas, in the order in which they halve what is left, for about `SECONDS`.
    """
    found = [
        {(case.of.costs.mean, case.of.costs.cvar(alpha)) for case in (row[0], row[-1])}
        for row, alpha in zip(cases, alphas)
    ]
    begin = perf_counter()
    for number, weight in enumerate(WEIGHTS):
        for alpha, points in zip(alphas, found):
            if perf_counter() - begin > SECONDS:
                return [sorted(points) for points in found], number
            progress(f"the frontier at alpha {alpha:g}")
            both = f"{1 - weight!r} * mean + {weight!r} * cvar({alpha!r})"
            costs = evaluate_inside(ssp, solve(ssp, both).policy, alpha)
            points.add((costs.mean, costs.cvar(alpha)))
    return [sorted(points) for points in found], len(WEIGHTS)


#: Cells of a map and states of a graph that can still be told apart on a screen, and states of
#: those that are too large.
MAX_CELLS, MAX_NODES = 2_500, 250
MAX_MET = 30


# ---------------------------------------------------------------------- where states are drawn


def scene_of(
    ssp: SSP, weight: FloatArray, where: tuple[FloatArray, FloatArray] | None
) -> dict[str, Any]:
    """Where states are drawn, and their choices: on the model's own map, or as a graph of those
    that some run comes to; where these are too many, of those with the most `weight`. `others`
    are the names of the first of those that none comes to, `unmet` is their number.
    """
    geometry = ssp.geometry
    if geometry is not None and ssp.n_states <= MAX_CELLS and where is None:
        kind, states = "map", [s for s in range(ssp.n_states) if geometry.row[s] >= 0]
        x, y = ([cell + 0.5 for cell in cells] for cells in (geometry.column, geometry.row))
        width, height = float(geometry.columns), float(geometry.rows)
        others: list[int] = []
    else:
        kind, states = "graph", met_most(ssp, weight, ssp.n_states + 2)
        others = sorted({*range(ssp.n_states)} - {*states})
        if len(states) > MAX_NODES:
            kind, states = "part", met_most(ssp, weight, MAX_MET)
        if where is None:
            x, y, width, height = layers(ssp, states)
        else:
            across, down = where
            states = [s for s in states if not np.isnan(across[s])]
            across, down = (axis - axis[states].min() + 0.9 for axis in (across, down))
            x, y = across.tolist(), down.tolist()
            width, height = (float(axis[states].max()) + 0.9 for axis in (across, down))
    return {
        "kind": kind,
        "width": width,
        "height": height,
        "places": [_place(ssp, state, x[state], y[state]) for state in states],
        "choices": _choices(ssp, states),
        "others": [name_in_words(ssp.states[state]) for state in others[:MAX_NODES]],
        "unmet": len(others),
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
