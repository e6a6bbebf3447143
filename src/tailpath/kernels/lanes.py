"""Eight numbers side by side, for kernels that do the same for several prices: one instruction of the machine, or a few, for all eight.

The compiler finds no such instructions by itself where arrays might overlap, so they are written down here. Rounding is that of single numbers:
products and sums are rounded one after the other, lane by lane, so a lane gives the same digits whatever stands in the others.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tailpath.kernels.jit import instruction

#: How many numbers stand side by side.
LANES = 8


@cache
def _parts() -> tuple[Any, Any, Any, Any]:
    """The compiler's words: its types, the type of eight numbers, the same for the machine, and how to add an instruction."""
    from llvmlite import ir
    from numba.core import types
    from numba.core.datamodel import PrimitiveModel
    from numba.extending import intrinsic, register_model

    class Lanes(types.Type):
        """Eight numbers."""

    vector = ir.VectorType(ir.DoubleType(), LANES)

    @register_model(Lanes)
    class Model(PrimitiveModel):  # type: ignore[misc]
        """How the machine holds them."""

        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, vector)

    return types, Lanes(name="Lanes"), vector, intrinsic


def _everywhere(builder: Any, value: Any) -> Any:
    """One number in all lanes."""
    from llvmlite import ir

    vector = _parts()[2]
    nothing, word = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(nothing, value, ir.Constant(word, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(word, LANES), [0] * LANES))


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where entry `arguments[1]` of the array `arguments[0]` lies, as the address of eight numbers."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), _parts()[2].as_pointer())


@instruction
def load() -> Any:
    """`load(array, place)`: the eight numbers from a place on."""
    types, lanes, _, intrinsic = _parts()

    @intrinsic
    def load(typing: Any, array: Any, place: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_address(context, builder, signature, arguments), align=8)

        return lanes(array, types.uint64), write

    return load


@instruction
def store() -> Any:
    """`store(array, place, lanes)`: put eight numbers there."""
    types, lanes, _, intrinsic = _parts()

    @intrinsic
    def store(typing: Any, array: Any, place: Any, value: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.store(arguments[2], _address(context, builder, signature, arguments), align=8)
            return context.get_dummy_value()

        return types.void(array, types.uint64, lanes), write

    return store


@instruction
def everywhere() -> Any:
    """`everywhere(number)`: the number in all lanes."""
    types, lanes, _, intrinsic = _parts()

    @intrinsic
    def everywhere(typing: Any, value: Any) -> Any:
        return lanes(types.float64), lambda context, builder, signature, arguments: _everywhere(builder, arguments[0])

    return everywhere


@instruction
def add_scaled() -> Any:
    """`add_scaled(total, factor, lanes)`: total + factor * lanes, for one factor."""
    types, lanes, _, intrinsic = _parts()

    @intrinsic
    def add_scaled(typing: Any, total: Any, factor: Any, value: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fadd(arguments[0], builder.fmul(_everywhere(builder, arguments[1]), arguments[2]))

        return lanes(lanes, types.float64, lanes), write

    return add_scaled


@instruction
def add_product() -> Any:
    """`add_product(total, left, right)`: total + left * right."""
    _, lanes, _, intrinsic = _parts()

    @intrinsic
    def add_product(typing: Any, total: Any, left: Any, right: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fadd(arguments[0], builder.fmul(arguments[1], arguments[2]))

        return lanes(lanes, lanes, lanes), write

    return add_product


@instruction
def where_less() -> Any:
    """`where_less(a, b, yes, no)`: yes in the lanes where a < b, no elsewhere."""
    _, lanes, _, intrinsic = _parts()

    @intrinsic
    def where_less(typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            less = builder.fcmp_ordered("<", arguments[0], arguments[1])
            return builder.select(less, arguments[2], arguments[3])

        return lanes(lanes, lanes, lanes, lanes), write

    return where_less


@instruction
def first_lane() -> Any:
    """`first_lane(lanes)`: the first of the eight numbers."""
    types, lanes, _, intrinsic = _parts()

    @intrinsic
    def first_lane(typing: Any, value: Any) -> Any:
        from llvmlite import ir

        return types.float64(lanes), lambda context, builder, signature, arguments: builder.extract_element(
            arguments[0], ir.Constant(ir.IntType(32), 0)
        )

    return first_lane
