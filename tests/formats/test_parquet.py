"""Parquet tables are read as CSV tables are."""

import random
import subprocess
import sys
import warnings

import pytest

import tailpath as tp
from tests.cli.running import run
from tests.formats.models import differences, many_numbers, samples
from tests.fuzz.damage import damage

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
csv = pytest.importorskip("pyarrow.csv")

COLUMNS = {
    "state": ["home", "home", "stop", "stop"],
    "action": ["bus", "bus", "wait", "wait"],
    "next_state": ["work", "stop", "work", "stop"],
    "probability": [0.9, 0.1, 0.5, 0.5],
    "cost": [10, 10, 20, 20],
}


def written(path, columns, **options):
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


@pytest.mark.parametrize("types", ["text", "guessed"])
def test_a_csv_table_in_parquet_is_the_same_model(types, tmp_path):
    """Whatever the types of the columns: all of them texts, or what pyarrow takes them for."""
    n_read = 0
    for model in (*samples().values(), many_numbers(300)):
        try:
            tp.write(model, tmp_path / "m.csv")
        except tp.TailpathError:
            continue
        names = (tmp_path / "m.csv").read_text(encoding="utf-8").partition("\n")[0].split(",")
        kinds = dict.fromkeys(names, pyarrow.string()) if types == "text" else {}
        table = csv.read_csv(
            tmp_path / "m.csv",
            convert_options=csv.ConvertOptions(
                column_types=kinds, null_values=[], true_values=[], false_values=[]
            ),
        )
        parquet.write_table(table, tmp_path / "m.parquet", row_group_size=7)
        assert differences(tp.read(tmp_path / "m.csv"), tp.read(tmp_path / "m.parquet")) == []
        n_read += 1
    assert n_read > 5


def test_options_and_marks(tmp_path):
    path = written(tmp_path / "m.parquet", COLUMNS)
    ssp = tp.read(path, start="stop", goals=["work"])
    assert ssp.start == "stop" and ssp.goals == ("work",) and tp.solve_expected(ssp).cost() == 40
    columns = {
        "from": [1, 2],
        "to": [2, 3],
        "goal": [False, True],
        "start": [True, False],
        "reward": [-1.5, -2.5],
        "other": [[1], [2]],
    }
    ssp = tp.read(written(path, columns), one_based=True)
    assert ssp.states == range(3) and ssp.goals == (2,) and ssp.outcome_cost.tolist() == [1.5, 2.5]
    categories = {
        **COLUMNS,
        "state": pyarrow.array(COLUMNS["state"]).dictionary_encode(),
        "cost": pyarrow.array([0.1] * 4, pyarrow.float32()),
    }
    assert tp.read(written(path, categories)).outcome_cost.tolist() == [0.1] * 4


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("cost", [10, 10, None, 20], r"m\.parquet:3: '' is not a finite number"),
        ("cost", ["1", "2", "3", "x"], r"m\.parquet:4: 'x' is not a finite number"),
        ("cost", [1.0, float("nan"), 1.0, 1.0], r"m\.parquet:2: 'nan' is not a finite number"),
        ("state", ["home", None, "stop", "stop"], r"m\.parquet:2: a name is empty"),
        (
            "state",
            [["home"], ["home"], ["stop"], ["stop"]],
            r"m\.parquet: the column 'state' of list<.*> holds neither",
        ),
        (
            "goal",
            ["no", "no", "perhaps", "no"],
            r"m\.parquet:3: goal: 'perhaps' is neither true nor false",
        ),
    ],
)
def test_refusals_name_the_row(column, cells, said, tmp_path):
    with pytest.raises(tp.TailpathError, match=said):
        tp.read(written(tmp_path / "m.parquet", {**COLUMNS, column: cells}))


def test_refusals_of_files(tmp_path):
    path = tmp_path / "m.parquet"
    for data, said in (
        (b"", "the file is empty"),
        (b"PAR1", "this is not a Parquet file"),
        (b"state,cost\n", "this is not a Parquet file"),
    ):
        path.write_bytes(data)
        with pytest.raises(tp.TailpathError, match=rf"m\.parquet: {said}"):
            tp.read(path)
    with pytest.raises(tp.TailpathError, match=r"m\.parquet: the table has no rows"):
        tp.read(written(path, {name: pyarrow.array([], pyarrow.string()) for name in COLUMNS}))
    with pytest.raises(tp.TailpathError, match=r"no column .*state"):
        tp.read(written(path, {"next_state": ["a"], "cost": [1]}))
    with pytest.raises(tp.TailpathError, match="not written"):
        tp.write(samples()["by choice"], path)
    # A run of equal cells: a hundred million rows in a few kilobytes.
    million = pyarrow.array(["a"] * 1_000_000).dictionary_encode()
    many = pyarrow.chunked_array([million] * 20)
    with pytest.raises(tp.TailpathError, match=r"unpacks to \d+ bytes"):
        tp.read(written(path, {"from": many, "to": many, "cost": many}))


def test_damaged_files_are_refused_or_read(tmp_path):
    original = written(tmp_path / "m.parquet", COLUMNS).read_bytes()
    rng = random.Random(23)
    accepted = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(300):
            (tmp_path / "m.parquet").write_bytes(damage(original, rng))
            try:
                tp.read(tmp_path / "m.parquet")
                accepted += 1
            except tp.TailpathError as error:
                assert "m.parquet" in str(error)
    assert accepted < 300


def test_without_pyarrow(tmp_path):
    """A Parquet table is refused with the remedy."""
    path = written(tmp_path / "m.parquet", COLUMNS)
    code = f"""
import sys
sys.modules["pyarrow"] = None
import tailpath as tp
try:
    tp.read({str(path)!r})
except tp.TailpathError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pyarrow is not installed: pip install 'tailpath[parquet]'" in done.stdout


def test_the_command_line_reads_them(tmp_path, capsys):
    path = written(tmp_path / "m.parquet", COLUMNS)
    result = run(capsys, "info", path, "--start", "stop")
    assert result.code == 0 and "states without rows are the goals" in result.err


def test_texts_that_are_no_texts_are_refused(tmp_path):
    path = written(tmp_path / "m.parquet", COLUMNS, compression="none")
    path.write_bytes(path.read_bytes().replace(b"stop", b"st\xe9p"))
    with pytest.raises(tp.TailpathError, match=r"m\.parquet: .*Invalid UTF8"):
        tp.read(path, start="home", goals=["work"])
