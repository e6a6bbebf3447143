"""What is tried, each with a number that fixes it: a damaged model, a damaged policy, an odd
command line.

A trial gives "accepted" or "refused". Anything else is a fault: an exception that is no refusal of
ours, a refusal that does not name the file or has more than one line, and nonsense accepted, which
independent checks of plain Python look for.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import math
import os
import pathlib
import random
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction

import tailpath as tp
from tailpath.distributed.files import read_part, write_part
from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.ranks import Alone
from tests.formats.models import awkward, by_choice, differences, read_both_ways, samples
from tests.formats.policies import CASES as POLICIES
from tests.fuzz import programs
from tests.fuzz.damage import HOSTILE, damage, damage_tar, damage_zip

PROGRAM = """mdp
const int N = 3;
module walk
  x : [0..N] init 0;
  [step] x<N -> 0.5:(x'=x+1) + 0.5:(x'=x);
  [jump] x=0 -> 0.9:(x'=N) + 0.1:(x'=1);
endmodule
rewards "cost"
  [step] true : 1;
  [jump] x=0 : 10;
endrewards
label "goal" = x=N;
"""
JANI = """{"jani-version": 1, "name": "m", "type": "mdp", "actions": [{"name": "go"}],
"properties": [], "constants": [],
"variables": [{"name": "s", "type": {"kind": "bounded", "base": "int",
"lower-bound": 0, "upper-bound": 3}, "initial-value": 0}, {"name": "cost", "type": "real",
"transient": true, "initial-value": 0}, {"name": "goal", "type": "bool", "transient": true,
"initial-value": false}], "automata": [{"name": "A", "locations": [{"name": "l",
"transient-values": [{"ref": "goal", "value": {"op": "=", "left": "s", "right": 3}}]}],
"initial-locations": ["l"], "edges": [{"location": "l", "action": "go", "guard": {"exp": {"op":
"<", "left": "s", "right": 3}}, "destinations": [{"location": "l", "probability": {"exp": 0.5},
"assignments": [{"ref": "s", "value": {"op": "+", "left": "s", "right": 1}}, {"ref": "cost",
"value": 2}]}, {"location": "l", "probability": {"exp": 0.5}, "assignments": [{"ref": "cost",
"value": 2}]}]}]}], "system": {"elements": [{"automaton": "A"}], "syncs": [{"synchronise": ["go"],
"result": "go"}]}}"""

Files = dict[str, bytes]
MODELS = [
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
    "parquet",
]
SAVED = ["policy json", "policy npz", "policy npz members"]
#: What takes long to read, each with the package that reads it.
LANGUAGES = {"prism": "stormpy", "jani": "stormpy", "rddl": "tailpath_cases"}
PARTS = ["part", "part members"]
KINDS = [*MODELS, *SAVED, *PARTS, "options"]


class Nonsense(Exception):
    """Something was accepted that cannot be true."""


def originals(kind: str, folder: pathlib.Path) -> list[tuple[Files, str]]:
    """Sound files of a kind, each with the name of the policy in it, if it is one."""
    suffix = kind.removeprefix("policy ").partition(" ")[0]
    if kind == "rddl":
        return [(programs.changed([]), "")]
    if kind in LANGUAGES:
        return [({f"m.{kind}": (PROGRAM if kind == "prism" else JANI).encode()}, "")]
    found = []
    if kind in SAVED:
        for name, (make, _) in POLICIES.items():
            tp.write_policy(make(), folder / f"p.{suffix}")
            found.append(({f"p.{suffix}": (folder / f"p.{suffix}").read_bytes()}, name))
        return found
    if kind in PARTS:
        for model in (by_choice(), samples()["river"]):
            path = write_part(Part.of(model, 0, 1), folder)
            found.append(({path.name: path.read_bytes()}, ""))
        return found
    if kind == "parquet":
        import pyarrow.csv
        import pyarrow.parquet

        tp.write(by_choice(), folder / "m.csv")
        written = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(folder / "m.csv"), written)
        return [({"m.parquet": written.getvalue()}, "")]
    for model in (
        [by_choice()] if suffix in ("tra", "csv") else [awkward(), by_choice(), samples()["river"]]
    ):
        for path in folder.iterdir():
            path.unlink()
        tp.write(model, folder / f"m.{suffix}")
        found.append(({path.name: path.read_bytes() for path in sorted(folder.iterdir())}, ""))
    return found


def damaged(kind: str, number: int, sound: list[tuple[Files, str]]) -> tuple[Files, str]:
    """The files of one trial."""
    if kind == "rddl":
        return programs.program(number), ""
    rng = random.Random(f"{kind} {number}")
    files, name = rng.choice(sound)
    files = dict(files)
    victim = rng.choice(sorted(files))
    ways: dict[str, Callable[[bytes, random.Random], bytes]] = {
        "npz members": damage_zip,
        "policy npz members": damage_zip,
        "part members": damage_zip,
        "umb members": damage_tar,
        "umb plain": lambda data, rng: damage(gzip.decompress(data), rng),
    }
    files[victim] = ways.get(kind, damage)(files[victim], rng)
    return files, name


def attempt(kind: str, files: Files, policy: str, folder: pathlib.Path) -> str:
    """Write the files, read them, and look at what comes out."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    main = (
        folder
        / sorted(name for name in files if not name.endswith((".lab", ".srew", ".trew", ".sta")))[0]
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind in SAVED:
                ssp = POLICIES[policy][1]()
                check_policy(tp.read_policy(main, ssp), ssp)
            elif kind in PARTS:
                # A file of a whole model holds probabilities as they are, known to no fewer digits.
                whole = whole_of(Alone(), read_part(folder, 0, 1))
                check_model(dataclasses.replace(whole, probability_error=0.0), folder)
            elif kind == "rddl":
                source = f"rddl:{','.join(str(folder / name) for name in sorted(files))}"
                ssp = tp.read(source)
                # What pairs of state and step stand for is not written.
                check_model(dataclasses.replace(ssp, origin=None), folder)
                programs.check(source, ssp)
            else:
                careful, quick = read_both_ways(main)
                if isinstance(careful, str) and careful == quick:
                    raise tp.TailpathError(careful)
                if (
                    isinstance(careful, str)
                    or isinstance(quick, str)
                    or differences(careful, quick)
                ):
                    raise Nonsense(f"two ways of reading differ: {careful}, {quick}")
                check_model(careful, folder)
    except tp.TailpathError as error:
        text = str(error).removeprefix("rddl:")
        if not text.startswith(str(folder)) or "\n" in text or len(text) > 1000:
            raise Nonsense(f"a poor refusal: {text[:300]!r}") from None
        return "refused"
    return "accepted"


