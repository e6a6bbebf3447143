"""Lines, words and numbers of text files, strict and quick.

A file of a million lines must not become a million objects at once, and each number costs a call if
it is parsed alone. So lines come from a large text block by block, and are parsed column by
column. A block that is refused is read again line by line, to find the one at fault.

A model of a million states is half a gigabyte of text with few different words in it. Where pyarrow
is installed, it cuts the lines of such a file into columns and numbers their words; each different
word is parsed once, by the functions of the careful readers. A text that is odd in any way is left
to the careful readers, so that both ways give the same model, or the same refusal.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from tailpath.errors import FormatError, OptionError
from tailpath.formats.archives import unpacked_limit
from tailpath.formats.files import LONGEST, parse_number, read_bytes, shorten
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, BoolArray, FloatArray, IntArray
from tailpath.model.cost_units import vanishes
from tailpath.model.outcome_columns import Categorical
from tailpath.options import Progress

#: Rows that are held as text at a time: few enough to be gone before the garbage collector looks at
#: them a second time.
BLOCK_ROWS = 500
_BYTES = 100_000
_INTERVAL = re.compile(r"\[\s*([^,\]]+?)\s*,\s*([^,\]]+?)\s*\]")
_DECIMAL = str.maketrans("", "", "0123456789.eE+-")

Item = TypeVar("Item")
Result = TypeVar("Result")


class TextFile:
    """A text in UTF-8, read from its beginning, and the line that is being read, which refusals
    name. `comment` is how comments begin; those met so far are stored with their lines."""

    def __init__(
        self, path: str, data: bytes, progress: Progress | None = None, comment: str = ""
    ) -> None:
        self.path, self.data = path, data
        self.progress, self.comment = progress, comment
        self.line = 0
        self.comments: list[tuple[int, str]] = []
        self._lines: Iterator[tuple[int, str]] = enumerate(lines_of(data, progress), start=1)

    def lines(self) -> Iterator[str]:
        """The lines that are left, without the blanks around them."""
        for line, text in self._lines:
            self.line = line
            yield text.strip()

    def rows(self) -> Iterator[str]:
        """Those of them that say something."""
        return filter(self.is_content, self.lines())

    def is_content(self, text: str) -> bool:
        """Whether the line that was just read is neither empty nor a comment."""
        if self.comment and text.startswith(self.comment):
            self.comments.append((self.line, text))
            return False
        return bool(text)

    def blocks(
        self, rows: Iterable[Item], parse: Callable[[list[Item]], Result]
    ) -> Iterator[tuple[list[int], Result]]:
        """What `parse` makes of rows, many at a time, and their lines.

        What it remembers of a block it must not remember of one that it refuses.
        """
        rows = iter(rows)
        while block := [(self.line, row) for row in islice(rows, BLOCK_ROWS)]:
            try:
                found = parse([row for _, row in block])
            except FormatError:
                for line, row in block:
                    self.line = line
                    parse([row])
                raise
            yield [line for line, _ in block], found

    def error(self, message: str, line: int | None = None) -> FormatError:
        """The refusal of a line, by default the one that is being read."""
        return FormatError(f"{self.path}:{self.line if line is None else line}: {message}")

    def extras(self) -> Extras:
        """What our own writer put into a comment."""
        mark = f"{self.comment}{MARK} "
        for line, text in self.comments:
            if text.startswith(mark):
                return Extras.parse(text.removeprefix(mark), f"{self.path}:{line}")
        return Extras()

    def number(self, text: str) -> float:
        return parse_number(text.strip(), f"{self.path}:{self.line}")

    def interval(self, text: str) -> tuple[float, float]:
        """The ends of `[low, high]`; a number is both."""
        match = _INTERVAL.fullmatch(text.strip())
        low, high = match.groups() if match else (text, text)
        return self.number(low), self.number(high)

    def integer(self, text: str) -> int:
        """An integer, 0 or more; no sign, no underscores, no digits of other scripts."""
        digits = text.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
            raise self.error(f"{shorten(digits)!r} is not a whole number")
        return int(digits)

    def numbers(self, texts: Sequence[str]) -> FloatArray:
        # Without letters but e there is no nan, no infinity, no hexadecimal and no underscore for
        # `float` to accept.
        if not "".join(texts).translate(_DECIMAL) and max(map(len, texts), default=0) <= LONGEST:
            try:
                values = np.fromiter(map(float, texts), np.float64, len(texts))
            except ValueError:
                pass
            else:
                zeros = {texts[position] for position in np.flatnonzero(values == 0).tolist()}
                if np.isfinite(values).all() and not any(vanishes(text, 0.0) for text in zeros):
                    return values
        return np.array([self.number(text) for text in texts], dtype=np.float64)

    def integers(self, texts: Sequence[str]) -> IntArray:
        joined = "".join(texts)
        if joined.isascii() and joined.isdigit() and "" not in texts and max(map(len, texts)) <= 18:
            return np.fromiter(map(int, texts), np.int64, len(texts))
        return np.array([self.integer(text) for text in texts], dtype=np.int64)


def lines_of(data: bytes, progress: Progress | None = None) -> Iterator[str]:
    """The lines of a text in UTF-8, without their ends and without holding them all. Progress is
    told in bytes."""
    begin = 0
    while begin <= len(data):
        end = data.find(b"\n", begin + _BYTES)
        end = len(data) if end < 0 else end
        yield from data[begin:end].decode().split("\n")
        if progress is not None and end < len(data):
            progress(end, end / len(data))
        begin = end + 1


def after(data: bytes, n_lines: int) -> int:
    at = 0
    for _ in range(n_lines):
        at = data.find(b"\n", at) + 1 or len(data)
    return at


# ---------------------------------------------------------------------- by way of pyarrow


#: What may stand between the cells of a table.
SEPARATORS = (",", ";", "\t", "|")
#: From this many bytes on a file is worth loading pyarrow; below, the careful readers are done.
LARGE = 4_000_000
#: The bytes that are cut at a time, about.
_PIECE = 2**22
_NEWLINE = ord("\n")
_BLANK = np.isin(np.arange(256), list(b" \t\r"))


class IrregularError(Exception):
    """The text is not as expected; a careful reader shall look at it."""


def attempt(data: bytes, read: Callable[[], Result]) -> Result | None:
    """What `read` makes of a large text; `None` without pyarrow, or where anything is
    odd or wrong.
    """
    if len(data) < LARGE or find_spec("pyarrow") is None:
        return None
    try:
        return read()
    except (IrregularError, FormatError, csv.Error, arrow().ArrowException):
        return None


def arrow(part: str = "") -> Any:
    """pyarrow, or a part of it, which takes longer to load than small files to read."""
    return import_module(f"pyarrow{part}")


def categorical(array: Any) -> Categorical:
    """The texts of an array of pyarrow, plain or encoded by a dictionary of them."""
    encoded = array if hasattr(array, "dictionary") else array.dictionary_encode()
    return Categorical(numbers(encoded.indices, np.int32), encoded.dictionary.to_pylist())


class Lines:
    """Some lines of a text, (m,) bytes; line k begins at `begin[k]` and ends with a newline."""

    def __init__(self, text: Array) -> None:
        pyarrow = arrow()
        begin = np.concatenate([[0], np.flatnonzero(text == _NEWLINE) + 1]).astype(np.int32)
        self.text, self.begin = text, begin
        self.n_lines = len(begin) - 1
        buffers = [None, pyarrow.py_buffer(begin), pyarrow.py_buffer(text)]
        self._lines = pyarrow.Array.from_buffers(pyarrow.string(), self.n_lines, buffers)

    def first(self) -> Array:
        """Where each line has its first byte that is no blank."""
        at = self.begin[:-1].copy()
        while (blank := _BLANK[self.text[at]]).any():
            at += blank
        return at

    def count(self, byte: int) -> Array:
        return np.add.reduceat(self.text == byte, self.begin[:-1], dtype=np.int32)

    def chosen(self, which: BoolArray) -> Any:
        """Some of the lines, as an array of pyarrow."""
        pyarrow = arrow()
        # Made from its bits, which spares the import of pandas.
        bits = [None, pyarrow.py_buffer(np.packbits(which, bitorder="little"))]
        return self._lines.filter(pyarrow.Array.from_buffers(pyarrow.bool_(), self.n_lines, bits))

    def columns(self, which: BoolArray, by: str, kinds: Sequence[str]) -> list[Any]:
        """Some lines, cut into columns at `by`: arrays of "integer"s, `Categorical` for "word"s;
        those of another kind are left out. Quotes are quotes between separators of tables.
        """
        pyarrow, reader = arrow(), arrow(".csv")
        lines = self._lines if which.all() else self.chosen(which)
        text = lines.buffers()[2].to_pybytes()
        if "integer" in kinds and (b"0x" in text or b"0X" in text):
            raise IrregularError  # which pyarrow would take for a number
        if text.startswith(codecs.BOM_UTF8):
            raise IrregularError  # which pyarrow would leave out, here in the middle of the file
        integer, word = pyarrow.uint32(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        names, types = (
            [str(position) for position in range(len(kinds))],
            {"integer": integer, "word": word},
        )
        taken = {name: types[kind] for name, kind in zip(names, kinds) if kind}
        options = (
            reader.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
            reader.ParseOptions(delimiter=by, quote_char='"' if by in SEPARATORS else False),
            reader.ConvertOptions(column_types=taken, include_columns=list(taken), null_values=[]),
        )
        table = reader.read_csv(pyarrow.BufferReader(text), *options)
        chunks = [table[name].chunk(0) for name in taken]
        found = [numbers(c, np.int32) if c.type == integer else categorical(c) for c in chunks]
        large = any(isinstance(c, np.ndarray) and c.min() < 0 for c in found)  # 2^31 and beyond
        if table.num_rows != len(lines) or large:
            raise IrregularError
        return found

    def refuse_quotes(self, by: str) -> None:
        """Refuse quotes inside of cells, cells of several lines, and those that Python would; and
        ends of lines that only some programs take for such.
        """
        returns = np.flatnonzero(self.text == ord("\r"))
        if (self.text[returns + 1] != _NEWLINE).any():
            raise IrregularError
        at = np.flatnonzero(self.text == ord('"'))
        opens, closes = self.text[at[::2] - 1], self.text[at[1::2] + 1]
        fine = (
            np.isin(opens, list(f'{by}\n"'.encode())).all()
            and np.isin(closes, list(f'{by}\n\r"'.encode())).all()
        )
        if len(at) % 2 or not fine or np.diff(self.begin).max() > csv.field_size_limit():
            raise IrregularError


def pieces(data: bytes, at: int, progress: Progress | None = None) -> Iterator[Lines]:
    """The lines of a text from a position on, many at a time, without the empty ones at its end."""
    last = len(data)
    while last > at and data[last - 1] in b"\r\n":
        last -= 1
    while at < last:
        end = last if last - at < _PIECE else data.rfind(b"\n", at, at + _PIECE) + 1
        if end <= at:
            raise IrregularError
        text = np.frombuffer(data, np.uint8, end - at, at)
        yield Lines(text if text[-1] == _NEWLINE else np.append(text, np.uint8(_NEWLINE)))
        at = end
        if progress is not None:
            done = at if at < last else len(data)
            progress(done, done / len(data))


def numbers(array: Any, dtype: Any) -> Array:
    """The numbers of an array of pyarrow, whose own way would import pandas."""
    found = np.frombuffer(array.buffers()[1], dtype=dtype)
    return found[array.offset : array.offset + len(array)]


# ---------------------------------------------------------------------- Parquet


def read_parquet(path: str) -> Any:
    try:
        pyarrow, reader = arrow(), arrow(".parquet")
    except ImportError:
        remedy = "pip install 'tailpath[parquet]'"
        raise OptionError(f"{path}: Parquet tables need pyarrow: {remedy}") from None
    data = read_bytes(path)
    if not data:
        raise FormatError(f"{path}: the file is empty")
    try:
        file = reader.ParquetFile(pyarrow.BufferReader(data))
        shape = file.metadata
        groups = map(shape.row_group, range(shape.num_row_groups))
        # A run of equal cells takes no room in the file, but it does in memory.
        cells = 8 * shape.num_rows * shape.num_columns
        size = max(cells, sum(group.total_byte_size for group in groups))
        if size > unpacked_limit(len(data)):
            deserved = f"more than its {len(data)} bytes justify"
            raise FormatError(f"{path}: unpacks to {size} bytes, {deserved}")
        table = file.read(use_threads=False)
        table.validate(full=True)  # texts in UTF-8, and indices that lie inside
        return table
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"{path}: this is not a Parquet file: {shorten(str(error))}") from None
