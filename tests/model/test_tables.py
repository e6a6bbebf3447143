"""Tables of pandas, polars and pyarrow, dictionaries of columns and graphs: one model, whatever holds it."""

from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import tailpath as tp
from tailpath import SSP
from tailpath.errors import ModelError, OptionError

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
        for ssp in (SSP.from_table(frame, start="a", goals=["home"]), tp.read(frame, start="a", goals="home"), SSP.from_table(frame)):
            assert plain(ssp) == WANTED


def test_what_is_assumed_is_noted():
    ssp = SSP.from_table(COLUMNS)
    assert ssp.notes == ("states without rows are the goals (1 of them)", "the start is 'a', the state of the first row")
    assert SSP.from_table(COLUMNS, start="b", goals=["home"]).notes == ()


def test_other_names_and_rewards():
    frame = pd.DataFrame(COLUMNS).rename(columns={"state": "From", "next_state": "to", "probability": "p", "cost": "time"})
    assert plain(SSP.from_table(frame)) == WANTED
    turned = pd.DataFrame(COLUMNS).assign(reward=lambda frame: -frame["cost"]).drop(columns="cost")
    assert plain(SSP.from_table(turned)) == WANTED
    assert "costs are minus the rewards" in SSP.from_table(turned).notes


def test_start_and_goals_in_columns():
    frame = pd.DataFrame(COLUMNS).assign(start=[False, False, True, True], goal=[False, True, True, False])
    ssp = SSP.from_table(frame)
    assert (ssp.start, ssp.goals, ssp.notes) == ("b", ("home",), ())


def test_costs_stay_exact():
    table = {"from": [0, 0], "to": [1, 2], "time": [Fraction(1, 3), Decimal("0.5")]}
    assert SSP.from_table(table).cost_unit == Fraction(1, 6)


def test_rows_that_lead_nowhere_mark_a_goal():
    ssp = SSP.from_table({"from": ["a", "b"], "to": ["b", "b"], "cost": [3, 0]})
    assert ssp.goals == ("b",)


def test_out_and_in_again():
    back = SSP.from_table(WANTED.to_pandas(), start="a", goals=["home"])
    assert plain(back) == WANTED
    river = tp.domains.river(rows=4, columns=3)
    frame = river.to_pandas()
    assert len(frame) == river.n_outcomes
    assert tp.solve_expected(SSP.from_table(frame, start=river.start, goals=river.goals)).cost() == tp.solve_expected(river).cost()


def test_graphs():
    roads = nx.DiGraph()
    roads.add_edge("a", "b", time=2)
    roads.add_edge("a", "c", time=7)
    roads.add_edge("b", "c", time=3.5)
    for ssp in (tp.read(roads, start="a", goals=["c"]), SSP.from_table(roads, start="a", goals=["c"])):
        assert tp.solve_expected(ssp).cost() == 5.5
    both = nx.Graph(roads)
    assert tp.solve_expected(tp.read(both, start="c", goals=["a"])).cost() == 5.5
    risky = nx.MultiDiGraph()
    for target, p in (("b", 0.5), ("c", 0.5)):
        risky.add_edge("a", target, action="drive", probability=p, cost=4)
    risky.add_edge("b", "c", action="walk", probability=1, cost=10)
    assert tp.evaluate(tp.read(risky, start="a", goals=["c"]), lambda state: "drive" if state == "a" else "walk", 0.5).cvar(0.5) == 14


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SSP.from_table({"from": [1]}), r"^no column is the next_state; expected one of next_state, to, target"),
        (lambda: SSP.from_table({"from": [], "to": [], "cost": []}), r"^the table has no rows$"),
        (lambda: SSP.from_table({"from": [1], "to": [1], "cost": [2]}), r"^no goal: every state has rows"),
        (lambda: SSP.from_table({"from": [1], "to": [2]}), r"^exactly one column must be the cost or the reward"),
        (lambda: SSP.from_table(7), r"^cannot read a int as a table"),
        (lambda: SSP.from_table({**COLUMNS, "cost": [1, 2, 3, -4]}), r"^state 'b', action 'wait' -> 'a' has the negative cost -4"),
        (lambda: SSP.from_table({**COLUMNS, "start": [1, 0, 1, 0]}), r"^the column start marks 2 states; exactly one must be the start$"),
        (lambda: tp.read(nx.DiGraph()), r"^the graph has no edges$"),
        (lambda: tp.read(nx.DiGraph([(0, 1, {"cost": 1})])), r"^a graph does not say where runs begin and end: give start= and goals=$"),
        (lambda: tp.read(nx.DiGraph([(0, 1, {"cost": 1}), (1, 2)]), start=0, goals=[2]), r"^the edge from 1 to 2 has no cost$"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_options_that_a_table_has_no_use_for():
    with pytest.raises(OptionError, match="the option step_cost does not apply to a table"):
        tp.read(COLUMNS, step_cost=1)
    with pytest.raises(OptionError, match=r"^cannot read a ndarray: give a path, a scheme string, a table, a graph, or an environment"):
        tp.read(np.zeros(3))


def test_a_goal_that_is_no_state_and_columns_passed_over():
    table = {"from": ["home"], "to": ["work"], "time": [20], "colour": ["red"]}
    with pytest.raises(ModelError, match=r"^the table has no state 'wrok', which is to be a goal; did you mean 'work'\?$"):
        SSP.from_table(table, start="home", goals=["wrok"])
    assert "columns that were not read: colour" in SSP.from_table(table, start="home", goals=["work"]).notes
