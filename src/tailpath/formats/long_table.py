"""Long tables, `.csv` and `.parquet`: one row per outcome, with our own columns or as craam,
MDPs.jl and RiskMDPs.jl keep their models. `docs/formats.md` says what the columns are, and what is
assumed where one is missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import compress
from typing import Any

import numpy as np

from tailpath.errors import FormatError, TailpathWarning
from tailpath.formats.files import write_bytes
from tailpath.formats.outcomes import CostRule, OutcomeColumns, refuse_improbable
from tailpath.formats.registry import Reading
from tailpath.formats.table_text import LongTable, decode, encode, encode_all
from tailpath.formats.writing import (
    Block,
    blocks,
    encoded,
    formatted,
    joined_columns,
    probability_columns,
    text_column,
)
from tailpath.graph import Array, first_of
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import SSP, Name
from tailpath.model.tables import GAINS, StartAndGoals, start_and_goals
from tailpath.options import Progress
from tailpath.texts import did_you_mean

#: The header of what is written; the words of craam, which other tools know.
COLUMNS = ("idstatefrom", "idaction", "idstateto")
#: How surely all intervals of counts hold, where nothing is said.
CONFIDENCE = 0.95


def read(path: str, reading: Reading) -> SSP | IntervalSSP:
    table = LongTable(path, reading)
    rule = CostRule.from_options(-1 if table.is_reward else 1, reading)
    states, (state, target) = table.states.ordered(table.source, table.target)
    actions, (action,) = table.actions.ordered(table.action)
    costs = rule.apply(table.amount)
    probabilities = tuple(table.probabilities) or (np.ones(len(costs)),)
    rows = OutcomeColumns(state, action, target, costs, probabilities)
    del table.source, table.target, table.action  # a million states fill a gigabyte
    del table.amount, table.probabilities
    is_goal, start, mask, named, notes = _ends(table, rows, states, reading)

    def describe_row(row: int) -> str:
        return (
            f"{table.row_noun} {table.line[row]}: state {states[state[row]]!r}, action"
            f" {actions[action[row]]!r} -> {states[target[row]]!r}"
        )

    _check_probabilities(table, probabilities, path, describe_row)
    if rule.sign < 0 and rule.step_cost is None:
        notes += (GAINS,)
    if not mask.all():
        rows = rows.only(mask)
    if not named.all():
        rows = rows.numbered(np.cumsum(named) - 1)
    fields: dict[str, Any] = {
        "is_goal": is_goal[named],
        "start_index": int(np.count_nonzero(named[:start])),
        "states": states if named.all() else list(compress(states, named)),
        "actions": actions,
        "exact_unit": table.exact_unit(rows.cost) if rule == CostRule(1, None, {}) else None,
        "notes": notes,
    }
    if table.probability_names != ("count",) and (table.probability_names or not table.is_log):
        return rows.model(fields)
    confidence = CONFIDENCE if reading.confidence is None else reading.confidence
    with warnings.catch_warnings():  # its notes say the same
        warnings.simplefilter("ignore", TailpathWarning)
        return rows.model(fields, confidence)


def _ends(
    table: LongTable, rows: OutcomeColumns, states: Sequence[Name], reading: Reading
) -> StartAndGoals:
    goals = [reading.goals] if isinstance(reading.goals, str) else list(reading.goals)
    given = [_number_of(name, states, table.path) for name in goals] or None
    start = None if reading.start is None else _number_of(reading.start, states, table.path)
    return start_and_goals(
        *(rows.state, rows.target, rows.cost != 0, states, start, given, table.marks),
        possible=rows.probabilities[-1] > 0,
    )


def _check_probabilities(
    table: LongTable, probabilities: Sequence[Array], path: str, describe_row: Callable[[int], str]
) -> None:
    if table.is_log and table.probability_names not in ((), ("count",)):
        raise FormatError(
            f"{path}: confidence is for counts, or a log of steps, and the table has"
            f" {' and '.join(table.probability_names)}; for a risk at 95 % confidence say alpha ="
            " 0.05"
        )
    if table.probability_names == ("low", "high"):
        low, high = probabilities
        for row in first_of(~((low >= 0) & (low <= high) & (high <= 1))):
            raise FormatError(
                f"{path}: {describe_row(row)} has the interval [{low[row]:g}, {high[row]:g}], which"
                " is not one of probabilities"
            )
    elif table.probability_names == ("count",):
        count = probabilities[0]
        for row in first_of(~((count >= 0) & (count == np.floor(count)))):
            raise FormatError(
                f"{path}: {describe_row(row)} has count {count[row]:g}, which is not a whole"
                " number of 0 or more"
            )
    else:
        refuse_improbable(probabilities[0], path, describe_row)


def _number_of(given: Any, states: Sequence[Name], path: str) -> int:
    """The number of a state given by its name, or by what stands for it in the file."""
    for name in (given, decode(given.strip(), path)) if isinstance(given, str) else (given,):
        if name in states:
            return states.index(name)
    raise FormatError(f"{path}: the table has no state {given!r}{did_you_mean(given, states)}")


def write(model: SSP | IntervalSSP, path: str, progress: Progress | None = None) -> None:
    """Write a long table with costs. A table has no place for geometry and notes, and none for
    goals that nothing leads to.
    """
    ssp = underlying_ssp(model)
    if ssp.is_goal[ssp.start_index]:
        raise FormatError(f"{path}: the start is a goal, so no row would name it")
    entered = np.zeros(ssp.n_states, dtype=np.bool_)
    entered[ssp.outcome_target] = True
    for goal in first_of(ssp.is_goal & ~entered):
        raise FormatError(
            f"{path}: nothing leads to the goal {ssp.states[goal]!r}, so no row would name it;"
            " write .json or .npz"
        )
    write_bytes(path, _pieces(model, progress))


def _pieces(model: SSP | IntervalSSP, progress: Progress | None) -> Iterator[bytes]:
    """The text, some rows at a time. The start comes first, since that is how a reader knows it."""
    ssp, probabilities = underlying_ssp(model), probability_columns(model)
    state = text_column(map(_cell, encode_all(ssp.states)))

    def rows(states: range) -> bytes:
        block = Block(ssp, states)
        return joined_columns(
            block.sources(state),
            block.actions(lambda action: f",{_cell(encode(ssp.actions[action]))},"),
            block.targets(state),
            *(formatted(block.of_outcomes(p), ",{!r}".format) for p in probabilities.values()),
            block.costs(lambda cost: f",{_cost_text(ssp, cost)}\n"),
        )

    start = ssp.start_index
    yield encoded(f"{','.join((*COLUMNS, *probabilities, 'cost'))}\n")
    yield rows(range(start, start + 1))
    for states in (block.states for block in blocks(ssp, progress)):
        first, last = np.clip([start, start + 1], states.start, states.stop).tolist()
        yield rows(range(states.start, first))
        yield rows(range(last, states.stop))


def _cell(text: str) -> str:
    """A text as a cell: in quotes where it needs them."""
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def _cost_text(ssp: SSP, cost: float) -> str:
    """The cost as a decimal, or as a fraction where the model knows it more exactly than a decimal
    can.
    """
    if ssp.exact_unit is not None:
        exact = round(Fraction(cost) / ssp.exact_unit) * ssp.exact_unit
        if exact != as_fraction(cost):
            return f"{exact.numerator}/{exact.denominator}"
    return repr(cost)
