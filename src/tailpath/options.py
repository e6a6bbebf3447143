"""The checks of arguments that several verbs take, the progress they tell, and the processors a verb may use."""

from __future__ import annotations

import functools
import math
import operator
import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from tailpath.errors import OptionError

Method = TypeVar("Method", bound=Callable[..., Any])


def check_alpha(alpha: Any, what: str = "alpha") -> float:
    """`alpha`, the mass of the worst tail, as a float in (0, 1]; `what` is its name in messages."""
    try:
        value = float(alpha)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{what} must be a number in (0, 1], not {alpha!r}") from None
    if not 0 < value <= 1:
        raise OptionError(f"{what} must lie in (0, 1], not {alpha!r}")
    return value


def each(method: Method) -> Method:
    """Let a method of one alpha take a list or an array of them, too; the answer is then an array."""

    @functools.wraps(method)
    def of_all(self: Any, alpha: Any, *rest: Any) -> Any:
        if isinstance(alpha, (list, tuple)) or (isinstance(alpha, np.ndarray) and alpha.ndim > 0):
            return np.array([method(self, one, *rest) for one in alpha])
        return method(self, alpha, *rest)

    return cast(Method, of_all)


def check_invertible_alpha(alpha: Any, what: str = "alpha") -> float:
    """As `check_alpha`, for those that divide by it: 1 / alpha must be a number, too."""
    value = check_alpha(alpha, what)
    if math.isinf(1 / value):
        raise OptionError(f"{what} = {value!r} is too small for floating point")
    return value


def check_gamma(gamma: Any) -> float:
    """`gamma`, the discount of a step, as a float in (0, 1]."""
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma must lie in (0, 1], not {gamma!r}")
    return float(gamma)


def check_amount(value: Any, what: str, *, finite: bool = False) -> float:
    """A cost to compare with, a float of at least 0; `what` says what it is for."""
    try:
        amount = float(value)
    except OverflowError:
        raise OptionError(f"{what} is too large a number") from None
    except (TypeError, ValueError):
        raise OptionError(f"{what} is a number, not {value!r}") from None
    if not amount >= 0 or (finite and math.isinf(amount)):
        raise OptionError(f"{what} must be 0 or more{' and finite' if finite else ''}, not {amount:g}")
    return amount


def check_whole(value: Any, what: str, least: int = 0) -> int:
    """A whole number of at least `least`; floats that are whole count."""
    try:
        number = operator.index(value)
    except TypeError:
        number = int(value) if isinstance(value, float) and value.is_integer() else least - 1
    if number < least:
        raise OptionError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return number


class Progress(Protocol):
    """What long computations call now and then, all in the same way: with the steps taken so far, and how far these have led.

    | who | steps | how far |
    | --- | --- | --- |
    | `evaluate` | pairs of state and cost expanded | the probability that has arrived |
    | `solve_cvar_quantile`, `solve_cvar_interpolation` | sweeps | the residual of the last one |
    | `read` | bytes read | their share of the file |
    | `write` | outcomes written | the share of the states |
    | `solve_cvar_exact` | the budget reached, in cost units | the best value so far |
    | `SSP.from_functions` | states explored | their share of those found |
    | a study | runs finished | the share of the expected effort that is done |
    """

    def __call__(self, steps: int, reached: float, /) -> None: ...


def processors() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
