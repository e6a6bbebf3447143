"""Every benchmark runs, on its smallest models: what it measures may be renamed or moved, and
nobody would notice until the next `make bench`.
"""

import importlib

import pytest

pytest.importorskip("resource", reason="benchmarks measure memory as Unix does")

from benchmarks.__main__ import NAMES, main


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(name, capsys):
    importlib.import_module(f"benchmarks.{name}").run(small=True)
    assert capsys.readouterr().out.strip()


def test_an_unknown_benchmark_is_named():
    with pytest.raises(SystemExit, match="unknown benchmark 'speed'"):
        main(["--small", "speed"])
