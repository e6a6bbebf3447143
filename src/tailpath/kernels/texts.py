"""The bytes of large text files, read in plain loops.

Reading never understands a word: it notes where each line and each word lies, and gives equal texts the same number, so that whoever knows what
they mean decodes each once. A *book* of texts is three arrays: `slots`, a table of hashes with open addressing, whose entries are numbers of
texts or -1; and `begin` and `length`, where text number t stands in the data. A scan stops at a line that is not as expected (`ODD`), or when the
book is more than half full (`FULL`); it always stops at the beginning of a line, and goes on from there.

Blanks are spaces, tabs and carriage returns. Any other byte below a space, and 127, is odd. Bytes above that are letters of UTF-8, which may stand in
the cells of tables, and are odd elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import instruction, kernel

Array = NDArray[Any]

DONE, ODD, FULL = 0, 1, 2
#: The places of `counts` in a scan: lines read, texts in the book, how many of what, whether a choice is open, and what hashes begin with.
LINES, TEXTS, STATES, CHOICES, BRANCHES, OPEN, SEED = 0, 1, 2, 3, 4, 5, 6
#: Whole numbers have at most this many digits, so that they fit 32 bits.
DIGITS = 9
#: No line has more texts than this: cells of a table, at most.
MOST_TEXTS = 64
#: Longer cells are beyond Python's reader of tables.
LONGEST_CELL = 100_000

TAB, NEWLINE, RETURN, SPACE, QUOTE, HASH, COMMA, SLASH, ZERO, NINE, COLON, OPENING, CLOSING = (
    9,
    10,
    13,
    32,
    34,
    35,
    44,
    47,
    48,
    57,
    58,
    91,
    93,
)


@instruction
def eight_bytes(numba: Any) -> Any:
    """`eight_bytes(data, place)`: the bytes from a place on as one number; all eight must be there."""
    types, machine = numba.core.types, numba.core.cgutils.ir

    @numba.core.extending.intrinsic
    def eight_bytes(typing: Any, data: Any, place: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            address = builder.gep(array.data, [arguments[1]])
            return builder.load(builder.bitcast(address, machine.IntType(64).as_pointer()), align=1)

        return types.uint64(data, types.int64), write

    return eight_bytes


@kernel
def hashed(data: Array, first: int, last: int, seed: int) -> Any:
    """A hash of some bytes; the seed is drawn anew for every file, lest one be made whose texts all collide."""
    key, at = np.uint64(seed) ^ np.uint64(last - first), first
    while at + 8 <= last:
        key = (key ^ eight_bytes(data, at)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(32)
        at += 8
    if at < last:
        word = np.uint64(0)
        if last - first >= 8:
            word = eight_bytes(data, last - 8)
        else:
            for place in range(at, last):
                word = (word << np.uint64(8)) | np.uint64(data[place])
        key = (key ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return key ^ (key >> np.uint64(29))


@kernel
def same_bytes(data: Array, one: int, other: int, length: int) -> bool:
    """Whether two places of the data begin with the same bytes."""
    at = 0
    while at + 8 <= length:
        if eight_bytes(data, one + at) != eight_bytes(data, other + at):
            return False
        at += 8
    if length >= 8:
        return bool(eight_bytes(data, one + length - 8) == eight_bytes(data, other + length - 8))
    while at < length:
        if data[one + at] != data[other + at]:
            return False
        at += 1
    return True


@kernel
def repeated(data: Array, at: int, last: int, cuts: Array, column: int) -> int:
    """How long the text at `at` is if it repeats the one that `cuts` has of the last line, with the byte that ended it; else -1."""
    length = cuts[1, column] - cuts[0, column]
    return length if length >= 0 and at + length < last and same_bytes(data, cuts[0, column], at, length + 1) else -1


@kernel
def number_of(data: Array, first: int, last: int, slots: Array, begin: Array, length: Array, counts: Array) -> int:
    """The number of the text data[first:last], which is entered in the book if it is new."""
    mask = np.uint64(len(slots) - 1)
    slot = hashed(data, first, last, counts[SEED]) & mask
    while slots[slot] >= 0:
        text = slots[slot]
        if length[text] == last - first and same_bytes(data, begin[text], first, last - first):
            return int(text)
        slot = (slot + np.uint64(1)) & mask
    text = counts[TEXTS]
    slots[slot] = text
    begin[text] = first
    length[text] = last - first
    counts[TEXTS] += 1
    return int(text)


@kernel
def enter_again(data: Array, begin: Array, length: Array, counts: Array, out_slots: Array) -> None:
    """Fill the larger slots of a book that grows."""
    mask = np.uint64(len(out_slots) - 1)
    for text in range(counts[TEXTS]):
        slot = hashed(data, begin[text], begin[text] + length[text], counts[SEED]) & mask
        while out_slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        out_slots[slot] = text


@kernel
def skip_blanks(data: Array, at: int, end: int) -> int:
    while at < end and (data[at] == SPACE or data[at] == TAB or data[at] == RETURN):
        at += 1
    return at


@kernel
def end_of_word(data: Array, at: int, end: int) -> int:
    """The first byte that is no part of the word at `at`."""
    while at < end and SPACE < data[at] < 127:
        at += 1
    return at


@kernel
def end_of_digits(data: Array, at: int, end: int) -> int:
    while at < end and ZERO <= data[at] <= NINE:
        at += 1
    return at


@kernel
def whole(data: Array, first: int, last: int) -> int:
    """The number that digits stand for."""
    value = 0
    for at in range(first, last):
        value = 10 * value + data[at] - ZERO
    return value


@kernel
def find(data: Array, byte: int, at: int, end: int) -> int:
    while at < end and data[at] != byte:
        at += 1
    return at


@kernel
def spells(data: Array, at: int, end: int, word: Array) -> bool:
    """Whether the data go on with a word and a blank."""
    if at + len(word) >= end:
        return False
    for k in range(len(word)):
        if data[at + k] != word[k]:
            return False
    after = data[at + len(word)]
    return bool(after in (SPACE, TAB))


@kernel
def plain(data: Array, first: int, last: int) -> bool:
    """Whether there are only letters, blanks and the like, which mean the same to everybody."""
    odd = 0
    for at in range(first, last):
        odd += data[at] == 127 or (data[at] < SPACE and data[at] != TAB and data[at] != RETURN)
    return odd == 0


# ---------------------------------------------------------------------- rows of words, rows of cells


@kernel
def scan_rows(
    data: Array,
    at: int,
    stop: int,
    n_wholes: int,
    most: int,
    slots: Array,
    begin: Array,
    length: Array,
    counts: Array,
    out_whole: Array,
    out_text: Array,
) -> tuple[int, int]:
    """Lines of `n_wholes` whole numbers and one text, or two texts where `most` is 2; -1 where the second is missing.

    Returns where the scan stopped, and why. Blank lines may only end the data.
    """
    last = len(data)
    while at < stop:
        if 2 * (counts[TEXTS] + most) >= len(slots):
            return at, FULL
        line, row = at, counts[LINES]
        at = skip_blanks(data, at, last)
        if at == last:
            return at, DONE
        if data[at] == NEWLINE:
            rest = at
            while rest < last and (data[rest] == NEWLINE or data[rest] == SPACE or data[rest] == TAB or data[rest] == RETURN):
                rest += 1
            return (last, DONE) if rest == last else (line, ODD)
        for column in range(n_wholes):
            after = end_of_digits(data, at, last)
            if not 0 < after - at <= DIGITS or after == last or (data[after] != SPACE and data[after] != TAB):
                return line, ODD
            out_whole[column, row] = whole(data, at, after)
            at = skip_blanks(data, after, last)
        for column in range(most):
            after = end_of_word(data, at, last)
            if after == at:
                if column == 0:
                    return line, ODD
                out_text[column, row] = -1
                continue
            out_text[column, row] = number_of(data, at, after, slots, begin, length, counts)
            at = skip_blanks(data, after, last)
        if at < last and data[at] != NEWLINE:
            return line, ODD
        at += 1
        counts[LINES] += 1
    return at, DONE


@kernel
def scan_cells(
    data: Array, at: int, stop: int, order: Array, slots: Array, begin: Array, length: Array, counts: Array, cuts: Array, out_text: Array
) -> tuple[int, int]:
    """Lines of cells between commas, with their quotes where they have some; they are entered in the order given.

    `cuts` has of each column the place and the number of the last text that was new: most cells repeat the one above.
    Quoted cells on one line are as expected, quotes anywhere else are odd; so are blank lines, but for those that end the data.
    """
    last, width = len(data), len(order)
    while at < stop:
        if 2 * (counts[TEXTS] + width) >= len(slots):
            return at, FULL
        line, row = at, counts[LINES]
        if data[at] == NEWLINE or data[at] == RETURN:
            rest = at
            while rest < last and (data[rest] == NEWLINE or data[rest] == RETURN):
                rest += 1
            return (last, DONE) if rest == last else (line, ODD)
        for column in range(width):
            size = repeated(data, at, last, cuts, column)
            if size >= 0:
                at += size if column == width - 1 else size + 1
                continue
            cuts[0, column], cuts[2, column] = at, -1
            if at < last and data[at] == QUOTE:
                at += 1
                while at < last and data[at] != NEWLINE and (data[at] != QUOTE or (at + 1 < last and data[at + 1] == QUOTE)):
                    at += 2 if data[at] == QUOTE else 1
                if at >= last or data[at] == NEWLINE:
                    return line, ODD
                at += 1
            else:
                # Most bytes are above these four.
                while at < last and (
                    data[at] > COMMA or (data[at] != COMMA and data[at] != NEWLINE and data[at] != RETURN and data[at] != QUOTE)
                ):
                    at += 1
            cuts[1, column] = at
            if at - cuts[0, column] > LONGEST_CELL:
                return line, ODD
            if column < width - 1:
                if at >= last or data[at] != COMMA:
                    return line, ODD
                at += 1
        if at < last and data[at] == RETURN:
            at += 1
        if (at < last and data[at] != NEWLINE) or not plain(data, line, min(at, last)):
            return line, ODD
        at += 1
        for column in order:
            if cuts[2, column] < 0:
                cuts[2, column] = number_of(data, cuts[0, column], cuts[1, column], slots, begin, length, counts)
            out_text[column, row] = cuts[2, column]
        counts[LINES] += 1
    return at, DONE


@kernel
def ranks(left: Array, right: Array, out_rank: Array, out_first: Array) -> int:
    """Number the texts of two columns as they first appear, row by row: `out_rank[text]`, -1 before; `out_first[rank]` is the text.

    Returns how many there are.
    """
    count = 0
    for row in range(len(left)):
        for text in (left[row], right[row]):
            if text >= 0 and out_rank[text] < 0:
                out_rank[text] = count
                out_first[count] = text
                count += 1
    return count


@kernel
def fill_in_order(
    state: Array, choice: Array, target: Array, values: Array, of_state: Array, of_choice: Array, of_target: Array, out_values: Array
) -> bool:
    """Give the rows (`of_state`, `of_choice`, `of_target`) that are wanted their values, where those wanted stand in the same order, and no choice
    has a target twice."""
    first, at = 0, 0
    for place in range(len(of_state)):
        if of_state[place] != of_state[first] or of_choice[place] != of_choice[first]:
            first = place
        for other in range(first, place):
            if of_target[other] == of_target[place] or place - first > 64:
                return False
        if at < len(state) and state[at] == of_state[place] and choice[at] == of_choice[place] and target[at] == of_target[place]:
            out_values[place] = values[at]
            at += 1
    return at == len(state)
