"""Runs on disk: what a study has finished, so that it can be killed at any time and go on where it
was.

A **Task** says what is asked; a **Run** is a task with its answer. A store is one SQLite file with
a table of runs, one of their points (atoms) and one of Monte Carlo simulations. A run and its rows
are written in one transaction when the run is finished, and only by the process that started the
study; the write-ahead log lets others read meanwhile.

`program` (version and hash of the source that computes) and `fingerprint` (hash of the model)
belong to the key of a run. An **edition** is the runs of one program on one model per problem, with
one discount and tolerance; readers see one edition at a time, and all others stay in the file.
"""

from __future__ import annotations

import csv
import io
import math
import os
import pathlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from tailpath.errors import OptionError, TailpathError
from tailpath.formats import write_bytes

FILE_NAME = "runs.sqlite"
#: Stored in the file as `PRAGMA user_version`; a change of the tables below needs a new number.
SCHEMA = 4
SQL_TYPE = {
    "str": "TEXT NOT NULL",
    "int": "INTEGER NOT NULL",
    "float": "REAL NOT NULL",
    "int | None": "INTEGER",
    "float | None": "REAL",
}


#: Of ForPECVaR: Algorithm 1, and the compiled one.
ENGINES = ("queue", "lattice")
#: How CVaRVILI was solved: of both, linear programs count.
INNER = ("", "greedy", "lp")
PYTHON_TYPE: dict[str, Any] = {"TEXT": str, "INTEGER": int, "REAL": float}


class StoreError(TailpathError):
    """A store cannot be opened, read or written, or is damaged."""


@dataclass(frozen=True)
class StudyTask:
    """What is asked: one method on one problem with one grid of atoms.

    `variant` says which variant of a method that has some, and `inner` how CVaRVILI is solved and
    timed; both are "" for others. `part` is "finer" for grids beside those of the study's design.
    """

    domain: str
    problem: str
    method: str
    variant: str
    inner: str
    atoms: int
    alpha0: float
    gamma: float = 1.0
    tolerance: float = 1e-3
    part: str = ""

    def __str__(self) -> str:
        how = ", ".join(word for word in (self.variant, self.inner) if word)
        return (
            f"{self.domain}/{self.problem} {self.method}{f' ({how})' if how else ''}, {self.atoms}"
            f" atoms from {self.alpha0:g}"
        )


@dataclass(frozen=True)
class AtomPoint:
    """One atom as the initial alpha: what the planner predicted, if it predicts anything, and what
    its policy delivers, exactly.

    `seconds` is the median time of several evaluations by the compiled engine, `least` and `most`
    how far they spread; the same of the queue, which is Algorithm 1, at alpha0 alone.
    """

    alpha: float
    predicted: float | None
    deployed: float
    var: float
    mean: float
    seconds: float
    least: float
    most: float
    expanded: int
    queue_seconds: float | None = None
    queue_least: float | None = None
    queue_most: float | None = None
    queue_expanded: int | None = None

    @property
    def prediction(self) -> float:
        """What was predicted, as a number: NaN where nothing was."""
        return math.nan if self.predicted is None else self.predicted


@dataclass(frozen=True)
class Simulation:
    """One Monte Carlo repetition seen at one alpha: the simulated CVaR beside the deployed one of
    the same policy. It had the time of an `engine` of ForPECVaR.
    """

    engine: str
    repetition: int
    seed: int
    alpha: float
    simulated: float
    deployed: float
    samples: int
    seconds: float


@dataclass(frozen=True)
class Answer:
    """The columns of a run beside its task.

    `plan_seconds` is the planning time, the median of `plan_calls` calls that took `plan_least` to
    `plan_most`; `seconds` is what the whole run took. `factor_sum` is the largest sum P xi of the
    policy. `lps` linear programs were solved in `lp_seconds`.
    """

    program: str
    fingerprint: str
    machine: str
    seconds: float
    plan_seconds: float | None = None
    plan_least: float | None = None
    plan_most: float | None = None
    plan_calls: int | None = None
    sweeps: int | None = None
    residual: float | None = None
    factor_sum: float | None = None
    lps: int | None = None
    lp_seconds: float | None = None


@dataclass(frozen=True)
class Run:
    task: StudyTask
    answer: Answer
    points: tuple[AtomPoint, ...] = ()
    simulations: tuple[Simulation, ...] = ()

    @property
    def planning_seconds(self) -> float | None:
        """The planning time; None where the linear programs that take it were not solved."""
        return None if self.task.inner == "greedy" else self.answer.plan_seconds

    @property
    def least_planning(self) -> float | None:
        """The same, the least of all calls, which other work of the machine disturbs least."""
        return None if self.planning_seconds is None else self.answer.plan_least


def columns(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)]


def _definition(kind: Any) -> str:
    return ", ".join(f"{field.name} {SQL_TYPE[str(field.type)]}" for field in fields(kind))


