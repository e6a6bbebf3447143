"""The lines of PRISM's explicit files, and the transitions of `.tra` in the forms in which PRISM
and Storm write them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError
from tailpath.formats import bulk
from tailpath.formats.extras import MARK, Extras
from tailpath.formats.files import read_bytes, shorten, text_bytes, unpacked
from tailpath.formats.reading import Reading
from tailpath.formats.text import BLOCK, NumberParser, after, lines_of
from tailpath.graph import offsets_of


class ExplicitRows(NamedTuple):
    """Rows by column: the line of each, its integers, its number, and the index of its word in
    `words`, or -1.

    Where numbers are intervals, `values` has their high ends and `low` the low ones.
    """

    lines: Sequence[int]
    integers: NDArray[Any]
    values: NDArray[np.float64]
    word: NDArray[Any]
    words: list[str]
    low: NDArray[np.float64] | None = None


class ExplicitFile:
    """The lines of one file that say something, with their numbers; the first of them is the
    header.
    """

    def __init__(self, path: str, reading: Reading) -> None:
        self.path, self.progress = path, reading.progress
        self.numbers = NumberParser(path)
        self.comments: list[tuple[int, str]] = []
        self.rows_of_state: dict[int, int] = {}
        self.data = text_bytes(path, unpacked(path, read_bytes(path)))
        lines = lines_of(self.data, self.progress)
        self._lines: Iterator[tuple[int, str]] = enumerate(lines, start=1)
        self.header_line, self.header = next(self.rows(), (1, ""))

    def rows(self) -> Iterator[tuple[int, str]]:
        for line, text in self._lines:
            text = text.strip()
            if text.startswith("#"):
                self.comments.append((line, text))
            elif text:
                yield line, text

    def table(self, width: int, named: bool) -> ExplicitRows | None:
        """All rows that are left, of `width` whole numbers, a number and where they are `named`
        perhaps a word, if they are many and plain."""
        found = bulk.attempt(self.data, lambda: self._cut(width, named))
        self.data = b""  # which the lines that are left still have
        if found is not None:
            self._lines = iter(())
        return found

    def _cut(self, width: int, named: bool) -> ExplicitRows:
        names: dict[str, int] = {}

        def entered(texts: list[str]) -> NDArray[np.int64]:
            return np.array([names.setdefault(text, len(names)) for text in texts])

        parts = []
        for lines in bulk.pieces(self.data, after(self.data, self.header_line), self.progress):
            integers = np.empty((width, lines.n_lines), dtype=np.int32)
            values = np.empty(lines.n_lines)
            word = np.full(lines.n_lines, -1, dtype=np.int32)
            n_blanks = lines.count(ord(" "))
            widths = (width, width + 1) if named else (width,)
            if not np.isin(n_blanks, widths).all():
                raise bulk.OddError
            for n in widths:
                which = n_blanks == n
                if which.any():
                    kinds = ["integer"] * width + ["word"] * (n - width + 1)
                    found = lines.columns(which, " ", kinds)
                    rows = slice(None) if which.all() else which
                    integers[:, rows] = found[:width]
                    values[rows] = found[width].understood(self.numbers.of)
                    if n > width:
                        word[rows] = found[-1].understood(entered)
            parts.append((integers, values, word))
        if not parts or any(name.split() != [name] for name in names):
            raise bulk.OddError
        integers, values, word = (np.concatenate(column, axis=-1) for column in zip(*parts))
        first = self.header_line + 1
        return ExplicitRows(
            range(first, first + len(values)), integers.T, values, word, list(names)
        )

    def blocks(self, *widths: int) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Lines and their words, many at a time; every row must have one of the widths."""
        rows = self.rows()
        while block := list(islice(rows, BLOCK)):
            words = [text.split() for _, text in block]
            for (line, text), row in zip(block, words):
                if len(row) not in widths:
                    raise self.fail(
                        line,
                        f"{shorten(text)!r} has {len(row)} words, expected"
                        f" {' or '.join(map(str, widths))}",
                    )
            yield [line for line, _ in block], words

    def has_rows(self, may_be_empty: bool) -> bool:
        """Whether the file has a choice per line, as `-exportrows` writes it; of a first line
        without entries nothing else can be meant.
        """
        first = next(self.rows(), None)
        if first is None:
            return False
        self._lines = chain([first], self._lines)
        words = first[1].split()
        return ":" in words[1] if len(words) > 1 else may_be_empty

    def ends(self, text: str, line: int) -> tuple[float, float]:
        """The ends of an interval `[low,high]`; a number is both."""
        low, comma, high = text[1:-1].partition(",")
        if comma and text[0] + text[-1] == "[]":
            return self.numbers.number(low, line), self.numbers.number(high, line)
        return self.numbers.number(text, line), self.numbers.number(text, line)

    def shares(
        self, texts: Sequence[str], lines: Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Low and high ends of probabilities."""
        if not any(text.startswith("[") for text in texts):
            found = self.numbers.numbers(texts, lines)
            return found, found
        low, high = (
            np.array([self.ends(text, line) for text, line in zip(texts, lines)]).reshape(-1, 2).T
        )
        return low, high

    def choice_rows(self, width: int) -> ExplicitRows:
        """Lines "i x:j x:j [a]"; choices are numbered within their state as the lines come."""
        columns: list[tuple[int, ...]] = []
        values: list[tuple[float, float]] = []
        at_line: list[int] = []
        action: list[int] = []
        actions: dict[str, int] = {}
        choices: dict[int, int] = {}
        numbers = self.numbers
        for line, text in self.rows():
            words = text.split()
            state = numbers.integer(words[0], line)
            named = len(words) > 1 and ":" not in words[-1]
            which = actions.setdefault(words[-1], len(actions)) if named else -1
            choice = choices[state] = choices.get(state, -1) + 1
            if choice and width == 2:
                raise self.fail(line, f"a second row for state {state} of a DTMC")
            for word in words[1 : len(words) - named]:
                share, _, target = word.partition(":")
                columns.append(
                    (state, choice, numbers.integer(target, line))
                    if width == 3
                    else (state, numbers.integer(target, line))
                )
                values.append(self.ends(share, line))
                action.append(which)
                at_line.append(line)
        self.rows_of_state = {state: last + 1 for state, last in choices.items()}
        integers = np.array(columns, dtype=np.int64).reshape(-1, width)
        low, high = np.array(values, dtype=np.float64).reshape(-1, 2).T
        return ExplicitRows(
            at_line,
            integers,
            high,
            np.array(action, dtype=np.int64),
            list(actions),
            low if (low != high).any() else None,
        )

    def sizes(self, *counts: int) -> list[int]:
        """The header as whole numbers, of which there must be one of the given counts."""
        words = self.header.split()
        if len(words) not in counts:
            raise self.fail(
                self.header_line,
                f"the header {shorten(self.header)!r} must have {' or '.join(map(str, counts))}"
                " numbers",
            )
        return [self.numbers.integer(word, self.header_line) for word in words]

    def compare(self, what: str, declared: int, found: int) -> None:
        if declared != found:
            raise self.fail(
                self.header_line, f"the header says {declared} {what}, the file has {found}"
            )

    def fail(self, line: int, message: str) -> FormatError:
        return FormatError(f"{self.path}:{line}: {message}")


class TransitionFile:
    """The `.tra` file: one row per transition, sorted by state and choice."""

    def __init__(self, path: str, reading: Reading) -> None:
        file = ExplicitFile(path, reading)
        self.file = file
        self.line: Sequence[int] = []
        kind = file.header.lower()
        sizes = [] if kind in ("mdp", "dtmc") else file.sizes(2, 3)
        self.nondeterministic = kind == "mdp" if not sizes else len(sizes) == 3
        width = 3 if self.nondeterministic else 2
        self.line, columns, probability, action, self.actions, self.low = file.table(
            width, named=True
        ) or self._read(width)
        self.n_states = sizes[0] if sizes else int(columns[:, [0, -1]].max(initial=0)) + 1
        if sizes:
            file.compare("transitions", sizes[-1], len(action))
        self._sort(with_choice(columns), probability, action)
        if len(sizes) == 3:
            file.compare("choices", sizes[1], len(self.choice_action))
        self.extras = _extras(file)

    def _read(self, width: int) -> ExplicitRows:
        """State, choice and target of every transition, its probability, and its action or -1."""
        file = self.file
        if file.has_rows(may_be_empty=False):
            return file.choice_rows(width)
        columns: list[NDArray[np.int64]] = [np.zeros((0, width), dtype=np.int64)]
        shares: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = [(np.zeros(0), np.zeros(0))]
        at_line: list[int] = []
        action: list[int] = []
        actions: dict[str, int] = {}
        for lines, rows in file.blocks(width + 1, width + 2):
            columns.append(
                np.column_stack(
                    [file.numbers.integers([row[at] for row in rows], lines) for at in range(width)]
                )
            )
            shares.append(file.shares([row[width] for row in rows], lines))
            action.extend(
                actions.setdefault(row[width + 1], len(actions)) if len(row) == width + 2 else -1
                for row in rows
            )
            at_line.extend(lines)
        low, high = (np.concatenate(ends) for ends in zip(*shares))
        numbers = np.array(action, dtype=np.int64)
        return ExplicitRows(
            at_line,
            np.concatenate(columns),
            high,
            numbers,
            list(actions),
            low if (low != high).any() else None,
        )

    def _sort(
        self, columns: NDArray[np.int64], probability: NDArray[Any], action: NDArray[Any]
    ) -> None:
        state, choice, target = columns.T
        for row in np.flatnonzero((state >= self.n_states) | (target >= self.n_states))[
            :1
        ].tolist():
            raise self.file.fail(
                self.line[row],
                f"state {max(state[row], target[row])} lies outside 0..{self.n_states - 1}",
            )
        # A state that no transition enters or leaves may be meant; many of them are a wrong number,
        # and memory must not follow it.
        met = self._met(state, target)
        if self.n_states > 2 * met + 1000:
            self.file.compare("states", self.n_states, met)
        if not _in_order(state, choice):
            order = np.lexsort((choice, state))
            self.line = np.asarray(self.line)[order].tolist()
            state, choice, action, target, probability = (
                column[order] for column in (state, choice, action, target, probability)
            )
            self.low = None if self.low is None else self.low[order]
        first_of_state = np.ones(len(state), dtype=np.bool_)
        first_of_state[1:] = state[1:] != state[:-1]
        new = first_of_state.copy()
        new[1:] |= choice[1:] != choice[:-1]
        expected = np.roll(choice, 1) + new
        expected[first_of_state] = 0
        for row in np.flatnonzero(choice != expected)[:1].tolist():
            raise self.file.fail(
                self.line[row],
                f"choice {choice[row]} of state {state[row]}, but there is no choice"
                f" {expected[row]}",
            )
        of_row = np.cumsum(new, dtype=np.int32) - np.int32(1)
        for row in np.flatnonzero(action != action[new][of_row])[:1].tolist():
            raise self.file.fail(
                self.line[row], f"choice {choice[row]} of state {state[row]} has two action names"
            )
        self.choice_state, self.choice_action = state[new], action[new]
        self.row_choice, self.state, self.choice, self.target, self.probability = (
            of_row,
            state,
            choice,
            target,
            probability,
        )

    def _met(self, state: NDArray[Any], target: NDArray[Any]) -> int:
        """How many states the transitions speak of, the first one included."""
        if self.n_states > 4 * len(state) + 1000:
            return len(np.unique(np.concatenate([state, target, [0]])))
        seen = np.zeros(max(self.n_states, 1), dtype=np.bool_)
        seen[0] = True
        seen[state], seen[target] = True, True
        return int(np.count_nonzero(seen))

    def keys(
        self, state: NDArray[Any], choice: NDArray[Any], target: NDArray[Any]
    ) -> NDArray[np.int64]:
        """One number per (choice, target); -1 where there is no such choice."""
        begin = offsets_of(self.choice_state, self.n_states)
        inside = (state < self.n_states) & (target < self.n_states)
        index = begin[np.where(inside, state, 0)] + choice
        inside &= index < begin[np.where(inside, state, 0) + 1]
        return np.where(inside, index * self.n_states + target, -1)


def _in_order(state: NDArray[Any], choice: NDArray[Any]) -> bool:
    """Whether rows stand by state and choice."""
    before, after = state[:-1], state[1:]
    return bool(((before < after) | ((before == after) & (choice[:-1] <= choice[1:]))).all())


def with_choice(columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """State, choice, target; a Markov chain has one choice per state and does not write it."""
    return columns if columns.shape[1] == 3 else np.insert(columns, 1, 0, axis=1)


def _extras(file: ExplicitFile) -> Extras:
    for line, text in file.comments:
        if text.startswith(f"#{MARK} "):
            return Extras.parse(text[len(MARK) + 2 :], f"{file.path}:{line}")
    return Extras()
