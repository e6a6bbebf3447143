"""CVaRVIQ's atoms: more of them with the same alpha0 (section 4.2), and alpha0 at the target and
below it (section 4.3).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import compress, product

import numpy as np

from forpecvar.claims import (
    GRID,
    MAX_ATOMS,
    RIVER,
    TOLERANCE,
    Finding,
    by_domain,
    percents,
    rises,
    share,
)
from forpecvar.results import FloatArray, Key, Results, at, quotient
from forpecvar.store import AtomPoint

#: The paper's alpha_target.
TARGET = 0.1
#: The finer grid of one claim.
FINE_ATOMS = 49
#: Values within so many percent of the optimum leave little to gain.
LITTLE = 2.0
#: At an alpha a smaller alpha0 is set beside alpha0 = alpha.
BELOW = [(1e-2, 1e-3)]


def common(results: Results) -> list[list[AtomPoint]]:
    """The points of CVaRVIQ at the atoms that all grids with one alpha0 share, from the coarsest to
    the finest grid.
    """
    found = []
    for problem, low in product(results.problems, results.alpha0):
        every = (results.get("quantile", problem, n, low) for n in results.atoms)
        runs = [run for run in every if run is not None]
        if len(runs) == len(results.atoms) > 1:
            for first in runs[0].points:
                series = [point for run in runs if (point := at(run, first.alpha)) is not None]
                found += [series] if len(series) == len(runs) else []
    return found


def more_atoms(results: Results) -> Finding | None:
    series = common(results)
    if not series:
        return None
    predicted, deployed = (
        [np.array([getattr(point, field) for point in points]) for points in series]
        for field in ("prediction", "deployed")
    )
    up, up_part = share(rises(values, TOLERANCE) for values in predicted)
    down, down_part = share(rises(-values, TOLERANCE) for values in deployed)
    near, near_part = share(rises(a - b, TOLERANCE) for a, b in zip(predicted, deployed))
    first_to_last, _ = share(values[-1] <= values[0] + TOLERANCE for values in deployed)
    ours = (
        f"predicted rises at {up} common atoms; deployed falls at every step at {down}, from the"
        f" coarsest to the finest grid at {first_to_last}; the distance shrinks at {near}"
    )
    return Finding(ours, min(up_part, down_part, near_part)).unless_it_holds(
        f"The largest rise of a deployed value with more atoms is {np.diff(deployed).max():.2g}. No"
        " theorem forbids it: a finer grid is another policy."
    )


def worse_near_alpha0(results: Results) -> Finding | None:
    hits, ends = [], []
    for setting in results.settings("quantile"):
        gap = 1 - quotient(results.points("quantile", settings=[setting]), "prediction")
        half = len(gap) // 2
        if gap.max() > TOLERANCE:
            hits.append(bool(gap[:half].mean() > gap[half + 1 :].mean()))
        ends.append((gap[0], gap[-1]))
    if not hits:
        return None
    text, part = share(hits)
    first, last = np.mean(ends, axis=0)
    ours = (
        f"in {text} runs the lower half of the atoms is further off; mean distance {first:.1%} at"
        f" alpha0, {last:.2%} at alpha = 1; {len(ends) - len(hits)} runs are left out, where no"
        " value is off by more than 1e-3"
    )
    return Finding(ours, part)


def boxes_narrow(results: Results) -> Finding | None:
    def look(boxes: Sequence[FloatArray]) -> tuple[str, bool]:
        medians = [float(np.median(box)) for box in boxes]
        quartiles = [float(np.percentile(box, 25)) for box in boxes]
        texts = (", ".join(f"{value:.4f}" for value in of) for of in (medians, quartiles))
        holds = rises(medians, 0.0) and rises(quartiles, 0.0)
        return "medians {}, first quartiles {}".format(*texts), holds

    low = min(results.alpha0, default=0.0)
    return by_domain(results, look, "prediction", "quantile", alpha0=low)


def outliers_near_alpha0(results: Results) -> Finding | None:
    low, hits = min(results.alpha0, default=0.0), []
    for domain, n in product(results.domains, results.atoms):
        points = results.points("quantile", domain=domain, atoms=n, alpha0=low)
        if points:
            ratio = quotient(points, "prediction")
            first, third = np.percentile(ratio, [25, 75])
            outside = ratio < first - 1.5 * (third - first)
            hits += [point.alpha < low ** (2 / 3) for (point,) in compress(points, outside)]
    if not hits:  # none of none is no verdict
        return None
    text, part = share(hits)
    ours = f"{text} outliers lie in the third of the (logarithmic) range next to alpha0"
    return Finding(ours, part)


def towards_optimum(results: Results) -> Finding | None:
    def look(boxes: Sequence[FloatArray]) -> tuple[str, bool]:
        means, most = ([float(of(box)) - 1 for box in boxes] for of in (np.mean, np.max))
        ours = (
            f"deployed value above the optimum by {percents(means)} on average, {percents(most)} at"
            " most"
        )
        return ours, rises(np.negative(means), 0.0)

    low = min(results.alpha0, default=0.0)
    found = by_domain(results, look, "deployed", "quantile", "optimum", alpha0=low)
    return found and replace(found, remark=DISTANCE)


DISTANCE = (
    "The distance to the optimum does not vanish: the fixed point of the dual decomposition is not"
    " the optimum, with any number of atoms."
)


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
    found = smaller_alpha0(results, GRID, MAX_ATOMS, compared, operator.lt)
    best = results.get("optimum", GRID, MAX_ATOMS, 1e-3)
    if best is None or found is None:
        return None
    above = max(
        100 * (value / point.deployed - 1)
        for (alpha, _), value in deployed_at(results, GRID, MAX_ATOMS).items()
        if alpha > 1e-3 and (point := at(best, alpha)) is not None
    )
    gain = ", so there is little to gain" if above < LITTLE else ""
    return found.unless_it_holds(
        f"All these values lie within {above:.2f} % of the optimum{gain}. A smaller alpha0 spends"
        " atoms below the target that are missing above it: of 25 atoms 9 lie in [0.1, 1] with"
        " alpha0 = 1e-3, all 25 with alpha0 = 0.1."
    )


def river_alpha0(results: Results) -> Finding | None:
    found = smaller_alpha0(results, RIVER, MAX_ATOMS, BELOW, operator.ge)
    return found and found.unless_it_holds(
        "Here 25 atoms are enough for the smaller alpha0 to help, from either start, with every"
        " reading of the factor xi and the goal in any of the six lowest rows. Outside of the tail"
        " y xi is 0 and no atom is nearest: with the largest there it would be as the paper saw,"
        " but not with more atoms (errata.md)."
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
    return found if MAX_ATOMS in results.atoms else None


def target_quartiles(results: Results) -> dict[str, dict[float, tuple[float, float]]]:
    """Minimum and first quartile of predicted / deployed at the atoms from the target up, by domain
    and alpha0; nothing if a domain has fewer than three alpha0.
    """
    found: dict[str, dict[float, tuple[float, float]]] = {}
    for domain, low in product(results.domains, results.alpha0):
        points = results.points(
            "quantile", domain=domain, atoms=MAX_ATOMS, alpha0=low, least=TARGET
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
