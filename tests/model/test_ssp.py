"""The model: its arrays, its names, its exact costs, and every refusal with its message."""

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailpath import SSP, TailpathWarning, solve_expected
from tailpath.errors import ModelError
from tailpath.model.cost_units import MAX_UNITS, as_fraction, common_unit
from tailpath.model.ssp import Geometry
from tests.reference import from_ssp, to_ssp
from tests.strategies import any_models

ROWS = [
    ("a", "go", "b", 0.5, 1),
    ("a", "go", "goal", 0.5, 3),
    ("a", "jump", "goal", 1, 10),
    ("b", "go", "a", 0.25, 0),
    ("b", "go", "goal", 0.75, 2),
]


def build(rows=ROWS, start="a", goals=("goal",)):
    return SSP.from_outcomes(rows, start, goals)


def arrays(**changed):
    """A sound model of two states and a goal in raw arrays, with some of them changed."""
    fields = {
        "state_choices": [0, 2, 3, 3],
        "choice_outcomes": [0, 2, 3, 5],
        "outcome_target": [1, 2, 2, 0, 2],
        "outcome_probability": [0.5, 0.5, 1, 0.25, 0.75],
        "outcome_cost": [1, 3, 10, 0, 2],
        "choice_action": [0, 1, 0],
        "is_goal": [False, False, True],
        "start_index": 0,
        "states": ("a", "b", "goal"),
        "actions": ("go", "jump"),
    }
    return SSP(
        **{
            name: np.array(value) if isinstance(value, list) else value
            for name, value in {**fields, **changed}.items()
        }
    )


# ---------------------------------------------------------------------- what is built


def test_arrays_of_a_small_model():
    by_rows, by_arrays = build(), arrays()
    for field in dataclasses.fields(SSP):
        if field.name not in ("exact_unit", "states"):
            np.testing.assert_array_equal(
                getattr(by_rows, field.name), getattr(by_arrays, field.name), err_msg=field.name
            )
    assert (by_rows.n_states, by_rows.n_choices, by_rows.n_outcomes) == (3, 3, 5)
    assert (by_rows.start, by_rows.goals, tuple(by_rows.states)) == (
        "a",
        ("goal",),
        ("a", "b", "goal"),
    )
    assert by_rows.choice_state.tolist() == [0, 0, 1]
    assert by_rows.outcome_choice.tolist() == [0, 0, 1, 2, 2]
    assert repr(by_rows) == "<SSP 3 states, 3 choices, 5 outcomes, start 'a'>"


def test_names():
    ssp = build()
    assert [ssp.state_index(state) for state in ("a", "b", "goal")] == [0, 1, 2]
    assert (ssp.choice_index(0, "jump"), ssp.choice_index(1, "jump"), ssp.choice_name(1)) == (
        1,
        -1,
        "jump",
    )
    with pytest.raises(ModelError, match=r"^the model has no state 'c'$"):
        ssp.state_index("c")


def test_numbered_states_need_no_table():
    ssp = arrays(states=range(3))
    assert (ssp.state_index(2), ssp.state_index(np.int32(1)), ssp.start) == (2, 1, 0)
    for wrong in (3, -1, "a"):
        with pytest.raises(ModelError, match="the model has no state"):
            ssp.state_index(wrong)


@given(any_models())
def test_nothing_is_lost_or_merged_but_equal_outcomes(model):
    """Rows in any order come back as they went in, with the probabilities of equal rows
    added up.
    """
    wanted = {}
    for state, action, target, p, cost in model.rows():
        key = (state, action, target, cost)
        wanted[key] = wanted.get(key, 0) + p
    ssp = to_ssp(model)
    unit = ssp.cost_unit
    found = {
        (state, action, target, cost): p
        for state, actions in from_ssp(ssp).choices.items()
        for action, outcomes in actions.items()
        for target, p, cost in outcomes
    }
    assert found.keys() == wanted.keys()
    assert len(found) == ssp.n_outcomes
    for key, p in wanted.items():
        assert math.isclose(found[key], p, rel_tol=1e-15)
        assert key[3] % unit == 0


def test_rows_may_come_in_any_order():
    shuffled = [ROWS[k] for k in (3, 1, 4, 2, 0)]
    ssp = build(shuffled)
    assert tuple(ssp.states) == ("b", "a", "goal"), "numbered as they first appear"
    assert sorted(map(str, from_ssp(ssp).rows())) == sorted(map(str, from_ssp(build()).rows()))


