"""The command line against mishaps: outputs that cannot be written, names with control characters,
numbers beyond all bounds.
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys

import pytest

import tailpath as tp
from tests.cli.running import refusal, run


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tp.write(tp.read("textbook:lottery"), "m.json")
    return "m.json"


def test_the_policy_does_not_replace_the_model(capsys, model):
    before = pathlib.Path(model).read_text()
    os.symlink(model, "link.json")
    for output in (model, "./m.json", "link.json"):
        assert "is the model itself" in refusal(
            capsys, "solve", model, "--alpha", "0.5", "-o", output
        )
    assert pathlib.Path(model).read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["solve", "m.json", "--alpha", "0.5", "-o", "nowhere/p.json"],
            "nowhere/p.json: no such file or folder",
        ),
        (
            ["solve", "m.json", "--alpha", "0.5", "-o", "p.txt"],
            "must end with .json or .npz",
        ),
        (
            ["solve", "m.json", "--alpha", "0.5", "-o", "folder.json"],
            "folder.json: this is a folder",
        ),
        (["compare", "m.json", "--plot", "nowhere/a.png"], "nowhere/a.png: no such file or folder"),
        (["compare", "m.json", "--plot", "a.jpeg2"], "must end with .png or .pdf or .svg"),
        (
            ["evaluate", "m.json", "expected", "--alpha", "0.5", "--plot", "nowhere/a.png"],
            "no such file or folder",
        ),
        (["convert", "m.json", "nowhere/m.npz"], "no such file or folder"),
    ],
)
def test_bad_outputs_are_found_before_the_work(arguments, message, capsys, model, monkeypatch):
    os.mkdir("folder.json")
    monkeypatch.setattr(tp, "read", lambda *a, **k: pytest.fail("the work has begun"))
    assert message in refusal(capsys, *arguments)


def test_the_result_is_printed_even_if_it_cannot_be_saved(capsys, model, monkeypatch):
    def full(policy, path):
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(tp, "write_policy", full)
    result = run(capsys, "solve", model, "--alpha", "0.5", "-o", "p.json")
    assert (
        result.code == 2
        and "least CVaR" in result.out
        and "p.json: No space left on device" in result.err
    )


def test_control_characters_stay_off_the_terminal(capsys, model):
    name = "\x1b[31mred\x07\x9b\u202e"
    tp.write(tp.SSP.from_outcomes([(name, "a", "g", 1, 1)], name, ["g"]), model)
    for arguments in (["info", model], ["info", model, "--json"]):
        result = run(capsys, *arguments)
        assert result.code == 0 and "red" in result.out
        assert all(
            character.isprintable() or character == "\n" for character in result.out + result.err
        )
    assert run(capsys, "info", model, "--json").json["start"] == name
    assert "\x1b" not in refusal(capsys, "info", "\x1b[31m.json")


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "river:4x3", "--alpha", "0.1", "--delta", "1e400"],
        ["solve", "river:4x3", "--alpha", "0.1", "--delta", "1e-400"],
        ["solve", "river:4x3", "--alpha", "0.1", "--gamma", "1e-99999999"],
        ["info", "river:4x3", "--give-up", "1e999999999"],
        ["info", "river:4x3", "--give-up", "1e400"],
        ["info", "river:4x3", "--within", "3", "--otherwise", "1e-99999999"],
        ["info", "river:4x3", "--within", "3", "--otherwise", "1e400"],
        ["simulate", "river:4x3", "expected", "--alpha", "0.1", "--runs", "9" * 21],
        ["solve", "river:4x3", "--minimise", "1e400*mean"],
        ["solve", "river:4x3", "--minimise", "late(1e99999999)"],
        ["solve", "river:4x3", "--minimise", "mean", "--subject-to", "late(9) <= 1e99999999"],
        ["solve", "river:4x3", "--minimise", "1e308 * mean"],
        ["solve", "river:4x3", "--minimise", "mean + 1e308 * cvar(0.1)"],
        ["evaluate", "river:4x3", "expected", "--alpha", "1e-320"],
        ["compare", "river:4x3", "--alpha", "1e-320"],
        ["solve", "river:4x3", "--alpha", "1e-320", "--method", "quantile"],
        ["solve", "river:4x3", "--alpha", "0.1", "--method", "quantile", "--atoms", "9" * 21],
    ],
)
def test_numbers_beyond_all_bounds(arguments, capsys):
    assert len(refusal(capsys, *arguments)) < 200


def test_a_limit_beyond_all_bounds_is_no_limit(capsys):
    result = run(
        capsys,
        "evaluate",
        "river:4x3",
        "expected",
        "--alpha",
        "0.1",
        "--max-nodes",
        "9" * 21,
        "--json",
    )
    plain = run(capsys, "evaluate", "river:4x3", "expected", "--alpha", "0.1", "--json")
    assert result.code == 0 and result.json["results"] == plain.json["results"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tailpath", "info", "river:4x3"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "tailpath: error: the output cannot be written: No space left on device\n"


def test_an_interrupt_while_the_program_loads():
    code = """
import sys, importlib.abc
class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from tailpath.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "tailpath: error: interrupted\n")


def test_modules_of_the_working_directory_are_not_imported(capsys, tmp_path, monkeypatch):
    """`gym:module:Env` imports a module: one that is installed."""
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    (tmp_path / "lurking_module.py").write_text("open('was_here', 'w')")
    assert "lurking_module" in refusal(capsys, "info", "gym:lurking_module:Env-v0")
    assert not (tmp_path / "was_here").exists()


