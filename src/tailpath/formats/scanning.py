"""Large text files, read as bytes by compiled loops.

A model of a million states is half a gigabyte of text with few different words in it. The loops of `kernels/texts.py` cut the text into words
and number those that differ; each word is then understood once, by the same functions that read small files. Files that are not as their tools
write them, in any way, are left to the careful readers, line by line: these are slower, and know what to say about them. So both ways give the
same model, or the same refusal.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.formats.reading import Reading
from tailpath.formats.text import Numbers
from tailpath.kernels.jit import frozen
from tailpath.kernels.json_rows import scan_lists
from tailpath.kernels.texts import FULL, LINES, ODD, OPEN, SEED, TEXTS, enter_again, ranks, scan_cells, scan_rows
from tailpath.options import Progress

IntArray = NDArray[np.int32]
Scan = Callable[[int, int, NDArray[Any], NDArray[Any], NDArray[Any]], tuple[int, int]]

#: From this many bytes on a file is read by compiled loops; below, the careful readers are done before the compiler is loaded.
LARGE = 4_000_000
#: Offsets are kept in 32 bits; a branch takes six bytes at least.
_LARGEST = 2**33
#: Bytes between two reports of progress.
_PIECE = 2**24
#: Texts that are decoded at a time.
_BLOCK = 2_000


class OddError(Exception):
    """The text is not as expected; the careful reader shall look at it."""


def is_large(data: bytes, reading: Reading, ascii_only: bool = True) -> bool:
    """Whether a file is worth compiled loops, unless `reading` says so, and plain enough for them."""
    wanted = len(data) >= LARGE if reading.compiled is None else reading.compiled
    if not wanted or len(data) >= _LARGEST or data == b"" or data.isspace() or b"\0" in data:
        return False
    return data.isascii() or not (ascii_only or data.startswith(codecs.BOM_UTF8) or not _is_utf_8(data))


def _is_utf_8(data: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(data), _PIECE):
            decoder.decode(data[at : at + _PIECE], at + _PIECE >= len(data))
    except UnicodeDecodeError:
        return False
    return True


class ByteLines:
    """The first lines of a text with their numbers, and where the next one begins."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.line = data, 0, 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        if self.at > len(self.data):
            raise StopIteration
        end = self.data.find(b"\n", self.at)
        end = len(self.data) if end < 0 else end
        text = self.data[self.at : end].decode()
        self.at, self.line = end + 1, self.line + 1
        return self.line, text


class Book:
    """The data of a file from one place on, to its end or before, and the different texts in it, numbered."""

    def __init__(self, data: bytes, at: int, progress: Progress | None = None, end: int = -1) -> None:
        self.data, self.at, self.progress = data, at, progress
        self.bytes = np.frombuffer(data, dtype=np.uint8, count=end)
        self.counts = np.zeros(7, dtype=np.int64)
        self.counts[SEED] = int.from_bytes(os.urandom(7), "little")
        self._slots = np.full(2048, -1, dtype=np.int32)
        self._begin, self._length = np.zeros(1024, dtype=np.int64), np.zeros(1024, dtype=np.int32)

    def scan(self, scan: Scan) -> None:
        """Read to the end, piece by piece; raises where a line is odd."""
        size = len(self.bytes)
        while self.at < size:
            self.at, why = scan(self.at, min(self.at + _PIECE, size), self._slots, self._begin, self._length)
            if why == ODD:
                raise OddError
            if why == FULL:
                self._grow()
            elif self.progress is not None:
                self.progress(min(self.at, size), min(self.at, size) / size)
        self._slots = np.zeros(0, dtype=np.int32)

    def _grow(self) -> None:
        size = 2 * len(self._slots)
        self._slots = np.full(size, -1, dtype=np.int32)
        more = size // 2 - len(self._begin)
        self._begin = np.concatenate([self._begin, np.zeros(more, dtype=np.int64)])
        self._length = np.concatenate([self._length, np.zeros(more, dtype=np.int32)])
        enter_again(self.bytes, self._begin, self._length, self.counts, self._slots)

    def distinct(self, texts: NDArray[Any], more: NDArray[Any] | None = None) -> tuple[IntArray, IntArray]:
        """The texts of a column, or of two, in the order of their first appearance, and the place of every text there, or -1."""
        n_texts = int(self.counts[TEXTS])
        rank, first = np.full(n_texts + 1, -1, dtype=np.int32), np.empty(n_texts, dtype=np.int32)
        return first[: ranks(*frozen(texts, texts if more is None else more), rank, first)], rank

    def words(self, texts: Sequence[int] | NDArray[Any]) -> list[str]:
        """What texts say."""
        chosen = np.asarray(texts, dtype=np.int64)
        data = self.data
        pairs = zip(self._begin[chosen].tolist(), self._length[chosen].tolist())
        return [data[begin : begin + length].decode() for begin, length in pairs]

    def numbers(self, texts: NDArray[Any], parse: Callable[[list[str]], NDArray[np.float64]]) -> NDArray[np.float64]:
        """A column of numbers, each different text parsed once."""
        first, rank = self.distinct(texts)
        value = np.concatenate([*(parse(words) for words in self.batches(first)), np.zeros(1)])
        return np.asarray(value[rank][texts])

    def batches(self, texts: NDArray[Any]) -> Iterator[list[str]]:
        """What texts say, some at a time."""
        for at in range(0, len(texts), _BLOCK):
            yield self.words(texts[at : at + _BLOCK])


