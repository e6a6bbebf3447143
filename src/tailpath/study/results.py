"""Stored runs as the figures, tables and claims want them: looked up by what was asked, paired point by point.

Nothing here computes a value of a model: all numbers are stored ones, their differences and their quotients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailpath.study.design import ALPHA0, ATOMS, PROBLEMS, largest
from tailpath.study.store import Point, Run

FloatArray = NDArray[np.float64]
Problem = tuple[str, str]
#: Of several ways to compute the same task the one that leaves the least to estimates.
PREFERRED = ("", "greedy", "sampled", "lp")
PLANNERS = {"quantile": "CVaRVIQ", "interpolation": "CVaRVILI", "optimum": "optimum"}


def title(problem: Problem) -> str:
    """A problem as the paper writes it."""
    return f"{problem[0].capitalize()} {problem[1].replace('x', '×')}"


@dataclass(frozen=True)
class Setting:
    """One grid of atoms on one problem."""

    problem: Problem
    atoms: int
    alpha0: float


class Results:
    """The runs of one edition."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs: dict[tuple[str, Setting], Run] = {}
        for run in sorted(runs, key=lambda run: PREFERRED.index(run.task.inner)):
            task = run.task
            self._runs[task.method, Setting((task.domain, task.problem), task.atoms, task.alpha0)] = run
        settings = {setting for _, setting in self._runs}
        everything = [(domain, problem) for domain, problems in PROBLEMS.items() for problem in problems]
        self.problems = [problem for problem in everything if any(setting.problem == problem for setting in settings)]
        self.atoms = [n for n in ATOMS if any(setting.atoms == n for setting in settings)]
        self.alpha0 = [low for low in ALPHA0 if any(setting.alpha0 == low for setting in settings)]

    @property
    def domains(self) -> list[str]:
        return list(dict.fromkeys(domain for domain, _ in self.problems))

    @property
    def shown(self) -> list[Problem]:
        """The largest problem of each domain, which the paper's figures show; where it is missing, the largest there is."""
        found = []
        for domain in self.domains:
            there = [problem for problem in self.problems if problem[0] == domain]
            found.append((domain, largest(domain)) if (domain, largest(domain)) in there else there[-1])
        return found

    def get(self, method: str, problem: Problem, atoms: int, alpha0: float) -> Run | None:
        return self._runs.get((method, Setting(problem, atoms, alpha0)))

    def settings(self, *methods: str) -> list[Setting]:
        """The settings of the paper's design that all these methods have, in its order."""
        design = (Setting(problem, n, low) for problem in self.problems for n in self.atoms for low in self.alpha0)
        return [setting for setting in design if all((method, setting) in self._runs for method in methods)]

    def of(self, method: str, setting: Setting) -> Run:
        return self._runs[method, setting]

    def pairs(self, *methods: str, settings: Iterable[Setting] | None = None) -> Iterator[tuple[Setting, tuple[Point, ...]]]:
        """Every atom of every setting, with the points of all these methods side by side."""
        for setting in self.settings(*methods) if settings is None else settings:
            for points in zip(*(self.of(method, setting).points for method in methods)):
                yield setting, points


def array(values: Iterable[float]) -> FloatArray:
    return np.array(list(values), dtype=np.float64)


def at(run: Run, alpha: float) -> Point | None:
    """The point of a run at an alpha, found by its nearest atom if that is equal but for rounding."""
    nearest = min(run.points, key=lambda point: abs(point.alpha / alpha - 1))
    return nearest if abs(nearest.alpha / alpha - 1) < 1e-9 else None
