"""`tailpath warm-up`: small uses of every command, so that everything is compiled.

`tests/cli/test_warm_up.py` finds the commands that are not used here, and the kernels.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import tempfile
import time
import warnings
from typing import Any

import click

import tailpath as tp
from tailpath.cli.application import group
from tailpath.cli.common import Command
from tailpath.kernels.jit import interpreter

#: Each line is run in a folder with the models of `models`; a name in braces is one of them.
USES = """
info {plain}
solve {plain} --alpha 0.1 -o {folder}/plain.json
solve {plain} --minimise 'evar(0.1)'
evaluate {plain} {folder}/plain.json --alpha 0.1
compare {plain} --all --alpha 0.1 --atoms 5 --measure 'late(3)'
show {plain} {folder}/plain.json
diff {plain} expected {folder}/plain.json
explain {plain} {folder}/plain.json --alpha 0.1
page {plain} --out {folder}/page.html --alpha 0.1
simulate {plain} {folder}/plain.json --runs 10 --alpha 0.1
convert {plain} {folder}/again.json
split {plain} --parts 1 -o {folder}/parts
frontier {plain} --risk 'cvar(0.1)'
solve {free} --alpha 0.1
solve {free} --method quantile --alpha 0.1 --gamma 0.5
solve {slow} --method expected
solve {long} --alpha 0.5
solve {signed} --method expected
solve {interval} --alpha 0.1
info {large}
solve {large} --alpha 0.5
"""
#: Moves and cycles that cost nothing, and a dead end.
FREE = """
start go a 0.5 0
start go c 0.5 0
c on goal 1 1
a go b 0.5 0
a go goal 0.5 100
a wait b 1 1
b go a 0.5 0
b go goal 0.5 90
b wait a 1 1
b risk end 0.5 0
b risk goal 0.5 0
end stay end 1 1
"""
#: Least and greatest probability, then the cost.
INTERVAL = """
start go a 0.3 0.6 1
start go goal 0.4 0.7 2
a go goal 0.5 0.9 1
a go start 0.1 0.5 1
a safe goal 1 1 9
"""


def models() -> dict[str, tp.SSP | tp.IntervalSSP]:
    """Models that need all kernels between them."""
    interval = [(*step, (low, high), cost) for *step, low, high, cost in parsed_outcomes(INTERVAL)]
    long = [(i, "go", i + 1, 0.5, cost) for i in range(100) for cost in (1, 1_000_003)]
    n, large = 10_240, [(0, 0, -1, 0.5, 1), (0, 0, 1, 0.5, 1)]
    for i in range(1, n):
        for k in range(4):
            large.append((i, k // 2, (i * 7919 + k * 104729) % n, 0.5, 1 + k % 2))
    return {
        "plain": tp.domains.gridworld("5x5"),
        "free": tp.SSP.from_outcomes(parsed_outcomes(FREE), "start", ["goal"]),
        "slow": rarely_left(2.0**-30),
        "signed": tp.SSP.from_outcomes([("a", "go", "goal", 1, -1)], "a", ["goal"]),
        "interval": tp.IntervalSSP.from_outcomes(interval, "start", ["goal"]),
        "long": tp.SSP.from_outcomes(long, 0, [100]),
        "large": tp.SSP.from_outcomes(large, 1, [-1]),
    }


def parsed_outcomes(text: str) -> list[Any]:
    """Lines of state, action, next state and numbers."""
    lines = [line.split() for line in text.strip().splitlines()]
    return [(*words[:3], *map(float, words[3:])) for words in lines]


def rarely_left(probability: float) -> tp.SSP:
    """Ten states, each of which leads to two others and is left for good with this probability; to
    wait costs nothing in half of them."""
    rows = []
    for i in range(10):
        rows += [
            (i, "go", (3 * i + 1) % 10, 0.5, 2),
            (i, "go", (7 * i + 2) % 10, 0.5 - probability, 2),
        ]
        rows += [(i, "wait", to % 10, 0.5, 0 if i % 2 else 3) for to in (2 * i, 4 * i + 2)]
        rows.append((i, "go", -1, probability, 2))
    return tp.SSP.from_outcomes(rows, 0, [-1])


@click.command(cls=Command)
def warm_up_command() -> None:
    """Compile everything now instead of when it is first used.

    The compiled code is stored on disk; with nothing to compile this takes a few seconds. Code
    that runs only on ranks of MPI is compiled there.

    Examples
    --------
    tailpath warm-up
    NUMBA_CACHE_DIR=/shared/cache tailpath warm-up
    """
    begin = time.perf_counter()
    if interpreter.compiles is None:
        interpreter.compiles = True  # small work, too
    with tempfile.TemporaryDirectory(prefix="tailpath-") as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the factors")  # of a published planner, on purpose
        files = {name: os.path.join(folder, f"{name}.npz") for name in models()}
        for name, ssp in models().items():
            tp.write(ssp, files[name])
        for use in USES.strip().splitlines():
            with contextlib.redirect_stdout(io.StringIO()):
                group.main(shlex.split(use.format(folder=folder, **files)), standalone_mode=False)
    click.echo(f"ready after {time.perf_counter() - begin:.1f} s")
