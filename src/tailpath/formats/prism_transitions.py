"""The lines of PRISM's explicit files, and the transitions of `.tra` in the forms in which PRISM
and Storm write them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.archives import unpacked
from tailpath.formats.files import read_bytes, shorten, text_bytes
from tailpath.formats.registry import Reading
from tailpath.formats.text_files import TextFile, joined_ends
from tailpath.graph import Array, BoolArray, FloatArray, IntArray, first_of, offsets_of


class ExplicitRows(NamedTuple):
    """Rows by column: the line of each, its integers, its number, and the index of its action in
    `actions`, or -1.

    Where numbers are intervals, `values` has their high ends and `low` the low ones.
    """

    lines: Array
    integers: Array
    values: FloatArray
    action: Array
    actions: list[str]
    low: FloatArray | None = None


class ExplicitFile(TextFile):
    """One file; its first line with content is the header."""

    def __init__(self, path: str, reading: Reading) -> None:
        data = text_bytes(path, unpacked(path, read_bytes(path)))
        super().__init__(path, data, reading.progress, comment="#")
        self.header = next(self.rows(), "")
        self.header_line = self.line

    def table(self, width: int, *, with_actions: bool = False) -> ExplicitRows:
        """All rows that are left, of `width` integers and a number or an interval, after which an
        action may follow."""
        actions = defaultdict(count().__next__, {"": -1})

        def parse(texts: list[str]) -> tuple[Array, FloatArray, Array]:
            try:
                integers, ends, words = self.columns(texts, width, words=with_actions)
            except FormatError:
                if ":" not in "".join(texts):
                    raise
                found = f"{shorten(texts[0])!r} has a colon"
                raise self.error(f"{found}; export without -exportrows") from None
            return integers, ends, np.fromiter(map(actions.__getitem__, words), np.int32)

        found = [(np.zeros(0, np.int32), parse([])), *self.blocks(parse)]
        self.data = b""
        lines = np.concatenate([line for line, _ in found])
        integers, ends, action = zip(*(part for _, part in found))
        low, high = joined_ends(ends)
        words = list(actions)[1:]
        return ExplicitRows(
            lines, np.concatenate(integers, axis=1).T, high, np.concatenate(action), words, low
        )

    def sizes(self, *counts: int) -> list[int]:
        """The header as whole numbers, of which there must be one of the given counts."""
        words = self.header.split()
        if len(words) not in counts:
            raise self.error(
                f"the header {shorten(self.header)!r} must have {' or '.join(map(str, counts))}"
                " numbers",
                self.header_line,
            )
        return list(map(self.integer, words))

    def check_count(self, what: str, declared: int, found: int) -> None:
        if declared != found:
            raise self.error(
                f"the header says {declared} {what}, the file has {found}", self.header_line
            )


class TransitionFile:
    """The `.tra` file: one row per transition, sorted by state and choice."""

    def __init__(self, path: str, reading: Reading) -> None:
        file = ExplicitFile(path, reading)
        self.file = file
        kind = file.header.lower()
        sizes = [] if kind in ("mdp", "dtmc") else file.sizes(2, 3)
        self.is_mdp = kind == "mdp" if not sizes else len(sizes) == 3
        width = 3 if self.is_mdp else 2
        self.line, columns, probability, action, self.actions, self.low = file.table(
            width, with_actions=True
        )
        self.n_states = sizes[0] if sizes else int(columns[:, [0, -1]].max(initial=0)) + 1
        if sizes:
            file.check_count("transitions", sizes[-1], len(action))
        self._sort(with_choice(columns), probability, action)
        if len(sizes) == 3:
            file.check_count("choices", sizes[1], len(self.choice_action))
        self.extras = file.extras()

    def _refuse(self, rows: BoolArray, message: Callable[[int], str]) -> None:
        for row in first_of(rows):
            raise self.file.error(message(row), self.line[row])

    def _sort(self, columns: IntArray, probability: Array, action: Array) -> None:
        state, choice, target = columns.T
        self._refuse(
            (state >= self.n_states) | (target >= self.n_states),
            lambda row: f"state {max(state[row], target[row])} lies outside 0..{self.n_states - 1}",
        )
        order = np.lexsort((choice, state))
        if (np.diff(order) != 1).any():
            self.line = self.line[order]
            state, choice, action, target, probability = (
                column[order] for column in (state, choice, action, target, probability)
            )
            self.low = None if self.low is None else self.low[order]
        del order
        first_of_state = np.ones(len(state), dtype=np.bool_)
        first_of_state[1:] = state[1:] != state[:-1]
        # A state that no transition enters or leaves may be intended; many of them mean a wrong
        # number, which must not claim memory.
        if self.n_states > 2 * np.count_nonzero(first_of_state) + 1000:
            met = len(np.unique(np.concatenate([state, target, [0]])))
            if self.n_states > 2 * met + 1000:
                self.file.check_count("states", self.n_states, met)
        new = first_of_state.copy()
        new[1:] |= choice[1:] != choice[:-1]
        expected = np.roll(choice, 1) + new
        expected[first_of_state] = 0
        self._refuse(
            choice != expected,
            lambda row: (
                f"choice {choice[row]} of state {state[row]}, but there is no choice"
                f" {expected[row]}"
            ),
        )
        self.row_choice = np.cumsum(new, dtype=np.int32) - np.int32(1)
        self._refuse(
            action != action[new][self.row_choice],
            lambda row: f"choice {choice[row]} of state {state[row]} has two action names",
        )
        self.choice_state, self.choice_action = state[new], action[new]
        self.target, self.probability = target, probability

    def keys(self, state: Array, choice: Array, target: Array) -> IntArray:
        """One number per (choice, target); -1 where there is no such choice."""
        begin = offsets_of(self.choice_state, self.n_states)
        inside = (state < self.n_states) & (target < self.n_states)
        index = begin[np.where(inside, state, 0)] + choice
        inside &= index < begin[np.where(inside, state, 0) + 1]
        return np.where(inside, index * self.n_states + target, -1)


def with_choice(columns: IntArray) -> IntArray:
    """State, choice, target; a Markov chain has one choice per state and does not write it."""
    return columns if columns.shape[1] == 3 else np.insert(columns, 1, 0, axis=1)
