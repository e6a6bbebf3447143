"""One task, computed: what a worker does, on this machine or another; and who computed it.

A job is self-contained: it carries its model. The worker plans, and evaluates the policy exactly
from every atom (ForPECVaR, with alpha = that atom). Times are processor seconds of
all threads, after a warm-up in the same process. A call whose time figures and tables show is
repeated if it is short: the median counts, and the least and the largest time say how far it
spreads.

Two versions of the program may give different numbers, so the name of a program is its version and
a hash of all that computes, as the compiler sees it. What draws, reports, reads files or talks to
the user does not count, nor do comments and docstrings: such a change must not throw results away.
"""

from __future__ import annotations

import ast
import hashlib
import os
import pathlib
import platform
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from time import perf_counter, process_time, sleep
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np

import tailpath
from forpecvar.design import IMPROVED, SIMULATION, import_all, takes
from forpecvar.store import ENGINES, Answer, AtomPoint, Run, Simulation, StudyTask
from tailpath import SSP, TailpathWarning, evaluate, log_atoms, simulate
from tailpath.domains import gridworld
from tailpath.methods import Plan, find_method

Result = TypeVar("Result")

#: A call is repeated until it was called this often or took this many seconds in all; after so many
#: calls the clock rests for so many seconds, since what disturbs a call disturbs its neighbours.
CALLS, ENOUGH = 15, 1.0
BURST, REST = 5, 0.15
#: The same for a number of samples that is only tried.
TRIED = 3
#: The columns of an answer that hold `Times`.
PLAN_TIMES = ("plan_seconds", "plan_least", "plan_most", "plan_calls")


@dataclass(frozen=True, eq=False)
class WorkItem:
    """A task with all a worker needs for it: the model, how often Monte Carlo is repeated and whose
    policies it runs, and modules that register methods.
    """

    task: StudyTask
    model: SSP
    repetitions: int = 5
    simulated: str = ""
    imports: tuple[str, ...] = ()


class Times(NamedTuple):
    """The median time of several calls, the least, the largest, and how many there were."""

    median: float
    least: float
    most: float
    calls: int


def perform(job: WorkItem) -> Run:
    import_all(job.imports)
    warm_up_worker(job.task.method, job.task.inner, job.simulated)
    return _perform(job)


@cache
def warm_up_worker(method: str, inner: str, simulated: str) -> None:
    """Do a small task of this kind once per process: compiled code is loaded, libraries are
    imported.
    """
    task = StudyTask("gridworld", "5x5", method, "", inner, 7, 0.1)
    _perform(WorkItem(task, gridworld("5x5"), 1, simulated))


def _perform(job: WorkItem) -> Run:
    began = perf_counter()
    compute = _simulation if job.task.method == SIMULATION else _planner
    with warnings.catch_warnings():
        # That alpha0 is not below alpha, that factors exceed 1, or that an atom is near 1, is what
        # is studied.
        warnings.simplefilter("ignore", TailpathWarning)
        columns, points, simulations = compute(job)
    answer = Answer(program(), job.model.fingerprint, machine(), perf_counter() - began, **columns)
    return Run(job.task, answer, tuple(points), tuple(simulations))


