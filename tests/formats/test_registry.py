"""One table finds the format; a reader takes exactly the options it names; others may
add readers.
"""

import importlib.metadata
import inspect
import pathlib
import subprocess
import sys

import pytest

import tailpath as tp
from tailpath.domains.paper import MAPS
from tailpath.domains.register import REGISTER as DOMAINS
from tailpath.errors import FormatError, OptionError, TailpathError
from tailpath.formats.registry import FORMATS, REGISTER, by_suffix, options
from tests.formats.models import by_choice, differences, outcomes, samples


def test_schemes_are_the_domains():
    assert differences(tp.read("gridworld:14x16"), tp.domains.gridworld("14x16")) == []
    assert differences(tp.read("river:16x6"), tp.domains.river(rows=16, columns=6)) == []
    assert (
        differences(tp.read("textbook:geometric"), tp.domains.textbook.PROBLEMS["geometric"]())
        == []
    )


def test_a_gridworld_map_may_be_a_file(tmp_path):
    (tmp_path / "map.txt").write_text(MAPS["5x5"])
    assert differences(tp.read(f"gridworld:{tmp_path}/map.txt"), tp.read("gridworld:5x5")) == []


def test_a_refusal_of_a_map_names_its_file(tmp_path):
    (tmp_path / "map.txt").write_text("S.\n.X\n")
    with pytest.raises(FormatError, match=r"map\.txt: map .* holds 'X'"):
        tp.read(f"gridworld:{tmp_path}/map.txt")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gridworld:7x7", "no bundled map '7x7'"),
        ("gridworld:nowhere.txt", r"^nowhere\.txt: no such file or folder$"),
        ("gridworld:nowhere", "neither a bundled map such as 14x16 nor a file"),
        ("river:30", "write the size as ROWSxCOLUMNS"),
        ("river:-3x4", "write the size as ROWSxCOLUMNS"),
        ("textbook:nothing", "there are geometric"),
        ("model.xyz", r"unknown format; known suffixes are \.json"),
        ("model", "known schemes are gym:"),
        ("strange:model", "unknown format"),
        ("river", r"unknown format; did you mean 'river:'\?$"),
        ("gridwrld:8x9", r"unknown format; did you mean 'gridworld:'\?$"),
        ("model.jsn", r"unknown format; did you mean '\.json'\?$"),
        ("", "unknown format"),
        (7, "cannot read an int: give a path, a scheme string, a table, an environment"),
        ([("a", "go", "b", 1, 1)], "dictionary P; SSP.from_outcomes takes rows"),
    ],
)
def test_unknown_sources_are_refused(source, message):
    with pytest.raises(TailpathError, match=message):
        tp.read(source)


def test_a_drive_letter_is_no_scheme():
    with pytest.raises(FormatError, match="no such file"):
        tp.read("C:\\models\\a.json")


def test_the_longest_suffix_decides_whatever_its_case():
    assert by_suffix("a.b/M.DRN.GZ").title == "Storm DRN"
    assert by_suffix("x.drn.json").title == "tailpath JSON"


OPTIONS = {
    "goal": "g",
    "cost": "c",
    "step_cost": 1.0,
    "cost_of": {1: 2},
    "negate_reward": True,
    "constants": {"N": 1},
    "start": "s",
    "goals": ["g"],
    "one_based": True,
    "columns": {"cost": "c"},
}
LABELLED = {"goal", "cost", "start", "step_cost", "cost_of", "negate_reward"}
TAKES = {
    "m.json": set(),
    "m.npz": set(),
    "river:5x5": set(),
    "textbook:lottery": set(),
    "gridworld:5x5": set(),
    "m.drn": LABELLED,
    "m.tra": LABELLED,
    "m.umb": LABELLED,
    "m.pm": LABELLED | {"constants"},
    "m.jani": LABELLED | {"constants"},
    "m.csv": {
        "step_cost",
        "cost_of",
        "negate_reward",
        "start",
        "goals",
        "one_based",
        "cost",
        "columns",
    },
    "gym:CliffWalking-v1": {"step_cost", "cost_of", "negate_reward", "goal", "start", "constants"},
}


