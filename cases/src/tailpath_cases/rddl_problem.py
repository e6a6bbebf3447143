"""A grounded RDDL problem: the outcomes of each state, one state at a time.

pyRDDLGym has checked it before. Fluents, terms, branches of outcomes and the work they take are
counted, and limited, before they are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, combinations, product
from typing import Any

from tailpath.errors import FormatError
from tailpath_cases.rddl_terms import (
    TROUBLES,
    Count,
    Fluents,
    Ground,
    Law,
    Term,
    bounded,
    errors_located,
    exact,
    key_of,
    refusal,
    truth,
    whole,
)

#: Limits: outcomes, joint actions, fluents, grounded terms, and evaluations of terms.
MAX_OUTCOMES, MAX_ACTIONS = 1_000_000, 10_000
MAX_FLUENTS, MAX_TERMS = 10_000, 500_000
MAX_WORK = 30_000_000
#: Values that a rule remembers.
MAX_KEPT = 1_000_000
NOOP = "noop"

State = tuple[Any, ...]
#: Next state, probability, reward.
GroundOutcome = tuple[State, Any, Any]


def refuse_beyond_limits(tree: Any, location: str) -> None:
    """Count the fluents and terms that grounding the parsed program would make."""
    if any(each.is_observ_fluent() for each in tree.domain.pvariables):
        raise FormatError(f"{location}: POMDPs are not supported")
    objects = {name: len(members) for name, members in filter(None, tree.non_fluents.objects)}
    objects |= {name: len(each) for name, each in tree.domain.types if each != "object"}
    many = {
        each.name: math.prod(objects.get(kind, 1) for kind in each.param_types or ())
        for each in tree.domain.pvariables
    }
    with errors_located(location):
        fluents, terms = Count(MAX_FLUENTS, "fluents"), Count(MAX_TERMS, "terms")
        for each in tree.domain.pvariables:
            (terms if each.is_non_fluent() else fluents)(many[each.name])
        for cpf in tree.domain.cpfs[1]:
            _count(cpf.expr, many.get(cpf.pvar[1][0].rstrip("'"), 1), objects, terms)
        domain = tree.domain
        for each in (domain.reward, *domain.preconds, *domain.terminals, *domain.invariants):
            _count(each, 1, objects, terms)


def _count(part: Any, many: int, objects: Mapping[str, int], terms: Count) -> None:
    if isinstance(part, (tuple, list)):
        for each in part:
            _count(each, many, objects, terms)
    elif hasattr(part, "etype"):
        terms(many)
        if part.etype[0] == "aggregation":
            many *= math.prod(objects.get(kind, 1) for _, (_, kind) in part.args[:-1])
        _count(part.args, many, objects, terms)


class Rule:
    """A fluent, the reward or a condition: a term of a kind, and a cache of its laws. It is `alone`
    if it depends on no other fluent that changes in the same step."""

    def __init__(self, term: Term, kind: Any, work: Count, location: str) -> None:
        self.term, self.kind = term, kind
        self.work, self.location = work, location
        self.scope, self.alone = tuple(sorted(term.scope)), True
        self.laws: dict[State, Law] = {}

    def __call__(self, fluents: Fluents) -> Law:
        try:
            self.work(1 + len(self.scope) // 8)
            key = tuple([fluents[name] for name in self.scope])
            found = self.laws.get(key)
            if found is None:
                if len(self.laws) * (1 + len(self.scope)) > MAX_KEPT:
                    self.laws.clear()
                law = self.term.law(fluents)
                found = self.laws[key] = tuple(
                    [(value_of_kind(value, self.kind), p) for value, p in law]
                )
        except TROUBLES as error:
            raise refusal(error, self.location) from None
        return found

    def value(self, fluents: Fluents) -> Any:
        law = self(fluents)
        if len(law) > 1:
            raise FormatError(f"{self.location} is drawn at random, which is not supported")
        return law[0][0]


def value_of_kind(value: Any, kind: Any) -> Any:
    """A value of a kind: bool, int, real, or one of the objects listed."""
    if kind == "bool":
        return truth(value)
    if kind in ("int", "real"):
        return whole(value) if kind == "int" else bounded(value)
    if value not in kind:
        raise ValueError(f"{value} is not one of {', '.join(kind)}")
    return value


class GroundProblem:
    """The problem one state at a time: runs begin in `start`; `ended(state)`, `actions(state)` and
    `outcomes(state, action)` are computed on demand. States are tuples of the values of the state
    fluents, in the order of `names`.
    """

    def __init__(self, model: Any, location: str) -> None:
        self.model, self.location = model, location
        self.work = Count(MAX_WORK, "evaluations of terms")
        self.objects = model.type_to_objects
        constants = self._values(model.non_fluents)
        names = frozenset(name.rstrip("'") for name in model.variable_types)
        self.ground = Ground(self.objects, constants, names, self.work)
        start = self._values(model.state_fluents)
        self.names, self.start = tuple(start), tuple(start.values())
        self.joint_actions = self._joint_actions()
        self.none = dict.fromkeys(chain.from_iterable(self.joint_actions.values()), False)
        self.reward = self._rule(model.reward, "real", "the reward")
        self.allowed = self._conditions(model.preconditions, "a precondition")
        self.over = self._conditions(model.terminations, "a termination")
        self.invariants = self._conditions(model.invariants, "an invariant")
        self.happens = self._ordered_rules()

    def _values(self, fluents: Mapping[str, Any]) -> dict[str, Any]:
        """The values of fluents, by name with objects."""
        found = {}
        for name, values in fluents.items():
            types = self.model.variable_params[name]
            for way, value in zip(self._ways(types), values if types else [values]):
                key = key_of(name, way)
                with errors_located(f"{self.location}: {key}"):
                    known = value if isinstance(value, (str, bool)) else exact(value)
                    found[key] = value_of_kind(known, self._kind(name))
        return found

    def _ways(self, types: Sequence[str]) -> Iterable[tuple[str, ...]]:
        return product(*(self.objects[each] for each in types))

    def _kind(self, name: str) -> Any:
        kind = self.model.variable_ranges[name]
        return self.objects.get(kind, kind)

    def _rule(self, expression: Any, kind: Any, what: str, bound: Any = ()) -> Rule:
        location = f"{self.location}: {what}"
        with errors_located(location):
            return Rule(self.ground.term(expression, dict(bound)), kind, self.work, location)

    def _conditions(self, expressions: Iterable[Any], what: str) -> list[Rule]:
        return [self._rule(each, "bool", what) for each in expressions]

    def _ordered_rules(self) -> list[tuple[str, Rule]]:
        """The rules of fluents, each after those it depends on."""
        rules = {}
        for name, (typed, expression) in self.model.cpfs.items():
            variables = [variable for variable, _ in typed]
            for way in self._ways([kind for _, kind in typed]):
                key = key_of(name, way)
                bound = zip(variables, way)
                rules[key] = self._rule(expression, self._kind(name), key, bound)
        depends = {key: rule.term.scope & rules.keys() for key, rule in rules.items()}
        for key, rule in rules.items():
            rule.alone = not depends[key]
        try:
            return [(key, rules[key]) for key in TopologicalSorter(depends).static_order()]
        except CycleError as error:
            raise FormatError(f"{self.location}: {' depends on '.join(error.args[1])}") from None

    def _joint_actions(self) -> dict[str, tuple[str, ...]]:
        """The sets of action fluents that may be true together, by name."""
        fluents: list[str] = []
        for name in self.model.action_fluents:
            if self._kind(name) != "bool" or self.model.variable_defaults[name]:
                what = "must be of type bool and false by default"
                raise FormatError(f"{self.location}: the action {name} {what}")
            ways = self._ways(self.model.variable_params[name])
            fluents += [key_of(name, way) for way in ways]
        most = min(self.model.max_allowed_actions, len(fluents))
        count = Count(MAX_ACTIONS, "joint actions")
        with errors_located(self.location):
            for size in range(most + 1):
                count(math.comb(len(fluents), size))
        sets = chain.from_iterable(combinations(fluents, size) for size in range(most + 1))
        return {" & ".join(each) or NOOP: each for each in sets}

    # ------------------------------------------------------------------ what happens

    def ended(self, state: State) -> bool:
        """Whether a run is over; a state that breaks an invariant is refused."""
        fluents = self._fluents(state, ())
        if not all(rule.value(fluents) for rule in self.invariants):
            raise FormatError(f"{self.location}: the state {self.named(state)} breaks an invariant")
        return any(rule.value(fluents) for rule in self.over)

    def actions(self, state: State) -> list[str]:
        """The actions that are allowed in a state; a state without any is refused."""
        found = []
        for action, chosen in self.joint_actions.items():
            with errors_located(self.location):
                self.work(1 + len(self.names) // 8)
            fluents = self._fluents(state, chosen)
            if all(rule.value(fluents) for rule in self.allowed):
                found.append(action)
        if not found:
            name = self.named(state)
            raise FormatError(f"{self.location}: no action is allowed in the state {name}")
        return found

    def outcomes(self, state: State, action: str) -> Iterator[GroundOutcome]:
        """The outcomes of an action: target, probability, reward. Several may be equal: there is
        one for each branch of the draws.
        """
        fluents = self._fluents(state, self.joint_actions[action])
        for probability in self._branches(fluents):
            target = tuple([fluents[f"{name}'"] for name in self.names])
            yield target, probability, self.reward.value(fluents)

    def _fluents(self, state: State, chosen: Iterable[str]) -> dict[str, Any]:
        """The values of the fluents of a state, and of actions."""
        return {**dict(zip(self.names, state)), **self.none, **dict.fromkeys(chosen, True)}

    def _branches(self, fluents: dict[str, Any]) -> Iterator[Any]:
        """The probability of each branch, while its new values are among the fluents: depth first,
        one value for each rule that is drawn, or depends on one that is."""
        rules, branches = [], 1
        for key, rule in self.happens:
            law = rule(fluents) if rule.alone else ()
            if len(law) == 1:
                fluents[key] = law[0][0]
            else:
                rules.append((key, rule))
                branches *= len(law) or 1
        with errors_located(self.location):
            Count(MAX_OUTCOMES, "outcomes of an action")(branches)
            if not rules:
                yield 1
            shares, ways = [1], [iter(rule(fluents)) for _, rule in rules[:1]]
            while ways:
                value, p = next(ways[-1], (None, None))
                if p is None:
                    ways.pop()
                    shares.pop()
                    continue
                fluents[rules[len(ways) - 1][0]], share = value, bounded(shares[-1] * p)
                if len(ways) == len(rules):
                    yield share
                else:
                    shares.append(share)
                    ways.append(iter(rules[len(ways)][1](fluents)))

    def named(self, state: State) -> str:
        """The fluents that are true, and the values of those that are not boolean."""
        parts = [
            name if value is True else f"{name}={value}"
            for name, value in zip(self.names, state)
            if value is not False
        ]
        return " ".join(parts) or "nothing"
