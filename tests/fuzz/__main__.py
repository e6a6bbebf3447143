"""`python -m tests.fuzz [--files N] [--models N] [--seconds S] [--workers N] [--seed N]
[--only KIND] [--keep FOLDER]`: look for faults in so many files and models, or until the time is
over.

Damaged models of every format, damaged policies of every kind, odd command lines and random models
are tried in child processes, so that a crash, a hang and a lack of memory are faults like any
other. A fault is printed with its kind and number, which repeat it; files are shrunk and kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from tests.fuzz import cases
from tests.fuzz.child import SEARCHES

#: The trials of a child, which takes seconds to start, and how many processor seconds one may take.
BATCH, LONGEST = 2000, 10.0
LANGUAGE_BATCH, LANGUAGE_LONGEST = 100, 120.0
MODEL_BATCH, MODEL_LONGEST = 500, 300.0
#: How often a kind of file is tried beside the others: what is slow to read less often.
SHARES = {"options": 0.25, "prism": 0.05, "jani": 0.05, "rddl": 0.2}


class Batch(NamedTuple):
    """Trials made, those accepted, the claims checked by kind, and faults; files end at one."""

    made: int
    accepted: int
    claims: Counter[str]
    faults: list[dict[str, Any]]


def batch(
    kind: str, first: int, count: int, longest: float, folder: pathlib.Path, files: str = ""
) -> Batch:
    """Make trials in a child; none of them may take longer than so many processor seconds."""
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
        # Time to start, and to compile.
        seen, since, begin, fault = 0, 600.0, time.monotonic() + 600, None
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
    told = [json.loads(line) for line in lines if line.startswith("{")]
    claims = Counter(next((each["claims"] for each in told if "claims" in each), {}))
    faults = [{"kind": kind, **each} for each in told if "fault" in each]
    if fault is not None or child.returncode not in (0, 3):
        words = (folder / "said").read_text(errors="replace").strip()[-300:]
        at = numbers[-1] if numbers else first
        fault = fault or f"crash, exit code {child.returncode}: {words}"
        faults.append({"kind": kind, "number": at, "fault": fault})
    return Batch(len(numbers), lines.count("accepted"), claims, faults)


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
        return batch(kind, -1, 1, longest, folder, name or "model").faults != []

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


class Job(NamedTuple):
    """So many trials of a kind, from a number on."""

    kind: str
    first: int
    count: int

    @property
    def longest(self) -> float:
        if self.kind in SEARCHES:
            return MODEL_LONGEST
        return LANGUAGE_LONGEST if self.kind in cases.LANGUAGES else LONGEST


def jobs(kinds: list[str], files: int, models: int, first: int) -> list[Job]:
    """Every kind's share of the files or models, in batches; those that take longest come first."""
    searches = [kind for kind in kinds if kind in SEARCHES]
    weights = {kind: SHARES.get(kind, 1.0) for kind in kinds if kind not in SEARCHES}
    wanted = {kind: -(-models // len(searches)) for kind in searches}
    total = sum(weights.values())
    wanted |= {kind: round(files * weight / total + 0.5) for kind, weight in weights.items()}
    found = []
    for kind, count in wanted.items():
        many = MODEL_BATCH if kind in SEARCHES else BATCH
        many = LANGUAGE_BATCH if kind in cases.LANGUAGES else many
        for done in range(0, count, many):
            found.append(Job(kind, first + done, min(many, count - done)))
    return found


class Search:
    """What was found so far; `run` may be called by several threads at once."""

    def __init__(self, keep: pathlib.Path, until: float) -> None:
        self.keep, self.until, self.lock = keep, until, threading.Lock()
        self.made: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.claims: Counter[str] = Counter()
        self.faults: list[dict[str, Any]] = []

    def run(self, job: Job) -> None:
        """Make the trials of a job, those after a fault, too."""
        kind, first, count = job
        end = first + count
        while first < end and time.monotonic() < self.until:
            folder = self.keep / f"{kind.replace(' ', '-')}-{threading.get_ident()}"
            found = batch(kind, first, end - first, job.longest, folder)
            first += max(found.made, 1)
            with self.lock:
                self.made[kind] += found.made
                self.accepted[kind] += found.accepted
                self.claims += found.claims
                self.faults += found.faults
                for fault in found.faults:
                    print(json.dumps(fault), flush=True)
            if found.faults and kind not in SEARCHES and kind != "options":
                number = found.faults[-1]["number"]
                place = self.keep / f"fault-{kind.replace(' ', '-')}-{number}"
                shrink(kind, number, place, job.longest)

    def summary(self) -> str:
        rows = [
            f"{kind}: {made} models"
            if kind in SEARCHES
            else f"{kind}: {made} tried, {self.accepted[kind]} accepted"
            for kind, made in self.made.items()
        ]
        claims = ", ".join(f"{what} {count}" for what, count in sorted(self.claims.items()))
        return "\n".join([*rows, *([f"checked: {claims}"] if claims else [])])


def rounds(kinds: list[str], files: int, models: int, seed: int, endless: bool) -> Iterator[Job]:
    """The jobs of one round, or of one round after the other."""
    for number in itertools.count() if endless else [0]:
        at = seed * 10**6 + number * max(files, models)
        yield from jobs(kinds, files, models, at)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--files", type=int, default=5000, help="files, of all kinds together")
    parser.add_argument("--models", type=int, default=400, help="models, in all searches together")
    parser.add_argument("--seconds", type=float, help="repeat until the time is over")
    parser.add_argument("--workers", type=int, default=1, help="children at a time")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", choices=[*cases.KINDS, *cases.LANGUAGES, *SEARCHES])
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/fuzz"))
    asked = parser.parse_args()
    print(f"seed {asked.seed}: trials are numbered from {asked.seed} million on", flush=True)
    languages = [kind for kind, needs in cases.LANGUAGES.items() if importlib.util.find_spec(needs)]
    kinds = [asked.only] if asked.only else [*SEARCHES, *languages, *cases.KINDS]
    begin = time.monotonic()
    end = begin + asked.seconds if asked.seconds else float("inf")
    search = Search(asked.keep, end)
    todo = rounds(kinds, asked.files, asked.models, asked.seed, bool(asked.seconds))
    taking = threading.Lock()

    def work(_: int) -> None:
        while time.monotonic() < end:
            with taking:
                job = next(todo, None)
            if job is None:
                return
            search.run(job)

    with ThreadPoolExecutor(asked.workers) as pool:
        list(pool.map(work, range(asked.workers)))
    models = sum(search.made[kind] for kind in SEARCHES)
    print(search.summary())
    print(
        f"{models} models, {search.made.total() - models} files, {len(search.faults)} faults,"
        f" {time.monotonic() - begin:.0f} s, seed {asked.seed}"
    )
    return 1 if search.faults else 0


if __name__ == "__main__":
    sys.exit(main())
