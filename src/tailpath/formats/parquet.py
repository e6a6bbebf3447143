"""Parquet tables, by pyarrow: columns become texts, which are understood as those of CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tailpath.errors import FormatError, OptionError
from tailpath.formats.bulk import arrow
from tailpath.formats.files import budget, read_bytes, shorten


def read_parquet(path: str) -> Any:
    """The table of a file, as pyarrow has it."""
    try:
        pyarrow, reader = arrow(), arrow(".parquet")
    except ImportError:
        remedy = "pip install 'tailpath[parquet]'"
        raise OptionError(f"{path}: Parquet tables need pyarrow: {remedy}") from None
    data = read_bytes(path)
    if not data:
        raise FormatError(f"{path}: the file is empty")
    try:
        file = reader.ParquetFile(pyarrow.BufferReader(data))
        shape = file.metadata
        groups = map(shape.row_group, range(shape.num_row_groups))
        # A run of equal cells takes no room in the file, but it does in memory.
        cells = 8 * shape.num_rows * shape.num_columns
        size = max(cells, sum(group.total_byte_size for group in groups))
        if size > budget(len(data)):
            deserved = f"more than its {len(data)} bytes justify"
            raise FormatError(f"{path}: unpacks to {size} bytes, {deserved}")
        return file.read(use_threads=False)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"{path}: this is not a Parquet file: {shorten(str(error))}") from None


def texts(path: str, table: Any, positions: Sequence[int]) -> Any:
    """A table of some of the columns, all of them texts. What is null is an empty text."""
    pyarrow, fill_null = arrow(), arrow(".compute").fill_null
    columns = []
    for position in positions:
        column = table.column(position)
        try:
            columns.append(fill_null(column.cast(pyarrow.string()), ""))
        except pyarrow.ArrowException:
            kind = f"{shorten(table.column_names[position])!r} of {shorten(str(column.type))}"
            message = f"{path}: the column {kind} holds neither texts nor numbers"
            raise FormatError(message) from None
    return pyarrow.table(columns, names=[str(position) for position in positions])
