"""RDDL, the language of the planning competitions: `rddl:DOMAIN/INSTANCE`, or your own files.
`docs/rddl.md` has the rules.

pyRDDLGym parses the files, of which rddlrepository has many; neither may write beside its own
files, or print a greeting. All reachable states are enumerated, with rational probabilities
(`rddl_terms.py`).
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from tailpath import SSP, within
from tailpath.errors import FormatError
from tailpath.formats import Format
from tailpath_cases.files import folder_of
from tailpath_cases.rddl_problem import MAX_OUTCOMES, GroundProblem, State, refuse_beyond_limits
from tailpath_cases.rddl_terms import Count, errors_located

#: Limits: values of fluents in all states together, bytes of a file, pairs of state and step, and
#: their outcomes.
MAX_VALUES, MAX_TEXT = 20_000_000, 2**20
MAX_PAIRS, MAX_STEPS = 1_000_000, 10_000_000
DONE = "done"
REACHED = "in the states that can be reached; --lazy (solve_cvar_lazy) does not list them"

#: State, action, next state, probability, reward.
GroundRow = tuple[State, str, State, Any, Any]


def read(source: str, reading: Any) -> SSP:
    location = f"rddl:{source}"
    model = checked(*files_of(source, location), location)
    problem = GroundProblem(model, location)
    horizon = horizon_of(reading.constants, model.horizon, location)
    if not 0 < model.discount <= 1:
        raise FormatError(f"{location}: a discount of {model.discount} lies outside (0, 1]")
    with errors_located(location):
        rows, ended = _explored(problem)
        return _model(problem, rows, ended, horizon)


def horizon_of(constants: Mapping[str, Any], given: int, location: str) -> int | None:
    for name in constants.keys() - {"horizon"}:
        raise FormatError(f"{location}: the only constant is horizon, not {name}")
    text = str(constants.get("horizon", given))
    if text == "none":
        return None
    if not text.isdecimal() or len(text) > 18 or int(text) < 1:
        what = "a whole number of at least 1, or none"
        raise FormatError(f"{location}: the horizon must be {what}, not {text[:20]!r}")
    return int(text)


def _explored(problem: GroundProblem) -> tuple[list[GroundRow], set[State]]:
    """The outcomes of all reachable states, and the states in which runs have ended."""
    found, waiting = {problem.start: problem.start}, [problem.start]
    values = Count(MAX_VALUES, f"values of fluents {REACHED}")
    outcomes = Count(MAX_OUTCOMES, f"outcomes {REACHED}")
    rows: list[GroundRow] = []
    ended: set[State] = set()
    for state in waiting:
        if problem.ended(state):
            ended.add(state)
            continue
        for action in problem.actions(state):
            for target, probability, gain in problem.outcomes(state, action):
                outcomes()
                if target not in found:
                    values(len(target))
                    found[target] = target
                    waiting.append(target)
                rows.append((state, action, found[target], probability, gain))
    return rows, ended


# ---------------------------------------------------------------------- the model


def _model(
    problem: GroundProblem, rows: list[GroundRow], ended: set[State], horizon: int | None
) -> SSP:
    first, location = problem.start, problem.location
    done = ended | _settled(rows)
    if first in done:
        raise FormatError(f"{location}: no action can ever earn a reward other than 0")
    left = [row for row in rows if row[0] not in done]
    arrivals = {row[4] for row in left if row[2] in done}
    bonus = max(arrivals) if len(arrivals) == 1 and max(arrivals) > 0 else 0
    shift, notes = 0, ["costs are minus the rewards"]
    if any(row[4] > (bonus if row[2] in done else 0) for row in left):
        shift, bonus = max(row[4] for row in rows), 0
        done, left = ended, rows
        notes = [_shifted(shift, problem, horizon, bool(ended))]
    elif bonus:
        left_out = f"the bonus of {float(bonus):g} for arriving is left out"
        paid = "and a run that does not arrive in time pays it"
        notes.append(f"{left_out}, {paid}: the total reward is {float(bonus):g} minus the cost")
    if done - ended:
        many = len(done - ended)
        settled = f"{many} state{'' if many == 1 else 's'}"
        notes.append(f"{DONE!r} stands for {settled} from which no reward but 0 can follow")
    called = {
        state: DONE if state in done else problem.named(state)
        for state in {row[2] for row in rows} | {first}
    }
    outcomes = (
        (called[s], action, called[t], p, shift - reward + (bonus if t in done else 0))
        for s, action, t, p, reward in left
    )
    if problem.model.ast.domain.constraints:
        notes.append("state-action constraints are ignored")
    ssp = SSP.from_outcomes(outcomes, called[first], [DONE], notes=tuple(notes))
    if horizon is None:
        return ssp
    pairs = min(MAX_PAIRS, MAX_STEPS * ssp.n_states // ssp.n_outcomes)
    return within(ssp, horizon, bonus, gamma=problem.model.discount, max_pairs=pairs)


def _shifted(shift: Any, problem: GroundProblem, horizon: int | None, ends: bool) -> str:
    if horizon is None or ends:
        what = "an end before the horizon" if ends else "no horizon"
        raise ValueError(f"rewards are positive, up to {float(shift):g}, and there is {what}")
    gamma = float(problem.model.discount)
    steps = horizon if gamma == 1 else (1 - gamma**horizon) / (1 - gamma)
    costs = f"costs are {float(shift):g} minus the reward, in every step"
    return f"{costs}: the total reward is {float(shift) * steps:g} minus the cost"


def _settled(rows: list[GroundRow]) -> set[State]:
    into: dict[State, set[State]] = {}
    for state, _, target, _, _ in rows:
        into.setdefault(target, set()).add(state)
    rewarding = [state for state, _, _, _, reward in rows if reward]
    seen = set(rewarding)
    while rewarding:
        for state in into.get(rewarding.pop(), ()):
            if state not in seen:
                seen.add(state)
                rewarding.append(state)
    return {row[0] for row in rows} - seen


# ---------------------------------------------------------------------- files


def files_of(source: str, location: str) -> tuple[Path, Path]:
    if source.endswith(".rddl"):
        paths = [Path(part) for part in source.split(",")]
        if len(paths) != 2:
            raise FormatError(f"{location}: write domain.rddl,instance.rddl")
        for path in paths:
            if not path.is_file():
                raise FormatError(f"{path}: no such file")
        return paths[0], paths[1]
    name, slash, instance = source.rpartition("/")
    if not slash:
        example = "rddl:Navigation_MDP_ippc2011/1"
        raise FormatError(f"{location}: write a domain and an instance, e.g. {example}")
    known = _repository()
    if name not in known:
        near = get_close_matches(name, known, 1)
        end = f"; did you mean {near[0]!r}?" if near else ""
        raise FormatError(f"{location}: rddlrepository has no domain {name}{end}")
    folder = known[name]
    path = folder / f"instance{instance}.rddl"
    if not path.is_file():
        stems = (file.stem.removeprefix("instance") for file in folder.glob("instance*.rddl"))
        there = ", ".join(sorted(stems, key=lambda stem: (len(stem), stem)))
        raise FormatError(f"{location}: {name} has no instance {instance!r}; choose among: {there}")
    return folder / "domain.rddl", path


@lru_cache(maxsize=1)
def _repository() -> dict[str, Path]:
    """The folder of every domain by name. The package itself would write such a list beside its
    files."""
    found = {}
    for path in (folder_of("rddlrepository") / "archive").rglob("__init__.py"):
        info = re.search(r"info\s*=\s*(\{.*?\n\})", path.read_text(encoding="utf-8"), re.DOTALL)
        if info and (path.parent / "domain.rddl").is_file():
            entry = ast.literal_eval(info[1])
            name = entry["name"] + (f"_{entry['context']}" if entry.get("context") else "")
            found[name] = path.parent
    return found


def checked(domain: Path, instance: Path, location: str) -> Any:
    """The program as pyRDDLGym's model; its refusals become ours."""
    text = "\n".join(_text(path) for path in (domain, instance)) + "\n"
    parser = _parser()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the lexer would only warn of what it skips
            parser.lexer._lexer.lineno = 1  # it does not start again with a new file
            tree = parser.parse(text)
            warnings.simplefilter("ignore")
            refuse_beyond_limits(tree, location)
            from pyRDDLGym.core.compiler.model import RDDLLiftedModel
            from pyRDDLGym.core.simulator import RDDLSimulator

            model = RDDLLiftedModel(tree)
            RDDLSimulator(model)
            return model
    except FormatError:
        raise
    except Exception as error:  # pyRDDLGym raises errors of any type
        words = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(str(error).split())).strip()
        what = words[:300] or type(error).__name__
        raise FormatError(f"{location}: refused by pyRDDLGym: {what}") from None


def _text(path: Path) -> str:
    """A file without its comments."""
    with path.open("rb") as file:
        data = file.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise FormatError(f"{path}: more than {MAX_TEXT} bytes")
    lines = data.decode(errors="replace").splitlines()
    return "\n".join(line.partition("//")[0] for line in lines)


@lru_cache(maxsize=1)
def _parser() -> Any:
    # pygame, which comes with the package, would print a greeting.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ply.yacc import NullLogger
        from pyRDDLGym.core.parser.parser import RDDLParser

        parser = RDDLParser()
        # Its tables take a second, and would be written beside its files.
        parser.build(write_tables=False, debug=False, errorlog=NullLogger())
    return parser


FORMAT = Format(
    "RDDL",
    read,
    scheme="rddl",
    options=("constants",),
    implicit="tailpath_cases.rddl_functions:functions",
)
