"""Reading and writing models: `read` and `write` find the format by suffix or by `scheme:`; each format is a file of this folder.

Every reader hands its numbers to `SSP`, which checks them; a refusal names the file and the line, the archive member or the state at fault.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from tailpath.errors import FormatError, ModelError, OptionError
from tailpath.formats.files import brief
from tailpath.formats.reading import Reading
from tailpath.formats.registry import FORMATS, by_scheme, by_suffix
from tailpath.model.ssp import SSP

#: A scheme has two letters or more, so that `C:\\models\\a.json` is a path.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]+):(.*)", re.DOTALL)


def read(
    source: Any,
    *,
    goal: str | None = None,
    cost: str | None = None,
    step_cost: float | None = None,
    cost_of: Mapping[float, float] | None = None,
    negate_reward: bool = False,
    constants: Mapping[str, Any] | None = None,
    one_based: bool = False,
) -> SSP:
    """Read a model from a path, a `scheme:` string or an object with a table `.P` as Gymnasium's environments have it.

    | option | meaning |
    | --- | --- |
    | `goal` | the label of the goal states (default `goal`) |
    | `cost` | the reward structure that holds the costs (default: the only one) |
    | `step_cost` | every outcome costs this much, whatever its reward |
    | `cost_of` | `{reward: cost}`: what an outcome with exactly this reward costs; wins over `step_cost` |
    | `negate_reward` | the opposite of the sign that the format's owner uses |
    | `constants` | values of the constants that the model leaves open |
    | `one_based` | the states and actions of a table are counted from 1 |

    A format refuses the options it has no use for. `ssp.notes` says what the reader assumed.
    """
    reading = Reading(
        goal, cost, step_cost, {} if cost_of is None else cost_of, negate_reward, {} if constants is None else constants, one_based
    )
    if not isinstance(source, (str, os.PathLike)):
        return _read_object(source, reading)
    place = os.fsdecode(source)
    try:
        match = _SCHEME.fullmatch(place) if isinstance(source, str) else None
        entry = by_scheme(match[1].lower()) if match else None
        if match and entry:
            return entry.read(match[2], reading)
        return by_suffix(place).read(place, reading)
    except ModelError as error:
        raise FormatError(brief(f"{place}: {error}")) from None
    except FormatError as error:
        raise FormatError(brief(str(error))) from None


def write(ssp: SSP, path: str | os.PathLike[str]) -> None:
    """Write a model; the suffix decides the format. What a format cannot hold is refused with its name."""
    place = os.fsdecode(path)
    by_suffix(place).write(ssp, place)


def _read_object(source: Any, reading: Reading) -> SSP:
    if not hasattr(getattr(source, "unwrapped", source), "P"):
        raise OptionError(f"cannot read a {type(source).__name__}: give a path, a scheme string or an object with a table .P")
    gym = next(entry for entry in FORMATS if entry.scheme == "gym")
    return gym.read(source, reading)
