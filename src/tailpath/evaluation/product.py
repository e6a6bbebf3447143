"""Model x policy where probabilities are intervals: a chain whose transitions have intervals,
that is, a model with one choice in every node; and what nature can make of it.

A node at which the policy draws its action leads, at no cost, to one node for each action, where
nature decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tailpath.analysis.robust import Robust, robust
from tailpath.errors import LimitExceededError
from tailpath.graph import FloatArray, IntArray
from tailpath.kernels.rounding import SAME_MASS
from tailpath.model.border import require_unit
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP, Name
from tailpath.policies.chain import CostChain

#: Tables of lateness have so many levels at first, and at most.
SHORT, LONGEST = 64, 10**7
#: A lateness that a deadline twice as late does not lower by more, relatively, is what never
#: arrives, as far as doubles tell.
CONVERGED = 1e-15


def product_of(model: IntervalSSP, chain: CostChain) -> tuple[IntervalSSP, IntArray]:
    """The chain as a model with intervals, and the outcome behind each of its own."""
    assert chain.outcome is not None
    ssp = model.inside
    choice = ssp.outcome_choice[chain.outcome].astype(np.int64)
    # The transitions of a node stand by choice; of several choices each gets a node of its own.
    new = np.append(True, (np.diff(choice) != 0) | (np.diff(chain.source) != 0))[: len(choice)]
    group = np.cumsum(new) - 1
    owner = chain.source[new].astype(np.int64)
    count = np.bincount(owner, minlength=chain.n)
    drawn = count[owner] > 1
    number = np.where(drawn, chain.n + np.cumsum(drawn) - 1, owner)
    weight = np.bincount(group, chain.probability, len(owner)) / np.bincount(
        group, ssp.outcome_probability[chain.outcome], len(owner)
    )
    nodes = chain.n + int(drawn.sum())
    source = np.append(number[group], owner[drawn])
    target = np.append(np.where(chain.target < chain.n, chain.target, nodes), number[drawn])
    outcome = np.append(chain.outcome, np.full(int(drawn.sum()), -1))
    probability = np.append(ssp.outcome_probability[chain.outcome], weight[drawn])
    cost = np.append(chain.cost, np.zeros(int(drawn.sum())))
    order = np.argsort(source, kind="stable")
    low, high = (np.append(end[chain.outcome], weight[drawn]) for end in (model.low, model.high))
    inside = SSP(
        state_choices=np.append(np.arange(nodes + 1), nodes),
        choice_outcomes=np.append(0, np.cumsum(np.bincount(source, minlength=nodes))),
        outcome_target=target[order],
        outcome_probability=probability[order],
        outcome_cost=cost[order],
        choice_action=np.zeros(nodes, dtype=np.int32),
        is_goal=np.append(np.zeros(nodes, dtype=np.bool_), True),
        start_index=chain.start if chain.start < chain.n else nodes,
        states=range(nodes + 1),
        actions=("go on",),
        exact_unit=chain.unit,
    )
    return IntervalSSP(inside, low[order], high[order]), outcome[order]


def has_converged(model: IntervalSSP, units: int, late: float, before: float) -> bool:
    """Whether all that is late never arrives, given what was late at half the deadline."""
    # From anywhere nature cannot keep from arriving at all, a run of one visit to each state may
    # arrive.
    longest = model.n_states * int(model.inside.outcome_level.max(initial=1))
    return units > longest and float(late) >= before * (1 - CONVERGED)


@dataclass
class Lateness:
    """P(Z > t) for t = 0, 1, ... units, with the nature that is best or worst for each t: a table
    that grows as later t are asked for. `product` has one choice in every node.
    """

    product: IntervalSSP
    nature: int
    almost_sure: bool
    _late: FloatArray = field(default_factory=lambda: np.empty(0))

    def up_to(self, units: int) -> FloatArray:
        if len(self._late) <= units:
            # Runs that never arrive end beyond every t that counts.
            penalty = 0 if self.almost_sure else units + 2
            found = robust(self.product, self.nature, penalty).late(units + 1)
            self._late = found.values[1:, 0]
        return self._late

    def at(self, level: int) -> float:
        return float(self.up_to(max(SHORT, 1 << level.bit_length()))[level])

    def quantile(self, alpha: float) -> float:
        """The least t with a lateness of at most `alpha`, in units; infinite if there is none."""
        units, before = SHORT, 2.0
        while units <= LONGEST:
            late = self.up_to(units)
            enough = np.flatnonzero(late <= alpha * (1 + SAME_MASS) if alpha < 1 else late < 1)
            if len(enough):
                return float(enough[0])
            if not self.almost_sure and has_converged(self.product, units, late[-1], before):
                return math.inf
            units, before = 2 * units, float(late[-1])
        raise LimitExceededError(
            f"the VaR at {alpha:g} lies more than {LONGEST} cost units away",
            (LONGEST * float(require_unit(self.product)), math.inf),
        )


class UncertainOutcome(NamedTuple):
    """What the worst nature for the mean makes of an outcome, and how much of the mean that is."""

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
    model_outcome: IntArray,
    problem: Robust,
) -> tuple[UncertainOutcome, ...]:
    """By falling harm, from the product with a policy, the outcome of the model behind each of its
    own (-1: none), and what the worst nature does there.
    """
    import scipy.sparse.linalg

    inside, p = product.inside, problem.optimum.probability
    value = problem.optimum.bounds.value
    game, n = problem.game, len(value)
    source, target = game.rows.source, game.rows.target
    stays = target < n
    begin = np.zeros(n)
    begin[inside.start_index] = 1.0
    into = scipy.sparse.csc_array((p[stays], (target[stays], source[stays])), shape=(n, n))
    visits = scipy.sparse.linalg.spsolve(scipy.sparse.eye_array(n, format="csc") - into, begin)
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
