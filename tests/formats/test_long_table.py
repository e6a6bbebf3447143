"""Long tables: rewards or costs, numbers or names, and goals that nobody marked."""

from fractions import Fraction

import pytest
from hypothesis import given

import tailpath as tp
from tailpath.errors import FormatError
from tests.formats.models import awkward, by_choice, outcomes, samples
from tests.reference import to_ssp
from tests.strategies import any_models

HEADER = "idstatefrom,idaction,idstateto,probability,"


@pytest.fixture
def table(tmp_path):
    def write(text):
        (tmp_path / "m.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / "m.csv"

    return write


def test_a_table_with_rewards(table):
    ssp = tp.read(
        table(
            HEADER + "reward\n0,0,1,0.5,-1\n0,0,2,0.5,-3\n1,0,2,1,-1\n1,1,2,1/3,-2\n1,1,1,2/3,-2\n"
        )
    )
    assert (
        ssp.states == range(3) and ssp.start == 0 and ssp.goals == (2,) and ssp.actions == range(2)
    )
    assert outcomes(ssp) == {
        (0, 0): [("1", 0.5, 1.0), ("2", 0.5, 3.0)],
        (1, 0): [("2", 1.0, 1.0)],
        (1, 1): [("1", 2 / 3, 2.0), ("2", 1 / 3, 2.0)],
    }
    assert "costs are minus the rewards" in ssp.notes
    assert "states without rows are the goals (1 of them)" in ssp.notes
    assert "the start is 0, the state of the first row" in ssp.notes


def test_a_table_with_costs_columns_in_any_order(table):
    ssp = tp.read(table("Cost,probability, idstateto ,idaction,idstatefrom\n4,1,b,go,a\n"))
    assert outcomes(ssp) == {("a", "go"): [("'b'", 1.0, 4.0)]}
    assert not any("minus" in note for note in ssp.notes)


def test_numbers_are_sorted_names_are_not(table):
    assert tp.read(table(HEADER + "cost\n7,1,3,1,1\n3,0,10,1,1\n")).states == (3, 7, 10)
    assert tp.read(table(HEADER + "cost\nb,1,a,1,1\na,0,c,1,1\n")).states == ("b", "a", "c")
    assert tp.read(table(HEADER + f"cost\n{10**30},1,-3,1,1\n-3,0,7,1,1\n")).states == (
        -3,
        7,
        10**30,
    )


def test_counting_from_one(table):
    path = table(HEADER + "cost\n1,1,2,1,1\n2,1,3,1,1\n")
    assert tp.read(path, one_based=True).states == range(3) and tp.read(
        path, one_based=True
    ).actions == range(1)
    assert tp.read(path).states == (1, 2, 3)
    with pytest.raises(FormatError, match=r"m\.csv:2: '0' is not .* 1"):
        tp.read(table(HEADER + "cost\n0,1,2,1,1\n"), one_based=True)
    with pytest.raises(FormatError, match=r"m\.csv:2: 'a' is not .* 1"):
        tp.read(table(HEADER + "cost\na,1,2,1,1\n"), one_based=True)


def test_free_loops_are_goals_where_no_state_is_without_rows(table):
    ssp = tp.read(table(HEADER + "reward\n0,0,1,1,-5\n1,0,1,1,0\n"))
    assert (
        ssp.goals == (1,)
        and "states that lead only to themselves at no cost are the goals (1 of them)" in ssp.notes
    )
    with pytest.raises(FormatError, match="no goal: every state has rows"):
        tp.read(table(HEADER + "reward\n0,0,1,1,-5\n1,0,1,1,-1\n"))
    # A free loop beside a real goal is a dead end, not a goal.
    assert tp.read(table(HEADER + "cost\n0,0,1,0.5,5\n0,0,2,0.5,5\n1,0,1,1,0\n")).goals == (2,)


def test_the_same_successor_at_another_cost_is_another_outcome(table):
    ssp = tp.read(table(HEADER + "cost\n0,0,1,0.25,1\n0,0,1,0.5,2\n0,0,1,0.25,1\n"))
    assert outcomes(ssp) == {(0, 0): [("1", 0.5, 1.0), ("1", 0.5, 2.0)]}


def test_rewards_are_taken_as_they_are(table):
    path = table(HEADER + "reward\n0,0,0,0.5,3\n0,0,1,0.5,10\n")
    ssp = tp.read(path)
    assert ssp.outcome_cost.tolist() == [-3, -10] and "costs are minus the rewards" in ssp.notes
    assert tp.read(path, rewards=True) == ssp
    assert tp.read(table(HEADER + "cost\n0,0,0,0.5,3\n0,0,1,0.5,10\n"), rewards=True) == ssp
    path = table(HEADER + "reward\n0,0,0,0.5,3\n0,0,1,0.5,10\n")
    assert tp.read(path, negate_reward=True).outcome_cost.tolist() == [3, 10]
    assert tp.read(path, step_cost=2).outcome_cost.tolist() == [2, 2]
    assert tp.read(path, cost_of={3: 1, 10: 0}).outcome_cost.tolist() == [1, 0]


def test_fractions_keep_the_unit(table):
    ssp = tp.read(table(HEADER + "cost\n0,0,1,1/3,1/3\n0,0,2,2/3,0.5\n"))
    assert ssp.cost_unit == Fraction(1, 6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (
            "idstatefrom,idaction\n",
            ":1: no column for the next_state",
        ),
        (
            HEADER + "reward,cost\n",
            ":1: the columns cost, reward could each be the cost",
        ),
        (HEADER + "cost,idoutcome\n", ":1: a table with idoutcome describes a robust model"),
        ("from,to,source,time\n", ":1: the columns from, source could each be the state"),
        ("from,to,p,time\n", ":1: no column for the action, which probabilities need"),
        ("from,to,time,goal\na,b,1,perhaps\n", ":2: goal: 'perhaps' is neither true nor false"),
        ("from,to,time,goal\na,b,1,no\n", "the column goal marks no row"),
        (
            "from,to,time,start\na,b,1,no\n",
            "the column start marks 0 states; exactly one must be the start",
        ),
        (HEADER + "cost\n", "the table has no rows"),
        (HEADER + "cost\n\n0,0,1,1\n", ":3: 4 columns, expected 5"),
        (HEADER + "cost\n0,0,1,1,2,3\n", ":2: 6 columns, expected 5"),
        (HEADER + "cost\n0,0,1,x,2\n", ":2: 'x' is not a finite number"),
        (HEADER + "cost\n0,0,1,1,inf\n", ":2: 'inf' is not a finite number"),
        (HEADER + "cost\n0,0,1,1,1_0\n", ":2: '1_0' is not a finite number"),
        (HEADER + "cost\n0,0,,1,1\n", ":2: a name is empty"),
        (HEADER + "cost\n0,0,1,0.5,1\n", "sum to 0.5, not 1"),
        (
            HEADER + "cost\n0,0,1,-1,1\n0,0,1,2,1\n",
            r"m\.csv:2: state 0, action 0 -> 1 has probability -1",
        ),
        (HEADER + 'cost\n0,0,"1,1,1\n', "unexpected end of data"),
        (HEADER + 'cost\n0,0,"{""a"": 1}",1,1\n', ":2: .* is not a name"),
        (b"idstatefrom,\xff", ":1: this is not UTF-8"),
        (b"idstatefrom\n\0", ":2: a NUL byte"),
        (HEADER + "cost\n0,0," + "x" * 200_000 + ",1,1\n", "field larger than field limit"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, message, table):
    path = table(text)
    with pytest.raises(FormatError, match=message) as caught:
        tp.read(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    "name", ["by choice", "gridworld", "river", "lottery", "counter-example", "range"]
)
def test_a_model_survives_the_trip(name, tmp_path):
    model = samples()[name]
    tp.write(model, tmp_path / "m.csv")
    again = tp.read(tmp_path / "m.csv")
    assert outcomes(again) == outcomes(model)
    assert (again.start, set(again.goals), again.cost_unit) == (
        model.start,
        set(model.goals),
        model.cost_unit,
    )


def test_names_and_thirds_survive_the_trip(tmp_path):
    model = awkward()
    rows = [(s, a, t, p, c) for s, a, t, p, c in _rows(model) if t != ("x", 2.5)]
    model = tp.SSP.from_outcomes(rows, model.start, ["g"])
    tp.write(model, tmp_path / "m.csv")
    again = tp.read(tmp_path / "m.csv")
    assert outcomes(again) == outcomes(model) and again.cost_unit == model.cost_unit == Fraction(
        1, 3000
    )


def _rows(model):
    for o in range(model.n_outcomes):
        k = model.outcome_choice[o]
        level = Fraction(int(model.outcome_level[o])) * model.cost_unit
        yield (
            model.states[model.choice_state[k]],
            model.choice_name(k),
            model.states[model.outcome_target[o]],
            model.outcome_probability[o],
            level,
        )


@given(model=any_models())
def test_any_model_survives_the_trip_or_is_refused(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("trip") / "m.csv"
    ssp = to_ssp(model)
    entered = {target for _, _, target, p, _ in model.rows() if p}
    if not model.goals <= entered:
        with pytest.raises(FormatError, match="nothing leads to the goal"):
            tp.write(ssp, path)
        return
    tp.write(ssp, path)
    again = tp.read(path)
    assert (
        outcomes(again) == outcomes(ssp)
        and again.start == ssp.start
        and again.cost_unit == ssp.cost_unit
    )


def test_what_a_table_cannot_hold(tmp_path):
    with pytest.raises(FormatError, match="the start is a goal"):
        tp.write(samples()["start is goal"], tmp_path / "m.csv")
    with pytest.raises(FormatError, match=r"nothing leads to the goal \('x', 2.5\)"):
        tp.write(awkward(), tmp_path / "m.csv")
    assert not (tmp_path / "m.csv").exists()


def test_other_systems_write_other_line_ends(table):
    path = table("")
    tp.write(by_choice(), path)
    data = path.read_bytes()
    assert outcomes(tp.read(table(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")))) == outcomes(
        by_choice()
    )


OWN = "state,action,next_state,probability,cost\n"
OWN += "a,go,b,0.5,2\na,go,home,0.5,6\nb,go,home,1,4\nb,wait,a,1,1\n"


def test_our_own_columns_and_other_names_for_them(table):
    ssp = tp.read(table(OWN))
    assert ssp.states == ("a", "b", "home") and ssp.start == "a" and ssp.goals == ("home",)
    for header in (
        "from,action,to,prob,time",
        "source,a,target,p,duration",
        "From_State, Choice ,to state,chance,weight",
    ):
        assert (
            tp.read(table(OWN.replace("state,action,next_state,probability,cost", header))) == ssp
        )


def test_roads_need_no_action(table):
    ssp = tp.read(table("from,to,time,name\na,b,2,x\na,c,7,y\nb,c,3.5,z\n"))
    assert tp.solve_expected(ssp).cost() == 5.5
    assert tp.solve_expected(ssp).policy.action("a") == "b"


def test_what_lies_behind_a_goal_is_left_out(table):
    text = "from,to,time\n2,1,3\n1,7,4\n7,0,5\n0,9,1\n9,7,1\n7,8,2\n"
    rows = [line.split(",") for line in text.splitlines()]
    frame = dict(zip(rows[0], zip(*[map(int, row) for row in rows[1:]])))
    for source in (table(text), frame):
        ssp = tp.read(source, goals=[7])
        assert (ssp.start, ssp.goals) == (2, (7,)) and sorted(ssp.states) == [0, 1, 2, 7, 9]
        assert tp.solve_expected(ssp).cost() == 7
        assert "runs end at goals: 2 rows leading on from them are left out" in ssp.notes
    counted = tp.read(table("from,a,to,time,count\na,x,b,3,5\nb,x,c,1,2\n"), goals="b")
    assert list(counted.states) == ["a", "b"]
    dead = "state 8 has no choices and is not a goal; give it some, or make it a goal"
    with pytest.raises(FormatError, match=dead):
        tp.read(table(text), start=8, goals=[7])
    assert tp.read(table(text), start=8, goals=[7, 8]).goals == (7, 8)


def test_start_and_goals_as_options_or_columns(table):
    path = table(OWN)
    given = tp.read(path, start="b", goals=["a", "home"])
    assert (given.start, given.goals) == ("b", ("a", "home"))
    assert not any("start" in note or "the goals" in note for note in given.notes)
    numbers = table("from,to,time,start,goal\n1,2,3,,0\n2,3,4,x,true\n2,1,1,x,0\n")
    assert (tp.read(numbers).start, tp.read(numbers).goals) == (2, (3,))
    assert tp.read(numbers, start="1", goals=["3", "2"]).goals == (2, 3), (
        "texts stand for numbers, as on the command line"
    )
    with pytest.raises(FormatError, match=r"m\.csv: the table has no state 'z'"):
        tp.read(path, start="z")
