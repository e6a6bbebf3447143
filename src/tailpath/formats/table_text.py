"""Long tables in files: the cells of `.csv`, which are texts, and those of `.parquet`, which have
types.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.archives import unpacked_limit
from tailpath.formats.files import (
    load_json,
    parse_number,
    read_bytes,
    shorten,
    text_bytes,
)
from tailpath.formats.headers import decode_name
from tailpath.formats.json_files import NameIndex
from tailpath.formats.registry import Reading
from tailpath.formats.text_files import TextFile, read_at_once
from tailpath.formats.writing import encode_name
from tailpath.graph import Array, FloatArray
from tailpath.model.cells import Categorical, Faults, OutcomeTable
from tailpath.model.ssp import Name
from tailpath.registers import module_of

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_INTEGERS = re.compile(r"\[(?:0|-?[1-9][0-9]{0,17})(?:, ?(?:0|-?[1-9][0-9]{0,17}))*\]")
_JSON = re.compile(r'["\[{].*|true|false|null|-?[0-9].*', re.DOTALL)
_BREAK = re.compile(r"\r\n?|\n")
#: Rows that are held as texts at a time.
BLOCK_ROWS = 500
#: The separators that cells may have.
SEPARATORS = (",", ";", "\t", "|")
_TRUE, _FALSE = ("1", "true", "yes", "x", "t"), ("", "0", "false", "no", "f")


class FileTable(OutcomeTable):
    """A table in a file. A cell is a text, or in Parquet a number or a truth value, too."""

    is_file = True
    error = FormatError

    def __init__(self, path: str, reading: Reading, data: bytes, names: Sequence[str]) -> None:
        self.path, self.one_based, self.header = path, reading.one_based, f"{path}:1: "
        self.file = TextFile(path, data, reading.progress)
        self.names = [name.strip() for name in names]
        if "idoutcome" in self.names:
            raise FormatError(
                f"{path}:1: a table with idoutcome describes a robust model, which cannot be read"
            )

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
            raise FormatError(
                f"{shorten(str(cell))!r} is not a whole number of at least 1;"
                " names that count from 1 must be one"
            )
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
        # Signs in exponents are fine, so no sign needs the strict reader.
        rows = read_at_once(cells, [("number", np.float64)], self.number, signs="")
        return None if rows is None else np.asarray(rows["number"])

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
        self.line: Any = ()
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
        lines: list[Array] = []
        for rows, at_lines in self._rows():
            wide = {len(row) for row in rows} - {len(self.names)}
            for k, row in enumerate(rows) if wide else ():
                if len(row) != len(self.names):
                    message = f"{len(row)} columns, expected {len(self.names)}"
                    faults.add(np.array([sum(map(len, lines)) + k]), message)
                    rows[k] = [*row, *[""] * len(self.names)][: len(self.names)]
            lines.append(at_lines)
            columns = list(zip(*rows))
            for position, number in numbers.items():
                some = map(number.__getitem__, columns[position])
                codes[position].append(np.fromiter(some, np.int32, len(rows)))
        none = np.zeros(0, np.int32)
        self.line = np.concatenate([none, *lines])
        faults.refuse()
        self.file.data = b""  # a million states fill a gigabyte
        found = {
            position: Categorical(np.concatenate([none, *codes[position]]), list(number))
            for position, number in numbers.items()
        }
        return {column: found[position] for column, position in at.items()}

    def _rows(self) -> Iterator[tuple[list[list[str]], Array]]:
        """The rows that are not empty, some at a time, with the line on which each ends."""
        file, size = self.file, len(self.file.data)
        stream = io.BytesIO(file.data)
        reader = self._reader(io.TextIOWrapper(stream, "utf-8", newline=""))
        try:
            next(reader, None)
            before = reader.line_num
            while block := list(islice(reader, BLOCK_ROWS)):
                lines = np.arange(before + 1, before + 1 + len(block), dtype=np.int32)
                if reader.line_num > lines[-1]:  # cells of several lines
                    breaks = [sum(len(_BREAK.findall(cell)) for cell in row) for row in block]
                    lines += np.cumsum(breaks, dtype=np.int32)
                before = reader.line_num
                rows = [row for row in block if row]
                if rows:
                    yield rows, lines[list(map(bool, block))]
                if file.progress is not None:
                    file.progress(stream.tell(), stream.tell() / size)
        except csv.Error as error:
            raise FormatError(f"{self.path}:{reader.line_num}: {error}") from None


class ArrowTable(FileTable):
    """The rows of a Parquet file, whose columns have types."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.arrow: Any = (pyarrow := module_of("pyarrow", "parquet"))
        data = read_bytes(path)
        if not data:
            raise FormatError(f"{path}: the file is empty")
        try:
            file = module_of("pyarrow.parquet", "parquet").ParquetFile(pyarrow.BufferReader(data))
            shape = file.metadata
            groups = map(shape.row_group, range(shape.num_row_groups))
            # A run of equal cells takes no room in the file, but it does in memory.
            cells = 8 * shape.num_rows * shape.num_columns
            size = max(cells, sum(group.total_byte_size for group in groups))
            if size > unpacked_limit(len(data)):
                allowed = f"too many for a file of {len(data)}"
                raise FormatError(f"{path}: unpacks to {size} bytes, {allowed}")
            self.table = file.read(use_threads=False)
            self.table.validate(full=True)  # texts in UTF-8, and indices that lie inside
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            message = f"{path}: this is not a Parquet file: {shorten(str(error))}"
            raise FormatError(message) from None
        super().__init__(path, reading, b"", self.table.column_names)

    def columns(self, called: Mapping[str, Any], faults: Faults) -> dict[str, Categorical]:
        at = {column: self.names.index(name) for column, name in called.items()}
        return {column: self._column(position) for column, position in at.items()}

    def _column(self, position: int) -> Categorical:
        column, types = self.table.column(position), self.arrow.types
        typed = (types.is_string, types.is_integer, types.is_float64, types.is_boolean)
        try:
            if not any(kind(column.type) for kind in typed):
                # A float of 32 bits becomes its shortest decimal.
                column = column.cast(self.arrow.string())
        except self.arrow.ArrowException:
            kind = f"{shorten(self.names[position])!r} of {shorten(str(column.type))}"
            message = f"{self.path}: the column {kind} holds neither text nor numbers"
            raise FormatError(message) from None
        return Categorical.from_cells(["" if c is None else c for c in column.to_pylist()])


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