def test_parallel_outcomes_with_different_costs_stay_apart():
    ssp = build(
        [("a", "go", "goal", 0.5, 0), ("a", "go", "goal", 0.25, 4), ("a", "go", "goal", 0.25, 0)]
    )
    assert (ssp.outcome_cost.tolist(), ssp.outcome_probability.tolist()) == ([0, 4], [0.75, 0.25])


def test_rows_of_probability_zero_are_left_out():
    ssp = build([*ROWS, ("a", "go", "far", 0, 99), ("far", "go", "goal", 1, 1)])
    assert (ssp.n_outcomes, ssp.cost_unit) == (6, 1)


def test_a_goal_may_loop_for_free():
    ssp = build([*ROWS, ("goal", "stay", "goal", 1, 0)])
    assert (ssp.n_choices, ssp.goals) == (3, ("goal",))


def test_the_start_may_be_the_goal():
    ssp = SSP.from_outcomes([], "home", ["home"])
    assert (ssp.n_states, ssp.n_choices, ssp.start, ssp.cost_unit) == (1, 0, "home", 1)


def test_any_hashable_names():
    ssp = SSP.from_outcomes([((0, 1), None, frozenset("x"), 1, 1)], (0, 1), [frozenset("x")])
    assert (ssp.start, ssp.goals, ssp.choice_name(0)) == ((0, 1), (frozenset("x"),), None)


def test_a_model_cannot_be_changed():
    ssp = build()
    with pytest.raises(dataclasses.FrozenInstanceError):
        ssp.start_index = 1
    for field in dataclasses.fields(SSP):
        array = getattr(ssp, field.name)
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        ssp.outcome_level[0] = 1


def test_the_callers_arrays_stay_writable():
    cost = np.array([1.0, 3, 10, 0, 2])
    arrays(outcome_cost=cost)
    cost[0] = 5


def test_a_cost_of_minus_zero_is_zero():
    assert math.copysign(1, build([("a", "go", "goal", 1, -0.0)]).outcome_cost[0]) == 1


# ---------------------------------------------------------------------- exact costs


@pytest.mark.parametrize(
    ("costs", "unit"),
    [
        ([1, 2, 3], 1),
        ([4, 6], 2),
        ([0.5, 2, 1], F(1, 2)),
        ([0.1, 0.2, 0.3], F(1, 10)),
        ([0.1 + 0.2, 0.3], None),  # 0.30000000000000004 is another number
        ([F(1, 3), F(1, 2)], F(1, 6)),
        ([Decimal("0.05"), 1], F(1, 20)),
        ([0, 0.0], 1),
        ([0, 7], 7),
        ([1, MAX_UNITS], 1),
        ([1, MAX_UNITS + 1], None),
        ([1e-7, 1], F(1, 10**7)),
        ([1e-8, 1], None),
        ([1e300], F(10) ** 300),
        ([math.pi, math.e], None),
        ([np.float64(0.1), np.int64(2)], F(1, 10)),
        ([], 1),
    ],
)
def test_cost_unit(costs, unit):
    assert common_unit(costs) == unit
    if costs:
        rows = [(k, "go", k + 1, 1, cost) for k, cost in enumerate(costs)]
        assert SSP.from_outcomes(rows, 0, [len(costs)]).cost_unit == unit


@given(st.lists(st.fractions(min_value=0, max_value=1000, max_denominator=50), min_size=1))
def test_the_unit_is_the_largest_that_fits(costs):
    unit = common_unit(costs)
    if unit is None:
        return
    multiples = [cost / unit for cost in costs]
    assert all(multiple.denominator == 1 for multiple in multiples)
    if any(costs):
        assert math.gcd(*(multiple.numerator for multiple in multiples)) == 1, (
            "a larger unit would do"
        )


def test_levels_are_whole_numbers_of_units():
    ssp = build(
        [("a", "go", "b", 1, 0.3), ("b", "go", "c", 1, 0.1), ("c", "go", "goal", 1, F(1, 3))]
    )
    assert (ssp.cost_unit, ssp.outcome_level.tolist()) == (F(1, 30), [9, 3, 10])