KEY = [*columns(StudyTask), "program", "fingerprint"]
#: The kinds of rows of each table, beside the number of the run, which is `id` in the first.
ROWS: dict[str, tuple[Any, ...]] = {
    "runs": (StudyTask, Answer),
    "points": (AtomPoint,),
    "simulations": (Simulation,),
}
#: What else each table says of its columns.
_NUMBER = "run INTEGER NOT NULL REFERENCES runs"
_BEGIN = {"runs": "id INTEGER PRIMARY KEY", "points": _NUMBER, "simulations": _NUMBER}
_UNIQUE = {
    "runs": f"UNIQUE ({', '.join(KEY)})",
    "points": "PRIMARY KEY (run, alpha)",
    "simulations": "PRIMARY KEY (run, engine, repetition, alpha)",
}
TABLES = [
    f"CREATE TABLE IF NOT EXISTS {table} ({_BEGIN[table]}, {', '.join(map(_definition, kinds))},"
    f" {_UNIQUE[table]})"
    for table, kinds in ROWS.items()
]


def table_columns(table: str) -> list[str]:
    """The columns of a table, the number of the run first."""
    of_rows = (name for kind in ROWS[table] for name in columns(kind))
    return ["id" if table == "runs" else "run", *of_rows]


@dataclass(frozen=True)
class Edition:
    """The runs of one program on one model per problem: `fingerprints` maps (domain, problem) to
    the model's hash.
    """

    program: str
    fingerprints: Mapping[tuple[str, str], str]
    gamma: float = 1.0
    tolerance: float = 1e-3

    def holds(self, task: StudyTask, program: str, fingerprint: str) -> bool:
        same = (program, task.gamma, task.tolerance) == (self.program, self.gamma, self.tolerance)
        return same and self.fingerprints.get((task.domain, task.problem)) == fingerprint


