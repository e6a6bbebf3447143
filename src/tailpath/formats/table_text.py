"""The text of a long table: its columns, names and numbers. Small tables are read some rows at a
time, large ones many; either way each different text of a column is parsed once.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np

from tailpath.errors import FormatError, ModelError
from tailpath.formats import text_files
from tailpath.formats.files import (
    brief,
    decode_name,
    load_json,
    read_bytes,
    shorten,
    text_bytes,
)
from tailpath.formats.json_files import NameIndex
from tailpath.formats.registry import Reading
from tailpath.formats.text_files import BLOCK_ROWS, Categorical, TextFile, after, as_they_appear
from tailpath.formats.writing import all_integers, encode_name, json_texts
from tailpath.graph import Array, BoolArray, FloatArray
from tailpath.model.columns import COST_COLUMNS, INTERVALS, columns_called, has_intervals
from tailpath.model.cost_units import as_fraction, common_unit
from tailpath.model.ssp import Name
from tailpath.model.tables import times_of

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_INTEGERS = re.compile(r"\[(?:0|-?[1-9][0-9]{0,17})(?:, ?(?:0|-?[1-9][0-9]{0,17}))*\]")
_JSON = re.compile(r'["\[{].*|true|false|null|-?[0-9].*', re.DOTALL)
TableColumns = tuple[Array, ...]
NumberedRows = Iterator[tuple[int, Sequence[str]]]
_TRUE, _FALSE = ("1", "true", "yes", "x", "t"), ("", "0", "false", "no", "f")


class CellNames:
    """Names and their numbers, as they appear; a cell is parsed once."""

    def __init__(self, file: TextFile, one_based: bool) -> None:
        self.file, self.one_based = file, one_based
        self.number_of_cell: dict[str, int] = {}
        self.names = NameIndex("names")

    def of(self, words: Categorical) -> Array:
        order = as_they_appear(words.codes, len(words.categories)).tolist()
        cells, known = [words.categories[position] for position in order], self.number_of_cell
        new = list(dict.fromkeys(cell for cell in cells if cell not in known))
        names = [self._name(cell) for cell in new]
        line = f"{self.file.path}:{self.file.line}"
        known.update(zip(new, self.names.numbers(names, lambda _: line)))
        number = np.full(len(words.categories), -1, dtype=np.int32)
        number[order] = [known[cell] for cell in cells]
        return np.asarray(number[words.codes])

    def ordered(self, *columns: Array) -> tuple[Sequence[Name], list[Array]]:
        """The names in their final order, and columns of numbers as indices there: integers are
        sorted.
        """
        names: Any = self.names.names
        if not all(type(name) is int for name in names):
            return names, list(columns)
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        ordered = tuple(sorted(names))
        return range(len(names)) if ordered == tuple(range(len(names))) else ordered, [
            rank[column] for column in columns
        ]

    def _name(self, cell: str) -> Name:
        name = decode(cell.strip(), f"{self.file.path}:{self.file.line}")
        if not self.one_based:
            return name
        if type(name) is not int or name < 1:
            raise self.file.error(f"{shorten(cell)!r} does not count from 1")
        return name - 1


class LongTable:
    """The columns of the file: states and actions by number, and the line of each row, or its
    number in a Parquet file, which `row_noun` says. `probabilities` may be the ends of intervals,
    or counts, as `probability_names` says; there are none in a log of steps."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.path, self.one_based = path, reading.one_based
        self.columns = reading.table_columns()
        self.is_log = reading.confidence is not None
        self.probability_names: tuple[str, ...] = ()
        self.width = 0
        self.line: Sequence[int] = ()
        is_parquet = path.lower().endswith(".parquet")
        self.row_noun = "row" if is_parquet else "line"
        data = b"" if is_parquet else text_bytes(path, read_bytes(path))
        self.file = TextFile(path, data, reading.progress)
        columns = self._parquet() if is_parquet else self._text()
        self.source, self.target, self.action, self.amount, *self.probabilities = columns

    def _text(self) -> TableColumns:
        found = text_files.attempt(self.file.data, self._read_bulk)
        return found or self._read(self._rows_of(self.file.data.decode()))

    def _parquet(self) -> TableColumns:
        table = text_files.read_parquet(self.path)
        self._header(table.column_names)
        positions = sorted(set(self.at.values()) - {self.width})
        texts = text_files.parquet_texts(self.path, table, positions)
        try:
            batches = (map(text_files.categorical, batch.columns) for batch in texts.to_batches())
            found = self._concatenated(
                self._plain(dict(zip(positions, words))) for words in batches
            )
        except FormatError:  # row by row, to find the one at fault
            cells: list[Iterable[str]] = [repeat("")] * self.width
            for position in positions:
                cells[position] = texts[str(position)].to_pylist()
            return self._read(enumerate(chain([table.column_names], zip(*cells))))
        self.line = range(1, 1 + len(found[0]))
        return found

    def _concatenated(self, blocks: Iterable[TableColumns]) -> TableColumns:
        columns = tuple(np.concatenate(column) for column in zip(*blocks))
        if not columns:
            raise FormatError(f"{self.path}: the table has no rows")
        return columns

    def _header(self, words: Sequence[str]) -> None:
        """Where each column stands; cost or reward is the `amount`. What was read is forgotten."""
        self.states = CellNames(self.file, self.one_based)
        self.actions = CellNames(self.file, self.one_based)
        self.fractions: set[str] = set()
        names = [word.strip() for word in words]
        self.width = len(names)
        if "idoutcome" in names:
            raise FormatError(
                f"{self.path}:1: a table with idoutcome describes a robust model, which cannot"
                " be read"
            )
        try:
            intervals = self.is_log or has_intervals(names, self.columns)
            called = columns_called(names, self.columns, intervals)
        except ModelError as error:
            raise FormatError(f"{self.path}:1: {brief(str(error))}") from None
        at = {column: names.index(name) for column, name in called.items()}
        self.is_reward = "reward" in at
        at["amount"] = next(at[column] for column in COST_COLUMNS if column in at)
        self.times = dict(at) if "times" in at else {}
        if "times" in at:  # their probability has a column of its own, the last
            at["probability"] = self.width
        self.at = at
        self.probability_names = next(
            (ways for ways in INTERVALS if all(way in at for way in ways)), ()
        )
        self.marks: dict[str, Any] = {mark: [] for mark in ("goal", "start") if mark in at}

    def _read_bulk(self) -> TableColumns:
        """State, target, action, amount and probabilities of all rows of plain text."""
        data = self.file.data
        begin = after(data, 1)
        self._header(next(csv.reader([data[:begin].decode()], strict=True), []))
        positions = sorted(set(self.at.values()))
        kinds = ["word" if position in positions else "" for position in range(self.width)]
        blocks = []
        for lines in text_files.pieces(data, begin, self.file.progress):
            lines.refuse_quotes()
            words = lines.columns(np.ones(lines.n_lines, dtype=np.bool_), ",", kinds)
            blocks.append(self._plain(dict(zip(positions, words))))
        found = self._concatenated(blocks)
        self.line = range(2, 2 + len(found[0]))
        return found

    def _plain(self, words: Mapping[int, Categorical]) -> TableColumns:
        if self.times:
            raise FormatError(f"{self.path}: rows with times are taken apart one by one")
        return self._numbered(words)

    def _numbered(self, words: Mapping[int, Categorical]) -> TableColumns:
        """The columns of some rows, whose texts are given by the index of their column."""
        at, numbers = self.at, self.file.numbers
        source, target, amount = (words[at[column]] for column in ("state", "next_state", "amount"))
        # Row by row, so that states count as they appear whatever the size of a block.
        pairs = np.stack([source.codes, target.codes + len(source.categories)], axis=1)
        states = self.states.of(Categorical(pairs.ravel(), source.categories + target.categories))
        actions = self.actions.of(words[at["action"]] if "action" in at else target)
        self.fractions.update(text.strip() for text in amount.categories if "/" in text)
        columns = (amount, *(words[at[column]] for column in self.probability_names))
        found = (
            states[::2],
            states[1::2],
            actions,
            *(each.map(numbers) for each in columns),
        )
        for mark, marked in self.marks.items():
            marked.extend(words[at[mark]].map(partial(self._truths, mark)).tolist())
        return found

    def _truths(self, mark: str, texts: list[str]) -> BoolArray:
        for text in texts:
            if text.lower() not in _TRUE + _FALSE:
                raise self.file.error(f"{mark}: {shorten(text)!r} is neither true nor false")
        return np.array([text.lower() in _TRUE for text in texts])

    # ------------------------------------------------------------------ some rows at a time

    def _rows_of(self, text: str) -> NumberedRows:
        """The rows of a text with their lines, the header first."""
        stream = io.StringIO(text, newline="")
        reader, progress = csv.reader(stream, strict=True), self.file.progress
        try:
            for number, row in enumerate(reader, start=1):
                yield reader.line_num, row
                if progress is not None and number % BLOCK_ROWS == 0:
                    progress(stream.tell(), stream.tell() / len(text))
        except csv.Error as error:
            raise FormatError(f"{self.path}:{reader.line_num}: {error}") from None

    def _read(self, rows: NumberedRows) -> TableColumns:
        """The columns of all rows, the header first."""
        self._header(next(rows, (1, ()))[1])
        self.line = at_line = []
        blocks = []
        for lines, block in self.file.blocks(self._full_rows(rows), self._block):
            at_line += lines
            blocks.append(block)
        return self._concatenated(blocks)

    def _block(self, rows: list[Sequence[str]]) -> TableColumns:
        columns = list(zip(*rows))
        return self._numbered(
            {at: Categorical.from_texts(columns[at]) for at in set(self.at.values())}
        )

    def _full_rows(self, rows: NumberedRows) -> Iterator[Sequence[str]]:
        """The rows that are not empty, each as wide as the header; with times, one for each
        different time."""
        for line, row in rows:
            self.file.line = line
            if row and len(row) != self.width:
                raise self.file.error(f"{len(row)} columns, expected {self.width}")
            if row:
                yield from self._rows_per_time(row) if self.times else (row,)

    def _rows_per_time(self, row: Sequence[str]) -> Iterator[Sequence[str]]:
        """A row for each different time of one."""
        cells = {column: row[position] for column, position in self.times.items()}
        try:
            found = times_of(cells)
            probability = as_fraction(cells.get("probability", "1").strip())
        except (ModelError, ValueError, ZeroDivisionError) as error:
            raise self.file.error(brief(str(error))) from None
        for time, share in found.items():
            each = [*row, str(share * probability)]
            each[self.times["times"]] = str(time)
            yield each

    def exact_unit(self, costs: FloatArray) -> Fraction | None:
        """The unit of costs some of which are written as fractions, which floats cannot hold."""
        if not self.fractions:
            return None
        exact = {float(Fraction(text)): Fraction(text) for text in self.fractions}
        return common_unit(exact.get(cost, cost) for cost in np.unique(costs).tolist())


def decode(cell: str, location: str) -> Name:
    if not cell:
        raise FormatError(f"{location}: a name is empty")
    if _INTEGER.fullmatch(cell):
        return int(cell)
    if _INTEGERS.fullmatch(cell):
        return tuple(map(int, cell[1:-1].split(",")))
    if not _JSON.fullmatch(cell):
        return cell
    try:
        value = load_json(cell, location)
    except FormatError:
        return cell  # a text that only begins like JSON
    return decode_name(value, location)


def encode(name: Name) -> str:
    plain = name if isinstance(name, str) else str(name) if type(name) is int else ""
    if plain and plain == plain.strip() and plain.isprintable():
        back = decode(plain, "")
        if back == name and type(back) is type(name):
            return plain
    return json.dumps(encode_name(name))


def encode_all(names: Sequence[Name]) -> list[str]:
    return json_texts(names) if all_integers(names) else [encode(name) for name in names]
