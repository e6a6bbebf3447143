"""Box plots of values divided by values: how close predictions come to what happens, and what
happens to the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from tailpath.study.design import OWN
from tailpath.study.paper.canvas import panels, tens
from tailpath.study.results import FloatArray, Results, array

#: The paper's alpha_target, with room for rounding.
TARGET = 0.1
ROUNDING = 1 - 1e-9


def predicted_by_deployed(
    results: Results, domain: str, atoms: int, alpha0: float, least: float = 0.0
) -> FloatArray:
    """Predicted by deployed values of CVaRVIQ, all problems of a domain, at the atoms from `least`
    up.
    """
    points = results.points("quantile", domain=domain, atoms=atoms, alpha0=alpha0)
    return array(
        point.prediction / point.deployed for (point,) in points if point.alpha >= least * ROUNDING
    )


def deployed_by_optimum(
    results: Results, domain: str, atoms: int, alpha0: float, least: float = 0.0
) -> FloatArray:
    """Deployed values of CVaRVIQ's policies by the optimum."""
    points = results.points("quantile", "optimum", domain=domain, atoms=atoms, alpha0=alpha0)
    return array(
        point.deployed / best.deployed for point, best in points if point.alpha >= least * ROUNDING
    )


def box_atoms(results: Results) -> Any:
    low = min(results.alpha0, default=0.0)
    groups = [(n, low) for n in results.atoms]
    return _boxes(results, groups, [str(n) for n in results.atoms], "number of atoms |Y|", 0.0)


def box_alpha0(results: Results) -> Any:
    groups = [(n, low) for n in results.atoms for low in results.alpha0]
    middle = len(results.alpha0) // 2
    names = [
        f"{tens(low)}\n|Y| = {n}" if k == middle else tens(low)
        for n in results.atoms
        for k, low in enumerate(results.alpha0)
    ]
    return _boxes(results, groups, names, r"$\alpha_0$", TARGET)


def _boxes(
    results: Results,
    groups: Sequence[tuple[int, float]],
    names: Sequence[str],
    label: str,
    least: float,
) -> Any:
    if not results.settings("quantile"):
        return None
    kinds: dict[str, Callable[..., FloatArray]] = {"predicted / deployed": predicted_by_deployed}
    if results.settings("quantile", "optimum"):
        kinds["deployed / optimum"] = deployed_by_optimum
    every = list(product(kinds, results.domains))
    titles = [domain.capitalize() if domain != OWN else "own models" for _, domain in every]
    figure, axes = panels(titles, len(results.domains))
    for ax, (what, domain) in zip(axes, every):
        data = [kinds[what](results, domain, atoms, low, least) for atoms, low in groups]
        black = {"color": "black"}
        ax.boxplot(
            data,
            medianprops={**black, "linewidth": 2},
            flierprops={"marker": "x", "markersize": 5},
            whiskerprops=black,
            capprops=black,
        )
        ax.axhline(1.0, color="0.4", linewidth=0.8, linestyle="--")
        ax.set_xticks(range(1, len(names) + 1), names)
        ax.set_xlabel(label)
        ax.set_ylabel(what)
    return figure
