"""Loops of the risk-neutral problem: v(s) = min over choices of r + P v. Targets >= n are goals, worth 0.

*Folded* decisions are what the sweeps run over: states stand in the order in which they are swept, goals are left out, and the chance of staying
is divided out of every choice by the sum of its other probabilities, never by 1 - p. Where a choice never leaves its state it is left out.
Proofs look at the decisions as given, and at differences of values only: with probabilities that sum to 1,
r + P v - v(s) = r + sum p (v(t) - v(s)), and rounding is charged on the differences, which stay small however long the way is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import UNIT

Array = NDArray[Any]
#: States per block, and how often a block follows its policy while it is in the cache, after its choices were made, unless told otherwise.
BLOCK = 2_048
FOLLOWED = 8
#: Where blocks read more than this many others, or than half of them, on average, it is not worth while to remember which.
MOST_READ = 64


class Decisions(NamedTuple):
    """State -> choices -> outcomes, with the expected cost `rate` of every choice."""

    state_choices: Array
    choice_outcomes: Array
    target: Array
    probability: Array
    rate: Array


@kernel
def fold(given: Decisions, leak: Array, order: Array, out: Decisions) -> tuple[int, int]:
    """Fold decisions into the given order; returns how many choices and outcomes are left. `leak` is a chance to arrive that is not listed."""
    n = len(order)
    number = np.empty(n, dtype=np.int32)
    for place in range(n):
        number[order[place]] = place
    choices, outcomes = 0, 0
    out.state_choices[0] = out.choice_outcomes[0] = 0
    for place in range(n):
        state = order[place]
        for choice in range(given.state_choices[state], given.state_choices[state + 1]):
            leave = leak[choice]
            for outcome in range(given.choice_outcomes[choice], given.choice_outcomes[choice + 1]):
                if given.target[outcome] != state:
                    leave += given.probability[outcome]
            if leave == 0.0:
                continue
            for outcome in range(given.choice_outcomes[choice], given.choice_outcomes[choice + 1]):
                to = given.target[outcome]
                if to != state and to < n:
                    out.target[outcomes] = number[to]
                    out.probability[outcomes] = given.probability[outcome] / leave
                    outcomes += 1
            out.rate[choices] = given.rate[choice] / leave
            choices += 1
            out.choice_outcomes[choices] = outcomes
        out.state_choices[place + 1] = choices
    return choices, outcomes


@kernel
def divide(folded: Decisions, first: int, middle: int, last: int) -> None:
    """Let each half of a component see the other as it was before the round: its targets are counted from n on, where copies of values stand."""
    n = len(folded.state_choices) - 1
    for state in range(first, last):
        low, high = (middle, last) if state < middle else (first, middle)
        for outcome in range(folded.choice_outcomes[folded.state_choices[state]], folded.choice_outcomes[folded.state_choices[state + 1]]):
            if low <= folded.target[outcome] < high:
                folded.target[outcome] += n


@kernel
def linked_blocks(folded: Decisions, first: int, last: int) -> tuple[Array, Array]:
    """The blocks of a component that each of its blocks reads, as offsets and members; the last offset is -1 where they are too many to tell."""
    blocks = (last - first + BLOCK - 1) // BLOCK
    start, reads = np.zeros(blocks + 1, dtype=np.int32), np.empty(min(MOST_READ, blocks // 2 + 1) * blocks, dtype=np.int32)
    seen = np.full(blocks, -1, dtype=np.int32)
    count = 0
    for block in range(blocks):
        begin, end = first + block * BLOCK, min(first + (block + 1) * BLOCK, last)
        for outcome in range(folded.choice_outcomes[folded.state_choices[begin]], folded.choice_outcomes[folded.state_choices[end]]):
            other = (folded.target[outcome] - first) // BLOCK
            if 0 <= other < blocks and seen[other] != block:
                if count == len(reads):
                    start[-1] = -1
                    return start, reads
                seen[other] = block
                reads[count] = other
                count += 1
        start[block + 1] = count
    return start, reads


@kernel
def least_values(
    part_start: Array, part: int, folded: Decisions, tolerance: float, most: int, out_value: Array, out_chosen: Array
) -> tuple[int, int]:
    """Value iteration over folded decisions, one strong component after the other, until a round moves no value by more than `tolerance` relative.

    Begins with the component `part`; returns the first that has not settled within `most` rounds or has more than one block, or their number, and
    the most rounds needed.
    """
    worst = 0
    while part < len(part_start) - 1:
        first, last = part_start[part], part_start[part + 1]
        if last - first > BLOCK:
            return part, worst
        change, previous, rounds = np.inf, np.inf, 0
        # Rounding can keep the last bits moving for ever: stop when they no longer settle.
        while change > tolerance and not (change <= 64 * UNIT and change >= previous):
            if rounds == most:
                return part, worst
            previous = change
            change = _choose(folded, first, last, out_value, out_chosen)
            if last - first == 1:
                break
            for _ in range(FOLLOWED):
                _follow(folded, first, last, out_value, out_chosen)
            rounds += 1
        worst = max(worst, rounds)
        part += 1
    return part, worst


@kernel
def play_round(
    folded: Decisions,
    first: int,
    last: int,
    low: int,
    high: int,
    start: Array,
    reads: Array,
    quiet: float,
    followed: int,
    moved: Array,
    out_value: Array,
    out_chosen: Array,
) -> float:
    """One round over the blocks `low` .. `high` - 1 of a component; returns the largest relative change made by choosing.

    A round chooses anew in every state and then follows the choices `followed` times. It goes through the blocks in a row, each stage one block
    behind the one before, so that a block is read from memory once a round; values are overwritten as they are found. `moved` holds by how much
    choosing moved each block in the last round and in this one: where nothing that a block reads moved more than `quiet`, it is left out.
    """
    change = 0.0
    for beat in range(low, high + followed):
        if beat < high:
            begin = first + beat * BLOCK
            moved[1, beat] = 0.0
            if _is_awake(beat, low, high, start, reads, quiet, moved):
                moved[1, beat] = _choose(folded, begin, min(begin + BLOCK, last), out_value, out_chosen)
                change = max(change, moved[1, beat])
        for block in range(min(beat - 1, high - 1), max(beat - followed, low) - 1, -1):
            if moved[1, block] > quiet:
                begin = first + block * BLOCK
                _follow(folded, begin, min(begin + BLOCK, last), out_value, out_chosen)
    return change


@kernel
def _is_awake(block: int, low: int, high: int, start: Array, reads: Array, quiet: float, moved: Array) -> bool:
    """Whether something that a block reads has moved: in the last round, or in this one among the blocks that are played together."""
    if start[-1] < 0 or moved[0, block] > quiet:
        return True
    for position in range(start[block], start[block + 1]):
        other = reads[position]
        if moved[0, other] > quiet or (low <= other < high and moved[1, other] > quiet):
            return True
    return False


@kernel
def _choose(folded: Decisions, first: int, last: int, out_value: Array, out_chosen: Array) -> float:
    """Give every state in a row its best choice and that choice's value; returns the largest relative change."""
    change = 0.0
    for state in range(first, last):
        best = np.inf
        for choice in range(folded.state_choices[state], folded.state_choices[state + 1]):
            total = folded.rate[choice]
            for outcome in range(folded.choice_outcomes[choice], folded.choice_outcomes[choice + 1]):
                total += folded.probability[outcome] * out_value[folded.target[outcome]]
            if total < best:
                best = total
                out_chosen[state] = choice
        change = max(change, abs(best - out_value[state]) / (abs(best) + 1e-300))
        out_value[state] = best
    return change


