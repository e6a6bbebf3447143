"""Both planners side by side: values, policies, planning time (section 5.1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tailpath.study.paper.claims.claim import Claim, judge, share
from tailpath.study.paper.design import is_complete
from tailpath.study.results import FloatArray, Results, Setting, array, planner


def points_counted(results: Results) -> Claim | None:
    settings = results.settings("quantile", "interpolation")
    if not is_complete(results):
        return None
    count = sum(setting.atoms for setting in settings)
    optima = sum(
        setting.atoms for setting in results.settings("quantile", "interpolation", "optimum")
    )
    ours = f"{count} of each, and the optimum at {optima} of the same points"
    return Claim(
        "Predicted and deployed values of both planners",
        "810 of each",
        ours,
        judge(min(count, optima) / 810),
    )


def absolute_differences(results: Results, field: str) -> tuple[FloatArray, FloatArray]:
    """|CVaRVILI - CVaRVIQ| at all points, and at those where CVaRVILI solved linear programs to
    convergence.
    """
    both = "interpolation", "quantile"
    everywhere = results.settings(*both)
    programs = [s for s in everywhere if results.of("interpolation", s).task.inner == "lp"]
    found, of_programs = (
        array(
            abs(getattr(one, field) - getattr(other, field))
            for one, other in results.points(*both, settings=settings)
        )
        for settings in (everywhere, programs)
    )
    return found, of_programs


def equal_predictions(results: Results) -> Claim | None:
    everywhere, programs = absolute_differences(results, "prediction")
    if not programs.size:
        return None
    ours = f"largest {everywhere.max():.1e} at {everywhere.size} points"
    ours += (
        f"; {programs.max():.1e} at the {programs.size} where linear programs ran to convergence"
    )
    remark = (
        "Where linear programs did not run to convergence, CVaRVILI's inner problem was solved in"
        " closed form."
    )
    if everywhere.max() >= 1e-6:
        remark += (
            " Both planners stop when no value moves by more than 1e-3; differences well below that"
            " mean nothing."
        )
    return Claim(
        "Predicted values of CVaRVILI and CVaRVIQ differ by less than 1e-6",
        "all 810",
        ours,
        judge(float(np.mean(everywhere < 1e-6))),
        remark,
    )


LIMITS = (1e-3, 1e-2, 1e-1)


def close_policies(results: Results) -> Claim | None:
    everywhere, programs = absolute_differences(results, "deployed")
    if not programs.size:
        return None

    def shares(values: FloatArray) -> str:
        return ", ".join(f"{100 * np.mean(values < limit):.2f} %" for limit in LIMITS)

    ours = f"{shares(everywhere)} of {everywhere.size} (largest difference {everywhere.max():.2g})"
    ours += (
        f"; {shares(programs)} of the {programs.size} with linear programs to convergence (largest"
        f" {programs.max():.2g})"
    )
    hits = [
        float(np.mean(programs < limit)) >= part
        for limit, part in zip(LIMITS, (0.9728, 0.9926, 1.0))
    ]
    return Claim(
        "Deployed values of the two policies differ by less than 1e-3, 1e-2, 1e-1",
        "97.28 %, 99.26 %, 100 % of 810",
        ours,
        judge(float(np.mean(hits))),
        SAME if everywhere.max() < 1e-9 else TIES,
    )


SAME = (
    "Here both planners break ties between actions in the same way. They share the mass at the VaR"
    " differently, which changes the atoms that their policies remember, but no cost."
)
TIES = (
    "Both planners have ties to break, between actions and between risk factors: a linear program"
    " returns a vertex where the quantile form shares the mass at the VaR. The verdict is on the"
    " points with linear programs."
)


def faster(results: Results) -> Claim | None:
    ratios: dict[int, list[float]] = {}
    estimated = 0
    for setting in results.settings("quantile", "interpolation"):
        slow, quick = (
            results.of(method, setting).answer for method in ("interpolation", "quantile")
        )
        if (
            slow.plan_seconds
            and quick.plan_seconds
            and results.of("interpolation", setting).task.inner != "greedy"
        ):
            ratios.setdefault(setting.atoms, []).append(slow.plan_seconds / quick.plan_seconds)
            estimated += slow.estimated
    if not ratios:
        return None
    everything = [ratio for of_atoms in ratios.values() for ratio in of_atoms]
    ours = ", ".join(
        f"{min(of):,.0f} to {max(of):,.0f} times with {n} atoms" for n, of in sorted(ratios.items())
    )
    remark = (
        f"{estimated} of {len(everything)} times of CVaRVILI are estimated from whole sweeps of"
        " linear programs. CVaRVIQ is compiled here, while every linear program is a call to a"
        " solver, which makes the ratio larger than the paper's."
    )
    return Claim(
        "CVaRVIQ is at least one order of magnitude faster, up to two with more atoms",
        "10 to 100 times",
        ours,
        judge(share(ratio >= 10 for ratio in everything)[1]),
        remark,
    )


def times_by(
    results: Results, method: str, fixed: Callable[[Setting], object]
) -> list[list[tuple[Setting, float]]]:
    """Planning times in groups of settings that agree in `fixed`."""
    groups: dict[object, list[tuple[Setting, float]]] = {}
    for setting in results.settings(method):
        seconds = results.of(method, setting).answer.plan_seconds
        if seconds is not None and results.of(method, setting).task.inner != "greedy":
            groups.setdefault(fixed(setting), []).append((setting, seconds))
    return [group for group in groups.values() if len(group) > 1]


def atoms_take_time(results: Results) -> Claim | None:
    ours, parts = [], []
    for method in ("quantile", "interpolation"):
        groups = times_by(results, method, lambda s: (s.problem, s.alpha0))
        if not groups:
            continue
        text, part = share(all(np.diff([seconds for _, seconds in group]) > 0) for group in groups)
        ours.append(f"{planner(method)}: {text} series rise with |Y|")
        parts.append(part)
    if not parts:
        return None
    return Claim(
        "More atoms take longer, on all problems", "all", "; ".join(ours), judge(min(parts))
    )


def alpha0_matters_less(results: Results) -> Claim | None:
    ours, parts = [], []
    for method in ("quantile", "interpolation"):
        by_atoms, by_alpha0 = (
            [
                max(t for _, t in group) / min(t for _, t in group)
                for group in times_by(results, method, fixed)
            ]
            for fixed in (lambda s: (s.problem, s.alpha0), lambda s: (s.problem, s.atoms))
        )
        if not by_atoms or not by_alpha0:
            continue
        ours.append(
            f"{planner(method)}: |Y| changes the time {np.median(by_atoms):.1f}-fold, alpha0"
            f" {np.median(by_alpha0):.1f}-fold (medians)"
        )
        parts.append(bool(np.median(by_alpha0) < np.median(by_atoms)))
    if not parts:
        return None
    return Claim(
        "alpha0 changes the time less than |Y| does",
        "yes",
        "; ".join(ours),
        judge(float(np.mean(parts))),
    )
