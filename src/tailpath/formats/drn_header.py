"""The header of a DRN file, up to `@model`: it fixes what the body is checked against."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tailpath.errors import FormatError
from tailpath.formats.extras import MARK, Extras
from tailpath.formats.files import shorten
from tailpath.formats.text import TextFile

_LABEL = re.compile(r'\s+|"([^"]+)"(?=["\s]|$)|([^\s"]+)(?=\s|$)')
_SECTIONS = ("@parameters", "@reward_models", "@nr_states", "@nr_choices")

_VALUES = ("double", "rational", "double-interval", "rational-interval")
_INTERVAL = re.compile(r"\[\s*([^,\]]+?)\s*,\s*([^,\]]+?)\s*\]")


class Header:
    """The sections by name, each with its line, and what stands between them."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.sections: dict[str, tuple[str, int]] = {}
        self.placeholders: dict[str, float] = {}
        self.extras = Extras()
        self._read(file.lines())

    def _read(self, lines: Iterator[str]) -> None:
        """Read up to `@model`."""
        for text in lines:
            if text == "@placeholders":
                text = self._read_placeholders(lines)
            if not self.file.is_content(text):
                if text.startswith(f"//{MARK} "):
                    self.extras = self.file.extras()
                continue
            line = self.file.line
            if text == "@model":
                for section in ("@type", "@nr_states"):
                    if section not in self.sections:
                        raise self.error(f"the section {section} is missing")
                return
            if text in _SECTIONS:
                self._add(text, next(lines, ""), line)
            elif text.startswith(("@type:", "@value_type:")):
                name, _, value = text.partition(":")
                self._add(name, value.strip(), line)
            else:
                raise self.error(f"unknown header line {shorten(text)!r}")
        raise self.error("the section @model is missing")

    def _add(self, name: str, value: str, line: int) -> None:
        if name in self.sections:
            raise self.error(f"a second section {name}", line)
        self.sections[name] = (value, line)
        if name == "@type" and value.upper() not in ("MDP", "DTMC"):
            raise self.error(f"the type {shorten(value)!r} is neither MDP nor DTMC", line)
        if name == "@value_type" and value not in _VALUES:
            raise self.error(
                f"the value type {shorten(value)!r} is none of {', '.join(_VALUES)}", line
            )
        if name == "@parameters" and value:
            raise self.error(
                "a model with parameters has no numbers yet: instantiate it first", line
            )

    def _read_placeholders(self, lines: Iterator[str]) -> str:
        """Read `$name : value` up to the next section, which is returned."""
        for text in lines:
            if text.startswith("@"):
                return text
            name, colon, value = text.partition(":")
            if not colon or not name.startswith("$"):
                raise self.error("expected a placeholder '$name : value'")
            self.placeholders[name.strip()] = self.file.number(value)
        return ""

    def value(self, text: str) -> float:
        """A number, or the placeholder that stands for one."""
        if "$" in text:
            if text.strip() not in self.placeholders:
                raise self.error(f"unknown placeholder {shorten(text.strip())!r}")
            return self.placeholders[text.strip()]
        return self.file.number(text)

    def interval(self, text: str) -> tuple[float, float]:
        """The ends of `[low, high]`; a number is both."""
        match = _INTERVAL.fullmatch(text.strip())
        low, high = match.groups() if match else (text, text)
        return self.value(low), self.value(high)

    def default_value_type(self, intervals: bool) -> None:
        """What probabilities are where the header does not say; files of older versions do not."""
        self.sections.setdefault("@value_type", ("double-interval" if intervals else "double", 0))

    @property
    def intervals(self) -> bool:
        """Whether probabilities are intervals."""
        return self.sections.get("@value_type", ("", 0))[0].endswith("-interval")

    def labels(self, text: str) -> Iterator[str]:
        """The labels that stand after a state."""
        position = 0
        while position < len(text):
            label = _LABEL.match(text, position)
            if label is None:
                raise self.error(f"cannot read the labels {shorten(text.strip())!r}")
            position = label.end()
            if label[1] or label[2]:
                yield label[1] or label[2]

    def check_count(self, section: str, found: int) -> None:
        text, self.file.line = self.sections.get(section, (str(found), 0))
        if self.file.integer(text) != found:
            raise self.error(f"{section} says {text.strip()}, the file has {found}")

    @property
    def is_dtmc(self) -> bool:
        return self.sections["@type"][0].upper() == "DTMC"

    def error(self, message: str, line: int | None = None) -> FormatError:
        return self.file.error(message, line)
