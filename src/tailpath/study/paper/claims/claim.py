"""What a claim is, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tailpath.study.results import Results

#: The planners stop when no value moves by more than this; smaller differences mean nothing.
TOLERANCE = 1e-3


#: The largest problems of the paper, which most of its claims are about, and its finest grid.
GRID, RIVER = ("gridworld", "14x16"), ("river", "30x10")
MOST_ATOMS = 25


@dataclass(frozen=True)
class Claim:
    """What the paper says, its number and ours."""

    says: str
    paper: str
    ours: str
    verdict: str
    remark: str = ""


#: The verdicts by the least part of the cases that earns them.
VERDICTS = {1.0: "holds", 0.9: "mostly", 1 / 3: "in part", 0.0: "differs"}

Check = Callable[[Results], Claim | None]


def share(hits: Iterable[bool]) -> tuple[str, float]:
    """'k of n' and the quotient; an empty list counts as 0."""
    found = list(hits)
    return f"{sum(found)} of {len(found)}", sum(found) / len(found) if found else 0.0


def judge(part: float) -> str:
    """The verdict on a claim about many cases, by the part of them for which it holds."""
    return next(verdict for least, verdict in VERDICTS.items() if part >= least)


def listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def percents(values: Iterable[float]) -> str:
    return ", ".join(f"{100 * value:.2f} %" for value in values)


def numbers_listed(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in numbers)
