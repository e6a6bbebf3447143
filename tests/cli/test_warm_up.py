"""After `tailpath warm-up` nothing is left to compile."""

import os
import pathlib
import shlex
import subprocess
import sys

import tailpath as tp
from tailpath.cli.application import COMMANDS
from tailpath.cli.upkeep import USES
from tailpath.kernels.jit import FOLDERS

#: Commands that compute nothing of their own.
OTHERS = {"warm-up"}
#: What only runs over the ranks of MPI, which a warm-up does not start.
OVER_RANKS = {"left graph shortest_edges"}
AFTER = """
import importlib, pkgutil, shlex, sys
from tailpath.cli.application import main
from tailpath.kernels.jit import FOLDERS, KERNELS, Kernel

def signatures_of(found):
    made = [one for one in (found._compiled, found._inner) if one is not None]
    return {kinds for one in made for kinds in one.signatures}

def known():
    return {found: signatures_of(found) for found in KERNELS}

def named(found):
    names = found.plain.__globals__
    called = map(names.get, found.plain.__code__.co_names)
    return [other for other in called if isinstance(other, Kernel)]

assert main(["warm-up"]) == 0
for folder in FOLDERS:
    package = importlib.import_module(f"tailpath.{folder}")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"tailpath.{folder}.{module.name}")
compiled, inside = known(), [found for found in KERNELS if signatures_of(found)]
for found in inside:
    inside += [called for called in named(found) if called not in inside]
for found in KERNELS:
    if found not in inside:
        print("left", found.__module__.split(".")[-1], found.__qualname__)
for command in sys.argv[1:]:
    assert main(shlex.split(command)) == 0
    for found, signatures in known().items():
        if signatures != compiled.get(found, set()):
            print("left", command.split()[0], found.__qualname__)
"""
#: On other models than those of the warm-up.
LATER = (
    "info {large}",
    "solve river:10x3 --subject-to 'late(100) <= 0.5'",
    "solve river:10x3 --subject-to 'cvar(0.1) <= 1000'",
    "compare river:5x5 --all --alpha 0.1 --atoms 3",
    "evaluate gridworld:8x9 expected --alpha 0.01",
    "frontier river:5x5 --risk 'cvar(0.1)'",
    "explain river:5x5 expected --alpha 0.1",
    "simulate textbook:geometric expected --runs 10 --alpha 0.1",
)


def test_every_command_is_used():
    used = {shlex.split(line)[0] for line in USES.strip().splitlines()}
    assert used == set(COMMANDS) - OTHERS


def test_nothing_is_left_to_compile(tmp_path):
    """Neither a kernel, nor one for other types of arguments than those of the warm-up."""
    tp.write(tp.domains.river(rows=60, columns=60), tmp_path / "large.npz")
    commands = [line.format(large=tmp_path / "large.npz") for line in LATER]
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-W", "ignore", "-c", AFTER, *commands]
    told = subprocess.run(program, env=settings, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    left = [line for line in told.stdout.splitlines() if line.startswith("left")]
    assert set(left) <= OVER_RANKS


def test_kernels_live_where_their_sources_are_compared():
    """A change in another folder would not be seen: numba looks at a kernel's own file only."""
    package = pathlib.Path(tp.__file__).parent
    marked = {path.parent for path in package.rglob("*.py") if "@kernel" in path.read_text("utf-8")}
    assert {str(folder.relative_to(package)) for folder in marked} == set(FOLDERS)
