"""The verbs of the ledger: each asks public names alone, so that any version can answer.

In an answer a list is of numbers, as `float.hex`: `[value]`, or `[value, lower, upper]` where
bounds are proved. A text or a whole number is meant exactly. A refusal is the class of the error.
"""

import math
import random
import warnings
from collections.abc import Callable
from functools import cache, cached_property, partial
from itertools import accumulate, chain
from typing import Any

import tailpath as tp

ALPHAS = (0.5, 0.1, 0.01, 0.001)
Answer = dict[str, Any]


def one(value: Any) -> list[str]:
    """A number without bounds."""
    return [float(value).hex()]


def bounded(value: Any, bounds: tuple[float, float]) -> list[str]:
    """A number with proved bounds."""
    return [float(number).hex() for number in (value, *bounds)]


class Case:
    """A model, and what was found out about it, each once."""

    def __init__(self, ssp: tp.SSP) -> None:
        self.ssp = ssp
        self.expected = cache(lambda gamma: tp.solve_expected(ssp, gamma=gamma))
        self.exact = cache(lambda alpha, **how: tp.solve_cvar_exact(ssp, alpha, **how))
        self.on_time = cache(lambda deadline, **how: tp.solve_on_time(ssp, deadline, **how))
        self.frontier = cache(lambda measure: tp.frontier(ssp, measure, tolerance=0))
        self.plan = cache(self._plan)
        self.policy = cache(self._policy)

    @cached_property
    def rows(self) -> dict[Any, dict[Any, list[tuple[Any, float, float]]]]:
        """`{state: {action: [(next state, probability, cost)]}}`."""
        frame, rows = self.ssp.to_pandas(), {}
        columns = ("state", "action", "next_state", "probability", "cost")
        for state, action, *outcome in zip(*(frame[column].tolist() for column in columns)):
            rows.setdefault(state, {}).setdefault(action, []).append(tuple(outcome))
        return rows

    def _plan(self, planner: str) -> Any:
        """A published planner with 25 atoms, until its values hardly move."""
        atoms = tp.log_atoms(1e-3, 25)
        if planner == "quantile":
            return tp.solve_cvar_quantile(self.ssp, atoms, tolerance=1e-9)
        return tp.solve_cvar_interpolation(self.ssp, atoms, tolerance=1e-9, inner="greedy")

    def _policy(self, name: str) -> Any:
        """A policy by its name: `exact 0.01`, `on time 35.0`, `mixed`."""
        kind, _, number = name.rpartition(" ")
        if kind == "exact":
            return self.exact(float(number)).policy(float(number))
        if kind == "lexicographic":
            return self.exact(float(number), lexicographic=True).policy(float(number))
        if kind == "on time":
            return self.on_time(float(number)).policy(float(number))
        if kind == "atoms":
            return self.plan("quantile").policy(float(number))
        return getattr(self, f"_{name}")()

    def _neutral(self) -> Any:
        return self.expected(1.0).policy

    def _history(self) -> Any:
        return tp.HistoryPolicy(lambda history: self.sensible[history[-1]])

    def _mixed(self) -> Any:
        """Every action with some probability, the sensible one mostly."""
        draw, decisions = random.Random(1), {}
        for state, actions in self.rows.items():
            weight = {action: draw.randint(1, 4) for action in actions}
            weight[self.sensible[state]] += 12
            decisions[state] = {action: w / sum(weight.values()) for action, w in weight.items()}
        return tp.MarkovPolicy(decisions)

    def _memory(self) -> Any:
        """What is sensible, but in every third step the first action."""

        def act(state: Any, step: int) -> Any:
            return next(iter(self.rows[state])) if step == 2 else self.sensible[state]

        return tp.MemoryPolicy(0, act, lambda step, *_: (step + 1) % 3)

    @cached_property
    def sensible(self) -> dict[Any, Any]:
        """The action that most probably comes a step nearer to a goal, whatever solvers say."""
        into: dict[Any, list[Any]] = {}
        for state, actions in self.rows.items():
            for target, _, _ in chain(*actions.values()):
                into.setdefault(target, []).append(state)
        steps = dict.fromkeys(self.ssp.goals, 0)
        for target in (queue := list(steps)):
            for state in into.get(target, ()):
                if state not in steps:
                    steps[state] = steps[target] + 1
                    queue.append(state)

        def nearer(state: Any, action: Any) -> float:
            far = steps.get(state, math.inf)
            hopes = [p for to, p, _ in self.rows[state][action] if steps.get(to, math.inf) < far]
            return round(sum(hopes), 9)

        return {s: max(actions, key=partial(nearer, s)) for s, actions in self.rows.items()}


# ---------------------------------------------------------------------- the verbs


def model(case: Case) -> Answer:
    ssp = case.ssp
    sizes = {"states": ssp.n_states, "choices": ssp.n_choices, "outcomes": ssp.n_outcomes}
    return {**sizes, "unit": str(ssp.cost_unit)}


def expected(case: Case, gamma: float) -> Answer:
    return _by_state(case.expected(gamma))


def arrival(case: Case) -> Answer:
    return _by_state(tp.solve_arrival(case.ssp))


