"""Models in the PRISM language (`.nm`, `.pm`, `.prism`) and in JANI (`.jani`), built by Storm
through the optional package `stormpy`.

Storm explores the states, in a process of its own with limits of time, memory and states
(`storm_worker.py`); the model it builds is handed over as UMB, without loss, and read like any
other UMB file. `docs/formats.md` says what is refused, and why.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tailpath.errors import FormatError, OptionError
from tailpath.formats.files import brief, read_bytes, read_text, shorten
from tailpath.formats.labelled import DEFAULT_GOAL, to_ssp
from tailpath.formats.outcomes import cost_rule
from tailpath.formats.registry import Reading
from tailpath.formats.umb import UmbReader
from tailpath.registers import folder_of

_CONSTANT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE = re.compile(r"[A-Za-z0-9_.+/-]+")
_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "storm_worker.py")


@dataclass(frozen=True)
class StormLimits:
    """Limits for Storm: seconds by the clock, bytes of memory, states."""

    seconds: float = 900.0
    bytes: int = 4 * 2**30
    states: int = 20_000_000


LIMITS = StormLimits()


def read(path: str, reading: Reading, limits: StormLimits = LIMITS) -> Any:
    """Read a program in the PRISM language, or a JANI model; one of its properties may say which
    are goals, and what costs.
    """
    cost_rule(1, reading)  # wrong options are refused before Storm starts
    folder_of("stormpy", "storm")
    read_text(path)  # for our own message if there is no such file, or no text in it
    goal = reading.goal
    if goal is None and reading.property is None:
        goal = DEFAULT_GOAL
    with tempfile.TemporaryDirectory(prefix="tailpath-") as folder:
        request = {
            "path": os.path.abspath(path),
            "constants": _definitions(reading.constants),
            "expressions": [text for text in (goal, reading.start) if isinstance(text, str)],
            "property": reading.property,
            "bytes": limits.bytes,
            "states": limits.states,
            "folder": folder,
        }
        answer = _ask(path, request, limits)
        if "missing" in answer:
            names = ", ".join(answer["missing"])
            raise FormatError(
                f"{path}: give the constants {names} a value with --const NAME=VALUE (constants=)"
            )
        if "error" in answer:
            raise FormatError(f"{path}{in_our_words(answer['error'])}")
        model = UmbReader(path, read_bytes(os.path.join(folder, "model.umb"))).model()
    names, chosen = answer["names"], answer["property"]
    if len(set(names)) == len(names) == model.n_states:
        model = replace(model, states=tuple(names))

    def labelled(text: Any) -> Any:
        """The label that Storm gave to a condition that is not a label itself."""
        label = answer["labels"].get(text) if isinstance(text, str) else None
        return text if text in model.labels or label not in model.labels else label

    known = answer["properties"]
    if reading.goal is None and not chosen and DEFAULT_GOAL not in model.labels and known:
        message = (
            f"{path}: no label {DEFAULT_GOAL!r}; choose goal and cost with --property NAME"
            f" (property=) among: {', '.join(known)}; or the goal with --goal LABEL (goal=) among:"
            f" {', '.join(model.labels)}"
        )
        raise FormatError(brief(message))
    reading = replace(
        reading,
        goal=labelled(goal or chosen["goal"]),
        start=labelled(reading.start),
        cost=reading.cost or chosen.get("cost"),
    )
    return to_ssp(model, reading, [_property_note(chosen)] if chosen else [])


def _property_note(parts: Mapping[str, str]) -> str:
    """The formula of a property, and how to ask for its bound, which is not part of the model."""
    ask = ""
    if parts["limit"]:
        ask = f"--deadline {parts['limit']}" if parts["paid"] else f"--within {parts['limit']}"
    elif parts["bound"] and parts["formula"].startswith("R"):
        ask = f"--subject-to 'mean {parts['bound']}'"
    largest = re.match(r'R(\[exp\])?(\{"[^"]*"\})?max', parts["formula"])
    ways = {"bound": ask, "largest value": largest and "--maximise (sense='max')"}
    hints = [f"; for its {what} use {way}" for what, way in ways.items() if way]
    return f"the property is {parts['formula']}" + "".join(hints)


#: Storm's messages, and our replacements, which follow the path of the file.
_WORDS = (
    (
        r"Parsing error at (\d+):(\d+): +expecting (.*?), here: (.*?)[ ^]*",
        r":\1: expected \3 at column \2: \4",
    ),
    (r"Error in .*?, line (\d+): (.*)", r":\1: \2"),
    (r".*unknown undefined constant '(.*)'\.?", r": the model has no constant \1 without a value"),
    (
        r".*already defined constant '(.*)'\.?",
        r": the already defined constant '\1' cannot be given a value",
    ),
    (r"The input model is a (\w+),.*", r": the model is a \1; only MDPs and DTMCs are read"),
    (r"std::exception", r": Storm cannot read it and gives no reason; is every variable declared?"),
    (r".*single initial state.*", r": the model has no initial state"),
    (
        r".*Transition rewards are not supported.*",
        r": a reward depends on the destination; Storm can only average such rewards, which would"
        r" change the risk",
    ),
)


def in_our_words(text: str) -> str:
    """Storm's error in our words; it follows the path of the file."""
    text = re.sub(r"^\w+(Exception|Error): ", "", text)
    for pattern, words in _WORDS:
        found = re.fullmatch(pattern, text)
        if found is not None:
            return found.expand(words)
    return f": {text}"


def _ask(path: str, request: Mapping[str, Any], limits: StormLimits) -> dict[str, Any]:
    """The answer of the worker; a crash, a hang and a lack of memory become one clear line."""
    # -P keeps the folder of the script, and the working directory, off the path of imports.
    command = [sys.executable, "-P", _WORKER]
    path_name, printed = os.path.join(request["folder"], "answer.json"), b""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as worker:
        assert worker.stdin is not None and worker.stderr is not None
        try:
            worker.stdin.write(json.dumps(request).encode() + b"\n")
            worker.stdin.flush()
            code = worker.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise FormatError(
                f"{path}: Storm did not finish this model within {limits.seconds:g} s"
            ) from None
        except BrokenPipeError:  # it ended before it was asked
            code = worker.wait()
        finally:
            with suppress(BrokenPipeError):
                worker.stdin.close()  # which tells it to end, if it has not
            printed = worker.stderr.read()
    if code == 0 and os.path.exists(path_name):
        with open(path_name, encoding="utf-8") as stream:
            answer: dict[str, Any] = json.load(stream)
        if answer.get("error") in ("not enough memory", "std::bad_alloc"):
            raise FormatError(
                f"{path}: Storm needs more than {limits.bytes / 2**30:.3g} GiB for this model"
            )
        return answer
    if code < 0 or code > 128:
        raise FormatError(
            f"{path}: Storm crashed on this model (signal {-code if code < 0 else code - 128})"
        )
    last = printed.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise FormatError(f"{path}: Storm could not be run: {shorten(last) or f'exit code {code}'}")


def _definitions(constants: Mapping[str, Any]) -> str:
    """`NAME=VALUE,...` as Storm takes it."""
    parts = []
    for name, value in constants.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if not _CONSTANT.fullmatch(str(name)) or not _VALUE.fullmatch(text):
            raise OptionError(f"constants: {name}={value} is not a constant with a value")
        parts.append(f"{name}={text}")
    return ",".join(parts)
