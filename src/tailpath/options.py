"""Checks of arguments that several verbs share, options, progress callbacks, and the number of
processors.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import operator
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from tailpath.errors import OptionError, TailpathWarning, kind_of, with_article
from tailpath.progress import AFTER, progress_line

Function = TypeVar("Function", bound=Callable[..., Any])
Verb = TypeVar("Verb", bound=Callable[..., Any] | type[Any])
#: Alphas that differ by less, relatively, are the same: 1 - 0.95 is 0.05.
SAME_ALPHA = 1e-9
#: An alpha of this or more looks like a level of confidence.
CONFIDENT = 0.9
#: Values of up to this many characters are shown in messages.
SHORT = 40


def check_alpha(alpha: Any, what: str = "alpha") -> float:
    """`alpha`, the mass of the worst tail, as a float in (0, 1]; `what` is its name in messages."""
    try:
        # A number of fewer bits means its shortest decimal: np.float32(0.05) is 0.05.
        short = isinstance(alpha, np.floating) and alpha.itemsize < 8
        percent = isinstance(alpha, str) and alpha.endswith("%")
        value = float(alpha[:-1]) / 100 if percent else float(str(alpha) if short else alpha)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{what} must be a number in (0, 1], not {alpha!r}") from None
    if not 0 < value <= 1:
        raise OptionError(f"{what} must lie in (0, 1], not {alpha!r}{percent_hint(value)}")
    if math.isinf(1 / value):
        raise OptionError(f"{what} = {value!r} is too small for floating point")
    return value


def percent_hint(value: float) -> str:
    """A hint for what may be a percentage without its sign, or a level of confidence."""
    if 100 * CONFIDENT <= value < 100:
        return f"; for {value:g} % confidence say {1 - value / 100:.6g}"
    return f"; {value:g} % is {value / 100:g}" if 1 < value < 100 else ""


def same_alpha(a: float, b: float) -> bool:
    """Whether two alphas are meant to be the same."""
    return math.isclose(a, b, rel_tol=SAME_ALPHA)


def alpha_from(alpha: Any, least: float) -> float | None:
    """`alpha` for a table made for `least` and more, `least` itself if they are the same, or None
    if it is smaller.
    """
    value = check_alpha(alpha)
    return value if value >= least else least if same_alpha(value, least) else None


def usual_alphas(least: float) -> list[float]:
    """The alphas to show of a result for `least` and more, the largest first."""
    return [*(a for a in (1.0, 0.5, 0.1, 0.05, 0.01) if a > least), least]


def confidence_note(alpha: float) -> str | None:
    """A note on an alpha that may be a level of confidence."""
    if not CONFIDENT <= alpha < 1:
        return None
    return (
        f"alpha is the mass of the worst tail; for {100 * alpha:g} % confidence say {1 - alpha:.6g}"
    )


def warn_of_confidence(alpha: float) -> None:
    """Warn the caller of a verb about an alpha that looks like a level of confidence, unless the
    package itself is the caller.
    """
    note, frame = confidence_note(alpha), sys._getframe(2)
    while _module(frame) == __name__ and frame.f_back is not None:  # what stands around the verb
        frame = frame.f_back
    if note is not None and not _module(frame).startswith("tailpath."):
        warn_caller(note)


def warn_caller(text: str) -> None:
    """Warn at the line of code that called the package, however deep inside it this is."""
    frame, level = sys._getframe(1), 2
    # A cached property of ours is called by functools.
    inside = ("tailpath", "functools")
    while frame.f_back is not None and _module(frame).split(".")[0] in inside:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, TailpathWarning, stacklevel=level)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def takes_alpha(verb: Verb) -> Verb:
    """Let a verb, or all methods of a class that take an alpha, refuse `confidence=` with a
    sentence, and warn about an alpha that looks like a confidence. Constructors do not warn.
    """
    if isinstance(verb, type):
        for name, method in list(vars(verb).items()):
            if isinstance(method, FunctionType) and _alpha_of(method)[1] is not None:
                setattr(verb, name, takes_alpha(method))
        return verb
    names, word = _alpha_of(verb)
    position = None if word is None or verb.__name__ == "__init__" else names.index(word)
    instead = "an alpha in the measure" if word is None else f"{word}="

    @functools.wraps(verb)
    def checked(*args: Any, **named: Any) -> Any:
        if "confidence" in named and "confidence" not in names:
            raise OptionError(
                f"give {instead}, the mass of the worst tail, instead of confidence=: alpha = 1 -"
                " confidence, so for 95 % confidence it is 0.05"
            )
        if position is not None:
            given = args[position] if len(args) > position else named.get(names[position])
            for alpha in given if isinstance(given, (list, tuple)) else (given,):
                if isinstance(alpha, (float, np.floating, str)):
                    with suppress(OptionError):  # the verb refuses what is not an alpha
                        warn_of_confidence(check_alpha(alpha))
        return verb(*args, **named)

    return cast(Verb, checked)


def _alpha_of(verb: Any) -> tuple[list[str], str | None]:
    """The names of a verb's parameters, and that of the alpha among them."""
    names = list(inspect.signature(verb).parameters)
    return names, next((word for word in ("alphas", "alpha", "a") if word in names), None)