def test_zero_has_no_sign():
    from tailpath.texts import number

    assert number(-0.0) == "0"


def test_what_a_taxi_leaves_out_is_said():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("Taxi-v4", fickle_passenger=True)
    assert any("fickle_passenger" in note for note in tp.read(env).notes)
    assert not any("fickle_passenger" in note for note in tp.read(gymnasium.make("Taxi-v4")).notes)


def test_a_message_about_delta_names_the_flag(capsys, model):
    rows = [["s", "a", "g", 1, 3.14159265358979], ["s", "b", "g", 1, 2.718281828459045]]
    document = {
        "format": "tailpath model",
        "version": 1,
        "start": "s",
        "goals": ["g"],
        "outcomes": rows,
    }
    with open(model, "w") as stream:
        json.dump(document, stream)
    assert "--delta D (delta=)" in refusal(capsys, "solve", model, "--alpha", "0.5")


@pytest.mark.parametrize("command", ["evaluate", "simulate", "show", "explain", "diff", "compare"])
def test_whatever_is_wrong_with_a_policy_its_file_is_named(command, capsys, tmp_path):
    """What a policy lacks shows when it is followed, long after its file was read."""
    gap, circle = tmp_path / "gap.json", tmp_path / "circle.json"
    ssp = tp.SSP.from_outcomes(
        [("s", "a", "t", 1, 1), ("s", "b", "s", 1, 0), ("t", "a", "g", 1, 1)], "s", ["g"]
    )
    tp.write(ssp, tmp_path / "m.json")
    tp.write_policy(tp.MarkovPolicy({"s": "a"}), gap)
    tp.write_policy(tp.MarkovPolicy({"s": "b", "t": "a"}), circle)
    for policy in (gap, circle):
        arguments = {
            "compare": ["--policy", policy, "--alpha", 0.1],
            "diff": [policy, policy],
            "simulate": [policy, "--alpha", 0.1, "--runs", 3],
        }
        rest = arguments.get(command, [policy, "--alpha", 0.1])
        result = run(capsys, command, tmp_path / "m.json", *rest)
        if result.code:
            assert result.code == 2 and str(policy) in result.err and result.err.count("\n") == 1
        else:
            assert policy is circle


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_keeps_all_of_unicode(encoding, model):
    name = "\u00e9\U0001f600\U000e0001\U0010ffff\x7f\u2028"
    tp.write(tp.SSP.from_outcomes([(name, "a", "g", 1, 1)], name, ["g"]), model)
    words = [sys.executable, "-m", "tailpath", "info", model]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*words, "--json"], env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout.decode(encoding))["start"] == name
    subprocess.run(words, env=environment, capture_output=True, check=True)


@pytest.fixture
def small_files():
    """A function after which no file may have more than 1,000 bytes, as if the disk were full."""
    resource = pytest.importorskip("resource", reason="files are limited on Unix only")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("page.html", ["page", "m.json", "--out"]),
        ("plot.png", ["evaluate", "m.json", "expected", "--alpha", "0.5", "--plot"]),
        ("plot.pdf", ["compare", "m.json", "--alpha", "0.5", "--plot"]),
    ],
)
def test_what_cannot_be_written_to_its_end_leaves_the_old_file(
    name, words, capsys, model, small_files
):
    assert run(capsys, *words, name).code == 0, "by now everything is compiled"
    assert pathlib.Path(name).stat().st_size > 1_000
    pathlib.Path(name).write_text("old")
    small_files()
    result = run(capsys, *words, name)
    assert (result.code, result.err) == (2, f"tailpath: error: {name}: File too large\n")
    assert pathlib.Path(name).read_text() == "old" and sorted(os.listdir()) == ["m.json", name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("suffix", ["html", "png"])
def test_a_full_disk_is_one_line(suffix, capsys, model):
    os.symlink("/dev/full", f"out.{suffix}")
    words = {
        "html": ["page", model, "--out"],
        "png": ["compare", model, "--alpha", "0.5", "--plot"],
    }
    result = run(capsys, *words[suffix], f"out.{suffix}")
    assert result.code == 2
    assert result.err.splitlines()[-1] == f"tailpath: error: out.{suffix}: No space left on device"


# ---------------------------------------------------------------------- standard error, SIGTERM


@pytest.mark.skipif(os.name == "nt", reason="shells of POSIX close streams")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("solve river:5x5 --alpha 0.1 -o policy.json", 0),
        ("compare textbook:lottery --alpha 0.1", 0),
        ("info nowhere.json", 2),
    ],
)
def test_commands_work_where_standard_error_is_closed(tmp_path, arguments, code):
    line = f"{shlex.quote(sys.executable)} -m tailpath {arguments} 2>&-"
    found = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False
    )
    assert found.returncode == code
    assert bool(found.stdout) == (code == 0)
    if "policy" in arguments:
        tp.read_policy(tmp_path / "policy.json", tp.read("river:5x5"))


@pytest.mark.kill
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_no_unfinished_file_stays_after_sigterm(tmp_path):
    slow = """
import sys, time
import tailpath.formats.files as files
def pieces():
    yield b"half"
    print("writing", flush=True)
    time.sleep(60)
import tailpath.cli.models as models
models.tailpath.write = lambda ssp, target: files.write_bytes(target, pieces())
from tailpath.cli import main
sys.exit(main(["convert", "textbook:lottery", "model.json"]))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", slow], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    assert list(tmp_path.glob(".*.part"))
    process.terminate()
    assert process.wait(30) == 143
    assert list(tmp_path.iterdir()) == []