def test_the_unit_of_raw_arrays_is_found_from_the_floats():
    assert arrays(outcome_cost=[0.1, 0.3, 0, 0.2, 0.7]).cost_unit == F(1, 10)


def test_without_a_unit_there_are_no_levels():
    ssp = build([("a", "go", "b", 1, math.pi), ("b", "go", "goal", 1, 1)])
    assert ssp.cost_unit is None
    with pytest.raises(ModelError, match="no common unit"):
        _ = ssp.outcome_level


def test_a_float_is_read_as_the_decimal_that_prints_it():
    assert (
        as_fraction(0.1),
        as_fraction(np.float64(2.5)),
        as_fraction(np.int32(3)),
        as_fraction(1e-3),
    ) == (
        F(1, 10),
        F(5, 2),
        F(3),
        F(1, 1000),
    )


# ---------------------------------------------------------------------- row sums


def test_rows_nearly_one_are_scaled_with_a_warning():
    rows = [("a", "go", "b", 0.5, 1), ("a", "go", "goal", 0.5 + 1e-9, 1), ("b", "go", "goal", 1, 1)]
    message = (
        r"the probabilities of 1 choice were scaled to sum to 1; the first is state 'a', action"
        r" 'go', off by 1e-09"
    )
    with pytest.warns(TailpathWarning, match=message):
        ssp = build(rows)
    assert ssp.outcome_probability[:2].sum() == pytest.approx(1, abs=2e-16)
    assert ssp.outcome_probability[1] == pytest.approx((0.5 + 1e-9) / (1 + 1e-9), rel=1e-15)


def test_the_tolerance_grows_with_the_length_of_a_row():
    rows = [("a", "go", k, 0.1, 1) for k in range(9)] + [("a", "go", "goal", 0.1 + 8e-9, 1)]
    rows += [(k, "go", "goal", 1, 1) for k in range(9)]
    with pytest.warns(TailpathWarning, match="off by 8e-09"):
        build(rows)
    with pytest.raises(
        ModelError, match=r"the probabilities of state 'a', action 'go' sum to 1.000000008, not 1"
    ):
        build([("a", "go", "goal", 1 + 8e-9, 1)])


