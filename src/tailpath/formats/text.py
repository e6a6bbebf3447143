"""Lines and numbers of text files, strict and quick.

A file of a million lines must not become a million objects at once, and each number costs a call if
it is parsed alone. So lines come from a large text block by block, and numbers are parsed column by
column: a whole column that consists of harmless characters goes through the interpreter's own
parser in one sweep; the first column that does not is parsed number by number, to find the line at
fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError
from tailpath.formats.files import LONGEST, parse_number, shorten
from tailpath.model.cost_units import vanishes
from tailpath.options import Progress

#: Rows that are held as text at a time: few enough to be gone before the garbage collector looks at
#: them a second time.
BLOCK = 500
_BYTES = 100_000
_DECIMAL = str.maketrans("", "", "0123456789.eE+-")


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


class NumberParser:
    """Parses the numbers of one file; refusals name the file and the line."""

    def __init__(self, path: str) -> None:
        self.path = path

    def number(self, text: str, line: int) -> float:
        """A finite decimal or fraction."""
        return parse_number(text.strip(), f"{self.path}:{line}")

    def integer(self, text: str, line: int) -> int:
        """A whole number, 0 or more; no sign, no underscores, no digits of other scripts."""
        digits = text.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
            raise FormatError(f"{self.path}:{line}: {shorten(digits)!r} is not a whole number")
        return int(digits)

    def numbers(self, texts: Sequence[str], lines: Sequence[int]) -> NDArray[np.float64]:
        """A column of decimals or fractions."""
        # Without letters but e there is no nan, no infinity, no hexadecimal and no underscore for
        # `float` to accept.
        if not "".join(texts).translate(_DECIMAL) and max(map(len, texts), default=0) <= LONGEST:
            try:
                values = np.fromiter(map(float, texts), np.float64, len(texts))
            except ValueError:
                pass
            else:
                zeros = [texts[position] for position in np.flatnonzero(values == 0).tolist()]
                small = any(vanishes(text, 0.0) for text in set(zeros))
                if np.isfinite(values).all() and not small:
                    return values
        return np.array(
            [self.number(text, line) for text, line in zip(texts, lines)], dtype=np.float64
        )

    def of(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The same where lines do not matter, since whatever is refused is read again."""
        return self.numbers(texts, range(len(texts)))

    def integers(self, texts: Sequence[str], lines: Sequence[int]) -> NDArray[np.int64]:
        """A column of whole numbers."""
        joined = "".join(texts)
        if joined.isascii() and joined.isdigit() and "" not in texts and max(map(len, texts)) <= 18:
            return np.fromiter(map(int, texts), np.int64, len(texts))
        return np.array(
            [self.integer(text, line) for text, line in zip(texts, lines)], dtype=np.int64
        )


def after(data: bytes, n_lines: int) -> int:
    """Where the line after so many begins."""
    at = 0
    for _ in range(n_lines):
        at = data.find(b"\n", at) + 1 or len(data)
    return at


def as_they_appear(number: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Those of the numbers 0 .. count - 1 that stand in a column, as they first appear in it."""
    first = np.full(count, len(number), dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]  # of equal ones, the last assignment stays
    order = np.argsort(first, kind="stable")
    return order[: np.count_nonzero(first < len(number))]
