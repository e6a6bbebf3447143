"""Problems with a scheme, as functions: for those that are too large to be listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailpath.formats.registry import Reading, by_scheme, called
from tailpath.model.implicit import ImplicitSSP, implicit
from tailpath.options import answering


@answering
def read_implicit(source: str, constants: Mapping[str, Any] | None = None) -> ImplicitSSP | None:
    """Read a problem as functions, without listing its states.

    Parameters
    ----------
    source : str
        `scheme:text`, such as `rddl:CrossingTraffic_MDP_ippc2011/5`.
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
        If there is no such problem, or it has no constants.

    Examples
    --------
    >>> toss = tp.ImplicitSSP(3, lambda n: ["toss"],
    ...                       lambda n, action: [(0.5, n, 1), (0.5, n - 1, 1)], lambda n: n == 0)
    >>> listed = lambda text: tp.SSP.from_functions(toss)
    >>> functions = lambda text: toss
    >>> tp.domains.register(tp.domains.Domain("toss", listed, "toss:3", implicit=functions))
    >>> tp.formats.read_implicit("toss:3")
    <ImplicitSSP start 3>
    """
    scheme, _, text = source.partition(":")
    entry = by_scheme(scheme.lower()) if text else None
    if entry is None or not entry.implicit:
        return None
    return implicit(called(entry, entry.implicit, text, Reading(constants=constants or {})))
