"""The workflows name what is there: targets of the Makefile, extras, files, and every version of
Python that is promised.
"""

import pathlib
import re
import tomllib

import pytest

yaml = pytest.importorskip("yaml")

ROOT = pathlib.Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TESTS = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))[
    "jobs"
]


def commands(page):
    jobs = yaml.safe_load(page.read_text(encoding="utf-8"))["jobs"]
    return "\n".join(step["run"] for job in jobs.values() for step in job["steps"] if "run" in step)


@pytest.mark.parametrize("page", WORKFLOWS, ids=lambda page: page.name)
def test_what_they_call_is_there(page):
    text = commands(page)
    for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target
    for extras in re.findall(r"\.\[([\w,]+)\]", text):
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    for path in re.findall(r"\b(?:docs|tests)/\w+\.\w+|\.ci/run", text):
        assert (ROOT / path).exists(), path


def test_all_systems_and_versions_are_tested():
    matrix = TESTS["tests"]["strategy"]["matrix"]
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert f">={matrix['python'][0]}" == PROJECT["requires-python"]


def test_the_lowest_versions_are_installed_exactly(tmp_path, monkeypatch, capsys):
    """The job's own program, run here, pins every dependency to its bound."""
    (step,) = [
        step["run"] for step in TESTS["oldest"]["steps"] if "oldest.txt" in step.get("run", "")
    ]
    program = re.search(r"<<'END'\n(.*?)END\n", step, re.DOTALL)[1]
    monkeypatch.chdir(ROOT)
    exec(program, {})
    pinned = capsys.readouterr().out.split()
    for need in PROJECT["dependencies"]:
        name, _, bound = need.partition(";")[0].partition(">=")
        assert f"{name}=={bound}" in pinned
