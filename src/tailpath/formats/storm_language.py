"""Models in the PRISM language (`.nm`, `.pm`, `.prism`) and in JANI (`.jani`), built by Storm through the optional package `stormpy`.

Storm explores the states; what it built comes over as UMB, without loss, and is read like any other UMB file. A state is named after the
values of its variables. Rewards on single destinations (JANI can have them) are refused: Storm can only replace them by their average over
the destinations, which keeps the mean and changes the risk.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tailpath.errors import FormatError, OptionError
from tailpath.formats.costs import CostRule
from tailpath.formats.files import read_bytes
from tailpath.formats.labelled import to_ssp
from tailpath.formats.reading import Reading
from tailpath.formats.umb import UmbReader
from tailpath.model.ssp import SSP, Name

_CONSTANT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE = re.compile(r"[A-Za-z0-9_.+/-]+")


def read(path: str, reading: Reading) -> SSP:
    """Read a program in the PRISM language, or a JANI model, whose properties are ignored."""
    rule = CostRule.from_options(1, reading)
    try:
        import stormpy
        import stormpy.io
        from stormpy import developer
    except ImportError:
        raise FormatError(f"{path}: models in the PRISM language or JANI need stormpy; install tailpath[storm]") from None
    read_bytes(path)  # for our own words where there is no such file
    given = _definitions(reading.constants)
    with _quiet(developer):
        try:
            program = _parse(stormpy, path)
            if given:
                program, _ = stormpy.io.instantiate_constants(program, given)
        except Exception as error:  # Storm has no common type of errors
            raise FormatError(f"{path}: {_first_lines(error)}") from None
        missing = [constant.name for constant in program.constants if not constant.defined]
        if missing:
            raise FormatError(f"{path}: give the constants {', '.join(missing)} a value with --const NAME=VALUE (constants=)")
        data, names = _build(stormpy, program, path)
    model = UmbReader(path, data).model()
    return to_ssp(replace(model, states=names), reading, rule)


def _parse(stormpy: Any, path: str) -> Any:
    return stormpy.parse_jani_model(path)[0] if path.lower().endswith(".jani") else stormpy.parse_prism_program(path)


def _build(stormpy: Any, program: Any, path: str) -> tuple[bytes, Sequence[Name] | None]:
    """The UMB file that Storm writes of the model, and the names of its states."""
    options = stormpy.BuilderOptions(build_full=True)
    options.set_scale_and_lift_transition_rewards(False)  # never average a reward over destinations
    try:
        model = stormpy.build_model(program, options=options)
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "model.umb")
            stormpy.io.export_to_umb(model, place)
            data = read_bytes(place)
        names = _names(model, program)
    except FormatError:
        raise
    except Exception as error:
        text = _first_lines(error)
        if "Transition rewards are not supported" in text:
            text = "a reward depends on the destination; Storm can only average such rewards, which would change the risk"
        raise FormatError(f"{path}: {text}") from None
    return data, names if len(set(names)) == len(names) else None


def _names(model: Any, program: Any) -> tuple[str, ...]:
    """Names such as `x=1 & ready=true`. Not among them: JANI's transient variables, and locations of automata that have only one."""
    transient = {variable.name for variable in getattr(program, "global_variables", ()) if getattr(variable, "is_transient", False)}
    parts: list[list[str]] = []
    for variable in sorted(model.state_valuations.get_all_variables(), key=lambda variable: variable.index):
        if variable.name in transient:
            continue
        if variable.has_boolean_type():
            values = ["false"] * model.nr_states
            for state in model.state_valuations.get_boolean_values(variable):
                values[state] = "true"
        elif variable.has_integer_type():
            values = [str(value) for value in model.state_valuations.get_int64_values(variable)]
        else:
            continue
        if not (variable.name.startswith("_loc_") and len(set(values)) == 1):
            parts.append([f"{variable.name}={value}" for value in values])
    return tuple(" & ".join(part) for part in zip(*parts))


def _definitions(constants: Mapping[str, Any]) -> str:
    """`NAME=VALUE,...` as Storm takes it."""
    parts = []
    for name, value in constants.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if not _CONSTANT.fullmatch(str(name)) or not _VALUE.fullmatch(text):
            raise OptionError(f"constants: {name}={value} is no constant with a value")
        parts.append(f"{name}={text}")
    return ",".join(parts)


@contextmanager
def _quiet(developer: Any) -> Iterator[None]:
    """Storm logs to standard output, where our results go; its errors reach us as exceptions anyway."""
    level = developer.get_log_level()
    developer.set_log_level(developer.LogLevel.OFF)
    try:
        yield
    finally:
        developer.set_log_level(level)


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
