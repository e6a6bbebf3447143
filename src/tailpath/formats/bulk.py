"""Large text files by way of pyarrow, where it is installed.

A model of a million states is half a gigabyte of text with few different words in it. pyarrow cuts
lines into columns and numbers their words; each different word is parsed once, by the functions of
the careful readers, and numpy lays the numbers out. A text that is odd in any way is left to the
careful readers, line by line, so that both ways give the same model, or the same refusal. The
columns of Parquet tables become texts, which are parsed as those of CSV files.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from tailpath.errors import FormatError, OptionError
from tailpath.formats.archives import unpacked_limit
from tailpath.formats.files import read_bytes, shorten
from tailpath.formats.text import Categorical
from tailpath.graph import Array, BoolArray
from tailpath.options import Progress

#: From this many bytes on a file is worth loading pyarrow; below, the careful readers are done.
LARGE = 4_000_000
#: The bytes that are cut at a time, about.
_PIECE = 2**22
_NEWLINE = ord("\n")
_BLANK = np.isin(np.arange(256), list(b" \t\r"))

T = TypeVar("T")


class IrregularError(Exception):
    """The text is not as expected; a careful reader shall look at it."""


def attempt(data: bytes, read: Callable[[], T]) -> T | None:
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
        those of another kind are left out. Quotes are quotes where commas separate.
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
            reader.ParseOptions(delimiter=by, quote_char='"' if by == "," else False),
            reader.ConvertOptions(column_types=taken, include_columns=list(taken), null_values=[]),
        )
        table = reader.read_csv(pyarrow.BufferReader(text), *options)
        chunks = [table[name].chunk(0) for name in taken]
        found = [numbers(c, np.int32) if c.type == integer else categorical(c) for c in chunks]
        large = any(isinstance(c, np.ndarray) and c.min() < 0 for c in found)  # 2^31 and beyond
        if table.num_rows != len(lines) or large:
            raise IrregularError
        return found

    def refuse_quotes(self) -> None:
        """Refuse quotes inside of cells, cells of several lines, and those that Python would."""
        at = np.flatnonzero(self.text == ord('"'))
        opens, closes = self.text[at[::2] - 1], self.text[at[1::2] + 1]
        fine = np.isin(opens, list(b',\n"')).all() and np.isin(closes, list(b',\n\r"')).all()
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


def parquet_texts(path: str, table: Any, positions: Sequence[int]) -> Any:
    """A table of some of the columns, all of them texts. What is null is an empty text."""
    pyarrow, fill_null = arrow(), arrow(".compute").fill_null
    columns = []
    for position in positions:
        column = table.column(position)
        try:
            columns.append(fill_null(column.cast(pyarrow.string()), ""))
        except pyarrow.ArrowException:
            kind = f"{shorten(table.column_names[position])!r} of {shorten(str(column.type))}"
            message = f"{path}: the column {kind} holds neither texts nor numbers"
            raise FormatError(message) from None
    return pyarrow.table(columns, names=[str(position) for position in positions])
