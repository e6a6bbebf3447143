"""Long tables, `.csv`: one row per outcome, with our own columns or as craam, MDPs.jl and RiskMDPs.jl keep their models.

    state,action,next_state,probability,cost          or          idstatefrom,idaction,idstateto,probability,reward

- The columns may stand in any order and have other names: `model/tables.py` lists the names, and says what a missing column means.
- Cost is minus the reward: these tools maximise. A `cost` is taken as it is.
- The goals are those given, or those that a column `goal` marks; otherwise a state that no row leaves is a goal, and where there is none, states
  that only lead to themselves for nothing.
- The start is the one given, or the one that a column `start` marks; otherwise the state of the first row.
- Identifiers are numbers from 0 (or from 1, with `one_based`), or names. A name that could be mistaken for something else, or that is no
  text, is written as JSON: `"7"` is a text, `[1, 2]` a pair. Numbers may be fractions `p/q`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError, ModelError
from tailpath.formats.costs import CostRule, refuse_improbable, refuse_negative, without_bonus
from tailpath.formats.files import brief, load_json, read_text, shorten, write_bytes
from tailpath.formats.names import decode_name, encode_name, truth_values
from tailpath.formats.reading import Reading
from tailpath.formats.text import BLOCK, Numbers
from tailpath.model.builders import arrays_from_rows
from tailpath.model.cost_units import as_fraction, common_unit
from tailpath.model.ssp import SSP, Name
from tailpath.model.tables import columns_called

#: The header of what is written; the words of craam, which other tools know.
COLUMNS = ("idstatefrom", "idaction", "idstateto", "probability", "cost")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_JSON = re.compile(r'["\[{].*|true|false|null|-?[0-9].*', re.DOTALL)


def read(path: str, reading: Reading) -> SSP:
    """Read a long table."""
    table = _Table(path, reading.one_based)
    rule = CostRule.from_options(-1 if table.is_reward else 1, reading)
    states, rank = table.states.ordered()
    actions, action_rank = table.actions.ordered()
    state, target, action = rank[table.source], rank[table.target], action_rank[table.action]
    costs = rule.apply(table.price)
    is_goal, notes = _goals(table, state, target, costs, states, reading.goals)
    start, found = _start(table, state, states, reading.start)
    notes += found
    keep = ~is_goal[state]
    costs, bonus = without_bonus(costs, is_goal[target] & keep)

    def place(row: int) -> str:
        return f"line {table.line[row]}: state {states[state[row]]!r}, action {actions[action[row]]!r} -> {states[target[row]]!r}"

    refuse_improbable(table.probability, path, place)
    refuse_negative(np.where(keep, costs, 0.0), path, place)
    if rule.sign < 0 and rule.step_cost is None:
        notes += ("costs are minus the rewards",)
    arrays = arrays_from_rows(state[keep], action[keep], target[keep], table.probability[keep], costs[keep], len(states), merge=True)
    return SSP(
        **arrays,
        is_goal=is_goal,
        start_index=start,
        states=states,
        actions=actions,
        exact_unit=table.exact_unit(costs[keep]) if rule == CostRule(1, None, {}) else None,
        notes=(*bonus, *notes),
    )


class _Names:
    """Names and their numbers, as they appear; a cell is understood once."""

    def __init__(self, path: str, one_based: bool) -> None:
        self.path, self.one_based = path, one_based
        self.number_of_cell: dict[str, int] = {}
        self.number: dict[Name, int] = {}
        self.first: dict[int, Name] = {}

    def numbers(self, cells: Iterable[str], lines: Iterable[int], count: int) -> NDArray[np.int64]:
        known = self.number_of_cell
        for cell, line in zip(cells := list(cells), lines):
            if cell not in known:
                name = self._name(cell, line)
                known[cell] = number = self.number.setdefault(name, len(self.number))
                if truth_values(name) != truth_values(self.first.setdefault(number, name)):
                    raise FormatError(f"{self.path}:{line}: {shorten(cell)} and {self.first[number]!r} would be one name")
        return np.fromiter(map(known.__getitem__, cells), np.int64, count)

    def ordered(self) -> tuple[Sequence[Name], NDArray[np.int64]]:
        """The names in their final order, and the place of each number there: whole numbers are sorted."""
        names: list[Any] = list(self.number)
        if not all(type(name) is int for name in names):
            return tuple(names), np.arange(len(names))
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        ordered = tuple(sorted(names))
        return range(len(names)) if ordered == tuple(range(len(names))) else ordered, rank

    def _name(self, cell: str, line: int) -> Name:
        name = _decode(cell.strip(), f"{self.path}:{line}")
        if not self.one_based:
            return name
        if type(name) is not int or name < 1:
            raise FormatError(f"{self.path}:{line}: {shorten(cell)!r} does not count from 1")
        return name - 1


class _Table:
    """The columns of the file."""

    def __init__(self, path: str, one_based: bool) -> None:
        self.path = path
        self.states, self.actions = _Names(path, one_based), _Names(path, one_based)
        self.line: list[int] = []
        self.fractions: set[str] = set()
        self.marks: dict[str, list[bool]] = {}
        reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
        try:
            blocks = list(self._blocks(reader))
        except csv.Error as error:
            raise FormatError(f"{path}:{reader.line_num}: {error}") from None
        if not blocks:
            raise FormatError(f"{path}: the table has no rows")
        self.source, self.target, self.action, self.probability, self.price = (np.concatenate(column) for column in zip(*blocks))

    def _blocks(self, reader: Any) -> Iterator[tuple[NDArray[Any], ...]]:
        """State, target, action, probability and price of many rows at a time."""
        at = self._header(next(reader, []))
        numbers = Numbers(self.path)
        while block := list(islice(self._rows(reader), BLOCK)):
            lines = [line for line, _ in block]
            columns = list(zip(*(row for _, row in block)))
            source, target, price = columns[at["state"]], columns[at["next_state"]], columns[at["price"]]
            probability = columns[at["probability"]] if "probability" in at else ("1",) * len(lines)
            # Row by row, so that states count as they appear whatever the size of a block.
            pairs = self.states.numbers(chain.from_iterable(zip(source, target)), chain.from_iterable(zip(lines, lines)), 2 * len(lines))
            self.fractions.update(text.strip() for text in price if "/" in text)
            self.line.extend(lines)
            actions = self.actions.numbers(columns[at["action"]] if "action" in at else target, lines, len(lines))
            for mark, marked in self.marks.items():
                marked.extend(_truth(text, f"{self.path}:{line}: {mark}") for text, line in zip(columns[at[mark]], lines))
            yield pairs[::2], pairs[1::2], actions, numbers.numbers(probability, lines), numbers.numbers(price, lines)

    def _header(self, words: list[str]) -> dict[str, int]:
        """Where each column stands; cost or reward is the `price`."""
        names = [word.strip() for word in words]
        self.width = len(names)
        if "idoutcome" in names:
            raise FormatError(f"{self.path}:1: a table with idoutcome describes a robust model, which is none of ours")
        try:
            called = columns_called(names)
        except ModelError as error:
            raise FormatError(f"{self.path}:1: {brief(str(error))}") from None
        at = {column: names.index(name) for column, name in called.items()}
        self.is_reward = "reward" in at
        at["price"] = at["reward" if self.is_reward else "cost"]
        self.marks = {mark: [] for mark in ("goal", "start") if mark in at}
        return at

    def _rows(self, reader: Any) -> Iterator[tuple[int, list[str]]]:
        for row in reader:
            if row and len(row) != self.width:
                raise FormatError(f"{self.path}:{reader.line_num}: {len(row)} columns, expected {self.width}")
            if row:
                yield reader.line_num, row

    def exact_unit(self, costs: NDArray[np.float64]) -> Fraction | None:
        """The unit of costs some of which are written as fractions, which floats cannot hold."""
        if not self.fractions:
            return None
        exact = {float(Fraction(text)): Fraction(text) for text in self.fractions}
        return common_unit(exact.get(cost, cost) for cost in np.unique(costs).tolist())


def _decode(cell: str, where: str) -> Name:
    if not cell:
        raise FormatError(f"{where}: a name is empty")
    if _WHOLE.fullmatch(cell):
        return int(cell)
    if not _JSON.fullmatch(cell):
        return cell
    try:
        value = load_json(cell, where)
    except FormatError:
        return cell  # a text that only begins like JSON
    return decode_name(value, where)


def _encode(name: Name) -> str:
    plain = name if isinstance(name, str) else str(name) if type(name) is int else ""
    if plain and plain == plain.strip() and plain.isprintable():
        back = _decode(plain, "")
        if back == name and type(back) is type(name):
            return plain
    return json.dumps(encode_name(name))


def _goals(
    table: _Table, state: NDArray[Any], target: NDArray[Any], costs: NDArray[Any], states: Sequence[Name], given: Iterable[Any]
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    wanted = [given] if isinstance(given, str) else list(given)
    marked = np.zeros(len(states), dtype=np.bool_)
    if wanted:
        marked[[_number_of(name, states, table.path) for name in wanted]] = True
        return marked, ()
    if "goal" in table.marks:
        marked[target[np.array(table.marks["goal"])]] = True
        if not marked.any():
            raise FormatError(f"{table.path}: the column goal marks no row")
        return marked, ()
    marked[state] = True
    if not marked.all():
        return ~marked, (f"states without rows are the goals ({np.count_nonzero(~marked)} of them)",)
    leaves = np.zeros(len(states), dtype=np.bool_)
    leaves[state[(target != state) | (costs != 0)]] = True
    if leaves.all():
        raise FormatError(f"{table.path}: no goal: every state has rows, and none only leads to itself for nothing")
    return ~leaves, (f"states that only lead to themselves for nothing are the goals ({np.count_nonzero(~leaves)} of them)",)


def _start(table: _Table, state: NDArray[Any], states: Sequence[Name], given: Any) -> tuple[int, tuple[str, ...]]:
    if given is not None:
        return _number_of(given, states, table.path), ()
    if "start" in table.marks:
        marked = np.unique(state[np.array(table.marks["start"])])
        if len(marked) != 1:
            raise FormatError(f"{table.path}: the column start marks {len(marked)} states; exactly one must be the start")
        return int(marked[0]), ()
    return int(state[0]), (f"the start is {states[state[0]]!r}, the state of the first row",)


def _number_of(given: Any, states: Sequence[Name], path: str) -> int:
    """The number of a state given by its name, or by what stands for it in the file."""
    for name in (given, _decode(given.strip(), path)) if isinstance(given, str) else (given,):
        if name in states:
            return states.index(name)
    raise FormatError(f"{path}: the table has no state {given!r}")


def _truth(text: str, where: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "true", "yes", "x", "t"):
        return True
    if word in ("", "0", "false", "no", "f"):
        return False
    raise FormatError(f"{where}: {shorten(text)!r} is neither true nor false")


def write(ssp: SSP, path: str) -> None:
    """Write a long table with costs. A table has no place for geometry and notes, and none for goals that nothing leads to."""
    if ssp.is_goal[ssp.start_index]:
        raise FormatError(f"{path}: the start is a goal, so no row would name it")
    entered = np.zeros(ssp.n_states, dtype=np.bool_)
    entered[ssp.outcome_target] = True
    for goal in np.flatnonzero(ssp.is_goal & ~entered)[:1].tolist():
        raise FormatError(f"{path}: nothing leads to the goal {ssp.states[goal]!r}, so no row would name it; write .json or .npz")
    state_text = [_encode(name) for name in ssp.states]
    action_text = {index: _encode(ssp.actions[index]) for index in np.unique(ssp.choice_action).tolist()}
    source = ssp.choice_state[ssp.outcome_choice]
    # The start comes first, since that is how a reader knows it.
    order = np.argsort(source != ssp.start_index, kind="stable")
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    prices = {cost: _price(ssp, cost) for cost in np.unique(ssp.outcome_cost).tolist()}
    for s, a, t, p, c in zip(
        source[order].tolist(),
        ssp.choice_action[ssp.outcome_choice][order].tolist(),
        ssp.outcome_target[order].tolist(),
        ssp.outcome_probability[order].tolist(),
        ssp.outcome_cost[order].tolist(),
    ):
        writer.writerow([state_text[s], action_text[a], state_text[t], repr(p), prices[c]])
    write_bytes(path, buffer.getvalue().encode())


def _price(ssp: SSP, cost: float) -> str:
    """The cost as a decimal, or as a fraction where the model knows it more exactly than a decimal can."""
    if ssp.exact_unit is not None:
        exact = round(Fraction(cost) / ssp.exact_unit) * ssp.exact_unit
        if exact != as_fraction(cost):
            return f"{exact.numerator}/{exact.denominator}"
    return repr(cost)
