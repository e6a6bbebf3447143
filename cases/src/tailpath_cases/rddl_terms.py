"""RDDL expressions as laws: their possible values, with exact probabilities.

A *term* knows which fluents it depends on, and maps their values to a law: pairs (value,
probability) in rationals. Making terms grounds them: variables become objects, sums over objects
are written out, and known parts, such as every non-fluent, are evaluated at once, so that a term
keeps only what can change. Draws (`Bernoulli`, `Discrete`) are branches of a law, and nothing is
sampled.

Pairs are counted before they are made (`Count`), and no number has more than `MAX_BITS` binary
digits. An expression that cannot be evaluated raises a `ValueError` or an `ArithmeticError`, to
which `errors_located` adds the place.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from tailpath.errors import FormatError

MAX_BITS = 2_048
Law = tuple[tuple[Any, Any], ...]
Fluents = Mapping[str, Any]
_OPEN = object()


class Count:
    """A counter; more than the limit is refused."""

    def __init__(self, limit: float, what: str) -> None:
        self.limit, self.what = limit, what
        self.made = 0

    def __call__(self, many: int = 1) -> None:
        self.made += many
        if self.made > self.limit:
            raise ValueError(f"more than {self.limit} {self.what}")


TROUBLES = ArithmeticError, ValueError, KeyError, RecursionError


def refusal(error: Exception, location: str) -> FormatError:
    """The error for an expression that cannot be evaluated, with its place."""
    if isinstance(error, ZeroDivisionError):
        return FormatError(f"{location}: a division by 0")
    if isinstance(error, KeyError):
        return FormatError(f"{location}: {error.args[0]} has no value here")
    if isinstance(error, RecursionError):
        return FormatError(f"{location}: an expression is nested too deeply")
    return FormatError(f"{location}: {error}")


@contextlib.contextmanager
def errors_located(location: str) -> Iterator[None]:
    """Errors raised inside begin with the location."""
    try:
        yield
    except TROUBLES as error:
        raise refusal(error, location) from None


# ---------------------------------------------------------------------- values


def exact(number: Any) -> Fraction:
    """The rational that a number stands for; a float stands for the shortest decimal that prints
    it.
    """
    if isinstance(number, (float, np.floating)):
        return Fraction(repr(float(number)))
    return Fraction(int(number) if isinstance(number, np.integer) else number)


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value} is neither true nor false")
    return value


def bounded(value: Any) -> Any:
    """A number of bounded size; a truth counts as 0 or 1."""
    if isinstance(value, str):
        raise ValueError(f"{value} is not a number")
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ValueError(f"a number has more than {MAX_BITS} binary digits")
    return int(value) if isinstance(value, bool) else value


def whole(value: Any) -> int:
    if bounded(value).denominator != 1:
        raise ValueError(f"{value} is not a whole number")
    return int(value)


def sum_of(values: Iterable[Any]) -> Any:
    return reduce(BINARY["+"], values, 0)


def _power(base: Any, exponent: Any) -> Any:
    if exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if (bits - 1) * abs(exponent) > MAX_BITS:
            raise ValueError(f"a power has more than {MAX_BITS} binary digits")
        return Fraction(base) ** int(exponent)
    if base < 0:
        raise ValueError(f"{base} to the power of {exponent} is not real")
    return exact(float(base) ** float(exponent))


def _rounded(function: Callable[[float], float]) -> Callable[[Any], Fraction]:
    return lambda value: exact(function(float(value)))


def _number_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: bounded(function(*map(bounded, values)))


def _whole_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: function(*map(whole, values))


def _truth_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: function(*map(truth, values))


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: Fraction(left) / right,
    "min": min,
    "max": max,
    "fmod": operator.mod,
    "pow": _power,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **{name: _number_of(function) for name, function in ARITHMETIC.items()},
    "div": _whole_of(operator.floordiv),
    "mod": _whole_of(operator.mod),
    "==": operator.eq,
    "~=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": _truth_of(operator.is_),
    "=>": _truth_of(lambda left, right: not left or right),
    "~": _truth_of(operator.is_not),
}
NUMERIC: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "abs": abs,
    "sgn": lambda value: (value > 0) - (value < 0),
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": _rounded(math.exp),
    "ln": _rounded(math.log),
    "sqrt": _rounded(math.sqrt),
}
UNARY: dict[str, Callable[[Any], Any]] = {
    **{name: _number_of(function) for name, function in NUMERIC.items()},
    "~": _truth_of(operator.not_),
}
#: The operator between the objects, and where it begins.
OF_MANY: dict[str, tuple[str, list[int]]] = {
    "sum": ("+", [0]),
    "avg": ("+", [0]),
    "prod": ("*", [1]),
    "minimum": ("min", []),
    "maximum": ("max", []),
}


# ---------------------------------------------------------------------- terms


@dataclass(frozen=True)
class Term:
    """`law(fluents)` of an expression that depends on the fluents in `scope`; and its `value`, if
    it is constant.
    """

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


def term_of(terms: Iterable[Term], law: Callable[[Fluents], Law]) -> Term:
    """A term made of others; one that depends on nothing is evaluated now, or raises later, since
    it may never be needed.
    """
    scope = frozenset().union(*(term.scope for term in terms))
    if not scope:
        with contextlib.suppress(ArithmeticError, ValueError):
            found = law({})
            return Term(scope, lambda fluents: found, found[0][0] if len(found) == 1 else _OPEN)
    return Term(scope, law)


def added_up(pairs: Iterable[tuple[Any, Any]]) -> Law:
    """A law with every value once, and none that is impossible."""
    found: dict[Any, Any] = {}
    for value, probability in pairs:
        if probability:
            found[value] = bounded(found.get(value, 0) + probability)
    return tuple(found.items())


def key_of(name: str, objects: Sequence[str]) -> str:
    """How a fluent is written: `robot-at(x1,y2)`, with a prime for its next value."""
    plain = name.rstrip("'")
    return plain + (f"({','.join(objects)})" if objects else "") + name[len(plain) :]


@dataclass(frozen=True)
class Ground:
    """What terms are made from: objects by type, the non-fluents, the names of all variables, and a
    counter of evaluations."""

    objects: Mapping[str, Sequence[str]]
    constants: Mapping[str, Any]
    variables: frozenset[str]
    work: Count

    def term(self, expression: Any, bound: Mapping[str, str]) -> Term:
        """The term of a parsed expression, with objects for its variables."""
        kind, name = expression.etype
        make = getattr(self, f"_{kind}", None)
        if make is None:
            raise ValueError(f"{name} cannot be enumerated")
        found: Term = make(name, expression.args, bound)
        return found

    def all_of(self, types: Iterable[str]) -> Iterable[tuple[str, ...]]:
        """All tuples of objects of these types."""
        return product(*(self.objects[each] for each in types))

    def _constant(self, name: str, value: Any, bound: Mapping[str, str]) -> Term:
        return known(value if isinstance(value, bool) else bounded(exact(value)))

    def _pvar(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        if name in bound:
            return known(bound[name])
        if name.rstrip("'") not in self.variables:
            return known(name.lstrip("@"))
        key = key_of(name, [self._object(each, bound) for each in args[1] or ()])
        if key in self.constants:
            return known(self.constants[key])
        return Term(frozenset([key]), lambda fluents: ((fluents[key], 1),))

    def _object(self, given: Any, bound: Mapping[str, str]) -> str:
        if isinstance(given, str):
            return bound.get(given, given.lstrip("@"))
        inner = self.term(given, bound)
        if not inner.known:
            raise ValueError("a fluent cannot be the argument of a fluent")
        return str(inner.value)

    def _arithmetic(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        functions = UNARY if len(args) == 1 else BINARY
        if name not in functions:
            raise ValueError(f"the function {name} is not known")
        terms = [self.term(each, bound) for each in args]
        return self._mapped(UNARY[name], *terms) if len(args) == 1 else self._folded(name, terms)

    _relational = _func = _arithmetic

    def _boolean(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        if name in ("^", "&", "|"):
            return self._every((self.term(each, bound) for each in args), name != "|")
        return self._arithmetic(name, args, bound)

    def _aggregation(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        *typed, inner = args
        names, types = zip(*(each[1] for each in typed))
        terms = (self.term(inner, {**bound, **dict(zip(names, way))}) for way in self.all_of(types))
        if name in ("forall", "exists"):
            return self._every(terms, name == "forall")
        if name not in OF_MANY:
            raise ValueError(f"{name} cannot be enumerated")
        operation, begin = OF_MANY[name]
        listed = [*map(known, begin), *terms]
        if not listed:
            raise ValueError(f"the {name} over no objects")
        total = self._folded(operation, listed)
        return self._folded("/", [total, known(len(listed) - 1)]) if name == "avg" else total

    def _mapped(self, function: Callable[[Any], Any], term: Term) -> Term:
        def law(fluents: Fluents) -> Law:
            found = term.law(fluents)
            self.work(len(found))
            return added_up((function(value), share) for value, share in found)

        return term_of([term], law)

    def _folded(self, name: str, terms: Sequence[Term]) -> Term:
        """Independent terms with an operator between them, from left to right."""
        function = BINARY[name]

        def law(fluents: Fluents) -> Law:
            found = terms[0].law(fluents)
            for term in terms[1:]:
                other = term.law(fluents)
                self.work(len(found) * len(other))
                found = (
                    ((function(found[0][0], other[0][0]), 1),)
                    if len(found) == len(other) == 1
                    else added_up(
                        (function(left, right), p * q) for left, p in found for right, q in other
                    )
                )
            return found

        return term_of(terms, law)

    def _every(self, terms: Iterable[Term], wanted: bool) -> Term:
        """Whether all are true (`wanted`), or whether any is (not `wanted`): the first that is not
        as wanted decides."""
        open_terms = []
        for term in terms:
            if not term.known:
                open_terms.append(term)
            elif truth(term.value) is not wanted:
                return known(not wanted)

        def law(fluents: Fluents) -> Law:
            goes_on: Any = 1
            self.work(len(open_terms))
            for term in open_terms:
                goes_on *= sum(p for value, p in term.law(fluents) if truth(value) is wanted)
                if not bounded(goes_on):
                    return ((not wanted, 1),)
            return added_up([(wanted, goes_on), (not wanted, 1 - goes_on)])

        return term_of(open_terms, law)

    def _control(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        """If, then, else; a branch that is never taken is not evaluated."""
        if name != "if":
            raise ValueError(f"{name} cannot be enumerated")
        condition = self.term(args[0], bound)
        if condition.known:
            return self.term(args[1 if truth(condition.value) else 2], bound)
        ways = {True: self.term(args[1], bound), False: self.term(args[2], bound)}

        def law(fluents: Fluents) -> Law:
            found = condition.law(fluents)
            laws = [(p, ways[truth(holds)].law(fluents)) for holds, p in found]
            self.work(sum(len(inner) for _, inner in laws))
            if len(laws) == 1:
                return laws[0][1]
            return added_up((value, p * share) for p, inner in laws for value, share in inner)

        return term_of((condition, *ways.values()), law)

    def _randomvar(self, name: str, args: Any, bound: Mapping[str, str]) -> Term:
        if name == "DiracDelta":
            return self.term(args[0], bound)
        if name == "KronDelta":
            return self._mapped(
                lambda value: value if isinstance(value, (bool, str)) else whole(value),
                self.term(args[0], bound),
            )
        if name == "Bernoulli":
            return self._coin(self.term(args[0], bound))
        if name in ("Discrete", "UnnormDiscrete"):
            cases = {value.lstrip("@"): self.term(p, bound) for _, (value, p) in args[1:]}
            return self._drawn(cases, scaled=name == "UnnormDiscrete")
        able = "Bernoulli, Discrete, KronDelta and DiracDelta can"
        raise ValueError(f"draws of {name} cannot be enumerated; {able}")

    def _coin(self, probability: Term) -> Term:
        """A draw of true; its probability may depend on fluents, and may itself be drawn."""

        def law(fluents: Fluents) -> Law:
            found = probability.law(fluents)
            self.work(len(found))
            p = sum_of(bounded(value) * share for value, share in found)
            if not 0 <= p <= 1:
                raise ValueError(f"{float(p):g} is not a probability")
            return added_up([(True, p), (False, 1 - p)])

        return term_of([probability], law)

    def _drawn(self, probabilities: Mapping[Any, Term], *, scaled: bool) -> Term:
        """A draw among values, each with the term of its probability, or of its weight
        (`scaled`)."""
        terms = tuple(probabilities.values())

        def law(fluents: Fluents) -> Law:
            laws = [term.law(fluents) for term in terms]
            self.work(len(laws) * math.prod(map(len, laws)))
            branches = []
            for way in product(*laws):
                weight = [bounded(value) for value, _ in way]
                total = sum_of(weight)
                if min(weight) < 0 or not total or (not scaled and abs(total - 1) > 1e-9):
                    text = ", ".join(f"{float(each):g}" for each in weight)
                    raise ValueError(f"{text} are not probabilities")
                share = reduce(BINARY["*"], (p for _, p in way), 1)
                branches += [
                    (value, share * Fraction(each) / total)
                    for value, each in zip(probabilities, weight)
                ]
            return added_up(branches)

        return term_of(terms, law)