@pytest.mark.parametrize("source", TAKES)
def test_options_without_use_are_refused(source):
    title = {"gridworld:5x5": "gridworld:", "river:5x5": "river:"}.get(source)
    for name in OPTIONS.keys() - TAKES[source]:
        with pytest.raises(OptionError, match=f"the option {name} does not apply to {title or ''}"):
            tp.read(source, **{name: OPTIONS[name]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step_cost": "x"}, "step_cost must be a number, not 'x'"),
        ({"step_cost": float("nan")}, "step_cost must be a number"),
        ({"cost_of": {1: "x"}}, "cost_of must be a number, not 'x'"),
        ({"cost_of": {"a": 2}}, "a reward in cost_of must be a number, not 'a'"),
        ({"cost_of": [1]}, "cost_of must be a mapping"),
        (
            {"cost_of": {99: 2}},
            "cost_of has the reward 99, which no outcome has; .* 0, 0.5, 1.5, 2",
        ),
        ({"goal": 3}, "goal must be a string"),
    ],
)
def test_options_out_of_range_are_refused(options, message, tmp_path):
    tp.write(by_choice(), tmp_path / "m.drn")
    with pytest.raises(OptionError, match=message):
        tp.read(tmp_path / "m.drn", **options)


def test_what_is_only_read_says_what_to_write():
    with pytest.raises(OptionError, match=r"PRISM language .* write one of \.json"):
        tp.write(by_choice(), "m.prism")


def read_chain(source, *, step_cost=1.0):
    """A reader as a third party would write it: `m.chain3` or `chain3:LENGTH`."""
    length = int(source.partition(".")[0][-1])
    return tp.SSP.from_outcomes(
        [(s, "on", s + 1, 1, step_cost) for s in range(length)], 0, [length]
    )


def test_third_parties_add_readers(monkeypatch):
    point = importlib.metadata.EntryPoint(
        "chain3", "tests.formats.test_registry:read_chain", "tailpath.readers"
    )
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: [point] if group == point.group else []
    )
    assert tp.read("chain3:4").n_states == 5
    assert tp.read("m2.chain3", step_cost=3).outcome_cost.tolist() == [3, 3]
    with pytest.raises(
        OptionError, match="the option goal does not apply to chain3, which takes step_cost"
    ):
        tp.read("chain3:4", goal="x")
    with pytest.raises(OptionError, match="chain3 can be read"):
        tp.write(by_choice(), "m.chain3")


def write_length(ssp, path):
    pathlib.Path(path).write_text(f"{ssp.n_states - 1}")


def read_length(path):
    return read_chain(pathlib.Path(path).read_text())


LENGTH = tp.formats.Format("a length", read_length, write_length, suffixes=(".length",))


def test_third_parties_add_writers(monkeypatch, tmp_path):
    point = importlib.metadata.EntryPoint(
        "length", "tests.formats.test_registry:LENGTH", "tailpath.readers"
    )
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: [point] if group == point.group else []
    )
    tp.write(read_chain("4"), tmp_path / "m.length")
    assert tp.read(tmp_path / "m.length") == read_chain("4")
    with pytest.raises(OptionError, match="the option goal does not apply to a length"):
        tp.read(tmp_path / "m.length", goal="x")


def test_a_program_adds_a_format(monkeypatch, tmp_path):
    monkeypatch.setattr(REGISTER, "added", {})
    with pytest.raises(OptionError, match="unknown format"):
        tp.write(read_chain("4"), tmp_path / "m.length")
    tp.formats.register(LENGTH)
    tp.write(read_chain("4"), tmp_path / "m.length")
    assert tp.read(tmp_path / "m.length") == read_chain("4")


@pytest.mark.parametrize(
    ("suffixes", "scheme", "name"),
    [((".csv",), "", ".csv"), ((".mine", ".drn.gz"), "", ".drn.gz"), ((), "gym", "gym:")],
)
def test_names_of_the_package_are_taken(suffixes, scheme, name, monkeypatch):
    monkeypatch.setattr(REGISTER, "added", {})
    with pytest.raises(OptionError, match=f"a format named '{name}' is already registered"):
        tp.formats.register(tp.formats.Format("mine", read_chain, suffixes=suffixes, scheme=scheme))
    assert REGISTER.added == {}


