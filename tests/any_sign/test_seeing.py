"""What a person sees of costs of any sign: runs, tables, pictures, files, and gains."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tests.signed import gambler, trader

F = Fraction


def play(ssp: tp.SSP, policy: Any, seed: int) -> float:
    """One run through the runner, which sees costs as given; nothing may surprise it."""
    drawn, runner, state = random.Random(seed), policy.start_run(), ssp.start
    while state not in ssp.goals:
        choice = ssp.choice_index(ssp.state_index(state), runner.action(state))
        span = range(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1]))
        outcome = drawn.choices(list(span), [ssp.outcome_probability[o] for o in span])[0]
        state = ssp.states[int(ssp.outcome_target[outcome])]
        assert runner.observe(float(ssp.outcome_cost[outcome]), state) is None
    return float(runner.cost)


def test_a_run_in_the_world_charges_the_budget_as_the_table_does() -> None:
    ssp = trader()
    by_budget = tp.solve_on_time(ssp, 0).policy(-5.8)
    mixed, limited = (
        tp.frontier(ssp, "cvar(0.1)")[2].policy,
        tp.solve(ssp, "mean", ["late(-5) <= 0.3"]).policy,
    )
    for policy in (by_budget, mixed, limited, tp.solve_cvar_quantile(ssp).policy(0.9)):
        costs = tp.evaluate(ssp, policy, 1e-6)
        assert costs.tail_mass == 0 and len(costs.costs) > 3
        known = set(np.round(costs.costs, 9))
        drawn = [play(ssp, policy, seed) for seed in range(400)]
        assert set(np.round(drawn, 9)) <= known
        assert np.mean(drawn) == pytest.approx(costs.mean, abs=5 * costs.std / 20)


def test_surprises_are_charged_beyond_the_least_cost_to_go() -> None:
    ssp = trader()
    holding = np.array([ssp.choice_index(state, "hold") for state in range(ssp.n_states)])
    policy = tp.solve_cvar_exact(ssp, 0.05).policy(0.05).spent(holding).with_budget(9)
    whole = policy.left(ssp.start_index, policy.budget)
    runner = policy.start_run()
    assert runner.action((0, 0)) == "hold"
    runner.observe(2.5, (1, 0))  # the model says 0.1
    left = policy.left(ssp.state_index((1, 0)), runner.memory)
    assert [surprise.kind for surprise in runner.surprises] == ["cost"]
    assert left == max(whole - F(5, 2), ssp.reduction.of(ssp.state_index((1, 0))))
    runner.action((2, 1))  # moved, and nothing paid
    assert policy.left(ssp.state_index((2, 1)), runner.memory) == max(
        left, ssp.reduction.of(ssp.state_index((2, 1)))
    )


def test_budgets_are_told_as_costs_still_allowed() -> None:
    ssp = gambler()
    policy = tp.solve_cvar_exact(ssp, 0.1).policy(0.1)
    assert {row.memory for row in policy.table(ssp)} == {"-1 left"}
    assert tp.differences(ssp, tp.solve_expected(ssp), policy, 0.1)[0].second_memory == "-1 left"
    assert tp.trace(ssp, policy, 3)[0].memory == "-1 left"


def test_pictures_are_drawn() -> None:
    ssp = gambler()
    found = tp.solve_cvar_exact(ssp, 0.1)
    costs = tp.evaluate(ssp, found, 0.1)
    left, right = costs.plot().get_xlim()
    assert left < -7 and right > -1
    left, _ = tp.plot_tails({"best": costs}, 0.1).get_xlim()
    assert left <= -7
    assert (
        found.policy(0.1).plot(ssp) is not None
        and found.policy(0.1).plot(ssp, budget=-1) is not None
    )
    assert (
        tp.frontier(ssp, "cvar(0.1)").plot() is not None
        and tp.worst_runs(ssp, found, 0.5).plot(ssp) is not None
    )
    for thing in (ssp, found, costs, found.policy(0.1), tp.solve_expected(ssp)):
        # The bytes of a picture, in letters, may spell anything.
        assert "nan" not in re.sub(r"base64,[\w+/=]*", "", thing._repr_html_())


def test_a_page_is_made(tmp_path: Path) -> None:
    from tailpath.show.page.data import Asked, page_data

    data = page_data(gambler(), Asked("gambler", [0.1], {}, (), ""))
    best = data["cases"][0][-1]
    assert best["cvar"] == -1 and data["ahead"][data["start"]] == -7
    assert any("a budget of -1, its VaR" in sentence for sentence in data["words"][0])
    assert (
        page_data(tp.domains.gridworld("5x5"), Asked("plain", [0.1], {}, (), ""))["ahead"] is None
    )


@pytest.mark.parametrize("suffix", ["json", "npz", "csv", "drn", "tra", "umb"])
def test_files_hold_the_costs_as_given(tmp_path: Path, suffix: str) -> None:
    ssp = trader() if suffix in ("json", "npz", "csv") else gambler()
    path = tmp_path / f"model.{suffix}"
    tp.write(ssp, path)
    again = tp.read(path)
    assert sorted(again.outcome_cost.tolist()) == sorted(ssp.outcome_cost.tolist()) and again.signed
    best = tp.solve_cvar_exact(ssp, 0.1)
    assert tp.solve_cvar_exact(again, 0.1).cvar(0.1) == pytest.approx(best.cvar(0.1), rel=1e-12)
    for name in ("policy.json", "policy.npz"):
        tp.write_policy(best.policy(0.1), tmp_path / name)
        back = tp.read_policy(tmp_path / name, ssp)
        assert back == best.policy(0.1) and tp.evaluate(ssp, back, 0.1).cvar(0.1) == best.cvar(0.1)


def test_taxi_has_its_mean_reward_without_options() -> None:
    pytest.importorskip("gymnasium")
    taxi = tp.read("gym:Taxi-v4")
    assert -tp.solve_expected(taxi).cost() == pytest.approx(7.93, abs=1e-9)
    assert "costs are minus the rewards" in taxi.notes


def test_gains_in_tables_and_functions() -> None:
    table = {
        "from": ["s", "s", "s"],
        "action": ["bet", "bet", "stay"],
        "to": ["end"] * 3,
        "p": [0.5, 0.5, 1],
        "cost": [10, -5, 1],
    }
    won = tp.SSP.from_table(table, rewards=True)
    assert won.outcome_cost.tolist() == [-10, 5, -1] and "costs are minus the rewards" in won.notes
    called = {("reward" if name == "cost" else name): column for name, column in table.items()}
    for other in (
        tp.SSP.from_table(called),
        tp.SSP.from_table(called, rewards=True),
        tp.read(table, rewards=True),
    ):
        assert other == won
    told = tp.SSP.from_functions(
        "s",
        lambda state: ["bet", "stay"],
        lambda state, action: (
            [(0.5, "end", 10), (0.5, "end", -5)] if action == "bet" else [(1, "end", 1)]
        ),
        lambda state: state == "end",
        rewards=True,
    )
    assert told == tp.SSP(
        **{name: getattr(won, name) for name in won.__dataclass_fields__}
        | {"notes": ("costs are minus the rewards",)}
    )
    arrays = tp.SSP.from_arrays([[[0, 1], [0, 1]]], rewards=[[3], [0]], start=0, goals=[1])
    assert tp.solve_expected(arrays).cost() == -3
    assert tp.solve_cvar_exact(won, 0.5).cvar(0.5) == -1
