"""Problems with a scheme, as functions: for those that are too large to be listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailpath.domains.register import find_domain
from tailpath.errors import OptionError
from tailpath.model.implicit import ImplicitSSP, implicit
from tailpath.options import answering
from tailpath.registers import loaded


@answering
def read_implicit(source: str, constants: Mapping[str, Any] | None = None) -> ImplicitSSP | None:
    """Read a problem as functions, without listing its states.

    Parameters
    ----------
    source : str
        `scheme:text`, such as `ctp:8x8`.
    constants : mapping, optional
        As of `read`.

    Returns
    -------
    ImplicitSSP or None
        What `solve_cvar_lazy` takes, with the bounds that come with the problem; None if its scheme
        has no functions.

    Raises
    ------
    OptionError
        If there is no such problem.

    Examples
    --------
    >>> tp.formats.read_implicit("ctp:8x8")
    <ImplicitSSP start Seen(place=(0, 0), open=0, closed=0)>
    """
    scheme, _, text = source.partition(":")
    if scheme == "rddl":
        functions = loaded("tailpath.formats.rddl_functions:functions", "format", "")
        found: ImplicitSSP = functions(text, constants or {})
        return found
    domain = find_domain(scheme) if text else None
    if domain is None or domain.implicit is None:
        return None
    problem = domain.implicit(text)
    if problem is None:
        raise OptionError(f"{source}: {domain.expects}")
    return implicit(problem)
