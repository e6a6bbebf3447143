"""Tables with one row per outcome, in memory and in files: from columns of cells to the columns of
outcomes and the other fields of a model.

`frames.py` has the tables in memory, `formats/table_text.py` those in files, and `columns.py`
decides which column is what. If a table does not say where runs begin and end, this is assumed from
its rows, and noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError, TailpathError
from tailpath.graph import Array, BoolArray, IntArray
from tailpath.model.cells import (
    MOST_FAULTS,
    Categorical,
    Cells,
    Faults,
    OutcomeTable,
    as_they_appear,
)
from tailpath.model.columns import COST_COLUMNS, INTERVALS, NONE, columns_called
from tailpath.model.ends import GAINS, MANY, StartAndGoals, nearest, note_typos, start_and_goals
from tailpath.model.guesses import guessed
from tailpath.model.outcomes import ROW_TOLERANCE, CostRule, Name, OutcomeColumns, can_happen
from tailpath.texts import did_you_mean


class TableOutcomes(NamedTuple):
    """The outcomes of a table, the other fields of an `SSP`, and whether its probabilities are
    counts.
    """

    rows: OutcomeColumns
    fields: dict[str, Any]
    counted: bool

    def all_fields(self, *, merge: bool = True, **more: Any) -> dict[str, Any]:
        """All fields of an `SSP`."""
        return self.rows.fields(self.fields | more, counted=self.counted, merge=merge)


def outcomes_of_table(
    table: OutcomeTable,
    start: Any,
    goals: Any,
    chosen: Mapping[str, Any] = NONE,
    *,
    intervals: bool = False,
    rewards: bool = False,
    rule: Callable[[int], CostRule] = CostRule,
) -> TableOutcomes:
    """The outcomes of a table, with its start and its goals.

    With `intervals`, probabilities are the ends of intervals, or counts, or, without such columns,
    a count of 1; with `rewards`, numbers are gains. `rule(sign)` makes costs of numbers that are
    costs of this sign.
    """
    called = _called(table, chosen, intervals)
    faults = Faults(table)
    columns = table.columns(called, faults)
    _check_lengths(columns, called, faults)
    states, (state, target) = _numbered(table, faults, columns, "state", "next_state")
    actions, (action,) = _numbered(
        table, faults, columns, "action" if "action" in columns else "next_state"
    )
    costs = rule(-1 if rewards or "reward" in columns else 1)
    cells = Cells(table, faults, columns, called)
    kinds = next((way for way in INTERVALS if all(each in columns for each in way)), ())
    probabilities = tuple(map(cells.numbers, kinds)) or (np.ones(len(state)),)
    row = np.arange(len(state))
    if "times" in columns:
        row, share, amount, unit = cells.times()
        probabilities = (probabilities[0][row] * share,)
    else:
        what = next(column for column in COST_COLUMNS if column in columns)
        amount, unit = cells.amounts(what)
    marked: Mapping[str, Any] = {
        mark: cells.truths(mark)[row] for mark in ("goal", "start") if mark in columns
    }
    del cells, columns
    if not (states and actions):
        faults.refuse()
    try:
        amount = costs.apply(amount)
        rows = OutcomeColumns(state[row], action[row], target[row], amount, probabilities)
        given = _given(table, states, start, goals)
        ends = start_and_goals(rows, states, *given, marked)
    except TailpathError:  # which may follow from a cell that cannot be read
        faults.refuse()
        raise
    if len(probabilities) > 1:
        # The states that only impossible rows name are not needed.
        choice = np.unique(rows.state.astype(np.int64) * len(actions) + action, return_inverse=True)
        ends.mask[~can_happen(choice[1], probabilities[0], probabilities[-1])] = False
    checks = _Checked(table, faults, rows, row, states, actions)
    checks.probabilities(kinds)
    if table.strict:
        checks.goals(ends.is_goal)
    checks.dead_ends(ends)
    if not intervals:
        checks.sums(ends.mask)
    faults.refuse()
    notes = [GAINS] if costs.sign < 0 and costs.step_cost is None else []
    notes += [*_unread(table, called), *ends.notes, *checks.few_negative(ends.mask)]
    notes += note_typos(ends, states, checks.uses)
    fields = {"notes": tuple(notes), "exact_unit": unit if costs.is_sign else None}
    counted = intervals and kinds in ((), ("count",))
    return TableOutcomes(*_named(rows, ends, states, actions, fields), counted)


def _called(table: OutcomeTable, chosen: Mapping[str, Any], intervals: bool) -> dict[str, Any]:
    """The name of each column."""
    if table.fixed:
        return dict(zip(table.fixed, table.fixed))
    try:
        return columns_called(table.names, chosen, intervals, partial(guessed, table))
    except ModelError as error:
        raise table.error(f"{table.header}{error}") from None


def _named(
    rows: OutcomeColumns,
    ends: StartAndGoals,
    states: Sequence[Name],
    actions: Sequence[Name],
    fields: dict[str, Any],
) -> tuple[OutcomeColumns, dict[str, Any]]:
    """The rows that do not leave a goal, and the fields about the states and actions in them."""
    named = ends.is_goal.copy()
    for used in (ends.start, rows.state[ends.mask], rows.target[ends.mask]):
        named[used] = True
    if not ends.mask.all():
        rows = rows.only(ends.mask)
        used, action = np.unique(rows.action, return_inverse=True)
        rows, actions = rows._replace(action=action), [actions[k] for k in used.tolist()]
    if not named.all():
        number = np.cumsum(named) - 1
        rows = rows._replace(state=number[rows.state], target=number[rows.target])
        states = list(compress(states, named))
    fields |= {"is_goal": ends.is_goal[named], "states": states, "actions": actions}
    return rows, fields | {"start_index": int(np.count_nonzero(named[: ends.start]))}


def _check_lengths(
    columns: Mapping[str, Categorical], called: Mapping[str, Any], faults: Faults
) -> None:
    lengths = {column: len(cells.codes) for column, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{called[column]} {length}" for column, length in lengths.items())
        raise ModelError(f"the columns differ in length: {text}")
    if not lengths["state"] and not faults.table.strict:
        faults.refuse()
        raise ModelError("the table has no rows")


def _unread(table: OutcomeTable, called: Mapping[str, Any]) -> list[str]:
    read = list(called.values())
    others = [
        str(name) for name in table.names if not any(name is one or name == one for one in read)
    ]
    return [f"{table.noun} that were not read: {', '.join(others)}"] if others else []


def _numbered(
    table: OutcomeTable, faults: Faults, columns: Mapping[str, Categorical], *which: str
) -> tuple[Sequence[Name], list[Array]]:
    """The names in some columns, and the columns as their numbers: in the order of appearance, row
    by row; in files, integers are sorted.
    """
    every = [columns[column] for column in which]
    shift = np.cumsum([0, *(len(column.categories) for column in every)], dtype=np.int32)
    cells = list(chain.from_iterable(column.categories for column in every))
    codes = np.stack([c.codes + s for c, s in zip(every, shift)], axis=1).ravel()
    order = as_they_appear(codes, len(cells)).tolist()

    def place(position: int) -> str:
        return table.place(int(np.flatnonzero(codes == order[position])[0]) // len(every))

    try:
        names, numbers = table.numbered([cells[position] for position in order], place)
    except TailpathError:
        for column in every:
            faults.parsed(column, table.name)
        if not faults.found:
            raise
        return (), [column.codes for column in every]
    ordered = _ordered(table, names) if "state" in which else _sorted(table, names)
    number = np.zeros(len(cells), dtype=np.int32)
    if ordered is names:
        number[order] = numbers
    else:
        rank = {name: position for position, name in enumerate(ordered)}
        number[order] = np.array([rank[name] for name in names], dtype=np.int32)[numbers]
    return ordered, [number[codes[k :: len(every)]] for k in range(len(every))]


def _ordered(table: OutcomeTable, names: Sequence[Name]) -> Sequence[Name]:
    """The states of a table, with those that it has besides the ones in its rows."""
    if not (table.first or table.last):
        return _sorted(table, names)
    every = tuple(dict.fromkeys((*table.first, *names, *table.last)))
    return table.first if len(every) == len(table.first) else every


def _sorted(table: OutcomeTable, names: Sequence[Name]) -> Sequence[Name]:
    """Names, of which integers are sorted in a file; consecutive ones from 0 are a range."""
    if not table.is_file or not all(type(name) is int for name in names):
        return names
    ordered, plain = tuple(sorted(names)), range(len(names))  # type: ignore[type-var]
    return plain if ordered == tuple(plain) else ordered


def _given(
    table: OutcomeTable, states: Sequence[Name], start: Any, goals: Any
) -> tuple[int | None, list[int] | None]:
    """The given start and goals, by number."""
    if start is None and goals is None:
        return None, None
    index = {name: number for number, name in enumerate(states)}

    def number(given: Any, what: str) -> int:
        for name in table.known(given):
            try:
                return index[name]
            except (KeyError, TypeError):
                continue
        hint = did_you_mean(given, states if len(states) <= MANY else ())
        raise ModelError(f"{table.title} has no state {given!r} to use as {what}{hint}")

    single = isinstance(goals, str) or not isinstance(goals, Iterable)
    wanted = [] if goals is None else [goals] if single else list(goals)
    return (
        None if start is None else number(start, "the start"),
        None if goals is None else [number(goal, "a goal") for goal in wanted],
    )


class _Checked(NamedTuple):
    """The outcomes of a table, checked before they become a model, so that all faults are listed.
    Outcome k is from row `row[k]` of the table.
    """

    table: OutcomeTable
    faults: Faults
    rows: OutcomeColumns
    row: Array
    states: Sequence[Name]
    actions: Sequence[Name]

    def _choice(self, k: int) -> str:
        state, action = self.states[self.rows.state[k]], self.actions[self.rows.action[k]]
        return f"state {state!r}, action {action!r}"

    def _outcome(self, k: int) -> str:
        return f"{self._choice(k)} -> {self.states[self.rows.target[k]]!r}"

    @property
    def uses(self) -> IntArray:
        """How many rows name each state."""
        ends = np.concatenate((self.rows.state, self.rows.target))
        return np.bincount(ends, minlength=len(self.states))

    def goals(self, is_goal: BoolArray) -> None:
        """Refuse rows of goals that lead on or cost something."""
        rows, states = self.rows, self.states
        leads_on = (rows.target != rows.state) | (rows.cost != 0)
        self._refuse(
            is_goal[rows.state] & leads_on,
            lambda k: (
                f"goal {states[rows.state[k]]!r}, action {self.actions[rows.action[k]]!r} leads to"
                f" {states[rows.target[k]]!r} at cost {rows.cost[k]:g}: a goal must be absorbing"
                " and free"
            ),
        )

    def _refuse(self, bad: BoolArray, what: Callable[[int], str]) -> None:
        found = np.flatnonzero(bad).tolist()
        for k in found[:MOST_FAULTS]:
            self.faults.add(self.row[k : k + 1], what(k), named=True)
        self.faults.uncounted += len(found[MOST_FAULTS:])

    def probabilities(self, kinds: tuple[str, ...]) -> None:
        """Refuse invalid ones; cells that are not numbers are NaN here, and were refused before."""
        low, high = self.rows.probabilities[0], self.rows.probabilities[-1]
        bad, what = (low < 0) | (low == np.inf), "probability {:g}"
        if kinds == ("low", "high"):
            bad = (low < 0) | (low > high) | (high > 1 + ROW_TOLERANCE)
            what = "the interval [{:g}, {:g}], not one inside [0, 1]"
        elif kinds == ("count",):
            bad, what = bad | (low > np.floor(low)), "count {:g}, not a whole number of 0 or more"
        self._refuse(bad, lambda k: f"{self._outcome(k)} has {what.format(low[k], high[k])}")

    def dead_ends(self, ends: StartAndGoals) -> None:
        """Refuse states that rows lead to but that have no rows and are not goals."""
        rows, begins = self.rows, np.zeros(len(self.states), dtype=np.bool_)
        begins[rows.state] = True
        alive = begins | ends.is_goal
        dead = ends.mask & ~alive[rows.target] & (rows.probabilities[-1] > 0)
        known = zip(self.states, self.uses.tolist(), alive) if len(self.states) <= MANY else ()
        uses = {str(name): used for name, used, there in known if there}

        def said(k: int) -> str:
            name = self.states[rows.target[k]]
            near = nearest(str(name), uses)
            hint = "give it some, or make it a goal" if near is None else f"did you mean {near!r}?"
            return f"state {name!r} has no choices and is not a goal; {hint}"

        self._refuse(dead, said)

    def sums(self, mask: BoolArray) -> None:
        """Refuse choices whose probabilities do not sum to 1."""
        at = np.flatnonzero(mask)
        key = self.rows.state[at].astype(np.int64) * len(self.actions) + self.rows.action[at]
        _, first, of_row = np.unique(key, return_index=True, return_inverse=True)
        total = np.bincount(of_row, self.rows.probabilities[0][at])
        off = np.abs(total - 1) > ROW_TOLERANCE * np.bincount(of_row)
        # A choice that can never happen is refused when the model is built.
        off &= total > 0
        wrong = dict(zip(at[first[off]].tolist(), total[off].tolist()))
        if len(wrong) > 1 and np.allclose(total[off], 100, rtol=1e-6):
            what = (
                "probabilities sum to 100, not 1: if they are percentages, write 5%, or divide by"
            )
            self.faults.add(self.row[list(wrong)], f"{what} 100")
            return
        bad = np.isin(np.arange(len(mask)), list(wrong))
        self._refuse(
            bad, lambda k: f"the probabilities of {self._choice(k)} sum to {wrong[k]:.12g}, not 1"
        )

    def few_negative(self, mask: BoolArray) -> list[str]:
        """A note on negative costs if they are so few that they may be a mistake."""
        negative, every = np.flatnonzero((self.rows.cost < 0) & mask), np.count_nonzero(mask)
        if not 0 < 20 * len(negative) <= every:
            return []
        k, are = int(negative[0]), "is" if len(negative) == 1 else "are"
        where = f"{self.table.row(int(self.row[k]))}: {self.rows.cost[k]:g}"
        return [f"{len(negative)} of {every} costs {are} negative ({where})"]
