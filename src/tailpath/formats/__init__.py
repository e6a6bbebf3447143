"""Reading and writing models: `read` and `write` find the format by suffix or by `scheme:`; each format is a file of this folder.

Every reader hands its numbers to `SSP`, which checks them; a refusal names the file and the line, the archive member or the state at fault.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tailpath.errors import FormatError, ModelError, OptionError
from tailpath.formats.files import brief
from tailpath.formats.reading import Reading
from tailpath.formats.registry import FORMATS, IN_MEMORY, by_scheme, by_suffix
from tailpath.model.ssp import SSP
from tailpath.model.tables import WORDS, is_graph, is_table
from tailpath.options import Progress

#: A scheme has two letters or more, so that `C:\\models\\a.json` is a path.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]+):(.*)", re.DOTALL)


def read(
    source: Any,
    *,
    goal: str | None = None,
    cost: str | None = None,
    step_cost: float | None = None,
    cost_of: Mapping[float, float] | None = None,
    negate_reward: bool = False,
    constants: Mapping[str, Any] | None = None,
    start: Any = None,
    goals: Iterable[Any] = (),
    one_based: bool = False,
    columns: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **column: Any,
) -> SSP:
    """Read a model from a path, a `scheme:` string, a table, a graph, or an environment of Gymnasium or its table `P`.

    | option | meaning |
    | --- | --- |
    | `goal` | the label of the goal states (default `goal`), or a condition (`x=3 & y=1`); in Gymnasium `best`, `all` or a final reward |
    | `cost` | the reward structure that holds the costs (default: the only one), or the column of a table |
    | `step_cost` | every outcome costs this much, whatever its reward |
    | `cost_of` | `{reward: cost}`: what an outcome with exactly this reward costs; wins over `step_cost` |
    | `negate_reward` | the opposite of the sign that the format's owner uses |
    | `constants` | values of the constants that the model leaves open |
    | `start` | the state where runs begin; where states have labels, a label, a condition or the number of a state |
    | `goals` | the goal states of a table or a graph |
    | `one_based` | the states and actions of a table are counted from 1 |
    | `columns` | `{"cost": "minutes"}`: what the columns of a table are called; `state=`, `next_state=` and so on say it one by one |

    A format refuses the options it has no use for. `ssp.notes` says what the reader assumed. `progress` is called now and then while a large text
    file is read, with the bytes that are done and their share of all. Large DRN, explicit PRISM and CSV files are read by way of pyarrow where it
    is installed, and line by line where it is not; both find the same.
    """
    reading = Reading(
        goal,
        cost,
        step_cost,
        cost_of or {},
        negate_reward,
        constants or {},
        start,
        () if goals is None else goals,
        one_based,
        {**(columns or {}), **_columns(column)},
        progress,
    )
    if not isinstance(source, (str, os.PathLike)):
        return _read_object(source, reading)
    place = os.fsdecode(source)
    try:
        match = _SCHEME.fullmatch(place) if isinstance(source, str) else None
        entry = by_scheme(match[1].lower()) if match else None
        if match and entry:
            return entry.read(match[2], reading)
        return by_suffix(place).read(place, reading)
    except ModelError as error:
        raise FormatError(brief(f"{place}: {error}")) from None
    except FormatError as error:
        raise FormatError(brief(str(error))) from None


def write(ssp: SSP, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
    """Write a model; the suffix decides the format. What a format cannot hold is refused with its name.

    `progress` is called now and then while a large text file is written, with the outcomes that are done and the share of the states.
    """
    place = os.fsdecode(path)
    try:
        by_suffix(place).write(ssp, place, progress)
    except FormatError as error:
        raise FormatError(brief(str(error) if str(error).startswith(place) else f"{place}: {error}")) from None


def _columns(column: Mapping[str, Any]) -> Mapping[str, Any]:
    """Columns given one by one; any other word is a mistake, as of any function."""
    for word in column.keys() - WORDS.keys():
        raise TypeError(f"read() got an unexpected keyword argument {word!r}")
    return column


def _read_object(source: Any, reading: Reading) -> SSP:
    if is_graph(source) or is_table(source, reading.table_columns()):
        return IN_MEMORY.read(source, reading)
    if not isinstance(source, Mapping) and not hasattr(getattr(source, "unwrapped", source), "P"):
        raise OptionError(
            f"cannot read a {type(source).__name__}: give a path, a scheme string, a table, a graph, or an environment or its dictionary P"
        )
    gym = next(entry for entry in FORMATS if entry.scheme == "gym")
    return gym.read(source, reading)
