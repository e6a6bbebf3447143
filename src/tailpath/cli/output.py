"""Results on standard output, a record for programs and a text for people; and pictures on disk."""

from __future__ import annotations

import codecs
import functools
import io
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from tailpath import texts
from tailpath.cli.application import in_colour, printable
from tailpath.cli.common import under
from tailpath.formats.files import write_bytes
from tailpath.model.ends import GAINS
from tailpath.progress import end_line
from tailpath.texts import name, number

json_option = under(
    "Output",
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help='Print JSON for programs; infinite numbers are the string "inf".',
    ),
)

#: The lines of a result that show the optimum: in bold on a terminal.
OPTIMUM = re.compile(r"^(least .*|\S+ +optimum .*)$", re.MULTILINE)


def reported(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flag `--json`; it returns a record for programs and a text for people, of
    which one is printed.
    """

    @functools.wraps(command)
    def printed(*args: Any, as_json: bool, **given: Any) -> None:
        record, text = command(*args, **given)
        print_result(record, text, as_json)

    return json_option(printed)


def print_result(record: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print a result: the record for programs, or the text for people."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if as_json:
        ascii_only = codecs.lookup(encoding).name != "utf-8"
        text = json.dumps(json_types(record), indent=2, allow_nan=False, ensure_ascii=ascii_only)
    else:
        text = texts.fitted(text, terminal_width())
    end_line()
    # Characters that the terminal does not have are escaped.
    text = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    if not as_json and in_colour(sys.stdout):
        text = OPTIMUM.sub(lambda found: click.style(found[0], bold=True), text)
    click.echo(text)


def json_types(value: Any) -> Any:
    """The value in JSON's own types: infinities and NaN as strings, fractions as "p/q", tuples and
    arrays as lists.
    """
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else name(key): json_types(entry)
            for key, entry in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_types(entry) for entry in value]
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return json_types(value.tolist())
    plain = math.isfinite(value) if isinstance(value, float) else isinstance(value, (str, int))
    return value if plain or value is None else str(value)


def some(values: Sequence[Any], most: int = 8) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(name(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, and {len(values) - most} more"


def terminal_width() -> int | None:
    """The width that a table may take: that of the terminal, if standard output is one. In a file
    or a pipe it is unlimited; `COLUMNS` is often set there by the calling program.
    """
    seen = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if seen else None


def fitted_table(headers: Sequence[str], rows: Iterable[Sequence[Any]], digits: int = 6) -> str:
    return texts.table(headers, rows, digits, terminal_width())


def with_gains(
    text: str, ssp: Any, mean: float | None, costs: Any = None, alpha: float | None = None
) -> str:
    """A text, and, if rewards were read as costs, a sentence with its numbers as gains."""
    if GAINS not in ssp.notes or mean is None:
        return text
    gains = f"all together {number(0.0 - mean)} on average"
    if costs is not None and alpha is not None and alpha < 1:
        worst, others = number(0.0 - costs.cvar(alpha)), number(0.0 - costs.var(alpha))
        tail = f"the worst {number(100 * alpha)} % of runs win at least {worst} on average"
        gains = f"{tail}, all others at least {others} each, {gains}"
    return f"{text}\n\nin gains, where a cost is minus a gain: {gains}"


#: The result of a command that is `reported`: the record, and the text.
Output = tuple[dict[str, Any], str]


def save_picture(axes: Any, path: str) -> None:
    """Save the figure of these matplotlib Axes; the suffix decides the format."""
    content = io.BytesIO()
    kind = os.path.splitext(path)[1].removeprefix(".").lower()
    axes.figure.savefig(content, format=kind)
    write_bytes(path, content.getvalue())
