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
from tailpath.model.columns import WORDS
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
    assert {os.path.splitext(name)[1] for name in os.listdir()} >= {
        ".json",
        ".npz",
        ".drn",
        ".tra",
        ".umb",
        ".csv",
        ".prism",
    }


def test_the_page_knows_all_formats_and_options():
    for entry in FORMATS:
        for word in (*entry.suffixes, f"{entry.scheme}:" if entry.scheme else ""):
            assert word in PAGE
    for option in list(inspect.signature(tp.read).parameters.values())[1:]:
        assert option.kind is option.VAR_KEYWORD or f"| `{option.name}` |" in PAGE


def test_the_page_lists_the_names_of_columns():
    """All words of the source and no other, each column by its own name first."""
    rows = re.findall(
        r"^\| `(\w+)` \|([^|]*)\|[^|]*\|$",
        PAGE.partition("| column | also called | meaning |")[2],
        re.MULTILINE,
    )
    assert {
        column: (column, *re.findall(r"`(\w+)`", others)) for column, others in rows[: len(WORDS)]
    } == WORDS


@pytest.mark.parametrize(
    ("name", "extra"), [("gymnasium_user", "gymnasium"), ("prism_user", "stormpy")]
)
def test_the_examples_run(name, extra, capsys):
    pytest.importorskip(extra)
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    assert "least CVaR: mean" in capsys.readouterr().out
