"""Policies that choose by the budget left, evaluated level by level: where they miss the goal, or
are cut short.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import tailpath as tp
from tailpath.errors import LimitExceededError
from tailpath.evaluation.budget import budget_engine
from tailpath.evaluation.engine import Request
from tailpath.model.border import Border


def by_functions(policy: Any) -> Any:
    """The same policy, of which nothing is known."""
    return tp.MemoryPolicy(policy.start, policy.action, policy.remember)


def test_what_is_open_may_be_lost() -> None:
    """1 in 10 arrives at once; of all others, whose budget is spent, half never do."""
    rows = [
        *(("s", "go", "g", 0.1, 1), ("s", "go", "u", 0.9, 1)),
        *(("u", "on", "g", 0.5, 5), ("u", "on", "t", 0.5, 1)),
        *(("t", "loop", "t", 1, 1), ("t", "leave", "g", 1, 50)),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    spent = {"s": 0, "u": 1, "t": 2, "g": -1}
    table = [[-1, 0] if state == "s" else [-1, -1] for state in ssp.states]
    policy = tp.BudgetPolicy.from_table(ssp, table, [spent[state] for state in ssp.states])
    for alpha in (0.95, 0.5, 0.46, 0.01):
        found = tp.evaluate(ssp, policy, alpha)
        other = tp.evaluate(ssp, by_functions(policy), alpha)
        for each in (found, other):
            assert each.unreached == pytest.approx(0.45, rel=1e-13)
            low, high = each.enclosure.missed
            assert low <= 0.45 <= high and high - low < 1e-12
            assert each.mean == math.inf
        assert found.var(alpha) == other.var(alpha)
    assert "'t'" in tp.evaluate(ssp, policy, 0.95).stuck


@pytest.mark.parametrize("scale", [1.0, 0.01, 100.0])
def test_bounds_of_what_is_cut_short(scale: float) -> None:
    """In any unit of cost."""
    rows = [
        *(("s", "safe", "t", 1, 1), ("t", "safe", "g", 1, 5), ("t", "risky", "g", 0.5, 0)),
        *(("t", "risky", "u", 0.5, 0), ("u", "on", "g", 1, 5)),
    ]
    ssp = tp.SSP.from_outcomes([(*row[:4], row[4] * scale) for row in rows], "s", ["g"])
    policy = tp.solve_cvar_exact(ssp, 0.01).policy(0.01)
    truth = tp.evaluate(ssp, policy, 0.01).cvar(0.01)
    ended = 0
    for nodes in range(3):
        try:
            tp.evaluate(ssp, policy, 0.01, max_nodes=nodes)
        except LimitExceededError as error:
            low, high = error.bounds
            assert low <= truth <= high
            ended += 1
    assert ended


@pytest.mark.parametrize("alpha", [0.5, 0.05])
def test_deviations_are_those_of_the_policy(alpha: float) -> None:
    """Where some of what is open has budget left or none, and whoever follows the policy."""
    ssp = tp.domains.gridworld("5x5")
    policy = tp.solve_cvar_exact(ssp, 0.05).policy(0.05)
    found, other = (tp.evaluate(ssp, each, alpha) for each in (policy, by_functions(policy)))
    assert found.mean == pytest.approx(other.mean, rel=1e-11)
    assert found.std == pytest.approx(other.std, rel=1e-9)
    assert found.cvar(alpha) == pytest.approx(other.cvar(alpha), rel=1e-11)


def test_the_deviation_of_a_history() -> None:
    """Costs of 2, 4 and 6 with 1/4, 1/2 and 1/4: a variance of 2."""
    rows = [(s, "a", t, 0.5, c) for s, t in (("s", "t"), ("t", "g")) for c in (1, 3)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.evaluate(ssp, tp.HistoryPolicy(lambda history: "a"), 0.1)
    assert found.mean == pytest.approx(4, rel=1e-13)
    assert found.std**2 == pytest.approx(2, rel=1e-12)


def test_the_deviation_of_a_history_in_eighths_is_a_float() -> None:
    """Half of the runs cost 0, half 8: what is rounded outwards for bounds is not in it."""
    rows = [("s", "a", "t", 1, 0), ("t", "a", "g", 0.5, 0), ("t", "a", "g", 0.5, 8)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    assert tp.evaluate(ssp, tp.HistoryPolicy(lambda history: "a"), 0.1).std == 4


def test_states_that_no_budget_leads_to_are_left_out() -> None:
    """Whatever else there is, and however it would end."""
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "s", 0.5, 1)]
    rows += [("far", "a", "far", 1, 1), ("far", "b", "g", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.solve_cvar_exact(ssp, 0.1).policy(0.1)
    engine, _ = budget_engine(Request(Border(ssp), policy, "lattice", 0.1), policy)
    assert engine is not None and [ssp.states[k] for k in engine.chain.state] == ["s"]


@pytest.mark.parametrize("budget", [2, 3])
def test_what_leaves_only_with_budget_left_is_lost_without(budget: int) -> None:
    """Half of the runs get to a state, at a cost of 2, that they never leave with nothing left."""
    rows = [("s", "go", "g", 0.5, 1), ("s", "go", "t", 0.5, 2)]
    rows += [("t", "loop", "t", 1, 1), ("t", "leave", "g", 1, 5)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    neutral = {"s": 0, "t": 1, "g": -1}
    table = [[-1] + ([2] if state == "t" else [-1]) * budget for state in ssp.states]
    policy = tp.BudgetPolicy.from_table(ssp, table, [neutral[state] for state in ssp.states])
    found = tp.evaluate(ssp, policy, 0.2, max_nodes=1000)
    if budget == 2:
        assert (found.unreached, found.stuck) == (0.5, "state 't' with memory 0")
        assert (found.var(0.5), found.var(0.4)) == (1, math.inf)
    else:
        assert (found.unreached, found.var(0.4)) == (0, 7)