@kernel
def _follow(folded: Decisions, first: int, last: int, out_value: Array, chosen: Array) -> None:
    for state in range(first, last):
        choice = chosen[state]
        total = folded.rate[choice]
        for outcome in range(folded.choice_outcomes[choice], folded.choice_outcomes[choice + 1]):
            total += folded.probability[outcome] * out_value[folded.target[outcome]]
        out_value[state] = total


@kernel
def improve_choices(given: Decisions, value: Array, margin: float, out_choice: Array) -> int:
    """Howard's step: move to the best choice where it beats the present one by more than `margin` relative. Returns how many moved.

    Only strict gains count: a tie could close a loop that never arrives.
    """
    n = len(given.state_choices) - 1
    moved = 0
    for state in range(n):
        best, best_choice, present = np.inf, -1, np.inf
        for choice in range(given.state_choices[state], given.state_choices[state + 1]):
            total = given.rate[choice]
            for outcome in range(given.choice_outcomes[choice], given.choice_outcomes[choice + 1]):
                if given.target[outcome] < n:
                    total += given.probability[outcome] * value[given.target[outcome]]
            if choice == out_choice[state]:
                present = total
            if total < best:
                best, best_choice = total, choice
        if best_choice >= 0 and (out_choice[state] < 0 or best < present - margin * abs(present)):
            out_choice[state] = best_choice
            moved += 1
    return moved


