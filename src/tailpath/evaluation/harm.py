"""Which probabilities hurt most: what the worst nature for the mean makes of each outcome, and how
much of the mean that is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.robust import Robust
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import Name
from tailpath.policies.visits import equations


class UncertainOutcome(NamedTuple):
    """An outcome whose probability hurts: what the worst nature for the mean makes of it, and how
    much of the mean that is, in all visits.
    """

    state: Name
    action: Name
    next_state: Name
    cost: float
    low: float
    high: float
    worst: float
    harm: float


def uncertain_outcomes(
    model: IntervalSSP,
    product: IntervalSSP,
    model_outcome: NDArray[np.int64],
    problem: Robust,
    worst: NDArray[np.float64],
) -> tuple[UncertainOutcome, ...]:
    """By falling harm, from the product with a policy, the outcome of the model that each of its
    own stands for (-1: none), and nature's probabilities `worst` there.
    """
    inside, p = product.inside, worst
    value = problem.optimum.bounds.value
    game, n = problem.game, len(value)
    source, target = (
        np.repeat(np.arange(n), np.diff(game.decisions.choice_outcomes)),
        game.decisions.target,
    )
    stays = target < n
    begin = np.zeros(n)
    begin[inside.start_index] = 1.0
    visits = equations(source[stays], target[stays], p[stays], n).solve(begin, trans="T")
    harm = visits[source] * (p - inside.outcome_probability) * game.worth(value)
    ssp = model.inside
    total, weight, mass = (np.zeros(model.n_outcomes) for _ in range(3))
    real = model_outcome >= 0
    np.add.at(total, model_outcome[real], harm[real])
    np.add.at(weight, model_outcome[real], (visits[source] * p)[real])
    np.add.at(mass, model_outcome[real], visits[source][real])
    open_ = np.flatnonzero((mass > 0) & (model.rest > 0)[ssp.outcome_choice])
    return tuple(
        UncertainOutcome(
            ssp.states[int(ssp.choice_state[ssp.outcome_choice[o]])],
            ssp.choice_name(int(ssp.outcome_choice[o])),
            ssp.states[int(ssp.outcome_target[o])],
            float(ssp.outcome_cost[o]),
            float(model.low[o]),
            float(model.high[o]),
            float(weight[o] / mass[o]),
            float(total[o]),
        )
        for o in open_[np.argsort(-total[open_], kind="stable")].tolist()
    )
