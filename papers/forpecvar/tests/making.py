"""Stored runs made by hand, for tests of what is made from them."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from forpecvar.claims import paper
from forpecvar.design import restricted, tasks
from forpecvar.runner import Study
from forpecvar.store import ENGINES, Answer, AtomPoint, Run, Simulation, StudyTask
from forpecvar.work import WorkItem, program
from tailpath import log_atoms
from tailpath.kernels.jit import interpreter

TASK = StudyTask("gridworld", "5x5", "quantile", "", "", 7, 0.1)
ANSWER = Answer(
    "1.0+abc", "model", "a machine", 2.0, plan_seconds=0.5, plan_least=0.5, sweeps=9, residual=1e-4
)


def run_of(task: StudyTask = TASK, *, points=None, simulations=(), **answer) -> Run:
    """A run with two points, unless told otherwise."""
    if points is None:
        points = [
            AtomPoint(task.alpha0, 9.0, 10.0, 8.0, 5.0, 0.001, 0.001, 0.001, 100),
            AtomPoint(1.0, 5.0, 5.0, 4.0, 5.0, 0.001, 0.001, 0.001, 50),
        ]
    return Run(task, replace(ANSWER, **answer), tuple(points), tuple(simulations))


def simulation(
    alpha=0.1, simulated=11.0, deployed=10.0, repetition=0, engine="queue"
) -> Simulation:
    return Simulation(engine, repetition, 7, alpha, simulated, deployed, 1000, 0.01)


def made(
    task: StudyTask, ratio: float = 0.9, excess: float = 1.1, queue: float | None = None, **answer
) -> Run:
    """A run whose optimum is 10 / alpha; predictions are `ratio` and deployed values `excess` times
    that. The queue takes `queue` seconds, by default more with more atoms and a smaller alpha0.
    """
    points = []
    for k, alpha in enumerate(log_atoms(task.alpha0, task.atoms).tolist()):
        best = 10 / alpha
        low, high = (1.0, 1.0) if task.method == "optimum" else (ratio, excess)
        points.append(
            AtomPoint(
                alpha,
                low * best,
                high * best,
                best,
                10.0,
                *[1e-6 * task.atoms / task.alpha0] * 3,
                1000 * task.atoms - k,
                *[queue or 0.001 * task.atoms / task.alpha0] * 3,
                1000 * task.atoms - k,
            )
        )
    seconds = {"quantile": 0.1, "optimum": 0.01, "interpolation": 5.0, "simulation": 1.0}[
        task.method
    ] * task.atoms
    rows = (
        [
            simulation(alpha=task.alpha0, repetition=k, engine=engine)
            for k in range(5)
            for engine in ENGINES
        ]
        if task.method == "simulation"
        else ()
    )
    known = {"plan_seconds": seconds, "plan_least": seconds, "sweeps": 7}
    return Run(
        task,
        replace(ANSWER, **{**known, **answer}),
        tuple(points) if task.method != "simulation" else (),
        tuple(rows),
    )


def sliced(
    *, lp="full", simulation=True, variants=("improved",), **restrictions
) -> list[StudyTask]:
    """Tasks of a part of the paper's study."""
    return tasks(
        restricted(paper(), variants=variants, **restrictions), lp=lp, simulation=simulation
    )


def study_of(chosen) -> Study:
    """Tasks of the paper's problems, with their models."""
    keys = {(task.domain, task.problem) for task in chosen}
    return Study(
        paper(),
        chosen,
        {problem.key: problem.read() for problem in paper().problems if problem.key in keys},
    )


# ---------------------------------------------------------------------- what workers do in tests of
# the runner


def compiles() -> bool | None:
    """Whether kernels are always compiled in this process."""
    return interpreter.compiles


def instant(job: WorkItem) -> Run:
    """Stands in for `perform`, with the marks of this program."""
    task = job.task
    points = [
        AtomPoint(alpha, 9.0, 10.0, 8.0, 5.0, 0.001, 0.001, 0.001, 100)
        for alpha in log_atoms(task.alpha0, task.atoms).tolist()
    ]
    return run_of(task, points=points, program=program(), fingerprint=job.model.fingerprint)


def slow(job: WorkItem) -> Run:
    time.sleep(0.3)
    return instant(job)


def deadly(job: WorkItem) -> Run:
    """Ends its worker at the tasks with 13 atoms."""
    if job.task.atoms == 13:
        os._exit(9)
    return instant(job)


def failing(job: WorkItem) -> Run:
    if job.task.atoms == 13:
        raise ValueError("no luck\nwith 13")
    return instant(job)


def without_times(run: Run) -> Run:
    """The run without what depends on the clock: all times, and the number of Monte Carlo samples
    with what they say.
    """
    still = {"seconds": 0.0} | dict.fromkeys(
        ("plan_seconds", "plan_least", "plan_most", "plan_calls", "lp_seconds")
    )
    return replace(
        run,
        answer=replace(run.answer, **still),
        points=tuple(
            replace(
                point,
                seconds=0.0,
                least=0.0,
                most=0.0,
                queue_seconds=None,
                queue_least=None,
                queue_most=None,
            )
            for point in run.points
        ),
        simulations=tuple(
            replace(row, seconds=0.0, samples=0, simulated=0.0) for row in run.simulations
        ),
    )
