"""Measures and limits from text, as they print: `mean`, `cvar(0.05)`, `0.7 * mean + 0.3 *
cvar(5%)`, `late(35) <= 0.05`.

| text | what it is |
| --- | --- |
| `word(number, ...)` | a measure; `mean` needs no brackets |
| `number * measure`, `a + b`, `a - b` | a sum |
| `measure <= number` | a limit |

Numbers may be written as percentages. Every `Measure` is known by its `word` (`REGISTER` in
`measure.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tailpath.errors import OptionError
from tailpath.risk.measure import REGISTER, Limit, Measure, Sum, parse_number_or_percent
from tailpath.texts import did_you_mean

_TERM = re.compile(
    r"\s*(?P<sign>[+-]?)\s*(?:(?P<factor>[\d.][\d.eE]*(?:[eE][+-]?\d+)?%?)\s*\*)?\s*(?P<word>[A-Za-z_]\w*)\s*(?:\((?P<inside>[^()]*)\))?\s*"
)


def parse(text: Any) -> Measure:
    """A measure from its text; a measure is itself."""
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        raise OptionError(f"a measure is written like 'cvar(0.05)', not {text!r}")
    if text.count("(") != text.count(")"):
        raise OptionError(f"the brackets of {text!r} do not match")
    terms = list(_terms(text))
    return terms[0][1] if len(terms) == 1 and terms[0][0] == 1 else Sum(tuple(terms))


def parse_limit(text: Any) -> Limit:
    """A limit from its text; a limit is itself."""
    if isinstance(text, Limit):
        return text
    sides = re.split(r"<=|≤", text) if isinstance(text, str) else []
    if len(sides) != 2:
        raise OptionError(f"a limit is written like 'late(35) <= 0.05', not {text!r}")
    return parse(sides[0]) <= parse_number_or_percent(sides[1].strip())


def _terms(text: str) -> Iterator[tuple[float, Measure]]:
    position = 0
    while position < len(text) or position == 0:
        match = _TERM.match(text, position)
        if match is None or (position > 0 and not match["sign"]):
            raise OptionError(
                f"cannot read {text[position:].strip() or text!r} as a measure; write for example"
                " 0.7 * mean + 0.3 * cvar(0.05)"
            )
        position, word = match.end(), match["word"].lower()
        measure = REGISTER.find(word)
        if measure is None:
            known = ", ".join(sorted(REGISTER.names()))
            hint = did_you_mean(word, REGISTER.names()) or f"; known are {known}"
            raise OptionError(f"unknown measure {match['word']!r}{hint}")
        words = [part.strip() for part in (match["inside"] or "").split(",") if part.strip()]
        factor = parse_number_or_percent(match["factor"]) if match["factor"] else 1.0
        yield (-factor if match["sign"] == "-" else factor), measure.parsed(words)