def check_model(ssp: tp.SSP, folder: pathlib.Path) -> None:
    """A model that was accepted: distributions, costs, indices and names hold, and it survives
    being written and read.
    """
    begin, outcome = ssp.state_choices.tolist(), ssp.choice_outcomes.tolist()
    probability, cost = ssp.outcome_probability.tolist(), ssp.outcome_cost.tolist()
    for state in range(ssp.n_states):
        if (begin[state] == begin[state + 1]) != bool(ssp.is_goal[state]):
            raise Nonsense(f"state {state} is a goal with choices, or none without")
    for choice in range(ssp.n_choices):
        row = probability[outcome[choice] : outcome[choice + 1]]
        if not row or min(row) <= 0 or abs(math.fsum(row) - 1) > 1e-12 * len(row):
            raise Nonsense(f"choice {choice} has the probabilities {row[:5]}")
    if any(not abs(value) <= 1e300 for value in cost) or any(
        not 0 <= target < ssp.n_states for target in ssp.outcome_target.tolist()
    ):
        raise Nonsense("a cost or a target out of range")
    if ssp.exact_unit is not None and any(
        float(round(Fraction(value) / ssp.exact_unit) * ssp.exact_unit) != value for value in cost
    ):
        raise Nonsense("a cost that is no multiple of the unit")
    if len(set(map(repr, ssp.states))) != ssp.n_states:
        raise Nonsense("two states have one name")
    tp.write(ssp, folder / "again.npz")
    if tp.read(folder / "again.npz") != ssp:
        raise Nonsense("it changes when it is written and read")


