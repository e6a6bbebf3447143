"""What a policy does, in words: one row per state and memory that it reaches, as a table, a file or
a flow chart.

Budgets left that follow each other and lead to the same decision are one row. A row says how often
a run is there on average, and the mean and the CVaR of the cost from such a visit on. Where there
are too many pairs of state and memory, the rows come from simulated runs; those of one state come
from the policy itself.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import OptionError
from tailpath.formats.files import write_text
from tailpath.graph import Array, IntArray, grouped, members
from tailpath.model.records import data_frame
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress, check_alpha
from tailpath.policies.atoms import AtomPolicy
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.checks import decide
from tailpath.policies.kinds import HistoryPolicy, MarkovPolicy, MixedPolicy
from tailpath.policies.policy import Policy
from tailpath.show.followed import Followed
from tailpath.show.sampled import tail_mean
from tailpath.show.visits import cvar_to_go
from tailpath.texts import name as name_in_words
from tailpath.texts import number as number_in_words

#: Rows from simulated runs, if no number is asked for.
MOST_ESTIMATED = 1_000


class Row(NamedTuple):
    """What a policy does at a state, and where that leads: `next_states` are names with their
    probabilities. `visits` is how often a run is there on average; of states that it never leaves
    again, the probability of getting there. `cvar` is None where costs have no
    unit; `mean` and `cvar` are None where no simulated run came.
    """

    state: Name
    memory: str
    action: Any
    visits: float
    mean: float | None
    cvar: float | None
    next_states: dict[Name, float]


class Decisions(list[Row]):
    """The rows of a policy's table, the most visited first.

    Attributes
    ----------
    budgets : list of tuple, or None
        For each row the least and the greatest cost still allowed, of a policy that looks at it.
    estimated : int
        The simulated runs that the numbers are estimated from; 0 if they are exact.

    Examples
    --------
    >>> tp.solve_expected(ssp).policy.table(ssp).estimated
    0
    """

    def __init__(
        self,
        rows: Sequence[tuple[Row, tuple[float, float] | None]] = (),
        estimated: int = 0,
    ) -> None:
        ordered = sorted(rows, key=lambda pair: _rank(pair[0]))
        super().__init__(row for row, _ in ordered)
        self.budgets = [budgets for _, budgets in ordered]
        self.estimated = estimated

    def to_pandas(self) -> Any:
        """The rows as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            A column for each field of a row.

        Raises
        ------
        OptionError
            If pandas is not installed.

        Examples
        --------
        >>> tp.solve_expected(ssp).policy.table(ssp).to_pandas()[["state", "action", "mean"]]
          state action  mean
        0  home   road  24.0
        """
        return data_frame({field: [getattr(row, field) for row in self] for field in Row._fields})

    def to_csv(self) -> str:
        """The rows as comma-separated values, with a line of headers.

        Returns
        -------
        str
            Numbers in full; next states as `work 0.9; home 0.1`.

        Examples
        --------
        >>> print(tp.solve_expected(ssp).policy.table(ssp).to_csv(), end="")
        state,memory,action,visits,mean,cvar,next_states
        home,,road,1.0,24.0,60.0,work 1
        """
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(Row._fields)
        for row in self:
            state, action = name_in_words(row.state), decision_in_words(row.action)
            after = "; ".join(f"{name_in_words(s)} {p:.6g}" for s, p in row.next_states.items())
            lines.writerow([state, row.memory, action, *row[3:6], after])
        return text.getvalue()

    def to_mermaid(self, unit: str = "") -> str:
        """A flow chart for Mermaid, which many editors and GitHub draw.

        Parameters
        ----------
        unit : str
            The unit of costs: `minutes`.

        Returns
        -------
        str
            Round boxes are states and square ones actions; what is left of the budget decides.

        Examples
        --------
        >>> print(tp.solve_expected(ssp).policy.table(ssp).to_mermaid())
        flowchart LR
          s0(["home"])
          s1(["work"])
          s0 --> a0["road"]
          a0 --> s1
        """
        states, arrows = self._chart(unit)
        lines = [f"  s{k}([{_mermaid(name)}])" for k, name in enumerate(states)]
        for k, (source, label, action, targets) in enumerate(arrows):
            lines.append(f"  s{source} -->{_bars(label)} a{k}[{_mermaid(action)}]")
            lines += [f"  a{k} -->{_bars(chance)} s{target}" for target, chance in targets]
        return "\n".join(["flowchart LR", *lines])

    def to_dot(self, unit: str = "") -> str:
        """A flow chart for Graphviz: `dot -Tsvg plan.dot`.

        Parameters
        ----------
        unit : str
            The unit of costs: `minutes`.

        Returns
        -------
        str
            As of `to_mermaid`.

        Examples
        --------
        >>> tp.solve_expected(ssp).policy.table(ssp).to_dot().startswith("digraph plan {")
        True
        """
        states, arrows = self._chart(unit)
        lines = [f"  s{k} [label={_quoted(name)}, style=rounded];" for k, name in enumerate(states)]
        for k, (source, label, action, targets) in enumerate(arrows):
            lines.append(f"  a{k} [label={_quoted(action)}];")
            lines.append(f"  s{source} -> a{k}{_labelled(label)};")
            lines += [f"  a{k} -> s{t}{_labelled(chance)};" for t, chance in targets]
        return "\n".join(["digraph plan {", "  rankdir=LR; node [shape=box];", *lines, "}"])

    def write(self, path: str | os.PathLike[str], unit: str = "") -> None:
        """Write the rows to a file; its suffix decides how.

        Parameters
        ----------
        path : str or path
            A file `.csv`, `.mmd` (Mermaid) or `.dot` (Graphviz).
        unit : str
            What costs are counted in, for a flow chart.

        Raises
        ------
        OptionError
            If the suffix is another.

        Examples
        --------
        >>> tp.solve_expected(ssp).policy.table(ssp).write("plan.csv")
        """
        suffix = os.path.splitext(os.fsdecode(path))[1].lower()
        if suffix not in WRITTEN:
            raise OptionError(
                f"{os.fsdecode(path)}: a table of decisions is written as .csv, .mmd or .dot"
            )
        text = self.to_csv() if suffix == ".csv" else getattr(self, WRITTEN[suffix])(unit) + "\n"
        write_text(path, text)

    def _chart(self, unit: str) -> tuple[list[str], list[tuple[int, str, str, Any]]]:
        """Names of states, and arrows: the state they leave, when, what is done, and for each next
        state its number and its probability in words.
        """
        after = (state for row in self for state in row.next_states)
        names = dict.fromkeys((*(row.state for row in self), *after))
        number = {state: k for k, state in enumerate(names)}
        arrows = []
        for row, rule in zip(self, _rules(self, unit)):
            sure = len(row.next_states) == 1
            targets = [
                (number[after], "" if sure else number_in_words(chance, 3))
                for after, chance in row.next_states.items()
            ]
            arrows.append((number[row.state], rule, decision_in_words(row.action), targets))
        return [name_in_words(state) for state in names], arrows


#: How files of a table end, and what makes their text.
WRITTEN = {".csv": "to_csv", ".mmd": "to_mermaid", ".dot": "to_dot"}


def _rank(row: Row) -> tuple[float, float]:
    return -round(row.visits, 9), -(row.mean or 0.0)


def _rules(table: Decisions, unit: str) -> list[str]:
    """When each row holds, in words: `22 minutes or less left`; empty where its state has no other.
    Budgets that no run has there belong to the row below.
    """
    of_state: dict[Name, list[int]] = {}
    for k, row in enumerate(table):
        of_state.setdefault(row.state, []).append(k)
    rules = [""] * len(table)
    for rows in of_state.values():
        if len(rows) == 1:
            continue
        spans = {k: span for k in rows if (span := table.budgets[k]) is not None}
        for k in rows:
            rules[k] = table[k].memory
        below = ""
        for k in sorted(spans, key=spans.__getitem__) if len(spans) == len(rows) else ():
            end, last = amount(f"{spans[k][1]:g}", unit), spans[k] == max(spans.values())
            upper = f"more than {below} left" if last else f"more than {below}, at most {end} left"
            rules[k], below = upper if below else f"{end} or less left", end
    return rules


def _mermaid(text: str) -> str:
    return '"' + text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;") + '"'


def _labelled(label: str) -> str:
    return f" [label={_quoted(label)}]" if label else ""


def _bars(label: str) -> str:
    return f"|{_mermaid(label)}|" if label else ""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# ---------------------------------------------------------------------- the rows


def decision_table(
    ssp: SSP,
    policy: Policy,
    alpha: float = 0.05,
    most: int | None = None,
    progress: Progress | None = None,
    of_state: Name | None = None,
) -> Decisions:
    """All rows, or the `most` visited ones, or those of one state; the most visited first, and of
    equals the one farther from the goal.
    """
    alpha, followed = check_alpha(alpha), Followed(ssp, policy)
    state = None if of_state is None else ssp.state_index(of_state)
    return Decisions(list(_rows(followed, alpha, most, state, progress)), followed.simulated)


def _rows(
    followed: Followed, alpha: float, most: int | None, of_state: int | None, progress: Any
) -> Iterator[tuple[Row, tuple[float, float] | None]]:
    """Each row, and the least and the greatest cost still allowed. Where runs are simulated, the
    rows of one state are all that the policy has.
    """
    state, memory, visits, to_go = followed.steps
    policy, simulated = followed.policy, followed.simulated
    inside = np.arange(len(state)) if of_state is None else np.flatnonzero(state == of_state)
    state, memory, visits, to_go = (each[inside] for each in (state, memory, visits, to_go))
    if isinstance(policy, MarkovPolicy):
        memory = np.full(len(state), None, dtype=object)
    if isinstance(policy, BudgetPolicy) and simulated and of_state is not None:
        begin = np.append(0, policy.from_budget[members(policy.first, of_state)])
        begin = begin[begin <= policy.budget]  # and with budgets that no run had
        memory = np.concatenate((memory, begin, np.append(begin[1:] - 1, policy.budget)))
        state = np.append(state, np.full(2 * len(begin), of_state))
        visits, to_go = (np.append(each, np.zeros(2 * len(begin))) for each in (visits, to_go))
    if not len(state):
        return
    group, ends = _grouped(followed, state, memory)
    often = np.bincount(group, visits, len(ends))
    paid = np.bincount(group, np.where(visits > 0, visits * to_go, 0.0), len(ends))
    order, first = grouped(group, len(ends))
    shown = np.argsort(-often, kind="stable")[: most or (MOST_ESTIMATED if simulated else None)]
    cvar = np.full(len(ends), np.nan)
    if not simulated:
        if progress is not None:
            progress(0, 0.0)
        some = np.flatnonzero(np.isin(group, shown))
        columns = inside[some], group[some], visits[some]
        cvar = cvar_to_go(followed.chain, *columns, len(ends), alpha, progress)
    for number in shown.tolist():
        tail: float | None = float(cvar[number])
        if simulated:
            own = order[first[number] : first[number + 1]]
            tail = tail_mean(to_go[own[visits[own] > 0]], alpha)
        mean = paid[number] / often[number] if often[number] > 0 else None
        yield _row(followed, *ends[number], float(often[number]), mean, tail)


def _row(
    followed: Followed, state: int, low: Any, high: Any, *numbers: Any
) -> tuple[Row, tuple[float, float] | None]:
    """The row of a state with memories from `low` to `high`: visits, mean and CVaR to go."""
    ssp, policy = followed.ssp, followed.policy
    decision, span = decide(ssp, policy, state, high), None
    memory = memory_in_words(policy, high, state)
    if isinstance(policy, BudgetPolicy):
        own = policy.ssp.state_index(ssp.states[state])
        memory, span = budgets_in_words(policy, own, low, high), _span(policy, own, low, high)
    told = (None if number is None or np.isnan(number) else float(number) for number in numbers)
    row = ssp.states[state], memory, action_of(ssp, decision), *told, next_states(ssp, decision)
    return Row(*row), span


def _grouped(
    followed: Followed, state: IntArray, memory: Array
) -> tuple[IntArray, list[tuple[int, Any, Any]]]:
    """The number of the row of each pair of state and memory, and of each row the state, and its
    least and greatest memory: budgets with which the same step is taken are one row.
    """
    policy: Any = followed.policy
    if not followed.counts_budgets:
        number: dict[tuple[int, Any], int] = {}
        key = [number.setdefault(pair, len(number)) for pair in zip(state.tolist(), memory)]
        return np.array(key, dtype=np.int64), [(s, m, m) for s, m in number]
    names = followed.ssp.states
    step = policy.step_at(np.array([policy.ssp.state_index(names[s]) for s in state]), memory)
    order = np.lexsort((memory, state))
    ends = np.flatnonzero((np.diff(state[order]) != 0) | (np.diff(step[order]) != 0)) + 1
    first, last = np.append(0, ends), np.append(ends, len(order)) - 1
    group = np.zeros(len(order), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(first)), last - first + 1)
    least, most = memory[order[first]], memory[order[last]]
    return group, list(zip(state[order[first]].tolist(), least.tolist(), most.tolist()))


def _span(policy: BudgetPolicy, state: int, low: int, high: int) -> tuple[float, float]:
    least, most = (float(policy.left(state, max(units, policy.deadline))) for units in (low, high))
    return least, most


def next_states(ssp: SSP, decision: Sequence[tuple[int, float]]) -> dict[Name, float]:
    """Where a decision leads, by name, the likeliest first."""
    found: dict[Name, float] = {}
    for choice, weight in decision:
        for outcome in members(ssp.choice_outcomes, choice):
            after = ssp.states[int(ssp.outcome_target[outcome])]
            found[after] = found.get(after, 0.0) + weight * float(ssp.outcome_probability[outcome])
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def action_of(ssp: SSP, decision: Sequence[tuple[int, float]]) -> Any:
    """A decision by names: an action, or `{action: probability}`."""
    if len(decision) == 1:
        return ssp.choice_name(decision[0][0])
    return {ssp.choice_name(choice): weight for choice, weight in decision}


# ---------------------------------------------------------------------- words


def decision_in_words(decision: Any) -> str:
    """An action, or a mixture: `go 0.25, jump 0.75`."""
    if isinstance(decision, Mapping):
        return ", ".join(
            f"{name_in_words(action)} {weight:.4g}" for action, weight in decision.items()
        )
    return name_in_words(decision)


def amount(number: str, unit: str) -> str:
    """`20 minutes`, `1 minute`; without a unit the number alone."""
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}".rstrip()


def memory_in_words(policy: Any, memory: Any, state: int) -> str:
    """What a policy remembers in a state: nothing, the budget left, the atom, or what it is."""
    if isinstance(policy, MarkovPolicy) or memory is None:
        return ""
    if isinstance(policy, BudgetPolicy):
        return budgets_in_words(policy, state, memory, memory)
    if isinstance(policy, AtomPolicy):
        return f"y = {policy.atoms[memory]:.4g}"
    if isinstance(policy, HistoryPolicy):
        return "after " + ", ".join(map(name_in_words, memory[:-1])) if len(memory) > 1 else ""
    if isinstance(policy, MixedPolicy):
        # Each of the policies that the coin may have chosen, and what it remembers.
        remembered = [
            (f"policy {number + 1}", memory_in_words(policy.members[number], own, state))
            for number, _, own in memory
        ]
        return "; or ".join(", ".join(filter(None, each)) for each in remembered)
    return name_in_words(memory)


def budgets_in_words(policy: BudgetPolicy, state: int, low: int, high: int) -> str:
    """`spent`, `12 left`, `8 to 12 left`; of a deadline what may be spent and still keeps it."""
    if high <= 0:
        return "budget spent"
    least, most = _span(policy, state, low, high)
    return f"{most:g} left" if low == high else f"{least:g} to {most:g} left"
