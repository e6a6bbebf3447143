"""Text files written block by block: what is held as text is a few megabytes, however large the model. Equal numbers are spelled once.

A block is a row of pieces, numbers of texts; the loops of `kernels/pieces.py` put those of large models together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import frozen
from tailpath.kernels.pieces import join_pieces, number_values
from tailpath.model.ragged import members_of
from tailpath.model.ssp import SSP
from tailpath.options import Progress

#: The outcomes of a block, about.
_BLOCK = 50_000
#: From this many outcomes on compiled loops write them; below, the others are done before the compiler is loaded.
_LARGE = 100_000
#: The bytes that are written at a time.
_ROOM = 2**20

Pieces = NDArray[np.int32]


class Block(NamedTuple):
    """Some states in a row, with their choices and outcomes."""

    states: range
    choices: range
    outcomes: range


def blocks(ssp: SSP, progress: Progress | None = None) -> Iterator[Block]:
    """The states of a model, some at a time. Progress is told in outcomes."""
    first_outcome = ssp.choice_outcomes[ssp.state_choices]
    first = 0
    while first < ssp.n_states:
        last = int(np.searchsorted(first_outcome, first_outcome[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), first + _BLOCK, ssp.n_states)
        choices = range(int(ssp.state_choices[first]), int(ssp.state_choices[last]))
        yield Block(range(first, last), choices, range(int(first_outcome[first]), int(first_outcome[last])))
        if progress is not None:
            progress(int(first_outcome[last]), last / ssp.n_states)
        first = last


def cut(array: NDArray[Any], part: range) -> NDArray[Any]:
    """The entries of a block."""
    return array[part.start : part.stop]


def encoded(text: str) -> bytes:
    """Text as bytes; what UTF-8 cannot hold is written as an escape."""
    return text.encode("utf-8", "backslashreplace")


def whole(numbers: NDArray[Any]) -> NDArray[Any]:
    """The pieces that are these whole numbers."""
    return ~numbers


class Texts:
    """The texts that the file of a model is made of, numbered: some for the whole file, the others for a block.

    Compiled loops put those of large models together, unless `compiled` says so.
    """

    def __init__(self, ssp: SSP, lasting: Sequence[str] = (), compiled: bool | None = None) -> None:
        self.compiled = ssp.n_outcomes >= _LARGE if compiled is None else compiled
        self._data, self._begin = np.empty(2**16, dtype=np.uint8), np.zeros(2**10, dtype=np.int64)
        self._count = self._longest = 0
        self.enter(lasting)
        self._lasting = self._count

    def clear(self) -> None:
        """Forget the texts of the last block."""
        self._count = self._lasting

    def enter(self, texts: Sequence[str]) -> int:
        """Number some texts; returns the number of the first."""
        first, joined = self._count, "".join(texts)
        parts = texts if joined.isascii() else [encoded(text) for text in texts]
        end = self._begin[first] + np.cumsum(np.fromiter(map(len, parts), np.int64, len(texts)))
        self._longest = max(self._longest, *map(len, parts), 0) if parts else self._longest
        self._count += len(texts)
        self._begin = _grown(self._begin, first + 1, self._count + 1)
        self._begin[first + 1 : self._count + 1] = end
        begin, size = int(self._begin[first]), int(self._begin[self._count])
        self._data = _grown(self._data, begin, size + 7)
        self._data[begin:size] = np.frombuffer(encoded(joined), dtype=np.uint8)
        return first

    def spelled(self, values: NDArray[Any], spell: Callable[[Any], str]) -> NDArray[Any]:
        """The piece of every value; each different one is spelled once."""
        bits = values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64)
        number: NDArray[Any]
        place: NDArray[Any]
        if self.compiled:
            number, place = np.empty(len(bits), dtype=np.int32), np.empty(len(bits), dtype=np.int32)
            slots = np.full(2 ** len(bits).bit_length(), -1, dtype=np.int32)
            place = place[: number_values(*frozen(bits), int.from_bytes(os.urandom(7), "little"), slots, number, place)]
        else:
            _, place, number = np.unique(bits, return_index=True, return_inverse=True)
        return number + np.int32(self.enter([spell(value) for value in values[place].tolist()]))

    def joined(self, pieces: NDArray[Any]) -> Iterator[bytes]:
        """What the pieces say, in any shape, row by row."""
        row = np.ascontiguousarray(pieces, dtype=np.int32).ravel()
        if not self.compiled:
            numbers, at = np.unique(row, return_inverse=True)
            row = np.where(row < 0, at + self.enter([str(~number) for number in numbers[numbers < 0].tolist()]), row)
            yield self._data[members_of(self._begin[: self._count + 1], row)[0]].tobytes()
            return
        done, room = 0, np.empty(_ROOM + self._longest, dtype=np.uint8)
        while done < len(row):
            done, size = join_pieces(*frozen(row), done, *frozen(self._data, self._begin), room)
            yield room[:size].tobytes()


def _grown(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """The array with room for so many entries; those in use stay."""
    if size <= len(array):
        return array
    larger = np.empty(2 * size, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger
