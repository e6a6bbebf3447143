"""A model as the files of Storm and PRISM hold it, for their writers: `labelled.py` in the other
direction.

A goal has a choice without a name, which stays there at no cost. Not all of the formats have costs
on outcomes: where the outcomes of a choice differ in cost, there is one auxiliary state for each
target and cost, after all others. The outcome enters it at no cost, and its only choice pays the
cost and goes on to the target. Our readers take the auxiliary states out again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tailpath.formats.writing import action_words, extras_line, probability_columns
from tailpath.graph import Array, FloatArray
from tailpath.model.interval import IntervalSSP, columns_of, underlying_ssp
from tailpath.model.ssp import SSP


class Outgoing(NamedTuple):
    """The states, choices and branches to write. `choice_cost` is right where the branches of each
    choice cost the same; `shares` are probabilities, (n, 1), or ends of intervals, (n, 2); `labels`
    are those of each state that has some; `line` is our own.
    """

    state_choices: Array
    choice_branches: Array
    choice_action: Array
    choice_cost: FloatArray
    target: Array
    cost: FloatArray
    shares: FloatArray
    labels: dict[int, list[str]]
    line: str
    word: Callable[[int], str]

    @property
    def n_states(self) -> int:
        return len(self.state_choices) - 1

    @property
    def n_choices(self) -> int:
        return len(self.choice_action)


def outgoing(
    model: SSP | IntervalSSP,
    can_write_action: Callable[[str], bool],
    unnamed: str = "",
    *,
    branch_costs: bool = False,
) -> Outgoing:
    """What to write, with auxiliary states unless the format has `branch_costs`; `unnamed` is the
    word for choices without a name.
    """
    ssp, rows = underlying_ssp(model), columns_of(model)
    rows = rows._replace(probabilities=tuple(probability_columns(model).values()))
    auxiliary: dict[tuple[int, float], int] = {}
    if not branch_costs:
        of_choice = np.minimum.reduceat(rows.cost, ssp.choice_outcomes[:-1])[ssp.outcome_choice]
        mixed = np.bincount(ssp.outcome_choice, rows.cost != of_choice)[ssp.outcome_choice] > 0
        moved = np.flatnonzero(mixed & (rows.cost != 0))
        target, cost = rows.target.copy(), np.where(mixed, 0.0, rows.cost)
        pairs = zip(target[moved].tolist(), rows.cost[moved].tolist())
        target[moved] = [
            auxiliary.setdefault(pair, ssp.n_states + len(auxiliary)) for pair in pairs
        ]
        rows = rows._replace(target=target, cost=cost)
    goals, without_name = np.flatnonzero(ssp.is_goal), len(ssp.actions)
    rows = rows.extended(goals, without_name, goals, 0.0, 1.0)
    added = np.arange(ssp.n_states, ssp.n_states + len(auxiliary))
    ends, paid = np.array([*auxiliary]).reshape(-1, 2).T
    rows = rows.extended(added, without_name, ends.astype(np.int64), paid, 1.0)
    found = rows.fields({"is_goal": range(ssp.n_states + len(auxiliary))}, merge=False)
    cost, word = found["outcome_cost"], action_words(ssp, can_write_action)
    labels = {ssp.start_index: ["init"]}
    for goal in goals.tolist():
        labels.setdefault(goal, []).append("goal")
    return Outgoing(
        found["state_choices"],
        found["choice_outcomes"],
        found["choice_action"],
        cost[found["choice_outcomes"][:-1]],
        found["outcome_target"],
        cost,
        found["outcome_probability"].reshape(len(cost), -1),
        labels,
        extras_line(ssp, len(auxiliary)),
        lambda action: unnamed if action == without_name else word(action),
    )
