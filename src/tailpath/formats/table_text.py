"""Long tables in files: the cells of `.csv`, which are texts, and those of `.parquet`, which have
types.
"""

from __future__ import annotations

import csv
import io
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from tailpath.errors import FormatError, ModelError
from tailpath.formats import text_files
from tailpath.formats.files import (
    brief,
    load_json,
    parse_number,
    read_bytes,
    shorten,
    text_bytes,
)
from tailpath.formats.headers import decode_name
from tailpath.formats.json_files import NameIndex
from tailpath.formats.registry import Reading
from tailpath.formats.text_files import SEPARATORS, TextFile, arrow
from tailpath.formats.writing import all_integers, encode_name, json_texts
from tailpath.graph import Array, FloatArray
from tailpath.model.cells import Categorical, Faults, OutcomeTable
from tailpath.model.ssp import Name

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_INTEGERS = re.compile(r"\[(?:0|-?[1-9][0-9]{0,17})(?:, ?(?:0|-?[1-9][0-9]{0,17}))*\]")
_JSON = re.compile(r'["\[{].*|true|false|null|-?[0-9].*', re.DOTALL)
#: Rows that are held as texts at a time.
BLOCK_ROWS = 500
_TRUE, _FALSE = ("1", "true", "yes", "x", "t"), ("", "0", "false", "no", "f")


class FileTable(OutcomeTable):
    """A table in a file. A cell is a text, or in Parquet a number or a truth value, too."""

    is_file = True
    error = FormatError

    def __init__(self, path: str, reading: Reading, data: bytes, names: Sequence[str]) -> None:
        self.path, self.one_based = path, reading.one_based
        self.file = TextFile(path, data, reading.progress)
        self.names = [name.strip() for name in names]
        if "idoutcome" in self.names:
            raise FormatError(
                f"{path}:1: a table with idoutcome describes a robust model, which cannot be read"
            )

    def called(self, chosen: Mapping[str, Any], intervals: bool) -> dict[str, Any]:
        try:
            return super().called(chosen, intervals)
        except ModelError as error:
            raise FormatError(f"{self.path}:1: {brief(str(error))}") from None

    def place(self, row: int) -> str:
        return f"{self.path}:{row + 1}"

    def row(self, row: int) -> str:
        return f"row {row + 1}"

    def name(self, cell: Any) -> Name:
        name = decode(cell.strip(), "") if isinstance(cell, str) else cell
        if type(name) is float and name.is_integer() and not isinstance(cell, str):
            name = int(name)
        if not self.one_based:
            return name
        if type(name) is not int or name < 1:
            raise FormatError(f"{shorten(str(cell))!r} does not count from 1")
        return name - 1

    def numbered(
        self, cells: Sequence[Any], place: Callable[[int], str]
    ) -> tuple[Sequence[Name], list[int]]:
        index = NameIndex("names")
        numbers = index.numbers(list(map(self.name, cells)), place)
        return index.names, numbers

    def number(self, cell: Any) -> float:
        return parse_number(str(cell).strip(), "")

    def numbers(self, cells: Sequence[Any]) -> FloatArray | None:
        if set(map(type, cells)) != {str}:
            return super().numbers(cells)
        try:
            return self.file.numbers([cell.strip() for cell in cells])
        except FormatError:
            return None

    def truth(self, cell: Any) -> bool:
        text = str(int(cell) if isinstance(cell, float) else cell).strip().lower()
        if text not in _TRUE + _FALSE:
            raise FormatError(f"{shorten(text)!r} is neither true nor false")
        return text in _TRUE

    def known(self, given: Any) -> Iterable[Any]:
        return (given, decode(given.strip(), self.path)) if isinstance(given, str) else (given,)


