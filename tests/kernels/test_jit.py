"""Kernels are compiled once, kept on disk, and work where nothing can be kept or compiled."""

import ast
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

import tailpath
from tailpath.cli import main

#: Calls one kernel, which calls no other; with two nodes, the first reaches the second.
ONE = """
import numpy as np
from tailpath.kernels import compile_time
from tailpath.kernels.graph import longest_paths
for repeat in range(2):
    length = np.zeros(2, dtype=np.int64)
    longest_paths(np.array([0, 1, 1]), np.array([1]), np.array([1, 0]), length)
    print(length.tolist())
print(compile_time.compiling_seconds() > 0)
"""
COMPILED, LOADED = "[1, 0]\n[1, 0]\nTrue\n", "[1, 0]\n[1, 0]\nFalse\n"

#: Kernels in two files, one of them a closure, that call each other.
NUMBERS = """
from tailpath.kernels.jit import kernel

FACTOR = 2

@kernel
def fill(out):
    for i in range(len(out)):
        out[i] = FACTOR * i

@kernel
def share(total, parts):
    return total // parts
"""
TOTAL = """
import sys
import numpy as np
from numbers_of_kernels import fill, share
from tailpath.kernels.jit import kernel

def made(start):
    def total(n, parts):
        numbers = np.empty(n, dtype=np.int64)
        fill(numbers)
        found = start
        for i in range(n):
            found += int(numbers[i])
        return share(found, parts)

    return kernel(total)

ten, none = made(10), made(0)

if __name__ == "__main__":
    print(ten(4, 2), none(4, 1))
    try:
        ten(4, 0)
    except ZeroDivisionError as error:
        print(error)
"""


def run(folder, program=ONE, package="", limit=None, **settings):
    """What a process prints that keeps its machine code in a folder; of `package`, if given."""
    paths = os.pathsep.join([str(package), *sys.path])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": paths}
    environment |= {"TAILPATH_COMPILE": "1", **settings}
    if limit:  # Python would leave a part of its own byte code beside the source, and read that
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    how = {"capture_output": True, "text": True, "timeout": 300, "check": False}
    before = None
    if limit:
        resource = pytest.importorskip("resource", reason="files are limited on Unix only")
        before = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, preexec_fn=before, **how
    )


def copied(folder):
    """The package in a folder of its own."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(pathlib.Path(tailpath.__file__).parent, folder / "tailpath", ignore=ignored)
    return folder / "tailpath"


def files(folder, suffix=""):
    return [path for path in folder.rglob(f"*{suffix}") if path.is_file()]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder in which a process has kept its machine code, and what it printed."""
    folder = tmp_path_factory.mktemp("compiled")
    return folder, run(folder)


@pytest.fixture
def cache(compiled, tmp_path):
    """The same folder, to be damaged."""
    return shutil.copytree(compiled[0], tmp_path / "cache")


def test_code_is_compiled_once_and_then_loaded(compiled):
    """What is compiled is announced, once; what is loaded is not."""
    folder, first = compiled
    for told, expected in ((first, COMPILED), (run(folder), LOADED)):
        assert (told.stdout, told.stderr) == (expected, "")


def test_a_session_is_told_that_it_waits_for_the_compiler(tmp_path):
    """At a prompt or in a notebook, with the seconds; not in a program."""
    interactive = f"import sys\nsys.ps1 = '>>> '\n{ONE}"
    assert run(tmp_path / "first").stderr == ""
    first, second = (run(tmp_path / "second", interactive).stderr for _ in range(2))
    assert re.fullmatch(
        r"tailpath: compiling longest_paths\S* for the first use \.\.\. \d+\.\d s\n", first
    )
    assert second == ""


def test_kernels_call_kernels(tmp_path):
    (tmp_path / "numbers_of_kernels.py").write_text(NUMBERS)
    (tmp_path / "total.py").write_text(TOTAL)
    for disabled in ("0", "0", "1"):
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(tmp_path),
            "NUMBA_DISABLE_JIT": disabled,
            "TAILPATH_COMPILE": "1",
        }
        program = [sys.executable, str(tmp_path / "total.py")]
        told = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
        first, last = told.stdout.splitlines()
        assert first == "11 12" and "zero" in last and told.stderr == ""


