"""Damaged files: every reader gives a model or one clear refusal that names the file. No traceback,
no hang, no memory out of proportion.

Each format starts from sound files and damages them a few hundred times (`tests/fuzz/damage.py`);
for archives also their members, packed again so that the damage reaches the parser behind the
archive. `make fuzz` goes on from here, in child processes.
"""

import gzip
import os
import random
import signal
import tracemalloc
import warnings

import pytest

import tailpath as tp
from tests.formats.models import awkward, by_choice, samples
from tests.formats.policies import CASES as POLICIES
from tests.fuzz.__main__ import batch
from tests.fuzz.damage import damage, damage_tar, damage_zip

pytestmark = pytest.mark.fuzz

ROUNDS = 250
#: Files of a few kilobytes; a packed one may unfold to the constant part of the byte budget.
MAX_MEMORY = 40 * 2**20


@pytest.fixture
def watchdog():
    """A reader that hangs is a failure, not a stuck test."""

    def bark(signum, frame):
        raise AssertionError("the reader hangs")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def survives(path: str, names: str, read=tp.read) -> bool:
    """Read; any refusal must be ours and must begin with one of the files. Says whether something
    came out.
    """
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except tp.TailpathError as error:
        text = str(error)
        assert text.startswith(names), text
        assert "\n" not in text and len(text) < 1000
        return False
    finally:
        assert tracemalloc.get_traced_memory()[1] - before < MAX_MEMORY
    return True


DAMAGE = {
    "npz members": damage_zip,
    "umb members": damage_tar,
    "umb plain": lambda data, rng: damage(gzip.decompress(data), rng),
}
CASES = [
    "json",
    "npz",
    "npz members",
    "drn",
    "drn.gz",
    "tra",
    "umb",
    "umb members",
    "umb plain",
    "csv",
]


@pytest.mark.parametrize("case", CASES)
def test_damaged_files_are_refused_in_one_line(case, tmp_path, watchdog):
    suffix = case.partition(" ")[0]
    rng = random.Random(case)
    stem = str(tmp_path / "model")
    originals = []
    for model in (
        [by_choice()] if suffix in ("tra", "csv") else [awkward(), by_choice(), samples()["river"]]
    ):
        tp.write(model, f"{stem}.{suffix}")
        originals.append(
            {name: (tmp_path / name).read_bytes() for name in sorted(os.listdir(tmp_path))}
        )
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(ROUNDS):
            files = dict(rng.choice(originals))
            victim = rng.choice(list(files))
            files[victim] = DAMAGE.get(case, damage)(files[victim], rng)
            for name, content in files.items():
                (tmp_path / name).write_bytes(content)
            refused += not survives(f"{stem}.{suffix}", stem)
    finally:
        tracemalloc.stop()
    # Most damage must be noticed, and some is harmless; a test where one of them never happens
    # tests nothing.
    assert ROUNDS // 4 < refused < ROUNDS


@pytest.mark.parametrize("case", ["json", "npz", "npz members"])
def test_damaged_policies_are_refused_in_one_line(case, tmp_path, watchdog):
    suffix, _, members = case.partition(" ")
    rng = random.Random(f"policy {case}")
    path = tmp_path / f"p.{suffix}"
    originals = []
    for make, model in POLICIES.values():
        tp.write_policy(make(), path)
        originals.append((path.read_bytes(), model()))
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(ROUNDS):
            data, model = rng.choice(originals)
            path.write_bytes(damage_zip(data, rng) if members else damage(data, rng))
            refused += not survives(
                str(path), str(path), lambda place, model=model: tp.read_policy(place, model)
            )
    finally:
        tracemalloc.stop()
    assert ROUNDS // 4 < refused < ROUNDS


def many(n, entry, between=" "):
    return between.join(entry.format(k) for k in range(n))


TALL = {
    "digits.drn": "@type: DTMC\n@nr_states\n" + "9" * 10**6 + "x",
    "number.drn": "@type: DTMC\n@nr_states\n1\n@model\nstate 0 init [" + "1" * 10**6 + "x]",
    "number.csv": "idstatefrom,idaction,idstateto,probability,cost\n0,0,1,1," + "1" * 100_000 + "x",
    "labels.drn": "@type: DTMC\n@nr_states\n1\n@model\nstate 0 init " + many(50_000, "l{}"),
    "label-per-state.drn": (
        "@type: DTMC\n@nr_states\n50000\n@model\n" + many(50_000, "state {0} l{0}", "\n")
    ),
    "rewards.drn": (
        "@type: DTMC\n@reward_models\n"
        + many(100_000, "r{}")
        + "\n@nr_states\n50000\n@model\n"
        + many(50_000, "state {0}", "\n")
    ),
    "blanks.drn": (
        "@type: DTMC\n@nr_states\n1\n@model\nstate 0"
        + " " * 10**6
        + "\naction"
        + " " * 10**6
        + "a b"
    ),
    "keys.json": "{" + many(200_000, '"k{}": 1', ", ") + ', "k199999": 2}',
    "far.tra": "1000000000 1\n0 999999999 1\n",
    "far.csv": (
        "idstatefrom,idaction,idstateto,probability,cost\n0,999999999999,999999999999999999,1,x\n"
    ),
}


@pytest.mark.parametrize("name", TALL)
def test_nothing_grows_with_the_square_or_with_a_promise(name, tmp_path, watchdog):
    """Files of a megabyte whose parts multiply: labels by states, digits by digits. A reader that
    does so would never finish.
    """
    path = tmp_path / name
    path.write_text(TALL[name])
    tracemalloc.start()
    try:
        with pytest.raises(tp.TailpathError, match=name):
            tp.read(path)
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY + 60 * len(TALL[name])
    finally:
        tracemalloc.stop()


def test_many_labels_in_prism_explicit(tmp_path, watchdog):
    (tmp_path / "m.tra").write_text("1 1\n0 0 1\n")
    (tmp_path / "m.lab").write_text(many(100_000, '{0}="l{0}"') + "\n0: 0\n")
    with pytest.raises(tp.TailpathError, match="no label 'goal'"):
        tp.read(tmp_path / "m.tra")


def test_the_search_finds_a_fault_and_tells_its_number(tmp_path):
    """A file of the search that its child cannot read: the search must notice, and go on."""
    found = batch("json", 7_000_000, 30, 60.0, tmp_path)
    assert (found.made, found.faults) == (30, []) and found.accepted < 30
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "p.json").write_text("{}")
    (fault,) = batch("policy json", -1, 1, 60.0, tmp_path, "no such policy").faults
    assert fault["fault"].startswith("KeyError")
