"""Folders of parts, one file for each rank, written whole or not at all.

A file has the hash of its model, and its place among the parts. It is read as carefully as every
other file: sizes are compared with the bytes that are there, and inconsistent files are refused
with one line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from tailpath.distributed.part import ARRAYS, Part
from tailpath.distributed.ranks import together
from tailpath.errors import FormatError, ModelError, OptionError
from tailpath.formats.archives import Archive, write_archive
from tailpath.formats.headers import (
    ANYTHING,
    LIST,
    UNIT,
    checked,
    decode_names,
    positive_fraction,
    read_header,
    refuse_unknown,
)
from tailpath.formats.writing import encode_names, encode_unit
from tailpath.model.checks import model_mark
from tailpath.model.ssp import SSP

FORMAT, VERSION = "tailpath part", 1
#: A number of actions would be made, however large: they are a list.
HEADER = {
    **dict.fromkeys(("format", "version", "model", "index", "start"), ANYTHING),
    "actions": LIST,
    "unit": UNIT,
    "probability_error": ANYTHING,
}
_NAME = re.compile(r"part-[0-9]+-of-[0-9]+\.npz")


def part_file(folder: str | Path, index: int, parts: int) -> Path:
    return Path(folder) / f"part-{index}-of-{parts}.npz"


def write_part(part: Part, folder: str | Path) -> Path:
    """Write the file of a part in the folder of all parts."""
    path = part_file(folder, part.index, len(part.bounds) - 1)
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model": part.model,
        "index": part.index,
        "start": part.start,
        "actions": encode_names(part.actions),
        "unit": encode_unit(part.unit),
        "probability_error": part.probability_error,
    }
    arrays = {name: getattr(part, name) for name in ARRAYS}
    write_archive(str(path), {"header": json.dumps(header), **arrays})
    return path


def write_parts(ssp: SSP, parts: int, folder: str | Path) -> list[Path]:
    """Cut a model into parts, and write their files into a folder of their own, which replaces one
    with other parts."""
    if parts > ssp.n_states:
        raise OptionError(f"a model of {ssp.n_states} states cannot be cut into {parts} parts")
    place, mark = Path(folder).resolve(), model_mark(ssp)
    made = place.parent / f".{place.name}.{os.urandom(8).hex()}.part"
    before = made.with_suffix(".old")
    try:
        for name in os.listdir(place) if place.exists() else ():
            if not _NAME.fullmatch(name):
                raise FormatError(
                    f"{folder}: parts need a folder of their own; this one also holds {name}"
                )
        made.mkdir(parents=True)
        for index in range(parts):
            write_part(Part.of(ssp, index, parts, mark), made)
        if place.exists():
            place.rename(before)
        made.rename(place)
    except OSError as error:
        raise FormatError(f"{folder}: {error.strerror or error}") from None
    finally:
        if before.exists() and not place.exists():
            before.rename(place)
        shutil.rmtree(made, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)
    return [part_file(folder, index, parts) for index in range(parts)]


def read_part(folder: str | Path, index: int, parts: int) -> Part:
    """Read one of the parts of a model from the folder that `tailpath split` has written."""
    path = part_file(folder, index, parts)
    if not path.exists():
        there = len(list(Path(folder).glob("part-0-of-*.npz")))
        hint = (
            "tailpath split writes parts"
            if not there
            else f"the model was not split into {parts} parts"
        )
        raise FormatError(f"{path}: no such part; {hint}")
    archive, location = Archive(str(path)), f"{path}: member header: "
    header = read_header(archive.text("header"), location[:-2], str(path), FORMAT, VERSION)
    header = checked(header, HEADER, location)
    refuse_unknown(archive.names(), ("header", *ARRAYS), f"{path}: the archive has the ")
    arrays: dict[str, Any] = {name: archive.array(name, kind) for name, kind in ARRAYS.items()}
    unit = positive_fraction(header["unit"])
    if (header["index"], len(arrays["bounds"]) - 1) != (index, parts) or unit is None:
        raise FormatError(f"{path}: this is not part {index} of {parts}")
    try:
        return Part(
            index=index,
            start=header["start"],
            actions=tuple(decode_names(header["actions"], f"{location}actions")),
            unit=unit,
            probability_error=header["probability_error"],
            model=header["model"],
            **arrays,
        )
    except ModelError as error:
        raise FormatError(f"{path}: {error}") from None


def part_of(model: str, comm: Any) -> Part | None:
    """The part of this rank, if the model is a folder of parts; otherwise None."""
    if not Path(model).is_dir():
        return None
    return together(comm, lambda: read_part(model, comm.rank, comm.size))
