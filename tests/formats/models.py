"""Models with everything a format may stumble over, and what it means that two are the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

import tailpath as tp
from tailpath.formats import table_text, text_files
from tailpath.model.ssp import SSP

ARRAYS = (
    "state_choices",
    "choice_outcomes",
    "outcome_target",
    "outcome_probability",
    "outcome_cost",
    "choice_action",
    "is_goal",
)


def differences(a: SSP, b: SSP, *, notes: bool = True) -> list[str]:
    """What distinguishes two models, down to the last bit; names must agree in type as well."""
    found = [name for name in ARRAYS if not np.array_equal(getattr(a, name), getattr(b, name))]
    for name in ("states", "actions"):
        if [typed(x) for x in getattr(a, name)] != [typed(x) for x in getattr(b, name)]:
            found.append(name)
    fields = ("start_index", "exact_unit", "cost_unit", "geometry", *(("notes",) if notes else ()))
    return found + [name for name in fields if getattr(a, name) != getattr(b, name)]


def read_both_ways(path: Any, **options: Any) -> tuple[SSP | str, SSP | str]:
    """The model of a file, or what is said against it: read line by line, and at once."""
    with in_blocks(1):
        by_line = _read(path, **options)
    with in_blocks(2**30):
        return by_line, _read(path, **options)


@contextmanager
def in_blocks(size: int) -> Iterator[None]:
    """While this lasts texts are read in blocks of so many bytes, tables in so many rows."""
    blocks = mock.patch.object(text_files, "BLOCK", size)
    with blocks, mock.patch.object(table_text, "BLOCK_ROWS", size):
        yield


def _read(path: Any, **options: Any) -> SSP | str:
    try:
        return tp.read(path, **options)
    except tp.TailpathError as error:
        return str(error)


def typed(name: Any) -> Any:
    """A name with its type, since 1 == True == 1.0."""
    return (
        (tuple, [typed(part) for part in name]) if isinstance(name, tuple) else (type(name), name)
    )


def outcomes(ssp: SSP) -> dict[Any, list[Any]]:
    """The model by names, whatever the order of its states and actions."""
    rows: dict[Any, list[Any]] = {}
    for outcome in range(ssp.n_outcomes):
        choice = int(ssp.outcome_choice[outcome])
        key = (ssp.states[ssp.choice_state[choice]], ssp.choice_name(choice))
        target = ssp.states[ssp.outcome_target[outcome]]
        rows.setdefault(key, []).append(
            (
                repr(target),
                float(ssp.outcome_probability[outcome]),
                float(ssp.outcome_cost[outcome]),
            )
        )
    return {key: sorted(row) for key, row in rows.items()}


def many_numbers(n_states: int) -> SSP:
    """Two choices of four outcomes in every state, with probabilities that all differ and need all
    their digits.
    """
    rng = np.random.default_rng(3)
    n_choices = 2 * (n_states - 1)
    # Four different successors, or equal outcomes would be merged.
    target = (rng.integers(0, n_states, size=(n_choices, 1)) + np.arange(4) * 7) % n_states
    probability = rng.random((n_choices, 4)) + 0.1
    return SSP(
        state_choices=np.append(2 * np.arange(n_states), n_choices),
        choice_outcomes=4 * np.arange(n_choices + 1),
        outcome_target=target.ravel(),
        outcome_probability=(probability / probability.sum(axis=1, keepdims=True)).ravel(),
        outcome_cost=np.repeat(rng.integers(1, 9, size=n_choices) / 2, 4),
        choice_action=np.tile(np.arange(2), n_states - 1),
        is_goal=np.arange(n_states) == n_states - 1,
        start_index=0,
        states=range(n_states),
        actions=range(2),
    )


def awkward() -> SSP:
    """Names of all kinds, costs per outcome, parallel outcomes, thirds, a free outcome, a goal that
    nothing leads to, notes.
    """
    third = Fraction(1, 3)
    rows = [
        ((0, 1), "a", 1, third, third),
        ((0, 1), "a", "1", third, 0),
        ((0, 1), "a", 1, third, 5),
        (1, None, "g", 1.0, 2),
        (1, "go there", (0, 1), 0.5, 1),
        (1, "go there", "g", 0.5, 1),
        ("1", (1, "1", (2,)), "g", 1, 0.5),
        ("1", '[x] "y", z', 2.5, 1, 0.25),
        (2.5, "2.5", "g", 1, 7),
        (2.5, 2.5, None, 1, 7),
        (None, 7, "g", 1, 7),
        ("1", "", "ünïcödé\n", 1, 0.75),
        ("ünïcödé\n", "__NOLABEL__", "g", 1, 1e-3),
        ("ünïcödé\n", "\ud800", "\udfff", 1, 1e-3),
        ("\udfff", "\u2028 \x85", "g", 1, 1e-3),
    ]
    return SSP.from_outcomes(
        rows, start=(0, 1), goals=["g", ("x", 2.5)], notes=("a note", "ünïcödé")
    )


def by_choice() -> SSP:
    """Costs that depend on the choice only, numbers as names, actions that not every state has."""
    rows = [
        (0, "left", 1, 0.25, 1.5),
        (0, "left", 2, 0.75, 1.5),
        (0, "right", 3, 1.0, 0),
        (1, "right", 0, 0.1, 2),
        (1, "right", 3, 0.9, 2),
        (2, "left", 2, 0.5, 0.5),
        (2, "left", 3, 0.5, 0.5),
    ]
    return SSP.from_outcomes(rows, start=1, goals=[3])


def samples() -> dict[str, SSP]:
    return {
        "awkward": awkward(),
        "by choice": by_choice(),
        "gridworld": tp.read("gridworld:5x5"),
        "river": tp.read("river:6x4"),
        "lottery": tp.read("textbook:lottery"),
        "counter-example": tp.read("textbook:counter-example"),
        "start is goal": SSP.from_outcomes([("b", "x", "a", 1, 1)], start="a", goals=["a"]),
        "only a goal": SSP.from_outcomes([], start="a", goals=["a"]),
        "range": SSP.from_arrays(
            np.array([[[0.5, 0.5], [0.0, 1.0]]]), costs=np.array([3.0, 0.0]), start=0, goals=[1]
        ),
    }
