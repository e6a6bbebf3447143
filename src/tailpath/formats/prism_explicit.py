"""PRISM's explicit files: `NAME.tra` with `NAME.lab`, `NAME.srew`, `NAME.trew` and `NAME.sta` beside it.

    .tra    MDP: "n c m", then "i k j x [a]"      DTMC: "n m", then "i j x [a]"
    .lab    0="init" 1="deadlock" 2="goal", then "s: l l"
    .srew   "n m", then "s r"
    .trew   MDP: "n c m", then "i k j r"          DTMC: "n m", then "i j r"
    .sta    (x,y), then "i:(1,true)"

PRISM's `-exportrows` writes a choice per line, "i x:j x:j [a]", in `.tra` and in `.trew`. Storm writes `mdp` or `dtmc` for the header and lists
labels between `#DECLARATION` and `#END`, then "s l l". Every file may be packed with gzip, as `NAME.tra.gz`.
Lines that start with `#` and blank lines may stand anywhere. Without `.lab` the start is state 0. A model with several reward structures has
`NAME1.srew`, `NAME2.srew` and so on; a comment `# Reward structure "name"` names one. We read a `.trew` whose rewards differ within a
choice, which PRISM does not, and refuse to write one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError
from tailpath.formats.costs import CostRule
from tailpath.formats.extras import action_words, extras_line
from tailpath.formats.files import shorten, write_bytes
from tailpath.formats.labelled import Labelled, Labels, Lazy, Reward, marked, to_ssp
from tailpath.formats.names import wholes
from tailpath.formats.prism_transitions import ExplicitFile, Table, Transitions, narrow, with_choice
from tailpath.formats.reading import Reading
from tailpath.formats.writing import BLOCK, Texts, blocks, cut, encoded, joined, named, put_before, spelled
from tailpath.kernels.graph import equal_members
from tailpath.kernels.jit import frozen
from tailpath.kernels.texts import fill_in_order
from tailpath.model.builders import FEW
from tailpath.model.ragged import SMALL, offsets_of
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress

_LABEL = re.compile(r'\s*(\d+)="([^"]*)"')
_STRUCTURE = re.compile(r'#\s*Reward structure:?\s*"([^"]*)"')


def read(path: str, reading: Reading) -> SSP:
    """Read the files of a model from the path of its `.tra`."""
    rule = CostRule.from_options(1, reading)
    return to_ssp(_model(path, reading), reading, rule)


def writable_action(word: str) -> bool:
    """An action is the last word of its line."""
    return word.isprintable() and not any(c.isspace() for c in word)


def _model(path: str, reading: Reading) -> Labelled:
    stem = _stem(path)
    tra = Transitions(path, reading)
    structures = _rewards(stem, tra, reading)
    place = _beside(stem, "lab")
    labels = marked({"init": [0]}, tra.n_states) if place is None else _labels(place, tra.n_states, reading)
    variables = _beside(stem, "sta") if tra.extras.states is None else None
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
        states=None if variables is None else _state_names(variables, tra.n_states, reading),
        extras=tra.extras,
    )


def _stem(path: str) -> str:
    return path[: -len(".tra.gz")] if path.lower().endswith(".gz") else path[: -len(".tra")]


def _beside(stem: str, suffix: str) -> str | None:
    """The path of a companion of the model, packed or not, if it has one."""
    return next((place for place in (f"{stem}.{suffix}", f"{stem}.{suffix}.gz") if os.path.exists(place)), None)


def _labels(path: str, n_states: int, reading: Reading) -> Labels:
    file = ExplicitFile(path, reading)
    if any(text == "#DECLARATION" for _, text in file.comments):
        return _declared_labels(file, n_states)
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


def _declared_labels(file: ExplicitFile, n_states: int) -> Labels:
    """Labels as Storm writes them."""
    members: dict[str, list[int]] = {name: [] for name in file.header.split()}
    for line, text in file.rows():
        state, *names = text.split()
        if file.numbers.whole(state, line) >= n_states:
            raise file.fail(line, f"state {state} lies outside 0..{n_states - 1}")
        for name in names:
            if name not in members:
                raise file.fail(line, f"label {shorten(name)!r} is not declared")
            members[name].append(int(state))
    return marked(members, n_states)


def _rewards(stem: str, tra: Transitions, reading: Reading) -> dict[str, Reward]:
    """One structure beside the model, or several with numbers."""
    structures: dict[str, Reward] = {}

    def has_rewards(place: str) -> bool:
        return any(_beside(place, suffix) for suffix in ("srew", "trew"))

    stems = [stem] if has_rewards(stem) else []
    while not stems or stems[-1] != stem:
        candidate = f"{stem}{len(stems) + 1}"
        if not has_rewards(candidate):
            break
        stems.append(candidate)
    for number, place in enumerate(stems, start=1):
        names: list[str] = []
        of_states, of_branches = _beside(place, "srew"), _beside(place, "trew")
        state = None if of_states is None else _state_rewards(of_states, tra.n_states, names, reading)
        branch = None if of_branches is None else _branch_rewards(of_branches, tra, names, reading)
        name = names[0] if names else str(number)
        if name in structures:
            raise FormatError(f"{place}.srew: a second reward structure {name!r}")
        structures[name] = Reward(state=state, branch=branch)
    return structures


def _note_name(file: ExplicitFile, names: list[str]) -> None:
    names.extend(match[1] for _, text in file.comments if (match := _STRUCTURE.match(text)))


def _state_rewards(path: str, n_states: int, names: list[str], reading: Reading) -> NDArray[np.float64]:
    file = ExplicitFile(path, reading)
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


def _branch_rewards(path: str, tra: Transitions, names: list[str], reading: Reading) -> NDArray[np.float64]:
    file = ExplicitFile(path, reading)
    width = 3 if tra.nondeterministic else 2
    sizes = file.sizes(width)
    lines, places, values, _, _ = file.table(width, 1) or _reward_rows(file, width, tra)
    file.compare("rewards", sizes[-1], len(values))
    file.compare("states", sizes[0], tra.n_states)
    if tra.nondeterministic:
        file.compare("choices", sizes[1], len(tra.choice_action))
    _note_name(file, names)
    columns = with_choice(places).T
    rewards = np.zeros(len(tra.target))
    if (
        len(values) > SMALL
        and columns.dtype == np.int32
        and fill_in_order(*narrow(*columns), *frozen(values), *narrow(tra.state, tra.choice, tra.target), rewards)
    ):
        return rewards
    wanted = tra.keys(*columns)
    present = tra.row_choice.astype(np.int64) * tra.n_states + tra.target
    order = np.argsort(wanted, kind="stable")
    ranked = wanted[order]
    for row in order[1:][np.diff(ranked) == 0][:1].tolist():
        if wanted[row] >= 0:
            raise file.fail(lines[row], "a second reward for the same transition")
    for row in np.flatnonzero(~np.isin(wanted, present))[:1].tolist():
        raise file.fail(lines[row], "a reward for a transition that the model does not have")
    if len(ranked):
        at = np.minimum(np.searchsorted(ranked, present), len(ranked) - 1)
        return np.where(ranked[at] == present, values[order][at], 0.0)
    return np.zeros(len(present))


def _reward_rows(file: ExplicitFile, width: int, tra: Transitions) -> Table:
    if file.has_rows(may_be_empty=True):
        found = file.choice_rows(width)
        n_choices = np.bincount(tra.choice_state, minlength=tra.n_states)
        for state, count in file.rows_of_state.items():
            if state < tra.n_states and count != n_choices[state]:
                raise FormatError(
                    f"{file.path}: {count} rows of rewards for the {n_choices[state]} choices of state {state}, and nothing says whose they are;"
                    " export the rewards without -exportrows"
                )
        return found
    places: list[NDArray[np.int64]] = [np.zeros((0, width), dtype=np.int64)]
    parts: list[NDArray[np.float64]] = [np.zeros(0)]
    lines: list[int] = []
    for at_lines, rows in file.blocks(width + 1):
        places.append(np.column_stack([file.numbers.wholes([row[at] for row in rows], at_lines) for at in range(width)]))
        parts.append(file.numbers.numbers([row[width] for row in rows], at_lines))
        lines.extend(at_lines)
    return Table(lines, np.concatenate(places), np.concatenate(parts), np.zeros(0, dtype=np.int64), [])


def _state_names(path: str, n_states: int, reading: Reading) -> Sequence[Name]:
    """The values of the variables as names; every state must have a line of its own."""
    file = ExplicitFile(path, reading)
    n_variables = file.header.count(",") + 1
    if not (file.header.startswith("(") and file.header.endswith(")")):
        raise file.fail(file.header_line, f"expected the variables '(x,y)', not {shorten(file.header)!r}")
    names: dict[int, Name] = {}
    for line, text in file.rows():
        left, colon, right = text.partition(":")
        state = file.numbers.whole(left, line)
        if not colon or not (right.strip().startswith("(") and right.strip().endswith(")")):
            raise file.fail(line, f"expected 'state:(value,...)', not {shorten(text)!r}")
        if state in names or state >= n_states:
            raise file.fail(line, f"state {state} lies outside 0..{n_states - 1} or is described twice")
        values = right.strip()[1:-1].split(",")
        if len(values) != n_variables:
            raise file.fail(line, f"{len(values)} values, but {n_variables} variables are declared")
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


def write(ssp: SSP, path: str, progress: Progress | None = None) -> None:
    """Write `.tra`, `.lab`, `.srew` and `.trew`, and `.sta` where the states are tuples of numbers."""
    if path.lower().endswith(".gz"):
        raise FormatError(f"{path}: packed explicit files are read, not written; write .tra")
    stem = _stem(path)
    first = ssp.choice_outcomes[:-1]
    choice_cost = np.minimum.reduceat(ssp.outcome_cost, first)
    for choice in np.flatnonzero(choice_cost != np.maximum.reduceat(ssp.outcome_cost, first))[:1].tolist():
        raise FormatError(
            f"{path}: state {ssp.states[ssp.choice_state[choice]]!r}, action {ssp.choice_name(choice)!r} has outcomes of different costs,"
            " which PRISM's explicit files cannot hold; write .umb or .drn"
        )
    n_goals = int(np.count_nonzero(ssp.is_goal))
    sizes, costly = f"{ssp.n_states} {ssp.n_choices + n_goals}", np.flatnonzero(_rewarded(ssp))
    head = '# Reward structure "cost"\n'
    files: dict[str, Iterable[bytes]] = {
        path: chain([encoded(f"#{extras_line(ssp)}\n{sizes} {ssp.n_outcomes + n_goals}\n")], _transition_rows(ssp, progress)),
        f"{stem}.lab": map(encoded, ['0="init" 1="goal"\n', *_label_lines(ssp)]),
        # No state rewards; the file is there lest an older one be taken for ours.
        f"{stem}.srew": [encoded(f"{head}{ssp.n_states} 0\n")],
        f"{stem}.trew": chain([encoded(f"{head}{sizes} {len(costly)}\n")], _reward_lines(ssp, costly, progress)),
    }
    names: Any = ssp.states
    if wholes(names) and len(set(map(len, names))) == 1:
        files[f"{stem}.sta"] = _state_lines(names)
    for place, pieces in files.items():
        write_bytes(place, pieces)


def _transition_rows(ssp: SSP, progress: Progress | None) -> Iterator[bytes]:
    """The lines of `.tra`, some states at a time, with a loop at each goal."""
    word, number = action_words(ssp, writable_action), named(map(str, range(ssp.n_states)))
    for block in blocks(ssp, progress):
        choice = cut(ssp.outcome_choice, block.outcomes)
        heads = np.append(_heads(ssp, choice), "")  # the last one is for the goals after all outcomes
        goals = np.flatnonzero(cut(ssp.is_goal, block.states)) + block.states.start
        place = np.searchsorted(ssp.choice_state[choice], goals)
        put_before(heads, place.tolist(), (f"{goal} 0 {goal} 1\n" for goal in goals.tolist()))
        yield joined(
            heads[:-1],
            number[cut(ssp.outcome_target, block.outcomes)],
            spelled(cut(ssp.outcome_probability, block.outcomes), lambda value: f" {value!r} "),
            spelled(ssp.choice_action[choice], lambda action: f"{word(action)}\n"),
        )
        yield encoded(heads[-1])


def _rewarded(ssp: SSP) -> NDArray[np.bool_]:
    """The outcomes that `.trew` speaks of. Parallel outcomes share a reward, which stands once."""
    costly = np.asarray(ssp.outcome_cost != 0)
    if ssp.n_outcomes <= SMALL or equal_members(*frozen(ssp.outcome_choice, ssp.outcome_target, np.zeros(ssp.n_outcomes)), FEW) != 0:
        _, once = np.unique(ssp.outcome_choice.astype(np.int64) * ssp.n_states + ssp.outcome_target, return_index=True)
        first = np.zeros(ssp.n_outcomes, dtype=np.bool_)
        first[once] = True
        costly &= first
    return costly


def _reward_lines(ssp: SSP, costly: NDArray[Any], progress: Progress | None) -> Iterator[bytes]:
    number = named(map(str, range(ssp.n_states)))
    for block in blocks(ssp, progress):
        begin, end = np.searchsorted(costly, [block.outcomes.start, block.outcomes.stop])
        outcome = costly[begin:end]
        costs = spelled(ssp.outcome_cost[outcome], lambda cost: f" {cost!r}\n")
        yield joined(_heads(ssp, ssp.outcome_choice[outcome]), number[ssp.outcome_target[outcome]], costs)


def _heads(ssp: SSP, choice: NDArray[Any]) -> Texts:
    """How lines begin: the state of each choice, (n,), and its number there."""
    new = np.append(True, np.diff(choice) != 0)[: len(choice)]  # the outcomes of a choice stand together
    state = ssp.choice_state[choice[new]]
    numbers = zip(state.tolist(), (choice[new] - ssp.state_choices[state]).tolist())
    return named(f"{state} {number} " for state, number in numbers)[np.cumsum(new) - 1]


def _state_lines(names: Sequence[tuple[int, ...]]) -> Iterator[bytes]:
    """The lines of `.sta`, some at a time."""
    yield encoded(f"({','.join(f'x{index}' for index in range(len(names[0])))})\n")
    for first in range(0, len(names), BLOCK):
        some = enumerate(names[first : first + BLOCK], start=first)
        yield encoded("".join(f"{state}:({','.join(map(str, name))})\n" for state, name in some))


def _label_lines(ssp: SSP) -> Iterator[str]:
    for state in sorted({ssp.start_index, *np.flatnonzero(ssp.is_goal).tolist()}):
        labels = (["0"] if state == ssp.start_index else []) + (["1"] if ssp.is_goal[state] else [])
        yield f"{state}: {' '.join(labels)}\n"
