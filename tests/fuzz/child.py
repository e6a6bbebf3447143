"""A child of the search: `python -m tests.fuzz.child KIND FIRST COUNT FOLDER` makes trials and
notes the number of each before it begins. A kind is one of `cases.py`, or a module of `SEARCHES`,
whose `attempt(number)` draws a model and yields what it has checked.

With `KIND file NAME FOLDER` it tries the files of FOLDER/input once, for shrinking. Exit code 0, or
3 after a fault, which stands in the notes.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import resource
import sys
import tempfile
import warnings
from collections import Counter
from typing import IO

from tests.fuzz import cases, models

#: The memory that a trial may take beyond what the program has when it begins.
MAX_BYTES = 2**30
#: Searches of random models: modules of this package.
SEARCHES = ("models", "objectives", "borders", "corners", "laws", "nature")


def main() -> int:
    kind, first, count, place = sys.argv[1:5]
    folder = pathlib.Path(place)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as made, (folder / "notes").open("a", buffering=1) as notes:
        inside = pathlib.Path(made)
        if kind in SEARCHES:
            return search(kind, range(int(first), int(first) + int(count)), notes)
        if first == "file":
            files = {path.name: path.read_bytes() for path in (folder / "input").iterdir()}
            cases.warm_up(kind)
            return note(notes, -1, lambda: cases.attempt(kind, files, count, inside))
        sound = cases.originals(kind, inside) if kind != "options" else []
        cases.warm_up(kind)
        with contextlib.suppress(OSError, ValueError):
            size = (
                int(pathlib.Path("/proc/self/statm").read_text().split()[0])
                * resource.getpagesize()
            )
            resource.setrlimit(resource.RLIMIT_AS, (size + 2 * MAX_BYTES, size + 2 * MAX_BYTES))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(int(first), int(first) + int(count)):
            notes.write(f"{number}\n")
            for path in inside.iterdir():
                path.unlink()
            code = note(notes, number, lambda number=number: cases.run(kind, number, sound, inside))
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
            if grown > MAX_BYTES:
                notes.write(
                    json.dumps({"number": number, "fault": f"{grown >> 20} MB of memory"}) + "\n"
                )
                return 3
            if code:
                return code
    return 0


def search(kind: str, numbers: range, notes: IO[str]) -> int:
    """Try models; the claims that were checked are noted at the end."""
    attempt = importlib.import_module(f"tests.fuzz.{kind}").attempt
    claims: Counter[str] = Counter()
    for number in numbers:
        notes.write(f"{number}\n")
        fault, found = models.tried(number, attempt)
        claims.update(found)
        if fault is not None:
            notes.write(json.dumps({"number": number, "fault": fault}) + "\n")
    notes.write(json.dumps({"claims": claims}) + "\n")
    return 0


def note(notes: IO[str], number: int, trial) -> int:
    try:
        notes.write(f"{trial()}\n")
    except BaseException as error:
        notes.write(
            json.dumps(
                {
                    "number": number,
                    "fault": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}",
                }
            )
            + "\n"
        )
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
