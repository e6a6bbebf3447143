"""Both planners side by side: values, policies, planning time (section 5.1)."""

from __future__ import annotations

from itertools import chain

import numpy as np

from tailpath.study.paper.claims.claim import PLANNERS, Finding, percents, rises, share
from tailpath.study.paper.design import is_complete
from tailpath.study.results import FloatArray, Results, array, planner

LIMITS = (1e-3, 1e-2, 1e-1)


def points_counted(results: Results) -> Finding | None:
    if not is_complete(results):
        return None
    count, optima = (
        sum(setting.atoms for setting in results.settings(*PLANNERS, *more))
        for more in ((), ("optimum",))
    )
    ours = f"{count} of each, and the optimum at {optima} of the same points"
    return Finding(ours, min(count, optima) / 810)


def absolute_differences(results: Results, field: str) -> tuple[FloatArray, FloatArray]:
    """|CVaRVILI - CVaRVIQ| at all points, and at those where CVaRVILI solved linear programs to
    convergence.
    """
    everywhere = results.settings(*PLANNERS)
    programs = [s for s in everywhere if results.of("interpolation", s).task.inner == "lp"]
    found, of_programs = (
        array(
            abs(getattr(one, field) - getattr(other, field))
            for one, other in results.points(*PLANNERS, settings=settings)
        )
        for settings in (everywhere, programs)
    )
    return found, of_programs


def equal_predictions(results: Results) -> Finding | None:
    everywhere, programs = absolute_differences(results, "prediction")
    if not programs.size:
        return None
    ours = (
        f"largest {everywhere.max():.1e} at {everywhere.size} points; {programs.max():.1e} at the"
        f" {programs.size} where linear programs ran to convergence"
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
    return Finding(ours, float(np.mean(everywhere < 1e-6)), remark)


def close_policies(results: Results) -> Finding | None:
    everywhere, programs = absolute_differences(results, "deployed")
    if not programs.size:
        return None
    shares, of_programs = (
        [float(np.mean(values < limit)) for limit in LIMITS] for values in (everywhere, programs)
    )
    ours = (
        f"{percents(shares)} of {everywhere.size} (largest difference {everywhere.max():.2g});"
        f" {percents(of_programs)} of the {programs.size} with linear programs to convergence"
        f" (largest {programs.max():.2g})"
    )
    part = float(np.mean(np.greater_equal(of_programs, (0.9728, 0.9926, 1.0))))
    return Finding(ours, part, SAME if everywhere.max() < 1e-9 else TIES)


SAME = (
    "Here both planners break ties between actions in the same way. They share the mass at the VaR"
    " differently, which changes the atoms that their policies remember, but no cost."
)
TIES = (
    "Both planners have ties to break, between actions and between risk factors: a linear program"
    " returns a vertex where the quantile form shares the mass at the VaR. The verdict is on the"
    " points with linear programs."
)


def faster(results: Results) -> Finding | None:
    ratios: dict[int, list[float]] = {}
    estimated = 0
    for setting in results.settings(*PLANNERS):
        quick, slow = (results.of(method, setting) for method in PLANNERS)
        if slow.planning_seconds and quick.planning_seconds:
            ratio = slow.planning_seconds / quick.planning_seconds
            ratios.setdefault(setting.atoms, []).append(ratio)
            estimated += slow.answer.estimated
    if not ratios:
        return None
    ours = ", ".join(
        f"{min(of):,.0f} to {max(of):,.0f} times with {n} atoms" for n, of in sorted(ratios.items())
    )
    everything = list(chain.from_iterable(ratios.values()))
    remark = (
        f"{estimated} of {len(everything)} times of CVaRVILI are estimated from whole sweeps of"
        " linear programs. CVaRVIQ is compiled here, while every linear program is a call to a"
        " solver, which makes the ratio larger than the paper's."
    )
    return Finding(ours, share(ratio >= 10 for ratio in everything)[1], remark)


def series_of_times(results: Results, method: str, fixed: str) -> list[list[float]]:
    """Planning times of each problem in series: the number of atoms changes where alpha0 is
    `fixed`, and alpha0 where the atoms are.
    """
    series: dict[object, list[float]] = {}
    for setting in results.settings(method):
        seconds = results.of(method, setting).planning_seconds
        if seconds is not None:
            series.setdefault((setting.problem, getattr(setting, fixed)), []).append(seconds)
    return [times for times in series.values() if len(times) > 1]


def atoms_take_time(results: Results) -> Finding | None:
    series = {method: series_of_times(results, method, "alpha0") for method in PLANNERS}
    shares = {method: share(map(rises, of)) for method, of in series.items() if of}
    if not shares:
        return None
    ours = (f"{planner(of)}: {text} series rise with |Y|" for of, (text, _) in shares.items())
    return Finding("; ".join(ours), min(part for _, part in shares.values()))


def alpha0_matters_less(results: Results) -> Finding | None:
    ours, hits = [], []
    for method in PLANNERS:
        by_atoms, by_alpha0 = (
            [max(times) / min(times) for times in series_of_times(results, method, fixed)]
            for fixed in ("alpha0", "atoms")
        )
        if by_atoms and by_alpha0:
            atoms, alpha0 = np.median(by_atoms), np.median(by_alpha0)
            ours.append(
                f"{planner(method)}: |Y| changes the time {atoms:.1f}-fold, alpha0"
                f" {alpha0:.1f}-fold (medians)"
            )
            hits.append(alpha0 < atoms)
    return Finding("; ".join(ours), float(np.mean(hits))) if hits else None
