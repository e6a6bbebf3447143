"""The text of a long table: its columns, its names, its numbers. Small tables are read row by row,
large ones many rows at a time (`bulk.py`)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError, ModelError
from tailpath.formats import bulk, parquet
from tailpath.formats.files import brief, load_json, read_bytes, shorten, text_bytes
from tailpath.formats.names import (
    all_integers,
    decode_name,
    decode_names,
    encode_name,
    json_texts,
    truth_values,
)
from tailpath.formats.reading import Reading
from tailpath.formats.text import BLOCK, NumberParser, after, as_they_appear
from tailpath.model.cost_units import as_fraction, common_unit
from tailpath.model.ssp import Name
from tailpath.model.tables import INTERVALS, PRICES, columns_called, has_intervals, times_of

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_INTEGERS = re.compile(r"\[(?:0|-?[1-9][0-9]{0,17})(?:, ?(?:0|-?[1-9][0-9]{0,17}))*\]")
_JSON = re.compile(r'["\[{].*|true|false|null|-?[0-9].*', re.DOTALL)
Columns = tuple[NDArray[Any], ...]
Rows = Iterator[tuple[int, Sequence[str]]]


class Names:
    """Names and their numbers, as they appear; a cell is understood once."""

    def __init__(self, path: str, one_based: bool) -> None:
        self.path, self.one_based = path, one_based
        self.number_of_cell: dict[str, int] = {}
        self.number: dict[Name, int] = {}
        self.first: list[Name] = []

    def numbers(self, cells: Iterable[str], lines: Iterable[int], count: int) -> NDArray[np.int32]:
        """The numbers of cells, whose lines are for messages."""
        known = self.number_of_cell
        for cell, line in zip(cells := list(cells), lines):
            if cell not in known:
                self._enter(cell, self._name(cell, line), line)
        return np.fromiter(map(known.__getitem__, cells), np.int32, count)

    def of(self, words: bulk.Words) -> NDArray[np.int32]:
        """The numbers of a column, (n,), whose lines do not matter: refusals are read again."""
        order = as_they_appear(words.number, len(words.texts))
        cells, known = [words.texts[position] for position in order.tolist()], self.number_of_cell
        new = list(dict.fromkeys(cell for cell in cells if cell not in known))
        # New names are understood all at once where they are alike.
        names = [] if self.one_based else _alike(new)
        for cell, name in zip(new, names or (self._name(cell, 0) for cell in new)):
            self._enter(cell, name, 0)
        number = np.full(len(words.texts), -1, dtype=np.int32)
        number[order] = np.fromiter(map(known.__getitem__, cells), np.int32, len(cells))
        return np.asarray(number[words.number])

    def _enter(self, cell: str, name: Name, line: int) -> None:
        number = self.number_of_cell[cell] = self.number.setdefault(name, len(self.number))
        if number == len(self.first):
            self.first.append(name)
        elif truth_values(name) != truth_values(self.first[number]):
            raise FormatError(
                f"{self.path}:{line}: {shorten(cell)} and {self.first[number]!r} would be one name"
            )

    def ordered(self, *columns: NDArray[Any]) -> tuple[Sequence[Name], list[NDArray[Any]]]:
        """The names in their final order, and columns of numbers as indices there: integers are
        sorted.
        """
        names: list[Any] = list(self.number)
        if not all(type(name) is int for name in names):
            return tuple(names), list(columns)
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        ordered = tuple(sorted(names))
        return range(len(names)) if ordered == tuple(range(len(names))) else ordered, [
            rank[column] for column in columns
        ]

    def _name(self, cell: str, line: int) -> Name:
        name = decode(cell.strip(), f"{self.path}:{line}")
        if not self.one_based:
            return name
        if type(name) is not int or name < 1:
            raise FormatError(f"{self.path}:{line}: {shorten(cell)!r} does not count from 1")
        return name - 1


class LongTable:
    """The columns of the file: states and actions by number, and the line of each row; in a Parquet
    file rows are `counted` instead. `chances` are those of probabilities, under the names
    in `given_by`; there are none in a log of steps."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.path, self.one_based, self.progress = path, reading.one_based, reading.progress
        self.columns = reading.table_columns()
        self.is_log = reading.confidence is not None
        self.given_by: tuple[str, ...] = ()
        self.width = 0
        self.line: Sequence[int] = ()
        is_parquet = path.lower().endswith(".parquet")
        self.counted = "row" if is_parquet else "line"
        columns = self._parquet() if is_parquet else self._text()
        self.source, self.target, self.action, self.price, *self.chances = columns

    def _text(self) -> Columns:
        data = text_bytes(self.path, read_bytes(self.path))
        found = bulk.attempt(data, lambda: self._cut(data))
        return found or self._read(self._rows_of(data.decode()))

    def _parquet(self) -> Columns:
        table = parquet.read_parquet(self.path)
        at = self._header(table.column_names)
        positions = sorted(set(at.values()) - {self.width})
        texts = parquet.texts(self.path, table, positions)
        try:
            batches = (map(bulk.Words.of, batch.columns) for batch in texts.to_batches())
            found = self._joined(
                self._numbered(at, dict(zip(positions, words))) for words in batches
            )
        except FormatError:  # row by row, to find the one at fault
            cells: list[Iterable[str]] = [repeat("")] * self.width
            for position in positions:
                cells[position] = texts[str(position)].to_pylist()
            return self._read(enumerate(chain([table.column_names], zip(*cells))))
        self.line = range(1, 1 + len(found[0]))
        return found

    def _joined(self, blocks: Iterable[Columns]) -> Columns:
        """The columns of all blocks together."""
        columns = tuple(np.concatenate(column) for column in zip(*blocks))
        if not columns:
            raise FormatError(f"{self.path}: the table has no rows")
        return columns

    def _header(self, words: Sequence[str]) -> dict[str, int]:
        """Where each column stands; cost or reward is the `price`. What was read is forgotten."""
        self.states = Names(self.path, self.one_based)
        self.actions = Names(self.path, self.one_based)
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
        at["price"] = next(at[column] for column in PRICES if column in at)
        self.times = dict(at) if "times" in at else {}
        if "times" in at:  # their probability has a column of its own, the last
            at["probability"] = self.width
        self.given_by = next((ways for ways in INTERVALS if all(way in at for way in ways)), ())
        self.marks: dict[str, Any] = {mark: [] for mark in ("goal", "start") if mark in at}
        return at

    # ------------------------------------------------------------------ all rows at once

    def _cut(self, data: bytes) -> Columns:
        """State, target, action, price and chances of all rows of plain text."""
        begin = after(data, 1)
        at = self._header(next(csv.reader([data[:begin].decode()], strict=True), []))
        kinds = ["word" if position in at.values() else "" for position in range(self.width)]
        blocks = []
        for lines in bulk.pieces(data, begin, self.progress):
            lines.refuse_quotes()
            words = lines.columns(np.ones(lines.n_lines, dtype=np.bool_), ",", kinds)
            blocks.append(self._numbered(at, dict(zip(sorted(set(at.values())), words))))
        found = self._joined(blocks)
        self.line = range(2, 2 + len(found[0]))
        return found

    def _numbered(self, at: Mapping[str, int], words: Mapping[int, bulk.Words]) -> Columns:
        """The same columns of some rows, whose texts are given by the index of their column."""
        if self.times:
            raise FormatError(f"{self.path}: rows with times are taken apart one by one")
        numbers = NumberParser(self.path)

        def truths(texts: list[str]) -> NDArray[np.bool_]:
            return np.array([_truth(text, self.path) for text in texts])

        source, target, price = (words[at[column]] for column in ("state", "next_state", "price"))
        # Row by row, so that states count as they appear.
        pairs = np.stack([source.number, target.number + len(source.texts)], axis=1)
        states = self.states.of(bulk.Words(pairs.ravel(), source.texts + target.texts))
        actions = self.actions.of(words[at["action"]] if "action" in at else target)
        self.fractions.update(text.strip() for text in price.texts if "/" in text)
        for mark, marked in self.marks.items():
            marked.extend(words[at[mark]].understood(truths).tolist())
        chances = (words[at[column]].understood(numbers.of) for column in self.given_by)
        return states[::2], states[1::2], actions, price.understood(numbers.of), *chances

    # ------------------------------------------------------------------ row by row

    def _rows_of(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """The rows of a text with their lines, the header first."""
        stream = io.StringIO(text, newline="")
        reader = csv.reader(stream, strict=True)
        try:
            for number, row in enumerate(reader, start=1):
                yield reader.line_num, row
                if self.progress is not None and number % BLOCK == 0:
                    self.progress(stream.tell(), stream.tell() / len(text))
        except csv.Error as error:
            raise FormatError(f"{self.path}:{reader.line_num}: {error}") from None

    def _read(self, rows: Rows) -> Columns:
        """State, target, action, price and chances of all rows, the header first."""
        return self._joined(self._blocks(self._header(next(rows, (1, ()))[1]), self._full(rows)))

    def _full(self, rows: Rows) -> Rows:
        for line, row in rows:
            if row and len(row) != self.width:
                raise FormatError(f"{self.path}:{line}: {len(row)} columns, expected {self.width}")
            if row:
                yield from ((line, each) for each in self._unfolded(line, row))

    def _unfolded(self, line: int, row: Sequence[str]) -> Iterator[Sequence[str]]:
        """The row, or one for each different time of it."""
        if not self.times:
            yield row
            return
        cells = {column: row[position] for column, position in self.times.items()}
        try:
            found = times_of(cells)
            chance = as_fraction(cells.get("probability", "1").strip())
        except (ModelError, ValueError, ZeroDivisionError) as error:
            raise FormatError(f"{self.path}:{line}: {brief(str(error))}") from None
        for time, share in found.items():
            each = [*row, str(share * chance)]
            each[self.times["times"]] = str(time)
            yield each

    def _blocks(self, at: Mapping[str, int], rows: Rows) -> Iterator[Columns]:
        numbers = NumberParser(self.path)
        at_line: list[int] = []
        self.line = at_line
        while block := list(islice(rows, BLOCK)):
            lines = [line for line, _ in block]
            columns = list(zip(*(row for _, row in block)))
            source, target, price = (
                columns[at["state"]],
                columns[at["next_state"]],
                columns[at["price"]],
            )
            # Row by row, so that states count as they appear whatever the size of a block.
            pairs = self.states.numbers(
                chain.from_iterable(zip(source, target)),
                chain.from_iterable(zip(lines, lines)),
                2 * len(lines),
            )
            self.fractions.update(text.strip() for text in price if "/" in text)
            at_line.extend(lines)
            actions = self.actions.numbers(
                columns[at["action"]] if "action" in at else target, lines, len(lines)
            )
            for mark, marked in self.marks.items():
                marked.extend(
                    _truth(text, f"{self.path}:{line}: {mark}")
                    for text, line in zip(columns[at[mark]], lines)
                )
            chances = (numbers.numbers(columns[at[column]], lines) for column in self.given_by)
            yield pairs[::2], pairs[1::2], actions, numbers.numbers(price, lines), *chances

    def exact_unit(self, costs: NDArray[np.float64]) -> Fraction | None:
        """The unit of costs some of which are written as fractions, which floats cannot hold."""
        if not self.fractions:
            return None
        exact = {float(Fraction(text)): Fraction(text) for text in self.fractions}
        return common_unit(exact.get(cost, cost) for cost in np.unique(costs).tolist())


def _alike(cells: list[str]) -> list[Any]:
    """The names that cells stand for if all are whole numbers, or all lists of simple things; else
    none.

    They are one text to JSON. Of n cells in brackets with n brackets in all, each is a list; n
    lists, or n whole numbers, are those of the cells.
    """
    if not cells:
        return []
    text = "\n".join(cells)
    lists = text.startswith("[")
    brackets = [text.count(part) for part in ("\n[", "[", "]\n", "]")]
    if lists and not (text.endswith("]") and brackets == 2 * [len(cells) - 1, len(cells)]):
        return []
    try:
        values = load_json(f"[{text.replace(chr(10), ',')}]", "")
    except FormatError:
        return []
    if len(values) != len(cells) or set(map(type, values)) != {list if lists else int}:
        return []
    return list(decode_names(values, len(values), "")) if lists else values


def decode(cell: str, where: str) -> Name:
    """The name that a cell stands for."""
    if not cell:
        raise FormatError(f"{where}: a name is empty")
    if _INTEGER.fullmatch(cell):
        return int(cell)
    if _INTEGERS.fullmatch(cell):
        return tuple(map(int, cell[1:-1].split(",")))
    if not _JSON.fullmatch(cell):
        return cell
    try:
        value = load_json(cell, where)
    except FormatError:
        return cell  # a text that only begins like JSON
    return decode_name(value, where)


def encode(name: Name) -> str:
    """The cell that stands for a name."""
    plain = name if isinstance(name, str) else str(name) if type(name) is int else ""
    if plain and plain == plain.strip() and plain.isprintable():
        back = decode(plain, "")
        if back == name and type(back) is type(name):
            return plain
    return json.dumps(encode_name(name))


def encode_all(names: Sequence[Name]) -> list[str]:
    """The cells of many names."""
    return json_texts(names) if all_integers(names) else [encode(name) for name in names]


def _truth(text: str, where: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "true", "yes", "x", "t"):
        return True
    if word in ("", "0", "false", "no", "f"):
        return False
    raise FormatError(f"{where}: {shorten(text)!r} is neither true nor false")
