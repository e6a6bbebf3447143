"""Box plots of values divided by values: how close predictions come to what happens, and what
happens to the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    settings = [
        s
        for s in results.settings("quantile")
        if (s.problem[0], s.atoms, s.alpha0) == (domain, atoms, alpha0)
    ]
    pairs = results.pairs("quantile", settings=settings)
    return array(
        point.prediction / point.deployed
        for _, (point,) in pairs
        if point.alpha >= least * ROUNDING
    )


def deployed_by_optimum(
    results: Results, domain: str, atoms: int, alpha0: float, least: float = 0.0
) -> FloatArray:
    """Deployed values of CVaRVIQ's policies by the optimum."""
    settings = [
        s
        for s in results.settings("quantile", "optimum")
        if (s.problem[0], s.atoms, s.alpha0) == (domain, atoms, alpha0)
    ]
    pairs = results.pairs("quantile", "optimum", settings=settings)
    return array(
        point.deployed / best.deployed
        for _, (point, best) in pairs
        if point.alpha >= least * ROUNDING
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
    kinds: list[tuple[Callable[..., FloatArray], str]] = [
        (predicted_by_deployed, "predicted / deployed"),
    ]
    if results.settings("quantile", "optimum"):
        kinds.append((deployed_by_optimum, "deployed / optimum"))
    domains = results.domains
    figure, axes = panels(
        [
            domain.capitalize() if domain != OWN else "own models"
            for _ in kinds
            for domain in domains
        ],
        len(domains),
    )
    for ax, (ratio, what, domain) in zip(
        axes, [(ratio, what, domain) for ratio, what in kinds for domain in domains]
    ):
        data = [ratio(results, domain, atoms, low, least) for atoms, low in groups]
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
