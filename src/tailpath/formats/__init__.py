"""Reading and writing models: `read` and `write` find the format by suffix or by `scheme:`; each
format is a file of this folder.

Every reader hands its numbers to `SSP`, which checks them; a refusal names the file and the line,
the archive member or the state at fault.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from tailpath.errors import FormatError, ModelError, OptionError, kind_of
from tailpath.formats.files import (
    begin_of_input,
    brief,
    located,
    parse_number,
    read_bytes,
    read_text,
    write_bytes,
)
from tailpath.formats.implicit import read_implicit
from tailpath.formats.registry import (
    FORMATS,
    Format,
    Reading,
    by_scheme,
    by_suffix,
    register,
)
from tailpath.model.columns import WORDS, has_intervals
from tailpath.model.frames import column_names, is_table
from tailpath.model.geometry import geometry_of
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import Progress, answering

__all__ = [
    "Format",
    "parse_number",
    "read",
    "read_bytes",
    "read_implicit",
    "read_text",
    "register",
    "write",
    "write_bytes",
]

#: A scheme has two letters or more, so that `C:\\models\\a.json` is a path.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]+):(.*)", re.DOTALL)

#: The formats that standard input may hold, by their first bytes.
_MARKS = {
    b"PK": ".npz",
    b"{": ".json",
    b"//": ".drn",
    b"@": ".drn",
    b"\x1f\x8b": ".umb",
}


#: The options that `read` passes on unchanged.
_OPTIONS = {each.name for each in fields(Reading)} - {"columns"}


@answering
def read(
    source: Any,
    *,
    goal: str | None = None,
    cost: str | None = None,
    property: str | None = None,
    step_cost: float | None = None,
    cost_of: Mapping[float, float] | None = None,
    negate_reward: bool = False,
    rewards: bool = False,
    constants: Mapping[str, Any] | None = None,
    start: Any = None,
    goals: Iterable[Any] = (),
    one_based: bool = False,
    columns: Mapping[str, Any] | None = None,
    actions: str | Sequence[str] | None = None,
    confidence: float | None = None,
    geometry: Any = None,
    progress: Progress | None = None,
    **column: Any,
) -> SSP:
    """Read a model from a file, a `scheme:` string, a table, a graph or an environment.

    Options that a format does not take are an error. `ssp.notes` lists what the reader assumed.

    Parameters
    ----------
    source : str, path, table, graph, environment, or dict
        Environments are those of Gymnasium; the dict is the table `P` of one. `-` is standard
        input: a table, or JSON, npz, DRN or UMB by how it begins. A path, whose suffix decides the
        format (`.json`, `.npz`, `.csv`, `.drn`, `.umb`, ..), or a scheme:
        `gridworld:14x16`, `river:30x10`, `textbook:geometric`, `gym:FrozenLake-v1`.
    goal : str, optional
        The label of the goal states (default `goal`), or a condition (`x=3 & y=1`); in Gymnasium
        `best`, `all` or a final reward.
    cost : str, optional
        The reward structure that holds the costs (default: the only one), or the column of a table.
    property : str, optional
        The name of a property that defines goal and cost: one of a JANI model, or of the `.props`
        file beside a program in the PRISM language. A note says how to ask for its bound.
    step_cost : float, optional
        Every outcome costs this much, whatever its reward.
    cost_of : mapping of float to float, optional
        `{reward: cost}`: what an outcome with exactly this reward costs; overrides `step_cost`.
    negate_reward : bool
        Reverse the sign that rewards have in the format.
    rewards : bool
        Treat the numbers as rewards, whatever the format calls them: cost = -reward.
    constants : mapping, optional
        Values of the constants that the model leaves open.
    start : state, optional
        The state where runs begin; where states have labels, a label, a condition or the number of
        a state.
    goals : iterable of states
        The goal states of a table or a graph.
    one_based : bool
        The states and actions of a table are numbered from 1.
    columns : mapping, optional
        `{"cost": "minutes"}`: the names of a table's columns.
    actions : sequence of str, or str, optional
        Names for the actions of an environment, in the order of their numbers; `"known"` for those
        of FrozenLake, CliffWalking and Taxi.
    confidence : float, optional
        For a table with a column `count`: the probability with which all intervals hold at once
        (default 0.95). A table without counts and probabilities is then a log, with a row for each
        observed step.
    geometry : mapping or pair of int, optional
        Where the states lie on a grid, for pictures, as `SSP` takes it. Grids of Gymnasium and our
        own files have theirs already.
    progress : callable, optional
        `progress(bytes, share)` is called repeatedly while a large text file is read.
    **column : str
        Columns one by one: `state=`, `next_state=` and so on.

    Returns
    -------
    SSP or IntervalSSP
        The model; an `IntervalSSP` where probabilities are intervals.

    Raises
    ------
    FormatError
        If a file cannot be read; the text begins with the file and the line.
    OptionError
        If the format is unknown, or does not take an option.
    ModelError
        If a table, a graph or an environment in memory does not define a valid SSP.

    Examples
    --------
    >>> tp.read("textbook:lottery")
    <SSP 2 states, 1 choice, 2 outcomes, start 'ticket'>
    >>> tp.write(ssp, "commute.json")
    >>> tp.read("commute.json") == ssp
    True
    """
    options = {name: value for name, value in locals().items() if value is not None}
    names = _OPTIONS & options.keys()
    reading = Reading(
        **{name: options[name] for name in names}, columns={**(columns or {}), **_columns(column)}
    )
    ssp = _read(source, reading)
    return ssp if geometry is None else _with_geometry(ssp, geometry)


def _with_geometry(ssp: SSP, geometry: Any) -> SSP:
    if not isinstance(ssp, SSP):
        raise OptionError(
            "a model whose probabilities are intervals has no map; leave out geometry"
        )
    return SSP.trusted(**ssp.__getstate__() | {"geometry": geometry_of(geometry, ssp.states)})


def _read(source: Any, reading: Reading) -> SSP:
    if not isinstance(source, (str, os.PathLike)):
        return _read_object(source, reading)
    path_name = os.fsdecode(source)
    try:
        match = _SCHEME.fullmatch(path_name) if isinstance(source, str) else None
        entry = by_scheme(match[1].lower()) if match else None
        if match and entry:
            return entry.read(match[2], reading)
        suffix = _suffix_of_input() if path_name == "-" else path_name
        return by_suffix(suffix).read(path_name, reading)
    except ModelError as error:
        raise FormatError(brief(f"{path_name}: {error}")) from None
    except FormatError as error:
        raise FormatError(brief(str(error))) from None
    except RecursionError:
        raise FormatError(f"{path_name}: nested too deeply") from None


def _suffix_of_input() -> str:
    """The format of standard input, by its first bytes; a table unless they are known."""
    begin = begin_of_input(64).lstrip()
    return next((suffix for mark, suffix in _MARKS.items() if begin.startswith(mark)), ".csv")


@answering
def write(ssp: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; the suffix decides the format.

    Parameters
    ----------
    ssp : SSP, IntervalSSP or CostChain
        The model; or model x policy as `unroll` makes it, which goes to `.drn`, `.umb` or `.tra` as
        a DTMC, node by node.
    path : str or path
        Where to: `.json` for people, `.npz` or `.umb` for size; `docs/formats.md` lists all.

    Raises
    ------
    FormatError
        If the file cannot be written, or the format cannot hold something of the model.
    OptionError
        If the format is unknown or can only be read.

    Examples
    --------
    >>> tp.write(ssp, "commute.json")
    >>> tp.read("commute.json") == ssp
    True
    """
    path_name = os.fsdecode(path)
    if not isinstance(ssp, (SSP, IntervalSSP)) and not hasattr(ssp, "row_start"):
        raise OptionError(
            f"write takes a model or a chain, not {kind_of(ssp)}; tailpath.read makes a model of"
            " files, names and tables"
        )
    try:
        by_suffix(path_name).write(ssp, path_name)
    except FormatError as error:
        raise FormatError(located(error, path_name)) from None


