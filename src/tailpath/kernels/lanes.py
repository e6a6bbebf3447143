"""Eight numbers side by side, for kernels that do the same for several prices: one instruction of the machine, or a few, for all eight.

The compiler finds no such instructions by itself where arrays might overlap, so they are written down here. Rounding is that of single numbers:
products and sums are rounded one after the other, lane by lane, so a lane gives the same digits whatever stands in the others.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from tailpath.kernels.jit import instruction

#: How many numbers stand side by side.
LANES = 8


class Words(NamedTuple):
    """The compiler's words: its types, the type of eight numbers, how the machine writes things down, and how an instruction is added."""

    types: Any
    lanes: Any
    machine: Any
    intrinsic: Any


@cache
def _words(numba: Any) -> Words:
    core = numba.core

    class Lanes(core.types.Type):  # type: ignore[misc, name-defined]
        """Eight numbers."""

    @core.extending.register_model(Lanes)
    class Model(core.datamodel.PrimitiveModel):  # type: ignore[misc, name-defined]
        """How the machine holds them."""

        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, _vector(core.cgutils.ir))

    return Words(core.types, Lanes(name="Lanes"), core.cgutils.ir, core.extending.intrinsic)


def _vector(machine: Any) -> Any:
    """Eight numbers as the machine knows them."""
    return machine.VectorType(machine.DoubleType(), LANES)


def _everywhere(machine: Any, builder: Any, value: Any) -> Any:
    """One number in all lanes."""
    nothing, word = machine.Constant(_vector(machine), machine.Undefined), machine.IntType(32)
    first = builder.insert_element(nothing, value, machine.Constant(word, 0))
    return builder.shuffle_vector(first, nothing, machine.Constant(machine.VectorType(word, LANES), [0] * LANES))


def _address(machine: Any, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where entry `arguments[1]` of the array `arguments[0]` lies, as the address of eight numbers."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), _vector(machine).as_pointer())


@instruction
def load(numba: Any) -> Any:
    """`load(array, place)`: the eight numbers from a place on."""
    types, lanes, machine, intrinsic = _words(numba)

    @intrinsic
    def load(typing: Any, array: Any, place: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_address(machine, context, builder, signature, arguments), align=8)

        return lanes(array, types.uint64), write

    return load


@instruction
def store(numba: Any) -> Any:
    """`store(array, place, lanes)`: put eight numbers there."""
    types, lanes, machine, intrinsic = _words(numba)

    @intrinsic
    def store(typing: Any, array: Any, place: Any, value: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.store(arguments[2], _address(machine, context, builder, signature, arguments), align=8)
            return context.get_dummy_value()

        return types.void(array, types.uint64, lanes), write

    return store


@instruction
def everywhere(numba: Any) -> Any:
    """`everywhere(number)`: the number in all lanes."""
    types, lanes, machine, intrinsic = _words(numba)

    @intrinsic
    def everywhere(typing: Any, value: Any) -> Any:
        return lanes(types.float64), lambda context, builder, signature, arguments: _everywhere(machine, builder, arguments[0])

    return everywhere


@instruction
def add_scaled(numba: Any) -> Any:
    """`add_scaled(total, factor, lanes)`: total + factor * lanes, for one factor."""
    types, lanes, machine, intrinsic = _words(numba)

    @intrinsic
    def add_scaled(typing: Any, total: Any, factor: Any, value: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fadd(arguments[0], builder.fmul(_everywhere(machine, builder, arguments[1]), arguments[2]))

        return lanes(lanes, types.float64, lanes), write

    return add_scaled


@instruction
def add_product(numba: Any) -> Any:
    """`add_product(total, left, right)`: total + left * right."""
    _, lanes, _, intrinsic = _words(numba)

    @intrinsic
    def add_product(typing: Any, total: Any, left: Any, right: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fadd(arguments[0], builder.fmul(arguments[1], arguments[2]))

        return lanes(lanes, lanes, lanes), write

    return add_product


@instruction
def where_less(numba: Any) -> Any:
    """`where_less(a, b, yes, no)`: yes in the lanes where a < b, no elsewhere."""
    _, lanes, _, intrinsic = _words(numba)

    @intrinsic
    def where_less(typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            less = builder.fcmp_ordered("<", arguments[0], arguments[1])
            return builder.select(less, arguments[2], arguments[3])

        return lanes(lanes, lanes, lanes, lanes), write

    return where_less


@instruction
def first_lane(numba: Any) -> Any:
    """`first_lane(lanes)`: the first of the eight numbers."""
    types, lanes, machine, intrinsic = _words(numba)

    @intrinsic
    def first_lane(typing: Any, value: Any) -> Any:
        return types.float64(lanes), lambda context, builder, signature, arguments: builder.extract_element(
            arguments[0], machine.Constant(machine.IntType(32), 0)
        )

    return first_lane
