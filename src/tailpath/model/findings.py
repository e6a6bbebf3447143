"""What is found out about a model is found out once, and stored with it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import Any, Concatenate, ParamSpec, TypeVar

from tailpath.model.ssp import SSP

Found = TypeVar("Found")
Asked = ParamSpec("Asked")


class _Findings:
    """What was found out about a model, and the lock under which more is found."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}
        self.lock = threading.RLock()


def found_once(
    find: Callable[Concatenate[SSP, Asked], Found],
) -> Callable[Concatenate[SSP, Asked], Found]:
    """Have a function find out what it says of a model once for each of its other arguments,
    whichever thread asks first, and store it with the model. It is not pickled.
    """

    @functools.wraps(find)
    def known(ssp: SSP, /, *asked: Asked.args, **named: Asked.kwargs) -> Found:
        findings: _Findings = ssp.__dict__.setdefault("_findings", _Findings())
        key = find, asked, tuple(named.items())
        if key not in findings.known:
            with findings.lock:
                if key not in findings.known:
                    findings.known[key] = find(ssp, *asked, **named)
        found: Found = findings.known[key]
        return found

    return known