def timed(call: Callable[[], Result], calls: int = CALLS) -> tuple[Result, Times]:
    """A call's result and its times."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < calls and sum(seconds) < ENOUGH):
        if seconds and len(seconds) % BURST == 0:
            sleep(REST)
        began = process_time()
        result = call()
        seconds.append(process_time() - began)
    return result, Times(statistics.median(seconds), min(seconds), max(seconds), len(seconds))


# ---------------------------------------------------------------------- planners

Computed = tuple[dict[str, Any], list[AtomPoint], list[Simulation]]


def _planner(job: WorkItem) -> Computed:
    """Any method of the register. Every timed call gets a model that nothing is known about yet."""
    task, ssp = job.task, job.model
    plan, times = timed(lambda: _plan(task, replace(ssp)))
    facts = plan.facts
    columns: dict[str, Any] = dict(zip(PLAN_TIMES, times))
    columns |= {name: facts.get(name) for name in ("sweeps", "residual", "factor_sum")}
    if facts.get("linear_programs"):
        columns |= {"lps": facts["linear_programs"], "lp_seconds": facts["lp_seconds"]}
    return columns, _points(task, ssp, plan), []


def _plan(task: StudyTask, ssp: SSP) -> Plan:
    settings: dict[str, Any] = {
        "atoms": task.atoms,
        "alpha0": task.alpha0,
        "tolerance": task.tolerance,
        "gamma": task.gamma,
    }
    if task.inner:
        settings["inner"] = task.inner
    variant = "" if task.variant == IMPROVED else task.variant
    return find_method(task.method).make(ssp, task.alpha0, settings, variant=variant)


def _points(task: StudyTask, ssp: SSP, plan: Plan) -> list[AtomPoint]:
    """Every atom as the initial alpha: the value the planner gives, and the exact one of the policy
    that starts there.
    """
    found: list[AtomPoint] = []
    for alpha in log_atoms(task.alpha0, task.atoms).tolist():
        policy = plan.policy(alpha)
        costs, times = timed(
            partial(evaluate, ssp, policy, alpha, gamma=task.gamma), 1 if found else CALLS
        )
        deployed = (costs.cvar(alpha), costs.var(alpha), costs.mean)
        predicted = plan.predict(alpha)
        queue: tuple[Any, ...] = ()
        if not found and takes(find_method(task.method), "atoms"):
            slow, spent = timed(
                partial(evaluate, ssp, policy, alpha, gamma=task.gamma, engine=ENGINES[0])
            )
            queue = (*spent[:3], slow.expanded)
        found.append(AtomPoint(alpha, predicted, *deployed, *times[:3], costs.expanded, *queue))
    return found


# ---------------------------------------------------------------------- Monte Carlo


def _simulation(job: WorkItem) -> Computed:
    """Simulate a planner's policy from alpha0, as many runs as fit into the time that ForPECVaR
    takes for it, several times: in that of the queue, and in that of the compiled engine.

    Both unroll the policy first. That is counted for ForPECVaR and not for Monte Carlo, which
    favours Monte Carlo. It is compiled, which favours it beside the queue.
    """
    task, ssp = job.task, job.model
    atoms = log_atoms(task.alpha0, task.atoms).tolist()
    policy = _plan(replace(task, method=job.simulated), ssp).policy(task.alpha0)
    rows = []
    for engine in ENGINES:
        deployed, times = timed(partial(evaluate, ssp, policy, task.alpha0, engine=engine))
        samples, set_up = fitting(lambda n: simulate(ssp, policy, n, 0, threads=1), times.least)
        for repetition in range(job.repetitions):
            # The same on every machine, another for every task.
            seed = crc32(str(task).encode()) + repetition
            began = process_time()
            costs = simulate(ssp, policy, samples, seed, threads=1)
            seconds = process_time() - began - set_up
            for alpha, value in zip(atoms, worst_means(costs, atoms)):
                values = value, deployed.cvar(alpha)
                rows.append(Simulation(engine, repetition, seed, alpha, *values, samples, seconds))
    return {}, [], rows


def worst_means(costs: Any, alphas: Sequence[float]) -> list[float]:
    """The mean of the worst alpha of some costs, for several alphas; they are sorted once."""
    falling = np.sort(costs)[::-1]
    sums = np.append(0.0, np.cumsum(falling))
    ends = np.array(alphas) * len(falling)
    found: list[float] = (np.interp(ends, np.arange(len(sums)), sums) / ends).tolist()
    return found


def fitting(call: Callable[[int], Any], seconds: float) -> tuple[int, float]:
    """The number n, 1 at least, for which `call(n)` takes `seconds` seconds more than its set-up,
    and the seconds of the set-up. The least times count: a call is disturbed to be longer only.
    """
    set_up = timed(partial(call, 0))[1].least
    many, more = 1, 0.0
    while more < seconds:
        many *= 2
        more = timed(partial(call, many), TRIED)[1].least - set_up
    return max(1, round(many * seconds / more)), set_up


# ---------------------------------------------------------------------- who computed it

ROOT = pathlib.Path(tailpath.__file__).parent
#: Folders of the package that do not change a number of a run.
WITHOUT_NUMBERS = "cli", "formats", "pictures", "show"


def meaning(source: str) -> str:
    """What a source computes: its syntax tree without docstrings; comments and layout are no part
    of it.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [line for line in body if not is_text(line)]
    return ast.dump(tree)


def is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


@cache
def program() -> str:
    """The version and the first digits of a hash of what computes."""
    digest = hashlib.sha256()
    files = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
    own = {"work.py": pathlib.Path(__file__)}
    for name, path in {**files, **own}.items():
        if name.split("/")[0] not in WITHOUT_NUMBERS:
            digest.update(f"{name}\0{meaning(path.read_text(encoding='utf-8'))}\0".encode())
    return f"{tailpath.__version__}+{digest.hexdigest()[:12]}"


@cache
def machine() -> str:
    name = platform.processor() or platform.machine()
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
            name,
        )
    except OSError:
        pass  # not Linux
    return (
        f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )
