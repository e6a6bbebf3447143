"""Disasters that happen to files: bytes flipped, cut, repeated, lines swapped, numbers replaced by
hostile ones, members of archives damaged.
"""

from __future__ import annotations

import gzip
import io
import random
import re
import zipfile

from tailpath.formats.archives import tar_members, write_tar

NUMBERS = """nan inf -inf Infinity NaN -1 -0.0 0 1 2 1e999 1e-999 1E5 0x10 1_000 .5 5. +3 1/3 1/0
-1/2 0/1 9999999999 999999999 2147483648
4294967296 18446744073709551615 99999999999999999999999 1e308
1e400 -1e400 1e99999999 1e-99999999 5e-324 1e-320 9223372036854775808 \u0663 \u00b2 \u00bd"""
WORDS = r"""init goal deadlock cost states actions outcomes header version geometry
auxiliary tailpath @model @nr_states state action // #
$x . e - + / : { } [ ] " "" , null true false {} [] [[ ]] {"a":1,"a":2} \ \u0000 \ud800"""
BLANKS = ["", " ", "\n", "\r\n", "\t", "\0", "\ufeff"]
HOSTILE = [*NUMBERS.split(), *WORDS.split(), *BLANKS, "[" * 3000, "9" * 5000, '{"a":' * 3000]


def damage(data: bytes, rng: random.Random) -> bytes:
    """One to three small disasters."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind = rng.randrange(9)
        at = rng.randrange(len(data) + 1)
        if kind == 0:
            data = data[:at]
        elif kind == 1 and data:
            at = rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + data[at + rng.randrange(1, 20) :]
        elif kind == 3:
            data = data[:at] + rng.choice(HOSTILE).encode() + data[at:]
        elif kind == 4:
            data = data[:at] + data[max(0, at - rng.randrange(1, 60)) : at] + data[at:]
        elif kind == 5:
            lines = data.split(b"\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            data = b"\n".join(lines)
        elif kind == 6:
            lines = data.split(b"\n")
            i = rng.randrange(len(lines))
            data = b"\n".join(lines[:i] + [lines[i]] * rng.choice((0, 2)) + lines[i + 1 :])
        else:
            tokens = list(re.finditer(rb'[0-9][0-9.e/-]*|"[^"\n]*"|[A-Za-z]+', data))
            if tokens:
                token = rng.choice(tokens)
                data = data[: token.start()] + rng.choice(HOSTILE).encode() + data[token.end() :]
    return data


def damage_zip(data: bytes, rng: random.Random) -> bytes:
    """A zip archive with one damaged member, and a valid directory."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(
        buffer, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as archive:
        for name, content in damaged_members(members, rng).items():
            archive.writestr(name, content)
    return buffer.getvalue()


def damage_tar(data: bytes, rng: random.Random) -> bytes:
    """A tar archive with one damaged member, packed again."""
    members = {
        name: bytes(content) for name, content in tar_members("", gzip.decompress(data)).items()
    }
    packed = write_tar(damaged_members(members, rng))
    return gzip.compress(packed, compresslevel=1) if rng.random() < 0.5 else packed


def damaged_members(members: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    victim = rng.choice(list(members))
    if rng.random() < 0.1:
        return {name: content for name, content in members.items() if name != victim}
    if rng.random() < 0.5:
        victim = next(name for name in members if name.startswith(("index", "header")))
    return {
        name: damage(content, rng) if name == victim else content
        for name, content in members.items()
    }
