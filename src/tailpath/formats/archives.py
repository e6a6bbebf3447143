"""Untrusted archives, in memory: gzip and xz; the members of a tar file; arrays in a zip file, as
in numpy's `.npz`, without pickle; and our own `.npz`, the arrays of a model as they are, for size
and speed.

A member is read only after its header has been compared with the bytes the archive holds for it;
the whole may not unpack to more than the byte budget of the file. Arrays have one or two axes of
numbers or truth values; text travels as UTF-8 bytes. `docs/formats.md` lists the members of a
model; names are as `files.py` says.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.files import converted_array, read_bytes, shorten, write_bytes
from tailpath.formats.headers import (
    ANYTHING,
    EXTRAS,
    SHARE,
    checked,
    decode_members,
    decode_names,
    read_header,
    refuse_unknown,
)
from tailpath.formats.json_files import FORMAT, VERSION
from tailpath.formats.writing import encode_members
from tailpath.graph import Array
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import ARRAYS, SSP

#: Packed data may unpack to this many times the size of the file, plus a constant; deflate itself
#: could reach 1000.
MAX_EXPANSION = 200
EXPANDED_ANYWAY = 16 * 2**20
_XZ_MEMORY = 256 * 2**20
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biuf][1248])', 'fortran_order': False, 'shape': \((\d{1,18}),"
    rb" ?(\d{1,18})?,?\), \}\s*"
)
#: The errors that the libraries raise for damaged archives.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    IndexError,
    RuntimeError,
)


def unpacked_limit(compressed: int) -> int:
    return EXPANDED_ANYWAY + MAX_EXPANSION * compressed


def unpacked(path: str, data: bytes) -> bytes:
    """Undo gzip or xz, within the byte budget; other data is returned as it is."""
    decoder: Any
    broken: type[Exception]
    if data.startswith(b"\x1f\x8b"):
        kind, decoder = "gzip", zlib.decompressobj(zlib.MAX_WBITS | 16)
        broken = zlib.error
    elif data.startswith(b"\xfd7zXZ\x00"):
        import lzma

        kind, decoder = "xz", lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        broken = lzma.LZMAError
    else:
        return data
    most = unpacked_limit(len(data))
    try:
        # Unlike a file object, a decoder takes memory only as the content grows.
        content: bytes = decoder.decompress(data, most + 1)
    except broken as error:
        raise FormatError(f"{path}: broken {kind} data: {error}") from None
    if len(content) > most:
        raise FormatError(
            f"{path}: unpacks to more than {most} bytes, too many for a file of {len(data)}"
        )
    if not decoder.eof:
        raise FormatError(f"{path}: broken {kind} data: it ends too early")
    if decoder.unused_data.strip(b"\0"):
        raise FormatError(f"{path}: broken {kind} data: there is more after its end")
    return content


class Archive:
    """The members of an `.npz` file, each read on demand."""

    def __init__(self, path: str) -> None:
        self.path = path
        data = read_bytes(path)
        if not data:
            raise FormatError(f"{path}: the file is empty")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            self._members = {info.filename: info for info in self._zip.infolist()}
        except _BROKEN as error:
            raise FormatError(
                f"{path}: this is not an npz archive: {shorten(str(error))}"
            ) from None
        if len(self._members) < len(self._zip.infolist()):
            raise FormatError(f"{path}: a member is given twice")
        self._unfolded = unfolded = sum(info.file_size for info in self._members.values())
        most = unpacked_limit(len(data))
        if unfolded > most:
            raise FormatError(
                f"{path}: the members unpack to {unfolded} bytes, more than the {most} that a"
                f" file of {len(data)} bytes may hold"
            )

    def has(self, name: str) -> bool:
        return f"{name}.npy" in self._members

    def names(self) -> set[str]:
        return {name.removesuffix(".npy") for name in self._members}

    def array(self, name: str, dtype: Any, axes: int = 1) -> Array:
        """One array, converted to `dtype` where that loses nothing."""
        location = f"{self.path}: member {name}"
        if not self.has(name):
            raise FormatError(f"{location} is missing")
        return converted_array(self._read(name, location), dtype, axes, location)

    def text(self, name: str) -> str:
        try:
            return self.array(name, np.uint8).tobytes().decode("utf-8")
        except UnicodeDecodeError:
            raise FormatError(f"{self.path}: member {name} is not UTF-8 text") from None

    def _read(self, name: str, location: str) -> Array:
        info = self._members[f"{name}.npy"]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError(
                f"{location} has an unsupported compression; use numpy.savez or"
                " numpy.savez_compressed"
            )
        try:
            data = self._zip.read(info)
        except _BROKEN as error:
            raise FormatError(f"{location} is damaged: {shorten(str(error))}") from None
        length = int.from_bytes(data[8:10], "little") + 10
        header = _HEADER.fullmatch(data[10:length]) if data[:8] == b"\x93NUMPY\x01\x00" else None
        if header is None:
            raise FormatError(f"{location} is not an array of numbers with one or two axes")
        try:
            dtype = np.dtype(header[1].decode())
        except TypeError:
            raise FormatError(f"{location} is of the unknown type {header[1].decode()!r}") from None
        shape = tuple(int(size) for size in header.groups()[1:] if size is not None)
        # An array without entries holds no bytes, but loops would run along its axis.
        if max(shape) > self._unfolded or math.prod(shape) * dtype.itemsize != len(data) - length:
            raise FormatError(
                f"{location} declares the shape {shape} but holds {len(data) - length} bytes"
            )
        return np.frombuffer(data, dtype=dtype, offset=length).reshape(shape)


def write_archive(path: str, members: Mapping[str, Any]) -> None:
    """Write arrays and texts, each text as its UTF-8 bytes. Stored, not packed: the file is then as
    large as its content.
    """
    buffer = io.BytesIO()
    # Not by `numpy.savez`, which before numpy 2.2 mistakes `allow_pickle` for a member.
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, value in members.items():
            array = _bytes(value) if isinstance(value, str) else np.ascontiguousarray(value)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    write_bytes(path, buffer.getvalue())


def _bytes(text: str) -> Array:
    return np.frombuffer(text.encode("utf-8"), dtype=np.uint8)


# ---------------------------------------------------------------------- tar


def is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar"


def tar_members(path: str, data: bytes) -> dict[str, memoryview]:
    """The regular files of an archive by name; `path` is for messages."""
    members: dict[str, memoryview] = {}
    view = memoryview(data)
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if member.isdir():
                    continue
                # A sparse member declares zeros that the file does not have; links lead outside.
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
                    raise FormatError(f"{path}: member {shorten(name)}: is not a plain file")
                if name in members:
                    raise FormatError(f"{path}: member {shorten(name)}: is given twice")
                if member.size < 0 or member.offset_data + member.size > len(data):
                    raise FormatError(
                        f"{path}: member {shorten(name)}: ends beyond the end of the file"
                    )
                members[name] = view[member.offset_data : member.offset_data + member.size]
    except _BROKEN as error:
        raise FormatError(f"{path}: this is not a tar archive: {shorten(str(error))}") from None
    return members


def packed_tar(members: Mapping[str, bytes], kind: str) -> bytes:
    if kind == "gz":
        return gzip.compress(write_tar(members), compresslevel=6, mtime=0)
    import lzma

    return lzma.compress(write_tar(members))


def write_tar(members: Mapping[str, bytes]) -> bytes:
    """A tar file with these members, the same bytes every time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


