"""Deadlines against Storm, the frontier, and limits on a large grid."""

from __future__ import annotations

import pathlib
import tempfile
import time
from dataclasses import replace
from functools import partial

import numpy as np

import tailpath as tp
from benchmarks.measure import best_of, find_grid, gridworld
from tailpath.analysis.tables import fill_table
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.objectives.on_time import LATE_THEN_MEAN


def run(small: bool = False) -> None:
    problem = f"gridworld:{gridworld(small)}"
    tp.solve_on_time(tp.read("gridworld:5x5"), 10)
    for name in (problem, "river:6x4" if small else "river:30x10"):
        ssp = tp.read(name)
        tp.solve_expected(ssp)
        last = tp.solve(ssp, tp.VaR(0.001)).value
        ours, _ = best_of(partial(on_time, ssp, last), 50)
        print(
            f"{name}: every deadline up to {last:g}, with policies: {1e3 * ours:.2f}"
            f" ms{_storm(ssp, last, ours)}"
        )
    ssp = tp.read(problem)
    tp.frontier(tp.read("gridworld:5x5"), "cvar(0.1)")
    seconds, frontier = best_of(lambda: tp.frontier(ssp, "cvar(0.01)", tolerance=0), 3)
    print(
        f"{problem}: frontier of mean and cvar(0.01), {len(frontier)} corners, gap"
        f" {frontier.gap:g}: {seconds:.2f} s"
    )

    size, grid = find_grid(small)
    neutral, safest = tp.solve(grid, "mean"), tp.solve_cvar_exact(grid, 0.01).cvar(0.01)
    most = neutral.risk("cvar(0.01)")
    bound = (safest + most) / 2
    begin = time.perf_counter()
    plan = tp.solve(grid, "mean", [tp.CVaR(0.01) <= bound])
    seconds = time.perf_counter() - begin
    print(
        f"{size} grid: least mean with cvar(0.01) <= {bound:.1f} (between {safest:.1f} and"
        f" {most:.1f}): {plan.value:.4f}, gap {plan.gap:.1e},"
    )
    print(
        f"  {seconds:.1f} s; the policy delivers {plan.risk('cvar(0.01)'):.4f} at a mean of"
        f" {plan.risk('mean'):.4f}"
    )
    for name, model in ((problem, ssp), (size, grid)):
        print(
            f"{name}: deadlines with ties by the mean, one core: {throughput(model) / 1e6:.0f}"
            " million outcome updates per second"
        )


def on_time(ssp: tp.SSP, last: float) -> tp.Policy:
    return tp.solve_on_time(ssp, last).policy(last)


def throughput(ssp: tp.SSP, levels: int = 60) -> float:
    """Outcome updates per second on one core over the first deadlines, with ties broken by the
    mean: each outcome of a level counts once, that the mean of the choices taken is summed up
    besides does not count.
    """
    layout = layout_of(ssp)
    # Every state takes part: none is too far from the start.
    everywhere = replace(
        layout,
        nodes=layout.nodes._replace(cost_from_start=np.zeros_like(layout.nodes.cost_from_start)),
    )
    fill = partial(
        fill_table,
        everywhere,
        everywhere.objective(LATE_THEN_MEAN, limit=float(levels), tie=SAME_VALUE),
    )
    fill()
    return len(layout.target) * levels / best_of(fill, 3)[0]


def _storm(ssp: tp.SSP, deadline: float, ours: float) -> str:
    """Storm's time for the last deadline alone, without a policy, on the same model; nothing where
    Storm is not installed.
    """
    try:
        import stormpy
    except ImportError:
        return ""
    assert ssp.cost_unit is not None
    units = round(deadline / float(ssp.cost_unit))
    rows = [
        (
            state,
            ssp.choice_name(k),
            ssp.states[ssp.outcome_target[o]],
            ssp.outcome_probability[o],
            int(ssp.outcome_level[o]),
        )
        for s, state in enumerate(ssp.states)
        for k in range(ssp.state_choices[s], ssp.state_choices[s + 1])
        for o in range(ssp.choice_outcomes[k], ssp.choice_outcomes[k + 1])
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "model.drn")
        tp.write(tp.SSP.from_outcomes(rows, ssp.start, ssp.goals), path)
        model = stormpy.build_model_from_drn(path)
    formula = stormpy.parse_properties(f'Pmax=? [F{{"cost"}}<={units} "goal"]')[0]
    seconds, result = best_of(
        lambda: stormpy.model_checking(model, formula, only_initial_states=True), 20
    )
    theirs = result.get_value(model.initial_states[0])
    agreed = abs(theirs - tp.solve_on_time(ssp, deadline).probability(deadline))
    return (
        f"; Storm, this deadline alone: {1e3 * seconds:.1f} ms, {seconds / ours:.0f} times as long;"
        f" they differ by {agreed:.1e}"
    )
