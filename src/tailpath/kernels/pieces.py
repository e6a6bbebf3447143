"""Large text files, put together in plain loops: the reverse of `texts.py`.

A text is a row of *pieces*, numbers of texts that lie one after the other in an array of bytes; text t is `data[begin[t]:begin[t + 1]]`. A negative
piece -n - 1 is the whole number n, which nobody needs to spell beforehand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import instruction, kernel
from tailpath.kernels.texts import ZERO, eight_bytes

Array = NDArray[Any]


@instruction
def put_eight_bytes(numba: Any) -> Any:
    """`put_eight_bytes(data, place, number)`: the reverse of `eight_bytes`."""
    types, machine = numba.core.types, numba.core.cgutils.ir

    @numba.core.extending.intrinsic
    def put_eight_bytes(typing: Any, data: Any, place: Any, number: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            address = builder.gep(array.data, [arguments[1]])
            builder.store(arguments[2], builder.bitcast(address, machine.IntType(64).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.none(data, types.int64, types.uint64), write

    return put_eight_bytes


@kernel
def join_pieces(pieces: Array, at: int, data: Array, begin: Array, out_bytes: Array) -> tuple[int, int]:
    """Write the pieces from one of them on until no room is left. Returns the next piece, and how many bytes were written.

    Bytes are copied by eights, so seven more than needed must be there on both sides.
    """
    size, room = 0, len(out_bytes) - 7
    while at < len(pieces):
        piece = pieces[at]
        if piece >= 0:
            first, length = begin[piece], begin[piece + 1] - begin[piece]
            if size + length > room:
                break
            for k in range(0, length, 8):
                put_eight_bytes(out_bytes, size + k, eight_bytes(data, first + k))
        else:
            value = -(np.int64(piece) + 1)
            length, limit = 1, 10
            while limit <= value:
                length += 1
                limit *= 10
            if size + length > room:
                break
            for k in range(length):
                out_bytes[size + length - 1 - k] = ZERO + value % 10
                value //= 10
        size += length
        at += 1
    return at, size


@kernel
def number_values(values: Array, seed: int, slots: Array, out_number: Array, out_first: Array) -> int:
    """Number whole numbers as they first appear: `out_number` of each, and `out_first`, where each number first stands. Returns how many there are.

    `slots` are a table of hashes, all -1, more than there are values, and a power of two; the seed is drawn anew for every use.
    """
    mask, count = np.uint64(len(slots) - 1), 0
    for place in range(len(values)):
        key = (np.uint64(seed) ^ np.uint64(values[place])) * np.uint64(0x9E3779B97F4A7C15)
        slot = (key ^ (key >> np.uint64(32))) & mask
        while slots[slot] >= 0 and values[out_first[slots[slot]]] != values[place]:
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = count
            out_first[count] = place
            count += 1
        out_number[place] = slots[slot]
    return count