@kernel
def _surplus(given: Decisions, state: int, choice: int, value: Array, fine: Array) -> tuple[float, float]:
    """r + P v - v(s) for v = value + fine, and what its rounding may amount to.

    Covered is what the rate and the probabilities are off from the decimals as written. `fine` is what the floats of `value` have no room for.
    """
    n = len(given.state_choices) - 1
    total, size, mass, rounded = given.rate[choice], given.rate[choice], 0.0, 12
    for outcome in range(given.choice_outcomes[choice], given.choice_outcomes[choice + 1]):
        to, p = given.target[outcome], given.probability[outcome]
        ahead = (value[to] if to < n else 0.0) - value[state]
        finely = (fine[to] if to < n else 0.0) - fine[state]
        if finely != 0.0:
            rounded = 16
        total += p * (ahead + finely)
        size += p * (abs(ahead) + abs(finely))
        mass += p
    count = given.choice_outcomes[choice + 1] - given.choice_outcomes[choice]
    return total, ((3 * count + rounded) * UNIT + abs(mass - 1.0)) * size


@kernel
def best_choices(given: Decisions, value: Array, fine: Array, out_choice: Array) -> None:
    """The first choice of every state that is best for values of value + fine, however little better."""
    for state in range(len(given.state_choices) - 1):
        least = np.inf
        for choice in range(given.state_choices[state], given.state_choices[state + 1]):
            total = _surplus(given, state, choice, value, fine)[0]
            if total < least:
                least, out_choice[state] = total, choice


@kernel
def lower_defect(given: Decisions, value: Array, fine: Array) -> float:
    """The largest amount by which value + fine may exceed its own backup. If it is <= 0, no policy that arrives costs less."""
    worst = -np.inf
    for state in range(len(given.state_choices) - 1):
        for choice in range(given.state_choices[state], given.state_choices[state + 1]):
            total, doubt = _surplus(given, state, choice, value, fine)
            worst = max(worst, doubt - total)
    return worst


@kernel
def relative_bounds(given: Decisions, value: Array, chosen: Array) -> tuple[float, float]:
    """Shares d, e with (1 - d) value <= V* and V of the policy `chosen` <= (1 + e) value, proved by one look; all rates must be positive.

    With D = r + P v - v(s), (1 - d) v lies below its backup if d r >= -D for every choice, and (1 + e) v above its own under the policy if
    e (r - D) >= D. Since rates are positive, such an upper bound also proves that the policy arrives.
    """
    low, high = 0.0, 0.0
    fine = np.zeros(len(value))
    for state in range(len(given.state_choices) - 1):
        for choice in range(given.state_choices[state], given.state_choices[state + 1]):
            total, doubt = _surplus(given, state, choice, value, fine)
            low = max(low, (doubt - total) / given.rate[choice])
            if choice == chosen[state]:
                above, room = total + doubt, given.rate[choice] - total - doubt
                if above > 0.0:
                    high = max(high, above / room if room > 0.0 else np.inf)
    return low * (1 + 16 * UNIT), high * (1 + 16 * UNIT)
