"""Files of models with intervals: what is written is read back, and Storm's own are understood."""

from __future__ import annotations

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import FormatError, OptionError
from tests.uncertain.reference import random_model

ROAD = [
    *(("home", "bridge", "town", 190, 10), ("home", "bridge", "jam", 10, 15), ("home", "ring", "town", 300, 18)),
    *(("jam", "wait", "town", 8, 10), ("jam", "wait", "town", 2, 40)),
]
#: As Storm writes interval models, with rewards.
DRN = """@type: MDP
@value_type: double-interval
@parameters

@reward_models
steps
@nr_states
3
@nr_choices
3
@model
state 0 [1] init
\taction 0
\t\t1 : [0.4, 0.9]
\t\t2 : [0.1, 0.8]
state 1 goal
\taction 0
\t\t1 : [1, 1]
state 2 [2]
\taction 0
\t\t0 : [0.25,0.5]
\t\t1 : [0.5, 0.75]
"""


@pytest.mark.parametrize("suffix", ["json", "npz", "drn", "drn.gz"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read_back(suffix, seed, tmp_path):
    model, path = random_model(seed).intervals(), tmp_path / f"model.{suffix}"
    tp.write(model, path)
    assert tp.read(path) == model


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_counts_are_kept(suffix, tmp_path):
    model, path = tp.IntervalSSP.from_counts(ROAD, "home", ["town"], 0.9), tmp_path / f"model.{suffix}"
    tp.write(model, path)
    again = tp.read(path)
    assert again == model
    assert (again.confidence, again.estimate.tolist()) == (0.9, model.estimate.tolist())


def test_a_file_of_storm(tmp_path):
    path = tmp_path / "model.drn"
    path.write_text(DRN)
    model = tp.read(path)
    assert isinstance(model, tp.IntervalSSP)
    assert (model.low.tolist(), model.high.tolist()) == ([0.4, 0.1, 0.25, 0.5], [0.9, 0.8, 0.5, 0.75])
    # x = 1 + 0.6 y against an adversary, y = 2 + 0.5 x
    assert tp.solve_expected(model).cost() == pytest.approx((1 + 0.6 * 2) / (1 - 0.6 * 0.5))


def test_rationals_and_numbers_in_a_file_of_storm(tmp_path):
    path = tmp_path / "model.drn"
    path.write_text(DRN.replace("double-interval", "rational-interval").replace("[0.25,0.5]", "[1/4, 1/2]").replace("[1, 1]", "1"))
    assert tp.read(path).low.tolist() == [0.4, 0.1, 0.25, 0.5]
    path.write_text(DRN.replace("[0.25,0.5]", "[0.25]"))
    with pytest.raises(FormatError, match=r"model\.drn:21"):
        tp.read(path)
    path.write_text(DRN.replace("[0.25,0.5]", "[0.1, 0.2]"))
    with pytest.raises(FormatError, match="state 2, action 0 admit no distribution"):
        tp.read(path)


def test_intervals_written_by_hand(tmp_path):
    path = tmp_path / "model.json"
    head = '{"format": "tailpath model", "version": 1, "start": "s", "goals": ["g"], "outcomes": ['
    path.write_text(f'{head}["s", "go", "g", ["1/4", 0.75], 1], ["s", "go", "s", [0, 0.75], 1], ["s", "on", "g", 1, 5]]}}')
    model = tp.read(path)
    assert (model.low.tolist(), model.high.tolist()) == ([0.25, 0, 1], [0.75, 0.75, 1])
    path.write_text(f'{head}["s", "go", "g", [0.5], 1]]}}')
    with pytest.raises(FormatError, match=r"outcomes\[0\]: probability \[0\.5\]"):
        tp.read(path)


def test_other_formats_refuse_intervals(tmp_path):
    with pytest.raises(OptionError, match=r"intervals go to \.json, \.npz, \.drn"):
        tp.write(random_model(0).intervals(), tmp_path / "model.umb")


@pytest.mark.parametrize("rows", [False, True])
def test_explicit_files_of_prism(rows, tmp_path):
    path = tmp_path / "robot.tra"
    lines = "0 0 1 [0.8,0.9] east\n0 0 0 [0.1,0.2] east\n0 1 1 [0.3,1] south\n0 1 2 [0,0.7] south\n1 0 1 1\n2 0 1 [1,1]\n"
    if rows:
        lines = "0 [0.8,0.9]:1 [0.1,0.2]:0 east\n0 [0.3,1]:1 [0,0.7]:2 south\n1 1:1\n2 [1,1]:1\n"
    path.write_text(f"3 4 6\n{lines}")
    (tmp_path / "robot.lab").write_text('0="init" 1="goal"\n0: 0\n1: 1\n')
    model = tp.read(path, step_cost=1)
    assert sorted(zip(model.low.tolist(), model.high.tolist(), strict=True)) == [(0, 0.7), (0.1, 0.2), (0.3, 1), (0.8, 0.9), (1, 1)]
    assert tp.solve_expected(model).cost() == pytest.approx(1.25)
    tp.write(model, tmp_path / "again.tra")
    assert tp.read(tmp_path / "again.tra") == model
    path.write_text(f"3 4 6\n{lines}".replace("[0.1,0.2]", "[0.1,often]"))
    with pytest.raises(FormatError, match=r"robot\.tra:[23]: 'often'"):
        tp.read(path, step_cost=1)


def test_tables_of_intervals_are_read(tmp_path):
    table = {name: [row[i] for row in ROAD] for i, name in enumerate(("state", "action", "next_state", "count", "cost"))}
    assert tp.read(table, start="home", goals=["town"]) == tp.IntervalSSP.from_counts(ROAD, "home", ["town"])


def test_policies_are_kept(tmp_path):
    model = random_model(2).intervals()
    policy = tp.solve_cvar_exact(model, 0.1).policy(0.1)
    tp.write_policy(policy, tmp_path / "policy.json")
    tp.write(model, tmp_path / "model.json")
    again = tp.read(tmp_path / "model.json")
    read = tp.read_policy(tmp_path / "policy.json", again)
    assert np.array_equal(read.from_budget, policy.from_budget)
    assert tp.evaluate(again, read, 0.1).cvar(0.1) == tp.evaluate(model, policy, 0.1).cvar(0.1)
