"""`tailpath study` and `tailpath report`, as a shell sees them."""

import csv
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from tests.cli.running import refusal, run

import making
from forpecvar import command, figures, runner
from forpecvar.claims import paper
from forpecvar.design import tasks
from forpecvar.store import Store

TINY = (
    "--variant",
    "improved",
    "--only",
    "gridworld/5x5",
    "--atoms",
    "7",
    "--alpha0",
    "0.1",
    "--lp",
    "none",
    "--workers",
    "1",
)
NINE = (
    "--variant",
    "improved",
    "--only",
    "gridworld/5x5",
    "--atoms",
    "7",
    "--lp",
    "none",
    "--workers",
    "1",
)


def rows(folder):
    """All stored rows but for times, in an order of their own."""
    with Store(folder) as store:
        return sorted(
            (making.without_times(one) for one in store.runs()), key=lambda one: str(one.task)
        )


@pytest.fixture(autouse=True)
def one_figure(monkeypatch):
    """Drawing takes longer than all else; `tests/study/test_report.py` looks at the figures."""
    monkeypatch.setattr(figures, "FIGURES", {"figure1_values": figures.FIGURES["figure1_values"]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny study, computed once."""
    place = tmp_path_factory.mktemp("study")
    done = subprocess.run(
        [sys.executable, "-m", "tailpath", "study", "--out", place, *TINY],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "The paper's experiments, repeated\n3 runs computed, 0 found in the"
        f" store\n{place / 'study.md'} and "
    )
    return place


def test_what_is_stored_is_found(capsys, folder):
    result = run(capsys, "study", "--out", folder, *TINY, "--export", "csv", "--json")
    assert (result.code, result.err) == (0, "")
    assert (result.json["computed"], result.json["found"], result.json["failed"]) == (0, 3, 0)
    assert {pathlib.Path(name).name for name in result.json["files"]} >= {
        "study.md",
        "figure1_values.pdf",
        "figure1_values.png",
        "points.csv",
        "gaps.csv",
    }
    assert len([*csv.DictReader((folder / "points.csv").open())]) == 21


def test_a_report_draws_the_same_again(capsys, folder):
    made = []
    for _ in range(2):
        (folder / "study.md").unlink()
        result = run(capsys, "report", folder)
        assert (result.code, result.err) == (0, "")
        figure = folder / "figures" / "figure1_values.pdf"
        made.append(((folder / "study.md").read_bytes(), figure.read_bytes(), result.out))
    assert made[0] == made[1]


def test_the_list_says_what_is_stored(capsys, folder):
    result = run(
        capsys,
        "study",
        "--list",
        "--variant",
        "improved",
        "--only",
        "gridworld/5x5",
        "--atoms",
        7,
        "--lp",
        "none",
        "--out",
        folder,
    )
    assert result.out.endswith("\n9 runs, 3 stored\n")
    everything = run(capsys, "study", "--list", "--json").json
    assert (len(everything["runs"]), everything["stored"]) == (len(tasks(paper())), 0)
    assert set(everything["runs"][0]) == {
        "problem",
        "method",
        "variant",
        "inner",
        "atoms",
        "alpha0",
        "state",
    }


def test_listing_creates_nothing(capsys, tmp_path):
    assert run(capsys, "study", "--list", "--out", tmp_path / "new").code == 0
    assert not (tmp_path / "new").exists()


def test_a_change_of_the_program_is_noticed(capsys, folder, tmp_path, monkeypatch):
    with Store(folder) as old, Store(tmp_path, create=True) as new:
        for one in old.runs():
            new.add(making.replace(one, answer=making.replace(one.answer, program="0.0+old")))
    result = run(capsys, "study", "--out", tmp_path, *TINY)
    assert result.code == 0
    assert (
        result.err
        == "tailpath: note: 3 stored runs of another program version or model are not used\n"
    )
    assert result.out.startswith("The paper's experiments, repeated\n3 runs computed, 0 found")
    assert "3 stored runs of other versions" in (tmp_path / "study.md").read_text(encoding="utf-8")


def test_missing_runs_are_named_and_the_exit_code_says_so(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "perform", making.failing)
    result = run(
        capsys,
        "study",
        "--out",
        tmp_path,
        "--variant",
        "improved",
        "--only",
        "gridworld/5x5",
        "--alpha0",
        0.1,
        "--lp",
        "none",
        "--workers",
        1,
    )
    assert result.code == 1
    assert (
        "tailpath: error: gridworld/5x5 quantile (improved), 13 atoms from 0.1: ValueError: no luck"
        " with 13\n" in result.err
    )
    assert result.err.endswith(
        "3 runs missing; all others are stored, and the same command tries again\n"
    )
    assert result.out.startswith("The paper's experiments, repeated\n6 runs computed, 0 found")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Missing option '--out' (see 'tailpath study --help')"),
        (
            ["--out", "x", "--only", "desert"],
            "the study has no problem 'desert'; it has gridworld/5x5, ",
        ),
        (
            ["--out", "x", "--atoms", "0"],
            "the number of atoms must be a whole number of at least 1, not 0",
        ),
        (["--out", "x", "--alpha0", "2"], "alpha0 must lie in (0, 1], not 2"),
        (
            ["--out", "x", "--variant", "odd"],
            "no method of the study has a variant 'odd'; there are improved, printed, published",
        ),
        (["--out", "x", "--method", "odd"], "there is no method 'odd'; there are exact, "),
        (["--out", "x", "--gamma", "0"], "gamma must lie in (0, 1], not 0.0"),
        (["--out", "x", "--model", "missing.json"], "missing.json: "),
    ],
)
def test_refusals(capsys, arguments, text):
    assert refusal(capsys, "study", *arguments).startswith(text)
    assert not pathlib.Path("x").exists()


def test_a_report_needs_runs(capsys, tmp_path):
    assert refusal(capsys, "report", tmp_path).startswith(f"{tmp_path}: no stored runs here")


def test_progress_tells_how_many_runs_what_is_computed_and_the_time_left(monkeypatch):
    clock = iter([100.0, 110.0, 150.0])
    monkeypatch.setattr(command, "monotonic", lambda: next(clock))
    texts = []
    progress = command._progress(texts.append, 8)
    progress(0, 0.0, "a")
    progress(1, 0.25, "b")
    progress(8, 1.0, "")
    assert texts == [
        "0 of 8 runs, now: a",
        "1 of 8 runs, now: b, about 30 s left",
        "8 of 8 runs, about 0 s left",
    ]


# ---------------------------------------------------------------------- killed in the middle


def start_study(place):
    return subprocess.Popen(
        [sys.executable, "-m", "tailpath", "study", "--out", place, *NINE],
        stdout=subprocess.DEVNULL,
    )


def stored(place):
    try:
        with Store(place) as store:
            return len(store.runs())
    except Exception:  # not there yet, or being made
        return 0


def children(pid):
    return [
        int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, what):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.002)


@pytest.mark.kill
def test_killed_and_started_again_it_ends_with_the_same_rows(tmp_path):
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    first = start_study(disturbed)
    wait_until(lambda: stored(disturbed) > 0, "nothing was stored")
    workers = children(first.pid) if sys.platform == "linux" else []
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    before = rows(disturbed)
    assert 0 < len(before) < 9
    for worker in workers:
        wait_until(lambda worker=worker: not alive(worker), "a worker outlived its study")
    assert start_study(disturbed).wait() == 0
    assert start_study(undisturbed).wait() == 0
    assert len(rows(undisturbed)) == 9
    assert rows(disturbed) == rows(undisturbed)
    assert all(row in rows(disturbed) for row in before)


@pytest.mark.kill
def test_interrupted_it_leaves_with_130_and_keeps_what_is_done(tmp_path):
    study = subprocess.Popen(
        [sys.executable, "-m", "tailpath", "study", "--out", tmp_path, *NINE],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: stored(tmp_path) > 0, "nothing was stored")
    study.send_signal(signal.SIGINT)
    _, errors = study.communicate(timeout=120)
    note = "tailpath: note: finished runs are stored; run the same command again to resume"
    told = [line for line in errors.splitlines() if line]
    assert (study.returncode, told) == (130, [note, "tailpath: error: interrupted"])
    assert 0 < stored(tmp_path) < 9
    assert not (tmp_path / "study.md").exists()


def test_the_store_can_be_read_by_other_programs(folder):
    listed = json.loads(
        subprocess.run(
            [
                sys.executable,
                "-c",
                (
                    "import json, sqlite3, sys; b ="
                    " sqlite3.connect(sys.argv[1]);print(json.dumps(b.execute('SELECT method,"
                    " count(*) FROM runs JOIN points ON points.run = runs.id GROUP BY"
                    " 1').fetchall()))"
                ),
                folder / "runs.sqlite",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    assert listed == [["interpolation", 7], ["optimum", 7], ["quantile", 7]]


def test_the_title_of_a_design_is_the_heading_of_its_report(capsys, tmp_path):
    design = tmp_path / "my.toml"
    design.write_text(
        'title = "Roads"\nmethods = ["optimum"]\natoms = [2]\nalpha0 = [0.5]\n'
        '[[problems]]\nname = "lottery"\nmodel = "textbook:lottery"\n'
    )
    out = tmp_path / "out"
    told = run(capsys, "study", "--out", out, "--design", design, "--workers", 1)
    assert told.code == 0 and told.out.startswith("Roads\n")
    page = (out / "study.md").read_text(encoding="utf-8")
    assert page.startswith("# Roads\n")
    assert run(capsys, "report", out).code == 0
    assert (out / "study.md").read_text(encoding="utf-8") == page
