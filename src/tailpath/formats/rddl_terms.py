"""Expressions of RDDL as laws: what they may be worth, and how probably, exactly.

A *term* knows which fluents it depends on, and gives for their values a law: pairs (value,
probability) in rationals. Objects are put in for variables and sums over them written out as terms
are made; what is known then, such as every non-fluent, is worked out at once, so that a term keeps
only what can change. Draws (`Bernoulli`, `Discrete`) are branches of a law, and nothing is sampled.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from tailpath.errors import FormatError
from tailpath.model.cost_units import as_fraction

Law = tuple[tuple[Any, Any], ...]
Fluents = Mapping[str, Any]
_OPEN = object()


@dataclass(frozen=True)
class Term:
    """`law(fluents)` of an expression that depends on the fluents in `scope`; its `value`, where it
    is known."""

    scope: frozenset[str]
    law: Callable[[Fluents], Law]
    value: Any = _OPEN

    @property
    def known(self) -> bool:
        return self.value is not _OPEN


def known(value: Any) -> Term:
    """The term of a constant."""
    law = ((value, 1),)
    return Term(frozenset(), lambda fluents: law, value)


def scope_of(terms: Iterable[Term]) -> frozenset[str]:
    return frozenset().union(*(term.scope for term in terms))


def added_up(pairs: Iterable[tuple[Any, Any]]) -> Law:
    """A law with every value once, and none that is impossible."""
    found: dict[Any, Any] = {}
    for value, probability in pairs:
        if probability:
            found[value] = found.get(value, 0) + probability
    return tuple(found.items())


def applied(function: Callable[..., Any], terms: Sequence[Term]) -> Term:
    """A function of independent terms."""
    if all(term.known for term in terms):
        return known(function(*(term.value for term in terms)))

    def law(fluents: Fluents) -> Law:
        laws = [term.law(fluents) for term in terms]
        if all(len(each) == 1 for each in laws):
            return ((function(*(each[0][0] for each in laws)), 1),)
        branches = product(*laws)
        return added_up(
            (function(*(value for value, _ in way)), math.prod(p for _, p in way))
            for way in branches
        )

    return Term(scope_of(terms), law)


def every(terms: Iterable[Term], wanted: bool) -> Term:
    """Whether all are true (`wanted`), or whether any is (not `wanted`): the first that is not as
    wanted decides."""
    open_terms = []
    for term in terms:
        if not term.known:
            open_terms.append(term)
        elif bool(term.value) is not wanted:
            return known(not wanted)

    def law(fluents: Fluents) -> Law:
        goes_on: Any = 1
        for term in open_terms:
            goes_on *= sum(p for value, p in term.law(fluents) if bool(value) is wanted)
            if not goes_on:
                return ((not wanted, 1),)
        return added_up([(wanted, goes_on), (not wanted, 1 - goes_on)])

    return Term(scope_of(open_terms), law) if open_terms else known(wanted)


def chosen(condition: Term, then: Callable[[], Term], otherwise: Callable[[], Term]) -> Term:
    """If, then, else; what is never taken is not looked at."""
    if condition.known:
        return then() if condition.value else otherwise()
    ways = then(), otherwise()

    def law(fluents: Fluents) -> Law:
        found = condition.law(fluents)
        if len(found) == 1:
            return ways[0 if found[0][0] else 1].law(fluents)
        return added_up(
            (value, probability * share)
            for holds, probability in found
            for value, share in ways[0 if holds else 1].law(fluents)
        )

    return Term(scope_of((condition, *ways)), law)


def drawn(probabilities: Mapping[Any, Term], location: str, *, scaled: bool) -> Term:
    """A draw among values, each with the term of its probability, or of its weight (`scaled`)."""
    terms = tuple(probabilities.values())

    def law(fluents: Fluents) -> Law:
        branches = []
        for way in product(*(term.law(fluents) for term in terms)):
            weight = [value for value, _ in way]
            total = sum(weight)
            if min(weight) < 0 or not total or (not scaled and abs(total - 1) > 1e-9):
                text = ", ".join(f"{float(each):g}" for each in weight)
                raise FormatError(f"{location}: {text} are not probabilities")
            probability = math.prod(share for _, share in way)
            branches += [
                (value, probability * Fraction(each) / total)
                for value, each in zip(probabilities, weight)
            ]
        return added_up(branches)

    return Term(scope_of(terms), law)


def _ratio(left: Any, right: Any) -> Any:
    return Fraction(left) / right


def _power(base: Any, exponent: Any) -> Any:
    integral = Fraction(exponent).denominator == 1
    return (
        Fraction(base) ** int(exponent) if integral else as_fraction(float(base) ** float(exponent))
    )


def _rounded(function: Callable[[float], float]) -> Callable[[Any], Fraction]:
    return lambda value: as_fraction(function(float(value)))


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _ratio,
    "==": operator.eq,
    "~=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": lambda left, right: bool(left) is bool(right),
    "=>": lambda left, right: not left or bool(right),
    "min": min,
    "max": max,
    "div": operator.floordiv,
    "mod": operator.mod,
    "fmod": operator.mod,
    "pow": _power,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "~": operator.not_,
    "abs": abs,
    "sgn": lambda value: (value > 0) - (value < 0),
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": _rounded(math.exp),
    "ln": _rounded(math.log),
    "sqrt": _rounded(math.sqrt),
}


OF_MANY: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": sum,
    "prod": math.prod,
    "avg": lambda values: Fraction(sum(values)) / len(values),
    "minimum": min,
    "maximum": max,
}


def key_of(name: str, objects: Sequence[str]) -> str:
    """How a fluent is written: `robot-at(x1,y2)`, with a prime for its next value."""
    plain = name.rstrip("'")
    return plain + (f"({','.join(objects)})" if objects else "") + name[len(plain) :]


@dataclass
class Ground:
    """What terms are made from: objects by type, the non-fluents, names of all variables."""

    objects: Mapping[str, Sequence[str]]
    constants: Mapping[str, Any]
    variables: frozenset[str]
    location: str = field(default="")

    def term(self, expression: Any, bound: Mapping[str, str]) -> Term:
        """The term of a parsed expression, with objects for its variables."""
        kind, name = expression.etype
        make = getattr(self, f"_{kind}", None)
        if make is None:
            raise FormatError(f"{self.location}: {name} cannot be enumerated")
        found: Term = make(name, expression.args, bound)
        return found

    def all_of(self, types: Sequence[str] | None) -> Iterable[tuple[str, ...]]:
        """Every way to put objects in for parameters of these types."""
        return product(*(self.objects[each] for each in types or ()))

    def _constant(self, name: str, value: Any, bound: Mapping[str, str]) -> Term:
        if isinstance(value, str):
            raise FormatError(f"{self.location}: {value} is not a number")
        return known(value if isinstance(value, bool) else as_fraction(value))

    def _pvar(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        if name in bound:
            return known(bound[name])
        if name.rstrip("'") not in self.variables:
            return known(name.lstrip("@"))
        parts = [self._object(each, bound) for each in args[1] or ()]
        key = key_of(name, parts)
        if key in self.constants:
            return known(self.constants[key])
        return Term(frozenset([key]), lambda fluents: ((fluents[key], 1),))

    def _object(self, given: Any, bound: Mapping[str, str]) -> str:
        if isinstance(given, str):
            return bound.get(given, given.lstrip("@"))
        inner = self.term(given, bound)
        if not inner.known:
            raise FormatError(f"{self.location}: a fluent as the argument of a fluent")
        return str(inner.value)

    def _arithmetic(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        terms = [self.term(each, bound) for each in args]
        if len(terms) == 1:
            return applied(UNARY[name], terms)
        made = terms[0]
        for term in terms[1:]:
            made = applied(BINARY[name], [made, term])
        return made

    def _boolean(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        if name in ("^", "&", "|"):
            return every((self.term(each, bound) for each in args), name != "|")
        return self._arithmetic(name, args, bound)

    _relational = _arithmetic

    def _func(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        if name not in (UNARY if len(args) == 1 else BINARY):
            raise FormatError(f"{self.location}: the function {name} is not known")
        return self._arithmetic(name, args, bound)

    def _control(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        if name != "if":
            raise FormatError(f"{self.location}: {name} cannot be enumerated")
        condition, then, otherwise = args
        return chosen(
            self.term(condition, bound),
            lambda: self.term(then, bound),
            lambda: self.term(otherwise, bound),
        )

    def _aggregation(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        *typed, inner = args
        names, types = zip(*(each[1] for each in typed))
        terms = (self.term(inner, {**bound, **dict(zip(names, way))}) for way in self.all_of(types))
        if name in ("forall", "exists"):
            return every(terms, name == "forall")
        listed = list(terms)
        if name not in OF_MANY:
            raise FormatError(f"{self.location}: {name} cannot be enumerated")
        return applied(lambda *values: OF_MANY[name](values), listed)

    def _randomvar(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        if name in ("KronDelta", "DiracDelta"):
            return self.term(args[0], bound)
        if name == "Bernoulli":
            return self._coin(self.term(args[0], bound))
        if name in ("Discrete", "UnnormDiscrete"):
            cases = {value.lstrip("@"): self.term(p, bound) for _, (value, p) in args[1:]}
            return drawn(cases, self.location, scaled=name == "UnnormDiscrete")
        able = "Bernoulli, Discrete, KronDelta and DiracDelta can"
        raise FormatError(f"{self.location}: draws of {name} cannot be enumerated; {able}")

    def _coin(self, probability: Term) -> Term:
        """A draw of true; its probability may depend on fluents, and may itself be drawn."""
        location = self.location

        def law(fluents: Fluents) -> Law:
            p = sum(value * share for value, share in probability.law(fluents))
            if not 0 <= p <= 1:
                raise FormatError(f"{location}: {float(p):g} is not a probability")
            return added_up([(True, p), (False, 1 - p)])

        decided = probability.known and probability.value in (0, 1)
        return known(bool(probability.value)) if decided else Term(probability.scope, law)
