"""The chain of a Markov policy on a model in parts: a part with one row for every state.

A row has the outcomes of all actions that the policy takes, with the product of both probabilities.
So what the policy costs is V* of the chain, found and proved like that of any part, and its masses
and runs move along the chain without a budget. States that the policy never gets to need not
arrive: they count as goals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.part import Part
from tailpath.distributed.ranks import anywhere
from tailpath.distributed.search import PartGraph, graph_of, require_arrival
from tailpath.errors import PolicyError
from tailpath.graph import members_of, offsets_from_lengths, owners
from tailpath.model.checks import ROW_TOLERANCE

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
NEVER_ARRIVES = "the policy never arrives, and in parts that must not happen; gather it"


def part_chain(comm: Any, part: Part, weight: FloatArray) -> PartGraph:
    """The graph of a policy that takes each choice of a part with probability `weight` (choices,),
    as far as it gets; all ranks call this.
    """
    graph = graph_of(comm, _under(part, weight, part.is_goal))
    ends = part.is_goal.copy()
    own = graph.state[: graph.own]
    ends[own[np.isinf(graph.least()[: graph.own])] - part.first] = True
    if anywhere(comm, ends != part.is_goal):
        graph = graph_of(comm, _under(part, weight, ends))
    require_arrival(graph, graph.nearest(), NEVER_ARRIVES)
    return graph


def _under(part: Part, weight: FloatArray, ends: BoolArray) -> Part:
    """The part with the choices of every state mixed into one row; runs are over where it `ends`,
    a mask of its states.
    """
    state = owners(part.state_choices)
    total = np.bincount(state, weights=weight, minlength=len(ends))
    wrong = ~part.is_goal & ~(np.abs(total - 1.0) <= ROW_TOLERANCE * np.diff(part.state_choices))
    wrong[state[~(weight >= 0.0)]] = True
    for here in np.flatnonzero(wrong)[:1].tolist():
        text = f"the action probabilities of the policy in state {part.first + here}"
        raise PolicyError(f"{text} sum to {total[here]:.12g} or are negative")
    taken = np.flatnonzero((weight > 0.0) & ~ends[state])
    outcome, rows = members_of(part.choice_outcomes, taken)
    share = np.repeat((weight / total[state])[taken], np.diff(rows))
    # The first action of a mixture lends it a name, which nobody asks for.
    first = np.flatnonzero(np.diff(state[taken], prepend=-1))
    return replace(
        part,
        state_choices=offsets_from_lengths(~ends),
        choice_outcomes=np.append(rows[:-1][first], rows[-1]),
        outcome_target=part.outcome_target[outcome],
        outcome_probability=part.outcome_probability[outcome] * share,
        outcome_level=part.outcome_level[outcome],
        choice_action=part.choice_action[taken[first]],
        is_goal=ends,
    )
