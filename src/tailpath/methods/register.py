"""The register of planning methods: who plans for `--method name`.

A method of this folder is a `Method` with a line in the table below. Others add theirs
as `registers.py` says, by `register(Method(...))` or by an entry point of the group
`tailpath.methods`. Either way `solve`, `compare` and `study` know it. A study's workers are
processes of their own: there the module that calls `register` is named in the study's design
(`import = ["package.module"]`).
"""

from __future__ import annotations

from tailpath.errors import OptionError
from tailpath.methods.method import Method
from tailpath.registers import Register, instance_of
from tailpath.texts import did_you_mean

#: Each name with the address of its method; the first is the default of `solve`.
ADDRESSES = {
    "exact": "tailpath.methods.optimal:EXACT",
    "expected": "tailpath.methods.optimal:EXPECTED",
    "quantile": "tailpath.methods.published:QUANTILE",
    "interpolation": "tailpath.methods.published:INTERPOLATION",
    "improved": "tailpath.methods.related:IMPROVED",
    "second-stage": "tailpath.methods.related:SECOND_STAGE",
    "layers": "tailpath.methods.related:LAYERS",
    "pareto": "tailpath.methods.related:PARETO",
    "surrogate": "tailpath.methods.related:SURROGATE",
    "nested": "tailpath.methods.related:NESTED",
}
#: What tables call a method is understood, too.
ALSO = {"optimum": "exact"}

REGISTER = Register(
    "method",
    "tailpath.methods.Method",
    "tailpath.methods",
    ADDRESSES,
    instance_of(Method),
    taken=ALSO,
)


def register(method: Method) -> None:
    """Make a method known to every command of this process.

    Registered again, it replaces the one before.

    Parameters
    ----------
    method : Method
        The method.

    Raises
    ------
    OptionError
        If its name is one of the package's own.
    """
    REGISTER.add(method.name, method)


def method_names() -> list[str]:
    """The names of all methods.

    Returns
    -------
    list of str
        Those of the package, of installed packages, and those that were registered.

    Examples
    --------
    >>> tp.methods.method_names()[:3]
    ['exact', 'expected', 'quantile']
    """
    return REGISTER.names()


def all_methods() -> list[Method]:
    """All methods, in the order of their names in `method_names`."""
    return [find_method(name) for name in method_names()]


def find_method(name: str) -> Method:
    """The method of a name.

    Parameters
    ----------
    name : str
        What users type.

    Returns
    -------
    Method
        The method.

    Raises
    ------
    OptionError
        If there is none.

    Examples
    --------
    >>> tp.methods.find_method("quantile").title
    'CVaRVIQ'
    """
    method = REGISTER.find(ALSO.get(name, name))
    if method is None:
        every = f"; there are {', '.join(method_names())}"
        raise OptionError(
            f"there is no method {name!r}{did_you_mean(name, [*method_names(), *ALSO]) or every}"
        )
    return method
