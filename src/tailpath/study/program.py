"""Who computed a run: the program, the model and the machine.

Two versions of the program may give different numbers, so the name of a program is its version and
a hash of all source that takes part in the computation. What draws, reports, reads files or talks
to the user does not: such a change must not throw results away.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import platform
from functools import cache

from tailpath.version import __version__

ROOT = pathlib.Path(__file__).parents[1]
#: Files and folders of the package that do not change a number of a run.
WITHOUT_NUMBERS = {
    "cli",
    "formats",
    "pictures",
    "show",
    "study",
    "__init__.py",
    "__main__.py",
}


@cache
def program() -> str:
    """The version and the first digits of a hash of the source that computes."""
    digest = hashlib.sha256()
    inside = [
        path
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in WITHOUT_NUMBERS
    ]
    for path in sorted(
        [*inside, ROOT / "study" / "work.py"], key=lambda path: path.relative_to(ROOT).as_posix()
    ):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return f"{__version__}+{digest.hexdigest()[:12]}"


@cache
def machine() -> str:
    """The processor, and how many there are, as far as the system tells."""
    name = platform.processor() or platform.machine()
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
            name,
        )
    except OSError:
        pass  # not Linux
    return (
        f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )
