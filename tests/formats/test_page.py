"""The pages of formats and the examples do what they say."""

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
#: The pages, and the files that their examples leave behind.
PAGES = {
    "formats": {".json", ".npz"},
    "tables": {".csv"},
    "checkers": {".drn", ".tra", ".umb", ".prism"},
    "environments": set(),
    "policies": {".json"},
}
NEEDS = {"checkers": "stormpy", "environments": "gymnasium"}
PAGE = "".join(
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("formats", "tables")
)
FILE = r"^`([\w.]+)`:\n```\n(.*?)^```"
BLOCK = re.compile(FILE + r"|^```python\n(.*?)^```|^\$ tailpath (.*?)$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip(NEEDS.get(page, "tailpath"))
    monkeypatch.chdir(tmp_path)
    scope, ran = {}, 0
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for name, content, code, command in BLOCK.findall(text):
        if name:
            pathlib.Path(name).write_text(content)
        elif code:
            exec(compile(code, f"{page}.md", "exec"), scope)
            ran += 1
        else:
            assert run(capsys, *shlex.split(command, comments=True)).code == 0
    assert ran >= 3
    assert {os.path.splitext(name)[1] for name in os.listdir()} >= PAGES[page]


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