def _cuts(width: int) -> NDArray[np.int64]:
    """Where the texts of the line above begin and end, and their numbers, by column: none before the first line."""
    return np.repeat(np.array([[0], [-1], [-1]], dtype=np.int64), width, axis=1)


def rows_of(data: bytes, at: int, n_wholes: int, texts: int, progress: Progress | None) -> tuple[Book, NDArray[Any], NDArray[Any]]:
    """Lines of whole numbers and one or two words: the book, the numbers by column, and the texts by column."""
    book = Book(data, at, progress)
    most = data.count(b"\n", at) + 1
    wholes, words = np.empty((n_wholes, most), dtype=np.int32), np.empty((texts, most), dtype=np.int32)
    book.scan(
        lambda at, stop, slots, begin, length: scan_rows(
            book.bytes, at, stop, n_wholes, texts, slots, begin, length, book.counts, wholes, words
        )
    )
    rows = int(book.counts[LINES])
    return book, wholes[:, :rows], words[:, :rows]


def cells_of(data: bytes, at: int, order: Sequence[int], progress: Progress | None) -> tuple[Book, NDArray[Any]]:
    """Lines of cells: the book, and the texts by column. Texts are numbered row by row, in the order of columns given."""
    book = Book(data, at, progress)
    cells = np.empty((len(order), data.count(b"\n", at) + 1), dtype=np.int32)
    columns, cuts = np.array(order, dtype=np.int64), _cuts(len(order))
    book.scan(
        lambda at, stop, slots, begin, length: scan_cells(book.bytes, at, stop, columns, slots, begin, length, book.counts, cuts, cells)
    )
    return book, cells[:, : int(book.counts[LINES])]


def lists_of(data: bytes, at: int, end: int, width: int, progress: Progress | None) -> tuple[Book, NDArray[Any]]:
    """Lines of lists with commas between them: the book, and the texts by column."""
    book = Book(data, at, progress, end)
    items, cuts = np.empty((width, data.count(b"\n", at, end) + 1), dtype=np.int32), _cuts(width)
    book.counts[OPEN] = 1
    book.scan(lambda at, stop, slots, begin, length: scan_lists(book.bytes, at, stop, slots, begin, length, book.counts, cuts, items))
    if book.counts[OPEN]:
        raise OddError
    return book, items[:, : int(book.counts[LINES])]


def parser(numbers: Numbers) -> Callable[[list[str]], NDArray[np.float64]]:
    """Numbers by the rules of small files; their lines do not matter, since whatever is refused is read again."""
    return lambda texts: numbers.numbers(texts, range(len(texts)))
