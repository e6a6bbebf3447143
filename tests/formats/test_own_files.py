"""Our own `.json` and `.npz`: lossless, versioned, and safe to open."""

import io
import json
import os
import zipfile
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import tailpath as tp
from tailpath.formats.archives import write_archive
from tailpath.model.ssp import SSP
from tests.formats.models import awkward, by_choice, differences, samples
from tests.reference import to_ssp
from tests.strategies import any_models

SUFFIXES = ["json", "npz"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", samples())
def test_a_model_survives_the_trip(name, suffix, tmp_path):
    model = samples()[name]
    tp.write(model, tmp_path / f"m.{suffix}")
    assert differences(model, tp.read(tmp_path / f"m.{suffix}")) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(model=any_models())
def test_any_model_survives_the_trip(suffix, model, tmp_path_factory):
    path = tmp_path_factory.mktemp("trip") / f"m.{suffix}"
    ssp = to_ssp(model)
    tp.write(ssp, path)
    assert differences(ssp, tp.read(path)) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_parallel_equal_outcomes_and_unused_actions_survive(suffix, tmp_path):
    arrays = {
        "state_choices": [0, 1, 1],
        "choice_outcomes": [0, 2],
        "outcome_target": [1, 1],
        "outcome_probability": [0.5, 0.5],
    }
    model = SSP(
        **{name: np.array(value) for name, value in arrays.items()},
        outcome_cost=np.array([1.0, 1.0]),
        choice_action=np.array([2_000_000_000]),
        is_goal=np.array([False, True]),
        start_index=0,
        states=range(2),
        actions=range(2_000_000_001),
    )
    tp.write(model, tmp_path / f"m.{suffix}")
    again = tp.read(tmp_path / f"m.{suffix}")
    assert (
        again.n_outcomes == 2
        and again.actions == model.actions
        and again.choice_name(0) == 2_000_000_000
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_would_come_back_changed_are_refused(suffix, tmp_path):
    model = SSP.from_outcomes([(frozenset([1]), "a", "g", 1, 1)], frozenset([1]), ["g"])
    with pytest.raises(tp.TailpathError, match=r"the name frozenset\(\{1\}\) cannot be written"):
        tp.write(model, tmp_path / f"m.{suffix}")
    assert os.listdir(tmp_path) == []


def test_numpy_names_become_plain_ones(tmp_path):
    model = SSP.from_outcomes(
        [(np.int64(4), np.str_("a"), np.int64(5), 1, 1)], np.int64(4), [np.int64(5)]
    )
    tp.write(model, tmp_path / "m.json")
    assert [type(name) for name in tp.read(tmp_path / "m.json").states] == [int, int]


def test_a_file_written_by_hand(tmp_path):
    path = tmp_path / "commute.json"
    path.write_text(
        """{"format": "tailpath model", "version": 1, "start": "home", "goals": ["work"],
            "outcomes": [
            ["home", "drive", "work", "2/3", "1/3"], ["home", "drive", "home", "1/3", 0.5],
            ["home", "walk", "work", 1, 30],
            ["work", "stay", "work", 1, 0], ["home", "walk", "home", 0, 7]]}"""
    )
    ssp = tp.read(path)
    assert ssp.states == ("home", "work") and ssp.actions == ("drive", "walk", "stay")
    assert ssp.cost_unit == Fraction(1, 6)
    assert ssp.outcome_probability.tolist() == [2 / 3, 1 / 3, 1.0]


def test_an_exact_unit_must_fit_the_costs(tmp_path):
    tp.write(by_choice(), tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    for unit, message in (
        ("1/3", "not a whole multiple of 1/3"),
        ("1/100000000", "too fine"),
        ("0/1", "must be a positive fraction"),
    ):
        (tmp_path / "n.json").write_text(
            text.replace('"cost_unit": "1/2"', f'"cost_unit": "{unit}"')
        )
        with pytest.raises(tp.TailpathError, match=message):
            tp.read(tmp_path / "n.json")


GOOD = {
    "format": "tailpath model",
    "version": 1,
    "start": 0,
    "goals": [1],
    "outcomes": [[0, "a", 1, 1.0, 2.0]],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": "tailpath policy"},
            (
                "this is a 'tailpath policy' file, not a 'tailpath model' file; read it with"
                " read_policy"
            ),
        ),
        ({"format": 3}, "not a tailpath file"),
        ({"version": 2}, "version 2 is newer than this program, which reads version 1"),
        ({"version": "1"}, "version must be a positive whole number"),
        ({"extra": 1}, "unknown member 'extra'"),
        ({"start": 7}, "state 7 has no choices and is not a goal"),
        ({"goals": []}, "no goals"),
        ({"goals": 1}, "goals must be a list"),
        ({"outcomes": [[0, "a", 1, 1.0]]}, r"outcomes\[0\] is \[0, 'a', 1, 1.0\]; expected"),
        (
            {"outcomes": [[0, "a", 1, True, 2.0]]},
            r"\[0\]: probability True is not a number",
        ),
        ({"outcomes": [[0, "a", 1, 1.0, None]]}, r"outcomes\[0\]: cost None is not a number"),
        ({"outcomes": [[0, "a", 1, 1.0, "0x10"]]}, "'0x10' is not a finite number"),
        (
            {"outcomes": [[0, "a", 1, 0.5, 2]]},
            "the probabilities of state 0, action 'a' sum to 0.5",
        ),
        ({"outcomes": [[0, "a", 1, 0.0, 2]]}, "state 0, action 'a' has no outcomes"),
        ({"outcomes": [[0, "a", {}, 1, 2]]}, "is not a name"),
        (
            {"outcomes": [[0, "a", 1, 1, 2], [1, "a", 0, 1, 2]]},
            r"outcomes\[1\]: a goal must be absorbing and free",
        ),
        ({"outcomes": [[0, "a", 1, 10**400, 2]]}, "is not a number"),
        ({"states": [0, 1, 0]}, "two states are named 0"),
        ({"states": ["x"]}, "0 is not among the states"),
        ({"states": 10**9}, "states is 1000000000, but there are fewer outcomes and goals"),
        ({"states": -1}, "states must be a list of names or their number"),
        ({"cost_unit": "1e5"}, "must be a positive fraction"),
        ({"geometry": {"rows": 1}}, "geometry.columns must be a positive whole number, not None"),
        (
            {
                "geometry": {
                    "rows": 1,
                    "columns": 1,
                    "row": [0, 5],
                    "column": [0, 0],
                    "kind": ["a", "b"],
                }
            },
            r"geometry.row\[1\] is 5, outside",
        ),
        ({"notes": [1]}, "notes must be a list of strings"),
    ],
)
def test_what_is_wrong_is_said(change, message, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(tp.TailpathError, match=message) as caught:
        tp.read(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"  \n", "the file is empty"),
        (b'{"format"\n:\n}', ":3: Expecting value"),
        (b"\xff\xfe{}", ":1: this is not UTF-8 text"),
        (b'{"a":\n\n"\xc3\x28"}', ":3: this is not UTF-8 text"),
        (b'{"a":\n"\0"}', ":2: a NUL byte"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"format": "x", "format": "y"}', "the key 'format' is given twice"),
        (b'{"start": NaN}', "NaN is not a number"),
        (b'{"start": -Infinity}', "-Infinity is not a number"),
        (b'{"start": 1e999}', "the number 1e999 is too large"),
        (b'{"start": ' + b"9" * 5000 + b"}", "Exceeds the limit"),
        (b"PK\x03\x04", "not a tailpath file|Expecting value"),
        (b"[1, 2]", "not a tailpath file"),
    ],
)
def test_broken_json_is_refused(data, message, tmp_path):
    path = tmp_path / "m.json"
    path.write_bytes(data)
    with pytest.raises(tp.TailpathError, match=message) as caught:
        tp.read(path)
    assert str(caught.value).startswith(str(path))


