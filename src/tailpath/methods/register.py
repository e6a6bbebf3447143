"""The register of planning methods: who plans for `--method name`.

A method of this folder is a file with a `METHOD` and a line in the table below. Others add theirs in one of two ways: `register(Method(...))` in a
running program, or an entry point `name = "package.module:METHOD"` of the group `tailpath.methods` in their package, which is found without
being asked for. Either way `solve`, `compare` and `study` know it. A study's workers are processes of their own: there the module that calls
`register` is named in the study's design (`import = ["package.module"]`).
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points

from tailpath.errors import OptionError
from tailpath.methods.method import Method

GROUP = "tailpath.methods"

#: Each name with the place of its method, which is loaded when it is first asked for; the first is the default of `solve`.
PLACES = {
    "exact": "tailpath.methods.exact:METHOD",
    "expected": "tailpath.methods.expected:METHOD",
    "quantile": "tailpath.methods.quantile:METHOD",
    "interpolation": "tailpath.methods.interpolation:METHOD",
    "improved": "tailpath.methods.onwards:IMPROVED",
    "second-stage": "tailpath.methods.onwards:SECOND_STAGE",
    "layers": "tailpath.methods.layers:METHOD",
    "pareto": "tailpath.methods.pareto:METHOD",
    "surrogate": "tailpath.methods.surrogate:METHOD",
    "nested": "tailpath.methods.nested:METHOD",
}
#: What tables call a method is understood, too.
ALSO = {"optimum": "exact"}

_registered: dict[str, Method] = {}


def register(method: Method) -> None:
    """Make a method known to every command of this process; registered again, it replaces the one before."""
    if method.name in PLACES or method.name in ALSO:
        raise OptionError(f"the method {method.name} is there already")
    _registered[method.name] = method


def method_names() -> list[str]:
    """The names of all methods: those of the table, of installed packages, and those that were registered."""
    return list(dict.fromkeys([*PLACES, *_installed(), *_registered]))


def find_method(name: str) -> Method:
    """The method of a name."""
    if name in _registered:
        return _registered[name]
    place = {**_installed(), **PLACES}.get(ALSO.get(name, name))
    if place is None:
        raise OptionError(f"there is no method {name!r}; there are {', '.join(method_names())}")
    module, _, attribute = place.partition(":")
    try:
        method = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise OptionError(f"the method {place} of the group {GROUP} cannot be loaded: {error}") from None
    if not isinstance(method, Method):
        raise OptionError(f"{place} of the group {GROUP} is no tailpath.methods.Method")
    return method


@cache
def _installed() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=GROUP)}
