"""Lines, words and numbers of text files, strict and quick; and Parquet.

A file of a million lines must not become a million objects at once, and Python should not run once
for each number. So lines come from a large text block by block and are parsed column by column, by
`split`, `int` and `float` over whole lists. A block that is refused is read again line by line, to
find the one at fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np

from tailpath.errors import FormatError, OptionError
from tailpath.formats.archives import unpacked_limit
from tailpath.formats.files import LONGEST, parse_number, read_bytes, shorten
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, FloatArray
from tailpath.model.cost_units import vanishes
from tailpath.options import Progress

#: The bytes of a text that are held as lines at a time.
BLOCK = 64_000
_INTERVAL = re.compile(r"\[\s*([^,\]]+?)\s*,\s*([^,\]]+?)\s*\]")
#: What decimals are made of, and may have around them.
_DECIMAL = b"0123456789.eE+- \t"

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
        self._blocks = self._texts()
        self._block: list[str] = []

    def _texts(self) -> Iterator[list[str]]:
        """The lines, without the blanks around them, some at a time. Progress is in bytes."""
        data, begin = self.data, 0
        while begin <= len(data):
            end = data.find(b"\n", begin + BLOCK)
            end = len(data) if end < 0 else end
            yield list(map(str.strip, data[begin:end].decode().split("\n")))
            if self.progress is not None and end < len(data):
                self.progress(end, end / len(data))
            begin = end + 1

    def _next(self) -> bool:
        self._block = next(self._blocks, [])[::-1]
        return bool(self._block)

    def lines(self) -> Iterator[str]:
        """The lines that are left."""
        while self._block or self._next():
            self.line += 1
            yield self._block.pop()

    def rows(self) -> Iterator[str]:
        """Those of them that say something."""
        return (text for text in self.lines() if self.is_content(text, self.line))

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
        first = self.comment[:1]
        while self._block or self._next():
            texts = self._block[::-1]
            lines: Sequence[int] = range(self.line + 1, self.line + 1 + len(texts))
            # A line of "" begins with nothing, and so does `first` where there are no comments.
            if first in [text[:1] for text in texts] or "" in texts:
                rows = [pair for pair in zip(lines, texts) if self.is_content(pair[1], pair[0])]
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

    # ------------------------------------------------------------------ words and numbers

    def columns(self, text: str, least: int, most: int) -> Sequence[Sequence[str]]:
        """The words of lines by column; a line may have from `least` to `most` of them, and a word
        that is missing is empty."""
        words = text.replace("\n", " \0 ").split()  # a text has no NUL: it marks ends of lines
        ends = ["\0"] * text.count("\n")
        for width in range(least, most + 1):
            if words[width :: width + 1] == ends:
                return [words[at :: width + 1] for at in range(width)]
        rows = [line.split() for line in text.split("\n")[:-1]]
        for row in rows:
            if not least <= len(row) <= most:
                expected = " or ".join(map(str, range(least, most + 1)))
                found = f"{shorten(' '.join(row))!r} has {len(row)} words"
                raise self.error(f"{found}, expected {expected}")
        return list(zip_longest(*rows, fillvalue=""))

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
        different = list(dict.fromkeys(texts))
        if 2 * len(different) < len(texts):
            known = dict(zip(different, self.numbers(different).tolist()))
            return np.fromiter(map(known.__getitem__, texts), np.float64, len(texts))
        # Without letters but e there is no nan, no infinity, no hexadecimal and no underscore for
        # `float` to accept.
        joined = "".join(texts).encode()
        if not joined.translate(None, _DECIMAL) and max(map(len, texts), default=0) <= LONGEST:
            with suppress(ValueError):
                values = np.fromiter(map(float, texts), np.float64, len(texts))
                zeros = {texts[position] for position in np.flatnonzero(values == 0).tolist()}
                if np.isfinite(values).all() and not any(vanishes(text, 0.0) for text in zeros):
                    return values
        return np.array([self.number(text) for text in texts], dtype=np.float64)

    def ends(self, texts: Sequence[str]) -> FloatArray:
        """Low and high ends of numbers and intervals, (2, n); of numbers alone, (1, n)."""
        if "[" not in "".join(texts):
            return self.numbers(texts)[None]
        return np.array(list(map(self.interval, texts))).T

    def integers(self, texts: Sequence[str]) -> Array:
        joined = "".join("".join(texts).split())
        if joined.isascii() and joined.isdigit():
            with suppress(ValueError, OverflowError):  # an empty one, or one of many digits
                found = np.fromiter(map(int, texts), np.int64, len(texts))
                return found if found.max() >= 2**31 else found.astype(np.int32)
        return np.array([self.integer(text) for text in texts], dtype=np.int64)


def joined_ends(parts: Sequence[FloatArray]) -> tuple[FloatArray | None, FloatArray]:
    """The ends of several blocks: the low ones, if there are intervals, and the high ones."""
    high = np.concatenate([part[-1] for part in parts])
    if all(len(part) == 1 for part in parts):
        return None, high
    return np.concatenate([part[0] for part in parts]), high


# ---------------------------------------------------------------------- Parquet


def arrow(part: str = "") -> Any:
    """pyarrow, or a part of it, which takes longer to load than small files to read."""
    return import_module(f"pyarrow{part}")


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
