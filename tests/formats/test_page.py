"""`docs/formats.md` and the examples do what they say."""

import inspect
import os
import pathlib
import re
import runpy
import shlex

import pytest

import tailpath as tp
from tailpath.formats.registry import FORMATS
from tests.cli.running import run

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
FILE = r"^`([\w.]+)`:\n```\n(.*?)^```"
BLOCK = re.compile(FILE + r"|^```python\n(.*?)^```|^\$ tailpath (.*?)$", re.DOTALL | re.MULTILINE)


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    pytest.importorskip("gymnasium")
    pytest.importorskip("stormpy")
    monkeypatch.chdir(tmp_path)
    scope, kinds = {}, []
    for name, text, code, command in BLOCK.findall(PAGE):
        if name:
            pathlib.Path(name).write_text(text)
        elif code:
            exec(compile(code, "formats.md", "exec"), scope)
        else:
            assert run(capsys, *shlex.split(command)).code == 0
        kinds.append("file" if name else "code" if code else "command")
    assert {"file", "code", "command"} == set(kinds) and len(kinds) > 20
    assert {os.path.splitext(name)[1] for name in os.listdir()} >= {".json", ".npz", ".drn", ".tra", ".umb", ".csv", ".prism"}


def test_the_page_knows_all_formats_and_options():
    for entry in FORMATS:
        for word in (*entry.suffixes, f"{entry.scheme}:" if entry.scheme else ""):
            assert word in PAGE
    for option in list(inspect.signature(tp.read).parameters)[1:]:
        assert f"| `{option}` |" in PAGE


@pytest.mark.parametrize(("name", "extra"), [("gymnasium_user", "gymnasium"), ("prism_user", "stormpy")])
def test_the_examples_run(name, extra, capsys):
    pytest.importorskip(extra)
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    assert "least CVaR: mean" in capsys.readouterr().out
