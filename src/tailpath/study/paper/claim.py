"""The paper's own study, and how its claims are judged."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tailpath.study.design import Design, read_design
from tailpath.study.results import FloatArray, Results, quotient

PLANNERS = ("quantile", "interpolation")


@cache
def paper() -> Design:
    """The design of section 5."""
    return read_design(pathlib.Path(__file__).with_name("paper.toml"))


def is_complete(results: Results) -> bool:
    """Whether the runs cover the paper's whole design."""
    design = paper()
    keys = [problem.key for problem in design.problems]
    return {*product(keys, design.atoms, design.alpha0)} <= {*results.settings(*PLANNERS)}


#: The planners stop when no value moves by more than this; smaller differences mean nothing.
TOLERANCE = 1e-3
#: The largest problems of the paper, which most of its claims are about, and its finest grid.
GRID, RIVER = ("gridworld", "14x16"), ("river", "30x10")
MAX_ATOMS = 25
#: The verdicts by the least part of the cases that earns them.
VERDICTS = {1.0: "holds", 0.9: "mostly", 1 / 3: "in part", 0.0: "differs"}


@dataclass(frozen=True)
class Finding:
    """What the runs say to a claim: in words, and for which part of the cases it holds."""

    ours: str
    part: float
    remark: str = ""

    @property
    def verdict(self) -> str:
        return next(verdict for least, verdict in VERDICTS.items() if self.part >= least)

    def unless_it_holds(self, remark: str) -> Finding:
        """With a remark where the claim does not hold in all cases."""
        return self if self.part >= 1 else replace(self, remark=remark)


Check = Callable[[Results], Finding | None]


def share(hits: Iterable[bool]) -> tuple[str, float]:
    """'k of n' and the quotient; an empty list counts as 0."""
    found = list(hits)
    return f"{sum(found)} of {len(found)}", sum(found) / len(found) if found else 0.0


def rises(values: ArrayLike, slack: float | None = None) -> bool:
    """Whether numbers rise at every step; with some slack, whether none falls by more than that."""
    steps = np.diff(values)
    return bool(np.all(steps > 0) if slack is None else np.all(steps >= -slack))


def by_domain(
    results: Results,
    look: Callable[[Sequence[FloatArray]], tuple[str, bool]],
    field: str,
    *methods: str,
    **chosen: Any,
) -> Finding | None:
    """A claim about every domain: `look` says something of the quotients of all its points, from
    the fewest atoms to the most, and whether the claim holds there. Nothing if any are missing.
    """
    found = {
        domain: [
            quotient(results.points(*methods, domain=domain, atoms=n, **chosen), field)
            for n in results.atoms
        ]
        for domain in results.domains
    }
    if len(results.atoms) < 2 or not all(box.size for boxes in found.values() for box in boxes):
        return None
    texts, hits = zip(*map(look, found.values()))
    ours = "; ".join(f"{domain}: {text}" for domain, text in zip(found, texts))
    return Finding(f"{ours}, with {', '.join(map(str, results.atoms))} atoms", float(np.mean(hits)))


def percents(values: Iterable[float]) -> str:
    return ", ".join(f"{100 * value:.2f} %" for value in values)
