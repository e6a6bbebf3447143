"""Models from functions: the same model as by hand, found breadth first, and ends that
say where.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given

import tailpath as tp
from tailpath import SSP
from tailpath.errors import ModelError, OptionError
from tailpath.texts import name
from tests.strategies import any_models


class Cell(NamedTuple):
    row: int
    column: int


@dataclass(frozen=True)
class Stock:
    left: int
    day: int


def walk(last):
    """From 0 to `last`, one step on or, with a half, none; or two at once for more."""
    return {
        "start": 0,
        "actions": lambda s: ["walk", "jump"],
        "outcomes": lambda s, a: (
            [(0.5, s, 1), (0.5, s + 1, 1)] if a == "walk" else [(1, min(s + 2, last), 5)]
        ),
        "is_goal": lambda s: s == last,
    }


def reachable(model):
    """What `any_models` has, as far as it can be reached: what functions of it would find."""
    order = [model.start]
    for state in order:
        for outcomes in model.choices.get(state, {}).values():
            for target, _, _ in outcomes:
                order += [] if target in order else [target]
    return order


@given(any_models())
def test_any_model_is_found_again(model):
    """Breadth first, and the rest as `from_outcomes` has it."""
    if not any(state in model.goals for state in reachable(model)):
        return
    ssp = SSP.from_functions(
        model.start,
        lambda s: model.choices[s],
        lambda s, a: ((p, t, c) for t, p, c in model.choices[s][a]),
        lambda s: s in model.goals,
    )
    assert list(ssp.states) == reachable(model)
    rows = [row for state in ssp.states for row in model.rows() if row[0] == state]
    assert ssp == SSP.from_outcomes(
        rows, model.start, [goal for goal in model.goals if goal in ssp.states]
    )


def test_the_walk_by_hand():
    ssp = SSP.from_functions(**walk(3))
    rows = [(s, "walk", t, 0.5, 1) for s in range(3) for t in (s, s + 1)]
    rows += [(s, "jump", min(s + 2, 3), 1, 5) for s in range(3)]
    assert ssp == SSP.from_outcomes(sorted(rows, key=lambda row: row[0]), 0, [3])
    assert ssp.states == (0, 1, 2, 3) and ssp.goals == (3,)


def test_an_object_with_the_four():
    class Walk:
        start = 0
        actions, outcomes, is_goal = (
            staticmethod(walk(4)[name]) for name in ("actions", "outcomes", "is_goal")
        )

    class Late(Walk):
        def start(self):
            return 1

    assert SSP.from_functions(Walk()) == SSP.from_functions(**walk(4))
    assert SSP.from_functions(Late()).start == 1


def test_each_function_is_asked_once():
    asked = []
    model = walk(5)

    def outcomes(state, action):
        asked.append((state, action))
        return model["outcomes"](state, action)

    ssp = SSP.from_functions(0, model["actions"], outcomes, model["is_goal"])
    assert len(asked) == len(set(asked)) == ssp.n_choices


def test_exact_costs_and_progress():
    told = []
    ssp = SSP.from_functions(
        0,
        lambda s: ["go"],
        lambda s, a: [(1, s + 1, Fraction(1, 3) if s % 2 else 0.5)],
        lambda s: s == 12_000,
        progress=lambda steps, share: told.append((steps, share)),
    )
    assert ssp.cost_unit == Fraction(1, 6)
    assert [steps for steps, _ in told] == [0, 5_000, 10_000] and all(
        0 <= share <= 1 for _, share in told
    )


@pytest.mark.parametrize("kind", [Cell, Stock])
def test_names_are_shown_by_field(kind, tmp_path):
    first, second = kind(0, 1), kind(1, 2)
    ssp = SSP.from_functions(
        first, lambda s: ["go"], lambda s, a: [(1, second, 1)], lambda s: s == second
    )
    fields = ("row", "column") if kind is Cell else ("left", "day")
    shown = f"{fields[0]}=0, {fields[1]}=1"
    assert name(ssp.start) == shown and shown in ssp._repr_html_()
    row = tp.solve_expected(ssp).policy.table(ssp)[0]
    assert row.state == first
    if kind is Cell:  # a file keeps what is equal to it
        tp.write(ssp, tmp_path / "m.json")
        assert tp.read(tmp_path / "m.json") == ssp
    else:
        with pytest.raises(
            tp.TailpathError, match=r"the name Stock\(left=0, day=1\) cannot be written"
        ):
            tp.write(ssp, tmp_path / "m.json")


def test_names_within_names():
    class Load(NamedTuple):
        at: Cell
        what: str

    assert name(Load(Cell(1, 2), "hay")) == "at=(row=1, column=2), what=hay"
    assert name((1, 2)) == "(1, 2)" and name("x") == "x"


def refused(**changed):
    return SSP.from_functions(**{**walk(3), **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"is_goal": lambda s: False, "outcomes": lambda s, a: [(1, 0, 1)]},
            "^is_goal is true for none of the states that can be reached, 1 in all$",
        ),
        ({"actions": lambda s: []}, r"^actions\(0\) .*not a goal$"),
        (
            {"outcomes": lambda s, a: [(1, s)]},
            r"^outcomes\(0, 'walk'\) gives \(1, 0\); expected \(probability, next state, cost\)$",
        ),
        ({"outcomes": lambda s, a: [7]}, r"^outcomes\(0, 'walk'\) gives 7; expected"),
        (
            {"outcomes": lambda s, a: [(1, [s], 1)]},
            r"^a next state in outcomes\(0, 'walk'\) is \[0\], which is not hashable: use a tuple",
        ),
        ({"outcomes": lambda s, a: [(1, 1, [1])]}, r"^a cost in outcomes\(0, 'walk'\) is \[1\]"),
        (
            {"actions": lambda s: [["walk"]]},
            r"^an action in outcomes\(0, \['walk'\]\) is \['walk'\], which is not hashable",
        ),
        ({"start": {}}, r"^the start is \{\}, which is not hashable"),
        (
            {"outcomes": lambda s, a: [(0.5, 3, 1)]},
            r"^the probabilities of state 0, action 'walk' sum to 0.5, not 1;",
        ),
        (
            {"outcomes": lambda s, a: [(1, 3, "dear")]},
            r"^state 0, action 'walk' -> 3: 'dear' is not a finite number",
        ),
        (
            {"outcomes": lambda s, a: [(1, s + 1, 1)], "is_goal": lambda s: s < 0, "limit": 100},
            (
                r"^more than 100 states \(limit=\): 101 were found up to the successors of 99,"
                r" the last is 100; solve_cvar_lazy \(--lazy\) does not list them$"
            ),
        ),
    ],
)
def test_what_is_refused(changed, message):
    with pytest.raises(ModelError, match=message):
        refused(**changed)


def test_the_limit_names_what_grows():
    def outcomes(state, action):
        return [
            (0.5, Stock(state.left, (state.day + 1) % 7), 1),
            (0.5, Stock(state.left + 1, state.day), 1),
        ]

    with pytest.raises(ModelError, match=r"the last is Stock\(left=\d+, day=\d\); solve_"):
        SSP.from_functions(Stock(0, 0), lambda s: ["sell"], outcomes, lambda s: False, limit=500)
    exactly = walk(3)
    assert SSP.from_functions(**exactly, limit=4).n_states == 4
    with pytest.raises(ModelError, match="more than 3 states"):
        SSP.from_functions(**exactly, limit=3)


def test_errors_of_the_functions_say_where():
    def outcomes(state, action):
        yield 1, 1 // (state - 1), 1

    with pytest.raises(ZeroDivisionError) as caught:
        SSP.from_functions(0, lambda s: ["go"], lambda s, a: outcomes(s + 1, a), lambda s: s == 9)
    assert caught.value.__notes__ == ["in outcomes(0, 'go')"]


def test_options():
    with pytest.raises(
        OptionError,
        match=(
            r"^an int alone has no start, actions, outcomes, is_goal; give start, actions, outcomes"
        ),
    ):
        SSP.from_functions(3)
    with pytest.raises(OptionError, match=r"^outcomes must be a function, not None"):
        SSP.from_functions(3, lambda s: ["go"])
    with pytest.raises(OptionError, match=r"^limit must be a whole number of at least 1, not 0$"):
        SSP.from_functions(**walk(3), limit=0)
