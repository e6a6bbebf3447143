"""Whose memory an array is: a model that was checked must not change, or kernels would read beside
their arrays.

Numpy cannot tell whether anybody else can write into an array: a read-only view of writable memory,
a memory map, an `array.array` behind it, or an owner whose views were made before it was locked. So
what comes from outside is copied, and what was made inside for a model is told so, by `hand_over`.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import Array

#: Arrays by `id` that nobody can write into.
_LOCKED: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()


def hand_over(array: Array) -> Array:
    """Lock an array that was made for a model, and of which nobody has a view: the model need not
    copy it.
    """
    array.flags.writeable = False
    _LOCKED[id(array)] = array
    return array


def own_array(values: Any, what: str, dtype: Any) -> Array:
    """The values as an array of one axis and of `dtype` that nobody else can write into; `what` is
    its name in messages.
    """
    locked = _LOCKED.get(id(values))
    if locked is not None and locked is values and locked.dtype == dtype and locked.ndim == 1:
        return locked
    if hasattr(values, "mask") and np.ma.is_masked(values):  # looked up: numpy.ma loads slowly
        raise ModelError(f"{what} has masked entries")
    try:
        given = np.asarray(values)
        with np.errstate(invalid="ignore"):  # what does not fit is refused below
            array = np.array(given, dtype=dtype, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what} must be an array of numbers") from None
    if given.ndim != 1:
        raise ModelError(f"{what} must have one axis, not {given.ndim}")
    if array.dtype.kind == "i" and given.dtype != array.dtype and not np.array_equal(array, given):
        raise ModelError(f"{what} must hold whole numbers that fit {array.dtype}")
    return array
