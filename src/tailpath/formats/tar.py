"""The members of a tar file as bytes in memory: nothing is ever unpacked to disk."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

from tailpath.errors import FormatError
from tailpath.formats.files import shorten

_BROKEN = (
    tarfile.TarError,
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    IndexError,
)


def is_tar(data: bytes) -> bool:
    """Whether these bytes begin like a POSIX tar file."""
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
                    raise FormatError(f"{path}: member {shorten(name)}: is there twice")
                if member.size < 0 or member.offset_data + member.size > len(data):
                    raise FormatError(
                        f"{path}: member {shorten(name)}: ends beyond the end of the file"
                    )
                members[name] = view[member.offset_data : member.offset_data + member.size]
    except _BROKEN as error:
        raise FormatError(f"{path}: this is not a tar archive: {shorten(str(error))}") from None
    return members


def write_tar(members: Mapping[str, bytes]) -> bytes:
    """A tar file with these members, the same bytes every time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