def _by_state(found: Any) -> Answer:
    """The start, and some other states."""
    every = range(0, len(found.value), max(len(found.value) // 8, 1))
    start = found.cost() if hasattr(found, "cost") else found.probability()
    some = {f"{s}": bounded(found.value[s], (found.lower[s], found.upper[s])) for s in every}
    return {"start": bounded(start, found.bounds), **some}


def exact(case: Case, solved: float, alpha: float, how: dict[str, Any]) -> Answer:
    best = case.exact(solved, **how)
    cvar = bounded(best.cvar(alpha), best.bounds(alpha))
    return {"cvar": cvar, "var": one(best.var(alpha)), "mean": one(best.mean(alpha))}


def evaluate(case: Case, policy: str, alpha: float, how: dict[str, Any]) -> Answer:
    costs = tp.evaluate(case.ssp, case.policy(policy), alpha, **how)
    mean = bounded(costs.mean, costs.bounds(tp.Mean()))
    answer = {"mean": mean, "unreached": one(costs.unreached), "engine": costs.engine}
    for a in ALPHAS:
        if a >= alpha:
            answer[f"cvar {a}"] = bounded(costs.cvar(a), costs.bounds(a))
            answer[f"var {a}"] = one(costs.var(a))
    return answer


def deviation(case: Case, policy: str) -> Answer:
    return {"std": one(tp.evaluate(case.ssp, case.policy(policy), 0.1).std)}


def on_time(case: Case, deadline: float, t: float, how: dict[str, Any]) -> Answer:
    found = case.on_time(deadline, **how)
    probability = bounded(found.probability(t), found.bounds(t))
    return {"probability": probability, "late": one(found.late(t))}


def least_var(case: Case, deadline: float, alpha: float) -> Answer:
    return {"var": one(case.on_time(deadline).var(alpha))}


def solve(case: Case, objective: str, how: dict[str, Any]) -> Answer:
    found = tp.solve(case.ssp, objective, **how)
    return {"value": bounded(found.value, found.bounds)}


def limited(case: Case, objective: str, limits: list[str]) -> Answer:
    found = tp.solve(case.ssp, objective, limits)
    sides = [limit.split("<=") for limit in limits]
    kept = all(found.risk(measure) <= float(most) * (1 + 1e-9) for measure, most in sides)
    return {"value": bounded(found.value, found.bounds), "kept": str(kept)}


def frontier(case: Case, measure: str, risk: float) -> Answer:
    found = case.frontier(measure)
    return {"mean": bounded(found.least_mean(risk), found.bounds(risk))}


def frontier_ends(case: Case, measure: str) -> Answer:
    found = case.frontier(measure)
    ends = {"safest": found[0], "neutral": found[-1]}
    risks = {end: one(corner.risk) for end, corner in ends.items()}
    return {**risks, **{f"mean of {end}": one(corner.mean) for end, corner in ends.items()}}


def ending(case: Case, kind: str, arguments: list[Any]) -> Answer:
    ended = getattr(tp, kind)(case.ssp, *arguments)
    mean, best = tp.solve_expected(ended), tp.solve_cvar_exact(ended, 0.1)
    cvar = bounded(best.cvar(0.1), best.bounds(0.1))
    return {"states": ended.n_states, "mean": bounded(mean.cost(), mean.bounds), "cvar": cvar}


def worst_runs(case: Case, policy: str, alpha: float) -> Answer:
    found = tp.worst_runs(case.ssp, case.policy(policy), alpha, 5)
    answer = {name: one(getattr(found, name)) for name in ("var", "cvar", "chance", "excess")}
    shares = {"blame": one(max((row.share for row in found.blame), default=0))}
    return {**answer, **shares, **{f"run {i}": one(run.probability) for i, run in enumerate(found)}}


def simulate(case: Case, policy: str, seed: int) -> Answer:
    costs = tp.simulate(case.ssp, case.policy(policy), 1000, seed).tolist()
    arrived = [cost for cost in costs if math.isfinite(cost)]
    return {"arrived": len(arrived), "sum": one(math.fsum(arrived))}


def trace(case: Case, policy: str, seed: int) -> Answer:
    run = tp.trace(case.ssp, case.policy(policy), seed)
    return {"steps": len(run), "cost": one(run.cost), "probability": one(run.probability)}


def planner(case: Case, name: str) -> Answer:
    return {f"cvar {a}": one(case.plan(name).cvar(a)) for a in ALPHAS}


def method(case: Case, name: str, alpha: float) -> Answer:
    line = tp.compare(case.ssp, alphas=[alpha], methods=[name]).lines[0]
    found = {"predicted": line.predicted, "deployed": line.deployed}
    return {name: one(number) for name, number in found.items() if number is not None}


def parting(case: Case, first: str, second: str, alpha: float) -> Answer:
    found = tp.differences(case.ssp, case.policy(first), case.policy(second), alpha)
    return {"probability": one(found.probability), "cvar": one(found.cvars[0])}


def decide(case: Case, policy: str, pairs: list[Any]) -> Answer:
    """What the policy does at pairs of state and memory: places in a list of actions."""
    asked = [case.policy(policy).action(case.ssp.states[s], m) for s, m in unpacked(pairs)]
    names = sorted({str(action) for action in asked})
    return {"actions": "|".join(names), "taken": "".join(str(names.index(str(a))) for a in asked)}


VERBS: dict[str, Callable[..., Answer]] = {
    verb.__name__: verb
    for verb in (
        *(model, expected, arrival, exact, evaluate, deviation, on_time, least_var, solve),
        *(limited, frontier, frontier_ends, ending, worst_runs, simulate, trace),
        *(planner, method, parting, decide),
    )
}


def answer(case: Case, verb: str, arguments: list[Any]) -> Answer:
    """The answer to one question; a refusal is an answer, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tp.TailpathWarning)
        try:
            return VERBS[verb](case, *arguments)
        except Exception as error:
            return {"refused": type(error).__name__}


def unpacked(pairs: list[Any]) -> list[tuple[int, Any]]:
    """Pairs of state and memory, from `[state, [memory, step, step, ...]]` for each state."""
    none = [None]
    return [(s, m) for s, steps in pairs for m in (none if steps == none else accumulate(steps))]
