"""`python -m tests.fuzz [--seconds S | --files N --models N] [--seed N] [--only KIND]
[--keep FOLDER]`: look for faults until the time is over, or so many trials are made.

Damaged models of every format, damaged policies of every kind and odd command lines are tried in
child processes, so that a crash, a hang and a lack of memory are faults like any other. A fault is
shrunk and kept with its files; its kind and number repeat it. Other searches are functions
`search(seconds, seed, count) -> list of faults` in the modules of `SEARCHES`, which are run where
they are there.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

from tests.fuzz import cases

BATCH, LONGEST = 400, 10.0
LANGUAGE_BATCH, LANGUAGE_LONGEST = 20, 120.0
#: Searches of others, by module, which share the time that damage leaves.
SEARCHES = tuple(f"tests.fuzz.{name}" for name in ("models", "objectives", "borders", "corners"))


def batch(
    kind: str, first: int, count: int, longest: float, folder: pathlib.Path, files: str = ""
) -> tuple[int, int, dict | None]:
    """Trials made, those accepted, and the fault that ended them, if one did."""
    folder.mkdir(parents=True, exist_ok=True)
    notes = folder / "notes"
    notes.write_text("")
    arguments = [kind, "file", files] if files or first < 0 else [kind, str(first), str(count)]
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.child", *arguments, str(folder)],
            stdout=said,
            stderr=said,
        )
        seen, since, begin, fault = (
            0,
            600.0,
            time.monotonic() + 600,
            None,
        )  # time to start, and to compile
        while child.poll() is None:
            time.sleep(0.02)
            size = notes.stat().st_size
            if size > seen:
                seen, since, begin = size, worked(child.pid), time.monotonic()
            # Of a busy machine the child has a share only; who does nothing at all hangs, too.
            elif worked(child.pid) - since > longest or time.monotonic() - begin > 20 * longest:
                child.kill()
                child.wait()
                fault = f"hangs for {longest:g} s"
    lines = notes.read_text().splitlines()
    numbers = [int(line) for line in lines if line.isdigit()]
    at = numbers[-1] if numbers else first
    told = [json.loads(line) for line in lines if line.startswith("{")]
    if told:
        found: dict | None = {"kind": kind, **told[-1]}
    elif fault is not None or child.returncode != 0:
        words = (folder / "said").read_text(errors="replace").strip()[-300:]
        found = {
            "kind": kind,
            "number": at,
            "fault": fault or f"crash, exit code {child.returncode}: {words}",
        }
    else:
        found = None
    return len(numbers), lines.count("accepted"), found


def worked(process: int) -> float:
    """The processor seconds that a process has taken, or the clock where the system
    does not tell.
    """
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return time.monotonic()


def shrink(kind: str, number: int, folder: pathlib.Path, longest: float) -> None:
    """Keep the files of a fault in FOLDER/input, cut as small as they still fail."""
    with tempfile.TemporaryDirectory() as made:
        files, name = cases.damaged(kind, number, cases.originals(kind, pathlib.Path(made)))
    place = folder / "input"

    def fails(candidate: dict[str, bytes]) -> bool:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for one, content in candidate.items():
            (place / one).write_bytes(content)
        return batch(kind, -1, 1, longest, folder, name or "model")[2] is not None

    end = time.monotonic() + 60
    for victim in sorted(files):
        step = max(1, len(files[victim]) // 2)
        while step >= 1 and time.monotonic() < end:
            at = 0
            while at < len(files[victim]) and time.monotonic() < end:
                shorter = {**files, victim: files[victim][:at] + files[victim][at + step :]}
                if fails(shorter):
                    files = shorter
                else:
                    at += step
            step //= 2
    fails(files)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument(
        "--files", type=int, default=0, help="so many trials, however long they take"
    )
    parser.add_argument(
        "--models", type=int, default=0, help="so many models in each search of random models"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", choices=[*cases.KINDS, *cases.LANGUAGES])
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/fuzz"))
    options = parser.parse_args()
    print(f"seed {options.seed}: trials are numbered from {options.seed} million on", flush=True)
    begin, tried, accepted, faults = time.monotonic(), {}, {}, []
    searches = (
        []
        if options.only or (options.files and not options.models)
        else [name for name in SEARCHES if importlib.util.find_spec(name)]
    )
    share = options.seconds / (1 + len(searches) / 2)
    kinds = (
        [options.only]
        if options.only
        else [
            *cases.KINDS,
            *(kind for kind, needs in cases.LANGUAGES.items() if importlib.util.find_spec(needs)),
        ]
    )
    at = dict.fromkeys(kinds, options.seed * 10**6)
    counted = options.files or options.models
    while sum(tried.values()) < options.files if counted else time.monotonic() - begin < share:
        for kind in kinds:
            slow = kind in cases.LANGUAGES
            longest = LANGUAGE_LONGEST if slow else LONGEST
            folder = options.keep / kind.replace(" ", "-")
            many = (
                BATCH if options.seconds < 600 and not counted else 5 * BATCH
            )  # a child takes seconds to start
            made, fine, fault = batch(
                kind,
                at[kind],
                LANGUAGE_BATCH if slow else many // 4 if kind == "options" else many,
                longest,
                folder,
            )
            at[kind] += max(made, 1)
            tried[kind], accepted[kind] = tried.get(kind, 0) + made, accepted.get(kind, 0) + fine
            if fault is not None:
                print(json.dumps(fault), flush=True)
                faults.append(fault)
                if kind != "options":
                    shrink(
                        kind,
                        fault["number"],
                        options.keep / f"fault-{kind.replace(' ', '-')}-{fault['number']}",
                        longest,
                    )
            if not counted and time.monotonic() - begin > share:
                break
    for kind in tried:
        print(
            f"{kind}: {tried[kind]} tried, {accepted[kind]} accepted,"
            f" {tried[kind] - accepted[kind]} refused or at fault"
        )
    for name in searches:
        found = importlib.import_module(name).search(share / 2, options.seed, options.models)
        print(f"{name}: {len(found)} faults")
        faults.extend(found)
    print(
        f"{sum(tried.values())} trials, {len(faults)} faults, {time.monotonic() - begin:.0f} s,"
        f" seed {options.seed}"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
