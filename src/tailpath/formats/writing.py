"""Text files written block by block: what is held as text is a few megabytes, however large the model. Equal numbers are spelled once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.model.ssp import SSP
from tailpath.options import Progress

#: The outcomes of a block, about.
_BLOCK = 50_000


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


def spelled(values: NDArray[Any], spell: Callable[[Any], str]) -> list[str]:
    """The text of every value; each different one is spelled once."""
    distinct, at = np.unique(values, return_inverse=True)
    texts = [spell(value) for value in distinct.tolist()]
    return [texts[place] for place in at.tolist()]


def encoded(texts: Iterable[str]) -> Iterator[bytes]:
    """Pieces of text as bytes; what UTF-8 cannot hold is written as an escape."""
    for text in texts:
        yield text.encode("utf-8", "backslashreplace")
