"""Large DRN files: the header line by line as ever, the body by compiled loops (see `scanning.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError
from tailpath.formats.drn_text import UNNAMED, Header, Rewards, assembled
from tailpath.formats.labelled import Labelled
from tailpath.formats.scanning import Book, ByteLines, OddError, parser
from tailpath.formats.text import Numbers
from tailpath.kernels.drn import scan_drn
from tailpath.kernels.texts import BRANCHES, CHOICES, STATES
from tailpath.model.ragged import members_of, owners
from tailpath.options import Progress

_STATE, _ACTION = np.frombuffer(b"state", dtype=np.uint8), np.frombuffer(b"action", dtype=np.uint8)


def scanned(path: str, data: bytes, progress: Progress | None) -> Labelled | None:
    """The model that plain text describes, or `None` where something about it is odd or wrong."""
    lines = ByteLines(data)
    header = Header(path)
    header.read(lines)
    try:
        return _body(header, data, lines.at, progress)
    except (OddError, FormatError):
        return None


def _body(header: Header, data: bytes, at: int, progress: Progress | None) -> Labelled:
    book = Book(data, at, progress)
    most = data.count(b"\n", at) + 1  # of each; memory that is never written to is never taken
    state, choice = np.empty((3, most), dtype=np.int32), np.empty((3, most), dtype=np.int32)
    target, chance = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    book.scan(
        lambda at, stop, slots, begin, length: scan_drn(
            book.bytes, at, stop, _STATE, _ACTION, slots, begin, length, book.counts, state, choice, target, chance
        )
    )
    n_states, n_choices, n_branches = (int(book.counts[place]) for place in (STATES, CHOICES, BRANCHES))
    state, choice, target, chance = state[:, :n_states], choice[:, :n_choices], target[:n_branches], chance[:n_branches]
    state_choices, choice_branches = (np.append(row, end).astype(np.int64) for row, end in ((state[0], n_choices), (choice[0], n_branches)))
    if n_states == 0 or n_branches == 0 or (header.deterministic and n_choices and np.diff(state_choices).max() > 1):
        raise OddError
    rewards = Rewards(header)
    lists = [_numbers_of_lists(book, rewards, texts) for texts in (state[1], choice[2])]
    return assembled(
        header,
        state_choices,
        choice_branches,
        target,
        _probabilities(header, book, chance),
        _actions(header, book, choice[1], state_choices),
        _members(header, book, state[2]),
        lambda: rewards.structures(*lists),
        int(target.max()),
        0,
    )


def _probabilities(header: Header, book: Book, texts: NDArray[Any]) -> NDArray[np.float64]:
    if header.placeholders:
        return book.numbers(texts, lambda words: np.array([header.value(word, 0) for word in words], dtype=np.float64))
    return book.numbers(texts, parser(Numbers(header.path)))


def _numbers_of_lists(book: Book, rewards: Rewards, texts: NDArray[Any]) -> NDArray[np.int64]:
    """The number of each list of rewards, 0 where there is none."""
    first, rank = book.distinct(texts)
    number = np.array([*(rewards.parse(word, 0) for word in book.words(first)), 0], dtype=np.int64)
    return np.asarray(number[rank[texts]])


def _actions(header: Header, book: Book, texts: NDArray[Any], state_choices: NDArray[np.int64]) -> tuple[NDArray[Any], list[str]]:
    """The number of each choice's action, and the actions. A choice may have no name, or its position for one."""
    named = texts.copy()
    first, _ = book.distinct(texts)
    position = np.arange(len(texts)) - state_choices[owners(state_choices)]
    for text, word in zip(first.tolist(), book.words(first)):
        if word == UNNAMED:
            named[texts == text] = -1
        elif word.isdigit() and word == str(int(word[:18])) and header.extras.actions is None:
            named[(texts == text) & (position == int(word))] = -1
    first, rank = book.distinct(named)
    return rank[named], book.words(first)


def _members(header: Header, book: Book, texts: NDArray[Any]) -> dict[str, Sequence[int] | NDArray[Any]]:
    """The states of each label."""
    first, rank = book.distinct(texts)
    labelled = np.flatnonzero(texts >= 0)
    of_text = rank[texts[labelled]]
    order = np.argsort(of_text, kind="stable")
    offsets = np.searchsorted(of_text[order], np.arange(len(first) + 1))
    groups: dict[str, list[int]] = {}
    for at, word in enumerate(book.words(first)):
        for label in header.labels(word.strip(), 0):
            groups.setdefault(label, []).append(at)
    return {label: labelled[order[members_of(offsets, np.array(within))[0]]] for label, within in groups.items()}
