"""Numbers in text files, strict and quick."""

from __future__ import annotations

from tailpath.errors import FormatError
from tailpath.formats.files import parse_number, shorten


class Numbers:
    """Parses the numbers of one file; a model repeats few of them, so each is parsed once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: dict[str, float] = {}
        self._whole: dict[str, int] = {}

    def number(self, text: str, line: int) -> float:
        """A finite decimal or fraction."""
        value = self._known.get(text)
        if value is None:
            value = self._known[text] = parse_number(text.strip(), f"{self.path}:{line}")
        return value

    def whole(self, text: str, line: int) -> int:
        """A whole number, 0 or more; no sign, no underscores, no digits of other scripts."""
        value = self._whole.get(text)
        if value is None:
            digits = text.strip()
            if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
                raise FormatError(f"{self.path}:{line}: {shorten(digits)!r} is no whole number")
            value = self._whole[text] = int(digits)
        return value
