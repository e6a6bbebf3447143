"""Lines, words and numbers of text files, strict and quick.

A file of a million lines must not become a million objects at once, and each number costs a call if
it is parsed alone. So lines come from a large text block by block, and are parsed column by
column. A block that is refused is read again line by line, to find the one at fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.files import LONGEST, parse_number, shorten
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, FloatArray, IntArray
from tailpath.model.cost_units import vanishes
from tailpath.options import Progress

#: Rows that are held as text at a time: few enough to be gone before the garbage collector looks at
#: them a second time.
BLOCK = 500
_BYTES = 100_000
_INTERVAL = re.compile(r"\[\s*([^,\]]+?)\s*,\s*([^,\]]+?)\s*\]")
_DECIMAL = str.maketrans("", "", "0123456789.eE+-")

Row = TypeVar("Row")
Found = TypeVar("Found")


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
        self, rows: Iterable[Row], parse: Callable[[list[Row]], Found]
    ) -> Iterator[tuple[list[int], Found]]:
        """What `parse` makes of rows, many at a time, and their lines.

        What it remembers of a block it must not remember of one that it refuses.
        """
        rows = iter(rows)
        while block := [(self.line, row) for row in islice(rows, BLOCK)]:
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


class Categorical(NamedTuple):
    """A column of texts as pandas has them: the code of each, (n,), and the different ones."""

    codes: Array
    categories: list[str]

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> Categorical:
        known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return cls(np.fromiter(map(known.__getitem__, texts), np.int32, len(texts)), list(known))

    def map(self, parse: Callable[[list[str]], Array]) -> Array:
        """What each text, without the blanks around it, is parsed to, (n,); equal ones once."""
        return parse([text.strip() for text in self.categories])[self.codes]


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


def as_they_appear(number: Array, count: int) -> IntArray:
    """Those of the numbers 0 .. count - 1 that stand in a column, as they first appear in it."""
    first = np.full(count, len(number), dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]  # of equal ones, the last assignment stays
    order = np.argsort(first, kind="stable")
    return order[: np.count_nonzero(first < len(number))]
