"""The map of a Gymnasium grid, for pictures.

An environment is a grid where its states are counted by cells, row by row: it has a map `desc` with
a letter for every state (FrozenLake), a `shape` (CliffWalking), or `nrow` and `ncol`. Maps of other
things (Taxi, whose states are more than places) are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tailpath.model.ssp import Name

#: What letters of a map mean; any other letter is a kind of its own.
LETTERS = {
    "S": "floor",
    "F": "floor",
    ".": "floor",
    " ": "floor",
    "H": "hole",
    "L": "lava",
    "C": "cliff",
    "W": "obstacle",
    "#": "obstacle",
    "G": "goal",
}


def cells_of(
    inner: Any, n_states: int, ends: Mapping[Name, str]
) -> dict[Name, tuple[int, int, str]] | None:
    """`{state: (row, column, kind)}` of an environment that is a grid, or None. `ends` says which
    kind of end a state is that has no letter.
    """
    letters = _letters(getattr(inner, "desc", None))
    shape = getattr(inner, "shape", None) or (getattr(inner, "nrow", 0), getattr(inner, "ncol", 0))
    if letters is not None and letters.size == n_states:
        columns = letters.shape[1]
        kinds = [LETTERS.get(letter, letter) for letter in letters.ravel().tolist()]
    elif isinstance(shape, (tuple, list)) and len(shape) == 2 and math.prod(shape) == n_states:
        columns, kinds = int(shape[1]), [ends.get(state, "floor") for state in range(n_states)]
    else:
        return None
    return {state: (*divmod(state, columns), kind) for state, kind in enumerate(kinds)}


def _letters(desc: Any) -> Any:
    """A map, of letters or of lines, as an array of letters of shape (rows, columns); None where it
    is none.
    """
    try:
        array = np.array(desc)
    except ValueError:  # lines of different lengths
        return None
    if array.dtype.kind == "S":
        array = np.char.decode(array, "ascii")
    if array.ndim == 1 and array.dtype.kind == "U" and len(set(map(len, array.tolist()))) == 1:
        array = np.array([list(line) for line in array.tolist()])
    return array if array.ndim == 2 and array.dtype.kind == "U" else None