class Store:
    """The runs in one folder. Use it as a context manager; a store that is only read is never
    created.
    """

    def __init__(self, folder: str | os.PathLike[str], *, create: bool = False) -> None:
        self.folder = pathlib.Path(folder)
        self.path = self.folder / FILE_NAME
        if create:
            self.folder.mkdir(parents=True, exist_ok=True)
        elif not self.path.is_file():
            raise StoreError(
                f"{self.folder}: no stored runs here; 'tailpath study --out {self.folder}' makes"
                " them"
            )
        with self._explained():
            # Reading needs no right to write. Where the folder gives none, nobody can be writing,
            # and the locks it has no room for are not needed.
            writable = os.access(self.folder, os.W_OK) and os.access(self.path, os.W_OK)
            way = "mode=rwc" if create else "mode=rw" if writable else "mode=ro&immutable=1"
            self._base = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?{way}", timeout=60, uri=True
            )
            self._base.execute("PRAGMA foreign_keys = ON")
            self._prepare(create)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self._base.close()

    def add(self, run: Run) -> None:
        """Write a finished run, all of it or nothing. A run that another process has written
        meanwhile stays as it is.
        """
        with self._explained(), self._base:
            row = [None, *_values(run.task), *_values(run.answer)]
            cursor = self._base.execute(_insert("runs", "OR IGNORE"), row)
            if cursor.rowcount:
                for table, rows in (("points", run.points), ("simulations", run.simulations)):
                    self._base.executemany(
                        _insert(table), [[cursor.lastrowid, *_values(row)] for row in rows]
                    )

    def runs(self, edition: Edition | None = None) -> list[Run]:
        """The finished runs of an edition, or of all, in the order in which they were finished."""
        parts: dict[str, dict[int, list[Any]]] = {"points": {}, "simulations": {}}
        for table, of_run in parts.items():
            for number, *values in self._rows(table):
                of_run.setdefault(number, []).append(ROWS[table][0](*values))
        split, runs = len(columns(StudyTask)), []
        for number, *values in self._rows("runs"):
            task, answer = StudyTask(*values[:split]), Answer(*values[split:])
            if edition is None or edition.holds(task, answer.program, answer.fingerprint):
                points, simulated = (tuple(of_run.get(number, ())) for of_run in parts.values())
                if not points and not simulated:
                    raise StoreError(f"{self.path}: damaged: run {number} has no points")
                runs.append(Run(task, answer, points, simulated))
        return runs

    def finished(self, edition: Edition) -> set[StudyTask]:
        """The tasks of an edition that need not be done again."""
        return {key[0] for key in self._keys().values() if edition.holds(*key)}

    def others(self, edition: Edition) -> int:
        """How many stored runs belong to other editions."""
        return sum(not edition.holds(*key) for key in self._keys().values())

    def entitle(self, title: str) -> None:
        """Keep the title of the design that was run last, for the report."""
        with self._explained(), self._base:
            self._base.execute("CREATE TABLE IF NOT EXISTS titles (title TEXT NOT NULL)")
            self._base.execute("DELETE FROM titles")
            self._base.execute("INSERT INTO titles VALUES (?)", [title])

    @property
    def title(self) -> str:
        named = self._asked("SELECT count(*) FROM sqlite_master WHERE name = 'titles'")[0][0]
        found = self._asked("SELECT title FROM titles") if named else []
        return str(found[0][0]) if found else ""

    def latest(self) -> Edition:
        """The edition that was written last, for readers that do not compute and so have no edition
        of their own.
        """
        keys = list(self._keys().values())
        if not keys:
            raise StoreError(f"{self.path}: there are no finished runs yet")
        last, program, _ = keys[-1]
        return self.widened(Edition(program, {}, last.gamma, last.tolerance))

    def widened(self, edition: Edition) -> Edition:
        """The edition with all other problems that the store has of its program, so that a slice is
        shown with what was computed before.
        """
        known = {
            (task.domain, task.problem): mark
            for task, program, mark in self._keys().values()
            if program == edition.program
        }
        return replace(edition, fingerprints={**known, **edition.fingerprints})

    def export(self, kind: str, edition: Edition) -> list[pathlib.Path]:
        """Write the three tables of an edition as `csv` or `parquet` files beside the store; `run`
        in the others is `id` in runs.
        """
        if kind not in ("csv", "parquet"):
            raise OptionError(f"cannot export {kind!r}; use 'csv' or 'parquet'")
        chosen = {number for number, key in self._keys().items() if edition.holds(*key)}
        written = []
        for table in ROWS:
            path = self.folder / f"{table}.{kind}"
            rows = [row for row in self._rows(table) if row[0] in chosen]
            if kind == "csv":
                write_rows(path, [table_columns(table), *rows])
            else:
                _write_parquet(path, table, rows)
            written.append(path)
        return written

    # ------------------------------------------------------------------ inside

    def _prepare(self, create: bool) -> None:
        version = self._base.execute("PRAGMA user_version").fetchone()[0]
        empty = not self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if empty and create:
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("BEGIN IMMEDIATE")
            with self._base:  # another process may have made them meanwhile
                for statement in TABLES:
                    self._base.execute(statement)
                self._base.execute(f"PRAGMA user_version = {SCHEMA}")
        elif version != SCHEMA or empty:
            raise StoreError(
                f"{self.path}: not a store of this version of the program (schema {version},"
                f" expected {SCHEMA}); use another folder"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:
            raise StoreError(f"{self.path}: {error}") from error

    def _asked(self, query: str) -> list[tuple[Any, ...]]:
        with self._explained():
            return self._base.execute(query).fetchall()

    def _keys(self) -> dict[int, tuple[StudyTask, str, str]]:
        """What makes each run different from all others, by its number."""
        end = len(columns(StudyTask)) + 1
        return {
            row[0]: (StudyTask(*row[1:end]), row[end], row[end + 1]) for row in self._rows("runs")
        }

    def _rows(self, table: str) -> list[tuple[Any, ...]]:
        """All rows of a table, in the order in which they were written, each value looked at."""
        names = table_columns(table)
        rows = self._asked(f"SELECT {', '.join(names)} FROM {table} ORDER BY rowid")
        kinds = dict(
            zip(names[1:], (str(one.type) for kind in ROWS[table] for one in fields(kind)))
        )
        for number, *values in rows:
            for (name, kind), value in zip(kinds.items(), values):
                if not _is_sound(name, SQL_TYPE[kind], value):
                    raise StoreError(
                        f"{self.path}: damaged: {name} = {value!r} of run {number} in {table}"
                    )
        return rows


def _is_sound(name: str, kind: str, value: Any) -> bool:
    """Whether a value can be what its column says."""
    if value is None:
        return "NOT NULL" not in kind
    sound = isinstance(value, PYTHON_TYPE[kind.split()[0]])
    if sound and name in ("alpha", "alpha0"):
        return bool(0 < value <= 1)
    return sound and (name != "inner" or value in INNER)


def _insert(table: str, conflict: str = "") -> str:
    names = table_columns(table)
    return (
        f"INSERT {conflict} INTO {table} ({', '.join(names)}) VALUES"
        f" ({', '.join('?' * len(names))})"
    )


def _values(row: Any) -> list[Any]:
    return [getattr(row, name) for name in columns(type(row))]


def write_rows(path: pathlib.Path, rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_bytes(path, text.getvalue().encode())


#: What a missing package is answered with.
NEEDS_PYARROW = "parquet files need pyarrow: pip install 'tailpath[parquet]'"


def _write_parquet(path: pathlib.Path, table: str, rows: Sequence[Sequence[Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise OptionError(NEEDS_PYARROW) from None
    arrow = {"TEXT": pyarrow.string(), "INTEGER": pyarrow.int64(), "REAL": pyarrow.float64()}
    kinds = [SQL_TYPE[str(field.type)].split()[0] for kind in ROWS[table] for field in fields(kind)]
    # Columns keep their types where all their values are missing, or where there are no rows.
    arrays = [
        pyarrow.array([row[k] for row in rows], arrow[kind])
        for k, kind in enumerate(["INTEGER", *kinds])
    ]
    content = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays, names=table_columns(table)), content)
    write_bytes(path, content.getvalue())
