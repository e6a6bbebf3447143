"""`tailpath solve --lazy`: the bracket, and what goes with it."""

import pytest

import tailpath as tp
from tests.cli.running import refusal, run


def test_the_bracket_is_printed(capsys):
    result = run(capsys, "solve", "ctp:5x5", "--alpha", 0.1, "--lazy", "--gap", "1e-4", "--json")
    assert result.code == 0, result
    low, high = result.json["bounds"]
    found = tp.solve_cvar_lazy(tp.formats.read_implicit("ctp:5x5"), 0.1, gap=1e-4)
    assert (low, high) == found.bounds()
    assert result.json["expanded"] == found.expanded
    text = run(capsys, "solve", "ctp:5x5", "--alpha", 0.1, "--lazy").out
    assert "at least" in text and "least, surely: checked where states were expanded" in text


def test_any_model_is_taken_and_may_be_given_up(capsys):
    arguments = ("solve", "gridworld:5x5", "--alpha", 0.1, "--lazy", "--json")
    exact = tp.solve_cvar_exact(tp.read("gridworld:5x5"), 0.1).cvar(0.1)
    assert run(capsys, *arguments).json["bounds"] == pytest.approx([exact, exact], abs=2e-3)
    low, high = run(capsys, *arguments, "--give-up", 10, "--max-states", 3).json["bounds"]
    assert low <= 10.0 <= high * (1 + 1e-9)


def test_what_does_not_go_with_it_is_refused(capsys):
    assert "--lazy needs --alpha" in refusal(capsys, "solve", "ctp:5x5", "--lazy")
    lazy = ("solve", "ctp:5x5", "--alpha", 0.1, "--lazy")
    assert "--delta cannot be combined with --lazy" in refusal(capsys, *lazy, "--delta", 1)
    assert "--gap needs --lazy" in refusal(capsys, "solve", "river:5x5", "--alpha", 1, "--gap", 1)


@pytest.mark.needs("gymnasium", extra="gym")
def test_constants_are_those_of_the_model(capsys):
    arguments = ("--alpha", 0.1, "--lazy", "--const", "is_slippery=false", "--json")
    low, high = run(capsys, "solve", "gym:FrozenLake-v1", *arguments).json["bounds"]
    assert low <= 6 <= high <= low + 1e-9
    said = refusal(capsys, "solve", "ctp:5x5", *arguments)
    assert "the option constants does not apply to ctp:, which takes no options" in said
