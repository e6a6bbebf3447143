"""Long tables, `.csv` and `.parquet`: one row per outcome, with our own columns or those of craam,
MDPs.jl and RiskMDPs.jl. `docs/formats.md` lists the columns, and what is assumed if one is missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial

import numpy as np

from tailpath.errors import FormatError, TailpathWarning
from tailpath.formats.files import write_bytes
from tailpath.formats.outcomes import cost_rule, model_of
from tailpath.formats.registry import Reading
from tailpath.formats.table_text import ArrowTable, TextTable, encode
from tailpath.formats.writing import (
    in_blocks,
    in_turn,
    probability_columns,
)
from tailpath.graph import Array, first_of
from tailpath.model.columns import has_intervals
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import SSP
from tailpath.model.tables import outcomes_of_table

#: The header of tables that are written; craam's names, which other tools know.
COLUMNS = ("idstatefrom", "idaction", "idstateto")
#: The default confidence that all intervals of counts hold.
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
            " for risk at 95 % confidence use alpha = 0.05"
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
    write_bytes(path, in_blocks(_pieces(model)))


def _pieces(model: SSP | IntervalSSP) -> Iterator[str]:
    """The lines. The start comes first, since that is how a reader knows it."""
    ssp, probabilities = underlying_ssp(model), probability_columns(model)
    yield f"{','.join((*COLUMNS, *probabilities, 'cost'))}\n"
    state = [_cell(encode(name)) for name in ssp.states]
    action = cache(lambda a: _cell(encode(ssp.actions[a])))
    cost_text = cache(partial(_cost_text, ssp))
    choice = ssp.outcome_choice
    source = ssp.choice_state[choice]
    order = np.argsort(source != ssp.start_index, kind="stable")
    columns: list[Array] = [source, ssp.choice_action[choice], ssp.outcome_target]
    columns += [ssp.outcome_cost, *probabilities.values()]
    for s, a, t, cost, *ends in in_turn(*(column[order] for column in columns)):
        yield f"{state[s]},{action(a)},{state[t]},{','.join(map(repr, ends))},{cost_text(cost)}\n"


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
