"""Lines, words and numbers of text files, strict and quick; and Parquet.

A file of a million lines must not become a million objects at once, and each number costs a call if
it is parsed alone. So lines come from a large text block by block, and are parsed column by
column. A block that is refused is read again line by line, to find the one at fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from tailpath.errors import FormatError, OptionError
from tailpath.formats.archives import unpacked_limit
from tailpath.formats.files import LONGEST, parse_number, read_bytes, shorten
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, FloatArray
from tailpath.model.cost_units import vanishes
from tailpath.options import Progress

#: The bytes of a text that are held as lines at a time: few enough for these to be gone before the
#: garbage collector looks at them a second time.
BLOCK = 16_000
_INTERVAL = re.compile(r"\[\s*([^,\]]+?)\s*,\s*([^,\]]+?)\s*\]")
_DECIMAL = str.maketrans("", "", "0123456789.eE+-")

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
        self._blocks = blocks_of(data, progress)
        self._block: list[str] = []

    def lines(self) -> Iterator[str]:
        """The lines that are left, without the blanks around them."""
        while self._block or self._next():
            self.line += 1
            yield self._block.pop().strip()

    def _next(self) -> bool:
        self._block = next(self._blocks, [])[::-1]
        return bool(self._block)

    def rows(self) -> Iterator[str]:
        """Those of them that say something."""
        return (text for text in self.lines() if self.is_content(text, self.line))

    def repeat(self, text: str) -> None:
        """Give back the line that was just read."""
        self._block.append(text)
        self.line -= 1

    def is_content(self, text: str, line: int) -> bool:
        """Whether a line is neither empty nor a comment, which is stored."""
        if self.comment and text.startswith(self.comment):
            self.comments.append((line, text))
            return False
        return bool(text)

    def blocks(self, parse: Callable[[list[str]], Result]) -> Iterator[tuple[Array, Result]]:
        """What `parse` makes of the lines that say something, many at a time, and their numbers.

        What it remembers of a block it must not remember of one that it refuses.
        """
        mark = self.comment or "\n"
        while self._block or self._next():
            texts = list(map(str.strip, reversed(self._block)))
            lines: Sequence[int] = range(self.line + 1, self.line + 1 + len(texts))
            if "" in texts or any(mark in text for text in texts):
                rows = [
                    (line, text) for line, text in zip(lines, texts) if self.is_content(text, line)
                ]
                lines, texts = [line for line, _ in rows], [text for _, text in rows]
            try:
                found = parse(texts)
            except FormatError:
                for self.line, text in zip(lines, texts):
                    parse([text])
                raise
            self.line, self._block = self.line + len(self._block), []
            if texts:
                yield np.array(lines, np.int32), found

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

    def integers(self, texts: Sequence[str]) -> Array:
        joined = "".join(texts)
        if joined.isascii() and joined.isdigit():
            with suppress(ValueError, OverflowError):  # an empty one, or one of many digits
                found = np.fromiter(map(int, texts), np.int64, len(texts))
                return found if found.max() >= 2**31 else found.astype(np.int32)
        return np.array([self.integer(text) for text in texts], dtype=np.int64)


def blocks_of(data: bytes, progress: Progress | None = None) -> Iterator[list[str]]:
    """The lines of a text in UTF-8, without their ends, some at a time. Progress is told in
    bytes."""
    begin = 0
    while begin <= len(data):
        end = data.find(b"\n", begin + BLOCK)
        end = len(data) if end < 0 else end
        yield data[begin:end].decode().split("\n")
        if progress is not None and end < len(data):
            progress(end, end / len(data))
        begin = end + 1


# ---------------------------------------------------------------------- Parquet


def arrow(part: str = "") -> Any:
    """pyarrow, or a part of it, which takes longer to load than small files to read."""
    return import_module(f"pyarrow{part}")


def numbers(array: Any, dtype: Any) -> Array:
    """The numbers of an array of pyarrow, whose own way would import pandas."""
    found = np.frombuffer(array.buffers()[1], dtype=dtype)
    return found[array.offset : array.offset + len(array)]


#: What may stand between the cells of a table.
SEPARATORS = (",", ";", "\t", "|")


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
