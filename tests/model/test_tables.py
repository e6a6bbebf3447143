"""Tables of pandas, polars and pyarrow, dictionaries of columns and graphs: one model, whatever
holds it.
"""

import ast
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tailpath as tp
from tailpath import SSP
from tailpath.errors import FormatError, ModelError, OptionError

COLUMNS = {
    "state": ["a", "a", "b", "b"],
    "action": ["go", "go", "go", "wait"],
    "next_state": ["b", "home", "home", "a"],
    "probability": [0.5, 0.5, 1.0, 1.0],
    "cost": [2.0, 6.0, 4.0, 1.0],
}
WANTED = SSP.from_outcomes(zip(*COLUMNS.values(), strict=True), "a", ["home"])


def holders():
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    return [COLUMNS, pd.DataFrame(COLUMNS), polars.DataFrame(COLUMNS), pyarrow.table(COLUMNS)]


def plain(ssp):
    """Without the notes."""
    return SSP(**{name: getattr(ssp, name) for name in SSP.__dataclass_fields__ if name != "notes"})


def test_every_holder_gives_the_same_model():
    for frame in holders():
        for ssp in (
            SSP.from_table(frame, start="a", goals=["home"]),
            tp.read(frame, start="a", goals="home"),
            SSP.from_table(frame),
        ):
            assert plain(ssp) == WANTED


def test_what_is_assumed_is_noted():
    ssp = SSP.from_table(COLUMNS)
    assert ssp.notes == (
        "states without rows are the goals (1 of them)",
        "the start is 'a', the state of the first row",
    )
    assert SSP.from_table(COLUMNS, start="b", goals=["home"]).notes == ()


def test_other_names_and_rewards():
    frame = pd.DataFrame(COLUMNS).rename(
        columns={"state": "From", "next_state": "to", "probability": "p", "cost": "time"}
    )
    assert plain(SSP.from_table(frame)) == WANTED
    turned = pd.DataFrame(COLUMNS).assign(reward=lambda frame: -frame["cost"]).drop(columns="cost")
    assert plain(SSP.from_table(turned)) == WANTED
    assert "costs are minus the rewards" in SSP.from_table(turned).notes


def test_start_and_goals_in_columns():
    frame = pd.DataFrame(COLUMNS).assign(
        start=[False, False, True, True], goal=[False, True, True, False]
    )
    ssp = SSP.from_table(frame)
    assert (ssp.start, ssp.goals, ssp.notes) == ("b", ("home",), ())


def test_costs_stay_exact():
    table = {"from": [0, 0], "to": [1, 2], "time": [Fraction(1, 3), Decimal("0.5")]}
    assert SSP.from_table(table).cost_unit == Fraction(1, 6)


def test_rows_that_lead_nowhere_mark_a_goal():
    ssp = SSP.from_table({"from": ["a", "b"], "to": ["b", "b"], "cost": [3, 0]})
    assert ssp.goals == ("b",)


@pytest.mark.parametrize("goals", [None, ["b"]])
def test_a_missing_cost_is_refused_by_name(goals):
    table = {"from": ["a", "a"], "to": ["b", "b"], "action": ["x", "y"], "p": [1, 1]}
    frame = pd.DataFrame(table).assign(cost=pd.array([1, None], dtype="Int64"))
    with pytest.raises(ModelError, match=r"^row 1: <NA> is not a finite number \(column cost\)"):
        SSP.from_table(frame, goals=goals)


