"""Plain data: nouns compare by content, pickle by their fields, keep their arrays to themselves and
say in one line what they are.
"""

import copy
import dataclasses
import gc
import pickle
import subprocess
import sys
import weakref
from array import array as typed_array

import numpy as np
import pytest

import tailpath as tp
from tailpath import SSP, HistoryPolicy, MarkovPolicy, MemoryPolicy
from tailpath.errors import ModelError
from tailpath.model.checks import fingerprint, model_mark, same_numbering
from tailpath.model.records import hand_over


def small(share=0.5):
    rows = [
        ("a", "go", "b", share, 2),
        ("a", "go", "goal", 1 - share, 6),
        ("a", "jump", "goal", 1, 10),
        ("b", "go", "goal", 1, 4),
    ]
    return SSP.from_outcomes(rows, "a", ["goal"])


def nouns(ssp):
    plan = tp.solve_cvar_quantile(ssp, tp.log_atoms(0.1, 3))
    return {
        "model": ssp,
        "chain": tp.unroll(ssp, plan.policy(0.1)),
        "expected": tp.solve_expected(ssp),
        "atoms": plan,
        "markov": tp.solve_expected(ssp).policy,
        "atom": plan.policy(0.1),
        "budget": tp.solve_cvar_exact(ssp, 0.1).policy(0.1),
        "memory": MemoryPolicy("m", {("a", "m"): "go"}, {}),
    }


NOUNS = nouns(small())
KINDS = list(NOUNS)


