"""Stored runs as the figures, tables and claims want them: looked up by what was asked, paired
point by point.

Nothing here computes a value of a model: all numbers are stored ones, their differences and their
quotients.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product, starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forpecvar.design import CONTRAST, IMPROVED, OWN, SIMULATION, Design
from forpecvar.store import INNER, AtomPoint, Run
from tailpath.errors import OptionError
from tailpath.methods import find_method, method_names

Key = tuple[str, str]
FloatArray = NDArray[np.float64]
#: Alphas that agree so far, relatively, are the same.
SAME_ALPHA = 1e-9


def _size(problem: Key) -> int:
    """The product of the numbers in a problem's name, such as 30x10."""
    numbers = re.findall(r"\d+", problem[1])
    return math.prod(map(int, numbers)) if numbers else 0


def title(problem: Key) -> str:
    """A problem as the paper writes it; a model of one's own by its name."""
    return (
        problem[1]
        if problem[0] == OWN
        else f"{problem[0].capitalize()} {problem[1].replace('x', '×')}"
    )


@cache
def planner(method: str) -> str:
    """A method as the literature calls it; one that is not installed here, by its name."""
    try:
        return find_method(method).title
    except OptionError:
        return method


class Setting(NamedTuple):
    """One grid of atoms on one problem."""

    problem: Key
    atoms: int
    alpha0: float

    @property
    def domain(self) -> str:
        return self.problem[0]


class Results:
    """The runs of one edition, the planners in one variant: of those there are, the first
    (`improved`, if it is there), unless told otherwise.

    Methods that a variant for contrast leaves as they are, are seen in the variant that it differs
    from.
    """

    def __init__(self, runs: Iterable[Run], variant: str | None = None) -> None:
        self._all = list(runs)
        known = dict.fromkeys(run.task.variant for run in self._all if run.task.variant)
        self.variants = sorted(known, key=lambda name: (name != IMPROVED, name in CONTRAST, name))
        self.variant = variant or next(iter(self.variants), "")
        self._runs: dict[tuple[str, Setting], Run] = {}
        seen = ["", CONTRAST.get(self.variant, ""), self.variant]
        for run in sorted(
            (run for run in self._all if run.task.variant in seen),
            key=lambda run: (seen.index(run.task.variant), INNER.index(run.task.inner)),
        ):
            task = run.task
            setting = Setting((task.domain, task.problem), task.atoms, task.alpha0)
            self._runs[task.method, setting] = run
        grid = {setting for (_, setting), run in self._runs.items() if run.task.part == ""}
        self.problems = sorted(
            {setting.problem for setting in grid},
            key=lambda problem: (problem[0] == OWN, problem[0], _size(problem), problem[1]),
        )
        self.domains = list(dict.fromkeys(domain for domain, _ in self.problems))
        self.atoms = sorted({setting.atoms for setting in grid})
        self.alpha0 = sorted({setting.alpha0 for setting in grid})
        self.methods = sorted(
            {method for method, _ in self._runs} - {SIMULATION}, key=_order_of_method
        )

    def of_variant(self, variant: str) -> Results:
        return Results(self._all, variant)

    def of_design(self, design: Design) -> Results:
        """Those of the runs that are part of a design."""
        atoms = {problem.key: {*design.atoms, *problem.finer} for problem in design.problems}
        found = []
        for run in self._all:
            task = run.task
            same = (task.gamma, task.tolerance) == (design.gamma, design.tolerance)
            asked = task.atoms in atoms.get((task.domain, task.problem), ())
            if same and asked and task.alpha0 in design.alpha0:
                part = "" if task.atoms in design.atoms else "finer"
                found.append(replace(run, task=replace(task, part=part)))
        return Results(found, self.variant)

    @property
    def judged(self) -> list[str]:
        """The variants that claims may be about; "" if no method has any."""
        return [variant for variant in self.variants or [""] if variant not in CONTRAST]

    @property
    def shown(self) -> list[Key]:
        """The largest problem of each domain, which figures show, and every model that belongs to
        none.
        """
        largest = {domain: (domain, name) for domain, name in sorted(self.problems, key=_size)}
        return [key for key in self.problems if key[0] == OWN or key == largest[key[0]]]

    def get(self, method: str, problem: Key, atoms: int, alpha0: float) -> Run | None:
        return self._runs.get((method, Setting(problem, atoms, alpha0)))

    def settings(self, *methods: str, **chosen: Any) -> list[Setting]:
        """The settings of the design that all these methods have, problem by problem; with the
        `domain`, `problem`, `atoms` or `alpha0` chosen, only those that have it.
        """
        return [
            setting
            for setting in starmap(Setting, product(self.problems, self.atoms, self.alpha0))
            if all((method, setting) in self._runs for method in methods)
            and all(getattr(setting, name) == value for name, value in chosen.items())
        ]

    def of(self, method: str, setting: Setting) -> Run:
        return self._runs[method, setting]

    def points(
        self,
        *methods: str,
        settings: Iterable[Setting] | None = None,
        least: float = 0.0,
        **chosen: Any,
    ) -> list[tuple[AtomPoint, ...]]:
        """Every atom of these settings from `least` up, with the points of all these methods side
        by side.
        """
        return [
            points
            for setting in (self.settings(*methods, **chosen) if settings is None else settings)
            for points in zip(*(self.of(method, setting).points for method in methods))
            if points[0].alpha >= least * (1 - SAME_ALPHA)
        ]

    def of_variants(self) -> Iterator[tuple[str, Results]]:
        """Each variant with its results; as they are, where no method has any."""
        for variant in self.variants or [""]:
            yield variant, self.of_variant(variant) if variant else self


def _order_of_method(method: str) -> tuple[int, str]:
    """As the register lists them, but the optimum, which is its first, at the end."""
    best, *others = method_names()
    try:
        known = find_method(method).name
    except OptionError:  # a method that is not installed here
        known = ""
    return (others.index(known) if known in others else len(others) + (known == best), method)


def array(values: Iterable[Any]) -> FloatArray:
    return np.array(list(values), dtype=np.float64)


def quotient(points: Iterable[Sequence[AtomPoint]], field: str) -> FloatArray:
    """The `prediction` of the first of several methods, or what it has `deployed`, by what the last
    has deployed: of one method, predicted by deployed values; beside the optimum, how near to it.
    """
    pairs = array((getattr(those[0], field), those[-1].deployed) for those in points)
    with np.errstate(divide="ignore", invalid="ignore"):  # where a policy costs nothing
        found: FloatArray = np.divide(*pairs.reshape(-1, 2).T)
        return found


def at(run: Run, alpha: float) -> AtomPoint | None:
    """The point of a run at an alpha, if that is an atom."""
    nearest = min(run.points, key=lambda point: abs(point.alpha / alpha - 1))
    return nearest if math.isclose(nearest.alpha, alpha, rel_tol=SAME_ALPHA) else None
