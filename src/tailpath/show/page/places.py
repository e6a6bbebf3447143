"""Where the states of a graph stand, as users know it: by name, in a table with columns x and y, or
lat and lon.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.formats.files import read_text
from tailpath.graph import FloatArray
from tailpath.model.frames import is_table
from tailpath.model.ssp import SSP
from tailpath.texts import name as name_in_words

#: What the columns of a table of places may be called.
NAMES = ("state", "name", "place", "from", "id", "node")
ACROSS, UP = ("x", "lon", "lng", "longitude"), ("y", "lat", "latitude")
#: Units between two places that are next to each other, and the widest picture; it is no wider than
#: twice what so many places need.
APART, WIDEST = 2.0, 24.0


def places_of(given: Any, ssp: SSP) -> tuple[FloatArray, FloatArray]:
    """`x` and `y` of every state, in units of a picture whose rows go down; those of which nothing
    is said stand between their neighbours, and are not numbers where there is none.
    """
    known = {name_in_words(state): k for k, state in enumerate(ssp.states)}
    at = np.full((2, ssp.n_states), np.nan)
    for name, across, up in _entries(given):
        if name_in_words(name) in known:
            at[:, known[name_in_words(name)]] = across, up
    if np.isnan(at[0]).all():
        raise OptionError("positions name no state of the model")
    source, target = ssp.choice_state[ssp.outcome_choice], ssp.outcome_target
    for state in np.flatnonzero(np.isnan(at[0])).tolist():
        near = np.append(target[source == state], source[target == state])
        near = np.unique(near[~np.isnan(at[0, near])])
        at[:, state] = at[:, near].mean(axis=1) if near.size else np.nan
    x, y = at[0], -at[1]
    points = np.stack((x, y), axis=1)[~np.isnan(x)]
    gaps = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    gaps[gaps == 0] = np.inf
    least, wide = float(np.median(gaps.min(axis=1))), float(np.ptp(points, axis=0).max())
    widest = min(WIDEST, 2 * APART * math.sqrt(len(points)))
    scale = min(APART / least, widest / wide) if math.isfinite(least) else 1.0
    return (x - np.nanmin(x)) * scale + 0.9, (y - np.nanmin(y)) * scale + 0.9


def _entries(given: Any) -> Iterator[tuple[Hashable, float, float]]:
    """Names and where they are, x to the right and y up; degrees as they look in the middle."""
    if isinstance(given, Mapping) and not {*map(str, given)} & {*ACROSS, *UP}:
        for name, at in given.items():
            if not isinstance(at, (tuple, list, np.ndarray)) or len(at) != 2:
                raise OptionError(f"positions are pairs (x, y), not {at!r}")
            yield name, _number(at[0]), _number(at[1])
        return
    table = _table(given)
    columns = {str(name).strip().lower(): name for name in table}
    found = [
        next((columns[w] for w in words if w in columns), None) for words in (NAMES, ACROSS, UP)
    ]
    if None in found:
        raise OptionError(
            "positions need a column with the states (state, name, place or from) and two with x"
            f" and y, or lon and lat; there are {', '.join(map(str, table))}"
        )
    names, across, up = (list(table[column]) for column in found)
    x, y = (np.array([_number(cell) for cell in cells]) for cells in (across, up))
    if str(found[2]).strip().lower() != "y":
        x = x * math.cos(math.radians(float(y.mean())))
    yield from zip(names, x.tolist(), y.tolist())


def _table(given: Any) -> Any:
    """A table by columns: a file with commas, semicolons or tabs, or one in memory."""
    if isinstance(given, Mapping) or is_table(given):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise OptionError(f"positions are a mapping, a table or a path, not {given!r}")
    text = read_text(os.fsdecode(given))
    mark = max(",;\t", key=text.partition("\n")[0].count)
    header, *rows = (row for row in csv.reader(text.splitlines(), delimiter=mark) if row)
    return {name: [row[k] for row in rows if len(row) > k] for k, name in enumerate(header)}


def _number(cell: Any) -> float:
    try:
        number = float(str(cell).replace(",", "."))
    except ValueError:
        number = math.inf
    if math.isinf(number):
        raise OptionError(f"positions are numbers, not {cell!r}")
    return number
