"""
Predicted, deployed and optimal
===============================

CVaR against alpha, for every method. This is ``tailpath compare gridworld:8x9 --plot compare.png``.
"""

import contextlib
import io
import pathlib
import tempfile

from tailpath.cli import main

folder = pathlib.Path(tempfile.mkdtemp())
pictures = [folder / "compare.png"]
with contextlib.redirect_stdout(io.StringIO()):
    main(
        [
            "compare",
            "gridworld:8x9",
            "--alpha",
            "0.001",
            "0.01",
            "0.1",
            "0.5",
            "--plot",
            str(pictures[0]),
        ]
    )
