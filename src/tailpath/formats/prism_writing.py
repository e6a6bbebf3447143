"""PRISM's explicit files, as `prism_explicit.py` describes them, written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.extras import action_words, extras_line
from tailpath.formats.files import write_bytes
from tailpath.formats.prism_explicit import stem_of, writable_action
from tailpath.formats.writing import (
    BLOCK,
    Texts,
    all_integers,
    blocks,
    choice_costs,
    encoded,
    formatted,
    joined_columns,
    put_before,
    text_column,
)
from tailpath.graph import Array, first_of
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import SSP
from tailpath.options import Progress


def write(model: SSP | IntervalSSP, path: str, progress: Progress | None = None) -> None:
    """Write `.tra`, `.lab`, `.srew` and `.trew`, and `.sta` where the states are tuples
    of numbers.
    """
    ssp = underlying_ssp(model)
    if path.lower().endswith(".gz"):
        raise FormatError(f"{path}: packed explicit files are read, not written; write .tra")
    stem = stem_of(path)
    for choice in first_of(choice_costs(ssp)[1]):
        raise FormatError(
            f"{path}: state {ssp.states[ssp.choice_state[choice]]!r}, action"
            f" {ssp.choice_name(choice)!r} has outcomes of different costs, which PRISM's explicit"
            " files cannot hold; write .umb or .drn"
        )
    n_goals = int(np.count_nonzero(ssp.is_goal))
    sizes, costly = f"{ssp.n_states} {ssp.n_choices + n_goals}", _rewarded(ssp)
    head = '# Reward structure "cost"\n'
    files: dict[str, Iterable[bytes]] = {
        path: chain(
            [encoded(f"#{extras_line(ssp)}\n{sizes} {ssp.n_outcomes + n_goals}\n")],
            _transition_rows(model, progress),
        ),
        f"{stem}.lab": map(encoded, ['0="init" 1="goal"\n', *_label_lines(ssp)]),
        # No state rewards; the file is there lest an older one be taken for ours.
        f"{stem}.srew": [encoded(f"{head}{ssp.n_states} 0\n")],
        f"{stem}.trew": chain(
            [encoded(f"{head}{sizes} {len(costly)}\n")], _reward_lines(ssp, costly, progress)
        ),
    }
    names: Any = ssp.states
    if all_integers(names) and len(set(map(len, names))) == 1:
        files[f"{stem}.sta"] = _state_lines(names)
    for path_name, pieces in files.items():
        write_bytes(path_name, pieces)


def _transition_rows(model: SSP | IntervalSSP, progress: Progress | None) -> Iterator[bytes]:
    """The lines of `.tra`, some states at a time, with a loop at each goal."""
    ssp, one = underlying_ssp(model), "[1,1]" if isinstance(model, IntervalSSP) else "1"
    word, number = action_words(ssp, writable_action), text_column(map(str, range(ssp.n_states)))
    for block in blocks(model, progress):
        # The last one is for the goals after all outcomes.
        heads = np.append(_heads(ssp, block.choice), "")
        goals = [state for state in block.states if ssp.is_goal[state]]
        position = np.searchsorted(ssp.choice_state[block.choice], goals)
        put_before(heads, position.tolist(), (f"{goal} 0 {goal} {one}\n" for goal in goals))
        yield joined_columns(
            heads[:-1],
            block.targets(number),
            *block.probabilities(" ", ",", " "),
            block.actions(lambda action: f"{word(action)}\n"),
        )
        yield encoded(heads[-1])


def _rewarded(ssp: SSP) -> Array:
    """The outcomes that `.trew` speaks of. Parallel outcomes share a reward, which stands once."""
    branch = ssp.outcome_choice.astype(np.int64) * ssp.n_states + ssp.outcome_target
    once = np.sort(np.unique(branch, return_index=True)[1])
    return np.asarray(once[ssp.outcome_cost[once] != 0])


def _reward_lines(ssp: SSP, costly: Array, progress: Progress | None) -> Iterator[bytes]:
    number = text_column(map(str, range(ssp.n_states)))
    for block in blocks(ssp, progress):
        begin, end = np.searchsorted(costly, [block.outcomes.start, block.outcomes.stop])
        outcome = costly[begin:end]
        costs = formatted(ssp.outcome_cost[outcome], " {!r}\n".format)
        yield joined_columns(
            _heads(ssp, ssp.outcome_choice[outcome]), number[ssp.outcome_target[outcome]], costs
        )


def _heads(ssp: SSP, choice: Array) -> Texts:
    """How lines begin: the state of each choice, (n,), and its number there."""
    # The outcomes of a choice stand together.
    new = np.append(True, np.diff(choice) != 0)[: len(choice)]
    state = ssp.choice_state[choice[new]]
    numbers = zip(state.tolist(), (choice[new] - ssp.state_choices[state]).tolist())
    heads = text_column(f"{state} {number} " for state, number in numbers)
    return np.asarray(heads[np.cumsum(new) - 1])


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