def test_a_change_in_another_file_is_seen(tmp_path):
    """Numba would load what it kept: it looks at a kernel's own file only."""
    package, program = copied(tmp_path), ONE.replace("longest_paths(", "tried(")
    (package / "kernels" / "constants.py").write_text("STEP = 1\n")
    tried = (
        "from tailpath.kernels.jit import kernel\nfrom tailpath.kernels.constants import STEP\n\n"
    )
    tried += "@kernel\ndef tried(order, row_start, target, length):\n    length[0] = STEP\n"
    (package / "kernels" / "tried.py").write_text(tried)
    program = program.replace("kernels.graph import longest_paths", "kernels.tried import tried")
    assert run(tmp_path / "cache", program, tmp_path).stdout == COMPILED
    assert run(tmp_path / "cache", program, tmp_path).stdout == LOADED
    (package / "kernels" / "constants.py").write_text("STEP = 2\n")
    assert run(tmp_path / "cache", program, tmp_path).stdout == COMPILED.replace("[1,", "[2,")


def warned(told):
    """That it worked, with one warning that names the remedy."""
    assert told.returncode == 0 and told.stdout == COMPILED, told.stderr
    assert told.stderr.count("TailpathWarning") == 1
    assert "compiled code cannot be stored" in told.stderr and "NUMBA_CACHE_DIR" in told.stderr


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x80"])
def test_a_damaged_cache(cache, content):
    kept = files(cache)
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}
    for path in files(cache, ".nbc"):
        path.write_bytes(content)
    warned(run(cache))
    for path in kept:
        path.write_bytes(content)
    warned(run(cache))


def test_a_folder_in_the_place_of_a_file(cache):
    for path in files(cache):
        path.unlink()
        path.mkdir()
    warned(run(cache))


def test_a_full_disk(tmp_path):
    """As far as a limit on the size of files is one: what is too large cannot be written."""
    warned(run(tmp_path, limit=1000))
    assert all(path.stat().st_size <= 1000 for path in files(tmp_path))
    assert run(tmp_path).stdout == COMPILED


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="every folder can be written")
def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o500)
    assert run(tmp_path / "cache").returncode == 0


def test_no_folder_at_all(tmp_path):
    """Numba would keep it in the folder given, beside the source, or in the user's cache."""
    blocked, package = tmp_path / "file", copied(tmp_path)
    blocked.write_text("no folder")
    (package / "kernels" / "__pycache__").write_text("no folder")
    places = {"HOME": str(blocked / "home"), "XDG_CACHE_HOME": str(blocked / "cache")}
    warned(run(blocked / "cache", ONE, tmp_path, **places))


COMMAND = """
import sys
from tailpath.cli.application import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_command_warns_in_one_line(tmp_path):
    tailpath.write(tailpath.domains.river(rows=60, columns=60), tmp_path / "large.npz")
    program = COMMAND.replace("sys.argv[1:]", repr(["info", str(tmp_path / "large.npz")]))
    told = run(tmp_path / "cache", program, limit=1000)
    assert told.returncode == 0 and "outcomes" in told.stdout
    (line,) = told.stderr.splitlines()
    assert line.startswith("tailpath: warning: compiled code cannot be stored, so every run ")


@pytest.mark.parametrize(
    "command", ["evaluate river:5x5 expected", "simulate river:5x5 expected --runs 9"]
)
def test_without_the_compiler(tmp_path, capsys, command):
    """As they are written kernels find the same."""
    words = [*command.split(), "--alpha", "0.1"]
    program = COMMAND.replace("sys.argv[1:]", repr(words))
    told = run(tmp_path, program, NUMBA_DISABLE_JIT="1")
    assert (told.returncode, told.stderr) == (0, "") and not files(tmp_path)
    assert main(words) == 0
    assert told.stdout == capsys.readouterr().out


INTERRUPTED = """
from numba.core import event
from total import none, share

class Listener(event.Listener):
    def __init__(self, after):
        self.after = after
    def on_start(self, started):
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt
    def on_end(self, ended):
        pass

after, found = 0, None
while found is None:
    after += 7
    with event.install_listener("numba:run_pass", Listener(after)):
        try:
            found = none(4, 1)
        except KeyboardInterrupt:
            print("interrupted")
