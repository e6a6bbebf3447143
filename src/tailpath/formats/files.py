"""Files that nobody vouches for: bounded reading, strict decoding, and writing that leaves no half
file behind.

Everything a reader learns of the outside world passes through here, so that every refusal is a
`FormatError` that names the file and, where there is one, the line. Declared sizes are never
trusted: memory follows the bytes that are really there.

The files of ours, of models and of policies, begin alike and hold names as JSON. A name is a
string, a number, a truth value, null, or a tuple of names; a tuple, named or not, is written as a
list, which no name can be. So `1`, `"1"`, `[1]` and `["1"]` stay four different names. Names that
are simply 0, 1, .., n - 1 are written as the number n.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tailpath.errors import FormatError
from tailpath.graph import Array
from tailpath.model.cost_units import vanishes
from tailpath.model.ssp import Geometry, Name

#: The bytes that are decoded at a time.
_PIECE = 16 * 2**20
#: The characters that a number may have.
LONGEST = 700
_NESTED = frozenset((list, dict))
_FRACTION = re.compile(r"([0-9]{1,400})/([0-9]{1,400})")
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
        What it holds.

    Raises
    ------
    FormatError
        If it cannot be read; the text begins with the path.

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
    stream = _standard_input()
    if hasattr(stream, "peek"):
        return bytes(stream.peek(size)[:size])
    begin = stream.tell()
    found = bytes(stream.read(size))
    stream.seek(begin)
    return found


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
        If the file cannot be read, is empty or no text; the text begins with the path and the line.

    Examples
    --------
    >>> tp.formats.write_bytes("a.mine", b"home work")
    >>> tp.formats.read_text("a.mine").split()
    ['home', 'work']
    """
    return text_bytes(path, read_bytes(path)).decode()


def text_bytes(path: str, data: bytes) -> bytes:
    """The bytes of a text in UTF-8, without a byte order mark; what is no text is refused."""
    if not data or data.isspace():
        raise FormatError(f"{path}: the file is empty")
    nul = data.find(b"\0")
    if nul >= 0:
        raise FormatError(
            f"{path}:{data.count(10, 0, nul) + 1}: a NUL byte: this is not a text file"
        )
    at = len(data) if data.isascii() else 0
    while at < len(data):  # piece by piece, since the whole may take four times the memory
        end = data.find(b"\n", at + _PIECE) + 1 or len(data)
        try:
            data[at:end].decode()
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{path}:{data.count(10, 0, at + error.start) + 1}: this is not UTF-8 text"
            ) from None
        at = end
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
        The number as the file has it.
    location : str
        The file and the line, which a refusal begins with.

    Returns
    -------
    float
        The number.

    Raises
    ------
    FormatError
        If the text is not such a number, or one beyond floating point.

    Examples
    --------
    >>> tp.formats.parse_number("1/8", "a.mine:3")
    0.125
    """
    value = math.nan
    # The patterns try every way to split a row of digits, so a longer text would take its square in
    # time.
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
    """An array of a file as one of so many axes and of `dtype`, where that loses nothing."""
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
    """A message short enough to read: a hostile file may have names of any length; what is wrong
    stands at the beginning and at the end.
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
        What it holds, at once or piece by piece.

    Raises
    ------
    FormatError
        If the file cannot be written; the text begins with the path.

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
        # A name that nobody can foresee, made and opened in one step: a link planted under it would
        # lead elsewhere.
        hidden = os.path.join(folder, f".{name[:20]}.{os.urandom(8).hex()}.part")
        handle = os.open(
            hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
        )
        part = hidden
        with open(handle, "wb") as stream:
            stream.writelines(pieces)
        os.chmod(part, _permissions(real_path))
        os.replace(part, real_path)
    except BaseException as error:
        if part:
            Path(part).unlink(missing_ok=True)
        if not isinstance(error, (OSError, ValueError)):
            raise
        _refuse(path, error)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    write_bytes(os.fsdecode(path), text.encode())


def _is_stream(path: str) -> bool:
    """Whether this is a device, a pipe or a socket, which has no old content to keep."""
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)


def refuse_unwritable(path: str) -> None:
    """Find out before the work is done what would prevent a file from being written after it."""
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


# ---------------------------------------------------------------------- what files of ours hold


def decode_name(value: Any, location: str) -> Name:
    if isinstance(value, list):
        return tuple(decode_name(part, location) for part in value)
    if isinstance(value, dict):
        raise FormatError(f"{location}: {shorten(repr(value))} is not a name")
    name: Name = value
    return name


