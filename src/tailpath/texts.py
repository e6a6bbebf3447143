"""Numbers and tables for people, in the available width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from textwrap import TextWrapper
from typing import Any


def name(value: Any) -> str:
    """A state or action as people read it: named tuples and dataclasses by field, `x=1, y=2`."""
    if isinstance(value, str):
        return value
    parts = named_parts(value)
    return ", ".join(f"{part}={_inner(own)}" for part, own in parts.items()) or repr(value)


def named_parts(value: Any) -> dict[str, Any]:
    """The fields of a named tuple or a dataclass; of anything else, none."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(zip(getattr(value, "_fields", ()), value)) if isinstance(value, tuple) else {}


def _inner(value: Any) -> str:
    return f"({name(value)})" if named_parts(value) else name(value)


def count(amount: int, noun: str) -> str:
    """`1 corner`, `2 corners`."""
    return f"{amount} {noun if amount == 1 else noun + 's'}"


def did_you_mean(given: Any, known: Iterable[Any]) -> str:
    """The end of a message, `; did you mean 'home'?`; empty if no name is close."""
    near = get_close_matches(str(given), [str(one) for one in known], 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def with_short_names(text: str) -> str:
    """A message in which long quoted names, such as states of many variables, are shortened."""
    return re.sub(r"(?<!\w)'([^']{50})[^']{24,}([^']{20})'(?!\w)", r"'\1 ... \2'", text)


def number(value: float, digits: int = 6) -> str:
    """A number for people, with this many significant digits."""
    return f"{value + 0.0:.{digits}g}"  # there is no minus in front of 0


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns: what, and its value."""
    lines = list(rows)
    width = max(len(what) for what, _ in lines)
    return "\n".join(f"{what:<{width}}  {value}" for what, value in lines)


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    digits: int = 6,
    width: int | None = None,
    spare: Sequence[str] = (),
) -> str:
    """A plain table: texts to the left, numbers to the right with `digits` significant digits,
    `None` as a dash.

    If it is wider than `width`, its `spare` columns are left out, one after the other, and named
    below. If that is not enough, every row is a block of lines.
    """
    cells = [list(row) for row in rows]
    for gone in range(len(spare) + 1):
        kept = [k for k, header in enumerate(headers) if header not in spare[:gone]]
        lines = _lines(
            [headers[k] for k in kept], [[row[k] for k in kept] for row in cells], digits
        )
        if width is None or max(map(len, lines)) <= width:
            left_out = [f"no room for {', '.join(spare[:gone])}"] if gone else []
            return "\n".join([*lines, *left_out])
    return "\n\n".join(
        pairs([(header, _cell(value, digits)) for header, value in zip(headers, row)])
        for row in cells
    )


def _lines(headers: Sequence[str], rows: Sequence[Sequence[Any]], digits: int) -> list[str]:
    cells = [list(headers)] + [[_cell(value, digits) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    sides = [">" if right else "<" for right in _numeric(headers, rows)]
    lines = [
        "  ".join(f"{cell:{s}{w}}" for cell, s, w in zip(row, sides, widths)).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return lines


def _numeric(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[bool]:
    """Which columns hold no text: they are aligned to the right."""
    return [
        all(isinstance(row[k], (int, float, type(None))) for row in rows)
        for k in range(len(headers))
    ]


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return "-"
    return number(value, digits) if isinstance(value, float) else name(value)


@dataclass(frozen=True)
class Table:
    """A part of how a result prints: rows under headers, with a title above, or, without headers,
    pairs of what and value. If there is no room, its `spare` columns are left out in this order.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    spare: Sequence[str] = ()

    def in_use(self) -> Table:
        """Without columns in which all cells are empty texts; a table without rows keeps all."""
        used = [
            k
            for k in range(len(self.headers))
            if not self.rows or any(row[k] != "" for row in self.rows)
        ]
        return Table(
            [self.headers[k] for k in used],
            [[row[k] for k in used] for row in self.rows],
            self.title,
            self.spare,
        )

    def as_text(self, width: int | None = None) -> str:
        """The table in the width there is."""
        if self.headers:
            body = table(self.headers, self.rows, width=width, spare=self.spare)
        else:
            body = pairs([(what, _cell(value, 6)) for what, value in self.rows])
        return f"{self.title}\n{body}" if self.title else body


#: How a result prints: tables, and sentences between them.
Content = Sequence[Table | str]


def as_text(content: Content, width: int | None = None) -> str:
    """Tables and sentences as people read them, one below the other."""
    return "\n\n".join(
        part.as_text(width) if isinstance(part, Table) else _wrapped(part, width)
        for part in content
    )


def fitted(text: str, width: int | None) -> str:
    """A text whose sentences are wrapped to the width; tables, and pairs of what and value, stay as
    they are.
    """
    parts = text.split("\n\n")
    return "\n\n".join(part if "  " in part else _wrapped(part, width) for part in parts)


def _wrapped(text: str, width: int | None) -> str:
    """Sentences in the width there is; long words stay whole, so that they can be copied."""
    if width is None:
        return text
    wrap = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap.fill(line) for line in text.splitlines())
