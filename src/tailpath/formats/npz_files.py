"""Our own `.npz`: the arrays of a model as they are, for size and speed. Lossless; a numpy archive
without pickle, whose members `docs/formats.md` lists. Names are as `files.py` says.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.archives import Archive, write_archive
from tailpath.formats.files import (
    check_header,
    decode_confidence,
    decode_members,
    decode_names,
    load_json,
    refuse_unknown,
)
from tailpath.formats.json_files import FORMAT, VERSION
from tailpath.formats.writing import encode_members
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import SSP

ARRAYS = {
    "state_choices": np.int64,
    "choice_outcomes": np.int64,
    "choice_action": np.int32,
    "outcome_target": np.int32,
    "outcome_probability": np.float64,
    "outcome_cost": np.float64,
    "is_goal": np.bool_,
}
_HEADER = (
    "format",
    "version",
    "start",
    "states",
    "actions",
    "cost_unit",
    "notes",
    "geometry",
    "confidence",
)
_INTERVALS = ("outcome_low", "outcome_high", "outcome_estimate")
_CELLS = ("geometry_row", "geometry_column", "geometry_kind")


def read(path: str) -> Any:
    archive = Archive(path)
    header = load_json(archive.text("header"), f"{path}: member header")
    check_header(header, path, FORMAT, VERSION)
    refuse_unknown(header, _HEADER, f"{path}: member header has the ")
    members = ("header", *ARRAYS, *_INTERVALS, *_CELLS)
    refuse_unknown(sorted(archive.names()), members, f"{path}: the archive has the ")
    arrays: dict[str, Any] = {name: archive.array(name, dtype) for name, dtype in ARRAYS.items()}
    n_states, location = len(arrays["is_goal"]), f"{path}: member header: "
    if type(header.get("start")) is not int or not 0 <= header["start"] < n_states:
        raise FormatError(f"{location}start must be the index of a state, 0..{n_states - 1}")
    if len(arrays["state_choices"]) == 0 or len(arrays["choice_outcomes"]) == 0:
        raise FormatError(f"{path}: state_choices and choice_outcomes must have at least one entry")
    header["geometry"] = _cells(archive, header.get("geometry"))
    ssp = SSP(
        **arrays,
        start_index=header["start"],
        states=decode_names(header.get("states"), f"{location}states", n_states),
        actions=decode_names(header.get("actions"), f"{location}actions"),
        **decode_members(header, n_states, location),
    )
    if not archive.has("outcome_low"):
        return ssp
    low, high = (archive.array(name, np.float64) for name in _INTERVALS[:2])
    seen = archive.array(_INTERVALS[2], np.float64) if archive.has(_INTERVALS[2]) else None
    confidence = decode_confidence(header.get("confidence"), f"{location}confidence")
    return IntervalSSP(ssp, low, high, estimate=seen, confidence=confidence)


def _cells(archive: Archive, value: Any) -> Any:
    """The geometry as the JSON format has it, whose rules it is checked by; here the cells are
    arrays of the archive."""
    if value is None:
        return None
    if (
        not isinstance(value, dict)
        or set(value) != {"rows", "columns", "kinds"}
        or not isinstance(value["kinds"], list)
    ):
        raise FormatError(
            f"{archive.path}: member header: geometry must have rows, columns and kinds"
        )
    row, column, kind = (archive.array(name, np.int32).tolist() for name in _CELLS)
    kinds = value["kinds"]
    if any(not 0 <= index < len(kinds) for index in kind):
        raise FormatError(
            f"{archive.path}: member geometry_kind points outside the {len(kinds)} kinds"
        )
    return {
        "rows": value["rows"],
        "columns": value["columns"],
        "row": row,
        "column": column,
        "kind": [kinds[index] for index in kind],
    }


def write(model: SSP | IntervalSSP, path: str) -> None:
    ssp = underlying_ssp(model)
    header = {"format": FORMAT, "version": VERSION, "start": ssp.start_index, **encode_members(ssp)}
    header["notes"], geometry = list(ssp.notes), header.pop("geometry")
    members: dict[str, Any] = {name: getattr(ssp, name) for name in ARRAYS}
    if isinstance(model, IntervalSSP):
        header["confidence"] = model.confidence
        ends = (model.low, model.high, model.estimate)
        members.update({name: end for name, end in zip(_INTERVALS, ends) if end is not None})
    if geometry is not None:
        # Not by arrays of texts, which have no last character 0.
        kinds = {kind: number for number, kind in enumerate(sorted(set(geometry["kind"])))}
        number = [kinds[kind] for kind in geometry["kind"]]
        size = {side: geometry[side] for side in ("rows", "columns")}
        header["geometry"] = {**size, "kinds": list(kinds)}
        cells = (geometry["row"], geometry["column"], number)
        members.update({name: np.array(cell, dtype=np.int32) for name, cell in zip(_CELLS, cells)})
    write_archive(path, {"header": json.dumps(header), **members})
