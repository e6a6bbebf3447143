"""Long tables, `.csv` and `.parquet`: one row per outcome, with our own columns or as craam,
MDPs.jl and RiskMDPs.jl keep their models. `docs/formats.md` says what the columns are, and what is
assumed where one is missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from tailpath.errors import FormatError, TailpathWarning
from tailpath.formats.files import write_bytes
from tailpath.formats.outcomes import cost_rule, model_of
from tailpath.formats.registry import Reading
from tailpath.formats.table_text import ArrowTable, TextTable, encode
from tailpath.formats.writing import (
    Block,
    blocks,
    encoded,
    formatted,
    joined_columns,
    probability_columns,
    text_column,
)
from tailpath.graph import first_of
from tailpath.model.columns import has_intervals
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import SSP
from tailpath.model.tables import outcomes_of_table

#: The header of what is written; the words of craam, which other tools know.
COLUMNS = ("idstatefrom", "idaction", "idstateto")
#: How surely all intervals of counts hold, where nothing is said.
CONFIDENCE = 0.95


def read(path: str, reading: Reading) -> SSP | IntervalSSP:
    is_parquet = path.lower().endswith(".parquet")
    table = ArrowTable(path, reading) if is_parquet else TextTable(path, reading)
    chosen, is_log = reading.table_columns(), reading.confidence is not None
    rows, fields, counted = outcomes_of_table(
        table,
        reading.start,
        reading.goals or None,
        chosen,
        intervals=is_log or has_intervals(table.names, chosen),
        rule=partial(cost_rule, reading=reading),
    )
    if is_log and not counted:
        has = "probability" if len(rows.probabilities) == 1 else "low and high"
        raise FormatError(
            f"{path}: confidence is for counts, or a log of steps, and the table has {has};"
            " for a risk at 95 % confidence say alpha = 0.05"
        )
    if not counted:
        return model_of(rows, fields)
    confidence = CONFIDENCE if reading.confidence is None else reading.confidence
    with warnings.catch_warnings():  # its notes say the same
        warnings.simplefilter("ignore", TailpathWarning)
        return model_of(rows, fields, confidence)


def write(model: SSP | IntervalSSP, path: str) -> None:
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
    write_bytes(path, _pieces(model))


def _pieces(model: SSP | IntervalSSP) -> Iterator[bytes]:
    """The text, some rows at a time. The start comes first, since that is how a reader knows it."""
    ssp, probabilities = underlying_ssp(model), probability_columns(model)
    state = text_column(_cell(encode(state)) for state in ssp.states)

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
    for states in (block.states for block in blocks(ssp)):
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
