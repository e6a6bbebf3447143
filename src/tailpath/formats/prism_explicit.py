"""PRISM's explicit files: `NAME.tra` with `NAME.lab`, `NAME.srew`, `NAME.trew` and `NAME.sta`
beside it.

    .tra    MDP: "n c m", then "i k j x [a]"      DTMC: "n m", then "i j x [a]"
    .lab    0="init" 1="deadlock" 2="goal", then "s: l l"
    .srew   "n m", then "s r"
    .trew   MDP: "n c m", then "i k j r"          DTMC: "n m", then "i j r"
    .sta    (x,y), then "i:(1,true)"

Storm writes `mdp` or `dtmc` for the header and lists labels between `#DECLARATION` and `#END`, then
"s l l". The probability x may be an interval `[low,high]`. Lines that start with `#` and blank
lines may stand anywhere; a comment `# Reward structure "name"` names one. `docs/formats.md` says
the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, count, takewhile
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.files import shorten, write_bytes
from tailpath.formats.labelled import LabelledMDP, Labels, Reward, labels_of_codes, to_ssp
from tailpath.formats.outgoing import outgoing
from tailpath.formats.prism_transitions import (
    ExplicitFile,
    TransitionFile,
    with_choice,
)
from tailpath.formats.registry import Reading
from tailpath.formats.writing import in_blocks, in_turn, share_texts
from tailpath.graph import FloatArray, offsets_of, owners
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP, Name

_LABEL = re.compile(r'\s*(\d+)="([^"]*)"')
_STRUCTURE = re.compile(r'#\s*Reward structure:?\s*"([^"]*)"')


def read(path: str, reading: Reading) -> Any:
    return to_ssp(_labelled(path, reading), reading)


def _labelled(path: str, reading: Reading) -> LabelledMDP:
    stem = stem_of(path)
    tra = TransitionFile(path, reading)
    structures = _rewards(stem, tra, reading)
    path_name = _beside(stem, "lab")
    labels = labels_of_codes({"init": [0]}, np.arange(tra.n_states))
    if path_name is not None:
        labels = _labels(path_name, tra.n_states, reading)
    variables = None if tra.extras.has("states") else _beside(stem, "sta")
    return LabelledMDP(
        path=path,
        state_choices=offsets_of(tra.choice_state, tra.n_states),
        choice_branches=offsets_of(tra.row_choice, len(tra.choice_state)),
        target=tra.target,
        probability=tra.probability,
        low=tra.low,
        choice_action=tra.choice_action,
        actions=tra.actions,
        labels=labels,
        rewards={name: partial(Reward, *found) for name, found in structures.items()},
        can_write_action=writable_action,
        states=None if variables is None else _state_names(variables, tra.n_states, reading),
        extras=tra.extras,
    )


def writable_action(word: str) -> bool:
    """An action is the last word of its line."""
    return word.isprintable() and not any(c.isspace() for c in word)


def stem_of(path: str) -> str:
    return path[: -len(".tra.gz")] if path.lower().endswith(".gz") else path[: -len(".tra")]


def _beside(stem: str, suffix: str) -> str | None:
    """The path of a companion of the model, packed or not, if it has one."""
    return next(
        (
            path_name
            for path_name in (f"{stem}.{suffix}", f"{stem}.{suffix}.gz")
            if os.path.exists(path_name)
        ),
        None,
    )


def _labels(path: str, n_states: int, reading: Reading) -> Labels:
    """The states of each label: "s: l l" with numbers that the header declares, or as Storm writes
    it "s l l" with names.
    """
    file = ExplicitFile(path, reading)
    by_name = any(text == "#DECLARATION" for _, text in file.comments)
    names = {name: name for name in file.header.split()} if by_name else _numbered_labels(file)
    members: dict[str, list[int]] = {name: [] for name in names.values()}
    for text in file.rows():
        left, colon, right = text.partition(" " if by_name else ":")
        state = file.integer(left)
        if not (colon or by_name) or state >= n_states:
            raise file.error(
                f"expected 'state: label label' with a state below {n_states}, not"
                f" {shorten(text)!r}"
            )
        for word in right.split():
            if word not in names:
                raise file.error(f"label {shorten(word)!r} is not declared")
            members[names[word]].append(state)
    return labels_of_codes(members, np.arange(n_states))


def _numbered_labels(file: ExplicitFile) -> dict[str, str]:
    names: dict[str, str] = {}
    seen: set[str] = set()
    position = 0
    while position < len(file.header):
        match = _LABEL.match(file.header, position)
        if match is None:
            raise file.error(
                'expected a list such as 0="init" 1="goal", not'
                f" {shorten(file.header[position:])!r}"
            )
        number = str(file.integer(match[1]))
        if number in names or match[2] in seen:
            raise file.error(f"the label {shorten(match[0].strip())} is declared twice")
        names[number] = match[2]
        seen.add(match[2])
        position = match.end()
    return names


def _rewards(stem: str, tra: TransitionFile, reading: Reading) -> dict[str, Any]:
    """One structure beside the model, or several with numbers: rewards of states, of choices, of
    transitions."""
    structures: dict[str, Any] = {}

    def has_rewards(path_name: str) -> bool:
        return any(_beside(path_name, suffix) for suffix in ("srew", "trew"))

    numbered = takewhile(has_rewards, (f"{stem}{number}" for number in count(1)))
    for number, path_name in enumerate([stem] if has_rewards(stem) else numbered, start=1):
        paths = {suffix: _beside(path_name, suffix) for suffix in ("srew", "trew")}
        found = {
            suffix: _reward_file(path, tra, reading, of_states=suffix == "srew")
            for suffix, path in paths.items()
            if path is not None
        }
        name = next((name for name, _ in found.values() if name is not None), str(number))
        if name in structures:
            raise FormatError(f"{path_name}.srew: a second reward structure {name!r}")
        columns = {suffix: rewards for suffix, (_, rewards) in found.items()}
        structures[name] = columns.get("srew"), None, columns.get("trew")
    return structures


def _reward_file(
    path: str, tra: TransitionFile, reading: Reading, of_states: bool
) -> tuple[str | None, FloatArray]:
    """The name of a reward structure, if a file has it, and its reward of each state, or of each
    transition.
    """
    file = ExplicitFile(path, reading)
    width = 1 if of_states else 3 if tra.is_mdp else 2
    sizes = file.sizes(max(width, 2))
    found = file.table(width)
    # A key for each row, -1 where the model has no such, and for each state or transition.
    if of_states:
        what, state = "state", found.integers[:, 0]
        wanted, present = np.where(state < tra.n_states, state, -1), np.arange(tra.n_states)
    else:
        what, wanted = "transition", tra.keys(*with_choice(found.integers).T)
        present = tra.row_choice.astype(np.int64) * tra.n_states + tra.target
    if found.low is not None:
        raise FormatError(f"{path}: rewards must be numbers, not intervals")
    file.check_count("rewards", sizes[-1], len(wanted))
    file.check_count("states", sizes[0], tra.n_states)
    if len(sizes) == 3:
        file.check_count("choices", sizes[1], len(tra.choice_action))
    order = np.argsort(wanted, kind="stable")
    ranked = wanted[order]
    for row in order[1:][(np.diff(ranked) == 0) & (ranked[1:] >= 0)][:1].tolist():
        raise file.error(f"a second reward for the same {what}", found.lines[row])
    at = np.searchsorted(ranked, present)
    has_reward = np.append(ranked, -1)[at] == present
    for row in np.sort(np.delete(order, at[has_reward]))[:1].tolist():
        raise file.error(f"a reward for a {what} that the model does not have", found.lines[row])
    rewards = np.zeros(len(present))
    rewards[has_reward] = found.values[order][at[has_reward]]
    names = (match[1] for _, text in file.comments if (match := _STRUCTURE.match(text)))
    return next(names, None), rewards


def _state_names(path: str, n_states: int, reading: Reading) -> Sequence[Name]:
    """The values of the variables as names; every state must have a line of its own."""
    file = ExplicitFile(path, reading)
    n_variables = file.header.count(",") + 1
    if not (file.header.startswith("(") and file.header.endswith(")")):
        raise file.error(f"expected the variables '(x,y)', not {shorten(file.header)!r}")
    names: dict[int, Name] = {}
    for text in file.rows():
        left, colon, right = text.partition(":")
        state, right = file.integer(left), right.strip()
        if not colon or not (right.startswith("(") and right.endswith(")")):
            raise file.error(f"expected 'state:(value,...)', not {shorten(text)!r}")
        if state in names or state >= n_states:
            raise file.error(f"state {state} lies outside 0..{n_states - 1} or is described twice")
        values = right[1:-1].split(",")
        if len(values) != n_variables:
            raise file.error(f"{len(values)} values, but {n_variables} variables are declared")
        names[state] = tuple(_value(word) for word in values)
    if len(names) != n_states:
        raise FormatError(f"{path}: describes {len(names)} of {n_states} states")
    return tuple(names[state] for state in range(n_states))


def _value(word: str) -> Name:
    word = word.strip()
    if re.fullmatch(r"-?[0-9]{1,18}", word):
        return int(word)
    return {"true": True, "false": False}.get(word, word)


# ---------------------------------------------------------------------- writing


def write(model: SSP | IntervalSSP, path: str, *, dtmc: bool = False) -> None:
    """Write `.tra`, `.lab`, `.srew` and `.trew`."""
    if path.lower().endswith(".gz"):
        raise FormatError(f"{path}: packed explicit files can be read but not written; write .tra")
    stem, found = stem_of(path), outgoing(model, writable_action)
    choice = owners(found.choice_branches)
    state = owners(found.state_choices)[choice]
    # A Markov chain has no numbers of choices.
    numbers = () if dtmc else (choice - found.state_choices[state],)
    ends = np.stack([state, *numbers, found.target], axis=1)
    form = " ".join(["%d"] * len(ends.T))
    sizes = f"{found.n_states}" if dtmc else f"{found.n_states} {found.n_choices}"
    # Parallel transitions share a reward, which is listed once.
    once = np.sort(np.unique(choice * found.n_states + found.target, return_index=True)[1])
    paid = once[found.cost[once] != 0]
    numbered = {"init": "0", "goal": "1"}
    head = '# Reward structure "cost"\n'
    files: dict[str, Iterable[str]] = {
        path: chain(
            [f"#{found.line}\n{sizes} {len(ends)}\n"],
            (
                f"{form % row} {p} {found.word(action)}".rstrip() + "\n"
                for row, p, (action,) in zip(
                    in_turn(*ends.T),
                    share_texts(found.shares, ","),
                    in_turn(found.choice_action[choice]),
                )
            ),
        ),
        f"{stem}.lab": chain(
            ['0="init" 1="goal"\n'],
            (
                f"{state}: {' '.join(map(numbered.__getitem__, labels))}\n"
                for state, labels in sorted(found.labels.items())
            ),
        ),
        # No state rewards; the file is written so that an older one is not taken for ours.
        f"{stem}.srew": [f"{head}{found.n_states} 0\n"],
        f"{stem}.trew": chain(
            [f"{head}{sizes} {len(paid)}\n"],
            (
                f"{form % tuple(row)} {cost!r}\n"
                for *row, cost in in_turn(*ends[paid].T, found.cost[paid])
            ),
        ),
    }
    for path_name, lines in files.items():
        write_bytes(path_name, in_blocks(lines))
