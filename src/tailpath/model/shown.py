"""A result shows itself: one mechanism for all of them.

A result says what it shows, tables and sentences in order (`_content`), and the columns it holds
(`_columns`). From these follow what `print` writes, what a notebook shows, a DataFrame and a table
for LaTeX.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tailpath.model.records import Record, data_frame
from tailpath.pictures.notebook import card
from tailpath.texts import Content, Table, as_text

#: Rows of a table for people, unless more are asked for.
MAX_ROWS = 24


class Shown(Record):
    """Base of the results that print as tables."""

    @abstractmethod
    def _content(self, most: int) -> Content:
        """What people read, in tables of about `most` rows."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """All of it, in full, for programs."""

    def _drawn(self) -> Any:
        """The Axes of a picture for the notebook, or None."""
        return None

    def as_text(self, width: int | None = None, most: int = MAX_ROWS) -> str:
        """What `print` shows.

        Parameters
        ----------
        width : int, optional
            Columns of text; by default as many as it takes.
        most : int
            Rows of a table, about.

        Returns
        -------
        str
            Tables, and sentences about them.
        """
        return as_text(self._content(most), width)

    def to_pandas(self) -> Any:
        """All rows as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            In full digits, and with all rows.

        Raises
        ------
        OptionError
            If pandas is not installed.
        """
        return data_frame(self._columns())

    def to_latex(self) -> str:
        """The first table, or else the facts, for LaTeX, which needs no package for it.

        Returns
        -------
        str
            A `tabular`, with the digits of the printed table.
        """
        tables = [part for part in self._content(MAX_ROWS) if isinstance(part, Table)]
        facts = Table(("what", "value"), tables[0].rows)
        return next((table for table in tables if table.headers), facts).as_latex()

    def __str__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return card(repr(self).strip("<>"), self._content(MAX_ROWS), self._drawn())
