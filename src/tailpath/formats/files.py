"""Untrusted files: bounded reading, strict decoding, and writing that leaves no partial
file behind.

All input passes through here, so that every refusal is a `FormatError` that names the file and,
where there is one, the line. Declared sizes are never trusted: memory follows the bytes that are
really there.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from tailpath.errors import FormatError
from tailpath.graph import Array
from tailpath.model.cost_units import vanishes

#: The most characters that a number may have.
LONGEST = 700
_RATIONAL = re.compile(r"([+-]?[0-9]{1,300})/([0-9]{1,300})")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_bytes(path: str) -> bytes:
    """The whole of a file.

    Parameters
    ----------
    path : str
        The file, or `-` for standard input; a pipe or a device is refused, since it may have no
        end.

    Returns
    -------
    bytes
        Its content.

    Raises
    ------
    FormatError
        If it cannot be read; the message begins with the path.

    Examples
    --------
    >>> tp.formats.write_bytes("a.mine", b"home work")
    >>> tp.formats.read_bytes("a.mine")
    b'home work'
    """
    try:
        if path == "-":
            return bytes(_standard_input().read())
        if stat.S_ISFIFO(os.stat(path).st_mode):
            # Opening it would wait for ever.
            raise FormatError(f"{path}: this is a pipe, not a file")
        with open(path, "rb") as stream:
            kind = os.fstat(stream.fileno()).st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise FormatError(f"{path}: this is a device, not a file")  # which may have no end
            return stream.read()
    except (OSError, ValueError) as error:
        _refuse(path, error)


def _standard_input() -> Any:
    if sys.stdin is None or sys.stdin.closed:
        raise FormatError("-: standard input is closed")
    return sys.stdin.buffer


def begin_of_input(size: int) -> bytes:
    """The first bytes of standard input, which are still to be read."""
    return bytes(_standard_input().peek(size)[:size])


def read_text(path: str) -> str:
    """The text of a file in UTF-8, without a byte order mark.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    str
        Its text.

    Raises
    ------
    FormatError
        If the file cannot be read, is empty or is not text; the message begins with path and line.

    Examples
    --------
    >>> tp.formats.write_bytes("a.mine", b"home work")
    >>> tp.formats.read_text("a.mine").split()
    ['home', 'work']
    """
    return text_bytes(path, read_bytes(path)).decode()


def text_bytes(path: str, data: bytes) -> bytes:
    """The bytes of a text in UTF-8, without a byte order mark; anything else is refused."""
    if not data or data.isspace():
        raise FormatError(f"{path}: the file is empty")
    nul = data.find(b"\0")
    if nul >= 0:
        raise FormatError(
            f"{path}:{data.count(10, 0, nul) + 1}: a NUL byte: this is not a text file"
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path}:{data.count(10, 0, error.start) + 1}: this is not UTF-8 text: save it in that"
            " encoding (a spreadsheet calls it CSV UTF-8)"
        ) from None
    return data.removeprefix(codecs.BOM_UTF8)


def load_json(text: str, location: str) -> Any:
    """Strict JSON: no duplicate keys, no NaN, no infinities, no bottomless nesting."""

    def constant(name: str) -> NoReturn:
        raise FormatError(f"{location}: {name} is not a number")

    def number(digits: str) -> float:
        value = float(digits)
        if not 0 < abs(value) < math.inf and (value or vanishes(digits, value)):
            size = "large" if value else "small"
            raise FormatError(f"{location}: the number {shorten(digits)} is too {size}")
        return value

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            last = {key: at for at, (key, _) in enumerate(pairs)}
            repeated = next(key for at, (key, _) in enumerate(pairs) if last[key] != at)
            raise FormatError(f"{location}: the key {shorten(repeated)!r} is given twice")
        return found

    try:
        return json.loads(
            text, parse_constant=constant, parse_float=number, object_pairs_hook=members
        )
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{location}:{error.lineno}: {error.msg} (column {error.colno})"
        ) from None
    except RecursionError:
        raise FormatError(f"{location}: nested too deeply") from None
    except ValueError as error:  # whole numbers of thousands of digits
        raise FormatError(f"{location}: {error}") from None


def parse_number(text: str, location: str) -> float:
    """A finite decimal or a fraction `p/q`; no hexadecimal, underscore, NaN or infinity.

    Parameters
    ----------
    text : str
        The number as it stands in the file.
    location : str
        The file and the line, with which an error message begins.

    Returns
    -------
    float
        The number.

    Raises
    ------
    FormatError
        If the text is not such a number, or the number is beyond floating point.

    Examples
    --------
    >>> tp.formats.parse_number("1/8", "a.mine:3")
    0.125
    """
    value = math.nan
    # The patterns try every way to split a row of digits, so their time grows with the square of
    # its length.
    rational = _RATIONAL.fullmatch(text) if len(text) <= LONGEST else None
    if rational:
        value = (
            math.inf
            if int(rational[2]) == 0
            else float(Fraction(int(rational[1]), int(rational[2])))
        )
    elif len(text) <= LONGEST and _DECIMAL.fullmatch(text):
        value = float(text)
        if vanishes(text, value):
            raise FormatError(f"{location}: {shorten(text)!r} is too small a number")
    if not math.isfinite(value):
        raise FormatError(f"{location}: {shorten(text)!r} is not a finite number")
    return value


def converted_array(found: Array, dtype: Any, axes: int, location: str) -> Array:
    """An array of a file as `dtype`, where that loses nothing; it must have `axes` axes."""
    if found.ndim != axes:
        raise FormatError(f"{location} has {found.ndim} axes, expected {axes}")
    wanted = np.dtype(dtype)
    if {found.dtype.kind, wanted.kind} - {"i", "u"} and found.dtype.kind != wanted.kind:
        raise FormatError(f"{location} holds {found.dtype}, expected {wanted}")
    if wanted.kind in "iu" and found.size:
        limits = np.iinfo(wanted)
        if int(found.min()) < limits.min or int(found.max()) > limits.max:
            raise FormatError(f"{location} has numbers outside {limits.min}..{limits.max}")
    if wanted.kind == "b" and (found.view(np.uint8) > 1).any():
        raise FormatError(f"{location} has truth values that are neither 0 nor 1")
    return found.astype(wanted, copy=False)


def shorten(text: str) -> str:
    """A piece of the file short enough for an error message, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def brief(text: str) -> str:
    """A message short enough to read, since a hostile file may have names of any length; the
    beginning and the end say what is wrong.
    """
    return text if len(text) <= 600 else f"{text[:300]} ... {text[-250:]}"


