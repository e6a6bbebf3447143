"""Runs on disk: what goes in comes out, whole or not at all, and editions never mix."""

import csv
import math
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from forpecvar import figures
from forpecvar.report import write_report
from forpecvar.store import FILE_NAME, Edition, Store, StoreError, StudyTask
from making import TASK, made, run_of, simulation, sliced
from tailpath.errors import OptionError

OTHER = replace(TASK, atoms=13)
HERE = Edition("1.0+abc", {("gridworld", "5x5"): "model"})


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "study", create=True) as opened:
        yield opened


def test_what_goes_in_comes_out(store):
    runs = [
        run_of(),
        run_of(
            OTHER, simulations=[simulation(), simulation(repetition=1)], lps=None, plan_seconds=None
        ),
    ]
    for run in runs:
        store.add(run)
    assert store.runs() == runs
    assert store.finished(HERE) == {TASK, OTHER}
    with Store(store.folder) as again:
        assert again.runs(HERE) == runs


def test_numbers_survive_to_the_last_bit(store):
    run = run_of(alpha := replace(TASK, alpha0=0.1 + 0.2), residual=math.ulp(0.0), seconds=math.inf)
    store.add(run)
    assert store.runs() == [run]
    assert store.finished(HERE) == {alpha}


def test_the_log_is_written_ahead(store):
    assert sqlite3.connect(store.path).execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_run_is_written_whole_or_not_at_all(store):
    twice = run_of().points[0]
    with pytest.raises(StoreError, match="UNIQUE"):
        store.add(run_of(points=[twice, twice]))
    assert store.runs() == []
    assert store.finished(HERE) == set()


def test_the_first_of_two_equal_tasks_stays(store):
    with Store(store.folder) as other:
        store.add(run_of(seconds=1.0))
        other.add(run_of(seconds=2.0))
    assert [run.answer.seconds for run in store.runs()] == [1.0]
    assert len(store.runs()[0].points) == 2


@pytest.mark.parametrize(
    "change", [{"program": "1.1+abc"}, {"program": "1.0+abd"}, {"fingerprint": "another model"}]
)
def test_another_program_or_model_is_never_mixed(store, change):
    store.add(run_of())
    store.add(run_of(**change))
    there = Edition(
        change.get("program", "1.0+abc"), {("gridworld", "5x5"): change.get("fingerprint", "model")}
    )
    assert len(store.runs()) == 2
    assert store.runs(HERE) == [run_of()]
    assert store.runs(there) == [run_of(**change)]
    assert store.latest() == there
    assert (store.others(HERE), store.others(there)) == (1, 1)
    assert store.finished(Edition("2.0", HERE.fingerprints)) == set()


def test_the_latest_edition_has_one_model_per_problem(store):
    small, large = TASK, StudyTask("river", "10x3", "quantile", "", "", 7, 0.1)
    store.add(run_of(small, fingerprint="old"))
    store.add(run_of(large, fingerprint="river"))
    store.add(run_of(small, fingerprint="new"))
    store.add(run_of(small, program="0.9", fingerprint="older"))
    store.add(run_of(OTHER, fingerprint="new"))
    assert store.latest() == Edition(
        "1.0+abc", {("gridworld", "5x5"): "new", ("river", "10x3"): "river"}
    )
    assert [run.task for run in store.runs(store.latest())] == [large, small, OTHER]


# ---------------------------------------------------------------------- refusals


