"""The header of a DRN file, up to `@model`: it fixes what the body is checked against."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tailpath.errors import FormatError
from tailpath.formats.extras import MARK, Extras
from tailpath.formats.files import shorten
from tailpath.formats.text import NumberParser

_LABEL = re.compile(r'\s+|"([^"]+)"(?=["\s]|$)|([^\s"]+)(?=\s|$)')
_SECTIONS = ("@parameters", "@reward_models", "@nr_states", "@nr_choices")

_VALUES = ("double", "rational", "double-interval", "rational-interval")
_INTERVAL = re.compile(r"\[\s*([^,\]]+?)\s*,\s*([^,\]]+?)\s*\]")

Lines = Iterator[tuple[int, str]]


@dataclass
class Header:
    """The sections by name, each with its line, and what stands between them."""

    path: str
    sections: dict[str, tuple[str, int]] = field(default_factory=dict)
    placeholders: dict[str, float] = field(default_factory=dict)
    extras: Extras = field(default_factory=Extras)

    def read(self, lines: Lines) -> int:
        """Read up to `@model`, and return the number of its line."""
        line = 0
        for line, raw in lines:
            text = raw.strip()
            if text == "@placeholders":
                line, text = self._read_placeholders(lines, line)
            if text.startswith(f"//{MARK} "):
                self.extras = Extras.parse(text[len(MARK) + 3 :], f"{self.path}:{line}")
            elif not text or text.startswith("//"):
                continue
            elif text == "@model":
                for section in ("@type", "@nr_states"):
                    if section not in self.sections:
                        raise self.fail(line, f"the section {section} is missing")
                return line
            elif text in _SECTIONS:
                self._add(text, next(lines, (0, ""))[1].strip(), line)
            elif text.startswith(("@type:", "@value_type:")):
                name, _, value = text.partition(":")
                self._add(name, value.strip(), line)
            else:
                raise self.fail(line, f"unknown header line {shorten(text)!r}")
        raise self.fail(line, "the section @model is missing")

    def _add(self, name: str, value: str, line: int) -> None:
        if name in self.sections:
            raise self.fail(line, f"a second section {name}")
        self.sections[name] = (value, line)
        if name == "@type" and value.upper() not in ("MDP", "DTMC"):
            raise self.fail(line, f"the type {shorten(value)!r} is neither MDP nor DTMC")
        if name == "@value_type" and value not in _VALUES:
            raise self.fail(
                line, f"the value type {shorten(value)!r} is none of {', '.join(_VALUES)}"
            )
        if name == "@parameters" and value:
            raise self.fail(
                line, "a model with parameters has no numbers yet: instantiate it first"
            )

    def _read_placeholders(self, lines: Lines, line: int) -> tuple[int, str]:
        """Read `$name : value` up to the next section, whose line is returned."""
        for line, raw in lines:
            text = raw.strip()
            if text.startswith("@"):
                return line, text
            name, colon, value = text.partition(":")
            if not colon or not name.startswith("$"):
                raise self.fail(line, "expected a placeholder '$name : value'")
            self.placeholders[name.strip()] = NumberParser(self.path).number(value, line)
        return line, ""

    def value(self, text: str, line: int) -> float:
        """A number, or the placeholder that stands for one."""
        if "$" in text:
            if text.strip() not in self.placeholders:
                raise self.fail(line, f"unknown placeholder {shorten(text.strip())!r}")
            return self.placeholders[text.strip()]
        return NumberParser(self.path).number(text, line)

    def interval(self, text: str, line: int) -> tuple[float, float]:
        """The ends of `[low, high]`; a number is both."""
        match = _INTERVAL.fullmatch(text.strip())
        if match is None:
            return self.value(text, line), self.value(text, line)
        return self.value(match[1], line), self.value(match[2], line)

    def assume(self, intervals: bool) -> None:
        """What probabilities are where the header does not say; files of older versions do not."""
        self.sections.setdefault("@value_type", ("double-interval" if intervals else "double", 0))

    @property
    def intervals(self) -> bool:
        """Whether probabilities are intervals."""
        return self.sections.get("@value_type", ("", 0))[0].endswith("-interval")

    def labels(self, text: str, line: int) -> Iterator[str]:
        """The labels that stand after a state."""
        position = 0
        while position < len(text):
            label = _LABEL.match(text, position)
            if label is None:
                raise self.fail(line, f"cannot read the labels {shorten(text.strip())!r}")
            position = label.end()
            if label[1] or label[2]:
                yield label[1] or label[2]

    def compare(self, section: str, found: int) -> None:
        text, line = self.sections.get(section, (str(found), 0))
        if NumberParser(self.path).integer(text, line) != found:
            raise self.fail(line, f"{section} says {text.strip()}, the file has {found}")

    @property
    def deterministic(self) -> bool:
        return self.sections["@type"][0].upper() == "DTMC"

    def fail(self, line: int, message: str) -> FormatError:
        return FormatError(f"{self.path}:{line}: {message}")
