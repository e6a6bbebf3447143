"""Kernels write inside their arrays. `make indices` runs all tests of the folders that call most of
them with every index checked; here are models that once led one astray.
"""

import os
import subprocess
import sys

#: Two outcomes of z coincide once goals are merged.
COINCIDING = """
import tailpath as tp
rows = [
    ("t", "x", "e", 0.125, 2), ("t", "x", "e", 0.875, 5),
    ("t", "z", "e", 0.5, 5), ("t", "z", "g", 0.25, 2), ("t", "z", "g", 0.25, 5),
]
ssp, atoms = tp.SSP.from_outcomes(rows, "t", ["g", "e"]), [0.2, 0.6, 1]
print(tp.solve_cvar_quantile(ssp, atoms).cvar(1))
print(tp.solve_cvar_interpolation(ssp, atoms, inner="greedy").cvar(1))
"""


def test_outcomes_that_coincide_once_goals_are_merged(tmp_path):
    """Machine code with checks is kept apart: numba would take it for that without."""
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", COINCIDING],
        env=os.environ | settings | paths,
        capture_output=True,
        text=True,
    )
    # 5 * 0.75 + 2 * 0.25
    assert (told.stderr, told.stdout.split()) == ("", ["4.25", "4.25"])
