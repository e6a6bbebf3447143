"""The documentation tells the truth: examples run, links lead somewhere, versions agree."""

import pathlib
import re

import pytest

import tailpath

ROOT = pathlib.Path(__file__).parents[1]
NUMBER = r"(?:-?\d+(?:\.\d+)?(?:e-?\d+)?|inf)"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize(
    "name", ["README.md", "docs/model.md", "docs/optimum.md", "docs/evaluation.md", "docs/planners.md", "docs/bring_your_own.md"]
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


def test_the_citation_has_the_version():
    assert f"\nversion: {tailpath.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
