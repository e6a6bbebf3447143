"""The text of a long table: its columns, its names, its numbers. Small tables are read row by row, large ones by compiled loops (`scanning.py`)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError, ModelError
from tailpath.formats.files import brief, load_json, read_bytes, read_text, shorten
from tailpath.formats.names import decode_name, decode_names, encode_name, json_texts, truth_values, wholes
from tailpath.formats.reading import Reading
from tailpath.formats.scanning import Book, ByteLines, OddError, cells_of, is_large
from tailpath.formats.text import BLOCK, Numbers
from tailpath.kernels.texts import MOST_TEXTS
from tailpath.model.cost_units import as_fraction, common_unit
from tailpath.model.ssp import Name
from tailpath.model.tables import PRICES, columns_called, times_of

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_WHOLES = re.compile(r"\[(?:0|-?[1-9][0-9]{0,17})(?:, ?(?:0|-?[1-9][0-9]{0,17}))*\]")
_JSON = re.compile(r'["\[{].*|true|false|null|-?[0-9].*', re.DOTALL)
Columns = tuple[NDArray[Any], ...]


class Names:
    """Names and their numbers, as they appear; a cell is understood once."""

    def __init__(self, path: str, one_based: bool) -> None:
        self.path, self.one_based = path, one_based
        self.number_of_cell: dict[str, int] = {}
        self.number: dict[Name, int] = {}
        self.first: list[Name] = []

    def numbers(self, cells: Iterable[str], lines: Iterable[int], count: int) -> NDArray[np.int32]:
        known = self.number_of_cell
        for cell, line in zip(cells := list(cells), lines):
            if cell not in known:
                name = self._name(cell, line)
                known[cell] = number = self.number.setdefault(name, len(self.number))
                if number == len(self.first):
                    self.first.append(name)
                elif truth_values(name) != truth_values(self.first[number]):
                    raise FormatError(f"{self.path}:{line}: {shorten(cell)} and {self.first[number]!r} would be one name")
        return np.fromiter(map(known.__getitem__, cells), np.int32, count)

    def numbers_of(self, cells: list[str]) -> NDArray[np.int32]:
        """The same for different cells, of which there may be a million: all at once where they are whole numbers, or lists as those of a grid."""
        names = [] if self.number or not cells else _alike(cells)
        if self.one_based:
            names = [name - 1 for name in names] if names and type(names[0]) is int and min(names) > 0 else []
        number = dict(zip(names, range(len(names))))
        if len(number) < len(cells):  # not alike, or two cells for one name
            return self.numbers(cells, repeat(0), len(cells))
        self.number, self.first = number, names
        return np.arange(len(names), dtype=np.int32)

    def ordered(self, *columns: NDArray[Any]) -> tuple[Sequence[Name], list[NDArray[Any]]]:
        """The names in their final order, and columns of numbers as places there: whole numbers are sorted."""
        names: list[Any] = list(self.number)
        if not all(type(name) is int for name in names):
            return tuple(names), list(columns)
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        ordered = tuple(sorted(names))
        return range(len(names)) if ordered == tuple(range(len(names))) else ordered, [rank[column] for column in columns]

    def _name(self, cell: str, line: int) -> Name:
        name = decode(cell.strip(), f"{self.path}:{line}")
        if not self.one_based:
            return name
        if type(name) is not int or name < 1:
            raise FormatError(f"{self.path}:{line}: {shorten(cell)!r} does not count from 1")
        return name - 1


class Table:
    """The columns of the file."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.path, self.one_based, self.progress = path, reading.one_based, reading.progress
        self.columns = reading.table_columns()
        data = read_bytes(path)
        columns = self._scanned(data) if is_large(data, reading, ascii_only=False) else None
        self.source, self.target, self.action, self.probability, self.price = columns or self._read(read_text(path, data))

    def _clear(self) -> None:
        self.states, self.actions = Names(self.path, self.one_based), Names(self.path, self.one_based)
        self.line: Sequence[int] = []
        self.fractions: set[str] = set()
        self.marks: dict[str, Any] = {}

    def _scanned(self, data: bytes) -> Columns | None:
        """State, target, action, probability and price of all rows of a large table, or `None` where something is odd or wrong."""
        self._clear()
        lines = ByteLines(data)
        header = next(lines)[1].removesuffix("\r")
        if '"' in header or "\r" in header or not header:
            return None
        at = self._header(header.split(","))
        if self.width > MOST_TEXTS or "times" in at:
            return None
        places = [at["state"], at["next_state"]]
        try:
            # The states of a row first, so that they count as they appear.
            book, cells = cells_of(data, lines.at, [*places, *(k for k in range(self.width) if k not in places)], self.progress)
            source, target = self._numbered(book, self.states, *cells[places])
            (action,) = self._numbered(book, self.actions, cells[at.get("action", at["next_state"])])
            price = cells[at["price"]]
            self.fractions.update(text.strip() for text in _unquoted(book.words(book.distinct(price)[0])) if "/" in text)
            for mark in self.marks:
                first, rank = book.distinct(cells[at[mark]])
                self.marks[mark] = np.array([_truth(text, self.path) for text in _unquoted(book.words(first))])[rank[cells[at[mark]]]]
            probability = self._parsed(book, cells[at["probability"]]) if "probability" in at else np.ones(len(action))
            prices = self._parsed(book, price)
        except (OddError, FormatError):
            return None
        self.line = range(2, 2 + len(action))
        return (source, target, action, probability, prices) if len(action) else None

    def _numbered(self, book: Book, names: Names, *columns: NDArray[Any]) -> list[NDArray[np.int32]]:
        first, rank = book.distinct(*columns)
        number = np.append(names.numbers_of(_unquoted(book.words(first))), np.int32(-1))[rank]
        return [number[texts] for texts in columns]

    def _parsed(self, book: Book, texts: NDArray[Any]) -> NDArray[np.float64]:
        return book.numbers(texts, lambda words: Numbers(self.path).numbers(_unquoted(words), range(len(words))))

    def _read(self, text: str) -> Columns:
        """The same columns, row by row."""
        self._clear()
        stream = io.StringIO(text, newline="")
        reader = csv.reader(stream, strict=True)
        try:
            blocks = []
            for block in self._blocks(reader):
                blocks.append(block)
                if self.progress is not None:
                    self.progress(stream.tell(), stream.tell() / len(text))
        except csv.Error as error:
            raise FormatError(f"{self.path}:{reader.line_num}: {error}") from None
        if not blocks:
            raise FormatError(f"{self.path}: the table has no rows")
        return tuple(np.concatenate(column) for column in zip(*blocks))

    def _blocks(self, reader: Any) -> Iterator[Columns]:
        """State, target, action, probability and price of many rows at a time."""
        at = self._header(next(reader, []))
        numbers = Numbers(self.path)
        at_line: list[int] = []
        self.line = at_line
        while block := list(islice(self._rows(reader), BLOCK)):
            lines = [line for line, _ in block]
            columns = list(zip(*(row for _, row in block)))
            source, target, price = columns[at["state"]], columns[at["next_state"]], columns[at["price"]]
            probability = columns[at["probability"]] if "probability" in at else ("1",) * len(lines)
            # Row by row, so that states count as they appear whatever the size of a block.
            pairs = self.states.numbers(chain.from_iterable(zip(source, target)), chain.from_iterable(zip(lines, lines)), 2 * len(lines))
            self.fractions.update(text.strip() for text in price if "/" in text)
            at_line.extend(lines)
            actions = self.actions.numbers(columns[at["action"]] if "action" in at else target, lines, len(lines))
            for mark, marked in self.marks.items():
                marked.extend(_truth(text, f"{self.path}:{line}: {mark}") for text, line in zip(columns[at[mark]], lines))
            yield pairs[::2], pairs[1::2], actions, numbers.numbers(probability, lines), numbers.numbers(price, lines)

    def _header(self, words: list[str]) -> dict[str, int]:
        """Where each column stands; cost or reward is the `price`."""
        names = [word.strip() for word in words]
        self.width = len(names)
        if "idoutcome" in names:
            raise FormatError(f"{self.path}:1: a table with idoutcome describes a robust model, which is none of ours")
        try:
            called = columns_called(names, self.columns)
        except ModelError as error:
            raise FormatError(f"{self.path}:1: {brief(str(error))}") from None
        at = {column: names.index(name) for column, name in called.items()}
        self.is_reward = "reward" in at
        at["price"] = next(at[column] for column in PRICES if column in at)
        self.times = dict(at) if "times" in at else {}
        if "times" in at:  # their probability has a column of its own, the last
            at["probability"] = self.width
        self.marks = {mark: [] for mark in ("goal", "start") if mark in at}
        return at

    def _rows(self, reader: Any) -> Iterator[tuple[int, list[str]]]:
        for row in reader:
            if row and len(row) != self.width:
                raise FormatError(f"{self.path}:{reader.line_num}: {len(row)} columns, expected {self.width}")
            if row:
                yield from ((reader.line_num, each) for each in self._unfolded(reader.line_num, row))

    def _unfolded(self, line: int, row: list[str]) -> Iterator[list[str]]:
        """The row, or one for each different time of it."""
        if not self.times:
            yield row
            return
        cells = {column: row[place] for column, place in self.times.items()}
        try:
            found = times_of(cells)
            chance = as_fraction(cells.get("probability", "1").strip())
        except (ModelError, ValueError, ZeroDivisionError) as error:
            raise FormatError(f"{self.path}:{line}: {brief(str(error))}") from None
        for time, share in found.items():
            each = [*row, str(share * chance)]
            each[self.times["times"]] = str(time)
            yield each

    def exact_unit(self, costs: NDArray[np.float64]) -> Fraction | None:
        """The unit of costs some of which are written as fractions, which floats cannot hold."""
        if not self.fractions:
            return None
        exact = {float(Fraction(text)): Fraction(text) for text in self.fractions}
        return common_unit(exact.get(cost, cost) for cost in np.unique(costs).tolist())


def _unquoted(cells: list[str]) -> list[str]:
    """The cells of one line each, without the quotes around them."""
    return [cell[1:-1].replace('""', '"') if cell.startswith('"') else cell for cell in cells]


def _alike(cells: list[str]) -> list[Any]:
    """The names that cells stand for if all are whole numbers, or all lists of simple things; else none.

    They are one text to JSON. Of n cells in brackets with n brackets in all, each is a list; n lists, or n whole numbers, are those of the cells.
    """
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
    if _WHOLE.fullmatch(cell):
        return int(cell)
    if _WHOLES.fullmatch(cell):
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
    return json_texts(names) if wholes(names) else [encode(name) for name in names]


def _truth(text: str, where: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "true", "yes", "x", "t"):
        return True
    if word in ("", "0", "false", "no", "f"):
        return False
    raise FormatError(f"{where}: {shorten(text)!r} is neither true nor false")