def check_policy(policy: tp.Policy, ssp: tp.SSP) -> None:
    """A policy that was accepted: where two engines can evaluate it, they agree."""
    found = []
    for engine in ("lattice", "queue"):
        try:
            found.append(tp.evaluate(ssp, policy, 0.3, engine=engine, max_nodes=20_000).bounds(0.3))
        except tp.TailpathError:
            return
    (low, high), (other_low, other_high) = found
    if low > other_high * (1 + 1e-9) or other_low > high * (1 + 1e-9):
        raise Nonsense(f"the engines say {found}")


# ---------------------------------------------------------------------- command lines

VALUES = [
    "0",
    "1",
    "-1",
    "0.1",
    "1e-9",
    "1e400",
    "-1e400",
    "1e99999999",
    "1e-99999999",
    "1e-320",
    "nan",
    "inf",
    "",
    "x",
    "9" * 30,
    "1/3",
    "=",
    "a=b",
    "0.5=2",
    *HOSTILE[:20],
]
WORDS = (
    "alpha atoms alpha0 tolerance method engine gamma max-nodes delta weight goal cost step-cost"
    " cost-of "
)
WORDS += (
    "const start goals one-based negate-reward lexicographic json runs seed confidence inner"
    " max-sweeps heuristic"
)
FLAGS = [f"--{word}" for word in WORDS.split()]
SOURCES = [
    "textbook:lottery",
    "river:4x3",
    "gridworld:5x5",
    "river:0x0",
    "textbook:x",
    "nowhere.json",
    "",
    "x:y",
    "/dev/null",
]


def attempt_options(number: int) -> str:
    """A command line of odd parts: an exit code of 0 or 2, and one line where it is refused."""
    from tailpath.cli import main

    rng = random.Random(f"options {number}")
    command = rng.choice(["info", "solve", "evaluate", "compare", "simulate", "convert"])
    arguments = [command, rng.choice(SOURCES[:3] if rng.random() < 0.7 else SOURCES)]
    if command in ("evaluate", "simulate"):
        arguments += [rng.choice(["expected", "expected", "nowhere.json"]), "--alpha", "0.2"]
    if command == "simulate":
        arguments += ["--runs", "10"]
    if command == "convert":
        arguments.append(rng.choice(["/nowhere/at/all.json", "m.xyz", ""]))
    if command == "solve":
        value, word = rng.choice(VALUES), rng.choice(["late", "shortfall", "cvar", "var"])
        arguments += rng.choice(
            [
                ["--alpha", "0.2", "--method", rng.choice(["exact", "expected", "quantile"])],
                [
                    "--minimise",
                    rng.choice(
                        [f"{word}({value})", f"{value} * mean", f"mean + {value} * late(3)"]
                    ),
                ],
                [
                    "--minimise",
                    "mean",
                    "--limit",
                    rng.choice([f"{word}({value}) <= 0.5", f"late(3) <= {value}"]),
                ],
            ]
        )
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        arguments.append(rng.choice(FLAGS))
        if rng.random() < 0.8:
            arguments.append(rng.choice(VALUES))
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        code = main([argument for argument in arguments if "\0" not in argument])
    lines = [line for line in said.getvalue().splitlines() if line.startswith("tailpath: error:")]
    if code not in (0, 2) or (code == 2) != (len(lines) == 1) or "Traceback" in said.getvalue():
        raise Nonsense(f"{arguments} ends with {code} and says {said.getvalue()[-300:]!r}")
    return "accepted" if code == 0 else "refused"


def warm_up(kind: str) -> None:
    """Compile what trials of this kind call: a hang is a hang of the program, not of
    the compiler.
    """
    if kind in SAVED:
        for make, model in POLICIES.values():
            check_policy(make(), model())
    if kind in ("drn", "drn.gz", "tra", "csv", "parquet", "rddl"):
        with tempfile.TemporaryDirectory() as folder:
            for files, _ in originals(kind, pathlib.Path(folder)):
                attempt(kind, files, "", pathlib.Path(folder))
    if kind == "options":
        for number in range(40):
            with contextlib.suppress(Nonsense):
                attempt_options(number)


def run(kind: str, number: int, sound: list[tuple[Files, str]], folder: pathlib.Path) -> str:
    """One trial."""
    if kind == "options":
        os.chdir(folder)
        return attempt_options(number)
    return attempt(kind, *damaged(kind, number, sound), folder)
