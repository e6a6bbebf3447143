"""The report is made from stored rows alone, repeats byte for byte, and shows what is there."""

import csv
import os
import pathlib
import re
import subprocess
import sys

import pytest

from forpecvar.claims import VERDICTS, paper
from forpecvar.design import tasks
from forpecvar.figures import FIGURES
from forpecvar.report import write_report
from forpecvar.store import Store, StoreError
from making import made, sliced

PNG, PDF = b"\x89PNG\r\n", b"%PDF-"


def store_of(folder, chosen):
    with Store(folder, create=True) as store:
        for task in chosen:
            store.add(made(task))
    return folder


def test_a_complete_study_has_every_figure_and_a_page_that_links_to_them(tmp_path):
    written = write_report(store_of(tmp_path, tasks(paper())))
    names = [name for name in FIGURES if name != "methods"]
    twice = [name for name, figure in FIGURES.items() if figure.of_variants]
    drawn = [*names, *(f"{name}_published" for name in twice)]
    assert len(written) == 1 + 2 * len(drawn) + 10
    assert all(path.is_file() for path in written)
    for name in drawn:
        assert (tmp_path / "figures" / f"{name}.png").read_bytes().startswith(PNG)
        assert (tmp_path / "figures" / f"{name}.pdf").read_bytes().startswith(PDF)
    text = (tmp_path / "study.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) == 2 * len(drawn)
    assert all((tmp_path / link).is_file() for link in links)
    assert "Without linear programs" not in text
    page = (pathlib.Path(__file__).parents[3] / "docs" / "paper.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| Figure (\d),[^\n]*? \| `(\w+)`", page, re.MULTILINE)
    assert [number for number, _ in listed] == [*"1234567"]
    for number, name in listed:
        assert f"As the paper's Figure {number}. Variant: improved.](figures/{name}.png)" in text
    with (tmp_path / "tables" / "claims.csv").open(encoding="utf-8") as file:
        verdicts = [*csv.DictReader(file)]
    assert [row["variant"] for row in verdicts] == ["improved"] * 22 + ["published"] * 22
    assert {row["verdict"] for row in verdicts} <= {*VERDICTS.values()}
    assert "Table 1: always with |Y| = 25 and alpha0 = 1e-3" in {row["claim"] for row in verdicts}
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert (
        len({len(re.findall(r"(?<!\\)\|", line)) for line in rows if "**" in line}) == 1
    )  # no bar ends a cell too early


SMALL = {"only": ["gridworld/5x5"], "atoms": [7], "alpha0": [0.1]}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The files of a report on a small study."""
    return write_report(store_of(tmp_path_factory.mktemp("small"), sliced(**SMALL)))


def test_equal_rows_give_equal_files(small, tmp_path):
    again = write_report(store_of(tmp_path, sliced(**SMALL)))
    assert len(small) == len(again) > 10
    for old, new in zip(small, again):
        assert old.read_bytes() == new.read_bytes(), old.name


def test_a_small_study_has_the_figures_it_can(small):
    names = {path.stem for path in small if path.suffix == ".png"}
    assert names == {
        "figure1_values",
        "figure4_box_atoms",
        "figure6_box_alpha0",
        "beyond_optimum",
    }
    assert "Gridworld" in small[0].read_text(encoding="utf-8")


def test_values_without_linear_programs_say_so(tmp_path):
    chosen = sliced(**SMALL, lp="none")
    text = write_report(store_of(tmp_path, chosen))[0].read_text(encoding="utf-8")
    assert "Without linear programs, in 1 of the runs, CVaRVILI's values" in text


def test_other_editions_are_left_out_and_said_so(tmp_path):
    store_of(tmp_path, sliced(**SMALL))
    with Store(tmp_path) as store:
        for task in sliced(only=["gridworld/5x5"], atoms=[13], alpha0=[0.1]):
            store.add(made(task, program="9.9+new"))
    write_report(tmp_path)
    text = (tmp_path / "study.md").read_text(encoding="utf-8")
    assert text.split("\n")[2].startswith("3 runs with 39 points, computed by tailpath 9.9+new")
    assert "3 stored runs of other versions of the program or of other models are not used." in text


def test_an_empty_store_has_no_report(tmp_path):
    Store(tmp_path, create=True).__exit__()
    with pytest.raises(StoreError, match="no finished runs yet"):
        write_report(tmp_path)
    assert not (tmp_path / "study.md").exists()


def test_reporting_solves_and_evaluates_nothing(tmp_path):
    """Without the compiler no kernel runs, and nothing is solved or evaluated without one."""
    store_of(tmp_path, sliced(**SMALL))
    code = """
import sys
from tailpath.cli import main
code = main()
print([name for name in sys.modules if name.split(".")[0] in ("numba", "highspy")])
sys.exit(code)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "report", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_store_that_may_only_be_read_can_be_read(tmp_path, monkeypatch):
    """As another user's."""
    one, two = sliced()[:2]
    with Store(tmp_path / "s", create=True) as store:
        store.add(made(one, machine="<script>alert(1)</script>"))
    page = write_report(tmp_path / "s")[0].read_text()
    assert "<script>" not in page and "&lt;script>" in page
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with Store(tmp_path / "s") as store:
        assert len(store.runs()) == 1
        with pytest.raises(StoreError, match="readonly"):
            store.add(made(two))
