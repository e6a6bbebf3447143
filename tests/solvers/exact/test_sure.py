"""Budgets that every run exceeds: left out of large tables, and of the policies that come from
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.analysis.tables import fill_table
from tailpath.dp.budget_model import EXCESS, LATE, MEAN
from tailpath.model.border import prepare
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.solver import solve_prepared
from tests.solvers.exact.behaviour import assert_behaves

ALPHAS = (0.01, 0.05, 0.3, 1.0)
PROBLEMS = ("gridworld:14x16", "river:10x3")


def sleet(size: int = 40) -> tp.SSP:
    """A grid with a dear cell here and there, on which most states are far from the goal."""
    rows = [
        "".join("#" if (7 * i + 11 * j) % 31 == 0 else "." for j in range(size))
        for i in range(size - 1)
    ]
    return tp.domains.gridworld("\n".join([*rows, "G" + "." * (size - 2) + "S"]), obstacle_cost=500)


@pytest.mark.parametrize("options", [{}, {"lexicographic": True}])
@pytest.mark.parametrize("problem", [*PROBLEMS, "sleet"])
def test_what_is_left_out_changes_nothing(problem: str, options: dict[str, Any]) -> None:
    ssp = sleet(20) if problem == "sleet" else tp.read(problem)
    full, less = (
        solve_prepared(prepare(ssp), 0.01, pairs=False, skip=skip, **options)
        for skip in (False, True)
    )
    low, high = tp.solve_expected(ssp).bounds
    apart = (high - low) / low
    assert len(less.largest.choice) <= len(full.largest.choice)
    both = min(len(full.excess), len(less.excess))
    assert less.excess[:both] == pytest.approx(full.excess[:both], rel=1e-12)
    for alpha in ALPHAS:
        assert less.cvar(alpha) == pytest.approx(full.cvar(alpha), rel=1e-13)
        assert less.var(alpha) == full.var(alpha)
        wide, narrow = full.bounds(alpha), less.bounds(alpha)
        assert narrow[0] <= wide[1] and wide[0] <= narrow[1]
        # What is left out is V* - w: of an excess the bounds on V* count whole, weighted by how
        # often a run gets there: together at most V*'s relative width of the CVaR.
        assert narrow[1] - narrow[0] <= 1.1 * (wide[1] - wide[0] + apart * wide[1])
        costs = tp.evaluate(ssp, less.policy(alpha), alpha)
        assert costs.cvar(alpha) == pytest.approx(less.cvar(alpha), rel=1e-12)
        assert costs.mean == pytest.approx(less.mean(alpha), rel=1e-12)
        met = tp.unroll(ssp, full.policy(alpha))
        assert np.array_equal(
            *(solution.largest.choices_at(met.state, met.memory) for solution in (less, full))
        )


def test_large_tables_leave_out_most() -> None:
    ssp = sleet(80)
    layout = layout_of(ssp, "excess")
    best = tp.solve_cvar_exact(ssp, 0.01)
    full = solve_prepared(prepare(ssp), 0.01, skip=False)
    assert not np.array_equal(best.excess, full.excess), "by itself"
    assert layout.nodes.unavoidable_cost.any()
    assert 4 * layout.entries(best.var(0.01)) < layout_of(ssp).entries(best.var(0.01))
    assert 5 * len(best.largest.choice) < layout.entries(best.var(0.01)), (
        "and of what remains few budgets are steps"
    )
    assert best.cvar(0.01) == pytest.approx(full.cvar(0.01), rel=1e-13)


@pytest.mark.parametrize(
    "criteria",
    [EXCESS, LATE, np.stack([EXCESS, MEAN, LATE]), np.stack([MEAN + 3 * EXCESS, EXCESS])],
)
def test_every_criterion_has_its_closed_form(criteria: np.ndarray) -> None:
    ssp = sleet(20)
    layouts = [layout_of(ssp, skip) for skip in ("", "excess")]
    full, less = (
        fill_table(layout, layout.objective(criteria, limit=60.0)).values for layout in layouts
    )
    assert layouts[1].nodes.unavoidable_cost.max() > 10
    assert less == pytest.approx(full, rel=1e-12)


def test_the_checker_agrees() -> None:
    ssp = sleet(12)
    assert layout_of(ssp, "excess").nodes.unavoidable_cost.any()
    best = solve_prepared(prepare(ssp), 0.05, skip=True)
    assert best.verify().width < 1e-12


def test_policies_without_sure_budgets_are_policies(tmp_path: Path) -> None:
    ssp = sleet(12)
    policy, plain = (
        solve_prepared(prepare(ssp), 0.05, skip=skip).policy(0.05) for skip in (True, False)
    )
    layout = layout_of(ssp, "excess")
    sure = np.where(layout.node_of >= 0, layout.nodes.unavoidable_cost[layout.node_of], 0)
    assert sure.max() > 3
    assert_behaves(ssp, policy, tmp_path, 0.05)
    exact, other = tp.evaluate(ssp, policy, 0.05), tp.evaluate(ssp, policy, 0.05, engine="queue")
    assert other.cvar(0.05) == pytest.approx(exact.cvar(0.05), rel=1e-12)
    assert exact.cvar(0.05) == pytest.approx(tp.evaluate(ssp, plain, 0.05).cvar(0.05), rel=1e-12)
    # With a budget that is sure to be exceeded, or none, the choice is the risk-neutral one.
    assert len(policy.choice) > 0
    for state in np.flatnonzero(np.diff(policy.first)).tolist():
        assert {policy.choice_at(state, left) for left in range(-1, int(sure[state]) + 1)} == {
            int(policy.risk_neutral[state])
        }
