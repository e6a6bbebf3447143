"""The second process of a first use: what it compiles is what the command needs, and it stays out of the way."""

import os
import subprocess
import sys
import threading

import pytest

from tailpath.cli.helper import REHEARSED, Helper
from tailpath.cli.rehearsal import SCENES
from tailpath.kernels.graph import place_members, sweep_back
from tailpath.kernels.jit import Rehearsal
from tailpath.kernels.lattice_layout import lay_out_rows

PROGRAM = [sys.executable, "-P", "-m", "tailpath.cli.rehearsal"]
REHEARSED_KERNELS = """
import sys
from tailpath.cli.rehearsal import rehearsed
from tailpath.kernels import jit
for played, kinds in rehearsed(sys.argv[1], str).calls:
    print("kernel", played.plain.__qualname__, kinds)
"""
USED_KERNELS = """
import sys
from tailpath.cli.application import main
assert main(sys.argv[1:]) == 0
from tailpath.kernels import jit
"""
LIST_MADE = """
for made in jit._MADE:
    for kinds in made.signatures:
        print("kernel", made.py_func.__qualname__, kinds)
"""


def kernels(program, *command):
    """The kernels that a process tells of, with the kinds of their arguments."""
    told = subprocess.run([sys.executable, "-c", program + LIST_MADE, *command], capture_output=True, text=True, check=True).stdout
    return {line for line in told.splitlines() if line.startswith("kernel ")}


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "river:10x3", "expected", "--alpha", "0.1"],
        ["compare", "gridworld:14x16", "--alpha", "0.1"],
        ["solve", "river:10x3", "--alpha", "0.1"],
        ["simulate", "river:10x3", "expected", "--runs", "10", "--alpha", "0.1"],
        ["frontier", "river:10x3", "--risk", "cvar(0.1)"],
    ],
    ids=lambda command: command[0],
)
def test_a_rehearsal_meets_the_kernels_of_the_command(command):
    """With the same kinds of arrays, or the command would compile them again."""
    missed = kernels(USED_KERNELS, *command) - kernels(REHEARSED_KERNELS, *command)
    # Searches of graphs run as they are written where the problem is small.
    assert {line.split()[1] for line in missed} <= {"place_members", "backward_reach", "forward_reach"}


def test_what_is_rehearsed_is_a_command():
    assert set(SCENES) <= set(REHEARSED)


def test_what_the_helper_compiles_is_kept(tmp_path):
    places = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([*PROGRAM, "simulate"], env=places, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as helper:
        assert helper.stdout is not None
        told = helper.stdout.read().splitlines()
    assert told[0] == "walk" and set(told[1::2]) == {""}, "what it cannot play as it is written comes at once"
    assert told.index("lay_rows") < told.index("fold") < told.index("sweep_back"), "from the last to the first"
    kept = {path.name.split(".")[1].split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert kept == set(told) - {""}


def test_the_helper_ends_with_the_command(tmp_path):
    """However that ends: the pipe between them ends with it."""
    places = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([*PROGRAM, "warm-up"], env=places, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as helper:
        assert helper.stdin is not None
        helper.stdin.close()
        assert helper.wait(timeout=60) == 0
    assert not list(tmp_path.rglob("*.nbi")), "long before it was done"


def test_starting_and_stopping(monkeypatch):
    monkeypatch.setattr("tailpath.cli.helper.cores", lambda: 2)
    helper = Helper()
    helper.stop()
    helper.start("evaluate")
    process = helper.process
    assert process is not None and process.poll() is None
    helper.stop()
    assert process.poll() is not None and helper.process is None


@pytest.mark.parametrize(
    ("place", "value", "command"),
    [
        ("tailpath.cli.helper.keeps_code", lambda: False, "evaluate"),
        ("tailpath.cli.helper.cores", lambda: 1, "evaluate"),
        ("sys.frozen", True, "evaluate"),
        ("sys.executable", "", "evaluate"),
        ("sys.executable", "/no/such/python", "evaluate"),
        ("tailpath.cli.helper.cores", lambda: 2, "convert"),
    ],
)
def test_no_helper_where_it_cannot_help(monkeypatch, place, value, command):
    """Nothing is kept, one core, a program that is no interpreter, none at all, or a command that is over at once."""
    monkeypatch.setattr(place, value, raising=False)
    helper = Helper()
    helper.start(command)
    assert helper.process is None


def test_a_kernel_that_the_helper_has_begun_is_waited_for():
    helper = Helper()
    helper._hear("sweep")
    helper.wait("search")
    waiting = threading.Thread(target=helper.wait, args=("sweep",))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    helper._hear("")
    waiting.join(60)
    assert not waiting.is_alive()


def test_what_the_command_has_come_to_is_left_to_it(tmp_path):
    places = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([*PROGRAM, "simulate"], env=places, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        helper = Helper()
        helper.process = process
        helper.wait("lay_rows")
        assert process.stdout is not None
        told = process.stdout.read().splitlines()
        helper.wait("walk")  # nobody listens any more
    assert told[0] == "walk" and "lay_rows" not in told


def test_what_takes_long_comes_first(monkeypatch):
    begun: list[str] = []
    monkeypatch.setattr(Rehearsal, "_compile", lambda self, played, kinds: begun.append(played.plain.__name__))
    found = Rehearsal(str)
    found.calls = dict.fromkeys((played, ()) for played in (place_members, lay_out_rows, sweep_back))
    found.compile_last_first()
    assert begun == ["lay_out_rows", "sweep_back", "place_members"]
    assert lay_out_rows.size() > len(lay_out_rows.plain.__code__.co_code), "with the kernels that it calls"
