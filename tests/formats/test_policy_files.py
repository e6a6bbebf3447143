"""Policies on disk: lossless, tied to their model, and checked before a kernel may use them."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import FormatError, OptionError, PolicyError
from tailpath.policies.kinds import HistoryPolicy, MarkovPolicy, MemoryPolicy
from tests.formats.models import by_choice
from tests.formats.policies import (
    CASES,
    budget_policy,
    markov_policy,
)
from tests.reference import to_ssp
from tests.strategies import any_models, randomised_policies

SUFFIXES = ["json", "npz"]


def parts(policy):
    """Everything a policy holds, in comparable form."""
    return {
        name: [*value.tolist(), str(value.dtype)] if isinstance(value, np.ndarray) else value
        for name, value in vars(policy).items()
        if name != "ssp"
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", CASES)
def test_a_policy_survives_the_trip(kind, suffix, tmp_path):
    policy, ssp = CASES[kind][0](), CASES[kind][1]()
    tp.write_policy(policy, tmp_path / f"p.{suffix}")
    again = tp.read_policy(tmp_path / f"p.{suffix}", ssp)
    assert type(again) is type(policy)
    assert parts(again) == parts(policy)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(data=st.data())
def test_any_markov_policy_survives_the_trip(suffix, data, tmp_path_factory):
    model = data.draw(any_models())
    policy = data.draw(randomised_policies(model))
    path = tmp_path_factory.mktemp("trip") / f"p.{suffix}"
    tp.write_policy(policy, path)
    assert tp.read_policy(path, to_ssp(model)) == policy


def exact(ssp):
    return tp.solve_cvar_exact(ssp, alpha=0.05).policy(0.05)


def quantile(ssp):
    return tp.solve_cvar_quantile(ssp, atoms=tp.log_atoms(0.01, 4)).policy(0.05)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("solve", [exact, quantile])
def test_the_policies_of_the_solvers_survive_the_trip(solve, suffix, tmp_path):
    ssp = tp.read("river:10x3")
    policy = solve(ssp)
    tp.write_policy(policy, tmp_path / f"p.{suffix}")
    assert parts(tp.read_policy(tmp_path / f"p.{suffix}", ssp)) == parts(policy)


def test_a_file_for_people(tmp_path):
    tp.write_policy(MarkovPolicy({0: "left", 1: "right", 2: {"left": 1.0}}), tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    assert document == {
        "format": "tailpath policy",
        "version": 1,
        "kind": "markov",
        "decisions": [[0, "left"], [1, "right"]],
        "mixed": [[2, "left", 1.0]],
    }


@pytest.mark.parametrize(
    "policy",
    [HistoryPolicy(len), MemoryPolicy(0, lambda s, m: "a", {}), MemoryPolicy(lambda s: 0, {}, {})],
)
def test_functions_are_not_saved(policy, tmp_path):
    with pytest.raises(OptionError, match="Policy made of functions cannot be saved"):
        tp.write_policy(policy, tmp_path / "p.json")


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(OptionError, match=r"saved as \.json or \.npz"):
        tp.write_policy(markov_policy(), tmp_path / "p.txt")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_policy_knows_its_model(suffix, tmp_path):
    path = tmp_path / f"p.{suffix}"
    tp.write_policy(budget_policy(), path)
    with pytest.raises(PolicyError, match="made for a model with 4 states; this model has 25"):
        tp.read_policy(path, tp.read("gridworld:5x5"))
    rows = [
        (0, "left", 1, 0.25, 1.5),
        (0, "left", 2, 0.75, 1.5),
        (0, "right", 3, 1.0, 0),
        (1, "right", 0, 0.1, 2),
        (1, "right", 3, 0.9, 2),
    ]
    rows += [(2, "left", 2, 0.25, 0.5), (2, "left", 3, 0.75, 0.5)]
    with pytest.raises(PolicyError, match="another model of the same size"):
        tp.read_policy(path, tp.SSP.from_outcomes(rows, start=1, goals=[3]))
    # Names do not matter to a table of numbers, and neither does the start.
    renamed = tp.SSP.from_outcomes(
        [(f"s{r[0]}", r[1], f"s{r[2]}", r[3] if r[0] != 2 else 0.5, r[4]) for r in rows],
        "s0",
        ["s3"],
    )
    assert tp.read_policy(path, renamed).ssp is renamed


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({"nowhere": "a"}, "state 'nowhere'.* not in the model"),
        ({0: "up"}, "takes 'up' in state 0, where the model has no such action"),
        ({1: {"right": 0.5, "left": 0.5}}, "takes 'left' in state 1"),
        ({3: "left"}, "takes 'left' in state 3"),
    ],
)
def test_names_must_be_those_of_the_model(decisions, message, tmp_path):
    tp.write_policy(MarkovPolicy(decisions), tmp_path / "p.json")
    with pytest.raises(PolicyError, match=message):
        tp.read_policy(tmp_path / "p.json", by_choice())


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("markov", {"kind": "other"}, "unknown kind of policy 'other'"),
        ("markov", {"version": 9}, "version 9 is newer"),
        ("markov", {"format": "tailpath model"}, "not a 'tailpath policy' file"),
        ("markov", {"decisions": [[1]]}, r"decisions\[0\] must be a list of 2"),
        ("markov", {"decisions": 3}, "decisions must be a list"),
        ("markov", {"decisions": [[0, "left"], [0, "left"]]}, "a second decision for"),
        ("markov", {"mixed": [[0, "left", 0.5]]}, "sum to 0.5, not 1"),
        ("markov", {"mixed": [[0, "left", -1], [0, "right", 2]]}, "-1 is not a probability"),
        ("markov", {"mixed": [[0, "left", True]]}, "True is not a probability"),
        ("atom", {"start_atom": 2}, r"start_atom is 2, outside 0\.\.1"),
        ("atom", {"start_atom": -1}, "start_atom must be a whole number"),
        ("atom", {"arrays": {"atoms": [0.5, 0.1]}}, "atoms must increase"),
        (
            "atom",
            {"arrays": {"choice": [[0, 9], [2, 2], [3, 3], [-1, -1]]}},
            "choice has a choice that state 0 does not have",
        ),
        (
            "atom",
            {"arrays": {"choice": [[0.5, 1], [2, 2], [3, 3], [-1, -1]]}},
            "holds float64, expected int32",
        ),
        ("atom", {"arrays": {"choice": [[0], [2, 2]]}}, "ragged"),
        (
            "atom",
            {"arrays": {"xi_offset": [[0, 2], [3, 10], [7, 9], [0, 0]]}},
            "xi_offset points outside xi",
        ),
        ("atom", {"arrays": {"xi": [-1.0] * 11}}, "xi must be finite and not negative"),
        ("atom", {"arrays": {"xi": "text"}}, "arrays.xi is missing or not a list"),
        ("budget steps", {"unit": "1/0"}, "unit must be a fraction"),
        ("budget steps", {"unit": -1.0}, "unit must be a fraction"),
        ("budget steps", {"table_type": "uint8"}, "unknown member 'table_type'"),
        ("budget steps", {"budget": -1}, "budget must be a whole number"),
        ("budget steps", {"budget": 2**62}, "budget must be a whole number"),
        ("budget steps", {"budget": True}, "budget must be a whole number"),
        (
            "budget steps",
            {"arrays": {"choice": [0, 2]}},
            "choice has a choice that state 0 does not have",
        ),
        (
            "budget steps",
            {"arrays": {"choice": [0, 2**40]}},
            r"numbers outside -2147483648\.\.2147483647",
        ),
        ("budget steps", {"arrays": {"choice": [0]}}, "from_budget must have the shape 1, not 2"),
        (
            "budget steps",
            {"arrays": {"from_budget": [3, 2]}},
            "from_budget must rise within each state",
        ),
        (
            "budget steps",
            {"arrays": {"from_budget": [2, 2]}},
            "from_budget must rise within each state",
        ),
        (
            "budget steps",
            {"arrays": {"from_budget": [0, 2]}},
            "from_budget must rise within each state, from 1 or more",
        ),
        ("budget steps", {"arrays": {"from_budget": [2, 2**62]}}, "from_budget .* stay below"),
        ("budget steps", {"arrays": {"from_budget": [2, 2.5]}}, "holds float64, expected int64"),
        ("budget steps", {"arrays": {"first": [0, 3, 3, 3, 3]}}, "first must rise from 0 to 2"),
        (
            "budget steps",
            {"arrays": {"first": [0, 0, 0, 0, 2]}},
            "choice has a choice that state 3 does not have",
        ),
        ("budget steps", {"arrays": {"first": []}}, "first must have the shape 5, not 0"),
        ("budget steps", {"arrays": {"level": [-1] * 7}}, "level must not be negative"),
        (
            "budget steps",
            {"arrays": {"risk_neutral": [0, 2, 3]}},
            "risk_neutral must have the shape 4, not 3",
        ),
        ("budget steps", {"arrays": {"row": [0, 1, -1, -1]}}, "unknown array 'row'"),
        ("budget steps", {"model": 5}, "model must be an object"),
    ],
)
def test_wrong_tables_are_refused(kind, change, message, tmp_path):
    policy = MarkovPolicy({}) if kind == "markov" else CASES[kind][0]()
    path = tmp_path / "p.json"
    tp.write_policy(policy, path)
    document = json.loads(path.read_text())
    arrays = {**document.get("arrays", {}), **change.get("arrays", {})}
    path.write_text(json.dumps({**document, **change, **({"arrays": arrays} if arrays else {})}))
    with pytest.raises((FormatError, PolicyError, OptionError), match=message):
        tp.read_policy(path, by_choice())


def test_units_of_all_kinds(tmp_path):
    for unit in (Fraction(1, 3), 0.125, None):
        policy = budget_policy()
        object.__setattr__(policy, "unit", unit)
        tp.write_policy(policy, tmp_path / "p.npz")
        again = tp.read_policy(tmp_path / "p.npz", by_choice()).unit
        assert again == unit and type(again) is type(unit)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_model_is_no_policy(suffix, tmp_path):
    tp.write(by_choice(), tmp_path / f"m.{suffix}")
    with pytest.raises(
        FormatError, match="this is a 'tailpath model' file, not a 'tailpath policy' file"
    ):
        tp.read_policy(tmp_path / f"m.{suffix}", by_choice())


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("member", ["mixd", "arays"])
def test_members_that_mean_nothing_are_refused(kind, member, tmp_path):
    tp.write_policy(CASES[kind][0](), tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    (tmp_path / "p.json").write_text(json.dumps({**document, member: []}))
    with pytest.raises(
        FormatError,
        match=(
            rf"p\.json: unknown member '{member}'; known are format, version, kind, model, arrays"
        ),
    ):
        tp.read_policy(tmp_path / "p.json", CASES[kind][1]())
    (tmp_path / "p.json").write_text(
        json.dumps({**document, "arrays": {**document.get("arrays", {}), member: [1]}})
    )
    with pytest.raises(FormatError, match=f"unknown array '{member}'"):
        tp.read_policy(tmp_path / "p.json", CASES[kind][1]())


def test_two_memories_for_one_step_are_refused(tmp_path):
    tp.write_policy(CASES["memory"][0](), tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    document["remember"].append([*document["remember"][0][:5], "other"])
    (tmp_path / "p.json").write_text(json.dumps(document))
    with pytest.raises(FormatError, match=r"remember\[2\]: a second memory for"):
        tp.read_policy(tmp_path / "p.json", CASES["memory"][1]())


# ---------------------------------------------------------------------- on another model

LEGS = [
    ("home", "highway", "mid", 0.75, 10),
    ("home", "highway", "mid", 0.25, 30),
    ("home", "road", "mid", 1, 20),
    ("mid", "highway", "work", 0.75, 10),
    ("mid", "highway", "work", 0.25, 40),
    ("mid", "road", "work", 1, 20),
]
ROADS = tp.SSP.from_outcomes(LEGS, "home", ["work"])
#: The same, with states, actions and outcomes in another order, one more state and another
#: probability.
TURNED = tp.SSP.from_outcomes(
    [
        ("ferry", "sail", "work", 1, 5),
        *((s, a, t, {0.75: 0.5, 0.25: 0.5}.get(p, p), c) for s, a, t, p, c in reversed(LEGS)),
    ],
    "home",
    ["work"],
)


def kinds():
    best, plan = (
        tp.solve_cvar_exact(ROADS, 0.1),
        tp.solve_cvar_quantile(ROADS, tp.log_atoms(0.05, 4)),
    )
    return {
        "budget": best.policy(0.1),
        "atom": plan.policy(0.3),
        "markov": tp.solve_expected(ROADS).policy,
    }


@pytest.mark.parametrize("kind", ["atom", "budget"])
@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_tables_fit_their_own_model_only(kind, suffix, tmp_path):
    path, dearer = tmp_path / f"p.{suffix}", [(*leg[:4], leg[4] + 1) for leg in LEGS]
    tp.write_policy(kinds()[kind], path)
    for model, message in (
        (TURNED, "made for a model with 3 states; this model has 4"),
        (tp.SSP.from_outcomes(dearer, "home", ["work"]), "another model of the same size: costs"),
    ):
        with pytest.raises(PolicyError, match=rf"p\..*{message}"):
            tp.read_policy(path, model)


def test_a_policy_of_names_fits_every_model_that_has_them(tmp_path):
    policy = kinds()["markov"]
    tp.write_policy(policy, tmp_path / "p.json")
    assert tp.read_policy(tmp_path / "p.json", TURNED).decisions == policy.decisions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": [0, 1]}, r"p\.json: first must have the shape 4, not 2"),
        ({"risk_neutral": [0, 2]}, r"p\.json: risk_neutral must have the shape 3, not 2"),
        ({"risk_neutral": [0, 99, -1]}, "risk_neutral has a choice that state 'mid' does not have"),
        ({"first": [0, 99, 99, 99]}, r"p\.json: first must rise from 0 to 2"),
        ({"choice": [0]}, r"p\.json: from_budget must have the shape 1, not 2"),
        ({"choice": [3, 1]}, "choice has a choice that state 'home' does not have"),
        ({"from_budget": [0, 4]}, r"p\.json: from_budget must rise within each state"),
    ],
)
def test_broken_tables(change, message, tmp_path):
    tp.write_policy(kinds()["budget"], tmp_path / "p.json")
    record = json.loads((tmp_path / "p.json").read_text())
    record["arrays"] |= change
    (tmp_path / "p.json").write_text(json.dumps(record))
    with pytest.raises(tp.TailpathError, match=message):
        tp.read_policy(tmp_path / "p.json", ROADS)


def test_steps_that_fall_are_refused(tmp_path):
    tp.write_policy(budget_policy(), tmp_path / "p.json")
    record = json.loads((tmp_path / "p.json").read_text())
    record["arrays"]["from_budget"] = [3, 2]
    (tmp_path / "p.json").write_text(json.dumps(record))
    with pytest.raises(FormatError, match=r"p\.json: from_budget must rise within each state"):
        tp.read_policy(tmp_path / "p.json", by_choice())


def test_a_policy_of_names_on_a_limited_model(tmp_path):
    tp.write_policy(kinds()["markov"], tmp_path / "p.json")
    limited = tp.within(ROADS, 5)
    assert (
        tp.evaluate(limited, tp.read_policy(tmp_path / "p.json", limited), 0.5).mean
        == tp.solve_expected(ROADS).cost()
    )