def located(error: Exception, path: str) -> str:
    """The message of an error about a file, which begins with its path."""
    message = str(error)
    return brief(message if message.startswith(path) else f"{path}: {message}")


# ---------------------------------------------------------------------- writing


def write_bytes(path: str | os.PathLike[str], data: bytes | Iterable[bytes]) -> None:
    """Write a file whole: it appears under its name when it is complete, or not at all.

    It has the permissions of the one that it replaces. Devices and pipes are written to.

    Parameters
    ----------
    path : path
        Where to.
    data : bytes, or iterable of bytes
        Its content, at once or piece by piece.

    Raises
    ------
    FormatError
        If the file cannot be written; the message begins with the path.

    Examples
    --------
    >>> tp.formats.write_bytes("a.mine", (word + b"\\n" for word in [b"home", b"work"]))
    >>> tp.formats.read_text("a.mine").split()
    ['home', 'work']
    """
    path = os.fsdecode(path)
    part, pieces = "", [data] if isinstance(data, bytes) else data
    try:
        if _is_stream(path):
            with open(path, "wb") as stream:
                stream.writelines(pieces)
            return
        real_path = os.path.realpath(path)
        folder, name = os.path.split(real_path)
        # An unpredictable name, created and opened in one step: a link planted under it would lead
        # elsewhere.
        # Known before it exists: a signal may come in between.
        part = os.path.join(folder, f".{name[:20]}.{os.urandom(8).hex()}.part")
        with open(part, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
            stream.writelines(pieces)
        os.chmod(part, _permissions(real_path))
        os.replace(part, real_path)
    except BaseException as error:
        with suppress(OSError, ValueError):
            os.unlink(part)
        if not isinstance(error, (OSError, ValueError)):
            raise
        _refuse(path, error)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    write_bytes(os.fsdecode(path), text.encode())


def _is_stream(path: str) -> bool:
    """Whether this is a device, a pipe or a socket, which has no content to replace."""
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)


def refuse_unwritable(path: str) -> None:
    """Refuse, before the work is done, a file that could not be written after it."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        _refuse(path, IsADirectoryError())
    if not os.path.isdir(folder):
        _refuse(path, FileNotFoundError())
    if not _is_stream(path) and not os.access(folder, os.W_OK | os.X_OK):
        _refuse(path, PermissionError("Permission denied"))


def _permissions(path: str) -> int:
    """Those of the file that is replaced, or those a new file gets."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _refuse(path: str, error: Exception) -> NoReturn:
    if isinstance(error, FileNotFoundError):
        raise FormatError(f"{path}: no such file or folder") from None
    if isinstance(error, IsADirectoryError):
        raise FormatError(f"{path}: this is a folder, not a file") from None
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    raise FormatError(f"{path}: {reason}") from None