def decode_names(value: Any, location: str, count: int | None = None) -> Sequence[Name]:
    """The names of `count` things; without it, of as many as the file says. A declared number must
    equal the real one: a range is free, but a wrong one is a wrong file.
    """
    if type(value) is int and 0 <= value < 2**31:
        if count not in (None, value):
            raise FormatError(f"{location} says {value}, the arrays say {count}")
        return range(value)
    if not isinstance(value, list):
        raise FormatError(f"{location} must be a list of names or their number")
    if count not in (None, len(value)):
        raise FormatError(f"{location} has {len(value)} names, the arrays say {count}")
    return decode_column(value, lambda position: f"{location}[{position}]")


def decode_column(values: Sequence[Any], location: Callable[[int], str]) -> tuple[Name, ...]:
    """The names that pieces of JSON stand for; `location` says where the one at a position is."""
    # Most names are simple, or lists of simple ones; a million of them should not wait for the
    # message about one that is not.
    if _NESTED.isdisjoint(map(type, values)):
        return tuple(values)
    if set(map(type, values)) == {list} and _NESTED.isdisjoint(
        map(type, chain.from_iterable(values))
    ):
        return tuple(map(tuple, values))
    return tuple(decode_name(value, location(position)) for position, value in enumerate(values))


def decode_members(members: Mapping[str, Any], n_states: int, location: str) -> dict[str, Any]:
    """What a model has besides names and numbers, as its fields."""
    return {
        "exact_unit": decode_unit(members.get("cost_unit"), f"{location}cost_unit"),
        "geometry": decode_geometry(members.get("geometry"), n_states, f"{location}geometry"),
        "notes": decode_notes(members.get("notes", []), f"{location}notes"),
    }


def check_header(document: Any, path: str, name: str, version: int) -> None:
    """Every file of ours says what it is and in which version."""
    if not isinstance(document, dict) or not isinstance(document.get("format"), str):
        raise FormatError(f"{path}: this is not a file of tailpath: the member 'format' is missing")
    if document["format"] != name:
        hint = "; read it with read_policy" if document["format"] == "tailpath policy" else ""
        raise FormatError(
            f"{path}: this is a {shorten(document['format'])!r} file, not a {name!r} file{hint}"
        )
    if type(document.get("version")) is not int or document["version"] < 1:
        raise FormatError(f"{path}: the member 'version' must be a whole number")
    if document["version"] > version:
        raise FormatError(
            f"{path}: version {document['version']} is newer than this program, which reads version"
            f" {version}"
        )


def refuse_unknown(members: Iterable[str], known: Sequence[str], location: str) -> None:
    for member in members:
        if member not in known:
            raise FormatError(
                f"{location}unknown member {shorten(repr(member))}; known are {', '.join(known)}"
            )


def decode_confidence(value: Any, location: str) -> float | None:
    if value is not None and not (isinstance(value, float) and 0 < value < 1):
        raise FormatError(f"{location} must be a number in (0, 1)")
    return value


def decode_unit(value: Any, location: str) -> Fraction | None:
    """The exact cost unit; the model compares it with the costs."""
    if value is None:
        return None
    if (unit := positive_fraction(value)) is None:
        raise FormatError(f"{location}: {shorten(repr(value))} is not a positive fraction 'p/q'")
    return unit


def positive_fraction(value: Any) -> Fraction | None:
    """What is written as `p/q`, if it is."""
    match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    top, bottom = map(int, match.groups()) if match else (0, 0)
    return Fraction(top, bottom) if top and bottom else None


def decode_geometry(value: Any, n_states: int, location: str) -> Geometry | None:
    """The geometry, one entry per state, every cell on the grid or at -1."""
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"rows", "columns", "row", "column", "kind"}:
        raise FormatError(f"{location} must have rows, columns, row, column and kind")
    if not all(type(value[key]) is int and value[key] > 0 for key in ("rows", "columns")):
        raise FormatError(f"{location}: rows and columns must be positive whole numbers")
    for key, kind, end in (
        ("row", int, value["rows"]),
        ("column", int, value["columns"]),
        ("kind", str, 0),
    ):
        entries = value[key]
        if (
            not isinstance(entries, list)
            or len(entries) != n_states
            or set(map(type, entries)) != {kind}
        ):
            raise FormatError(
                f"{location}.{key} must be a list of {n_states} entries, one per state"
            )
        for entry in (min(entries), max(entries)) if end else ():
            if not -1 <= entry < end:
                raise FormatError(
                    f"{location}.{key}[{entries.index(entry)}] is {entry}, outside -1..{end - 1}"
                )
        value = {**value, key: tuple(entries)}
    return Geometry(**value)


def decode_notes(value: Any, location: str) -> tuple[str, ...]:
    if not isinstance(value, list) or any(type(note) is not str for note in value):
        raise FormatError(f"{location} must be a list of strings")
    return tuple(value)