# ---------------------------------------------------------------------- our own npz


_MEMBERS = {
    **dict.fromkeys(("format", "version", "start", "states", "actions"), ANYTHING),
    **EXTRAS,
    "confidence": SHARE.otherwise(),
}
_INTERVALS = ("outcome_low", "outcome_high", "outcome_estimate")


def read(path: str) -> Any:
    archive = Archive(path)
    location = f"{path}: member header: "
    header = read_header(archive.text("header"), location[:-2], path, FORMAT, VERSION)
    header = checked(header, _MEMBERS, location)
    members = ("header", *ARRAYS, *_INTERVALS)
    refuse_unknown(archive.names(), members, f"{path}: the archive has the ")
    arrays: dict[str, Any] = {name: archive.array(name, dtype) for name, dtype in ARRAYS.items()}
    n_states = len(arrays["is_goal"])
    if len(arrays["state_choices"]) == 0 or len(arrays["choice_outcomes"]) == 0:
        raise FormatError(f"{path}: state_choices and choice_outcomes must have at least one entry")
    ssp = SSP(
        **arrays,
        start_index=header["start"],
        states=decode_names(header["states"], f"{location}states", n_states),
        actions=decode_names(header["actions"], f"{location}actions"),
        **decode_members(header, n_states, location),
    )
    if not archive.has("outcome_low"):
        return ssp
    low, high = (archive.array(name, np.float64) for name in _INTERVALS[:2])
    seen = archive.array(_INTERVALS[2], np.float64) if archive.has(_INTERVALS[2]) else None
    return IntervalSSP(ssp, low, high, estimate=seen, confidence=header["confidence"])


def write(model: SSP | IntervalSSP, path: str) -> None:
    ssp = underlying_ssp(model)
    header = {"format": FORMAT, "version": VERSION, "start": ssp.start_index, **encode_members(ssp)}
    members: dict[str, Any] = {name: getattr(ssp, name) for name in ARRAYS}
    if isinstance(model, IntervalSSP):
        header["confidence"] = model.confidence
        ends = (model.low, model.high, model.estimate)
        members.update({name: end for name, end in zip(_INTERVALS, ends) if end is not None})
    write_archive(path, {"header": json.dumps(header), **members})