def test_a_byte_order_mark_and_foreign_line_ends_do_no_harm(tmp_path):
    tp.write(awkward(), tmp_path / "m.json")
    text = (tmp_path / "m.json").read_bytes()
    (tmp_path / "m.json").write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    assert differences(awkward(), tp.read(tmp_path / "m.json")) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="files have no pipes here")
def test_places_that_are_no_files(tmp_path):
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name, message in (
        ("none.json", "no such file"),
        ("folder.json", "a folder"),
        ("pipe.json", "a pipe"),
        ("nul\0.json", "null"),
    ):
        with pytest.raises(tp.TailpathError, match=message):
            tp.read(f"{tmp_path}/{name}")
    with pytest.raises(tp.TailpathError, match="no such file or folder"):
        tp.write(by_choice(), tmp_path / "nowhere" / "m.json")
    with pytest.raises(tp.TailpathError, match="folder"):
        tp.write(by_choice(), tmp_path / "folder.json")
    assert sorted(os.listdir(tmp_path)) == ["folder.json", "pipe.json"]


# ---------------------------------------------------------------------- npz


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.fixture
def members(tmp_path):
    tp.write(by_choice(), tmp_path / "m.npz")
    return members_of(tmp_path / "m.npz")


def test_an_archive_holds_its_members_and_no_others(tmp_path):
    """With numpy before 2.2 `savez(..., allow_pickle=False)` adds a member of that name."""
    write_archive(str(tmp_path / "a.npz"), {"file": "text", "numbers": [1, 2]})
    assert set(members_of(tmp_path / "a.npz")) == {"file.npy", "numbers.npy"}
    with pytest.raises(ValueError, match="allow_pickle=False"):
        write_archive(str(tmp_path / "a.npz"), {"objects": np.array([{}], dtype=object)})


