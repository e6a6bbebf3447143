"""The helper of `cli/helper.py`: `python -m tailpath.cli.rehearsal COMMAND`.

It does what the command does on a small problem, with kernels as they are written. That takes a moment; then it knows which kernels the command will
call, with what kinds of arrays, and compiles them, beginning with large ones and at the end.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

import numpy as np

import tailpath as tp
from tailpath.kernels.jit import Rehearsal

PROBLEM, ALPHA = "gridworld:5x5", 0.1


def neutral(ssp: tp.SSP) -> None:
    """The policy of `evaluate MODEL expected`."""
    tp.evaluate(ssp, tp.solve_expected(ssp).policy, ALPHA)


def planned(ssp: tp.SSP) -> None:
    """What CVaRVIQ finds."""
    tp.evaluate(ssp, tp.solve_cvar_quantile(ssp, tp.log_atoms(ALPHA, 3)).policy(ALPHA), ALPHA)


def best(ssp: tp.SSP) -> None:
    """The optimum."""
    tp.evaluate(ssp, tp.solve_cvar_exact(ssp, ALPHA).policy(ALPHA), ALPHA)


def simulated(ssp: tp.SSP) -> None:
    """Runs of a policy."""
    tp.simulate(ssp, tp.solve_expected(ssp).policy, 10, 0)


def corners(ssp: tp.SSP) -> None:
    """The frontier."""
    tp.frontier(ssp, tp.CVaR(ALPHA))


Scene = Callable[[tp.SSP], None]
#: What commands do, in their order; `evaluate` and the others, which are not named here, look at a policy.
SCENES: dict[str, tuple[Scene, ...]] = {
    "compare": (neutral, planned, best),
    "solve": (best,),
    "simulate": (simulated,),
    "frontier": (corners,),
    "page": (neutral, planned, best),
    "warm-up": (neutral, planned, best, simulated, corners),
}


def rehearsed(command: str, tell: Callable[[str], None]) -> Rehearsal:
    """The kernels that a command calls. `tell` hears what is compiled."""
    ssp = tp.read(PROBLEM)
    with Rehearsal(tell) as found, np.errstate(all="ignore"):
        for scene in SCENES.get(command, (neutral,)):
            scene(ssp)
    return found


def _follow_the_command(taken: set[str]) -> None:
    """Hear which kernels it has come to, and end with it: the pipe ends when the process at its other end does."""
    for line in sys.stdin:
        taken.add(line.strip())
    os._exit(0)


if __name__ == "__main__":
    begun: set[str] = set()
    threading.Thread(target=_follow_the_command, args=(begun,), daemon=True).start()
    rehearsed(sys.argv[1], lambda name: print(name, flush=True)).compile_last_first(begun)
