"""A part of the ledger, in seconds; `make ledger` compares all of it."""

import json

import pytest

import tailpath as tp
from tests.ledger.compare import KNOWN_WRONG, STILL, compare, corrected, fault
from tests.ledger.models import MODELS
from tests.ledger.record import EMPTY, read_book
from tests.ledger.verbs import Case, answer

BOOK = read_book()
PART = ("gridworld:5x5", "textbook:counter-example", "commute", "lottery C", "free 3", "unitless 0")
PART += ("missed 0", "lost 0", "extreme 0", "stubborn 0", "fine 0", "small way", "grid 100")

#: Two ways that cost the same, and one that is dearer.
TWINS = [("s", "a", "goal", 1, 1), ("s", "b", "goal", 1, 1), ("s", "c", "goal", 1, 2)]


@pytest.mark.parametrize("name", PART)
def test_nothing_is_lost(name):
    assert [fault for fault in compare(name, BOOK[name]) if STILL not in fault] == []


def test_the_book_is_about_all_models():
    assert BOOK.keys() == MODELS.keys()


def known(wrong):
    """The entries of the book that are known to be wrong."""
    asked = [entry for entry in BOOK[wrong.model] if entry[0] == wrong.verb]
    return [entry for entry in asked if json.dumps(entry[1]).startswith(wrong.arguments)]


@pytest.mark.parametrize("wrong", KNOWN_WRONG, ids=lambda wrong: f"{wrong.model} {wrong.verb}")
def test_what_is_known_to_be_wrong_is_in_the_book(wrong):
    assert known(wrong)
    for verb, arguments, old in known(wrong):
        assert corrected(wrong.model, BOOK[wrong.model], verb, arguments, old) != old


@pytest.mark.parametrize("wrong", KNOWN_WRONG, ids=lambda wrong: f"{wrong.model} {wrong.verb}")
def test_what_was_wrong_is_right(wrong):
    general = [e for e in BOOK[wrong.model] if e[0] == "limited" and EMPTY in e[1][1]]
    assert compare(wrong.model, [*known(wrong), *general]) == []


def entry(verb, policy):
    """The entry of the 5 x 5 grid that asks a verb about a policy."""
    found = (e for e in BOOK["gridworld:5x5"] if e[0] == verb and e[1][:1] == [policy])
    return next(found)


def tampered(verb, policy, **changes):
    """What is said where the book had other numbers."""
    _, arguments, old = entry(verb, policy)
    return compare("gridworld:5x5", [(verb, arguments, {**old, **changes})])


def scaled(numbers, factor):
    return [(float.fromhex(number) * factor).hex() for number in numbers]


def test_a_number_that_moved_is_found():
    mean = entry("evaluate", "mixed")[2]["mean"]
    assert tampered("evaluate", "mixed") == []
    (fault,) = tampered("evaluate", "mixed", mean=scaled(mean, 1 + 1e-9))
    assert "mean is " in fault and "not in [" in fault


def test_bounds_that_got_wider_are_found():
    """Four times as wide is allowed, and so is a share of 1e-12."""

    def around(width):
        return [end.hex() for end in (8.0, 8.0 - width, 8.0 + width)]

    assert fault(around(1e-10), around(3.9e-10), 0.0) is None
    assert " apart, before " in fault(around(1e-10), around(4.1e-10), 0.0)
    assert fault(around(1e-15), around(3.9e-12), 0.0) is None
    assert " apart, before " in fault(around(1e-15), around(4.1e-12), 0.0)


def test_a_number_without_bounds_that_moved_is_found():
    total = entry("simulate", "mixed")[2]["sum"]
    assert tampered("simulate", "mixed", sum=scaled(total, 1 + 1e-12)) == []
    (fault,) = tampered("simulate", "mixed", sum=scaled(total, 1 + 1e-10))
    assert "sum is " in fault


def test_a_refusal_that_was_none_is_found_and_so_is_another_engine():
    (fault,) = tampered("evaluate", "mixed", engine="queue")
    assert fault.endswith("engine is lattice, not queue")
    _, arguments, _ = entry("evaluate", "mixed")
    faults = compare("gridworld:5x5", [("evaluate", arguments, {"refused": "PolicyError"})])
    assert any(fault.endswith("refused is None, not PolicyError") for fault in faults)


@pytest.mark.parametrize("policy", ["neutral", "exact 0.1"])
def test_a_decision_that_is_worse_is_found_and_one_that_ties_is_not(policy):
    case = Case(tp.SSP.from_outcomes(TWINS, "s", ["goal"]))
    arguments = [policy, [[0, [case.policy(policy).start("s")]]]]
    assert answer(case, "decide", arguments) == {"actions": "a", "taken": "0"}
    for action, faults in (("a", 0), ("b", 0), ("c", 1)):
        old = {"actions": action, "taken": "0"}
        assert len(compare("twins", [("decide", arguments, old)], case)) == faults


def test_a_tie_excuses_what_the_policy_is_not_the_best_in():
    case = Case(tp.SSP.from_outcomes(TWINS, "s", ["goal"]))
    decisions = ("decide", ["neutral", [[0, [None]]]], {"actions": "b", "taken": "0"})
    evaluation = ["neutral", 0.1, {}]
    old = answer(case, "evaluate", evaluation)
    moved = {**old, "cvar 0.1": scaled(old["cvar 0.1"], 2), "mean": scaled(old["mean"], 2)}
    (fault,) = compare("twins", [("evaluate", evaluation, moved), decisions], case)
    assert "mean is " in fault
