"""What simulated runs tell of policies that reach too many pairs, against the exact tables."""

import math

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.evaluation.following import Follower
from tailpath.show import beyond, followed
from tests.show.listing import data_of

ALPHA = 0.1


@pytest.fixture
def few_pairs(monkeypatch):
    """Every policy counts as one that reaches too many pairs."""

    def from_now_on():
        monkeypatch.setattr(followed, "MAX_TABLE_PAIRS", 1)
        monkeypatch.setattr(beyond, "MAX_PAIRS", 1)

    return from_now_on


def river_policies():
    ssp = tp.domains.river(rows=5, columns=4)
    best = tp.solve_cvar_exact(ssp, ALPHA).policy(ALPHA)
    average = tp.solve_expected(ssp).policy
    by_calls = tp.MemoryPolicy(best.budget, best.action, best.remember)
    return ssp, [best, average, by_calls]


def near(found, wanted, runs):
    """Five standard deviations of a share."""
    return abs(found - wanted) <= 5 * math.sqrt(wanted * (1 - wanted) / runs) + 1e-12


def test_rows_are_those_of_the_exact_table(few_pairs):
    ssp, (best, _, by_calls) = river_policies()  # one without memory has a chain of its states
    policies = best, by_calls
    exact = [policy.table(ssp, ALPHA) for policy in policies]
    few_pairs()
    for policy, rows in zip(policies, exact):
        with pytest.warns(tp.TailpathWarning, match="simulated runs"):
            found = policy.table(ssp, ALPHA)
        assert rows.estimated == 0 < found.estimated
        known = {(row.state, row.action, row.memory): row for row in rows}
        by_state = {}
        for row in rows:
            by_state.setdefault((row.state, row.action), []).append(row)
        for row in found[:10]:
            # Budgets that no simulated run had may lie at the ends of a row.
            same = known.get((row.state, row.action, row.memory))
            if same is None:
                assert (row.state, row.action) in by_state
                continue
            assert near(row.visits, same.visits, found.estimated)
            assert row.next_states == same.next_states
            if row.visits > 0.5:
                assert row.mean == pytest.approx(same.mean, rel=0.1)
        assert sum((row.state, row.action, row.memory) in known for row in found[:10]) >= 5


def test_the_rows_of_one_state_come_from_the_policy(few_pairs):
    ssp, (best, *_) = river_policies()
    state = max(best.table(ssp), key=lambda row: len(best.table(ssp, state=row.state))).state
    few_pairs()
    index = best.ssp.state_index(state)
    with pytest.warns(tp.TailpathWarning, match="simulated runs") as warned:
        rows = best.table(ssp, ALPHA, state=state)
    assert warned[0].filename == __file__, "the line that asked, not functools"
    assert len(rows) > 1
    told = {best.choice_at(index, budget) for budget in range(best.budget + 1)}
    assert {row.action for row in rows} == {ssp.choice_name(choice) for choice in told}
    assert {row.state for row in rows} == {state}


def test_bad_runs_are_typical_and_blame_is_where_the_excess_is_paid(few_pairs):
    ssp, (_, average, _) = river_policies()
    exact = tp.worst_runs(ssp, average, ALPHA)
    few_pairs()
    with pytest.warns(tp.TailpathWarning, match="simulated runs"):
        found = tp.worst_runs(ssp, average, ALPHA)
    for name in ("var", "cvar", "chance", "excess"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), rel=1e-9)
    assert found.typical.cost > found.var
    assert sum(row.share for row in found.blame) == pytest.approx(exact.excess, rel=0.25)
    assert sum(row.slope for row in found.blame) == pytest.approx(
        sum(row.slope for row in exact.blame), rel=0.25
    )
    assert "simulated runs" in str(found) and "where runs turn bad" not in str(found)
    with pytest.raises(OptionError, match="share"):
        found.plot(ssp)


def test_partings_are_those_of_the_exact_search(few_pairs):
    ssp, (best, average, by_calls) = river_policies()
    exact = tp.differences(ssp, average, best, ALPHA)
    few_pairs()
    for policy in (best, by_calls):
        with pytest.warns(tp.TailpathWarning, match="simulated runs"):
            found = tp.differences(ssp, average, policy, ALPHA)
        assert (found.means, found.cvars) == (
            pytest.approx(exact.means),
            pytest.approx(exact.cvars),
        )
        assert near(found.probability, exact.probability, found.simulated)
        first, same = found[0], exact[0]
        assert (first.state, first.first_action, first.second_action) == (
            same.state,
            same.first_action,
            same.second_action,
        )
        assert near(first.probability, same.probability, found.simulated)
        assert first.first_mean == pytest.approx(same.first_mean, rel=0.1)
        assert "simulated runs" in str(found)


def test_a_page_says_what_is_estimated(few_pairs):
    ssp, _ = river_policies()
    few_pairs()
    with pytest.warns(tp.TailpathWarning, match="simulated runs"):
        told = data_of(tp.page(ssp, alphas=[ALPHA]).html)
    assert told["simulated"] > 0
    assert all(case["runs"][0]["typical"] for case in told["cases"][0])


def test_a_page_says_so_where_bad_runs_alone_are_estimated(monkeypatch):
    ssp, _ = river_policies()
    monkeypatch.setattr(beyond, "MAX_PAIRS", 1)
    with pytest.warns(tp.TailpathWarning, match="simulated runs"):
        told = data_of(tp.page(ssp, alphas=[ALPHA]).html)
    assert told["simulated"] > 0 and told["cases"][0][0]["runs"][0]["typical"]


def test_budgets_are_looked_up_as_the_policy_does():
    ssp, (best, *_) = river_policies()
    follower = Follower(ssp, best)
    states = np.flatnonzero(~ssp.is_goal).repeat(best.budget + 2)
    budgets = np.tile(np.arange(best.budget + 2), len(states) // (best.budget + 2))
    assert follower.choices(states, budgets).tolist() == best.choices_at(states, budgets).tolist()
