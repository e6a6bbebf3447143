"""The documentation tells the truth: links lead somewhere, commands are understood, versions agree.
`test_printed.py` runs the examples.
"""

import ast
import contextlib
import inspect
import itertools
import pathlib
import re
import runpy
import shlex
import subprocess
import sys

import click
import pytest

import tailpath
from tailpath.cli.application import REGISTER, group
from tailpath.errors import FormatError
from tests.printed import blocks

ROOT = pathlib.Path(__file__).parents[1]
#: Pages that the build of the site makes.
MADE = ("auto_gallery/index.rst", "python.rst", "commands.md", "modules.md")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in MADE),
    *sorted((ROOT / "papers").rglob("*.md")),
    ROOT / "cases" / "README.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target and target not in MADE:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", ["paper", "bounds"])
def test_the_places_in_the_source_are_there(page):
    """`file.py::name` is a function or a class of the package, or of the tests."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    places = re.findall(r"`([\w/.]+\.(?:py|toml))(?:::(\w+))?`", text)
    assert len(places) > 30
    for file, name in places:
        homes = (ROOT / "src" / "tailpath", ROOT, ROOT / "papers" / "forpecvar" / "src")
        source = next((home / file for home in homes if (home / file).exists()), ROOT / file)
        assert not name or re.search(
            rf"^ *(?:def|class) {name}\b", source.read_text(encoding="utf-8"), re.MULTILINE
        ), f"{file}::{name}"
        assert source.exists(), file


def test_the_messages_are_those_of_the_source():
    """Each quoted part is a text of the source, as it is written there."""
    source = "\n".join(
        file.read_text(encoding="utf-8") for file in sorted((ROOT / "src").rglob("*.py"))
    )
    rows = re.findall(
        r"^\| (`.*?) \|", (ROOT / "docs" / "messages.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) > 20
    joined = re.sub(r'"\s*\n\s*f?"', "", source)
    for part in (part for row in rows for part in re.findall(r"`(.*?)`", row)):
        assert part in joined, part


def test_every_public_name_has_a_place_in_the_reference():
    """The page of the site, which is made by its build: each name once, none left for the end."""
    page = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))["python"]()
    names = re.findall(r"^   (\w+)$", page, re.MULTILINE)
    public = {*tailpath.__all__} - {"__version__"}
    assert sorted(names) == sorted(
        name for name in public if not inspect.ismodule(getattr(tailpath, name))
    )
    assert "\nMore\n" not in page, "name it in TOPICS of docs/make_reference.py"


def test_every_command_is_in_the_reference():
    page = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))["commands"]()
    assert re.findall(r"^## tailpath (.*)$", page, re.MULTILINE) == REGISTER.names()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_understood(page):
    """Command, options and values of each line `$ tailpath ...`, or without a prompt; models are
    not read here.
    """
    text = page.read_text(encoding="utf-8")
    for line in re.findall(r"^(?:\$ )?(?:mpiexec -n \d+ )?tailpath (.*)$", text, re.MULTILINE):
        words = shlex.split(line, comments=True)
        words = list(itertools.takewhile(lambda word: word not in ("|", ">"), words))
        # `--version` is done when it is read, and some folders are not there.
        with contextlib.suppress(click.exceptions.Exit, FormatError):
            context = group.make_context("tailpath", list(words))
            name, command, rest = group.resolve_command(context, words)
            command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_the_text_is_there(page):
    """Of `tailpath solve --delta` in a sentence, the command and its options."""
    text = page.read_text(encoding="utf-8")
    for said in re.findall(r"`tailpath ([a-z][^`]*)`", text):
        name, *words = said.split()
        if name.endswith(",") or "|" in name:  # a list of commands
            assert {*re.findall(r"[a-z-]+", said)} <= {*REGISTER.names()}
            continue
        command = group.get_command(click.Context(group), name)
        assert command is not None, f"tailpath {said}"
        shown = command.get_params(click.Context(command))
        options = {flag for param in shown for flag in param.opts}
        unknown = {word.partition("=")[0] for word in words if word.startswith("--")} - options
        assert not unknown, f"tailpath {said}"


def test_the_citation_has_the_version():
    assert f"\nversion: {tailpath.__version__}\n" in (ROOT / "CITATION.cff").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("name", ["roads", "q_table", "own_loop"])
def test_the_examples_run_as_users_write_them(name, capsys):
    pytest.importorskip("gymnasium")
    pytest.importorskip("pandas")
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    assert capsys.readouterr().out.strip()


def test_progress_is_taken_where_the_page_says_so():
    """Every function that docs/seeing.md names for `progress=`, and every solver it means."""
    page = (ROOT / "docs" / "seeing.md").read_text(encoding="utf-8")
    sentence = re.search(r"the argument `progress=` of (.*?): one line", page, re.DOTALL)
    assert sentence is not None
    named = re.findall(r"`tp\.(\w+)`", sentence[1])
    solvers = [
        name for name in tailpath.__all__ if name.startswith(("solve_cvar", "solve_on_time"))
    ]
    assert len(named) == 5 and len(solvers) >= 4
    functions = [getattr(tailpath, name) for name in (*named, *solvers)]
    for function in (*functions, tailpath.MarkovPolicy.table):
        assert "progress" in inspect.signature(function).parameters, function


def test_the_loop_over_processes_runs_as_a_script(tmp_path):
    """The example of docs/scale.md: processes import it again, so it has to be a file."""
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    (code,) = (block.text for block in blocks(page) if block.language == "python")
    (tmp_path / "loop.py").write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "loop.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(ast.literal_eval(done.stdout)) == [5, 8, 11]
