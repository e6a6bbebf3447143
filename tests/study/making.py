"""Stored runs made by hand, for tests of what is made from them."""

from __future__ import annotations

from dataclasses import replace

from tailpath.store import Answer, Point, Run, Simulation, Task

TASK = Task("gridworld", "5x5", "quantile", "", 7, 0.1)
ANSWER = Answer("1.0+abc", "model", "a machine", 2.0, plan_seconds=0.5, sweeps=9, residual=1e-4)


def run_of(task: Task = TASK, *, points=None, simulations=(), **answer) -> Run:
    """A run with one point per atom, unless told otherwise."""
    if points is None:
        points = [Point(task.alpha0, 9.0, 10.0, 8.0, 5.0, 0.001, 100), Point(1.0, 5.0, 5.0, 4.0, 5.0, 0.001, 50)]
    return Run(task, replace(ANSWER, **answer), tuple(points), tuple(simulations))


def simulation(alpha=0.1, simulated=11.0, exact=10.0, repetition=0) -> Simulation:
    return Simulation(repetition, 7, alpha, simulated, exact, 1000, 0.01)
