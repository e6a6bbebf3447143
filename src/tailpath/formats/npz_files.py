"""Our own `.npz`: the arrays of a model as they are, for size and speed. Lossless; a numpy archive
without pickle.

- `header`: text; JSON: `format`, `version`, `start`, `states`, `actions`, `cost_unit`, `geometry`,
  `notes`
- `state_choices`: int64 (n + 1); where the choices of each state begin
- `choice_outcomes`: int64 (c + 1); where the outcomes of each choice begin
- `choice_action`: int32 (c); the action of each choice
- `outcome_target`: int32 (m); where each outcome leads
- `outcome_probability`, `outcome_cost`: float64 (m); its probability and its cost
- `outcome_low`, `outcome_high`, `outcome_estimate`: float64 (m); of a model with intervals: these,
  and the frequency counted, if it was
- `is_goal`: bool (n); the goals
- `geometry_row`, `geometry_column`, `geometry_kind`: int32 (n); optional: the cell of each state,
  and the number of its kind in `geometry.kinds`

Text is stored as its UTF-8 bytes. `start` is an index; names are as in `names.py`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.archives import Archive, write_archive
from tailpath.formats.files import load_json, shorten
from tailpath.formats.json_files import FORMAT, VERSION, check_header
from tailpath.formats.names import (
    decode_geometry,
    decode_names,
    decode_notes,
    decode_unit,
    encode_names,
    encode_unit,
)
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP, Geometry

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
    """Read a model from our npz."""
    archive = Archive(path)
    header = load_json(archive.text("header"), f"{path}: member header")
    check_header(header, path, FORMAT, VERSION)
    for where, found, known in (
        ("member header", set(header), _HEADER),
        ("the archive", archive.names(), ("header", *ARRAYS, *_INTERVALS, *_CELLS)),
    ):
        for name in sorted(found - set(known)):
            raise FormatError(
                f"{path}: {where} has the unknown member {shorten(repr(name))}; known are"
                f" {', '.join(known)}"
            )
    arrays: dict[str, Any] = {name: archive.array(name, dtype) for name, dtype in ARRAYS.items()}
    n_states = len(arrays["is_goal"])
    actions = header.get("actions")
    if type(header.get("start")) is not int or not 0 <= header["start"] < n_states:
        raise FormatError(
            f"{path}: member header: start must be the index of a state, 0..{n_states - 1}"
        )
    if len(arrays["state_choices"]) == 0 or len(arrays["choice_outcomes"]) == 0:
        raise FormatError(f"{path}: state_choices and choice_outcomes must have at least one entry")
    try:
        ssp = SSP(
            **arrays,
            start_index=header["start"],
            states=decode_names(header.get("states"), n_states, f"{path}: member header: states"),
            actions=decode_names(
                actions,
                actions if type(actions) is int else _length(actions),
                f"{path}: member header: actions",
            ),
            exact_unit=decode_unit(header.get("cost_unit"), f"{path}: member header: cost_unit"),
            geometry=_geometry(archive, header.get("geometry"), n_states),
            notes=decode_notes(header.get("notes", []), f"{path}: member header: notes"),
        )
    except RecursionError:
        raise FormatError(f"{path}: member header: nested too deeply") from None
    if "outcome_low" not in archive.names():
        return ssp
    low, high = (archive.array(name, np.float64) for name in _INTERVALS[:2])
    estimate = (
        archive.array("outcome_estimate", np.float64)
        if "outcome_estimate" in archive.names()
        else None
    )
    confidence = header.get("confidence")
    if confidence is not None and not (isinstance(confidence, float) and 0 < confidence < 1):
        raise FormatError(f"{path}: member header: confidence must be a number in (0, 1)")
    return IntervalSSP(ssp, low, high, estimate, confidence)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def _geometry(archive: Archive, value: Any, n_states: int) -> Geometry | None:
    """Arrays in the archive, checked by the same rules as the lists of the JSON format."""
    if value is None:
        return None
    where = f"{archive.path}: member header: geometry"
    if (
        not isinstance(value, dict)
        or set(value) != {"rows", "columns", "kinds"}
        or not isinstance(value["kinds"], list)
    ):
        raise FormatError(f"{where} must have rows, columns and kinds")
    row, column, kind = (archive.array(name, np.int32).tolist() for name in _CELLS)
    kinds = value["kinds"]
    if any(not 0 <= index < len(kinds) for index in kind):
        raise FormatError(
            f"{archive.path}: member geometry_kind points outside the {len(kinds)} kinds"
        )
    cells = {"row": row, "column": column, "kind": [kinds[index] for index in kind]}
    return decode_geometry(
        {"rows": value["rows"], "columns": value["columns"], **cells}, n_states, where
    )


def write(model: SSP | IntervalSSP, path: str) -> None:
    """Write a model as our npz."""
    ssp = model.inside if isinstance(model, IntervalSSP) else model
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "start": ssp.start_index,
        "states": encode_names(ssp.states),
        "actions": encode_names(ssp.actions),
        "cost_unit": encode_unit(ssp.exact_unit),
        "notes": list(ssp.notes),
    }
    members: dict[str, Any] = {name: getattr(ssp, name) for name in ARRAYS}
    if isinstance(model, IntervalSSP):
        header["confidence"] = model.confidence
        ends = (model.low, model.high, model.estimate)
        members.update({name: end for name, end in zip(_INTERVALS, ends) if end is not None})
    if ssp.geometry is not None:
        kinds = sorted(set(ssp.geometry.kind))
        header["geometry"] = {
            "rows": ssp.geometry.rows,
            "columns": ssp.geometry.columns,
            "kinds": kinds,
        }
        number = {kind: index for index, kind in enumerate(kinds)}
        cells = (
            ssp.geometry.row,
            ssp.geometry.column,
            [number[kind] for kind in ssp.geometry.kind],
        )
        members.update({name: np.array(cell, dtype=np.int32) for name, cell in zip(_CELLS, cells)})
    write_archive(path, {"header": json.dumps(header), **members})