class TextTable(FileTable):
    """The rows of a CSV file. Its cells may be separated by semicolons, with decimal commas."""

    def __init__(self, path: str, reading: Reading) -> None:
        data = text_bytes(path, read_bytes(path))
        header = data.partition(b"\n")[0].decode()
        self.separator = max(SEPARATORS, key=header.count)
        self.decimal_commas = self.separator != ","
        self.line: Sequence[int] = ()
        try:
            names: list[str] = next(self._reader(io.StringIO(header, newline="")), [])
        except csv.Error as error:
            raise FormatError(f"{path}:1: {error}") from None
        super().__init__(path, reading, data, names)

    def _reader(self, stream: Iterable[str]) -> Any:
        return csv.reader(stream, strict=True, delimiter=self.separator)

    def place(self, row: int) -> str:
        return f"{self.path}:{self.line[row]}"

    def row(self, row: int) -> str:
        return f"line {self.line[row]}"

    def columns(self, called: Mapping[str, Any], faults: Faults) -> dict[str, Categorical]:
        at = {column: self.names.index(name) for column, name in called.items()}
        positions = sorted(set(at.values()))
        numbers: dict[int, dict[str, int]] = {
            position: defaultdict(count().__next__) for position in positions
        }
        codes: dict[int, list[Array]] = {position: [] for position in positions}
        self.line = array("q")
        rows = self._rows(self.line, faults)
        while block := list(zip(*islice(rows, BLOCK_ROWS))):
            for position, number in numbers.items():
                cells = block[position]
                some = np.fromiter(map(number.__getitem__, cells), np.int32, len(cells))
                codes[position].append(some)
        faults.refuse()
        self.file.data = b""  # a million states fill a gigabyte
        none = np.zeros(0, np.int32)
        found = {
            position: Categorical(np.concatenate([none, *codes[position]]), list(number))
            for position, number in numbers.items()
        }
        return {column: found[position] for column, position in at.items()}

    def _rows(self, at_line: array[int], faults: Faults) -> Iterator[Sequence[str]]:
        """The rows, without those that are empty; ragged ones are at fault."""
        file, width = self.file, len(self.names)
        stream, size = io.BytesIO(file.data), len(file.data)
        reader = self._reader(io.TextIOWrapper(stream, "utf-8", newline=""))
        next(reader, None)
        try:
            for row in filter(None, reader):
                at_line.append(reader.line_num)
                if len(row) != width:
                    message = f"{len(row)} columns, expected {width}"
                    faults.add(np.array([len(at_line) - 1]), message)
                    row = [*row, *[""] * width][:width]
                yield row
                if file.progress is not None and len(at_line) % BLOCK_ROWS == 0:
                    file.progress(stream.tell(), stream.tell() / size)
        except csv.Error as error:
            raise FormatError(f"{self.path}:{reader.line_num}: {error}") from None


class ArrowTable(FileTable):
    """The rows of a Parquet file, whose columns have types."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.table = text_files.read_parquet(path)
        super().__init__(path, reading, b"", self.table.column_names)

    def columns(self, called: Mapping[str, Any], faults: Faults) -> dict[str, Categorical]:
        at = {column: self.names.index(name) for column, name in called.items()}
        return {column: self._column(position) for column, position in at.items()}

    def _column(self, position: int) -> Categorical:
        pyarrow, compute = arrow(), arrow(".compute")
        column, types = self.table.column(position), pyarrow.types
        try:
            whole = column.combine_chunks()
            if not types.is_dictionary(column.type):
                whole = whole.dictionary_encode()
            cells, codes = whole.dictionary, whole.indices.cast(pyarrow.int64())
            typed = (types.is_string, types.is_integer, types.is_float64, types.is_boolean)
            if not any(kind(cells.type) for kind in typed):
                cells = cells.cast(pyarrow.string())  # a float of 32 bits as its shortest decimal
        except pyarrow.ArrowException:
            kind = f"{shorten(self.names[position])!r} of {shorten(str(column.type))}"
            message = f"{self.path}: the column {kind} holds neither texts nor numbers"
            raise FormatError(message) from None
        # What is null is an empty text, a cell of its own; of the others, those that rows have.
        codes = text_files.numbers(compute.fill_null(codes, len(cells)), np.int64)
        used, codes = np.unique(codes, return_inverse=True)
        listed = cells.take(
            pyarrow.array(used[used < len(cells)].tolist(), pyarrow.int64())
        ).to_pylist()
        return Categorical(codes, [*listed, *[""] * (len(used) - len(listed))])


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
