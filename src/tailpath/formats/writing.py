"""Text files written block by block: what is held as text is a few megabytes, whatever the model.

A block is some columns of texts side by side. Equal numbers are spelled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.formats.arrays import Array
from tailpath.model.ssp import SSP
from tailpath.options import Progress

#: The outcomes of a block, about: as many as the processor has at hand.
BLOCK = 10_000
Texts = NDArray[np.object_]


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
        last = int(np.searchsorted(first_outcome, first_outcome[first] + BLOCK, side="right")) - 1
        last = min(max(last, first + 1), first + BLOCK, ssp.n_states)
        choices = range(int(ssp.state_choices[first]), int(ssp.state_choices[last]))
        outcomes = range(int(first_outcome[first]), int(first_outcome[last]))
        yield Block(range(first, last), choices, outcomes)
        if progress is not None:
            progress(int(first_outcome[last]), last / ssp.n_states)
        first = last


def entries_of(array: Array, part: range) -> Array:
    """The entries of a block."""
    return array[part.start : part.stop]


def encoded(text: str) -> bytes:
    """Text as bytes; what UTF-8 cannot hold is written as an escape."""
    return text.encode("utf-8", "backslashreplace")


def text_column(texts: Iterable[str]) -> Texts:
    """Texts as a table: `table[numbers]` is a column."""
    return np.array(list(texts), dtype=object)


def spelled(values: Array, spell: Callable[[Any], str]) -> Texts:
    """A column: the text of every value, (n,). Equal ones are spelled once."""
    different, number = np.unique(values, return_inverse=True)
    return text_column(map(spell, different.tolist()))[number]


def joined_columns(*columns: Texts) -> bytes:
    """Columns of the same length side by side, row by row."""
    parts = [""] * (len(columns) * len(columns[0]))
    for position, column in enumerate(columns):
        parts[position :: len(columns)] = column.tolist()
    return encoded("".join(parts))


def put_before(heads: Texts, positions: Iterable[int], lines: Iterable[str]) -> None:
    """Put each line before the text at its position; lines of one position stay in their order."""
    found: dict[int, list[str]] = {}
    for position, line in zip(positions, lines):
        found.setdefault(position, []).append(line)
    for position, some in found.items():
        heads[position] = "".join([*some, heads[position]])
