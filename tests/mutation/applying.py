"""A mutant put into the running process, in the place of the functions that are there.

Everything stays imported: code of functions is replaced where it stands, and constants of modules
wherever they were imported. Kernels that a change reaches run as they are written; machine code of
the others stays.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Container, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tailpath.kernels.jit import KERNELS, Kernel, interpreter
from tests.mutation.changes import ROOT, Mutant

PLAIN = (int, float, complex, str, bytes, tuple, frozenset)
_call = Kernel.__call__


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code and all that is defined inside of it, in the order of the source."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes(inner)


def content(code: CodeType) -> Any:
    """What a code does, without its lines."""
    constants = [
        content(each) if isinstance(each, CodeType) else (type(each), repr(each))
        for each in code.co_consts
    ]
    return code.co_code, constants, code.co_names, code.co_exceptiontable


def own(code: CodeType) -> Any:
    """What a code does, without what is defined inside of it."""
    inner = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, inner, code.co_names


def apply(mutant: Mutant) -> bool:
    """Change the running process; whether there was anything to change."""
    source = mutant.file.read_text(encoding="utf-8")
    before = list(codes(compile(source, str(mutant.file), "exec", dont_inherit=True)))
    changed = mutant.compiled()
    after = list(codes(changed))
    new = {
        (old.co_qualname, old.co_firstlineno): code
        for old, code in zip(before, after, strict=True)
        if content(old) != content(code)
    }
    module = module_of(mutant)
    applied = []
    for function in functions(str(mutant.file)):
        code = new.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code is not None:
            function.__code__ = code
            applied.append(function)
    names: set[tuple[str, str]] = set()
    if any(own(x) != own(y) for x, y in zip(before, after, strict=True) if not is_function(x)):
        names = define_again(module, changed)
    interpret(touched(applied, names), set(new.values()))
    return bool(applied or names)


def module_of(mutant: Mutant) -> ModuleType:
    name = mutant.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return sys.modules[name.removesuffix(".__init__")]


def is_function(code: CodeType) -> bool:
    return bool(code.co_flags & 0x2)  # CO_NEWLOCALS: neither a module nor a class


def functions(file: str) -> list[FunctionType]:
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType) and each.__code__.co_filename == file
    ]


def define_again(module: ModuleType, code: CodeType) -> set[tuple[str, str]]:
    """Run a changed module beside the one that is there, and take over its constants, defaults of
    functions and fields of classes; the names of constants with their modules, of others without.
    """
    kept = list(KERNELS)
    again = {key: value for key, value in vars(module).items() if key.startswith("__")}
    exec(code, again)
    KERNELS[:] = kept
    found = set()
    for name, value in again.items():
        there = getattr(module, name, None)
        if isinstance(value, PLAIN) and repr(value) != repr(there):
            for other in importers(module, name):
                setattr(other, name, value)
                found.add((other.__name__, name))
        elif getattr(value, "__module__", None) == module.__name__ and there is not None:
            found |= {("", name) for _ in take_over(there, value)}
    return found


def take_over(there: Any, again: Any) -> Iterator[str]:
    """Defaults and plain fields of what is there become those of what was defined again."""
    there, again = (each.plain if isinstance(each, Kernel) else each for each in (there, again))
    if isinstance(again, FunctionType):
        for part in ("__defaults__", "__kwdefaults__"):
            if repr(getattr(again, part)) != repr(getattr(there, part)):
                setattr(there, part, getattr(again, part))
                yield part
    elif isinstance(again, type):
        for name, value in list(vars(again).items()):
            old = vars(there).get(name)
            if isinstance(value, FunctionType) and isinstance(old, FunctionType):
                yield from take_over(old, value)
            elif isinstance(value, PLAIN) and not name.startswith("__") and old != value:
                setattr(there, name, value)
                yield name


def importers(module: ModuleType, name: str) -> list[ModuleType]:
    """The module, and those of ours that import this name from it."""
    found = [module]
    for other in list(sys.modules.values()):
        file = getattr(other, "__file__", None) or ""
        if other is not module and file.startswith((str(ROOT / "src"), str(ROOT / "tests"))):
            with open(file, encoding="utf-8") as source:
                text = source.read()
            if name not in text or module.__name__ not in text:
                continue
            found += [
                other
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.ImportFrom)
                and node.module == module.__name__
                and any(each.name == name for each in node.names)
            ]
    return found


def touched(applied: list[FunctionType], names: set[tuple[str, str]]) -> set[int]:
    """Kernels that a change reaches: changed themselves, or by a name, or by a kernel they call."""
    changed = {id(function) for function in applied}
    found = {
        id(kernel)
        for kernel in KERNELS
        if id(kernel.plain) in changed
        or any((kernel.plain.__module__, name) in names for name in used(kernel))
    }
    while True:
        more = {
            id(kernel)
            for kernel in KERNELS
            if id(kernel) not in found and any(id(inner) in found for inner in called(kernel))
        }
        if not more:
            return found
        found |= more


def used(kernel: Kernel) -> Iterator[str]:
    for code in codes(kernel.plain.__code__):
        yield from code.co_names


def called(kernel: Kernel) -> list[Kernel]:
    """Kernels that a kernel names."""
    values = [kernel.plain.__globals__.get(name) for name in used(kernel)]
    return [value for value in values if isinstance(value, Kernel)]


def interpret(kernels: set[int], changed: Container[CodeType] = ()) -> None:
    """Run these kernels as they are written, and all others compiled: also versions of a kernel
    that are made later, if they call one of these, or what they run was changed.
    """
    known = {id(kernel) for kernel in KERNELS}
    for kernel in KERNELS:
        vars(kernel).pop("interpreted", None)

    def run(self: Kernel, *arguments: Any) -> Any:
        if id(self) not in known:
            known.add(id(self))
            if self.plain.__code__ in changed or any(id(each) in kernels for each in called(self)):
                kernels.add(id(self))
        if id(self) in kernels:
            return interpreter.run(self, arguments)
        return _call(self, *arguments)

    Kernel.__call__ = run  # type: ignore[method-assign]