def arrays_of(noun):
    return {
        field.name: value
        for field in dataclasses.fields(noun)
        if isinstance(value := getattr(noun, field.name), np.ndarray)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_nouns_compare_by_content_and_travel(kind):
    noun, again, other = NOUNS[kind], nouns(small())[kind], nouns(small(0.25))[kind]
    for back in (again, pickle.loads(pickle.dumps(noun)), copy.deepcopy(noun)):
        assert back == noun
        assert hash(back) == hash(noun)
        assert all(not array.flags.writeable for array in arrays_of(back).values())
    assert (other == noun) == (kind in ("memory", "markov")), (
        "other probabilities make another model, but no other names"
    )
    assert noun != "something else"


@pytest.mark.parametrize("kind", KINDS)
def test_nouns_say_what_they_are_in_one_line(kind):
    text = repr(NOUNS[kind])
    assert text.startswith(f"<{type(NOUNS[kind]).__name__} ")
    assert "array(" not in text
    assert "\n" not in text
    assert len(text) < 120


def test_functions_are_named():
    assert repr(HistoryPolicy(len)) == "<HistoryPolicy of len>"
    assert repr(MemoryPolicy(0, max, min)) == "<MemoryPolicy of max>"


def test_a_solved_policy_neither_carries_nor_holds_its_model():
    ssp = tp.domains.gridworld("14x16")
    policy = tp.solve_expected(ssp).policy
    assert len(pickle.dumps(policy)) < len(pickle.dumps(dict(policy.decisions))) + 500
    there = weakref.ref(ssp)
    del ssp
    gc.collect()
    assert there() is None
    again = tp.domains.gridworld("14x16")
    assert (
        tp.evaluate(again, policy, 0.5).mean
        == tp.evaluate(again, tp.solve_expected(again).policy, 0.5).mean
    )


def test_a_policy_does_not_change_with_the_dictionary_given():
    decisions = {"a": "go"}
    policy = MarkovPolicy(decisions)
    decisions["a"] = "jump"
    assert policy.action("a") == "go"


def test_a_model_does_not_change_with_the_arrays_given():
    fields = {
        "state_choices": np.array([0, 1, 1]),
        "choice_outcomes": np.array([0, 2]),
        "outcome_target": np.array([0, 1], dtype=np.int32),
        "outcome_probability": np.array([0.5, 0.5]),
        "outcome_cost": np.array([1.0, 2.0]),
        "choice_action": np.array([0], dtype=np.int32),
        "is_goal": np.array([False, True]),
    }
    states = ["s", "t"]
    ssp = SSP(**fields, start_index=0, states=states, actions=["go"])
    before = copy.deepcopy(ssp)
    for array in fields.values():
        array[:] = 0
    states[0] = "u"
    assert ssp == before
    assert ssp.states == ("s", "t")


def test_a_model_keeps_what_nobody_can_change():
    ssp = small()
    other = dataclasses.replace(ssp, notes=("another",))
    assert np.shares_memory(ssp.outcome_cost, other.outcome_cost)
    ours = hand_over(np.array([1.0, 2.0]))
    ssp = SSP(
        [0, 1, 1], [0, 2], [0, 1], [0.5, 0.5], ours, [0], [False, True], 0, range(2), range(1)
    )
    assert ssp.outcome_cost is ours


def locked(array):
    array.flags.writeable = False
    return array


def outside(tmp_path):
    """By name: costs as somebody may have them, and what can write into them."""
    plain = np.array([1.0, 2.0])
    mapped = np.memmap(tmp_path / "costs", dtype=np.float64, mode="w+", shape=2)
    mapped[:] = plain
    masked = np.ma.array([1.0, 2.0])
    owner = plain.copy()
    older = owner[:]
    typed, raw = typed_array("d", [1.0, 2.0]), bytearray(plain.tobytes())
    under, inside = plain.copy(), plain.copy()
    return {
        "memmap": (mapped, mapped),
        "masked": (masked, masked.data),
        "another subclass": (locked(inside.view(np.recarray)), inside),
        "array.array": (typed, typed),
        "memoryview": (memoryview(raw).cast("d"), np.frombuffer(raw, dtype=np.float64)),
        "read-only view": (locked(under[:]), under),
        "owner with an older view": (locked(owner), older),
    }


@pytest.mark.parametrize(
    "name",
    [
        "memmap",
        "masked",
        "another subclass",
        "array.array",
        "memoryview",
        "read-only view",
        "owner with an older view",
    ],
)
def test_a_model_shares_no_memory_that_others_can_write(name, tmp_path):
    costs, writer = outside(tmp_path)[name]
    ssp = SSP(
        [0, 1, 1], [0, 2], [0, 1], [0.5, 0.5], costs, [0], [False, True], 0, range(2), range(1)
    )
    writer[0] = -7.0
    assert ssp.outcome_cost.tolist() == [1.0, 2.0] and type(ssp.outcome_cost) is np.ndarray


CHANGED = """
import numpy as np
import tailpath as tp

n = 3_000
target = np.arange(1, n + 1, dtype=np.int32)
shown = target[:]
shown.flags.writeable = False
first = np.arange(n + 1)
ssp = tp.SSP(
    np.append(first, n), first, shown, np.ones(n), np.ones(n), np.zeros(n, dtype=np.int32),
    first == n, 0, range(n + 1), range(1),
)
target[:] = 2**30
print(tp.evaluate(ssp, tp.MarkovPolicy({s: 0 for s in range(n)}), 0.1).mean)
"""


def test_a_later_change_crashes_no_kernel():
    """Targets far outside of the model: compiled loops do not look, and the process ended with a
    segmentation fault.
    """
    done = subprocess.run(
        [sys.executable, "-c", CHANGED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "3000.0\n")


def test_masked_entries_are_refused():
    costs = np.ma.array([1.0, 2.0], mask=[True, False])
    with pytest.raises(ModelError, match="outcome_cost has masked entries"):
        SSP([0, 1, 1], [0, 2], [0, 1], [0.5, 0.5], costs, [0], [False, True], 0, range(2), range(1))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("states", 5, "states must be a sequence of names, not 5"),
        ("actions", None, "actions must be a sequence of names, not None"),
        ("state_choices", [None], "state_choices must be an array of numbers"),
        ("outcome_cost", [10**400, 1], "outcome_cost must be an array of numbers"),
        ("geometry", "map", "the geometry must be"),
    ],
)
def test_fields_that_are_something_else_are_refused(field, value, message):
    names = [one.name for one in dataclasses.fields(SSP)][:10]
    values = (
        [0, 1, 1],
        [0, 2],
        [0, 1],
        [0.5, 0.5],
        [1, 2],
        [0],
        [False, True],
        0,
        range(2),
        range(1),
    )
    with pytest.raises(ModelError, match=message):
        SSP(**{**dict(zip(names, values)), field: value})


def test_the_same_model_is_recognised():
    ssp, again, other = small(), small(), small(0.25)
    assert fingerprint(ssp) == fingerprint(again) != fingerprint(other)
    assert model_mark(ssp) == model_mark(again) != model_mark(other)
    assert same_numbering(ssp, other), "probabilities do not number anything"