def test_rounding_alone_is_no_reason_to_warn():
    build(
        [("a", "go", k, 0.1, k) for k in range(10)] + [(k, "go", "goal", 1, 1) for k in range(10)]
    )


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "go", "goal", -0.5, 1)], "state 'a', action 'go' -> 'goal' has probability -0.5"),
        (
            [("a", "go", "goal", math.nan, 1)],
            "state 'a', action 'go' -> 'goal' has probability nan",
        ),
        (
            [("a", "go", "goal", math.inf, 1)],
            "state 'a', action 'go' -> 'goal' has probability inf",
        ),
        (
            [("a", "go", "goal", 0.9, 1)],
            "the probabilities of state 'a', action 'go' sum to 0.9, not 1",
        ),
        ([*ROWS, ROWS[2]], "the probabilities of state 'a', action 'jump' sum to 2, not 1"),
        ([("a", "go", "goal", 1, -math.inf)], "state 'a', action 'go' -> 'goal' costs -inf"),
        (
            [("a", "go", "goal", 1, -1e301)],
            "state 'a', action 'go' -> 'goal' costs -1e+301, too large to compute with",
        ),
        ([("a", "go", "goal", 1, math.nan)], "state 'a', action 'go' -> 'goal' costs nan"),
        ([("a", "go", "goal", 1, math.inf)], "state 'a', action 'go' -> 'goal' costs inf"),
        (
            [("a", "go", "goal", 1, "dear")],
            "state 'a', action 'go' -> 'goal': 'dear' is not a finite number (column cost)",
        ),
        (
            [("a", "go", "goal", None, 1)],
            "state 'a', action 'go' -> 'goal': None is not a finite number (column probability)",
        ),
        ([("a", "go", "b", 1, 1)], "state 'b' has no choices and is not a goal"),
        ([*ROWS, ("b", "stop", "b", 0, 1)], "state 'b', action 'stop' has no outcomes"),
        (
            [*ROWS, ("goal", "back", "a", 1, 0)],
            "goal 'goal', action 'back' leads to 'a' at cost 0: a goal must be absorbing and free",
        ),
        (
            [*ROWS, ("goal", "stay", "goal", 1, 5)],
            (
                "goal 'goal', action 'stay' leads to 'goal' at cost 5: a goal must be absorbing and"
                " free"
            ),
        ),
        (
            [("a", "go", "goal", 1)],
            (
                "outcome 0 is ('a', 'go', 'goal', 1); expected hashable (state, action, next_state,"
                " probability, cost)"
            ),
        ),
        (
            [*ROWS, (["a"], "go", "goal", 1, 1)],
            "outcome 5 is (['a'], 'go', 'goal', 1, 1); expected hashable",
        ),
    ],
)
def test_bad_rows(rows, message):
    with pytest.raises(ModelError) as error:
        build(rows)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("start", "goals", "message"),
    [
        ("z", ["goal"], "the model has no state 'z' to use as the start"),
        ("a", [], "the model has no goals"),
        ("a", "goal", "goals must be a collection of state names; put 'goal' in a list"),
        ("a", 7, "goals must be a collection of state names; put 7 in a list"),
    ],
)
def test_bad_start_and_goals(start, goals, message):
    with pytest.raises(ModelError) as error:
        build(start=start, goals=goals)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"state_choices": []}, "the model has no states"),
        ({"state_choices": [0, 2, 1, 3]}, "state_choices must rise from 0 to 3"),
        ({"state_choices": [0, 2, 3, 4]}, "state_choices must rise from 0 to 3"),
        ({"choice_outcomes": [1, 2, 3, 5]}, "choice_outcomes must rise from 0 to 5"),
        ({"outcome_cost": [1, 2]}, "outcome arrays differ in length"),
        ({"is_goal": [False, True]}, "choice or state arrays differ in length"),
        ({"choice_action": [0, 2, 0]}, "choice_action points outside the list of actions"),
        ({"choice_action": [0, -1, 0]}, "choice_action points outside the list of actions"),
        ({"choice_action": [0, 0, 0]}, "state 'a', action 'go' is given twice"),
        ({"states": ("a", "b", "a")}, "two states are named 'a'"),
        ({"actions": ("go", "go")}, "two actions are named 'go'"),
        ({"start_index": 3}, "the start index 3 lies outside 0..2"),
        ({"is_goal": [False, False, False]}, "the model has no goals"),
        (
            {"is_goal": [False, True, True]},
            "goal 'b' has choices: goals are absorbing and free, and need none",
        ),
        (
            {"state_choices": [0, 3, 3, 3]},
            "state 'b' has no choices and is not a goal; give it some, or make it a goal",
        ),
        ({"choice_outcomes": [0, 3, 3, 5]}, "state 'a', action 'jump' has no outcomes"),
        (
            {"outcome_target": [1, 2, 2, 0, 3]},
            "state 'b', action 'go' leads to state index 3, outside 0..2",
        ),
        (
            {"outcome_target": [1, -1, 2, 0, 2]},
            "state 'a', action 'go' leads to state index -1, outside 0..2",
        ),
        (
            {"outcome_target": [1, 2, 2, 0, 2**32 + 2]},
            "outcome_target must hold whole numbers that fit int32",
        ),
        (
            {"outcome_target": [1, 2, 2, 0, 1.5]},
            "outcome_target must hold whole numbers that fit int32",
        ),
        (
            {"outcome_probability": [0.5, 0.5, 1, 0, 1]},
            "state 'b', action 'go' -> 'a' has probability 0: leave it out",
        ),
    ],
)
def test_bad_arrays(changed, message):
    with pytest.raises(ModelError) as error:
        arrays(**changed)
    assert str(error.value) == message


def test_a_dead_end_is_accepted():
    ssp = build([*ROWS, ("a", "fall", "pit", 1, 1), ("pit", "wait", "pit", 1, 1)])
    assert ssp.state_index("pit") == 3


# ---------------------------------------------------------------------- objects built by hand


def fields_of(ssp):
    return {field.name: getattr(ssp, field.name) for field in dataclasses.fields(ssp)}


