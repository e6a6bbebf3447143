"""The register of domains, which build the models of `scheme:text`.

A domain of this folder is a `Domain` and a line in the table below. `registers.py` says how to add
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tailpath.errors import OptionError
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import answering
from tailpath.registers import Register, instance_of

#: Each scheme with the address of its domain.
ADDRESSES = {
    "gridworld": "tailpath.domains.paper:GRIDWORLD",
    "river": "tailpath.domains.paper:RIVER",
    "textbook": "tailpath.domains.textbook:DOMAIN",
}
#: Schemes of a package of ours that is installed on its own.
ELSEWHERE = dict.fromkeys(("sepsis", "flights", "ctp", "rddl"), "tailpath-cases")


@dataclass(frozen=True)
class Domain:
    """A family of named problems, which builds the models of `scheme:text`.

    Parameters
    ----------
    scheme : str
        A word of small letters and digits, two or more.
    build : callable
        `build(text)` returns the model for the text after the colon, or None if it is not a valid
        one.
    expects : str
        What to write instead, for the error message.
    from_text : callable, optional
        If given, the text may also be the path of a file: the function gets its content.
    about : callable, optional
        `about(text)` describes the problem in a sentence, for `tailpath info`.
    policies : mapping of str to callable, optional
        Policies that come with the domain: `policies["name"](ssp)` is the policy that `read_policy`
        returns for `scheme:name`.
    implicit : callable, optional
        `implicit(text)` returns the problem as functions, as `solve_cvar_lazy` takes it, for those
        that are too large to be listed.

    Raises
    ------
    OptionError
        If the scheme is not such a word.

    Examples
    --------
    >>> fares = tp.domains.Domain("fare", lambda text: tp.give_up(ssp, int(text)), "write a price")
    >>> fares.build("25").goals
    ('work', 'gave up')
    """

    scheme: str
    build: Callable[[str], SSP | IntervalSSP | None]
    expects: str
    from_text: Callable[[str], SSP] | None = None
    about: Callable[[str], str | None] | None = None
    policies: Mapping[str, Callable[[SSP], Any]] = field(default_factory=dict)
    implicit: Callable[[str], Any] | None = None

    def __post_init__(self) -> None:
        # A single letter would be taken for a drive, and only small letters are looked up.
        if not (
            len(self.scheme) > 1
            and self.scheme.isidentifier()
            and self.scheme.isascii()
            and self.scheme == self.scheme.lower()
        ):
            raise OptionError(
                "the scheme of a domain must be a word of lower-case letters and digits, not"
                f" {self.scheme!r}"
            )


REGISTER = Register(
    "domain",
    "tailpath.domains.Domain",
    "tailpath.domains",
    ADDRESSES,
    instance_of(Domain),
    taken=["gym"],  # a format: its models come from another package
)


@answering
def register(domain: Domain) -> None:
    """Make a domain known to `read` and to every command of this process.

    Registered again, it replaces the one before.

    Parameters
    ----------
    domain : Domain
        The domain.

    Raises
    ------
    OptionError
        If it is not a `Domain`, or its scheme is one of the package's own.

    Examples
    --------
    >>> fare = lambda text: tp.give_up(ssp, int(text)) if text.isdigit() else None
    >>> tp.domains.register(tp.domains.Domain("fare", fare, "write a price, e.g. fare:25"))
    >>> tp.read("fare:25").goals
    ('work', 'gave up')
    """
    REGISTER.add(domain, domain.scheme)


def schemes() -> list[str]:
    """The schemes of the tables and those that were registered. Installed packages are not
    searched, which takes time.
    """
    return list(dict.fromkeys([*ADDRESSES, *ELSEWHERE, *REGISTER.added]))


def find_domain(scheme: str) -> Domain | None:
    return REGISTER.find(scheme)