def test_schemes_of_formats_and_domains_are_one_kind_of_names(monkeypatch):
    monkeypatch.setattr(REGISTER, "added", {})
    monkeypatch.setattr(DOMAINS, "taken", set(DOMAINS.taken))
    with pytest.raises(OptionError, match="a domain named 'river' is already registered"):
        tp.formats.register(tp.formats.Format("mine", read_chain, scheme="river"))
    tp.formats.register(tp.formats.Format("mine", read_chain, scheme="mine"))
    assert tp.read("mine:4") == read_chain("4")
    with pytest.raises(OptionError, match="a domain named 'mine' is already registered"):
        tp.domains.register(tp.domains.Domain("mine", read_chain, ""))


def test_suffixes_of_two_dots_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(REGISTER, "added", {})
    tp.formats.register(
        tp.formats.Format("mine", lambda path: read_chain("4"), suffixes=(".a.gz",))
    )
    assert tp.read("any.a.gz") == read_chain("4")


def test_a_format_without_a_name_is_refused():
    with pytest.raises(OptionError, match="neither a suffix nor a scheme"):
        tp.formats.register(tp.formats.Format("mine", read_chain))
    with pytest.raises(OptionError, match="begin with a dot"):
        tp.formats.Format("mine", read_chain, suffixes=("mine",))
    for names in ({"suffixes": (".CSV",)}, {"suffixes": (".mine", ".Mine")}, {"scheme": "Mine"}):
        with pytest.raises(OptionError, match=r"'\.?mine'|'\.csv'"):  # paths are in small letters
            tp.formats.Format("mine", read_chain, **names)


def test_an_entry_point_that_is_no_format(monkeypatch):
    point = importlib.metadata.EntryPoint(
        "odd", "tests.formats.test_registry:ODD", "tailpath.readers"
    )
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: [point] if group == point.group else []
    )
    with pytest.raises(
        OptionError,
        match=r":ODD of the group tailpath\.readers is not a tailpath\.formats\.Format",
    ):
        tp.read("odd:x")


ODD = 3


def test_a_third_party_that_cannot_be_loaded(monkeypatch):
    point = importlib.metadata.EntryPoint("lost", "tests.formats.nowhere:read", "tailpath.readers")
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: [point] if group == point.group else []
    )
    with pytest.raises(
        OptionError,
        match=(
            r"the format tests\.formats\.nowhere:read of the group tailpath.readers cannot be"
            r" loaded"
        ),
    ):
        tp.read("lost:x")


@pytest.mark.parametrize("name", ["by choice", "gridworld", "river", "range"])
def test_a_model_goes_through_all_formats_in_a_row(name, tmp_path):
    model = samples()[name]
    for suffix in ("json", "drn", "npz", "umb", "tra", "drn.gz", "json"):
        tp.write(model, tmp_path / f"m.{suffix}")
        model = tp.read(tmp_path / f"m.{suffix}")
    assert differences(model, samples()[name]) == []
    tp.write(model, tmp_path / "m.csv")
    assert outcomes(tp.read(tmp_path / "m.csv")) == outcomes(model)


def test_read_takes_the_options_that_are_declared():
    parameters = [
        each
        for each in inspect.signature(tp.read).parameters.values()
        if each.kind is not each.VAR_KEYWORD
    ]
    assert [parameter.name for parameter in parameters][1:] == [
        *(option.name for option in options()),
        "geometry",
        "progress",
    ]
    assert {name for entry in FORMATS for name in entry.options} == {
        option.name for option in options()
    }


def test_readers_are_loaded_when_used(tmp_path):
    tp.write(by_choice(), tmp_path / "m.json")
    code = f"""
import sys, tailpath
tailpath.read({str(tmp_path / "m.json")!r})
heavy = {{"numba", "scipy", "stormpy", "gymnasium", "tarfile", "csv", "lzma"}} & set(sys.modules)
heavy |= {{"matplotlib"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_row_of_the_table_can_be_loaded():
    for entry in FORMATS:
        for place in filter(None, (entry.reader, entry.writer)):
            module, _, function = place.partition(":")
            assert callable(getattr(importlib.import_module(module), function))
