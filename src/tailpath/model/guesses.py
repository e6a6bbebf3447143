"""Which columns of a table with unknown headers may be what, by their cells: a proposal for the
message that asks, never used without being asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from tailpath.errors import TailpathError
from tailpath.graph import FloatArray
from tailpath.model.cells import Categorical, Cells, Faults, OutcomeTable
from tailpath.model.columns import COST_COLUMNS
from tailpath.model.outcomes import ROW_TOLERANCE


def guessed(table: OutcomeTable, known: Mapping[str, Any]) -> dict[str, Any]:
    """Proposals for the columns that are not known: `{column: name}`.

    Of the columns of text, the two that share most cells are state and next state, otherwise the
    first and the last of three; the first that is left is the action. Of the columns of numbers,
    the one that sums to 1 by state and action is the probability, and the first other one the cost.
    Without text, columns of whole numbers may be states and actions where probabilities prove it.
    """
    names = list(table.names)
    if not names or len({*map(str, names)}) < len(names):
        return {}
    try:
        columns = table.columns({str(name): name for name in names}, Faults(table))
    except TailpathError:  # which would be reported next
        return {}
    if not len(columns[str(names[0])].codes):
        return {}
    free = [name for name in names if name not in known.values()]
    numbers = {name: _numbers(table, columns[str(name)]) for name in free}
    texts = [name for name in free if np.isnan(numbers[name]).any()]
    found = dict(known)

    def cells(name: Any) -> set[str]:
        return {str(cell).strip() for cell in columns[str(name)].categories}

    def sums_to_one(state: Any, action: Any, name: Any) -> bool:
        row = [columns[str(column)].codes for column in (state, action)]
        _, of_row = np.unique(np.stack(row), axis=1, return_inverse=True)
        total = np.bincount(of_row.ravel(), numbers[name])
        return bool(
            (numbers[name] >= 0).all() and np.allclose(total, 1, rtol=0, atol=ROW_TOLERANCE)
        )

    if not texts and not {"state", "next_state", "action"} & known.keys():
        whole = [name for name in free if (numbers[name] % 1 == 0).all()]
        shares = [name for name in free if name not in whole]
        pairs = [pair for pair in combinations(whole, 2) if cells(pair[0]) & cells(pair[1])]
        pairs.sort(key=lambda pair: -len(cells(pair[0]) & cells(pair[1])))
        for state, target in pairs:
            others = [name for name in whole if name not in (state, target)]
            proved = (a for a in others if any(sums_to_one(state, a, share) for share in shares))
            if (action := next(proved, None)) is not None:
                texts = [state, action, target]
                break
    ends = _ends(texts, known, cells)
    found |= ends
    if not {"state", "next_state"} <= found.keys():
        return {}
    others = [name for name in texts if name not in ends.values()]
    if "action" not in known and others:
        found["action"] = others[0]
    amounts = [name for name in free if name not in texts]
    if "probability" not in known and {"state", "action"} <= found.keys():
        proved = (n for n in amounts if sums_to_one(found["state"], found["action"], n))
        if (probability := next(proved, None)) is not None:
            found["probability"] = probability
    left = [name for name in amounts if name != found.get("probability")]
    if left and not any(column in known for column in COST_COLUMNS):
        found["cost"] = left[0]
    return {column: name for column, name in found.items() if column not in known}


def _ends(texts: list[Any], known: Mapping[str, Any], cells: Any) -> dict[str, Any]:
    """State and next state, where they are not known."""
    firsts, lasts = ([known[end]] if end in known else texts for end in ("state", "next_state"))
    pairs = [(a, b) for a in firsts for b in lasts if a != b]
    if "state" not in known and "next_state" not in known:
        pairs = list(combinations(texts, 2))  # the state comes first
    shared = [len(cells(a) & cells(b)) for a, b in pairs]
    if any(shared):
        first, last = pairs[shared.index(max(shared))]
    elif len(texts) > 2:
        first, last = firsts[0], lasts[:3][-1]
    else:
        return {}
    return {"state": first, "next_state": last}


def _numbers(table: OutcomeTable, column: Categorical) -> FloatArray:
    """The cells as numbers, percentages too; NaN where they are none."""
    cells = Cells(table, Faults(table), {"probability": column}, {"probability": ""})
    return cells.numbers("probability")