print(found, share(7, 2))
"""


def test_an_interrupt_while_compiling_leaves_a_usable_process(tmp_path):
    """At any step of the compiler's, of a kernel or of those that it calls."""
    (tmp_path / "numbers_of_kernels.py").write_text(NUMBERS)
    (tmp_path / "total.py").write_text(TOTAL)
    told = run(tmp_path, INTERRUPTED, tmp_path)
    *interrupted, last = told.stdout.splitlines()
    assert (last, told.stderr) == ("12 3", "") and len(interrupted) > 10


WHILE_IMPORTING = """
import signal
from total import none, share

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
for _ in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        none(4, 1)
    except KeyboardInterrupt:
        print("interrupted")
signal.setitimer(signal.ITIMER_REAL, 0)
print(none(4, 1), share(7, 2))
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_an_interrupt_while_importing_leaves_a_usable_process(tmp_path):
    """Half of numba would stay behind, for which Python has no remedy."""
    (tmp_path / "numbers_of_kernels.py").write_text(NUMBERS)
    (tmp_path / "total.py").write_text(TOTAL)
    told = run(tmp_path, WHILE_IMPORTING, tmp_path)
    assert (told.stdout.splitlines()[-1], told.stderr) == ("12 3", "")
    assert "interrupted" in told.stdout


ONCE = """
import sys
from tailpath.cli.application import main
from tailpath.kernels.jit import KERNELS
folder = sys.argv[1]
for model in ("gridworld:5x5", "river:10x3"):
    policy = f"{folder}/policy.json"
    for command in (
        ["compare", model, "--alpha", "0.1"],
        ["solve", model, "--alpha", "0.1", "--output", policy],
        ["evaluate", model, policy, "--alpha", "0.1"],
        ["simulate", model, policy, "--runs", "10", "--alpha", "0.1"],
    ):
        assert main(command) == 0
for found in KERNELS:
    if found._compiled is not None:
        print("made", found.__qualname__, len(found._compiled.signatures))
"""


def test_planning_and_evaluation_share_their_machine_code(tmp_path):
    """Read-only and writable arrays, int32 and int64: every mixture would be compiled anew."""
    program = [sys.executable, "-c", ONCE, str(tmp_path)]
    compiling = {**os.environ, "TAILPATH_COMPILE": "1"}
    found = subprocess.run(
        program, env=compiling, capture_output=True, text=True, check=True
    ).stdout
    made = [line.split()[1:] for line in found.splitlines() if line.startswith("made")]
    assert len(made) > 20
    assert [name for name, number in made if number != "1"] == []


def places(target):
    """The attributes that an assignment to a target changes."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [place for part in target.elts for place in places(part)]
    if isinstance(target, (ast.Starred, ast.Subscript)):
        return places(target.value)
    return [target] if isinstance(target, ast.Attribute) else []


def assigned(tree):
    """The names of the attributes that a file assigns to, and of those given to `setattr`."""
    for node in ast.walk(tree):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
            targets = [ast.Attribute(node.args[0], "any")]
        yield from (ast.unparse(place) for target in targets for place in places(target))


def borrowed(tree):
    """The names that libraries have in a file."""
    for node in ast.walk(tree):
        names = getattr(node, "names", []) if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        for name in names:
            home = getattr(node, "module", None) or name.name
            if home.split(".")[0] not in {*sys.stdlib_module_names, "tailpath"}:
                yield name.asname or name.name.split(".")[0]


def patched(path):
    """What a file replaces of libraries, and what it does to the collector of garbage."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    theirs = {*borrowed(tree), "numba"}
    found = [name for name in assigned(tree) if name.split(".")[0] in theirs]
    found += [word for word in ("gc.disable", "gc.freeze", "gc.set_threshold") if word in text]
    return found + re.findall(r"import_module\(f?[\"']numba", text)


def test_no_library_is_patched():
    """Our process is the user's."""
    package = pathlib.Path(tailpath.__file__).parent
    found = {str(path.relative_to(package)): patched(path) for path in package.rglob("*.py")}
    assert len(found) > 100
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    [
        "numba.core.event.x = 1",
        "import numba.np as n; n.arrayobj.fix, y = 1, 2",
        "from numba import core; setattr(core, 'x', 1)",
        "import gc; gc.disable()",
        "linalg = importlib.import_module('numba.np.linalg')",
        "def f(numba):\n    numba.config.CACHE_DIR += '/x'",
    ],
)
def test_a_patch_would_be_found(tmp_path, line):
    (tmp_path / "file.py").write_text(line)
    assert patched(tmp_path / "file.py")