def test_reading_creates_nothing(tmp_path):
    with pytest.raises(StoreError, match="no stored runs here"):
        Store(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_store_has_no_edition(store):
    with pytest.raises(StoreError, match="no finished runs yet"):
        store.latest()


def test_other_files_are_refused(tmp_path):
    (tmp_path / FILE_NAME).write_text("not a database, but long enough to be taken for one" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store(tmp_path, create=True)


@pytest.mark.parametrize("schema", [2, 99])
def test_other_schemas_are_refused(store, schema):
    """In schema 2 `published` were other factors; such runs are not shown under today's name."""
    with sqlite3.connect(store.path) as base:
        base.execute(f"PRAGMA user_version = {schema}")
    for create in (True, False):
        with pytest.raises(
            StoreError,
            match=(
                rf"not a store of this version of the program \(schema {schema}, expected 4\); use"
                r" another folder"
            ),
        ):
            Store(store.folder, create=create)


def test_files_without_a_schema_are_refused(store):
    other = store.folder / "other"
    other.mkdir()
    with sqlite3.connect(other / FILE_NAME) as base:
        base.execute("CREATE TABLE runs (x)")
    with pytest.raises(StoreError, match="not a store of this version"):
        Store(other, create=True)


# ---------------------------------------------------------------------- export


def test_export_to_csv_keeps_every_digit(store):
    third = run_of().points[0].__class__(1 / 3, 9.1, 10.2, 8.0, 5.0, 0.001, 0.001, 0.001, 100)
    store.add(run_of(program="old"))
    store.add(run_of(points=[third]))
    paths = store.export("csv", HERE)
    assert [path.name for path in paths] == ["runs.csv", "points.csv", "simulations.csv"]
    runs, points, simulations = ([*csv.DictReader(path.open())] for path in paths)
    assert [row["program"] for row in runs] == ["1.0+abc"]
    assert runs[0]["lps"] == ""
    assert (float(points[0]["alpha"]), float(points[0]["deployed"])) == (1 / 3, 10.2)
    assert {row["run"] for row in points} == {runs[0]["id"]}
    assert simulations == []


def test_export_to_parquet_keeps_types(store):
    parquet = pytest.importorskip("pyarrow.parquet")
    store.add(run_of())
    runs, points, simulations = (parquet.read_table(path) for path in store.export("parquet", HERE))
    row = runs.to_pylist()[0]
    assert (row["problem"], row["atoms"], row["alpha0"], row["lps"], row["sweeps"]) == (
        "5x5",
        7,
        0.1,
        None,
        9,
    )
    assert [point["predicted"] for point in points.to_pylist()] == [9.0, 5.0]
    assert [str(kind) for kind in simulations.schema.types] == [
        "int64",
        "string",
        "int64",
        "int64",
        "double",
        "double",
        "double",
        "int64",
        "double",
    ]
    assert str(runs.schema.field("lp_seconds").type) == "double"


def test_other_exports_are_refused(store):
    with pytest.raises(OptionError, match="'xlsx'"):
        store.export("xlsx", HERE)


# ---------------------------------------------------------------------- damage


DAMAGE = [
    ("runs", "atoms", "'many'"),
    ("runs", "alpha0", "0.0"),
    ("runs", "inner", "'odd'"),
    ("runs", "domain", "x'00ff'"),
    ("points", "deployed", "'ten'"),
    ("points", "alpha", "-1.0"),
    ("points", "run", "99"),
]


@pytest.mark.parametrize(("table", "column", "value"), DAMAGE)
def test_a_damaged_value_is_told_in_one_line(tmp_path, table, column, value):
    with Store(tmp_path, create=True) as store:
        store.add(run_of())
    with sqlite3.connect(tmp_path / FILE_NAME) as base:
        base.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = 1")
        if column == "run":
            base.execute("DELETE FROM points WHERE run = 1")
    base.close()
    with pytest.raises(StoreError, match="damaged: "):
        write_report(tmp_path)


def test_a_store_whose_bytes_are_damaged_is_read_or_refused(tmp_path, monkeypatch):
    """Whatever is hit: pages of the file, its tables or the texts in them."""
    monkeypatch.setattr(figures, "FIGURES", {})
    whole = tmp_path / "whole"
    with Store(whole, create=True) as store:
        for task in sliced(only=["gridworld/5x5"]):
            store.add(made(task))
    content, refused = (whole / FILE_NAME).read_bytes(), 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        damaged = bytearray(content)
        for place in random.integers(len(content), size=int(random.integers(1, 40))):
            damaged[place] = random.integers(256)
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(damaged[: int(random.integers(1, 2 * len(content)))])
        try:
            write_report(folder)
        except StoreError:
            refused += 1
    assert 0 < refused < 200
