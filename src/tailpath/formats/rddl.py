"""RDDL, the language of the planning competitions: `rddl:DOMAIN/INSTANCE`, or files of one's own.
`docs/rddl.md` says what becomes of what.

pyRDDLGym parses the files, of which rddlrepository has many; neither is let write beside its own
files, or greet. All states that can be reached are enumerated, with probabilities in rationals
(`rddl_terms.py`).
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain, combinations
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

from tailpath.errors import FormatError
from tailpath.formats.rddl_terms import Fluents, Ground, Law, Term, key_of
from tailpath.formats.registry import Reading
from tailpath.model.cost_units import as_fraction
from tailpath.model.endings import within
from tailpath.model.ssp import SSP
from tailpath.registers import folder_of, module_of
from tailpath.texts import count as counted
from tailpath.texts import did_you_mean

#: Outcomes, and joint actions, beyond which a problem is refused.
MAX_OUTCOMES, MAX_ACTIONS = 1_000_000, 10_000
NOOP, DONE = "noop", "done"

State = tuple[Any, ...]
#: State, action, next state, probability, reward.
GroundRow = tuple[State, str, State, Any, Any]


def read(source: str, reading: Reading) -> SSP:
    location = f"rddl:{source}"
    problem = _Problem.of(parsed(*files_of(source, location), location), location)
    rows, ended = _explored(problem, location)
    horizon = _horizon(reading.constants, problem.horizon, location)
    return _model(problem, rows, ended, horizon, location)


def _horizon(constants: Mapping[str, Any], given: int, location: str) -> int | None:
    for name in constants.keys() - {"horizon"}:
        raise FormatError(f"{location}: the only constant is horizon, not {name}")
    text = str(constants.get("horizon", given))
    if text == "none":
        return None
    if not text.isdigit() or int(text) < 1:
        what = "a whole number from 1 on, or none"
        raise FormatError(f"{location}: the horizon is {what}, not {text!r}")
    return int(text)


# ---------------------------------------------------------------------- the problem, in terms


class _Problem(NamedTuple):
    """A problem with objects put in: fluents by name, and the terms of what happens to them."""

    start: dict[str, Any]
    actions: dict[str, tuple[str, ...]]
    happens: dict[str, Term]
    reward: Term
    allowed: tuple[Term, ...]
    ended: tuple[Term, ...]
    horizon: int
    discount: Fraction
    notes: tuple[str, ...]

    @classmethod
    def of(cls, tree: Any, location: str) -> _Problem:
        domain, instance = tree.domain, tree.instance
        ground, fluents = _ground(tree, location)
        if fluents["observ-fluent"]:
            raise FormatError(f"{location}: its state is only observed in part (a POMDP)")
        start = fluents["state-fluent"]
        for (name, objects), value in getattr(instance, "init_state", ()):
            start[key_of(name, objects or ())] = _value(value)
        happens = {}
        for cpf in domain.cpfs[1]:
            name, variables = cpf.pvar[1]
            variable = next(each for each in domain.pvariables if each.name == name.rstrip("'"))
            for objects in ground.all_of(variable.param_types):
                ground.location = f"{location}: {key_of(name, objects)}"
                happens[key_of(name, objects)] = ground.term(
                    cpf.expr, dict(zip(variables or (), objects))
                )
        ground.location = f"{location}: the reward"
        reward = ground.term(domain.reward, {})
        ground.location = f"{location}: a condition"
        allowed = tuple(ground.term(each, {}) for each in domain.preconds)
        ended = tuple(ground.term(each, {}) for each in domain.terminals)
        most = getattr(instance, "max_nondef_actions", "pos-inf")
        return cls(
            start,
            _joint_actions(domain, fluents["action-fluent"], most, location),
            _ordered(happens, location),
            reward,
            allowed,
            ended,
            int(instance.horizon),
            as_fraction(instance.discount),
            ("state-action-constraints are not looked at",) if domain.constraints else (),
        )


def _ground(tree: Any, location: str) -> tuple[Ground, dict[str, dict[str, Any]]]:
    """What terms are made from, and the fluents of each kind with their defaults."""
    objects = {name: list(members) for name, members in filter(None, tree.non_fluents.objects)}
    for name, members in tree.domain.types:
        if members != "object":
            objects[name] = [member.lstrip("@") for member in members]
    variables = tree.domain.pvariables
    kinds = (
        "state-fluent",
        "action-fluent",
        "observ-fluent",
        "non-fluent",
        "interm-fluent",
        "derived-fluent",
    )
    fluents: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    ground = Ground(
        objects, fluents["non-fluent"], frozenset(each.name for each in variables), location
    )
    for variable in variables:
        for way in ground.all_of(variable.param_types):
            fluents[variable.fluent_type][key_of(variable.name, way)] = _value(variable.default)
    for (name, way), value in getattr(tree.non_fluents, "init_non_fluent", ()):
        fluents["non-fluent"][key_of(name, way or ())] = _value(value)
    return ground, fluents


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return value.lstrip("@")
    return value if isinstance(value, bool) or value is None else as_fraction(value)


def _joint_actions(
    domain: Any, fluents: Mapping[str, Any], most: Any, location: str
) -> dict[str, tuple[str, ...]]:
    """The sets of action fluents that may be true together, by name."""
    for each in domain.pvariables:
        if each.fluent_type == "action-fluent" and (each.range != "bool" or each.default):
            what = "is not of the kind bool, false by default"
            raise FormatError(f"{location}: the action {each.name} {what}")
    many = len(fluents) if most == "pos-inf" else min(int(most), len(fluents))
    count = sum(comb(len(fluents), size) for size in range(many + 1))
    if count > MAX_ACTIONS:
        raise FormatError(f"{location}: {count} joint actions are more than {MAX_ACTIONS}")
    sets = chain.from_iterable(combinations(fluents, size) for size in range(many + 1))
    return {" & ".join(each) or NOOP: each for each in sets}


def _ordered(happens: dict[str, Term], location: str) -> dict[str, Term]:
    """The terms in an order in which each finds what it depends on."""
    sorter = TopologicalSorter({key: term.scope & happens.keys() for key, term in happens.items()})
    try:
        return {key: happens[key] for key in sorter.static_order()}
    except CycleError as error:
        raise FormatError(f"{location}: {' depends on '.join(error.args[1])}") from None


# ---------------------------------------------------------------------- all states


class _CachedTerm:
    """A term with a memory: the law for each combination of what it depends on. It is `alone` if
    that is no other fluent that changes in the same step."""

    def __init__(self, term: Term, others: Iterable[str] = ()) -> None:
        self.term, self.scope = term, tuple(sorted(term.scope))
        self.alone = term.scope.isdisjoint(others)
        self.laws: dict[State, Law] = {}

    def __call__(self, fluents: Fluents) -> Law:
        key = tuple([fluents[name] for name in self.scope])
        if key not in self.laws:
            self.laws[key] = self.term.law(fluents)
        return self.laws[key]

    def value(self, fluents: Fluents, location: str) -> Any:
        law = self(fluents)
        if len(law) > 1:
            raise FormatError(f"{location} is drawn at random, which cannot be read")
        return law[0][0]


def _explored(problem: _Problem, location: str) -> tuple[list[GroundRow], set[State]]:
    """The outcomes of all states that can be reached, and the states in which runs have ended."""
    names, first = tuple(problem.start), tuple(problem.start.values())
    actions = {name: dict.fromkeys(each, True) for name, each in problem.actions.items()}
    none = dict.fromkeys(chain.from_iterable(problem.actions.values()), False)
    happens = [(key, _CachedTerm(term, problem.happens)) for key, term in problem.happens.items()]
    allowed, over = (
        [_CachedTerm(term) for term in terms] for terms in (problem.allowed, problem.ended)
    )
    reward, primed = _CachedTerm(problem.reward), [f"{name}'" for name in names]
    found, waiting = {first}, [first]
    rows: list[GroundRow] = []
    ended: set[State] = set()
    for state in waiting:
        fluents = {**dict(zip(names, state)), **none}
        if any(term.value(fluents, f"{location}: a termination") for term in over):
            ended.add(state)
            continue
        count = len(rows)
        for action, chosen in actions.items():
            here = {**fluents, **chosen}
            if not all(term.value(here, f"{location}: a precondition") for term in allowed):
                continue
            for probability, after in _branches(happens, here):
                target = tuple([after[name] for name in primed])
                gain = reward.value(after, f"{location}: the reward")
                rows.append((state, action, target, probability, gain))
                if target not in found:
                    found.add(target)
                    waiting.append(target)
        if len(rows) == count:
            raise FormatError(
                f"{location}: no action is allowed in the state {_name(names, state)}"
            )
        if len(rows) > MAX_OUTCOMES:
            so_far = f"the first {len(found)} states that can be reached have"
            raise FormatError(f"{location}: {so_far} more than {MAX_OUTCOMES} outcomes")
    return rows, ended


def _branches(
    happens: Sequence[tuple[str, _CachedTerm]], fluents: dict[str, Any]
) -> Iterator[tuple[Any, Fluents]]:
    """What may come of a state and an action: the probability and all fluents, new and old."""
    branches: list[tuple[Any, dict[str, Any]]] = [(1, fluents)]
    drawn = []
    for key, law in happens:
        if law.alone:
            ways = law(fluents)
            fluents[key] = ways[0][0]
            if len(ways) > 1:
                drawn.append((key, ways))
    for key, ways in drawn:
        branches = [
            (p * share, {**after, key: value}) for p, after in branches for value, share in ways
        ]
    for key, law in happens:
        if not law.alone:
            branches = [
                (p * share, {**after, key: value})
                for p, after in branches
                for value, share in law(after)
            ]
    yield from branches


def _name(names: Sequence[str], state: State) -> str:
    """The fluents that are true, and the values of those that are no truths."""
    parts = [
        name if value is True else f"{name}={value}"
        for name, value in zip(names, state)
        if value is not False
    ]
    return " ".join(parts) or "nothing"


# ---------------------------------------------------------------------- the model


def _model(
    problem: _Problem, rows: list[GroundRow], ended: set[State], horizon: int | None, location: str
) -> SSP:
    first, names = tuple(problem.start.values()), tuple(problem.start)
    done = ended | _settled(rows)
    if first in done:
        raise FormatError(f"{location}: no reward but 0 can follow, whatever is done")
    left = [row for row in rows if row[0] not in done]
    arrivals = {row[4] for row in left if row[2] in done}
    bonus = max(arrivals) if len(arrivals) == 1 and max(arrivals) > 0 else 0
    shift, notes = 0, ["costs are minus the rewards"]
    if any(row[4] > (bonus if row[2] in done else 0) for row in left):
        shift, bonus = max(row[4] for row in rows), 0
        done, left = ended, rows
        notes = [_shifted(shift, problem, horizon, bool(ended), location)]
    elif bonus:
        left_out = f"the bonus of {float(bonus):g} for arriving is left out"
        paid = "and a run that does not arrive in time pays it"
        notes.append(f"{left_out}, {paid}: the total reward is {float(bonus):g} minus the cost")
    if done - ended:
        settled = counted(len(done - ended), "state")
        notes.append(f"{DONE!r} stands for {settled} from which no reward but 0 can follow")
    called = {
        state: DONE if state in done else _name(names, state)
        for state in {row[2] for row in rows} | {first}
    }
    outcomes = (
        (called[s], action, called[t], p, shift - reward + (bonus if t in done else 0))
        for s, action, t, p, reward in left
    )
    ssp = SSP.from_outcomes(outcomes, called[first], [DONE], notes=(*notes, *problem.notes))
    return ssp if horizon is None else within(ssp, horizon, bonus, gamma=problem.discount)


def _shifted(shift: Any, problem: _Problem, horizon: int | None, ends: bool, location: str) -> str:
    if horizon is None or ends:
        what = "an end before the horizon" if ends else "no horizon"
        most = f"rewards are positive, up to {float(shift):g}"
        raise FormatError(f"{location}: {most}, and there is {what}")
    gamma = problem.discount
    total = shift * sum(gamma**step for step in range(horizon))
    costs = f"costs are {float(shift):g} minus the reward, in every step"
    return f"{costs}: the total reward is {float(total):g} minus the cost"


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
        near = did_you_mean(name, known)
        raise FormatError(f"{location}: rddlrepository has no domain {name}{near}")
    folder = known[name]
    path = folder / f"instance{instance}.rddl"
    if not path.is_file():
        stems = (file.stem.removeprefix("instance") for file in folder.glob("instance*.rddl"))
        there = ", ".join(sorted(stems, key=lambda stem: (len(stem), stem)))
        raise FormatError(f"{location}: {name} has the instances {there}, not {instance!r}")
    return folder / "domain.rddl", path


@lru_cache(maxsize=1)
def _repository() -> dict[str, Path]:
    """The folder of every domain by name. The package itself would write a list of them beside its
    files."""
    found = {}
    for path in (folder_of("rddlrepository", "rddl") / "archive").rglob("__init__.py"):
        info = re.search(r"info\s*=\s*(\{.*?\n\})", path.read_text(encoding="utf-8"), re.DOTALL)
        if info and (path.parent / "domain.rddl").is_file():
            entry = ast.literal_eval(info[1])
            name = entry["name"] + (f"_{entry['context']}" if entry.get("context") else "")
            found[name] = path.parent
    return found


def parsed(domain: Path, instance: Path, location: str) -> Any:
    parse = _parser()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what the lexer would skip
            reader = module_of("pyRDDLGym.core.parser.reader", "rddl").RDDLReader(domain, instance)
            parse.lexer._lexer.lineno = 1  # it goes on counting from file to file
            return parse.parse(reader.rddltxt)
    except Exception as error:  # the parser raises what it meets
        text = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(str(error).split()))
        raise FormatError(f"{location}: {text or type(error).__name__}") from None


@lru_cache(maxsize=1)
def _parser() -> Any:
    # pygame, which comes with the package, would greet on standard output.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parser = module_of("pyRDDLGym.core.parser.parser", "rddl").RDDLParser()
        silent = module_of("ply.yacc", "rddl").NullLogger()
        # Its tables take a second, and would be written beside its files.
        parser.build(write_tables=False, debug=False, errorlog=silent)
    return parser
