"""The one table of formats, by suffix and by scheme.

A reader is a function `read(source, *, option=..., ...) -> SSP`, a writer a function `write(ssp, path)`. They are named as
`module:function` and imported when they are used, so that a model in one format never pays for the libraries of another. A reader takes
exactly the options that its signature names; any other option is refused here, with the name of the format.

Third parties add readers through the entry-point group `tailpath.readers`: the entry point `abc = "package.module:function"` serves both
`model.abc` and `abc:anything` (the function is then given the part after the colon). Our own table wins where both have the name.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tailpath.errors import OptionError
from tailpath.model.ssp import SSP

GROUP = "tailpath.readers"


@dataclass(frozen=True)
class Format:
    """One row of the table: what users call the format, how it is recognised, who reads and writes it."""

    title: str
    reader: str
    writer: str = ""
    suffixes: tuple[str, ...] = ()
    scheme: str = ""

    def read(self, source: Any, options: Mapping[str, Any]) -> SSP:
        """Read with the options given; an option that the reader does not name is refused."""
        reader = _load(self.reader)
        parameters = inspect.signature(reader).parameters.values()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            taken = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
            for name in options:
                if name not in taken:
                    raise OptionError(f"the option {name} does not apply to {self.title}, which takes {', '.join(taken) or 'no options'}")
        ssp: SSP = reader(source, **options)
        return ssp

    def write(self, ssp: SSP, path: str) -> None:
        """Write, or say that the format is for reading only."""
        if not self.writer:
            raise OptionError(f"{path}: {self.title} can be read, not written; write one of {', '.join(written_suffixes())}")
        _load(self.writer)(ssp, path)


def _home(module: str) -> str:
    return f"tailpath.formats.{module}"


FORMATS = (
    Format("tailpath JSON", _home("json_files:read"), _home("json_files:write"), (".json",)),
    Format("tailpath npz", _home("npz_files:read"), _home("npz_files:write"), (".npz",)),
    Format("Storm DRN", _home("drn:read"), _home("drn:write"), (".drn", ".drn.gz", ".drn.xz")),
    Format("PRISM explicit", _home("prism_explicit:read"), _home("prism_explicit:write"), (".tra",)),
    Format("UMB", _home("umb:read"), _home("umb:write"), (".umb",)),
    Format("long table", _home("long_table:read"), _home("long_table:write"), (".csv",)),
    Format("PRISM language", _home("storm_language:read_prism"), suffixes=(".nm", ".pm", ".prism")),
    Format("JANI", _home("storm_language:read_jani"), suffixes=(".jani",)),
    Format("Gymnasium", _home("gym:read"), scheme="gym"),
    Format("gridworld:", _home("schemes:read_gridworld"), scheme="gridworld"),
    Format("river:", _home("schemes:read_river"), scheme="river"),
    Format("textbook:", _home("schemes:read_textbook"), scheme="textbook"),
)


def written_suffixes() -> list[str]:
    """The suffixes that `write` takes."""
    return [suffix for entry in FORMATS if entry.writer for suffix in entry.suffixes]


def by_scheme(scheme: str) -> Format | None:
    """The format of `scheme:...`, or None."""
    for entry in FORMATS:
        if entry.scheme and entry.scheme == scheme:
            return entry
    return _third_party(scheme)


def by_suffix(path: str) -> Format:
    """The format of a path; the longest suffix decides."""
    name = path.lower()
    matches = [(len(suffix), entry) for entry in FORMATS for suffix in entry.suffixes if name.endswith(suffix)]
    if matches:
        return max(matches, key=lambda match: match[0])[1]
    found = _third_party(name.rpartition(".")[2]) if "." in name else None
    if found is not None:
        return found
    suffixes = [suffix for entry in FORMATS for suffix in entry.suffixes]
    schemes = [f"{entry.scheme}:" for entry in FORMATS if entry.scheme]
    raise OptionError(f"{path}: unknown format; known suffixes are {', '.join(suffixes)}, known schemes are {', '.join(schemes)}")


def _third_party(name: str) -> Format | None:
    from importlib.metadata import entry_points  # slow to import, and only needed for what our table lacks

    for point in entry_points(group=GROUP, name=name):
        return Format(point.name, point.value)
    return None


def _load(place: str) -> Callable[..., Any]:
    module, _, function = place.partition(":")
    try:
        loaded: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise OptionError(f"the reader {place} of the group {GROUP} cannot be loaded: {error}") from None
    return loaded
