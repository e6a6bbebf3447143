"""Box plots of values divided by values: how close predictions come to what happens, and what
happens to the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from tailpath.study.design import OWN
from tailpath.study.paper.canvas import panels, tens
from tailpath.study.paper.claims.alpha0 import TARGET
from tailpath.study.results import Results, quotient

#: What is divided, by what the last of some methods has deployed.
QUOTIENTS = {
    "predicted / deployed": ("prediction", ["quantile"]),
    "deployed / optimum": ("deployed", ["quantile", "optimum"]),
}


def box_atoms(results: Results) -> Any:
    low = min(results.alpha0, default=0.0)
    groups = [(n, low, str(n)) for n in results.atoms]
    return _boxes(results, groups, "number of atoms |Y|", 0.0)


def box_alpha0(results: Results) -> Any:
    middle = len(results.alpha0) // 2
    groups = [
        (n, low, f"{tens(low)}\n|Y| = {n}" if k == middle else tens(low))
        for n in results.atoms
        for k, low in enumerate(results.alpha0)
    ]
    return _boxes(results, groups, r"$\alpha_0$", TARGET)


def _boxes(
    results: Results, groups: Sequence[tuple[int, float, str]], label: str, least: float
) -> Any:
    """A box for each group, which has atoms, alpha0 and a name, in a panel for each quotient and
    domain.
    """
    kinds = [what for what, (_, methods) in QUOTIENTS.items() if results.settings(*methods)]
    if not kinds:
        return None
    every = list(product(kinds, results.domains))
    titles = [domain.capitalize() if domain != OWN else "own models" for _, domain in every]
    figure, axes = panels(titles, len(results.domains))
    for ax, (what, domain) in zip(axes, every):
        field, methods = QUOTIENTS[what]
        data = [
            quotient(
                results.points(*methods, domain=domain, atoms=n, alpha0=low, least=least), field
            )
            for n, low, _ in groups
        ]
        black = {"color": "black"}
        ax.boxplot(
            data,
            medianprops={**black, "linewidth": 2},
            flierprops={"marker": "x", "markersize": 5},
            whiskerprops=black,
            capprops=black,
        )
        ax.axhline(1.0, color="0.4", linewidth=0.8, linestyle="--")
        ax.set_xticks(range(1, len(groups) + 1), [name for *_, name in groups])
        ax.set_xlabel(label)
        ax.set_ylabel(what)
    return figure
