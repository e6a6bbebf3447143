"""CVaRVIQ with alpha0 at the target and below it (section 5.3)."""

from __future__ import annotations

import numpy as np

from tailpath.study.paper.boxes import TARGET, predicted_by_deployed
from tailpath.study.paper.claims.claim import (
    GRID,
    MOST_ATOMS,
    RIVER,
    Claim,
    judge,
    numbers_listed,
    percents,
    share,
)
from tailpath.study.results import Results, at

#: The finer grid of one claim.
FINE_ATOMS = 49
#: Values within so many percent of the optimum leave little to gain.
LITTLE = 2.0


def grid_alpha0(results: Results) -> Claim | None:
    problem, atoms = GRID, MOST_ATOMS
    table = deployed_at(results, problem, atoms)
    compared = [
        ((1e-2, 1e-3), (1e-2, 1e-2)),
        ((1e-1, 1e-2), (1e-1, 1e-1)),
        ((1e-1, 1e-3), (1e-1, 1e-1)),
    ]
    best = results.get("optimum", problem, atoms, 1e-3)
    if best is None or any(key not in table for pair in compared for key in pair):
        return None
    above = [
        100 * (value / point.deployed - 1)
        for (alpha, _), value in table.items()
        if (point := at(best, alpha)) is not None and alpha > 1e-3
    ]
    gain = ", so there is little to gain" if max(above) < LITTLE else ""
    remark = (
        f"All these values lie within {max(above):.2f} % of the optimum{gain}. A smaller alpha0"
        " spends atoms below the target that are missing above it: of 25 atoms 9 lie in [0.1, 1]"
        " with alpha0 = 1e-3, all 25 with alpha0 = 0.1."
    )
    verdict = judge(share(table[below] < table[same] for below, same in compared)[1])
    says = (
        "Gridworld 14×16, 25 atoms: at alpha = 1e-2 and 1e-1 the deployed value is smaller with"
        " alpha0 < alpha than with alpha0 = alpha"
    )
    return Claim(says, "yes", _deployed_text(table), verdict, "" if verdict == "holds" else remark)


def river_alpha0(results: Results) -> Claim | None:
    table = deployed_at(results, RIVER, MOST_ATOMS)
    if not {(1e-2, 1e-3), (1e-2, 1e-2)} <= table.keys():
        return None
    holds = table[1e-2, 1e-3] >= table[1e-2, 1e-2]
    says = (
        "River 30×10, 25 atoms: at alpha = 1e-2 the deployed value is not smaller with alpha0 ="
        " 1e-3 than with 1e-2, for want of atoms"
    )
    remark = (
        "Here 25 atoms are enough for the smaller alpha0 to help, from either start and with every"
        " reading of the factor xi: none of them explains what the paper saw."
    )
    return Claim(says, "yes", _deployed_text(table), judge(float(holds)), "" if holds else remark)


def finer_river(results: Results) -> Claim | None:
    table = deployed_at(results, RIVER, FINE_ATOMS)
    if not {(1e-2, 1e-3), (1e-2, 1e-2)} <= table.keys():
        return None
    says = "River 30×10: with more atoms the smaller alpha0 helps as in Gridworld"
    ours = f"with {FINE_ATOMS} atoms: {_deployed_text(table)}"
    return Claim(
        says, "yes (numbers not shown)", ours, judge(float(table[1e-2, 1e-3] <= table[1e-2, 1e-2]))
    )


def deployed_at(
    results: Results, problem: tuple[str, str], atoms: int
) -> dict[tuple[float, float], float]:
    """Deployed values of CVaRVIQ by (alpha, alpha0), at the alphas that are an alpha0
    of the study.
    """
    found = {}
    for low in results.alpha0:
        run = results.get("quantile", problem, atoms, low)
        for alpha in results.alpha0:
            point = at(run, alpha) if run is not None and alpha >= low else None
            if point is not None:
                found[alpha, low] = point.deployed
    return found


