"""The body of large DRN files, read in plain loops; see `texts.py` for what a scan is."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.texts import (
    BRANCHES,
    CHOICES,
    CLOSING,
    COLON,
    DIGITS,
    DONE,
    FULL,
    LINES,
    NEWLINE,
    NINE,
    ODD,
    OPEN,
    OPENING,
    SLASH,
    STATES,
    TEXTS,
    ZERO,
    end_of_digits,
    end_of_word,
    find,
    number_of,
    plain,
    skip_blanks,
    spells,
    whole,
)

Array = NDArray[Any]


@kernel
def scan_drn(
    data: Array,
    at: int,
    stop: int,
    word_state: Array,
    word_action: Array,
    slots: Array,
    begin: Array,
    length: Array,
    counts: Array,
    out_state: Array,
    out_choice: Array,
    out_target: Array,
    out_chance: Array,
) -> tuple[int, int]:
    """The body of a DRN file.

    `out_state[:, s]` are the first choice of a state, the text of its rewards and of its labels; `out_choice[:, k]` the first branch of a choice, the
    text of its name and of its rewards; -1 where there is no such text. `out_target` and `out_chance` are the number and the text of a branch.
    """
    last = len(data)
    while at < stop:
        if 2 * (counts[TEXTS] + 2) >= len(slots):
            return at, FULL
        line = at
        at = skip_blanks(data, at, last)
        if at == last:
            return at, DONE
        byte = data[at]
        if ZERO <= byte <= NINE:
            after = end_of_digits(data, at, last)
            colon = skip_blanks(data, after, last)
            first = skip_blanks(data, colon + 1, last)
            final = end_of_word(data, first, last)
            if after - at > DIGITS or colon >= last or data[colon] != COLON or final == first or counts[STATES] == 0:
                return line, ODD
            if counts[OPEN] == 0:
                out_choice[0, counts[CHOICES]], out_choice[1, counts[CHOICES]], out_choice[2, counts[CHOICES]] = counts[BRANCHES], -1, -1
                counts[CHOICES] += 1
                counts[OPEN] = 1
            out_target[counts[BRANCHES]] = whole(data, at, after)
            out_chance[counts[BRANCHES]] = number_of(data, first, final, slots, begin, length, counts)
            counts[BRANCHES] += 1
            at = skip_blanks(data, final, last)
        elif spells(data, at, last, word_action):
            first = skip_blanks(data, at + len(word_action), last)
            final = end_of_word(data, first, last)
            if final == first or counts[STATES] == 0 or find(data, OPENING, first, final) < final:
                return line, ODD
            at = skip_blanks(data, final, last)
            rewards = -1
            if at < last and data[at] == OPENING:
                closing = find(data, CLOSING, at, last)
                if closing == last or not plain(data, at, closing):
                    return line, ODD
                rewards = number_of(data, at + 1, closing, slots, begin, length, counts)
                at = skip_blanks(data, closing + 1, last)
            name = number_of(data, first, final, slots, begin, length, counts)
            out_choice[0, counts[CHOICES]], out_choice[1, counts[CHOICES]], out_choice[2, counts[CHOICES]] = counts[BRANCHES], name, rewards
            counts[CHOICES] += 1
            counts[OPEN] = 1
        elif spells(data, at, last, word_state):
            first = skip_blanks(data, at + len(word_state), last)
            final = end_of_digits(data, first, last)
            if not 0 < final - first <= DIGITS or whole(data, first, final) != counts[STATES]:
                return line, ODD
            at = skip_blanks(data, final, last)
            if at == final and at < last and data[at] != NEWLINE:
                return line, ODD
            rewards = -1
            if at < last and data[at] == OPENING:
                closing = find(data, CLOSING, at, last)
                if closing == last or not plain(data, at, closing) or (closing + 1 < last and data[closing + 1] == OPENING):
                    return line, ODD
                rewards = number_of(data, at + 1, closing, slots, begin, length, counts)
                at = skip_blanks(data, closing + 1, last)
            final = find(data, NEWLINE, at, last)
            if not plain(data, at, final):
                return line, ODD
            labels = number_of(data, at, final, slots, begin, length, counts) if final > at else -1
            at = final
            out_state[0, counts[STATES]], out_state[1, counts[STATES]], out_state[2, counts[STATES]] = counts[CHOICES], rewards, labels
            counts[STATES] += 1
            counts[OPEN] = 0
        elif byte == SLASH and at + 1 < last and data[at + 1] == SLASH:
            at = find(data, NEWLINE, at, last)
        elif byte != NEWLINE:
            return line, ODD
        if at < last and data[at] != NEWLINE:
            return line, ODD
        at += 1
        counts[LINES] += 1
    return at, DONE
