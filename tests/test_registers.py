"""Where a package is not there, one line says what to install."""

import pytest

import tailpath as tp
from tailpath import registers
from tailpath.cli import main

CASES = (
    "comes with the package tailpath-cases, which is not installed: pip install ./cases in a"
    " checkout of tailpath"
)


@pytest.fixture
def without(monkeypatch):
    """No package is found."""
    monkeypatch.setattr(registers, "find_spec", lambda name: None)
    monkeypatch.setattr(registers, "installed", lambda group: {})


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("sepsis:", f"sepsis: {CASES}"),
        ("sepsis:100", f"sepsis: {CASES}"),
        ("flights:LAX@12", f"flights: {CASES}"),
        ("ctp:8x8", f"ctp: {CASES}"),
        ("rddl:Navigation_MDP_ippc2011/1", f"rddl: {CASES}"),
    ],
)
def test_one_line_says_what_to_install(without, capsys, source, line):
    with pytest.raises(tp.TailpathError) as caught:
        tp.read(source)
    assert str(caught.value) == line
    assert main(["info", source]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err.count("\n") == 1 and line in said.err


def test_so_does_solve_without_listing_the_states(without, capsys):
    assert main(["solve", "rddl:CrossingTraffic_MDP_ippc2011/5", "--alpha", "0.5", "--lazy"]) == 2
    assert f"rddl: {CASES}" in capsys.readouterr().err


def test_what_is_there_is_found():
    assert (registers.folder_of("numpy", "none") / "__init__.py").exists()
    assert registers.module_of("json.decoder", "none").JSONDecoder


@pytest.mark.parametrize("wrong", [None, 3, "river"])
@pytest.mark.parametrize("place", ["domains", "methods", "formats"])
def test_what_cannot_be_registered_is_answered_by_a_sentence(place, wrong):
    noun = {"domains": "a Domain", "methods": "a Method", "formats": "a Format"}[place]
    with pytest.raises(tp.TailpathError, match=f"must be {noun}, not {wrong!r}"):
        getattr(tp, place).register(wrong)
