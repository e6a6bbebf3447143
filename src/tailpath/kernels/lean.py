"""The compiler, spared what kernels do not need: a first use waits for little else than it.

Three things take a third of its time, and change nothing in what it makes; the fourth takes a tenth to a third of the time of what it makes.

- *Flags.* The options of a compilation are part of every key by which the compiler looks for something it knows, and two sets of options are
  compared by listing all of them, with their defaults, forty thousand times. Those that were set decide.
- *Kinds.* What `a + b` or `a[i]` is for given kinds is asked for every such place, several times, and every template that was ever written for `+` is
  tried in turn. For numbers and arrays the answer is always the same one, unless an implementation was compiled for it: it is remembered.
- *Inner kernels.* What stands for a kernel in others is linked into them, and optimised and made machine code there. Nobody else calls it, so none
  of that is done for it alone. The same holds for what the compiler has written in Python (`np.zeros`, `max`) and compiles for a kernel.
- *Indices.* Any might count from the end, which is a question in every loop. In kernels only constants do (`a[-1]`); others are taken as they are.

The pipeline of kernels leaves out the steps for what is not in them: closures, `with`, object mode, loops over mixed tuples, expressions of whole
arrays. All of this is about the insides of the compiler, and done for the versions whose insides are known. Others work as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import codegen, compiler, target_extension, targetconfig, types
from numba.core.types import functions
from numba.np import arrayobj

#: The versions of the compiler that are known.
KNOWN = (0, 60), (0, 68)

#: What the names of kernels begin with in machine code.
OURS = "_ZN8tailpath7kernels"

#: Steps for what no kernel contains. (A kernel that needed one would not be compiled, or be compiled the same.)
NEEDLESS = frozenset(
    {
        "WithLifting",
        "InlineClosureLikes",
        "RewriteSemanticConstants",
        "RewriteDynamicRaises",
        "MakeFunctionToJitFunction",
        "InlineInlinables",
        "FindLiterallyCalls",
        "LiteralUnroll",
        "LiteralPropagationSubPipelinePass",
        "InlineOverloads",
        "NopythonRewrites",
        "AnnotateTypes",
        "DumpParforDiagnostics",
    }
)


def known() -> bool:
    """Whether this is a compiler whose insides are known."""
    oldest, newest = KNOWN
    return oldest <= tuple(numba.version_info[:2]) <= newest


def compare_what_is_set() -> None:
    """Compare options of the compiler by those that were set, where both are of one kind."""
    plain = targetconfig.TargetConfig.__eq__
    hashes: dict[type, int] = {}

    def same(one: Any, other: Any) -> Any:
        if type(one) is not type(other):
            return plain(one, other)
        here, there = one._values, other._values
        return here == there or all(getattr(one, name) == getattr(other, name) for name in here.keys() | there.keys())

    def hashed(one: Any) -> int:
        # The compiler hashes the names of the options, which are those of the kind.
        kind = type(one)
        if kind not in hashes:
            hashes[kind] = hash(tuple(sorted(one.values())))
        return hashes[kind]

    targetconfig.TargetConfig.__eq__, targetconfig.TargetConfig.__hash__ = same, hashed


def remember_kinds() -> None:
    """Remember what a function makes of numbers and arrays, where that is known without compiling anything."""
    find = functions.BaseFunction.get_call_type
    answers: dict[Any, Any] = {}
    values = (types.Number, types.Boolean, types.Array)

    def found(function: Any, context: Any, arguments: Any, named: Any) -> Any:
        if named or not all(isinstance(argument, values) for argument in arguments):
            return find(function, context, arguments, named)
        question = context, function.typing_key, function.templates, tuple(arguments)
        if question in answers:
            answer = answers[question]
        else:
            answer = find(function, context, arguments, named)
            if answer is None or function._impl_keys[answer.args] != function.typing_key:
                return answer
            answers[question] = answer
        function._impl_keys[answer.args] = function.typing_key
        return answer

    functions.BaseFunction.get_call_type = found  # type: ignore[method-assign, assignment]


class Linked(compiler.Compiler):  # type: ignore[misc]
    """How that is compiled which the compiler has written in Python: by all steps, to be linked into others."""

    def define_pipelines(self) -> list[Any]:
        self.state.library = Insides(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return list(super().define_pipelines())


@contextmanager
def only_linked() -> Iterator[None]:
    """While this lasts, what the compiler has written in Python is compiled to be linked, without doors for callers from elsewhere."""
    cpu = target_extension.target_registry["cpu"]
    plain = target_extension.jit_registry.pop(cpu)
    target_extension.jit_registry[cpu] = lambda **options: plain(**{**options, "no_cfunc_wrapper": True, "pipeline_class": Linked})
    try:
        yield
    finally:
        target_extension.jit_registry.pop(cpu)
        target_extension.jit_registry[cpu] = plain


def trust_indices() -> None:
    """Take indices that vary as they are, in kernels, and in the functions of others ask of each whether it counts from the end."""
    asked = arrayobj.fix_integer_index

    def trusted(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        if not builder.function.name.startswith(OURS) or hasattr(index, "constant"):
            return asked(context, builder, kind, index, size)
        return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)

    arrayobj.fix_integer_index = trusted


class Kernels(compiler.CompilerBase):  # type: ignore[misc]
    """How kernels are compiled."""

    def compile_extra(self, function: Any) -> Any:
        with only_linked():
            return super().compile_extra(function)

    def define_pipelines(self) -> list[Any]:
        pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [(step, why) for step, why in pipeline.passes if step.__name__ not in NEEDLESS]
        return [pipeline]


class InnerKernels(Kernels):
    """How those are compiled that only kernels call."""

    def define_pipelines(self) -> list[Any]:
        self.state.library = Insides(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class Insides(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of an inner kernel, to be linked into others as it is."""

    def _optimize_final_module(self) -> None:
        """The kernel that it is linked into is optimised with it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        return 0

    @property
    def codegen(self) -> Any:
        """Whoever sets what the machine code refers to."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing: there is no machine code."""
