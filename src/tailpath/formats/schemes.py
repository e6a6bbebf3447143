"""The bundled problems as strings: `gridworld:14x16`, `gridworld:PATH`, `river:30x10`, `textbook:NAME`."""

from __future__ import annotations

import os
import re

from tailpath.errors import OptionError
from tailpath.formats.files import read_text
from tailpath.model.ssp import SSP


def read_gridworld(source: str) -> SSP:
    """A bundled map by its size, or any map by the path of its text."""
    from tailpath.domains import gridworld

    if re.fullmatch(r"\d+x\d+", source):
        return gridworld(source)
    if os.path.exists(source):
        return gridworld(read_text(source))
    raise OptionError(f"gridworld:{source}: neither a bundled map such as 14x16 nor a file with a map")


def read_river(source: str) -> SSP:
    """`ROWSxCOLUMNS`."""
    from tailpath.domains import river

    size = re.fullmatch(r"(\d{1,6})x(\d{1,6})", source)
    if size is None:
        raise OptionError(f"river:{source}: write the size as ROWSxCOLUMNS, e.g. river:30x10")
    return river(rows=int(size[1]), columns=int(size[2]))


def read_textbook(source: str) -> SSP:
    """One of the small problems with known answers."""
    from tailpath.domains.textbook import PROBLEMS

    if source not in PROBLEMS:
        raise OptionError(f"textbook:{source}: no such problem; there are {', '.join(PROBLEMS)}")
    ssp: SSP = PROBLEMS[source]().ssp
    return ssp
