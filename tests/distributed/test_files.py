"""Folders of parts, read with suspicion.

Tampered parts: bytes and members damaged, headers and arrays changed, parts of other models and
places. Each is refused in one line that names the file, or is a part that can be
solved; nothing hangs, and no memory follows a promise.
"""

import io
import json
import os
import random
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import tailpath as tp
from tailpath.cli import main
from tailpath.distributed import files
from tailpath.distributed.files import part_file, read_part, write_part, write_parts
from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.ranks import Alone
from tailpath.errors import FormatError, ModelError
from tests.distributed.models import Two, models
from tests.fuzz.damage import damage, damage_zip

RIVER = models()["river"]


def contents(path):
    """The header and the arrays of a part."""
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def written(path, header, arrays):
    """Write what was changed as if it had been so from the beginning."""
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, header=text, **arrays)


def test_parts_are_what_was_split(tmp_path):
    """Names of actions stay what they are, tuples among them."""
    rows = [
        ("s", ("go", 1), "t", 1, 2),
        ("t", ("go", 2), "g", 0.5, 1),
        ("t", ("go", 2), "s", 0.5, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    write_parts(ssp, 2, tmp_path / "parts")
    for index in range(2):
        part = read_part(tmp_path / "parts", index, 2)
        made = Part.of(ssp, index, 2)
        assert part.actions == (("go", 1), ("go", 2)) and part.model == made.model != ""
        for name in files.ARRAYS:
            assert np.array_equal(getattr(part, name), getattr(made, name)), name
    write_part(Part.of(ssp, 0, 1), tmp_path)
    gathered = tp.solve_cvar_exact(read_part(tmp_path, 0, 1), 1).policy(1).gather()
    whole = whole_of(Alone(), read_part(tmp_path, 0, 1))
    # m = 2 + 1 + m/2
    assert tp.evaluate(whole, gathered, 1.0).mean == 6.0


def test_a_folder_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    folder = tmp_path / "parts"
    write_parts(RIVER, 2, folder)
    before = sorted(os.listdir(folder))
    monkeypatch.setattr(files, "write_part", lambda part, place: failing(part, place))
    with pytest.raises(FormatError, match="parts: No space left"):
        write_parts(RIVER, 3, folder)
    assert sorted(os.listdir(folder)) == before and os.listdir(tmp_path) == ["parts"]
    monkeypatch.undo()
    write_parts(RIVER, 3, folder)
    assert len(os.listdir(folder)) == 3 and os.listdir(tmp_path) == ["parts"]
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FormatError, match=r"a folder of their own; .* notes\.txt"):
        write_parts(RIVER, 2, folder)
    assert len(os.listdir(folder)) == 4


def failing(part, place):
    if part.index == 1:
        raise OSError(28, "No space left on device")
    return write_part(part, place)


def test_the_command_says_what_is_in_the_way(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["split", "river:4x3", "--parts", "2", "-o", str(tmp_path / "file")]) == 2
    assert "Not a directory" in capsys.readouterr().err
    assert main(["split", "river:4x3", "--parts", "2", "-o", "/"]) == 2
    assert "/: parts need a folder of their own" in capsys.readouterr().err


def test_parts_without_states_are_not_written(tmp_path, capsys):
    """So many files were made, however many were asked for."""
    assert main(["split", "river:4x3", "--parts", "1000000000", "-o", str(tmp_path / "a")]) == 2
    assert "12 states cannot be cut into 1000000000 parts" in capsys.readouterr().err
    assert main(["split", "river:4x3", "--parts", "12", "-o", str(tmp_path / "a")]) == 0


CHANGES = {
    "another index": lambda h, a: h.update(index=1),
    "no index": lambda h, a: h.pop("index"),
    "a start outside": lambda h, a: h.update(start=10**6),
    "a start below": lambda h, a: h.update(start=-1),
    "a start of text": lambda h, a: h.update(start="0"),
    "no start": lambda h, a: h.pop("start"),
    "a version to come": lambda h, a: h.update(version=9),
    "another format": lambda h, a: h.update(format="tailpath model"),
    "a unit of 0": lambda h, a: h.update(unit="0/1"),
    "a unit of words": lambda h, a: h.update(unit="one"),
    "no unit": lambda h, a: h.update(unit=None),
    "a tiny unit": lambda h, a: h.update(unit="1/1" + "0" * 390),
    "a huge unit": lambda h, a: h.update(unit="1" + "0" * 390 + "/1"),
    "no actions": lambda h, a: h.update(actions=[]),
    "actions that are none": lambda h, a: h.update(actions={"a": 1}),
    "actions by number": lambda h, a: h.update(actions=2**31 - 1),
    "a negative error": lambda h, a: h.update(probability_error=-0.5),
    "an error of text": lambda h, a: h.update(probability_error="x"),
    "an error of 7": lambda h, a: h.update(probability_error=7),
    "a model of numbers": lambda h, a: h.update(model=[1]),
    "an unknown member": lambda h, a: h.update(more=1),
    "bounds far away": lambda h, a: a.update(bounds=np.array([0, 2**62])),
    "bounds that fall": lambda h, a: a.update(bounds=np.array([24, 0])),
    "bounds of one": lambda h, a: a.update(bounds=np.array([0])),
    "no bounds": lambda h, a: a.update(bounds=np.zeros(0, dtype=np.int64)),
    "bounds below 0": lambda h, a: a.update(bounds=np.array([-24, 0])),
    "bounds in a square": lambda h, a: a.update(bounds=np.array([[0, 24], [0, 24]])),
    "choices that fall": lambda h, a: a["state_choices"].__setitem__(3, 0),
    "choices from 1 on": lambda h, a: a["state_choices"].__setitem__(0, 1),
    "choices without end": lambda h, a: a["state_choices"].__setitem__(-1, 2**60),
    "choices cut": lambda h, a: a.update(state_choices=a["state_choices"][:-3]),
    "no choices": lambda h, a: a.update(state_choices=np.zeros(0, dtype=np.int64)),
    "outcomes that fall": lambda h, a: a["choice_outcomes"].__setitem__(3, 0),
    "outcomes below 0": lambda h, a: a["choice_outcomes"].__setitem__(0, -5),
    "outcomes cut": lambda h, a: a.update(outcome_target=a["outcome_target"][:-1]),
    "a target outside": lambda h, a: a["outcome_target"].__setitem__(0, 24),
    "a target below 0": lambda h, a: a["outcome_target"].__setitem__(0, -1),
    "a probability of 2": lambda h, a: a["outcome_probability"].__setitem__(0, 2.0),
    "a probability of 0": lambda h, a: a["outcome_probability"].__setitem__(0, 0.0),
    "not a probability": lambda h, a: a["outcome_probability"].__setitem__(0, np.nan),
    "a cost below 0": lambda h, a: a["outcome_level"].__setitem__(0, -1),
    "a cost without end": lambda h, a: a["outcome_level"].__setitem__(0, 2**31 - 1),
    "a cost of a half": lambda h, a: a.update(outcome_level=a["outcome_level"] + 0.5),
    "an action without name": lambda h, a: a["choice_action"].__setitem__(0, 99),
    "an action below 0": lambda h, a: a["choice_action"].__setitem__(0, -1),
    "goals everywhere": lambda h, a: a["is_goal"].__setitem__(slice(None), True),
    "goals of numbers": lambda h, a: a.update(is_goal=np.arange(24) * 0.3),
    "a member more": lambda h, a: a.update(more=np.arange(3)),
    "levels of texts": lambda h, a: a.update(outcome_level=np.array(["a"] * 170)),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_part_that_was_changed_is_refused(change, tmp_path):
    write_part(Part.of(RIVER, 0, 1), tmp_path)
    path = part_file(tmp_path, 0, 1)
    header, arrays = contents(path)
    CHANGES[change](header, arrays)
    written(path, header, arrays)
    assert refused(tmp_path)


def refused(folder):
    """Read a part and solve it; whether it was refused, in one line with the name of its file."""
    tracemalloc.start()
    try:
        part = read_part(folder, 0, 1)
    except FormatError as error:
        assert str(error).startswith(str(folder)) and "\n" not in str(error)
        assert len(str(error)) < 1000
        return True
    finally:
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
        tracemalloc.stop()
    try:
        tp.solve_cvar_exact(part, 1)
    except tp.TailpathError:
        return True
    return False


@pytest.mark.parametrize("way", [damage, damage_zip])
def test_damaged_parts_are_refused(way, tmp_path):
    """Nearly everything is noticed; what is not, changes nothing that is read."""
    write_part(Part.of(RIVER, 0, 1), tmp_path)
    path = part_file(tmp_path, 0, 1)
    sound, rng = path.read_bytes(), random.Random(way.__name__)
    same, found = 0, tp.solve_cvar_exact(Part.of(RIVER, 0, 1), 1).cvar(1)
    for _ in range(150):
        path.write_bytes(way(sound, rng))
        if not refused(tmp_path):
            same += 1
            assert tp.solve_cvar_exact(read_part(tmp_path, 0, 1), 1).cvar(1) == found
    assert same < 75


@pytest.mark.parametrize("content", [b"", b"PK", b"{}", b"\0" * 1000, b"\x93NUMPY\x01\x00"])
def test_what_is_no_archive(content, tmp_path):
    part_file(tmp_path, 0, 1).write_bytes(content)
    assert refused(tmp_path)


def test_memory_follows_the_bytes_that_are_there(tmp_path):
    """Zeros that unpack to a thousand times as much."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("header", *files.ARRAYS):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + b"\0" * 2**26)
    part_file(tmp_path, 0, 1).write_bytes(packed.getvalue())
    assert refused(tmp_path)


def test_parts_of_different_models_are_not_solved_together(tmp_path, capfd):
    """Rivers of one size that differ in one cost."""
    dearer = np.array(RIVER.outcome_cost)
    dearer[-1] += 1
    other = replace(RIVER, outcome_cost=dearer, exact_unit=None)
    mine = Part.of(RIVER, 0, 2)
    with pytest.raises(SystemExit):
        tp.solve_cvar_exact(mine, 0.1, comm=Two(Part.of(other, 1, 2)))
    assert "part 1 is not of the same model as part 0" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        tp.solve_cvar_exact(mine, 0.1, comm=Two(mine))
    assert "2 ranks need parts 0 to 1, not [0, 0]" in capfd.readouterr().err
    with pytest.raises(ModelError, match=r"1 ranks need parts 0 to 0, not \[1\]"):
        tp.solve_cvar_exact(Part.of(RIVER, 1, 2), 0.1)
