"""Files of models with intervals: what is written is read back, and Storm's own are understood."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import FormatError, OptionError
from tailpath.formats.archives import tar_members, write_tar
from tests.uncertain.reference import random_model

ROAD = [
    *(
        ("home", "bridge", "town", 190, 10),
        ("home", "bridge", "jam", 10, 15),
        ("home", "ring", "town", 300, 18),
    ),
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


@pytest.mark.parametrize("suffix", ["json", "npz", "drn", "drn.gz", "umb", "csv"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read_back(suffix, seed, tmp_path):
    model, path = random_model(seed).intervals(), tmp_path / f"model.{suffix}"
    tp.write(model, path)
    assert tp.read(path) == model if suffix != "csv" else same(tp.read(path), model)


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_counts_are_kept(suffix, tmp_path):
    model, path = (
        tp.IntervalSSP.from_counts(ROAD, "home", ["town"], 0.9),
        tmp_path / f"model.{suffix}",
    )
    tp.write(model, path)
    again = tp.read(path)
    assert again == model
    assert (again.confidence, again.estimate.tolist()) == (0.9, model.estimate.tolist())


def test_a_file_of_storm(tmp_path):
    path = tmp_path / "model.drn"
    path.write_text(DRN)
    model = tp.read(path)
    assert isinstance(model, tp.IntervalSSP)
    assert (model.low.tolist(), model.high.tolist()) == (
        [0.4, 0.1, 0.25, 0.5],
        [0.9, 0.8, 0.5, 0.75],
    )
    # x = 1 + 0.6 y against an adversary, y = 2 + 0.5 x
    assert tp.solve_expected(model).cost() == pytest.approx((1 + 0.6 * 2) / (1 - 0.6 * 0.5))


def test_rationals_and_numbers_in_a_file_of_storm(tmp_path):
    path = tmp_path / "model.drn"
    path.write_text(
        DRN.replace("double-interval", "rational-interval")
        .replace("[0.25,0.5]", "[1/4, 1/2]")
        .replace("[1, 1]", "1")
    )
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
    path.write_text(
        f'{head}["s", "go", "g", ["1/4", 0.75], 1], ["s", "go", "s", [0, 0.75], 1], ["s", "on",'
        ' "g", 1, 5]]}'
    )
    model = tp.read(path)
    assert (model.low.tolist(), model.high.tolist()) == ([0.25, 0, 1], [0.75, 0.75, 1])
    path.write_text(f'{head}["s", "go", "g", [0.5], 1]]}}')
    with pytest.raises(FormatError, match=r"outcomes\[0\]: probability \[0\.5\]"):
        tp.read(path)


def test_files_of_older_versions_and_rewards_that_are_intervals(tmp_path):
    path = tmp_path / "model.drn"
    path.write_text(DRN)
    model = tp.read(path)
    path.write_text(DRN.replace("@value_type: double-interval\n", ""))
    assert tp.read(path) == model
    path.write_text(DRN.replace("[1] init", "[[1, 1]] init"))
    assert tp.read(path) == model
    path.write_text(DRN.replace("[1] init", "[[1, 2]] init"))
    with pytest.raises(FormatError, match=r"model\.drn:12: the reward \[1, 2\] is an interval"):
        tp.read(path)
    path.write_text(DRN.replace("[1] init", "[[1, 1] init"))
    with pytest.raises(FormatError, match=r"model\.drn:12: the rewards have no closing bracket"):
        tp.read(path)


def damaged(path, **members):
    """The UMB file with members, by the words of their names, changed."""
    found = tar_members(str(path), gzip.decompress(path.read_bytes()))
    for name, change in members.items():
        key = next(each for each in found if name in each)
        found[key] = change(bytes(found[key]))
    path.write_bytes(gzip.compress(write_tar(found)))


def test_umb_files_with_types_and_rewards_that_are_intervals(tmp_path):
    path, rows = (
        tmp_path / "m.umb",
        [(0, 0, 1, (0.25, 0.75), 1), (0, 0, 0, (0.25, 0.75), 1), (0, 1, 1, 1, 5)],
    )
    model = tp.IntervalSSP.from_outcomes(rows, 0, [1])

    def kind(name, size):
        return lambda data: data.replace(
            b'"double-interval",\n   "size": 128', b'"%s", "size": %d' % (name, size)
        )

    for name, size in ((b"rational-interval", 256), (b"double-interval", 257)):
        tp.write(model, path)
        damaged(path, index=kind(name, size))
        with pytest.raises(FormatError, match="neither double nor double-interval"):
            tp.read(path)
    tp.write(model, path)
    damaged(path, probability=lambda data: np.frombuffer(data)[::-1].tobytes())
    with pytest.raises(
        FormatError, match=r"state 0, action 1 -> 1 has the interval \[0.75, 0.25\]"
    ):
        tp.read(path)


@pytest.mark.parametrize("times", [1, 2])
def test_rewards_of_umb_are_intervals_of_no_width(times, tmp_path):
    path = tmp_path / "m.umb"
    model = tp.IntervalSSP.from_outcomes(
        [(0, 0, 1, (0.25, 0.75), 1), (0, 0, 0, (0.25, 0.75), 1)], 0, [1]
    )
    tp.write(model, path)
    reward = b'"choices"\n    ],\n    "type": {\n     "type": "double",\n     "size": 64'
    widened = reward.replace(b'"double",\n     "size": 64', b'"double-interval", "size": 128')

    def ends(data):
        return np.stack([np.frombuffer(data), times * np.frombuffer(data)], axis=1).tobytes()

    damaged(path, index=lambda data: data.replace(reward, widened), rewards=ends)
    if times == 1:
        assert tp.read(path) == model
    else:
        with pytest.raises(
            FormatError,
            match=(
                r"entry 0 is the interval \[1, 2\]; probabilities may be intervals, rewards may not"
            ),
        ):
            tp.read(path)


def test_explicit_files_of_prism(tmp_path):
    path = tmp_path / "robot.tra"
    lines = (
        "0 0 1 [0.8,0.9] east\n0 0 0 [0.1,0.2] east\n0 1 1 [0.3,1] south\n0 1 2 [0,0.7] south\n1 0"
        " 1 1\n2 0 1 [1,1]\n"
    )
    path.write_text(f"3 4 6\n{lines}")
    (tmp_path / "robot.lab").write_text('0="init" 1="goal"\n0: 0\n1: 1\n')
    model = tp.read(path, step_cost=1)
    assert sorted(zip(model.low.tolist(), model.high.tolist(), strict=True)) == [
        (0, 0.7),
        (0.1, 0.2),
        (0.3, 1),
        (0.8, 0.9),
        (1, 1),
    ]
    assert tp.solve_expected(model).cost() == pytest.approx(1.25)
    tp.write(model, tmp_path / "again.tra")
    assert tp.read(tmp_path / "again.tra") == model
    path.write_text(f"3 4 6\n{lines}".replace("[0.1,0.2]", "[0.1,often]"))
    with pytest.raises(FormatError, match=r"robot\.tra:3: 'often'"):
        tp.read(path, step_cost=1)


TABLE = {
    name: [row[i] for row in ROAD]
    for i, name in enumerate(("state", "action", "next_state", "count", "cost"))
}
#: Every step of every trip, as a log would have it; the runs have numbers, which are passed over.
LOG = "run,from,minutes,action,to\n" + "".join(
    f"{i},{s},{c},{a},{t}\n" for s, a, t, n, c in ROAD for i in range(n)
)


def content(model):
    """All but what readers note, outcome by outcome, by the names of things."""
    inside, seen = model.inside, model.low if model.estimate is None else model.estimate
    rows = zip(
        inside.outcome_choice.tolist(),
        inside.outcome_target.tolist(),
        inside.outcome_cost,
        model.low,
        model.high,
        seen,
        strict=True,
    )
    named = {
        (inside.states[inside.choice_state[k]], inside.choice_name(k), inside.states[t], *rest)
        for k, t, *rest in rows
    }
    return named, model.n_outcomes, model.start, set(model.goals), model.confidence, model.cost_unit


def same(model, other):
    return content(model) == content(other)


def test_tables_of_counts_are_read(tmp_path):
    model = tp.IntervalSSP.from_counts(ROAD, "home", ["town"])
    assert tp.read(TABLE, start="home", goals=["town"]) == model
    path = tmp_path / "road.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in ((*TABLE,), *ROAD)))
    found = tp.read(path)
    assert same(found, model)
    assert found.notes == (
        "states without rows are the goals (1 of them)",
        "the start is 'home', the state of the first row",
    )
    assert same(
        tp.read(path, confidence=0.8), tp.IntervalSSP.from_counts(ROAD, "home", ["town"], 0.8)
    )
    path.write_text(path.read_text().replace("count", "trips"))
    assert same(tp.read(path, columns={"count": "trips"}), model)


def test_a_log_of_steps_is_counted(tmp_path):
    model, path = tp.IntervalSSP.from_counts(ROAD, "home", ["town"], 0.9), tmp_path / "log.csv"
    path.write_text(LOG)
    assert same(tp.read(path, confidence=0.9, cost="minutes"), model)
    columns = {"from": [], "action": [], "minutes": [], "to": []}
    for s, a, t, n, c in ROAD:
        for name, value in zip(columns, (s, a, c, t), strict=True):
            columns[name] += n * [value]
    assert same(tp.read(columns, confidence=0.9, cost="minutes"), model)
    path.write_text(LOG + LOG.partition("\n")[2] * 40)
    many = tp.IntervalSSP.from_counts(
        [(*row[:3], 41 * row[3], row[4]) for row in ROAD], "home", ["town"], 0.9
    )
    assert same(tp.read(path, confidence=0.9, cost="minutes"), many)


def test_a_table_of_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(TABLE), tmp_path / "road.parquet")
    assert same(
        tp.read(tmp_path / "road.parquet"), tp.IntervalSSP.from_counts(ROAD, "home", ["town"])
    )


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "s,a,next_state,low,high,cost\n0,0,1,0.2,0.6,1\n0,0,1,0.5,0.4,2\n",
            {},
            r"m.csv:3: state 0, action 0 -> 1 has the interval \[0.5, 0.4\]",
        ),
        (
            "s,a,next_state,low,high,cost\n0,0,1,0.2,1.6,1\n",
            {},
            r"m\.csv:2: state 0, action 0 -> 1 has the interval \[0.2, 1.6\]",
        ),
        (
            "s,a,next_state,low,high,cost\n0,0,1,0.2,0.3,1\n0,0,1,0.2,0.4,2\n",
            {},
            r"m\.csv: .*state 0, action 0 admit no distribution",
        ),
        (
            "s,a,next_state,count,cost\n0,0,1,2.5,1\n",
            {},
            r"m\.csv:2: state 0, action 0 -> 1 has count 2.5",
        ),
        (
            "s,a,next_state,count,cost\n0,0,1,-1,1\n",
            {},
            r"m.csv:2: state 0, action 0 -> 1 has count -1",
        ),
        (
            "s,a,next_state,count,times\n0,0,1,2,1;2\n",
            {},
            r"m\.csv:1: a table with intervals or counts needs a column of costs",
        ),
        (
            "s,a,next_state,p,cost\n0,0,1,1,1\n",
            {"confidence": 0.9},
            "confidence is for counts.*the table has probability; for risk .* use alpha = 0.05",
        ),
        (
            "s,a,next_state,low,high,cost\n0,0,1,1,1,1\n",
            {"confidence": 0.9},
            "confidence is for counts.*the table has low and high",
        ),
    ],
)  # fmt: skip
def test_tables_that_are_wrong(text, options, message, tmp_path):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(FormatError, match=message):
        tp.read(tmp_path / "m.csv", **options)


def test_confidence_is_for_tables(tmp_path):
    with pytest.raises(OptionError, match="the option confidence does not apply to gridworld:"):
        tp.read("gridworld:5x5", confidence=0.9)
    (tmp_path / "m.csv").write_text("s,a,next_state,count,cost\n0,0,1,2,1\n")
    with pytest.raises(OptionError, match=r"confidence must lie in \(0, 1\), not 95"):
        tp.read(tmp_path / "m.csv", confidence=95)


def test_policies_are_kept(tmp_path):
    model = random_model(2).intervals()
    policy = tp.solve_cvar_exact(model, 0.1).policy(0.1)
    tp.write_policy(policy, tmp_path / "policy.json")
    tp.write(model, tmp_path / "model.json")
    again = tp.read(tmp_path / "model.json")
    read = tp.read_policy(tmp_path / "policy.json", again)
    assert np.array_equal(read.from_budget, policy.from_budget)
    assert tp.evaluate(again, read, 0.1).cvar(0.1) == tp.evaluate(model, policy, 0.1).cvar(0.1)
