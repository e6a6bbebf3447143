"""The paper's own study."""

from __future__ import annotations

import pathlib
from functools import cache

from tailpath.study.design import Design, read_design
from tailpath.study.results import Results

PAPER = pathlib.Path(__file__).with_name("paper.toml")


@cache
def paper() -> Design:
    """The design of section 5."""
    return read_design(PAPER)


def part_of_paper(results: Results) -> Results:
    """Those of the runs that are part of the paper's own design."""
    return results.of_design(paper())


def is_complete(results: Results) -> bool:
    """Whether the runs cover the paper's whole design; what was asked for as a slice is judged as a
    slice.
    """
    design = paper()
    wanted = {
        (problem.key, n, low)
        for problem in design.problems
        for n in design.atoms
        for low in design.alpha0
    }
    found = [results.settings(method) for method in ("quantile", "interpolation")]
    return all(
        wanted <= {(setting.problem, setting.atoms, setting.alpha0) for setting in settings}
        for settings in found
    )
