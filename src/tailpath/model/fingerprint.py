"""Is this the same model? The one home of the answer, for tables of numbers that were made for one
model and are used on another.

same_numbering   choice and outcome numbers mean the same on both: the same states, actions and
                 targets, whatever the probabilities and costs
fingerprint      the sizes of a model and a hash of its arrays, the same on every machine; names,
                 geometry and the start do not matter to it
model_mark       a short hash of everything that decides the numbers of a run, the start included
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from tailpath.model.ssp import SSP

#: The parts of a model that have a hash of their own.
PARTS = ("targets", "probabilities", "costs")


def same_numbering(made_for: SSP, ssp: SSP) -> bool:
    """Whether tables of choice and outcome numbers made for one model mean the same on another;
    names decide where they do not.
    """
    if made_for is ssp:
        return True
    arrays = ("state_choices", "choice_outcomes", "outcome_target", "choice_action")
    same_numbers = all(
        np.array_equal(getattr(made_for, name), getattr(ssp, name)) for name in arrays
    )
    return (
        same_numbers
        and list(made_for.states) == list(ssp.states)
        and list(made_for.actions) == list(ssp.actions)
    )


def fingerprint(ssp: SSP) -> dict[str, Any]:
    """The sizes of a model, a hash of its arrays, and short ones of its parts, so that one can say
    what differs.
    """
    digest = hashlib.sha256()
    arrays = (
        ssp.state_choices,
        ssp.choice_outcomes,
        ssp.outcome_target,
        ssp.outcome_probability,
        ssp.outcome_cost,
        ssp.is_goal,
    )
    parts = []
    for array, kind in zip(arrays, ("<i8", "<i8", "<i8", "<f8", "<f8", "u1")):
        part = np.ascontiguousarray(array, dtype=kind).tobytes()
        digest.update(part)
        parts.append(hashlib.sha256(part).hexdigest()[:16])
    sizes = {"n_states": ssp.n_states, "n_choices": ssp.n_choices, "n_outcomes": ssp.n_outcomes}
    return {**sizes, "sha256": digest.hexdigest(), **dict(zip(PARTS, parts[2:5]))}


def model_mark(ssp: SSP) -> str:
    """A short hash of a model, its start included."""
    text = f"{fingerprint(ssp)['sha256']} {ssp.start_index}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
