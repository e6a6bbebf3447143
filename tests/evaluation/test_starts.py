"""Evaluation from any start."""

from dataclasses import replace

import pytest

import tailpath as tp

GRID = tp.domains.gridworld("5x5")
POLICY = tp.solve_cvar_quantile(GRID, tp.log_atoms(1e-2, 7)).policy(0.1)


@pytest.mark.parametrize("state", [(4, 4), (4, 0), (2, 3), (3, 4)])
def test_any_start(state):
    """As if the model started there, for every kind of policy that tables hold."""
    moved = replace(GRID, start_index=GRID.state_index(state))
    for policy in (
        POLICY,
        tp.solve_expected(GRID).policy,
        tp.solve_cvar_exact(GRID, 0.1).policy(0.1),
    ):
        assert tp.evaluate(GRID, policy, 0.1, start=state).cvar(0.1) == pytest.approx(
            tp.evaluate(moved, policy, 0.1).cvar(0.1), rel=1e-12
        )
    neutral = tp.evaluate(GRID, tp.solve_expected(GRID).policy, 0.1, start=state)
    assert neutral.mean == pytest.approx(tp.solve_expected(GRID).cost(state))


def test_an_unknown_start():
    with pytest.raises(tp.TailpathError, match="'nowhere'"):
        tp.evaluate(GRID, POLICY, 0.1, start="nowhere")