#: The kinds of values that annotations allow, and what a message calls them.
KINDS: dict[str, tuple[Any, str]] = {
    "float": (numbers.Real, "a number"),
    "int": (numbers.Integral, "a whole number"),
    "str": (str, "a string"),
    "bool": (bool, "True or False"),
    "None": (type(None), "None"),
    "Mapping": (Mapping, "a mapping"),
    "Sequence": ((Sequence, np.ndarray), "a sequence"),
    "Iterable": (Iterable, "several values"),
    "Callable": (Callable, "a function"),
    "ArrayLike": ((numbers.Real, list, tuple, np.ndarray), "a number or several"),
}


#: Errors inside a function that may be due to an argument of the wrong kind.
MISTAKES = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError)


def answering(function: Function) -> Function:
    """Let a public function that fails inside say which of its arguments is of the wrong kind.

    Arguments are compared with their annotations only after an error, so that nothing that works is
    refused, and nothing is lost.
    """
    whole = inspect.unwrap(function)

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except MISTAKES as error:
            try:
                given = inspect.signature(whole).bind(*args, **named).arguments
            except TypeError:  # the call itself is wrong, which the error says
                raise error from None
            reason = _misfit(given, whole.__annotations__, whole.__globals__)
            if reason is None:
                raise
            raise OptionError(f"{function.__name__}: {reason}") from error

    return cast(Function, called)


def answering_methods(noun: type[Any]) -> None:
    """The same for the public methods that a class of ours defines, and for its fields."""
    if not noun.__module__.startswith("tailpath."):
        return
    for name, method in list(vars(noun).items()):
        inside = getattr(method, "__func__", method)
        if not isinstance(inside, FunctionType):
            continue
        if name == "__post_init__":
            setattr(noun, name, _answering_fields(noun, inside))
        elif not name.startswith("_"):
            checked: Any = answering(inside)
            setattr(noun, name, checked if inside is method else type(method)(checked))