LOOP = SSP.from_outcomes([("s", "a", "s", 0.5, 2), ("s", "a", "g", 0.5, 3)], "s", ["g"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome_cost": np.zeros((2, 1))}, "outcome_cost must have one axis, not 2"),
        ({"start_index": 0.5}, "the start index must be a whole number, not 0.5"),
        ({"start_index": True}, "the start index must be a whole number"),
        (
            {"geometry": Geometry(1, 1, (0,), (0,), ("floor",))},
            "the geometry needs a row, a column and a kind per state",
        ),
        (
            {"exact_unit": F(2)},
            "state 's', action 'a' -> 'g' costs 3.0, not a whole multiple of 2, the cost unit",
        ),
        ({"exact_unit": F(1, 10**9)}, "too fine or too large"),
        ({"exact_unit": F(0)}, "must be a positive fraction"),
        ({"exact_unit": 0.5}, "must be a positive fraction, not 0.5"),
        (
            {"outcome_cost": np.array([1e-6, 3.0]), "exact_unit": F(1)},
            "costs 1e-06, not a whole multiple of 1, the cost unit",
        ),
        ({"outcome_cost": np.array([1e-310, 3.0])}, "costs 1e-310, too small to compute with"),
        ({"outcome_cost": np.array([1.7e308, 3.0])}, r"costs 1.7e\+308, too large to compute with"),
    ],
)
def test_a_model_built_by_hand_is_checked(changes, message):
    with pytest.raises(ModelError, match=message):
        SSP(**{**fields_of(LOOP), **changes})


def test_costs_next_to_a_multiple_of_the_unit_become_it():
    """0.1 + 0.2 is not 0.3 in floats; with the unit 1/10 it is."""
    ssp = SSP(
        **{**fields_of(LOOP), "outcome_cost": np.array([0.1 + 0.2, 0.1]), "exact_unit": F(1, 10)}
    )
    assert ssp.outcome_cost.tolist() == [0.3, 0.1] and ssp.outcome_level.tolist() == [3, 1]


def test_totals_beyond_the_floats_are_refused():
    ssp = SSP.from_outcomes(
        [("s", "a", "g", 1e-9, 1e300), ("s", "a", "s", 1 - 1e-9, 1e300)], "s", ["g"]
    )
    with pytest.raises(ModelError, match="the expected costs are too large to compute with"):
        solve_expected(ssp)


def test_a_cost_of_the_most_units_is_read_as_the_decimal_it_is():
    """0.1 is ten million units of 1e-8; the float 0.1 is a little more."""
    ssp = SSP.from_outcomes([("s", "a", "g", 0.5, 0.1), ("s", "a", "g", 0.5, 1e-8)], "s", ["g"])
    assert ssp.cost_unit == F(1, 10**8)


# ---------------------------------------------------------------------- maps


def corridor(**geometry):
    rows = [("hall", "go", "door", 1, 1), ("door", "go", "yard", 1, 1)]
    return SSP.from_outcomes(rows, "hall", ["yard"], **geometry)


def test_geometry_is_given_by_name():
    """States are numbered as they appear, so that places by number would scramble a map."""
    ssp = corridor(geometry={"yard": (0, 1, "grass"), "hall": (2, 1), "wall": (2, 3)})
    assert ssp.geometry == Geometry(3, 4, (2, -1, 0), (1, -1, 1), ("", "", "grass"))
    numbers = SSP.from_outcomes([(5, "go", 1, 1, 1)], 5, [1], geometry=(2, 3)).geometry
    assert (numbers.row, numbers.column) == ((1, 0), (2, 1))


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        ({"hall": (0, 0), "yard": (0, 0)}, r"'hall' and 'yard' .* \(0, 0\)"),
        (
            {"halls": (0, 0)},
            (
                "the geometry places 'halls' and others, none of which the model has; its states"
                " are 'hall', 'door'"
            ),
        ),
        ({"hall": 3}, r"state 'hall' lies at 3; expected \(row, column\)"),
        (
            {"hall": (-1, 0)},
            r"state 'hall' lies at \(-1, 0\); expected \(row, column\), counted from 0",
        ),
        ({}, "the geometry places"),
        (
            "14x16",
            r"the geometry must be \{state: \(row, column\)\} or \(rows, columns\), not '14x16'",
        ),
        ((0, 3), r"\(rows, columns\), not \(0, 3\)"),
    ],
)
def test_geometry_that_cannot_be_meant(geometry, message):
    with pytest.raises(ModelError, match=message):
        corridor(geometry=geometry)