def test_numpy_reads_our_arrays_and_we_read_packed_ones(tmp_path, members):
    with np.load(tmp_path / "m.npz", allow_pickle=False) as arrays:
        assert arrays["outcome_cost"].tolist() == by_choice().outcome_cost.tolist()
        np.savez_compressed(tmp_path / "packed.npz", **arrays)
    assert differences(by_choice(), tp.read(tmp_path / "packed.npz")) == []


def huge_header():
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"12345678"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("outcome_cost", huge_header(), "declares the shape .* but holds 8 bytes"),
        ("outcome_cost", npy(np.array([None, 1])), "not an array of numbers"),
        ("outcome_cost", npy(np.zeros((7, 1))), "has 2 axes, expected 1"),
        ("outcome_cost", npy(np.zeros(7, dtype=np.int64)), "holds int64, expected float64"),
        ("outcome_cost", npy(np.zeros(3)), "differ in length"),
        ("outcome_cost", npy(np.full(7, np.nan)), "costs nan"),
        ("outcome_probability", npy(np.full(7, -0.5)), "has probability -0.5"),
        ("outcome_target", npy(np.full(7, 2**40)), "has numbers outside"),
        ("outcome_target", npy(np.full(7, 99)), "leads to state index 99"),
        ("state_choices", npy(np.zeros(0, dtype=np.int64)), "at least one entry"),
        ("is_goal", npy(np.full(4, 7, dtype=np.uint8).view(np.bool_)), "neither 0 nor 1"),
        ("header", npy(np.frombuffer(b"\xff\xfe", dtype=np.uint8)), "is not UTF-8"),
        ("header", npy(np.frombuffer(b"[" * 100_000, dtype=np.uint8)), "nested too deeply"),
        ("header", None, "member header is missing"),
        ("is_goal", b"", "not an array of numbers"),
    ],
)
def test_broken_members_are_named(name, data, message, tmp_path, members):
    members = {key: value for key, value in members.items() if key != f"{name}.npy"}
    if data is not None:
        members[f"{name}.npy"] = data
    pack(tmp_path / "m.npz", members)
    with pytest.raises(tp.TailpathError, match=message):
        tp.read(tmp_path / "m.npz")


def test_no_pickle_is_ever_opened(tmp_path, members):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "pwned"),))

    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    pack(tmp_path / "m.npz", {**members, "outcome_cost.npy": buffer.getvalue()})
    with pytest.raises(tp.TailpathError, match="not an array of numbers"):
        tp.read(tmp_path / "m.npz")
    assert not (tmp_path / "pwned").exists()


def test_a_zip_bomb_stays_packed(tmp_path, members):
    pack(
        tmp_path / "m.npz", {**members, "outcome_cost.npy": bytes(50 * 2**20)}, zipfile.ZIP_DEFLATED
    )
    with pytest.raises(tp.TailpathError, match=r"unpack to \d+ bytes, more than"):
        tp.read(tmp_path / "m.npz")


def test_unusual_archives_are_refused(tmp_path, members):
    path = tmp_path / "m.npz"
    pack(path, members, zipfile.ZIP_BZIP2)
    with pytest.raises(tp.TailpathError, match=r"member .* compression; use numpy\.savez"):
        tp.read(path)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("header.npy", b"")
    with pytest.raises(tp.TailpathError, match="a member is given twice"):
        tp.read(path)
    path.write_bytes(b"no zip at all")
    with pytest.raises(tp.TailpathError, match="not an npz archive"):
        tp.read(path)
    path.write_bytes(b"")
    with pytest.raises(tp.TailpathError, match="empty"):
        tp.read(path)


@pytest.mark.parametrize("cost", [1e-6, 1.0000005, 2 + 1e-9])
def test_a_unit_that_contradicts_a_cost_is_refused(cost, tmp_path):
    """It was accepted within a millionth of a unit, and values fell outside their own bounds."""
    path = tmp_path / "m.json"
    rows = [["s", "a", "s", 0.5, cost], ["s", "a", "g", 0.5, 1]]
    path.write_text(
        json.dumps(
            {
                "format": "tailpath model",
                "version": 1,
                "start": "s",
                "goals": ["g"],
                "cost_unit": "1/1",
                "outcomes": rows,
            }
        )
    )
    with pytest.raises(
        tp.TailpathError,
        match=(
            rf"m\.json: state 's', action 'a' -> 's' costs {cost!r}, not a whole multiple of 1,"
            r" the cost unit"
        ),
    ):
        tp.read(path)


@pytest.mark.parametrize("suffix", ["json", "npz", "drn", "umb"])
def test_kinds_of_cells_keep_all_their_characters(suffix, tmp_path):
    """Also a last character 0, which arrays of texts do not have."""
    river = tp.domains.river(rows=3, columns=3)
    kinds = ("bank\0", *river.geometry.kind[1:])
    ssp = replace(river, geometry=replace(river.geometry, kind=kinds))
    tp.write(ssp, tmp_path / f"m.{suffix}")
    assert tp.read(tmp_path / f"m.{suffix}").geometry.kind == kinds