def test_out_and_in_again():
    back = SSP.from_table(WANTED.to_pandas(), start="a", goals=["home"])
    assert plain(back) == WANTED
    river = tp.domains.river(rows=4, columns=3)
    frame = river.to_pandas()
    assert len(frame) == river.n_outcomes
    assert (
        tp.solve_expected(SSP.from_table(frame, start=river.start, goals=river.goals)).cost()
        == tp.solve_expected(river).cost()
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SSP.from_table({"from": [1]}),
            r"^no column .*next_state or the cost ",
        ),
        (lambda: SSP.from_table({"from": [], "to": [], "cost": []}), r"^the table has no rows$"),
        (
            lambda: SSP.from_table({"from": [1], "to": [2, 3], "cost": [1]}),
            r"^the columns differ in length: from 1, to 2, cost 1$",
        ),
        (
            lambda: SSP.from_table({"from": "home", "to": "work", "cost": 1}),
            r"^the column 'from' must be a list with an entry per row, not 'home'$",
        ),
        (
            lambda: tp.read({"von": ["a"], "nach": ["b"]}),
            r"^no column .*state .* von, nach; ",
        ),
        (lambda: tp.read({"a": 1}), r"^no column .*state"),
        (
            lambda: SSP.from_table({"from": [1], "to": [1], "cost": [2]}),
            r"^no goal: every state has rows",
        ),
        (
            lambda: SSP.from_table({"from": [1], "to": [2]}),
            r"^no column .*cost ",
        ),
        (lambda: SSP.from_table(7), r"^cannot read an int as a table"),
        (
            lambda: SSP.from_table({**COLUMNS, "cost": [1, 2, 3, -math.inf]}),
            r"^row 3: -inf is not a finite number \(column cost\)$",
        ),
        (
            lambda: SSP.from_table({**COLUMNS, "start": [1, 0, 1, 0]}),
            r"^the column start marks 2 states; exactly one must be the start$",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_options_that_a_table_has_no_use_for():
    with pytest.raises(OptionError, match="the option step_cost does not apply to a table"):
        tp.read(COLUMNS, step_cost=1)
    with pytest.raises(
        OptionError,
        match=(
            r"^cannot read an ndarray: give a path, a scheme string, a table, an"
            r" environment"
        ),
    ):
        tp.read(np.zeros(3))


def test_a_goal_that_is_no_state_and_columns_passed_over():
    table = {"from": ["home"], "to": ["work"], "time": [20], "colour": ["red"]}
    with pytest.raises(
        ModelError,
        match=r"^the table has no state 'wrok' .*a goal; did you mean 'work'\?$",
    ):
        SSP.from_table(table, start="home", goals=["wrok"])
    assert (
        "columns that were not read: colour"
        in SSP.from_table(table, start="home", goals=["work"]).notes
    )


# ---------------------------------------------------------------------- columns by any name


OWN = {
    "Herkunft": COLUMNS["state"],
    "road": COLUMNS["action"],
    "Ziel": COLUMNS["next_state"],
    "share": COLUMNS["probability"],
}
OWN |= {"minutes": COLUMNS["cost"], "time": [9] * 4, "reward": [7] * 4}
NAMED = {
    "state": "Herkunft",
    "action": "road",
    "next_state": "Ziel",
    "probability": "share",
    "cost": "minutes",
}


def test_columns_are_named():
    """What is named wins over words that would fit, and over a reward beside it."""
    for frame in (OWN, pd.DataFrame(OWN)):
        for ssp in (
            tp.read(frame, **NAMED),
            tp.read(frame, columns=NAMED),
            SSP.from_table(frame, columns=NAMED),
        ):
            assert plain(ssp) == WANTED
            assert "columns that were not read: time, reward" in ssp.notes
    marked = {**COLUMNS, "first": [0, 0, 1, 1], "last": [0, 1, 1, 0]}
    ssp = tp.read(marked, columns={"start": "first", "goal": "last"})
    assert (ssp.start, ssp.goals) == ("b", ("home",))
    rewards = {**OWN, "gain": [-cost for cost in COLUMNS["cost"]]}
    assert plain(tp.read(rewards, **{**NAMED, "reward": "gain", "cost": None})) == WANTED


def test_columns_that_cannot_be():
    with pytest.raises(
        ModelError,
        match=(r"^the table has no column 'minuts' .*the cost; did you mean 'minutes'\?$"),
    ):
        tp.read(OWN, **{**NAMED, "cost": "minuts"})
    with pytest.raises(
        ModelError,
        match=r"^the table has no column 'x' .*the state; there are state, action",
    ):
        SSP.from_table(COLUMNS, columns={"state": "x"})
    with pytest.raises(
        OptionError,
        match=r"'colour'.* state, action, next_state",
    ):
        tp.read(COLUMNS, columns={"colour": "cost"})
    with pytest.raises(TypeError, match=r"^read\(\) got an unexpected keyword argument 'colour'$"):
        tp.read(COLUMNS, colour="cost")
    with pytest.raises(OptionError, match=r"^the option columns does not apply to river:"):
        tp.read("river:4x3", state="from")


def test_wide_tables_by_a_melt():
    """One row a road; the long table has a row for each case of it."""
    wide = pd.DataFrame(
        {
            "from": ["a", "a"],
            "road": ["x", "y"],
            "to": ["b", "b"],
            "p_free": [0.9, 1.0],
            "minutes_free": [5, 9],
        }
    )
    wide = wide.assign(p_jam=[0.1, 0.0], minutes_jam=[30, 0])
    long = pd.wide_to_long(
        wide, ["p", "minutes"], i=["from", "road", "to"], j="case", sep="_", suffix=r"\w+"
    ).reset_index()
    ssp = tp.read(long, action="road", cost="minutes", start="a", goals=["b"])
    rows = [("a", "x", "b", 0.9, 5), ("a", "x", "b", 0.1, 30), ("a", "y", "b", 1, 9)]
    assert plain(ssp) == SSP.from_outcomes(rows, "a", ["b"])


# ---------------------------------------------------------------------- samples in a cell

ROADS = {
    "from": ["a", "a", "b"],
    "road": ["x", "y", "z"],
    "to": ["b", "c", "c"],
    "times": ["12;13;15;40", "30:3;90:1", "7"],
}
SAMPLED = [("a", "x", "b", 0.25, c) for c in (12, 13, 15, 40)] + [
    ("a", "y", "c", 0.75, 30),
    ("a", "y", "c", 0.25, 90),
    ("b", "z", "c", 1, 7),
]


def test_times_are_samples_or_weights(tmp_path):
    wanted = SSP.from_outcomes(SAMPLED, "a", ["c"])
    cells = {**ROADS, "times": [[12, 13, 15, 40], {30: 3, 90: 1}, 7]}
    for frame in (ROADS, cells, pd.DataFrame(ROADS), pd.DataFrame(cells)):
        assert plain(tp.read(frame, action="road", start="a")) == wanted
    frame = pd.DataFrame(ROADS).rename(columns={"times": "minutes"})
    frame.to_csv(tmp_path / "roads.csv", index=False)
    for ssp in (
        tp.read(frame, action="road", times="minutes"),
        tp.read(tmp_path / "roads.csv", action="road", times="minutes"),
    ):
        assert ssp.to_pandas().equals(wanted.to_pandas()) and ssp.cost_unit == wanted.cost_unit
        assert "states without rows are the goals (1 of them)" in ssp.notes


def test_times_beside_probabilities(tmp_path):
    table = {
        "from": ["a", "a", "b"],
        "a": ["x", "x", "z"],
        "to": ["b", "c", "c"],
        "p": ["1/4", "3/4", "1"],
        "times": ["1/3;2", "5", "1.5"],
    }
    pd.DataFrame(table).to_csv(tmp_path / "m.csv", index=False)
    rows = [
        ("a", "x", "b", 0.125, Fraction(1, 3)),
        ("a", "x", "b", 0.125, 2),
        ("a", "x", "c", 0.75, 5),
        ("b", "z", "c", 1, 1.5),
    ]
    wanted = SSP.from_outcomes(rows, "a", ["c"])
    assert plain(tp.read(tmp_path / "m.csv")) == wanted
    assert plain(tp.read({**table, "p": [Fraction(p) for p in table["p"]]})) == wanted


def test_times_in_a_parquet_table(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(ROADS).to_parquet(tmp_path / "roads.parquet")
    ssp, wanted = (
        tp.read(tmp_path / "roads.parquet", action="road"),
        SSP.from_outcomes(SAMPLED, "a", ["c"]),
    )
    assert ssp.to_pandas().equals(wanted.to_pandas())


def test_times_that_are_none(tmp_path):
    with pytest.raises(ModelError, match=r"^row 0: a duration must be a number, not 'slow'$"):
        tp.read({"from": ["a"], "to": ["b"], "times": ["12;slow"]})
    (tmp_path / "m.csv").write_text("from,to,times\na,b,3\nb,c,12;slow\n")
    with pytest.raises(FormatError, match=r"m\.csv:3: a duration must be a number, not 'slow'$"):
        tp.read(tmp_path / "m.csv")
    (tmp_path / "m.csv").write_text("from,action,to,p,times\na,x,b,half,3\n")
    with pytest.raises(FormatError, match=r"m\.csv:2: .*half"):
        tp.read(tmp_path / "m.csv")
    with pytest.raises(
        ModelError,
        match=(
            r"^row 0: a distribution needs a grid: durations\(law, unit=\) makes its"
            r" outcomes$"
        ),
    ):
        tp.read({"from": ["a"], "to": ["b"], "times": [stats.expon()]})


def test_rows_out_of_goals_are_noted(tmp_path):
    """Runs end at goals; a row that would go on from one is no mistake, but somebody wrote it."""
    rows = {
        "from": ["a", "b", "b"],
        "to": ["b", "a", "c"],
        "p": [1, 0.5, 0.5],
        "action": ["go"] * 3,
        "cost": [4, 4, 40],
    }
    note = "runs end at goals: 2 rows leading on from them are left out"
    assert note in tp.SSP.from_table(rows, start="a", goals=["b"]).notes
    path = tmp_path / "m.csv"
    path.write_text(
        "from,to,p,action,cost\na,b,1,go,4\nb,a,0.5,go,4\nb,c,0.5,go,40\n", encoding="utf-8"
    )
    assert note in tp.read(path, start="a", goals=["b"]).notes
    kept = tp.SSP.from_table(
        {
            key: [*column, extra]
            for (key, column), extra in zip(rows.items(), ("c", "c", 1, "stay", 0))
        },
        goals=["c"],
    )
    assert not any("runs end at goals" in note for note in kept.notes), (
        "a goal may say that it stays"
    )
    assert "4 to 40" in tp.SSP.from_table(rows, start="a", goals=["c"])._repr_html_()


def test_a_table_of_trips_is_understood_and_others_are_told_how():
    trips = {"from": ["a"], "road": ["ring"], "to": ["b"], "minutes": [12]}
    ssp = SSP.from_table(trips)
    assert ssp.actions == ("ring",) and ssp.outcome_cost.tolist() == [12]
    trips["toll"] = trips.pop("minutes")
    with pytest.raises(ModelError, match=r"from, road, to, toll; .*--column cost=toll\)$"):
        SSP.from_table(trips)
    assert SSP.from_table(trips, columns={"cost": "toll"}).outcome_cost.tolist() == [12]


def test_the_advice_about_columns_leads_to_the_model(tmp_path):
    """A table whose places have names of its own: the refusal says how to go on."""
    path = tmp_path / "roads.csv"
    path.write_text("place,road,next place,p,minutes\nhome,bus,work,0.5,10\nhome,bus,home,0.5,10\n")
    with pytest.raises(FormatError) as refused:
        tp.read(path, start="home", goals=["work"])
    form = ast.literal_eval(re.search(r"columns=(\{.*?\})", str(refused.value))[1])
    assert form == {"state": "place", "next_state": "next place"}
    assert "--column state=place --column 'next_state=next place'" in str(refused.value)
    assert tp.read(path, start="home", goals=["work"], columns=form).n_outcomes == 2
