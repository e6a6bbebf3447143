"""Files on disk: whole or not at all, with the permissions they had; and nothing that
is no file.
"""

import errno
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

import tailpath as tp
from tailpath.cli import main
from tailpath.cli.output import save_picture
from tailpath.errors import FormatError
from tailpath.formats.files import read_bytes, write_bytes, write_text
from tests.formats.models import by_choice
from tests.formats.policies import budget_policy


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "m.json"
    path.write_text("secret")
    path.chmod(0o600)
    tp.write(by_choice(), path)
    assert mode(path) == 0o600
    before = os.umask(0o027)
    try:
        tp.write(by_choice(), tmp_path / "new.json")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new.json") == 0o640
    assert sorted(os.listdir(tmp_path)) == ["m.json", "new.json"]


def test_a_planted_link_leads_nowhere(tmp_path):
    """The temporary file had a name that could be foreseen."""
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    os.symlink(victim, tmp_path / f"m.json.{os.getpid()}.part")
    tp.write(by_choice(), tmp_path / "m.json")
    assert victim.read_text() == "untouched"


def test_a_signal_right_after_the_file_was_made_leaves_nothing(tmp_path, monkeypatch):
    made = os.open

    def interrupted(*given, **options):
        os.close(made(*given, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "m.json", b"x")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_nothing(tmp_path):
    (tmp_path / "m.json").mkdir()
    with pytest.raises(FormatError, match=r"m\.json: this is a folder"):
        write_bytes(str(tmp_path / "m.json"), b"x")
    with pytest.raises(FormatError, match=r"file/m\.json: Not a directory"):
        (tmp_path / "file").write_text("")
        write_bytes(tmp_path / "file" / "m.json", b"x")
    with pytest.raises(FormatError, match="null"):
        write_bytes(str(tmp_path / "a\0b"), b"x")
    assert sorted(os.listdir(tmp_path)) == ["file", "m.json"]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_a_device_is_no_file(tmp_path):
    os.symlink("/dev/zero", tmp_path / "m.json")
    with pytest.raises(FormatError, match=r"m\.json: this is a device, not a file"):
        read_bytes(str(tmp_path / "m.json"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1", "true"),
        ("0", "false"),
        ("[1]", "[true]"),
        ("true", "1"),
        ('[0, "a"]', '[false, "a"]'),
        ("1.0", "true"),
    ],
)
def test_one_and_true_are_not_one_state(first, second, tmp_path):
    rows = f'[[{first}, "a", {second}, 1, 1], [{second}, "a", "g", 1, 1]]'
    text = (
        f'{{"format": "tailpath model", "version": 1, "start": {first}, "goals": ["g"], "outcomes":'
        f" {rows}}}"
    )
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(FormatError, match=r"m\.json: outcomes\[0\]: .* and .* told apart"):
        tp.read(tmp_path / "m.json")
    quote = '"{}"'
    cells = [quote.format(cell.replace('"', '""')) for cell in (first, second)]
    (tmp_path / "m.csv").write_text(
        f"idstatefrom,idaction,idstateto,probability,cost\n{cells[0]},a,{cells[1]},1,1\n{cells[1]},a,g,1,1\n"
    )
    with pytest.raises(FormatError, match=r"m\.csv:2: .* told apart"):
        tp.read(tmp_path / "m.csv")


@pytest.mark.parametrize("suffix", ["drn", "tra", "umb", "json", "npz"])
def test_costs_without_a_unit_come_back_without_one(suffix, tmp_path):
    """0.1 and the float next to 1/3 have none; in a file of ours, which would say 1/30 if it were
    meant, it is not guessed.
    """
    for costs, unit in (((0.1, 1 / 3), None), ((Fraction(1, 10), Fraction(1, 3)), Fraction(1, 30))):
        model = tp.SSP.from_outcomes(
            [("s", "a", "t", 1, costs[0]), ("t", "a", "g", 1, costs[1])], start="s", goals=["g"]
        )
        tp.write(model, tmp_path / f"m.{suffix}")
        back = tp.read(tmp_path / f"m.{suffix}")
        assert (back.cost_unit, back.notes) == (model.cost_unit, ()) == (unit, ())
        assert back == model


def test_a_goal_row_has_a_probability(tmp_path):
    rows = [["s", "a", "g", 1, 1], ["g", "stay", "g", -3, 0]]
    document = {
        "format": "tailpath model",
        "version": 1,
        "start": "s",
        "goals": ["g"],
        "outcomes": rows,
    }
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(
        FormatError, match=r"outcomes\[1\]: the probability -3 of a goal's loop lies outside"
    ):
        tp.read(tmp_path / "m.json")


def test_an_npz_with_something_else_in_it(tmp_path):
    from tailpath.formats.archives import Archive, write_archive
    from tailpath.model.ssp import ARRAYS

    tp.write(by_choice(), tmp_path / "m.npz")
    archive = Archive(str(tmp_path / "m.npz"))
    members = {name: archive.array(name, dtype) for name, dtype in ARRAYS.items()}
    header = json.loads(archive.text("header"))
    write_archive(
        str(tmp_path / "m.npz"),
        {"header": json.dumps(header), **members, "outcome_price": members["outcome_cost"]},
    )
    with pytest.raises(FormatError, match="the archive has the unknown member 'outcome_price'"):
        tp.read(tmp_path / "m.npz")
    write_archive(
        str(tmp_path / "m.npz"), {"header": json.dumps({**header, "cost_units": "1/2"}), **members}
    )
    with pytest.raises(FormatError, match="member header: unknown member 'cost_units'"):
        tp.read(tmp_path / "m.npz")


def test_what_cannot_be_written_names_the_file(tmp_path):
    ssp = tp.SSP.from_outcomes([(frozenset("s"), "a", "g", 1, 1)], frozenset("s"), ["g"])
    with pytest.raises(FormatError, match=r"m\.json: the name frozenset"):
        tp.write(ssp, tmp_path / "m.json")
    with pytest.raises(FormatError, match=r"p\.json: the name frozenset"):
        tp.write_policy(tp.MarkovPolicy({frozenset("s"): "a"}), tmp_path / "p.json")


def test_a_link_is_followed(tmp_path):
    """It was replaced by a file of its own."""
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "m.json", tmp_path / "m.json"
    link.symlink_to(target)
    for content in (b"new", b"newer"):
        write_bytes(str(link), content)
        assert link.is_symlink() and target.read_bytes() == content
    assert os.listdir(tmp_path / "there") == ["m.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="files have no pipes here")
def test_pipes_and_devices_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "p.json")
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit((tmp_path / "p.json").read_bytes)
        write_bytes(str(tmp_path / "p.json"), [b"one ", b"two"])
        assert reading.result(timeout=60) == b"one two"
        os.mkfifo(tmp_path / "plot.png")
        reading = pool.submit((tmp_path / "plot.png").read_bytes)
        draw(tmp_path / "plot.png")  # a writer of pictures goes back in its file
        assert reading.result(timeout=60).startswith(b"\x89PNG")
    write_bytes("/dev/null", b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_named(tmp_path):
    (tmp_path / "m.json").symlink_to("/dev/full")
    with pytest.raises(FormatError, match=r"m\.json: No space left on device"):
        tp.write(by_choice(), tmp_path / "m.json")


def draw(path):
    costs = tp.evaluate(by_choice(), tp.solve_expected(by_choice()).policy, 0.5)
    save_picture(costs.plot(0.5), str(path))


WRITERS = {
    "m.json": lambda path: tp.write(by_choice(), path),
    "m.drn": lambda path: tp.write(by_choice(), path),
    "p.npz": lambda path: tp.write_policy(budget_policy(), path),
    "plot.png": draw,
    "page.html": lambda path: write_text(path, "a page"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_on_a_full_disk_the_old_file_stays(name, tmp_path, monkeypatch):
    path = tmp_path / name
    for _ in range(2):  # small models are searched without the compiler until it is loaded
        WRITERS[name](path)
    for file in tmp_path.iterdir():
        file.unlink()
    path.write_bytes(b"old")

    def full(*given, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FormatError, match=r": No space left on device"):
        WRITERS[name](path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == [name]
    monkeypatch.undo()
    WRITERS[name](path)
    assert path.read_bytes() != b"old"


def test_every_file_is_written_in_one_place():
    """Only what Storm is given, in a folder that nobody keeps, is written otherwise."""
    package = pathlib.Path(tp.__file__).parent
    plain = re.compile(
        r"""(?<!formatter)\.write_text\(|\.write_bytes\(|open\((?!os\.devnull)[^)]*["'][wax]b?["']"""
        r"""|savefig\((?!content|buffer|pdf|png)"""
    )
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if plain.search(re.sub(r"``?[^`\n]*`", "", path.read_text(encoding="utf-8")))
    }
    assert found == {"formats/archives.py", "formats/files.py", "formats/storm_worker.py"}


@pytest.mark.parametrize("suffix", ["csv", "json", "npz", "drn", "umb"])
def test_standard_input_is_read(suffix, tmp_path):
    model = tp.domains.river(rows=3, columns=3)
    tp.write(model, tmp_path / f"m.{suffix}")
    program = "import tailpath as tp; print(tp.read('-').n_outcomes)"
    with open(tmp_path / f"m.{suffix}", "rb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdin=stream,
            capture_output=True,
            text=True,
            check=True,
        )
    assert int(done.stdout) == model.n_outcomes


def standard_input(data):
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))


def test_the_command_line_reads_standard_input(monkeypatch, capsys):
    cells = b"from,to,time\na,b,3\nb,c,x\n"
    monkeypatch.setattr(sys, "stdin", standard_input(cells.replace(b"x", b"4")))
    assert main(["solve", "-", "--method", "expected"]) == 0
    assert "7" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", standard_input(cells))
    assert main(["info", "-"]) == 2
    assert "-:3: 'x' is not a finite number" in capsys.readouterr().err
    for closed in (None, standard_input(b"")):
        monkeypatch.setattr(sys, "stdin", closed)
        assert main(["info", "-"]) == 2
        assert "-: " in capsys.readouterr().err
