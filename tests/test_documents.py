"""The documentation tells the truth: examples run, links lead somewhere, versions agree."""

import pathlib
import re
import runpy

import pytest

import tailpath
from tailpath.cli import main

ROOT = pathlib.Path(__file__).parents[1]
NUMBER = r"(?:-?\d+(?:\.\d+)?(?:e-?\d+)?|inf)"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/model.md",
        "docs/optimum.md",
        "docs/evaluation.md",
        "docs/planners.md",
        "docs/seeing.md",
        "docs/bring_your_own.md",
        "docs/time_of_day.md",
        "docs/objectives.md",
        "docs/uncertain.md",
    ],
)
def test_examples_run(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    scope = {"tp": tailpath}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
        # An expression with nothing but numbers in its comment claims to have these values.
        for expression, values in re.findall(rf"^(\S.*?)  # ({NUMBER}(?:, {NUMBER})*)$", block, re.MULTILINE):
            found = eval(expression, scope)
            claimed = [float(value) for value in values.split(", ")]
            assert list(found if isinstance(found, (tuple, list)) else [found]) == pytest.approx(claimed, rel=1e-6), expression


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_reference_is_that_of_the_docstrings():
    made = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))
    assert made["page"]() == made["PAGE"].read_text(encoding="utf-8"), "run docs/make_reference.py"


def test_the_citation_has_the_version():
    assert f"\nversion: {tailpath.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_prints_what_the_program_prints(capsys):
    """All but the times, which are of another machine and another day."""
    shown = re.search(r"\$ make run\n(.*?)```", README, re.DOTALL)[1]
    assert main(["compare", "river:30x10"]) == 0
    assert without_times(capsys.readouterr().out) == without_times(shown)


def without_times(text):
    rows = [re.sub(r" +[\d.e-]+$", "", line) if line[:2] in ("0.", "1 ") else line for line in text.strip().splitlines()]
    kept = [re.sub(r"planned in .*", "planned", row) for row in rows if not row.startswith("compiled, once")]
    return [re.sub(r"-+$| +seconds$", "", row).rstrip() for row in kept]


def test_the_readme_prints_the_values_it_says(capsys):
    for code, shown in re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL):
        scope = {}
        *lines, last = code.rstrip().splitlines()
        exec(compile("\n".join(lines if not last.startswith("print") else [*lines, last]), "README.md", "exec"), scope)
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
