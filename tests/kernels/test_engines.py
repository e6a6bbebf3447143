"""Kernels as they are written and compiled give the same bits, and small work compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings

import tailpath as tp
from tailpath.kernels.jit import interpreter
from tests import strategies
from tests.reference import Model, to_ssp


def answers(model: Model, compiles: bool) -> list[Any]:
    """All that users ask every day, of a model made anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "compiles", compiles)
        ssp = to_ssp(model)
        best = tp.solve_cvar_exact(ssp, 0.05)
        costs = tp.evaluate(ssp, best.policy(0.05), 0.05)
        on_time = tp.solve_on_time(ssp, best.cvar(0.05))
        plan = tp.solve_cvar_quantile(ssp, tp.log_atoms(0.1, 5))
        return [
            tp.solve_expected(ssp).value.tolist(),
            [best.cvar(a) for a in (0.05, 0.3, 1.0)],
            best.bounds(0.05),
            costs.costs.tolist(),
            costs.probabilities.tolist(),
            costs.bounds(0.05),
            on_time.lateness.tolist(),
            plan.value.tolist(),
            tp.simulate(ssp, best.policy(0.05), 20, seed=1).tolist(),
        ]


@settings(max_examples=25)
@given(model=strategies.proper_models())
def test_numbers_are_the_same_either_way(model: Model) -> None:
    assert answers(model, compiles=False) == answers(model, compiles=True)


FIRST_USE = """
import json, sys
import tailpath as tp
from tailpath.kernels.jit import KERNELS

rows = [("home", "road", "work", 0.9, 20), ("home", "road", "work", 0.1, 60)]
ssp = tp.SSP.from_outcomes([*rows, ("home", "train", "work", 1, 30)], "home", ["work"])
best = tp.solve_cvar_exact(ssp, 0.05)
costs = tp.evaluate(ssp, best.policy(0.05), 0.05)
small = tp.solve_expected(ssp).cost(), best.cvar(0.05), costs.cvar(0.05), "numba" in sys.modules
river = tp.read("river:60x30")
cvar = tp.solve_cvar_exact(river, 0.05).cvar(0.05)
again = tp.evaluate(ssp, {"home": "road"}, 0.05).cvar(0.05)
compiled = [kernel.plain.__name__ for kernel in KERNELS if kernel.is_compiled]
print(json.dumps([small, cvar, "numba" in sys.modules, again, compiled]))
"""


def test_small_work_imports_no_compiler_and_more_goes_over_to_it() -> None:
    environment = {name: text for name, text in os.environ.items() if "NUMBA" not in name}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", FIRST_USE], env=environment, capture_output=True, text=True
    )
    small, river, imported, again, compiled = json.loads(told.stdout)
    assert small == [24.0, 30.0, 30.0, False]
    assert imported and "sweep_levels" in compiled
    assert again == 60.0 and "follow" not in compiled  # what is small afterwards is interpreted
    assert river == tp.solve_cvar_exact(tp.read("river:60x30"), 0.05).cvar(0.05)
