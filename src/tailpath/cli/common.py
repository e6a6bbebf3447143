"""What the commands share: the MODEL argument with its options, alpha, and output for people and for programs."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from tailpath.cli.application import say

if TYPE_CHECKING:
    from tailpath import Policy
    from tailpath.model.ssp import SSP

Command = Callable[..., Any]

# ---------------------------------------------------------------------- arguments and options


def alpha(text: str) -> float:
    """The type of an option that takes the mass of the worst tail: a number in (0, 1]."""
    value = _float(text)
    if not 0 < value <= 1:
        raise click.BadParameter(f"{text} does not lie in (0, 1]")
    return value


def reward_and_cost(text: str) -> tuple[float, float]:
    """The type of an option that takes two numbers, `R=C`."""
    reward, equals, cost = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not of the form R=C")
    return _float(reward), _float(cost)


def name_and_value(text: str) -> tuple[str, str]:
    """The type of an option that takes `N=V`."""
    left, equals, right = (part.strip() for part in text.partition("="))
    if not (left and equals and right):
        raise click.BadParameter(f"{text!r} is not of the form N=V")
    return left, right


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no number") from None


MODEL_OPTIONS = (
    click.option("--goal", metavar="LABEL", help="Label of the goal states."),
    click.option("--cost", metavar="NAME", help="Reward structure that holds the costs."),
    click.option("--step-cost", type=float, metavar="C", help="Every outcome costs C, whatever its reward."),
    click.option("--cost-of", type=reward_and_cost, multiple=True, metavar="R=C", help="An outcome with reward R costs C (repeatable)."),
    click.option("--negate-reward", is_flag=True, help="Take the opposite of the format's own sign of rewards."),
    click.option("--const", type=name_and_value, multiple=True, metavar="N=V", help="Value V of the constant N (repeatable)."),
    click.option("--one-based", is_flag=True, help="States and actions of a table are counted from 1."),
)

json_option = click.option("--json", "as_json", is_flag=True, help='Print JSON for programs; infinite numbers are the string "inf".')


def takes_model(command: Command) -> Command:
    """Give a command the argument MODEL and its options; it is called with `ssp`, the model read, and `source`, its name as typed.

    What the reader assumed (`ssp.notes`) is said on standard error.
    """

    @functools.wraps(command)
    def with_model(*args: Any, model: str, **options: Any) -> Any:
        reading = {name: options.pop(name) for name in ("goal", "cost", "step_cost", "cost_of", "negate_reward", "const", "one_based")}
        return command(*args, ssp=read_model(model, **reading), source=model, **options)

    for option in reversed(MODEL_OPTIONS):
        with_model = option(with_model)
    return click.argument("model")(with_model)


def read_model(model: str, *, cost_of: Iterable[tuple[float, float]] = (), const: Iterable[tuple[str, str]] = (), **options: Any) -> SSP:
    """Read a model as the command line names it, and repeat its notes on standard error."""
    import tailpath

    ssp = tailpath.read(model, cost_of=dict(cost_of), constants=dict(const), **options)
    for note in ssp.notes:
        say("note", note)
    return ssp


def read_policy(policy: str, ssp: SSP) -> Policy:
    """Read a policy as the command line names it: a file, or `expected` for the one with the least expected cost."""
    import tailpath

    return tailpath.solve_expected(ssp).policy if policy == "expected" else tailpath.read_policy(policy, ssp)


# ---------------------------------------------------------------------- output


def show(record: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print a result: the record for programs, or the text for people."""
    click.echo(json.dumps(plain(record), indent=2, allow_nan=False, ensure_ascii=False) if as_json else text)


def plain(value: Any) -> Any:
    """The value in JSON's own types: infinities and NaN as strings, fractions as "p/q", tuples and arrays as lists."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else name(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Fraction):
        return str(value)
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(entry) for entry in value]
    return str(value)


def name(value: Any) -> str:
    """A state or action as people read it."""
    return value if isinstance(value, str) else repr(value)


def some(values: Sequence[Any], most: int = 8) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(name(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, and {len(values) - most} more"


def number(value: float, digits: int = 6) -> str:
    """A number for people, with this many significant digits."""
    return f"{value:.{digits}g}"


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns: what, and its value."""
    kept = list(rows)
    width = max(len(what) for what, _ in kept)
    return "\n".join(f"{what:<{width}}  {value}" for what, value in kept)


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], digits: int = 6) -> str:
    """A plain table: texts to the left, numbers to the right with `digits` significant digits, `None` as a dash."""
    kept = [list(row) for row in rows]
    right = [all(isinstance(row[k], (int, float, type(None))) for row in kept) for k in range(len(headers))]
    cells = [list(headers)] + [[_cell(value, digits) for value in row] for row in kept]
    widths = [max(len(row[k]) for row in cells) for k in range(len(headers))]
    lines = ["  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right)).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(lines)


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return "-"
    return number(value, digits) if isinstance(value, float) else name(value)
