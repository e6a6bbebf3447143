"""Lines, words and numbers of text files, strict and fast.

A file of a million lines must not become a million objects at once, and Python should not run once
for each number. So lines come from a large text block by block, and numpy reads a block at once. A
block that it cannot read, or may read too leniently, is read line by line, which finds the line at
fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.files import LONGEST, parse_number, shorten
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, FloatArray
from tailpath.options import Progress

#: The bytes of a text that are held as lines at a time.
BLOCK = 250_000
_INTERVAL = re.compile(r"\[\s*([^,\]]+?)\s*,\s*([^,\]]+?)\s*\]")

Result = TypeVar("Result")


def read_at_once(
    texts: Sequence[str],
    kinds: list[Any],
    read_one: Callable[[str], Any],
    separator: str | None = None,
    signs: str = "+",
) -> Any:
    """Lines as an array with fields of these kinds, or None if `read_one`, which is strict, may
    differ, as for `signs` outside exponents. The field `number` is a float.
    """
    text = "\n".join([*texts, ""])
    ends = np.flatnonzero(np.frombuffer(text.encode(), np.uint8) == ord("\n"))
    longest = np.diff(ends, prepend=-1).max(initial=0)
    plain = text.replace("e-", "")
    if not text.isascii() or longest > LONGEST or any(sign in plain for sign in signs):
        return None
    try:
        rows = np.loadtxt(texts, kinds, comments=None, delimiter=separator, ndmin=1)
        if len(rows) != len(texts) or not np.isfinite(rows["number"]).all():
            return None
        for row in np.flatnonzero(rows["number"] == 0).tolist():
            read_one(texts[row])  # which refuses a number that is too small for floating point
    except (ValueError, FormatError):
        return None
    return rows


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
        """The lines that are left and have content."""
        return (text for text in self.lines() if self.is_content(text, self.line))

    def is_content(self, text: str, line: int) -> bool:
        """Whether a line is neither empty nor a comment; comments are stored."""
        if self.comment and text.startswith(self.comment):
            self.comments.append((line, text))
            return False
        return bool(text)

    def blocks(self, parse: Callable[[list[str]], Result]) -> Iterator[tuple[Array, Result]]:
        """The results of `parse` on the lines with content, many at a time, and their numbers.

        It must keep nothing of a block that it refuses.
        """
        while self._block or self._next():
            texts = self._block[::-1]
            lines: Sequence[int] = range(self.line + 1, self.line + 1 + len(texts))
            joined = "\n".join(["", *texts, ""])
            if "\n\n" in joined or (self.comment and f"\n{self.comment}" in joined):
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
        """The error for a line, by default the one being read."""
        return FormatError(f"{self.path}:{self.line if line is None else line}: {message}")

    def extras(self) -> Extras:
        """What our own writer put into a comment."""
        mark = f"{self.comment}{MARK} "
        for line, text in self.comments:
            if text.startswith(mark):
                return Extras.parse(text.removeprefix(mark), f"{self.path}:{line}")
        return Extras()

    # ------------------------------------------------------------------ words and numbers

    def columns(
        self, texts: Sequence[str], width: int, *, words: bool = False, separator: str | None = None
    ) -> tuple[Array, FloatArray, Sequence[str]]:
        """Lines of `width` integers and a number or an interval, after which a word may follow: the
        integers, (width, n); the numbers, (1, n), or the low and high ends, (2, n); the words,
        which are empty where there are none.
        """

        def read_one(text: str) -> tuple[list[int], tuple[float, float], str]:
            parts = text.split(separator)
            if not width < len(parts) <= width + 1 + words:
                if separator is not None:
                    form = f"'target {separator} probability'"
                    raise self.error(f"expected {form}, not {shorten(text)!r}")
                expected = f"{width + 1} or {width + 2}" if words else f"{width + 1}"
                found = f"{shorten(text)!r} has {len(parts)} words"
                raise self.error(f"{found}, expected {expected}")
            integers = list(map(self.integer, parts[:width]))
            return integers, self.interval(parts[width]), "".join(parts[width + 1 :])

        kinds: list[Any] = [("integers", np.int64, (width,)), ("number", np.float64)]
        if words and texts and len(texts[0].split()) == width + 2:
            kinds.append(("word", object))
        rows = read_at_once(texts, kinds, read_one, separator, "+-") if texts else None
        if rows is None:  # numpy takes +1 and -0 for integers
            some = list(map(read_one, texts))
            integers = np.array([row for row, _, _ in some], np.int64).reshape(-1, width).T
            ends = np.array([row for _, row, _ in some], np.float64).reshape(-1, 2).T
            found = [word for _, _, word in some]
            ends = ends if "[" in "".join(texts) else ends[1:]
        else:
            integers, ends = rows["integers"].T, rows["number"][None]
            found = rows["word"].tolist() if len(kinds) > 2 else [""] * len(texts)
        small = integers.max(initial=0) < 2**31
        return integers.astype(np.int32 if small else np.int64), ends, found

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


def joined_ends(parts: Sequence[FloatArray]) -> tuple[FloatArray | None, FloatArray]:
    """The ends of several blocks: the low ones, if there are intervals, and the high ones."""
    high = np.concatenate([part[-1] for part in parts])
    if all(len(part) == 1 for part in parts):
        return None, high
    return np.concatenate([part[0] for part in parts]), high
