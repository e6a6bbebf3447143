"""Plain data: what all nouns have in common.

A `Record` is a frozen dataclass of names, numbers and arrays. It compares by content, pickles by
its fields alone (whatever it has found out on the way stays behind), and its arrays are read-only,
after unpickling too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from typing import Any, Self, TypeVar, overload

import numpy as np

from tailpath.errors import OptionError


def _fields(record: Any) -> tuple[Field[Any], ...]:
    """Those of the dataclass that the record is, which the type of its base does not know."""
    return fields(record)


class Record:
    """Base of the frozen dataclasses; declare them with `eq=False`, so that these methods hold."""

    @classmethod
    def trusted(cls, **values: Any) -> Self:
        """From fields that their maker knows to be sound, without the checks: a solver hands out
        one large table for every alpha.
        """
        record = cls.__new__(cls)
        record.__setstate__(values)
        return record

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in _fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._become(state)

    def _become(self, values: dict[str, Any]) -> None:
        """Take checked values for the fields of these names, and make the arrays read-only."""
        vars(self).update(values)
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
    """A record that is also the sequence of its `items`; they are the first field, under a name of
    their own.
    """

    @property
    def _items(self) -> Sequence[Item]:
        items: Sequence[Item] = getattr(self, _fields(self)[0].name)
        return items

    @overload
    def __getitem__(self, position: int) -> Item: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[Item]: ...

    def __getitem__(self, position: Any) -> Any:
        return self._items[position]

    def __len__(self) -> int:
        return len(self._items)


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Columns as a DataFrame of pandas, for the `to_pandas` of the nouns."""
    try:
        import pandas
    except ImportError:
        raise OptionError("pandas is not installed; install tailpath[tables]") from None
    return pandas.DataFrame(dict(columns))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")
    return bool(a == b or (a != a and b != b))


def _trace(value: Any) -> Any:
    """Something cheap that equal values share."""
    return (
        value
        if isinstance(value, (str, int, float, bool, type(None)))
        else np.shape(value)
        if isinstance(value, np.ndarray)
        else 0
    )
