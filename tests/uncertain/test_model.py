"""Models with intervals: how they are built, what they refuse, and intervals from counts."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from scipy.stats import binom

import tailpath as tp
from tailpath.errors import ModelError, TailpathWarning

ROAD = [
    ("home", "bridge", "town", 190, 10),
    ("home", "bridge", "jam", 10, 15),
    ("home", "ring", "town", 300, 18),
    ("jam", "wait", "town", 8, 10),
    ("jam", "wait", "town", 2, 40),
]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("s", "go", "g", (0.2, 0.4), 1), ("s", "go", "t", (0.1, 0.3), 1)],
            "state 's', action 'go' admit no distribution.*at most 0.7",
        ),
        (
            [("s", "go", "g", (0.6, 0.7), 1), ("s", "go", "t", (0.5, 0.6), 1)],
            "state 's', action 'go' admit no distribution.*at least 1.1",
        ),
        (
            [("s", "go", "g", (0.2, 1.4), 1)],
            r"state 's', action 'go' -> 'g' has the interval \[0.2, 1.4\]",
        ),
        (
            [("s", "go", "g", (0.5, 0.4), 1)],
            r"state 's', action 'go' -> 'g' has the interval \[0.5, 0.4\]",
        ),
        ([("s", "go", "g", (0.5,), 1)], "state 's', action 'go' -> 'g' has probability"),
        ([("s", "go", "g", "often", 1)], "state 's', action 'go' -> 'g': 'often' is not"),
        ([("s", "go", "g", (0.5, 1))], "outcome 0"),
    ],
)
def test_what_is_no_interval_is_refused(rows, message):
    with pytest.raises(ModelError, match=message):
        tp.IntervalSSP.from_outcomes([*rows, ("t", "on", "g", 1, 1)], "s", ["g"])


def test_rows_that_agree_are_added_up_and_impossible_ones_left_out():
    rows = [
        *(
            ("s", "go", "g", (0.1, 0.2), 1),
            ("s", "go", "t", (0.1, 0.9), 1),
            ("s", "go", "g", (0.2, 0.3), 1),
            ("s", "go", "u", 0, 1),
        ),
        *(("t", "on", "g", 1, 1), ("t", "on", "u", (0, 0.5), 1)),
    ]
    model = tp.IntervalSSP.from_outcomes(rows, "s", ["g"])
    assert model.low.tolist() == pytest.approx([0.3, 0.1, 1])
    assert model.high.tolist() == pytest.approx([0.5, 0.9, 1])
    assert repr(model) == "<IntervalSSP 3 states, 2 choices (1 uncertain), 3 outcomes, start 's'>"


def test_a_start_that_is_the_goal_needs_no_rows():
    for make in (tp.IntervalSSP.from_outcomes, tp.IntervalSSP.from_counts):
        assert make([], "home", ["home"]).n_outcomes == 0
        with pytest.raises(ModelError, match=r"no state 'work' .*start"):
            make([], "work", ["home"])


def test_the_inside_lies_inside():
    model = tp.IntervalSSP.from_outcomes(
        [("s", "go", "g", (0.1, 0.6), 1), ("s", "go", "g", (0.3, 1), 2)], "s", ["g"]
    )
    p = model.nominal().outcome_probability
    assert ((model.low <= p) & (p <= model.high)).all()
    assert p.sum() == pytest.approx(1)
    assert pickle.loads(pickle.dumps(model)) == model


def test_a_table_of_intervals_and_back():
    columns = {
        "state": ["s", "s"],
        "action": ["go", "go"],
        "next_state": ["g", "g"],
        "low": [0.1, 0.3],
        "high": [0.6, 1],
        "cost": [1, 2],
    }
    model = tp.IntervalSSP.from_table(columns, start="s", goals=["g"])
    assert (model.low.tolist(), model.high.tolist()) == ([0.1, 0.3], [0.6, 1.0])
    assert tp.IntervalSSP.from_table(model.to_pandas(), start="s", goals=["g"]) == model
    with pytest.raises(ModelError, match="IntervalSSP"):
        tp.SSP.from_table(columns, start="s", goals=["g"])
    # Beside a probability the other columns are passed over.
    assert (
        tp.SSP.from_table({**columns, "probability": [0.5, 0.5]}, start="s", goals=["g"]).n_outcomes
        == 2
    )


def test_counts_are_the_intervals_of_clopper_and_pearson():
    model = tp.IntervalSSP.from_counts(ROAD, "home", ["town"], confidence=0.9)
    half = 0.1 / 4 / 2
    place = {(s, a, c): i for i, (s, a, _, _, c) in enumerate(ROAD)}
    seen = model.estimate * np.repeat([200, 300, 10], [2, 1, 2])
    assert seen == pytest.approx([190, 10, 300, 8, 2])
    for (_, _, cost), o in place.items():
        n, k = (200, ROAD[o][3]) if o < 2 else (10, ROAD[o][3])
        if cost == 18:
            assert (model.low[o], model.high[o]) == (1, 1)
            continue
        assert binom.sf(k - 1, n, model.low[o]) == pytest.approx(half)
        assert binom.cdf(k, n, model.high[o]) == pytest.approx(half)
    assert model.confidence == 0.9
    assert model.nominal().outcome_probability.tolist() == pytest.approx([0.95, 0.05, 1, 0.8, 0.2])
    assert (
        tp.solve_cvar_exact(model, 0.1)
        .words(0.1)
        .startswith("with 90 % confidence the least CVaR at 0.1 lies in [")
    )


def test_counts_may_come_as_a_table():
    names = ("state", "action", "next_state", "count", "cost")
    columns = dict(zip(names, map(list, zip(*ROAD)), strict=True))
    model = tp.IntervalSSP.from_counts(ROAD, "home", ["town"], 0.9)
    assert tp.IntervalSSP.from_counts(columns, "home", ["town"], 0.9) == model
    pandas = pytest.importorskip("pandas")
    assert tp.IntervalSSP.from_counts(pandas.DataFrame(columns), "home", ["town"], 0.9) == model


def test_what_was_never_seen_or_tried_is_said():
    rows = [
        *ROAD,
        ("home", "bridge", "lost", 0, 60),
        ("lost", "ask", "town", 0, 5),
        ("lost", "ask", "home", 0, 5),
        ("lost", "on", "town", 1, 9),
    ]
    with pytest.warns(TailpathWarning) as told:
        model = tp.IntervalSSP.from_counts(rows, "home", ["town"])
    words = [str(each.message) for each in told]
    assert words == [
        "1 outcome never seen: state 'home', action 'bridge' -> 'lost'",
        "1 choice never tried, so that anything may happen: state 'lost', action 'ask'",
    ]
    assert set(words) <= set(model.notes)
    names = {
        (model.inside.choice_name(k), model.states[t]): (lo, hi)
        for k, t, lo, hi in zip(
            model.inside.outcome_choice.tolist(),
            model.inside.outcome_target.tolist(),
            model.low.tolist(),
            model.high.tolist(),
            strict=True,
        )
    }
    assert names["ask", "home"] == (0, 1)
    assert names["bridge", "lost"][0] == 0 < names["bridge", "lost"][1] < 0.1
    assert model.nominal().n_outcomes == model.n_outcomes - 1


def test_steps_seen_are_counted():
    steps = [(s, a, c, t) for s, a, t, k, c in ROAD for _ in range(k)]
    random.Random(1).shuffle(steps)
    assert sorted(tp.IntervalSSP.from_counts(steps, "home", ["town"]).low) == sorted(
        tp.IntervalSSP.from_counts(ROAD, "home", ["town"]).low
    )
    table = {
        name: [row[i] for row in ROAD]
        for i, name in enumerate(("state", "action", "next_state", "count", "cost"))
    }
    assert tp.IntervalSSP.from_table(
        table, start="home", goals=["town"]
    ) == tp.IntervalSSP.from_counts(ROAD, "home", ["town"])


def test_runs_are_counted():
    """A run is (state, action, cost, state, ...): as long as it is, and a step is the shortest."""
    runs = [("home", "bridge", 10, "town")] * 190 + [
        ("home", "bridge", 15, "jam", "wait", 10, "town")
    ] * 8
    runs += [["home", "bridge", 15, "jam", "wait", 40, "town"]] * 2 + [
        ("home", "ring", 18, "town")
    ] * 300
    model = tp.IntervalSSP.from_counts(ROAD, "home", ["town"])
    found = tp.IntervalSSP.from_counts(runs, "home", ["town"])
    assert sorted(zip(found.low, found.high, strict=True)) == sorted(
        zip(model.low, model.high, strict=True)
    )
    for odd in (("home",), ("home", "bridge", 10), ("home", "bridge", 10, "town", "on", 3), 7):
        with pytest.raises(ModelError, match="row 0 is"):
            tp.IntervalSSP.from_counts([odd], "home", ["town"])
