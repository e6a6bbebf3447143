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
        If there is no such problem, or it has no constants.

    Examples
    --------
    >>> tp.formats.read_implicit("ctp:8x8")
    <ImplicitSSP start Seen(place=(0, 0), open=0, closed=0)>
    """
    scheme, _, text = source.partition(":")
    entry = by_scheme(scheme.lower()) if text else None
    if entry is None or not entry.implicit:
        return None
    return implicit(called(entry, entry.implicit, text, Reading(constants=constants or {})))
