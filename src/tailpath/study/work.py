"""One task, computed: what a worker does, on this machine or another.

A task is self-contained: it builds its model, plans, and evaluates its policy exactly from every atom (ForPECVaR, with alpha = that atom).
Times are processor seconds of one thread, which is what one core that does nothing else takes, measured after a warm-up in the same process:
neither compilation nor other work of the machine is counted. A call whose time figures and tables show is repeated if it is short, and
the least time counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from time import perf_counter, thread_time
from typing import Any, TypeVar
from zlib import crc32

from tailpath.errors import OptionError, TailpathWarning
from tailpath.evaluation.evaluate import evaluate
from tailpath.evaluation.simulation import estimate, simulate
from tailpath.methods import Plan, find_method
from tailpath.model.fingerprint import model_mark
from tailpath.model.ssp import SSP, FloatArray
from tailpath.policies.atoms import log_atoms
from tailpath.solvers.published.interpolation import solve_cvar_interpolation
from tailpath.study.design import REPETITIONS, build
from tailpath.study.program import machine, program
from tailpath.study.store import Answer, Point, Run, Simulation, Task

Result = TypeVar("Result")

TOLERANCE = 1e-3  # the paper's epsilon
#: A call is repeated until it was called this often or took this many seconds in all.
CALLS, ENOUGH = 15, 0.25
#: Whole sweeps of linear programs that are timed where they do not run to convergence.
LP_SWEEPS = 2
SMALL = Task("gridworld", "5x5", "", "", 7, 0.1)


def perform(task: Task) -> Run:
    """Compute a task."""
    warm_up(task.method, task.inner)
    return _perform(task)


@cache
def warm_up(method: str, inner: str) -> None:
    """Do a small task of this kind once per process: compiled code is loaded, libraries are imported."""
    _perform(Task(SMALL.domain, SMALL.problem, method, inner, SMALL.atoms, SMALL.alpha0))


def _perform(task: Task) -> Run:
    began = perf_counter()
    ssp = build(task.domain, task.problem)
    compute = _simulation if task.method == "simulation" else _planner
    columns, points, simulations = compute(task, ssp)
    answer = Answer(program(), model_mark(ssp), machine(), perf_counter() - began, **columns)
    return Run(task, answer, tuple(points), tuple(simulations))


def timed(call: Callable[[], Result], calls: int = CALLS) -> tuple[Result, float]:
    """A call's result and its time."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < calls and sum(seconds) < ENOUGH):
        began = thread_time()
        result = call()
        seconds.append(thread_time() - began)
    return result, min(seconds)


# ---------------------------------------------------------------------- planners

Computed = tuple[dict[str, Any], list[Point], list[Simulation]]


def _planner(task: Task, ssp: SSP) -> Computed:
    """Any method of the register. Every timed call gets a model that nothing is known about yet."""
    plan, seconds = timed(lambda: _plan(task, replace(ssp)))
    facts = plan.facts
    columns = {"plan_seconds": seconds, "sweeps": facts.get("sweeps"), "residual": facts.get("residual")}
    if facts.get("linear_programs"):
        columns |= {"lps": facts["linear_programs"], "lp_sweeps": facts["sweeps"], "lp_seconds": facts["lp_seconds"]}
    elif task.inner == "sampled":
        columns |= _estimated(ssp, log_atoms(task.alpha0, task.atoms), facts["sweeps"])
    return columns, _points(task, ssp, plan), []


def _plan(task: Task, ssp: SSP) -> Plan:
    settings: dict[str, Any] = {"atoms": task.atoms, "alpha0": task.alpha0, "tolerance": TOLERANCE, "threads": 1}
    if task.inner:
        settings["inner"] = "lp" if task.inner == "lp" else "greedy"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TailpathWarning)  # that alpha0 is not below alpha is what is studied
        return find_method(task.method).make(ssp, task.alpha0, settings)


def _estimated(ssp: SSP, atoms: FloatArray, sweeps: int) -> dict[str, Any]:
    """The time that linear programs would take: so many times that of the first whole sweeps, and once what the policy takes.

    Sweeps of linear programs cost the same from the first to the last, and there are as many of them as in closed form: where both were
    run to the end, this was so.
    """
    ends = [thread_time()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TailpathWarning)  # two sweeps do not converge, and need not
        part = solve_cvar_interpolation(ssp, atoms, TOLERANCE, "lp", max_sweeps=LP_SWEEPS, progress=lambda *_: ends.append(thread_time()))
    rest = thread_time() - ends[-1]
    seconds = (ends[-1] - ends[0]) / (len(ends) - 1)
    return {
        "plan_seconds": seconds * sweeps + rest,
        "estimated": 1,
        "lps": part.linear_programs,
        "lp_sweeps": part.sweeps,
        "lp_seconds": part.lp_seconds,
    }


def _points(task: Task, ssp: SSP, plan: Plan) -> list[Point]:
    """Every atom as the initial alpha: the value the planner gives, and the exact one of the policy that starts there."""
    found: list[Point] = []
    for alpha in log_atoms(task.alpha0, task.atoms).tolist():
        policy = plan.policy(alpha)
        costs, seconds = timed(partial(evaluate, ssp, policy, alpha), 1 if found else CALLS)
        predicted = plan.predict(alpha)
        if predicted is None:
            raise OptionError(f"the method {task.method} predicts no CVaR; a study sets what is predicted beside what is delivered")
        found.append(Point(alpha, predicted, costs.cvar(alpha), costs.var(alpha), costs.mean, seconds, costs.expanded))
    return found


# ---------------------------------------------------------------------- Monte Carlo


def _simulation(task: Task, ssp: SSP) -> Computed:
    """Simulate CVaRVIQ's policy from alpha0, as many runs as fit into the time that ForPECVaR takes for it, several times.

    Both unroll the policy first. That is counted for ForPECVaR and not for Monte Carlo, which favours Monte Carlo.
    """
    atoms = log_atoms(task.alpha0, task.atoms)
    policy = _plan(replace(task, method="quantile"), ssp).policy(task.alpha0)
    exact, budget = timed(partial(evaluate, ssp, policy, task.alpha0))
    samples, set_up = fitting(lambda n: simulate(ssp, policy, n, 0, threads=1), budget)
    rows = []
    for repetition in range(REPETITIONS):
        seed = crc32(str(task).encode()) + repetition  # the same on every machine, another for every task
        began = thread_time()
        costs = simulate(ssp, policy, samples, seed, threads=1)
        seconds = thread_time() - began - set_up
        for alpha in atoms.tolist():
            rows.append(Simulation(repetition, seed, alpha, estimate(costs, alpha).cvar, exact.cvar(alpha), samples, seconds))
    return {}, [], rows


def fitting(call: Callable[[int], Any], budget: float) -> tuple[int, float]:
    """The number n, 1 at least, for which `call(n)` takes `budget` seconds more than its set-up, and the seconds of the set-up."""
    _, set_up = timed(partial(call, 0))
    many, more = 1, 0.0
    while more < budget:
        many *= 2
        more = timed(partial(call, many))[1] - set_up
    return max(1, round(many * budget / more)), set_up
