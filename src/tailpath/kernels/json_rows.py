"""Rows of JSON, one list per line, read in plain loops; see `texts.py` for what a scan is.

An item of a row is a word without quotes, a string, or a list of any depth; whatever else it may be is odd. Letters beyond ASCII may stand in
strings. What an item means is left to those who know JSON: here it is seen only where it ends, so that the same items between commas can be read
again by others.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.texts import (
    CLOSING,
    COMMA,
    DONE,
    FULL,
    LINES,
    NEWLINE,
    ODD,
    OPEN,
    OPENING,
    QUOTE,
    SPACE,
    TEXTS,
    number_of,
    repeated,
    skip_blanks,
)

Array = NDArray[Any]
_BACKSLASH, _FIRST, _LAST = 92, 32, 122


@kernel
def end_of_string(data: Array, at: int, last: int) -> int:
    """The place after the string that begins at `at`; -1 where it does not end on its line, or has a byte that none may have."""
    at += 1
    while at < last and data[at] != QUOTE:
        if data[at] < SPACE:
            return -1
        at += 2 if data[at] == _BACKSLASH else 1
    return at + 1 if at < last else -1


@kernel
def end_of_item(data: Array, at: int, last: int) -> int:
    """The place after the item that begins at `at`; -1 where it is odd."""
    depth, begin = 0, at
    while at < last:
        byte = data[at]
        if byte == QUOTE:
            at = end_of_string(data, at, last)
            if at < 0 or depth == 0:
                return at
        elif byte == OPENING:
            depth += 1
            at += 1
        elif byte == CLOSING and depth > 0:
            depth -= 1
            at += 1
            if depth == 0:
                return at
        elif (depth == 0 and byte in (COMMA, SPACE, CLOSING)) or not _FIRST <= byte <= _LAST or byte == _BACKSLASH:
            return at if depth == 0 and at > begin else -1
        else:
            at += 1
    return -1


@kernel
def scan_lists(
    data: Array, at: int, stop: int, slots: Array, begin: Array, length: Array, counts: Array, cuts: Array, out_text: Array
) -> tuple[int, int]:
    """Lines that are lists of as many items as `out_text` has columns, with a comma after all but the last: `counts[OPEN]` says that one is to come.

    `cuts` has of each column the place and the number of the last item that was new: most items repeat the one above.
    """
    last, width = len(data), len(out_text)
    while at < stop:
        if 2 * (counts[TEXTS] + width) >= len(slots):
            return at, FULL
        line, row = at, counts[LINES]
        at = skip_blanks(data, at, last)
        if at == last:
            return at, DONE
        if data[at] != OPENING or counts[OPEN] == 0:
            return line, ODD
        for column in range(width):
            at = skip_blanks(data, at + 1, last)
            size = repeated(data, at, last, cuts, column)
            if size < 0:
                cuts[0, column], cuts[1, column], cuts[2, column] = at, end_of_item(data, at, last), -1
                size = cuts[1, column] - at
                if size < 0:
                    return line, ODD
            at = skip_blanks(data, at + size, last)
            if at == last or data[at] != (COMMA if column < width - 1 else CLOSING):
                return line, ODD
        at = skip_blanks(data, at + 1, last)
        counts[OPEN] = 1 if at < last and data[at] == COMMA else 0
        at = skip_blanks(data, at + counts[OPEN], last)
        if at < last and data[at] != NEWLINE:
            return line, ODD
        at += 1
        for column in range(width):
            if cuts[2, column] < 0:
                cuts[2, column] = number_of(data, cuts[0, column], cuts[1, column], slots, begin, length, counts)
            out_text[column, row] = cuts[2, column]
        counts[LINES] += 1
    return at, DONE