def _deployed_text(table: dict[tuple[float, float], float]) -> str:
    rows = []
    for alpha in sorted({alpha for alpha, _ in table}):
        cells = [
            f"{value:.3f} (alpha0 = {low:g})"
            for (of, low), value in sorted(table.items())
            if of == alpha
        ]
        if len(cells) > 1:
            rows.append(f"at alpha = {alpha:g}: {', '.join(cells)}")
    return "; ".join(rows)


def target_quartiles(results: Results, atoms: int) -> dict[str, dict[float, tuple[float, float]]]:
    """Minimum and first quartile of predicted / deployed at the atoms from the target up, by domain
    and alpha0.
    """
    found: dict[str, dict[float, tuple[float, float]]] = {}
    for domain in results.domains:
        for low in results.alpha0:
            box = predicted_by_deployed(results, domain, atoms, low, TARGET)
            if box.size:
                found.setdefault(domain, {})[low] = (
                    float(box.min()),
                    float(np.percentile(box, 25)),
                )
    return found


def few_atoms_are_far(results: Results) -> Claim | None:
    ours, hits = [], []
    if MOST_ATOMS not in results.atoms:
        return None
    for domain in results.domains:
        boxes = [
            np.concatenate(
                [predicted_by_deployed(results, domain, n, low, TARGET) for low in results.alpha0]
            )
            for n in results.atoms
        ]
        if len(boxes) < 2 or not all(box.size for box in boxes):
            return None
        means = [1 - float(np.mean(box)) for box in boxes]
        hits.append(bool(np.all(np.diff(means) < 0)))
        ours.append(f"{domain}: predicted below deployed by {percents(means)} on average")
    says = (
        "alpha_target = 0.1: with few atoms predicted values are far from deployed ones; 25 is the"
        " better choice"
    )
    return Claim(
        says,
        "yes (not shown)",
        f"{'; '.join(ours)}, with {numbers_listed(results.atoms)} atoms",
        judge(float(np.mean(hits))),
    )


def target_is_worst(results: Results) -> Claim | None:
    found = target_quartiles(results, MOST_ATOMS)
    if not found or any(len(by_alpha0) < 3 for by_alpha0 in found.values()):
        return None
    hits = [
        by_alpha0[TARGET][k] < min(values[k] for low, values in by_alpha0.items() if low != TARGET)
        for by_alpha0 in found.values()
        for k in (0, 1)
    ]
    ours = "; ".join(
        f"{domain}: "
        + ", ".join(
            f"minimum {low_:.4f}, first quartile {q:.4f} (alpha0 = {low:g})"
            for low, (low_, q) in by_alpha0.items()
        )
        for domain, by_alpha0 in found.items()
    )
    says = (
        "25 atoms: alpha0 = alpha_target = 0.1 has the worst minimum and first quartile, in both"
        " domains"
    )
    return Claim(says, "yes", ours, judge(float(np.mean(hits))))


def best_quartile(results: Results) -> Claim | None:
    found = target_quartiles(results, MOST_ATOMS)
    if len(found) < 2 or any(len(by_alpha0) < 3 for by_alpha0 in found.values()):
        return None
    best = {
        domain: max(by_alpha0, key=lambda low: by_alpha0[low][1])
        for domain, by_alpha0 in found.items()
    }
    hits = [best["gridworld"] == 1e-2, best["river"] == 1e-3]
    ours = ", ".join(f"alpha0 = {low:g} ({domain})" for domain, low in best.items())
    says = "25 atoms: the best first quartile is at alpha0 = 1e-2 in Gridworld and 1e-3 in River"
    remark = (
        "Which alpha0 has the best quartile depends on the map and on which atoms lie above the"
        " target; that it lies below the target does not."
    )
    return Claim(
        says,
        "alpha0 = 0.01 (gridworld), alpha0 = 0.001 (river)",
        ours,
        judge(float(np.mean(hits))),
        "" if all(hits) else remark,
    )
