"""The register of domains: who builds the model of `scheme:text`.

A domain of this folder is a file with a `DOMAIN` and a line in the table below. Others add theirs in one of two ways: `register(Domain(...))`
in a running program, or an entry point `name = "package.module:DOMAIN"` of the group `tailpath.domains` in their package, which is found
without being asked for. Either way `read`, and with it every command, knows the scheme. The table wins where both have a name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from tailpath.errors import OptionError
from tailpath.model.ssp import SSP

GROUP = "tailpath.domains"

#: Each scheme with the place of its domain, which is loaded when it is first asked for.
PLACES = {
    "gridworld": "tailpath.domains.gridworld:DOMAIN",
    "river": "tailpath.domains.river:DOMAIN",
    "textbook": "tailpath.domains.textbook:DOMAIN",
}


@dataclass(frozen=True)
class Domain:
    """A family of problems, each with a name.

    `build` gives the model of the text after the colon, or None where the text says nothing to it; the user is then told what the domain
    `expects`. With `from_text` the text may also be the path of a file: the function gets what the file says.
    """

    scheme: str
    build: Callable[[str], SSP | None]
    expects: str
    from_text: Callable[[str], SSP] | None = None

    def __post_init__(self) -> None:
        # The first letter alone would be taken for a drive, and only small letters are looked up.
        if not (len(self.scheme) > 1 and self.scheme.isidentifier() and self.scheme.isascii() and self.scheme == self.scheme.lower()):
            raise OptionError(f"the scheme of a domain must be a word of small letters and digits, not {self.scheme!r}")


_registered: dict[str, Domain] = {}


def register(domain: Domain) -> None:
    """Make a domain known to `read` and to every command of this process; registered again, it replaces the one before."""
    if domain.scheme in PLACES or domain.scheme == "gym":
        raise OptionError(f"the scheme {domain.scheme}: is taken")
    _registered[domain.scheme] = domain


def schemes() -> list[str]:
    """The schemes of the table and those that were registered."""
    return [*PLACES, *_registered]


def find_domain(scheme: str) -> Domain | None:
    """The domain of `scheme:...`, or None."""
    if scheme in _registered:
        return _registered[scheme]
    place = PLACES.get(scheme) or _installed(scheme)
    if place is None:
        return None
    module, _, attribute = place.partition(":")
    try:
        domain = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise OptionError(f"the domain {place} of the group {GROUP} cannot be loaded: {error}") from None
    if not isinstance(domain, Domain):
        raise OptionError(f"{place} of the group {GROUP} is no tailpath.domains.Domain")
    return domain


def _installed(scheme: str) -> str | None:
    from importlib.metadata import entry_points  # slow to import, and only needed for what our table lacks

    return next((point.value for point in entry_points(group=GROUP, name=scheme)), None)
