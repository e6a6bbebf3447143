"""The errors of the package.

Each message is one line that says what is wrong and where: the state, the action, the line or the
number at fault. The command line prints it and exits with code 2.
"""

from __future__ import annotations

from typing import Any


class TailpathError(Exception):
    """Base of all errors: a message names the state, the action, the line or the number at fault.

    Its kinds are in `tailpath.errors`: `ModelError`, `FormatError`, `OptionError`, `PolicyError`,
    `GoalUnreachableError`, `InfeasibleError`, `LimitExceededError` and `RefutedError`.

    Examples
    --------
    >>> try:
    ...     tp.evaluate(ssp, {"home": "walk"}, 0.1)
    ... except tp.TailpathError as error:
    ...     print(error)
    the policy takes action 'walk' in state 'home', which only has 'road', 'train'
    """


class ModelError(TailpathError):
    """The numbers or names do not define a valid stochastic shortest path problem."""


class FormatError(TailpathError):
    """A file cannot be read or written; the text starts with `file:line:` or with the archive
    member.
    """


class OptionError(TailpathError):
    """An argument lies outside its range: alpha, atoms, tolerance, an unknown engine or scheme."""


class PolicyError(TailpathError):
    """A policy does not fit its model: an unknown action, a missing state, an invalid
    probability.
    """


class GoalUnreachableError(TailpathError):
    """The start cannot avoid states from which no policy is certain to reach a goal; the expected
    cost is infinite.
    """


class InfeasibleError(TailpathError):
    """No policy keeps the limits. If one limit alone is at fault, `least` is the least possible
    value of its measure.
    """

    def __init__(self, message: str, least: float | None = None) -> None:
        super().__init__(message)
        self.least = least


class _Bounded(BaseException):
    """Has `bounds`, `(low, high)`, on the CVaR at the moment of an early end, also once pickled."""

    def __init__(self, message: str, bounds: tuple[float, float]) -> None:
        super().__init__(message)
        self.bounds = bounds

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.bounds)


class LimitExceededError(_Bounded, TailpathError):
    """A limit on nodes or memory was reached. `bounds`, `(low, high)`, hold for the CVaR."""


class EvaluationInterrupted(_Bounded, KeyboardInterrupt):
    """Ctrl-C ended an evaluation. `bounds`, `(low, high)`, hold for the CVaR."""


class RefutedError(TailpathError):
    """A result is wrong: the checker names the claim and what is true instead."""


class TailpathWarning(UserWarning):
    """Something was repaired or assumed that the user should know.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", tp.TailpathWarning)
    """


def kind_of(value: Any) -> str:
    """The type of a value in a message: `a list`, `an int`."""
    return with_article(type(value).__name__)


def with_article(name: str) -> str:
    # Some are spelled letter by letter: an SSP, an ndarray.
    spelled = name[:2].isupper() or name == "ndarray"
    vowels = "AEFHILMNORSXn" if spelled else "AEIOaeio"
    return f"{'an' if name[0] in vowels else 'a'} {name}"
