"""PRISM's explicit files: `NAME.tra` with `NAME.lab`, `NAME.srew`, `NAME.trew` and `NAME.sta` beside it.

    .tra    MDP: "n c m", then "i k j x [a]"      DTMC: "n m", then "i j x [a]"
    .lab    0="init" 1="deadlock" 2="goal", then "s: l l"
    .srew   "n m", then "s r"
    .trew   MDP: "n c m", then "i k j r"          DTMC: "n m", then "i j r"
    .sta    (x,y), then "i:(1,true)"

Lines that start with `#` and blank lines may stand anywhere. Without `.lab` the start is state 0. A model with several reward structures has
`NAME1.srew`, `NAME2.srew` and so on; a comment `# Reward structure "name"` names one. We read a `.trew` whose rewards differ within a
choice, which PRISM does not, and refuse to write one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError
from tailpath.formats.costs import CostRule
from tailpath.formats.extras import MARK, Extras, action_words, extras_line
from tailpath.formats.files import read_text, shorten, write_bytes
from tailpath.formats.labelled import Labelled, Labels, Lazy, Reward, marked, to_ssp
from tailpath.formats.reading import Reading
from tailpath.formats.text import BLOCK, Numbers, lines_of
from tailpath.model.ragged import offsets_of
from tailpath.model.ssp import SSP, Name

_LABEL = re.compile(r'\s*(\d+)="([^"]*)"')
_STRUCTURE = re.compile(r'#\s*Reward structure:?\s*"([^"]*)"')


def read(path: str, reading: Reading) -> SSP:
    """Read the files of a model from the path of its `.tra`."""
    rule = CostRule.from_options(1, reading)
    return to_ssp(_model(path), reading, rule)


def writable_action(word: str) -> bool:
    """An action is the last word of its line."""
    return word.isprintable() and not any(c.isspace() for c in word)


class _Lines:
    """The lines of one file that say something, with their numbers; the first of them is the header."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.numbers = Numbers(path)
        self.comments: list[tuple[int, str]] = []
        self._lines = enumerate(lines_of(read_text(path)), start=1)
        self.header_line, self.header = next(self.rows(), (1, ""))

    def rows(self) -> Iterator[tuple[int, str]]:
        for line, text in self._lines:
            text = text.strip()
            if text.startswith("#"):
                self.comments.append((line, text))
            elif text:
                yield line, text

    def blocks(self, *widths: int) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Lines and their words, many at a time; every row must have one of the widths."""
        rows = self.rows()
        while block := list(islice(rows, BLOCK)):
            words = [text.split() for _, text in block]
            for (line, text), row in zip(block, words):
                if len(row) not in widths:
                    raise self.fail(line, f"{shorten(text)!r} has {len(row)} words, expected {' or '.join(map(str, widths))}")
            yield [line for line, _ in block], words

    def sizes(self, *counts: int) -> list[int]:
        """The header as whole numbers, of which there must be one of the given counts."""
        words = self.header.split()
        if len(words) not in counts:
            raise self.fail(self.header_line, f"the header {shorten(self.header)!r} must have {' or '.join(map(str, counts))} numbers")
        return [self.numbers.whole(word, self.header_line) for word in words]

    def compare(self, what: str, said: int, found: int) -> None:
        if said != found:
            raise self.fail(self.header_line, f"the header says {said} {what}, the file has {found}")

    def fail(self, line: int, message: str) -> FormatError:
        return FormatError(f"{self.path}:{line}: {message}")


class _Transitions:
    """The `.tra` file: one row per transition, sorted by state and choice."""

    def __init__(self, path: str) -> None:
        file = _Lines(path)
        sizes = file.sizes(2, 3)
        self.nondeterministic = len(sizes) == 3
        self.n_states = sizes[0]
        width = len(sizes)
        columns: list[NDArray[np.int64]] = [np.zeros((0, width), dtype=np.int64)]
        probability: list[NDArray[np.float64]] = [np.zeros(0)]
        actions: dict[str, int] = {}
        action: list[int] = []
        self.line: list[int] = []
        for lines, rows in file.blocks(width + 1, width + 2):
            columns.append(np.column_stack([file.numbers.wholes([row[at] for row in rows], lines) for at in range(width)]))
            probability.append(file.numbers.numbers([row[width] for row in rows], lines))
            action.extend(actions.setdefault(row[width + 1], len(actions)) if len(row) == width + 2 else -1 for row in rows)
            self.line.extend(lines)
        self.file, self.actions = file, list(actions)
        file.compare("transitions", sizes[-1], len(action))
        self._sort(_with_choice(np.concatenate(columns)), np.concatenate(probability), np.array(action, dtype=np.int64))
        if self.nondeterministic:
            file.compare("choices", sizes[1], len(self.choice_action))
        self.extras = _extras(file)

    def _sort(self, columns: NDArray[np.int64], probability: NDArray[Any], action: NDArray[Any]) -> None:
        state, choice, target = columns.T
        for row in np.flatnonzero((state >= self.n_states) | (target >= self.n_states))[:1].tolist():
            raise self.file.fail(self.line[row], f"state {max(state[row], target[row])} lies outside 0..{self.n_states - 1}")
        # Every state but the start is one that a transition enters or leaves; a larger number is wrong, and memory must not follow it.
        self.file.compare("states", self.n_states, len(np.unique(np.concatenate([state, target, [0]]))))
        order = np.lexsort((choice, state))
        state, choice, action = state[order], choice[order], action[order]
        new = np.ones(len(state), dtype=np.bool_)
        new[1:] = (np.diff(state) != 0) | (np.diff(choice) != 0)
        first_of_state = np.ones(len(state), dtype=np.bool_)
        first_of_state[1:] = np.diff(state) != 0
        expected = np.where(first_of_state, 0, np.roll(choice, 1) + new)
        for row in np.flatnonzero(choice != expected)[:1].tolist():
            raise self.file.fail(
                self.line[order[row]], f"choice {choice[row]} of state {state[row]}, but there is no choice {expected[row]}"
            )
        of_row = np.cumsum(new) - 1
        for row in np.flatnonzero(action != action[np.flatnonzero(new)][of_row])[:1].tolist():
            raise self.file.fail(self.line[order[row]], f"choice {choice[row]} of state {state[row]} has two action names")
        self.choice_state, self.choice_action = state[new], action[new]
        self.row_choice, self.target, self.probability = of_row, target[order], probability[order]

    def keys(self, state: NDArray[Any], choice: NDArray[Any], target: NDArray[Any]) -> NDArray[np.int64]:
        """One number per (choice, target); -1 where there is no such choice."""
        begin = offsets_of(self.choice_state, self.n_states)
        inside = (state < self.n_states) & (target < self.n_states)
        index = begin[np.where(inside, state, 0)] + choice
        inside &= index < begin[np.where(inside, state, 0) + 1]
        return np.where(inside, index * self.n_states + target, -1)


def _with_choice(columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """State, choice, target; a Markov chain has one choice per state and does not write it."""
    return columns if columns.shape[1] == 3 else np.insert(columns, 1, 0, axis=1)


def _extras(file: _Lines) -> Extras:
    for line, text in file.comments:
        if text.startswith(f"#{MARK} "):
            return Extras.parse(text[len(MARK) + 2 :], f"{file.path}:{line}")
    return Extras()


def _model(path: str) -> Labelled:
    stem = path[: -len(".tra")]
    tra = _Transitions(path)
    structures = _rewards(stem, tra)
    labels = _labels(f"{stem}.lab", tra.n_states) if os.path.exists(f"{stem}.lab") else marked({"init": [0]}, tra.n_states)
    return Labelled(
        where=path,
        state_choices=offsets_of(tra.choice_state, tra.n_states),
        choice_branches=offsets_of(tra.row_choice, len(tra.choice_state)),
        target=tra.target,
        probability=tra.probability,
        choice_action=tra.choice_action,
        actions=tra.actions,
        labels=labels,
        rewards=Lazy(structures, structures.__getitem__),
        initial=labels["init"] if "init" in labels else np.zeros(tra.n_states, dtype=np.bool_),
        can_write_action=writable_action,
        states=_state_names(f"{stem}.sta", tra.n_states) if tra.extras.states is None and os.path.exists(f"{stem}.sta") else None,
        extras=tra.extras,
    )


def _labels(path: str, n_states: int) -> Labels:
    file = _Lines(path)
    names: dict[int, str] = {}
    members: dict[str, list[int]] = {}
    position = 0
    while position < len(file.header):
        match = _LABEL.match(file.header, position)
        if match is None:
            raise file.fail(file.header_line, f'expected a list such as 0="init" 1="goal", not {shorten(file.header[position:])!r}')
        number = file.numbers.whole(match[1], file.header_line)
        if number in names or match[2] in members:
            raise file.fail(file.header_line, f"the label {shorten(match[0].strip())} is declared twice")
        names[number], members[match[2]] = match[2], []
        position = match.end()
    for line, text in file.rows():
        left, colon, right = text.partition(":")
        state = file.numbers.whole(left, line)
        if not colon or state >= n_states:
            raise file.fail(line, f"expected 'state: label label' with a state below {n_states}, not {shorten(text)!r}")
        for word in right.split():
            number = file.numbers.whole(word, line)
            if number not in names:
                raise file.fail(line, f"label {number} is not declared")
            members[names[number]].append(state)
    return marked(members, n_states)


def _rewards(stem: str, tra: _Transitions) -> dict[str, Reward]:
    """One structure beside the model, or several with numbers."""
    structures: dict[str, Reward] = {}
    stems = [stem] if any(os.path.exists(f"{stem}.{suffix}") for suffix in ("srew", "trew")) else []
    while not stems or stems[-1] != stem:
        candidate = f"{stem}{len(stems) + 1}"
        if not any(os.path.exists(f"{candidate}.{suffix}") for suffix in ("srew", "trew")):
            break
        stems.append(candidate)
    for number, place in enumerate(stems, start=1):
        names: list[str] = []
        state = _state_rewards(f"{place}.srew", tra.n_states, names) if os.path.exists(f"{place}.srew") else None
        branch = _branch_rewards(f"{place}.trew", tra, names) if os.path.exists(f"{place}.trew") else None
        name = names[0] if names else str(number)
        if name in structures:
            raise FormatError(f"{place}.srew: a second reward structure {name!r}")
        structures[name] = Reward(state=state, branch=branch)
    return structures


def _note_name(file: _Lines, names: list[str]) -> None:
    names.extend(match[1] for _, text in file.comments if (match := _STRUCTURE.match(text)))


def _state_rewards(path: str, n_states: int, names: list[str]) -> NDArray[np.float64]:
    file = _Lines(path)
    sizes = file.sizes(2)
    rewards = np.zeros(n_states)
    seen: set[int] = set()
    for line, text in file.rows():
        words = text.split()
        state = file.numbers.whole(words[0], line)
        if len(words) != 2 or state >= n_states:
            raise file.fail(line, f"expected 'state reward' with a state below {n_states}, not {shorten(text)!r}")
        if state in seen:
            raise file.fail(line, f"a second reward for state {state}")
        seen.add(state)
        rewards[state] = file.numbers.number(words[1], line)
    file.compare("states", sizes[0], n_states)
    file.compare("rewards", sizes[1], len(seen))
    _note_name(file, names)
    return rewards


def _branch_rewards(path: str, tra: _Transitions, names: list[str]) -> NDArray[np.float64]:
    file = _Lines(path)
    width = 3 if tra.nondeterministic else 2
    sizes = file.sizes(width)
    places: list[NDArray[np.int64]] = [np.zeros((0, width), dtype=np.int64)]
    parts: list[NDArray[np.float64]] = [np.zeros(0)]
    lines: list[int] = []
    for at_lines, rows in file.blocks(width + 1):
        places.append(np.column_stack([file.numbers.wholes([row[at] for row in rows], at_lines) for at in range(width)]))
        parts.append(file.numbers.numbers([row[width] for row in rows], at_lines))
        lines.extend(at_lines)
    values = np.concatenate(parts)
    file.compare("rewards", sizes[-1], len(values))
    file.compare("states", sizes[0], tra.n_states)
    _note_name(file, names)
    wanted = tra.keys(*_with_choice(np.concatenate(places)).T)
    present = tra.row_choice * tra.n_states + tra.target
    order = np.argsort(wanted, kind="stable")
    ranked = wanted[order]
    for row in order[1:][np.diff(ranked) == 0][:1].tolist():
        if wanted[row] >= 0:
            raise file.fail(lines[row], "a second reward for the same transition")
    for row in np.flatnonzero(~np.isin(wanted, present))[:1].tolist():
        raise file.fail(lines[row], "a reward for a transition that the model does not have")
    rewards = np.zeros(len(present))
    if len(ranked):
        at = np.minimum(np.searchsorted(ranked, present), len(ranked) - 1)
        rewards = np.where(ranked[at] == present, values[order][at], 0.0)
    return rewards


def _state_names(path: str, n_states: int) -> Sequence[Name]:
    """The values of the variables as names; every state must have a line of its own."""
    file = _Lines(path)
    names: dict[int, Name] = {}
    for line, text in file.rows():
        left, colon, right = text.partition(":")
        state = file.numbers.whole(left, line)
        if not colon or not (right.strip().startswith("(") and right.strip().endswith(")")):
            raise file.fail(line, f"expected 'state:(value,...)', not {shorten(text)!r}")
        if state in names or state >= n_states:
            raise file.fail(line, f"state {state} lies outside 0..{n_states - 1} or is described twice")
        names[state] = tuple(_value(word) for word in right.strip()[1:-1].split(","))
    if len(names) != n_states:
        raise FormatError(f"{path}: describes {len(names)} of {n_states} states")
    return tuple(names[state] for state in range(n_states))


def _value(word: str) -> Name:
    word = word.strip()
    if re.fullmatch(r"-?[0-9]{1,18}", word):
        return int(word)
    return {"true": True, "false": False}.get(word, word)


# ---------------------------------------------------------------------- writing


def write(ssp: SSP, path: str) -> None:
    """Write `.tra`, `.lab`, `.srew` and `.trew`, and `.sta` where the states are tuples of numbers."""
    stem = path[: -len(".tra")]
    first = ssp.choice_outcomes[:-1]
    choice_cost = np.minimum.reduceat(ssp.outcome_cost, first)
    for choice in np.flatnonzero(choice_cost != np.maximum.reduceat(ssp.outcome_cost, first))[:1].tolist():
        raise FormatError(
            f"{path}: state {ssp.states[ssp.choice_state[choice]]!r}, action {ssp.choice_name(choice)!r} has outcomes of different costs,"
            " which PRISM's explicit files cannot hold; write .umb or .drn"
        )
    rows, costly = _rows(ssp, choice_cost.tolist())
    n_choices = ssp.n_choices + int(np.count_nonzero(ssp.is_goal))
    files = {
        path: [f"#{extras_line(ssp)}", f"{ssp.n_states} {n_choices} {len(rows)}", *rows],
        f"{stem}.lab": ['0="init" 1="goal"', *_label_lines(ssp)],
        # No state rewards; the file is there lest an older one be taken for ours.
        f"{stem}.srew": ['# Reward structure "cost"', f"{ssp.n_states} 0"],
        f"{stem}.trew": ['# Reward structure "cost"', f"{ssp.n_states} {n_choices} {len(costly)}", *costly],
    }
    names = [name for name in ssp.states if isinstance(name, tuple) and name and all(type(value) is int for value in name)]
    if len(names) == ssp.n_states and len({len(name) for name in names}) == 1:
        variables = ",".join(f"x{index}" for index in range(len(names[0])))
        files[f"{stem}.sta"] = [f"({variables})", *(f"{index}:({','.join(map(str, name))})" for index, name in enumerate(names))]
    for place, lines in files.items():
        write_bytes(place, ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))


def _rows(ssp: SSP, choice_cost: list[float]) -> tuple[list[str], list[str]]:
    """The lines of `.tra`, with a loop at each goal, and those of `.trew`. Parallel outcomes share a reward, which stands once."""
    words = action_words(ssp, writable_action)
    choices, outcomes = ssp.state_choices.tolist(), ssp.choice_outcomes.tolist()
    target, probability, is_goal = ssp.outcome_target.tolist(), ssp.outcome_probability.tolist(), ssp.is_goal.tolist()
    rows: list[str] = []
    costly: dict[str, None] = {}
    for state in range(ssp.n_states):
        if is_goal[state]:
            rows.append(f"{state} 0 {state} 1")
        for position, choice in enumerate(range(choices[state], choices[state + 1])):
            for outcome in range(outcomes[choice], outcomes[choice + 1]):
                rows.append(f"{state} {position} {target[outcome]} {probability[outcome]!r} {words[choice]}")
                if choice_cost[choice]:
                    costly[f"{state} {position} {target[outcome]} {choice_cost[choice]!r}"] = None
    return rows, list(costly)


def _label_lines(ssp: SSP) -> Iterator[str]:
    for state in sorted({ssp.start_index, *np.flatnonzero(ssp.is_goal).tolist()}):
        labels = (["0"] if state == ssp.start_index else []) + (["1"] if ssp.is_goal[state] else [])
        yield f"{state}: {' '.join(labels)}"
