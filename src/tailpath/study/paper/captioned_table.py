"""A table of the page: a caption, headers and rows, as Markdown and as CSV."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailpath.study.store import write_rows


@dataclass(frozen=True)
class CaptionedTable:
    """A table with its caption. Its records all have the same keys, the headers; cells are texts or
    numbers, `None` where there is nothing to say.
    """

    name: str
    caption: str
    records: Sequence[Mapping[str, Any]]

    @property
    def headers(self) -> list[str]:
        return list(self.records[0]) if self.records else []

    @property
    def rows(self) -> list[list[Any]]:
        return [list(record.values()) for record in self.records]

    def markdown(self) -> str:
        cells = [
            self.headers,
            ["---"] * len(self.headers),
            *([_cell(value) for value in row] for row in self.rows),
        ]
        # A bar within a cell, as in |Y|, would end it.
        return "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells
        )

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        path = folder / f"{self.name}.csv"
        write_rows(path, [self.headers, *self.rows])
        return path


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
