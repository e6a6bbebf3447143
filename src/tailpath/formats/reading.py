"""The options of `read`, declared once: what a format may be told besides its source.

Each field of `Reading` is a `Flag`: its metadata are the flag of the command line with the word
for its value, and its line of help. A row of the registry names the options that its format takes,
and the command line builds its flags from the same fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tailpath.errors import OptionError
from tailpath.options import Flag, Progress


def _option(default: Any, flag: str, word: str, text: str) -> Any:
    metadata = {
        "kind": float if word in ("C", "P") else str if word else bool,
        "default": None,
        "help": text,
        "word": word,
        "flag": flag,
        "several": default in (dict, ()),
    }
    return (
        field(default_factory=dict, metadata=metadata)
        if default is dict
        else field(default=default, metadata=metadata)
    )


@dataclass(frozen=True)
class Reading:
    """The options as given; a field at its default was not given.

    `progress`, told how far the reading has come, is no option of a format.
    """

    goal: str | None = _option(
        None,
        "--goal",
        "LABEL",
        "Label or condition of the goals (PRISM, JANI); in Gymnasium best, all or a final reward.",
    )
    cost: str | None = _option(
        None, "--cost", "NAME", "Reward structure, or column of a table, that holds the costs."
    )
    step_cost: float | None = _option(
        None, "--step-cost", "C", "Every outcome costs C, whatever its reward."
    )
    cost_of: Mapping[float, float] = _option(
        dict, "--cost-of", "R=C", "An outcome with reward R costs C (repeatable)."
    )
    negate_reward: bool = _option(
        False, "--negate-reward", "", "Take the opposite of the format's own sign of rewards."
    )
    rewards: bool = _option(
        False,
        "--rewards",
        "",
        "The numbers are gains, whatever the format calls them: costs are minus these.",
    )
    constants: Mapping[str, Any] = _option(
        dict, "--const", "N=V", "Value V of the constant N (repeatable)."
    )
    start: str | int | tuple[Any, ...] | None = _option(
        None, "--start", "STATE", "State, label or condition where runs begin."
    )
    goals: Iterable[Any] = _option((), "--goals", "STATES", "Goal states of a table (repeatable).")
    one_based: bool = _option(
        False, "--one-based", "", "States and actions of a table are counted from 1."
    )
    columns: Mapping[str, Any] = _option(
        dict, "--column", "N=V", "Column N of a table is called V, as cost=minutes (repeatable)."
    )
    confidence: float | None = _option(
        None,
        "--confidence",
        "P",
        "Of a table of counts, or a log of steps: how surely all intervals hold.",
    )
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name, kind in (
            ("goal", str),
            ("cost", str),
            ("cost_of", Mapping),
            ("constants", Mapping),
            ("columns", Mapping),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise OptionError(
                    f"{name} must be a {'text' if kind is str else 'mapping'}, not {value!r}"
                )

    def table_columns(self) -> dict[str, Any]:
        """The columns of a table that the user names."""
        return {**({} if self.cost is None else {"cost": self.cost}), **self.columns}

    def given(self) -> dict[str, Any]:
        """The options that are not at their default, by name."""
        values = {option.name: getattr(self, option.name) for option in options()}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value is not False and value != {} and value != ()
        }


def options() -> list[Flag]:
    """The options, in the order of the command line's help."""
    return [Flag(each.name, **each.metadata) for each in fields(Reading) if each.metadata]


#: What formats with rewards take, those with labels and reward structures, and tables.
REWARDS = ("step_cost", "cost_of", "negate_reward", "rewards")
LABELLED = ("goal", "cost", "start", *REWARDS)
TABLE = (*REWARDS, "start", "goals", "one_based", "cost", "columns", "confidence")
