"""Measures of risk, which map the distribution of the total cost to a number, and their sums and
limits.

    measure(costs)             the value for a distribution
    costs.bounds(measure)      proved bounds on it
    2 * a + b                  a measure again, if its parts may be added
    measure <= 40              a limit, for `solve(..., subject_to=[...])`

A measure is the expectation of a loss (`curve`), a CVaR (`tail`), the sum of both, or neither. Each
is one class in a file of its own, which defines:

| to be | it defines | and what has a `curve` need not |
| --- | --- | --- |
| read and printed | `word`; `parsed` and `__str__` if its fields are not numbers | |
| evaluated, with bounds | `__call__`, `bounds_of`; `finest_alpha`, `farthest_cost` | all of them |
| minimised | `solver` | `solver` |
| a limit | `as_limit`, which names a measure with a curve or a tail | `as_limit` |
| used with costs of any sign | `moves_with_costs`, or `moved` | both |

It uses nothing of a distribution but its public methods. What depends on costs beyond the head,
such as E[exp(Z)] or E[Z^2], is an `expected_product` or `expected_sum` of `costs.chains`, with
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, ClassVar

from tailpath.errors import OptionError
from tailpath.model.cost_units import as_fraction, float_above, vanishes
from tailpath.options import answering_methods, check_amount, same_alpha
from tailpath.registers import Register, loaded, public_names
from tailpath.risk.curves import Curve

#: The least value, a function that proves bounds on it, and a policy that has it.
Solved = tuple[float, Callable[[], tuple[float, float]], Any]
#: A tail of no more mass than this is beyond what doubles hold.
THIN = 1e-250


class Measure:
    """Base of the measures of risk, which are frozen dataclasses.

    `word` is its name in text, which is registered as soon as the class is defined. `solver` is the
    address "module:function" of what finds the policy with the least value, unless `curve` or
    `tail` says all that a solver needs. `moves_with_costs` is true if the measure of costs that are
    all c higher is c higher.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Missed(tp.risk.Measure):
    ...     deadline: float
    ...     word = "missed"
    ...     @property
    ...     def curve(self):
    ...         return tp.risk.curve_of([(self.deadline, 0), (self.deadline, 1)], 0)
    >>> Missed(30)(costs), str(Missed(30))
    (0.1, 'missed(30)')
    """

    word: ClassVar[str] = ""
    solver: ClassVar[str] = ""
    moves_with_costs: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        answering_methods(cls)
        own = REGISTER.addresses.get(cls.word) == f"{cls.__module__}:{cls.__name__}"
        if cls.word and not own:
            REGISTER.add(cls, cls.word)

    # ------------------------------------------------------------------ for solvers

    @property
    def curve(self) -> Curve | None:
        """The loss whose expectation is this measure, or a part of it; None if there is none."""
        return None

    @property
    def tail(self) -> tuple[float, float] | None:
        """`(factor, alpha)` if a CVaR is this measure, or a part of it; None if not."""
        return None

    @property
    def can_be_minimised(self) -> bool:
        """Whether `solve` takes it alone; others can only be evaluated."""
        return bool(self.solver) or self.curve is not None or self.tail is not None

    def as_limit(self, bound: float) -> tuple[Measure, float]:
        """The same limit on a measure that has a curve or a tail, which solvers need.

        Parameters
        ----------
        bound : float
            The limit on this measure.

        Returns
        -------
        tuple (Measure, float)
            Another measure and its limit, which the same policies keep.
        """
        return self, bound

    def solved(self, ssp: Any) -> Solved | None:
        """The least value of any policy, as the function at `solver` finds it.

        Parameters
        ----------
        ssp : SSP
            The model, whose costs are 0 or more.

        Returns
        -------
        tuple (value, bounds, policy) or None
            The optimum, a function that proves bounds on it, and a policy; None if `curve` and
            `tail` say all that a solver needs.
        """
        if not self.solver:
            return None
        least: Solved = loaded(self.solver, "solver", "tailpath.measures")(ssp, self)
        return least

    def moved(self, by: Fraction, unit: Fraction | None) -> tuple[Measure, Fraction]:
        """The measure, and the constant, that give this value from costs that are all `by` less.

        Parameters
        ----------
        by : Fraction
            By how much the other costs are less.
        unit : Fraction or None
            The unit of the other costs, if there is one.

        Returns
        -------
        tuple (Measure, Fraction)
            This value is that of the other measure on the other costs, plus the constant.
        """
        if self.moves_with_costs:
            return self, by
        if self.curve is None or self.tail is not None:
            raise OptionError(
                f"{self} needs costs of 0 or more: it defines no `moves_with_costs` or `moved`"
            )
        return OfCurve(self.curve.moved(by, unit)), Fraction(0)

    # ------------------------------------------------------------------ for evaluation

    @property
    def finest_alpha(self) -> float:
        """The smallest tail mass that the value depends on."""
        return 1.0

    @property
    def farthest_cost(self) -> float:
        """The largest single cost whose probability matters; -inf if none does."""
        return -math.inf if self.curve is None else self.curve.last

    def __call__(self, costs: Any) -> float:
        """The value for a distribution of costs."""
        try:
            return float(costs.mean_loss(self._loss))
        except OptionError:
            # Too much lies beyond the head, unless it is more than any evaluation can reach.
            if costs.open_mass > THIN:
                raise
            return self.bounds_of(costs)[0]

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        """Proved bounds on the value for a distribution; `costs.bounds(measure)` asks for them.

        Parameters
        ----------
        costs : CostDistribution
            The distribution of the total cost.

        Returns
        -------
        tuple (low, high)
            The value lies between them.

        Examples
        --------
        >>> low, high = tp.Shortfall(30).bounds_of(costs)
        >>> low <= 3 <= high
        True
        """
        low, high = costs.loss_bounds(self._loss)
        return float(low), float(high)

    @property
    def _loss(self) -> Curve:
        if self.curve is None:
            raise OptionError(f"{self} has no curve and does not define `__call__` and `bounds_of`")
        return self.curve

    # ------------------------------------------------------------------ sums and limits

    @property
    def terms(self) -> tuple[tuple[float, Measure], ...]:
        """The terms of this sum, as pairs `(factor, measure)`."""
        return ((1.0, self),)

    def __add__(self, other: Any) -> Measure:
        if not isinstance(other, Measure):
            return NotImplemented
        return Sum((*self.terms, *other.terms))

    def __sub__(self, other: Any) -> Measure:
        return self + -1 * other if isinstance(other, Measure) else NotImplemented

    def __mul__(self, factor: Any) -> Measure:
        try:
            weight = float(factor)
        except (TypeError, ValueError):
            return NotImplemented
        except OverflowError:
            raise OptionError(f"the factor of {self} is too large a number") from None
        return Sum(tuple((weight * own, measure) for own, measure in self.terms))

    __rmul__ = __mul__

    def __le__(self, bound: Any) -> Limit:
        return Limit(self, check_amount(bound, "a limit", signed=True))

    def __ge__(self, bound: Any) -> Limit:
        raise OptionError(f"costs are minimised, so limits are upper bounds: {self} <= {bound}")

    # ------------------------------------------------------------------ text

    @classmethod
    def parsed(cls, words: list[str]) -> Measure:
        """Make a measure from the words between the brackets of its text.

        Parameters
        ----------
        words : list of str
            One number per field.

        Returns
        -------
        Measure
            The measure.

        Raises
        ------
        OptionError
            If there are too few or too many words, or one is not a number.
        """
        wanted = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        if len(words) != len(wanted):
            form = f"{cls.word}({', '.join(wanted)})" if wanted else cls.word
            raise OptionError(f"{cls.word} is written {form}, not {cls.word}({', '.join(words)})")
        return cls(*(parse_number_or_percent(word) for word in words))

    def __str__(self) -> str:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        inside = ", ".join(f"{getattr(self, name):.12g}" for name in names)
        return f"{self.word}({inside})" if inside else self.word


def is_cvar(measure: Measure) -> bool:
    """Whether a measure is one CVaR and nothing else."""
    return measure.curve is None and measure.tail is not None and measure.tail[0] == 1


def _measure(thing: Any) -> type[Measure] | None:
    return thing if isinstance(thing, type) and issubclass(thing, Measure) else None


#: Every measure by its word; ours are those of the public names, whose words are their names.
REGISTER = Register(
    "measure",
    "subclass of tailpath.risk.Measure",
    "tailpath.measures",
    {
        name.lower(): f"{home}:{name}"
        for name, home in public_names().items()
        if home.startswith("tailpath.risk.")
    },
    _measure,
)


@dataclass(frozen=True)
class OfCurve(Measure):
    """The expectation of a loss, by the loss."""

    loss: Curve

    @property
    def curve(self) -> Curve:
        return self.loss

    def __str__(self) -> str:
        return "a loss"


@dataclass(frozen=True)
class Sum(Measure):
    """Measures with factors, added up. It can be minimised and limited if each part has a loss or
    is a CVaR; others, such as a VaR, can only be evaluated in a sum.
    """

    parts: tuple[tuple[float, Measure], ...]

    def __post_init__(self) -> None:
        for factor, measure in self.parts:
            if not math.isfinite(factor):
                raise OptionError(f"the factor of {measure} must be finite, not {factor:g}")
            if measure.tail is not None and factor < 0:
                raise OptionError(f"the factor of {measure} must be 0 or more, not {factor:g}")

    @property
    def terms(self) -> tuple[tuple[float, Measure], ...]:
        return self.parts

    @property
    def curve(self) -> Curve | None:
        curves = [m.curve * factor for factor, m in self.parts if m.curve is not None]
        return reduce(add, curves) if curves and self._of_losses else None

    @property
    def _of_losses(self) -> bool:
        """Whether losses and CVaRs say all of it."""
        return all(m.curve is not None or m.tail is not None for _, m in self.parts)

    @property
    def tail(self) -> tuple[float, float] | None:
        parts = self.parts if self._of_losses else ()
        tails = [(factor, m.tail[1]) for factor, m in parts if m.tail is not None and factor > 0]
        if not all(same_alpha(alpha, tails[0][1]) for _, alpha in tails):
            raise OptionError(
                f"{self} contains CVaRs at several alphas; a solver takes at most one CVaR"
            )
        return (sum(factor for factor, _ in tails), tails[0][1]) if tails else None

    def moved(self, by: Fraction, unit: Fraction | None) -> tuple[Measure, Fraction]:
        parts = [(factor, *measure.moved(by, unit)) for factor, measure in self.parts]
        constant = sum((as_fraction(factor) * more for factor, _, more in parts), Fraction(0))
        return Sum(tuple((factor, measure) for factor, measure, _ in parts)), constant

    @property
    def finest_alpha(self) -> float:
        return min((measure.finest_alpha for _, measure in self.parts), default=1.0)

    @property
    def farthest_cost(self) -> float:
        return max((measure.farthest_cost for _, measure in self.parts), default=-math.inf)

    def __call__(self, costs: Any) -> float:
        return sum(factor * measure(costs) for factor, measure in self.parts if factor != 0)

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        pairs = [
            sorted(_scaled(factor, bound) for bound in measure.bounds_of(costs))
            for factor, measure in self.parts
            if factor != 0
        ]
        return -_rounded_up([-low for low, _ in pairs]), _rounded_up([high for _, high in pairs])

    def __str__(self) -> str:
        text = ""
        for factor, measure in self.parts:
            sign = (" - " if text else "-") if factor < 0 else " + " if text else ""
            text += sign + ("" if abs(factor) == 1 else f"{abs(factor):.12g} * ") + str(measure)
        return text or "0"


def _scaled(factor: float, bound: float) -> Fraction | float:
    """A bound times a factor as written, exactly; infinite where the bound is."""
    return as_fraction(factor) * Fraction(bound) if math.isfinite(bound) else factor * bound


def _rounded_up(terms: list[Fraction | float]) -> float:
    """The least float that is no less than a sum; infinite if a term is."""
    infinite = [float(term) for term in terms if term in (math.inf, -math.inf)]
    return (
        max(infinite)
        if infinite
        else float_above(sum((Fraction(term) for term in terms), Fraction(0)))
    )


@dataclass(frozen=True)
class Limit:
    """An upper limit on a measure."""

    measure: Measure
    bound: float

    def moved(self, by: Fraction, unit: Fraction | None) -> Limit:
        """The limit on costs that are all so much less, that is kept by the same policies."""
        measure, constant = self.measure.moved(by, unit)
        if math.isinf(self.bound):
            return Limit(measure, self.bound)
        bound = float(as_fraction(self.bound) - constant)
        if constant and (measure.curve is not None or measure.tail is not None):
            # What is left may be little beside what was taken off, and so is its rounding then.
            bound += 2 * (math.ulp(self.bound) + math.ulp(float(constant)))
        return Limit(measure, bound)

    def __str__(self) -> str:
        return f"{self.measure} <= {self.bound:.12g}"


def parse_number_or_percent(word: str) -> float:
    """A number as people write it: `0.05`, `5%`, `inf`."""
    try:
        value = float(word.removesuffix("%"))
    except ValueError:
        raise OptionError(f"{word!r} is not a number") from None
    if vanishes(word, value):
        raise OptionError(f"{word!r} is too small a number")
    if math.isinf(value) and "inf" not in word.lower():
        raise OptionError(f"{word!r} is too large a number; for infinity, write inf")
    return value / 100 if word.endswith("%") else value
