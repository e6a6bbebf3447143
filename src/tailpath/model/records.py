"""Plain data: what models, policies and results have in common.

A `Record` is a frozen dataclass of names, numbers and arrays. It compares by content, pickles only
its fields (not what `found_once` has stored), and its arrays are read-only, also after unpickling.

A model that was checked must not change, or kernels would read outside their arrays. Numpy cannot
tell whether other code can write into an array: it may be a read-only view of writable memory, a
memory map, or have views from before it was locked. So arrays from outside are copied, and arrays
that were made for a model are marked by `hand_over`.

A result (`Shown`) defines its content, tables and sentences in order, and its columns. `print`,
notebooks, DataFrames and LaTeX follow from these.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import Field, fields
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import Array
from tailpath.options import answering_methods, check_integer
from tailpath.pictures.notebook import card
from tailpath.registers import module_of
from tailpath.texts import Content, as_text

Noun = TypeVar("Noun")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
#: Arrays by `id` that nobody can write into.
_LOCKED: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()


def _fields(record: Any) -> tuple[Field[Any], ...]:
    """Those of the dataclass that the record is, which the type of its base does not know."""
    return fields(record)


class Record:
    """Base of the frozen dataclasses, which are declared with `eq=False` to keep these methods.
    Methods say which argument is of the wrong kind.
    """

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        answering_methods(cls)

    @classmethod
    def trusted(cls, **values: Any) -> Self:
        """From valid fields, without checks."""
        record = cls.__new__(cls)
        record.__setstate__(values)
        return record

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in _fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take checked values for the fields of these names, and make the arrays read-only."""
        vars(self).update(state)
        self._freeze()

    def _freeze(self) -> None:
        """Make the arrays read-only."""
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        names = [f.name for f in _fields(self) if f.compare]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        names = [f.name for f in _fields(self) if f.compare]
        return hash((type(self).__name__, *(_trace(getattr(self, name)) for name in names)))


Item = TypeVar("Item", covariant=True)


class Series(Record, Sequence[Item]):
    """A record that is also the sequence of the items in its first field."""

    @property
    def _items(self) -> Sequence[Item]:
        items: Sequence[Item] = getattr(self, _fields(self)[0].name)
        return items

    def __getitem__(self, position: Any) -> Any:
        return self._items[position]

    def __len__(self) -> int:
        return len(self._items)


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Columns as a DataFrame of pandas, for the `to_pandas` of the nouns."""
    return module_of("pandas", "tables").DataFrame(dict(columns))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")
    return bool(a == b or (a != a and b != b))


def _trace(value: Any) -> Any:
    """A cheap property that equal values share."""
    if isinstance(value, np.ndarray):
        return value.shape
    return value if isinstance(value, (str, int, float, bool, type(None))) else 0


# ---------------------------------------------------------------------- what is found out about it


class _Findings:
    """Results of `found_once`, and the lock under which they are found."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}
        self.lock = threading.RLock()
        _FINDINGS.add(self)


_FINDINGS: weakref.WeakSet[_Findings] = weakref.WeakSet()


def _in_a_new_process() -> None:
    """Renew the locks of `found_once`: a fork may copy them while another thread holds them. Before
    Python 3.12, `cached_property` has such a lock, too.
    """
    for findings in _FINDINGS:
        findings.lock = threading.RLock()
    ours = [module for name, module in sys.modules.items() if name.startswith("tailpath.")]
    nouns = {noun for module in ours for noun in vars(module).values() if isinstance(noun, type)}
    for each in [each for noun in nouns for each in vars(noun).values()]:
        if isinstance(each, functools.cached_property) and hasattr(each, "lock"):
            each.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_new_process)


def found_once(
    find: Callable[Concatenate[Noun, Arguments], Result],
) -> Callable[Concatenate[Noun, Arguments], Result]:
    """Store the results of a function of a model or another record there, by its other arguments,
    so that it runs once, also with threads. They are not pickled.
    """

    @functools.wraps(find)
    def known(noun: Noun, /, *asked: Arguments.args, **named: Arguments.kwargs) -> Result:
        findings: _Findings | None = vars(noun).get("_findings")
        if findings is None:
            findings = vars(noun).setdefault("_findings", _Findings())
        key = find, asked, tuple(named.items())
        if key not in findings.known:
            with findings.lock:
                if key not in findings.known:
                    findings.known[key] = find(noun, *asked, **named)
        found: Result = findings.known[key]
        return found

    return known


# ---------------------------------------------------------------------- whose memory an array is


def hand_over(array: Array) -> Array:
    """Lock an array that was made for a model and has no other views, so that it is not copied."""
    array.flags.writeable = False
    _LOCKED[id(array)] = array
    return array


def own_array(values: Any, what: str, dtype: Any) -> Array:
    """The values as an array of one axis and of `dtype` that no other code can write into; `what`
    is its name in messages.
    """
    locked = _LOCKED.get(id(values))
    if locked is not None and locked is values and locked.dtype == dtype and locked.ndim == 1:
        return locked
    if hasattr(values, "mask") and np.ma.is_masked(values):  # looked up: numpy.ma loads slowly
        raise ModelError(f"{what} has masked entries")
    try:
        given = np.asarray(values)
        with np.errstate(invalid="ignore"):  # values that do not fit are refused below
            array = np.array(given, dtype=dtype, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what} must be an array of numbers") from None
    if given.ndim != 1:
        raise ModelError(f"{what} must have one axis, not {given.ndim}")
    if array.dtype.kind == "i" and given.dtype != array.dtype and not np.array_equal(array, given):
        raise ModelError(f"{what} must hold whole numbers that fit {array.dtype}")
    return array


# ---------------------------------------------------------------------- how results show themselves


#: Rows of a table for people, unless more are asked for.
MAX_ROWS = 24


class Shown(Record):
    """Base of the results that print as tables."""

    @abstractmethod
    def _content(self, most: int) -> Content:
        """What people read, in tables of about `most` rows."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """All of it, in full, for programs."""

    def _drawn(self) -> Any:
        """The Axes of a picture for the notebook, or None."""
        return None

    def as_text(self, width: int | None = None, most: int = MAX_ROWS) -> str:
        """What `print` shows.

        Parameters
        ----------
        width : int, optional
            Columns of text; by default as many as it takes.
        most : int
            Rows of a table, about.

        Returns
        -------
        str
            Tables, and sentences about them.

        Examples
        --------
        >>> print(tp.frontier(ssp, "cvar(0.1)").as_text())
        corner  cvar(0.1)  mean  policies
        ------  ---------  ----  --------
             1         30    30         1
             2         60    24         1
        """
        room = None if width is None else check_integer(width, "width", 1)
        return as_text(self._content(check_integer(most, "most", 1)), room)

    def to_pandas(self) -> Any:
        """All rows as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            In full digits, and with all rows.

        Raises
        ------
        OptionError
            If pandas is not installed.

        Examples
        --------
        >>> tp.frontier(ssp, "cvar(0.1)").to_pandas()
           corner  risk  mean  before  policies
        0       1  30.0  30.0    30.0         1
        1       2  60.0  24.0    24.0         1
        """
        return data_frame(self._columns())

    def __str__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return card(repr(self).strip("<>"), self._content(MAX_ROWS), self._drawn)
