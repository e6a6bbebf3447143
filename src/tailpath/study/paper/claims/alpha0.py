"""CVaRVIQ with alpha0 at the target and below it (section 5.3)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from tailpath.study.paper.claims.claim import (
    GRID,
    MOST_ATOMS,
    RIVER,
    Finding,
    by_domain,
    percents,
    rises,
)
from tailpath.study.results import FloatArray, Key, Results, at, quotient

#: The paper's alpha_target.
TARGET = 0.1
#: The finer grid of one claim.
FINE_ATOMS = 49
#: Values within so many percent of the optimum leave little to gain.
LITTLE = 2.0
#: At an alpha a smaller alpha0 is set beside alpha0 = alpha.
BELOW = [(1e-2, 1e-3)]


def deployed_at(results: Results, problem: Key, atoms: int) -> dict[tuple[float, float], float]:
    """Deployed values of CVaRVIQ by (alpha, alpha0), at the alphas that are an alpha0
    of the study.
    """
    found = {}
    for alpha, low in product(results.alpha0, repeat=2):
        run = results.get("quantile", problem, atoms, low)
        point = at(run, alpha) if run is not None and alpha >= low else None
        if point is not None:
            found[alpha, low] = point.deployed
    return found


def smaller_alpha0(
    results: Results,
    problem: Key,
    atoms: int,
    compared: Iterable[tuple[float, float]],
    holds: Callable[[float, float], bool],
) -> Finding | None:
    """Deployed values at each (alpha, alpha0) set beside those with alpha0 = alpha; `holds` says of
    both numbers whether the claim does.
    """
    table = deployed_at(results, problem, atoms)
    if any((alpha, of) not in table for alpha, low in compared for of in (alpha, low)):
        return None
    hits = [holds(table[alpha, low], table[alpha, alpha]) for alpha, low in compared]
    ours = []
    for alpha in results.alpha0:
        cells = [f"{v:.3f} (alpha0 = {low:g})" for (of, low), v in table.items() if of == alpha]
        ours += [f"at alpha = {alpha:g}: {', '.join(cells)}"] if len(cells) > 1 else []
    return Finding("; ".join(ours), float(np.mean(hits)))


def grid_alpha0(results: Results) -> Finding | None:
    compared = [*BELOW, (1e-1, 1e-2), (1e-1, 1e-3)]
    found = smaller_alpha0(results, GRID, MOST_ATOMS, compared, operator.lt)
    best = results.get("optimum", GRID, MOST_ATOMS, 1e-3)
    if best is None or found is None:
        return None
    above = max(
        100 * (value / point.deployed - 1)
        for (alpha, _), value in deployed_at(results, GRID, MOST_ATOMS).items()
        if alpha > 1e-3 and (point := at(best, alpha)) is not None
    )
    gain = ", so there is little to gain" if above < LITTLE else ""
    return found.unless_it_holds(
        f"All these values lie within {above:.2f} % of the optimum{gain}. A smaller alpha0 spends"
        " atoms below the target that are missing above it: of 25 atoms 9 lie in [0.1, 1] with"
        " alpha0 = 1e-3, all 25 with alpha0 = 0.1."
    )


def river_alpha0(results: Results) -> Finding | None:
    found = smaller_alpha0(results, RIVER, MOST_ATOMS, BELOW, operator.ge)
    return found and found.unless_it_holds(
        "Here 25 atoms are enough for the smaller alpha0 to help, from either start and with every"
        " reading of the factor xi: none of them explains what the paper saw."
    )


def finer_river(results: Results) -> Finding | None:
    found = smaller_alpha0(results, RIVER, FINE_ATOMS, BELOW, operator.le)
    return found and replace(found, ours=f"with {FINE_ATOMS} atoms: {found.ours}")


def few_atoms_are_far(results: Results) -> Finding | None:
    def look(boxes: Sequence[FloatArray]) -> tuple[str, bool]:
        means = [1 - float(np.mean(box)) for box in boxes]
        below = f"predicted below deployed by {percents(means)} on average"
        return below, rises(np.negative(means))

    found = by_domain(results, look, "prediction", "quantile", least=TARGET)
    return found if MOST_ATOMS in results.atoms else None


def target_quartiles(results: Results) -> dict[str, dict[float, tuple[float, float]]]:
    """Minimum and first quartile of predicted / deployed at the atoms from the target up, by domain
    and alpha0; nothing if a domain has fewer than three alpha0.
    """
    found: dict[str, dict[float, tuple[float, float]]] = {}
    for domain, low in product(results.domains, results.alpha0):
        points = results.points(
            "quantile", domain=domain, atoms=MOST_ATOMS, alpha0=low, least=TARGET
        )
        if points:
            least, quartile = np.percentile(quotient(points, "prediction"), [0, 25]).tolist()
            found.setdefault(domain, {})[low] = (least, quartile)
    return found if all(len(of) >= 3 for of in found.values()) else {}


def target_is_worst(results: Results) -> Finding | None:
    found = target_quartiles(results)
    if not found:
        return None
    hits = [
        by_alpha0[TARGET][k] < min(values[k] for low, values in by_alpha0.items() if low != TARGET)
        for by_alpha0 in found.values()
        for k in (0, 1)
    ]
    texts = {
        domain: ", ".join(
            f"minimum {least:.4f}, first quartile {quartile:.4f} (alpha0 = {low:g})"
            for low, (least, quartile) in by_alpha0.items()
        )
        for domain, by_alpha0 in found.items()
    }
    ours = "; ".join(f"{domain}: {text}" for domain, text in texts.items())
    return Finding(ours, float(np.mean(hits)))


def best_quartile(results: Results) -> Finding | None:
    found = target_quartiles(results)
    if len(found) < 2:
        return None
    best = {domain: max(of, key=lambda low: of[low][1]) for domain, of in found.items()}
    part = float(np.mean([best["gridworld"] == 1e-2, best["river"] == 1e-3]))
    ours = ", ".join(f"alpha0 = {low:g} ({domain})" for domain, low in best.items())
    return Finding(ours, part).unless_it_holds(
        "Which alpha0 has the best quartile depends on the map and on which atoms lie above the"
        " target; that it lies below the target does not."
    )