def _columns(column: Mapping[str, Any]) -> Mapping[str, Any]:
    """Columns given one by one; any other keyword is an error, as for any function."""
    for word in column.keys() - WORDS.keys():
        raise TypeError(f"read() got an unexpected keyword argument {word!r}")
    return column


def _has_columns(source: Any) -> bool:
    """Whether a dictionary can only be one of columns, whatever their names: that of an
    environment has for each state a dictionary of actions, or a list of lists of outcomes.
    """

    def has_actions(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(isinstance(outcomes, (list, tuple)) for outcomes in value)
        return isinstance(value, Mapping)

    return isinstance(source, Mapping) and not all(map(has_actions, source.values()))


def _read_object(source: Any, reading: Reading) -> SSP:
    if is_table(source, reading.table_columns()) or _has_columns(source):
        return _IN_MEMORY.read(source, reading)
    environment = any(
        hasattr(getattr(source, "unwrapped", source), part) for part in ("P", "reset")
    )
    if not isinstance(source, Mapping) and not environment:
        raise OptionError(
            f"cannot read {kind_of(source)}: give a path, a scheme string, a table, an"
            " environment, or its dictionary P; SSP.from_outcomes takes rows"
        )
    gym = next(entry for entry in FORMATS if entry.scheme == "gym")
    return gym.read(source, reading)


def _read_table(source: Any, reading: Reading) -> SSP | IntervalSSP:
    columns, confidence = reading.table_columns(), reading.confidence
    options: dict[str, Any] = {
        "start": reading.start,
        "goals": reading.goals or None,
        "columns": columns,
    }
    if confidence is not None:
        options["confidence"] = confidence
    elif not has_intervals(column_names(source), columns):
        return SSP.from_table(source, **options, rewards=reading.rewards)
    if reading.rewards:
        raise OptionError("a table with intervals or counts holds costs of 0 or more, not rewards")
    return IntervalSSP.from_table(source, **options)


#: Tables in memory.
_IN_MEMORY = Format(
    "a table", _read_table, options=("start", "goals", "cost", "columns", "confidence", "rewards")
)