def _answering_fields(noun: type[Any], check: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(check)
    def called(self: Any) -> None:
        try:
            check(self)
        except MISTAKES as error:
            for base in noun.__mro__[:-1]:
                known = vars(sys.modules[base.__module__])
                reason = _misfit(vars(self), vars(base).get("__annotations__", {}), known)
                if reason is not None:
                    raise OptionError(f"{noun.__name__}: {reason}") from error
            raise

    return called


def _misfit(
    given: Mapping[str, Any], annotations: Mapping[str, Any], known: Mapping[str, Any]
) -> str | None:
    """The first value that its annotation does not allow, in words."""
    for name, asked in annotations.items():
        if isinstance(asked, str) and name in given:
            value, wanted = given[name], list(_kinds(asked, known))
            if all(kind is not None and not isinstance(value, kind) for kind, _ in wanted):
                shown = repr(value) if len(repr(value)) <= SHORT else kind_of(value)
                return f"{name} must be {' or '.join(word for _, word in wanted)}, not {shown}"
    return None


def _kinds(asked: str, known: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """The kinds that an annotation allows, each with a word; None if it is not checked."""
    while "[" in asked:  # items of lists and arguments of functions are not checked
        asked = re.sub(r"\[[^][]*\]", "", asked)
    for name in asked.split(" | "):
        first, *rest = name.split(".")
        kind = functools.reduce(
            lambda found, part: getattr(found, part, None), rest, known.get(first)
        )
        kind = getattr(kind, "__origin__", kind)  # of an alias
        if name in KINDS:
            yield KINDS[name]
        elif kind in (Progress, Callable):
            yield KINDS["Callable"]
        elif (
            isinstance(kind, type) and kind is not Any and not getattr(kind, "_is_protocol", False)
        ):
            yield kind, with_article(name)
        else:
            yield None, name


def takes_model(verb: Function) -> Function:
    """Let a verb explain how to make a model if it gets anything else, and show progress after two
    seconds, unless it has a callback. This decorator comes first.
    """
    answered, in_parts = answering(verb), "comm" in inspect.signature(verb).parameters

    @functools.wraps(verb)
    def checked(*args: Any, **named: Any) -> Any:
        given = args[0] if args else named.get("ssp", verb)
        if not hasattr(given, "n_states") and given is not verb:
            raise OptionError(
                f"{verb.__name__} takes a model, not {kind_of(given)}; tailpath.read makes one from"
                " files, names and tables, SSP.from_outcomes from rows"
            )
        if hasattr(given, "on_ranks") and not in_parts:
            raise OptionError(
                f"{verb.__name__} takes a whole model, not a part of one; solve_cvar_exact(part,"
                " alpha, comm=) solves models in parts"
            )
        if named.get("progress") is not None:
            return answered(*args, **named)
        with progress_line(verb.__name__, after=AFTER):
            return answered(*args, **named)

    return cast(Function, checked)


def vectorised(method: Function) -> Function:
    """Let a method of one alpha also take a list or an array of them, and return an array."""

    @functools.wraps(method)
    def of_all(self: Any, alpha: Any, *rest: Any) -> Any:
        if isinstance(alpha, (list, tuple)) or (isinstance(alpha, np.ndarray) and alpha.ndim > 0):
            return np.array([method(self, one, *rest) for one in alpha])
        return method(self, alpha, *rest)

    return cast(Function, of_all)


def check_alphas(alphas: Any) -> list[float]:
    """One alpha or several, each once, smallest first."""
    one = isinstance(alphas, str) or not isinstance(alphas, Iterable)
    found = sorted({check_alpha(alpha) for alpha in ([alphas] if one else alphas)})
    if not found:
        raise OptionError("give at least one alpha")
    return found


def check_named(given: Any, what: str) -> Mapping[str, Any]:
    """Things given by name, such as policies; None stands for none."""
    by_name = f"{what} are given by name, {{'mine': ...}}"
    if given is not None and not isinstance(given, Mapping):
        raise OptionError(f"{by_name}, not as {kind_of(given)}")
    for value in (given or {}).values():
        if isinstance(value, (str, int)):  # the actions of one policy
            raise OptionError(f"{by_name}; {value!r} is not a policy")
    return given or {}


def check_amount(value: Any, what: str, *, finite: bool = False, signed: bool = False) -> float:
    """A cost as a float of at least 0, or of any sign if it is `signed`; `what` is its name in
    messages.
    """
    try:
        amount = float(value)
    except OverflowError:
        raise OptionError(f"{what} is too large a number") from None
    except (TypeError, ValueError):
        raise OptionError(f"{what} must be a number, not {value!r}") from None
    if not amount >= (-sys.float_info.max if signed else 0) or (finite and math.isinf(amount)):
        least = "a number" if signed else "0 or more"
        raise OptionError(
            f"{what} must be {least}{' and finite' if finite else ''}, not {amount:g}"
        )
    return amount


def check_integer(value: Any, what: str, least: int = 0) -> int:
    """A whole number of at least `least`, perhaps as a float."""
    try:
        number = operator.index(value)
    except TypeError:
        number = int(value) if isinstance(value, float) and value.is_integer() else least - 1
    if number < least:
        raise OptionError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return number


def check_index(value: Any, count: int, what: str) -> int:
    """The index of one of `count` things."""
    try:
        index = operator.index(value)
    except TypeError:
        raise OptionError(f"{what} must be a whole number, not {value!r}") from None
    if not 0 <= index < count:
        raise OptionError(f"{what} must lie in 0 .. {count - 1}, not {index}")
    return index


@dataclass(frozen=True)
class Option:
    """A keyword of `plan` or of `read`, and the flag made from it.

    Parameters
    ----------
    name : str
        The keyword.
    kind : callable
        Reads its value; `bool` makes a switch, `dict` a table in a file.
    default : object
        The default.
    help : str
        A line of help.
    word : str
        Stands for the value in the help.
    choices : tuple of str
        The texts allowed.
    least : int, optional
        The smallest whole number allowed.
    mass : bool
        Marks a number in (0, 1].
    flag : str
        Its flag, if that is not its name, or several of them with spaces between.
    several : bool
        Whether the flag may be repeated.

    Examples
    --------
    >>> tp.methods.Option("weight", float, 1.0, "The weight of the mean.").kind("0.5")
    0.5
    """

    name: str
    kind: Callable[..., Any]
    default: Any
    help: str
    word: str = ""
    choices: tuple[str, ...] = ()
    least: int | None = None
    mass: bool = False
    flag: str = ""
    several: bool = False


class Progress(Protocol):
    """A progress callback: called with the steps taken so far and how far these have led.

    | function | steps | how far |
    | --- | --- | --- |
    | `evaluate` | pairs of state and cost expanded | the probability that has arrived |
    | `solve_cvar_quantile`, `solve_cvar_interpolation` | sweeps | the residual of the last one |
    | `read` | bytes read | their share of the file |
    | `solve_cvar_exact` | the budget reached, in cost units | the best value so far |
    | `frontier` | tables filled | pieces of the frontier found |
    | `policy.table` | pairs of state and memory placed, then levels of cost done | their share |
    | `SSP.from_functions` | states explored | their share of those found |
    | a study | runs finished | the share of the expected effort that is done |
    """

    def __call__(self, steps: int, reached: float, /) -> None: ...


def processors() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
