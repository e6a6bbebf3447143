"""The worst policy: the largest value of a measure over all policies, `solve(.., sense="max")`.

*The mean* is the least expected total of the negative costs.

For all else *nature makes the choices*. A state with several gets one, which costs nothing and
leads to an extra state for each of them, with probabilities anywhere in [0, 1]; the extra state has
the outcomes of the choice. What is guaranteed against an adversarial nature of that model with
intervals is the largest value over all policies of the given one, with its proofs. Nature's answer,
the extra state that is worth most by the budget left, is the worst policy.

*CVaR.* The laws of mixtures are a convex set, so that

    max over policies of CVaR = min over w of  w + max over policies of E (Z - w)+ / alpha,

and where the best w is a corner of the right side, a mixture of the policies a little below it and
a little above attains it, such that P(Z > w) is alpha. VaR_alpha is t or more exactly if a policy
is later than t - 1 with more than alpha.

A run that never arrives costs infinity. So where some policy may stay away for ever, at a cost or
for nothing, a measure that keeps rising is infinite.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import (
    kept_away,
    reachable_states,
    refuse_zero_cost_cycles,
    until,
)
from tailpath.analysis.robust import robust, robust_with_penalty
from tailpath.analysis.tables import ModelLayout
from tailpath.certify.budgets import Later
from tailpath.certify.rounding import AFTERWARDS
from tailpath.certify.values import least_total, warn_if_unproved
from tailpath.dp.backup import ADVERSARIAL
from tailpath.dp.budget_model import BASE, EXCESS, LATE, NEVER, NO_LOSS
from tailpath.dp.budgets import node_values
from tailpath.errors import LimitExceededError, OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.graph import BoolArray, FloatArray, offsets_of
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.border import require_unit
from tailpath.model.cost_units import in_units
from tailpath.model.interval import IntervalSSP, columns_of
from tailpath.model.outcomes import OutcomeColumns
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.policies.kinds import MarkovPolicy, MixedPolicy
from tailpath.policies.policy import Policy
from tailpath.risk.measure import Limit, Measure
from tailpath.risk.measures import CVaR, Late, Mean, VaR
from tailpath.solvers.exact.robust import RobustSolution
from tailpath.solvers.objectives.answers import RiskSolution
from tailpath.solvers.objectives.unconstrained import (
    MAX_NODES,
    Found,
    least_robust,
    robust_loss,
)

#: So near, in cost units, lie the budgets below and above the best one whose policies are mixed.
BESIDE = 2.0**-20
#: How far apart, relatively, bounds on the largest CVaR may be; they mostly meet.
TOLERANCE = 1e-10
#: About so many values are read at once for nature's answer.
LEVELS = 2**20
#: Only this many steps of a cycle are named.
MAX_NAMED = 8
#: The nature of all that is solved here.
ADVERSE = "adversarial"


def solve_worst(ssp: SSP, goal: Measure, limits: tuple[Limit, ...] = ()) -> RiskSolution:
    """The largest value of a measure, on costs of 0 or more; there are no limits."""
    if goal.tail is not None and (goal.curve is not None or goal.tail[0] <= 0):
        raise OptionError(f"no solver maximises {goal}; maximise the CVaR or the rest alone")
    if goal.tail is None and goal.curve is None and not isinstance(goal, VaR):
        raise OptionError(f"no solver maximises {goal}")
    away, stays = kept_away(ssp, reachable_states(ssp) & ~ssp.is_goal)
    rising = goal.tail is not None or (goal.curve is not None and goal.curve.slope > 0)
    if rising and away.any():
        choices = _staying_away(ssp, away, stays)
        never, said = Later(lambda: (math.inf, math.inf)), Later(lambda: _named(ssp, away, choices))
        policy: Policy = MarkovPolicy.from_choices(ssp, choices)
        return RiskSolution(ssp, goal, limits, math.inf, never, policy, said=said, sense="max")
    if isinstance(goal, Mean):
        value, bounds, policy = _largest_mean(ssp)
    else:
        require_unit(ssp)
        refuse_zero_cost_cycles(ssp, f"the worst policy for {goal} is found where there are no")
        value, bounds, policy = _ByNature(ssp, away, stays).largest(goal)
    return RiskSolution(ssp, goal, limits, value, Later(bounds), policy, sense="max")


def _largest_mean(ssp: SSP) -> Found:
    """Every policy arrives, so the negative costs have a least expected total."""
    inside = reachable_states(ssp) & ~ssp.is_goal
    nodes, choice = np.flatnonzero(inside), np.flatnonzero(inside[ssp.choice_state])
    number = np.full(ssp.n_states, len(nodes))
    number[nodes] = np.arange(len(nodes))
    first = offsets_of(number[ssp.choice_state[choice]], len(nodes))
    rows = ssp.transitions.restrict(choice).renumber(number).replaced(first_row=first)
    found = least_total(rows, -rows.rate, ssp.probability_error)
    warn_if_unproved(found.bounds)
    choices = np.full(ssp.n_states, -1, dtype=np.int32)
    choices[nodes] = choice[found.chosen]
    value, low, high = (
        float(np.append(-side, 0.0)[number[ssp.start_index]])
        for side in (found.bounds.value, found.bounds.upper, found.bounds.lower)
    )
    return value, lambda: (max(low, 0.0), high), MarkovPolicy.from_choices(ssp, choices)


def _staying_away(ssp: SSP, away: BoolArray, stays: BoolArray) -> NDArray[np.int32]:
    """The choices of a policy that stays where it can, and comes nearer to that elsewhere."""
    steps = until(ssp, away).steps()
    ahead = np.where(away, 0, np.where(steps < 0, ssp.n_states, steps))[ssp.outcome_target]
    key = np.where(stays, -1, np.minimum.reduceat(ahead, ssp.choice_outcomes[:-1]))
    order = np.lexsort((key, ssp.choice_state))
    states, first = np.unique(ssp.choice_state[order], return_index=True)
    choices = np.full(ssp.n_states, -1, dtype=np.int32)
    choices[states] = order[first]
    return choices


def _named(ssp: SSP, away: BoolArray, choices: NDArray[np.int32]) -> str:
    """A line that says where such a policy stays."""
    followed = away[ssp.choice_state] & (choices[ssp.choice_state] == np.arange(ssp.n_choices))
    component, _ = ssp.by_state.only(followed[ssp.outcome_choice]).components()
    # Edges lead to components of lower numbers, and none leads out of the lowest.
    cycle = np.flatnonzero(away & (component == component[away].min()))
    shown = [f"{ssp.states[s]!r} by {ssp.choice_name(choices[s])!r}" for s in cycle.tolist()]
    more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    return f"a policy may stay for ever at {', '.join(shown[:MAX_NAMED])}{more}"


@dataclass(frozen=True, eq=False)
class _ByNature:
    """The model in which nature makes the choices, and its answers as policies of the given one."""

    ssp: SSP
    away: BoolArray
    stays: BoolArray

    @cached_property
    def several(self) -> NDArray[np.int64]:
        """The choices of states that have several; each has an extra state."""
        return np.flatnonzero(np.diff(self.ssp.state_choices)[self.ssp.choice_state] > 1)

    @cached_property
    def model(self) -> IntervalSSP:
        ssp, several, rows = self.ssp, self.several, columns_of(self.ssp)
        extra, count = ssp.n_states + np.arange(len(several)), len(several)
        source = ssp.choice_state.astype(np.int64)
        given, owner = source[several], source.copy()
        owner[several] = extra
        p, off = rows.probabilities[0], ssp.probability_error
        shares = (
            np.append(p, 1 / np.diff(ssp.state_choices)[given]),
            np.append(p * (1 - off), np.zeros(count)),
            np.append(np.minimum(p * (1 + off), 1.0), np.ones(count)),
        )
        columns = OutcomeColumns(
            np.append(owner[ssp.outcome_choice], given),
            np.zeros(ssp.n_outcomes + count, dtype=np.int32),  # no state has two choices any more
            np.append(rows.target, extra),
            np.append(rows.cost, np.zeros(count)),
            shares,
        )
        fields = {
            "is_goal": np.append(ssp.is_goal, np.zeros(count, dtype=np.bool_)),
            "start_index": ssp.start_index,
            "states": range(ssp.n_states + count),
            "actions": ("",),
            "exact_unit": ssp.cost_unit,
        }
        arrays = columns.fields(fields, merge=False)
        inside, low, high = arrays.pop("outcome_probability").T
        return IntervalSSP(SSP(**arrays, outcome_probability=inside), low, high)

    def largest(self, goal: Measure) -> Found:
        """The largest value, bounds of which the policy attains the lower one, and the policy."""
        if goal.tail is not None:
            value, bounds, policy = self._largest_cvar(*goal.tail)
        elif isinstance(goal, (Late, VaR)):
            value, bounds, _ = least_robust(self.model, goal, ADVERSE)
            policy = self._latest(goal, value if math.isfinite(value) else bounds()[0])
        else:
            assert goal.curve is not None
            table, value, bounds = robust_loss(self.model, goal.curve, ADVERSE)
            policy = self._answer(table.layout, table.objective.criteria, table.limit, table.loss)

        def attained() -> tuple[float, float]:
            low, high = bounds()
            with suppress(LimitExceededError):
                costs = evaluate_for(self.ssp, policy, [goal], max_nodes=MAX_NODES)
                low = min(costs.bounds(goal)[0], high)
            return low, high

        return value, attained, policy

    def _latest(self, goal: Late | VaR, value: float) -> BudgetPolicy:
        """The policy with the largest probability of a cost beyond the deadline, or of the VaR."""
        last = goal.deadline if isinstance(goal, Late) else value
        level = in_units(last, require_unit(self.ssp)) - isinstance(goal, VaR)
        units = max(math.floor(level), -1)
        layout = robust_with_penalty(self.model, ADVERSE, max(units, 0)).layout
        return self._answer(layout, LATE, units + 1, deadline=True)

    def _largest_cvar(self, factor: float, alpha: float) -> Found:
        best = RobustSolution(self.model, alpha, ADVERSE, TOLERANCE)
        value, unit = factor * best.cvar(alpha), float(require_unit(self.ssp))
        w, goal = best.budget(alpha) / unit, factor * CVaR(alpha)
        ends = [w - BESIDE, w + BESIDE]
        members, late, tails = [self._largest_excess(end) for end in ends], [], []
        for end, member in zip(ends, members):
            beyond = Late(max(end, 0.0) * unit)
            costs = evaluate_for(self.ssp, member, [beyond, goal], max_nodes=MAX_NODES)
            late.append(beyond(costs) if end >= 0 else 1.0)
            tails.append(goal(costs))

        def bounds() -> tuple[float, float]:
            low, high = best.bounds(alpha)
            return factor * low * (1 - AFTERWARDS), factor * high * (1 + AFTERWARDS)

        policy: Policy = members[int(np.argmax(tails))]
        if max(tails) < value * (1 - SAME_VALUE) and late[0] > alpha > late[1]:
            share = (alpha - late[1]) / (late[0] - late[1])
            policy = MixedPolicy(tuple(members), (share, 1 - share))
        return value, bounds, policy

    def _largest_excess(self, w: float) -> BudgetPolicy:
        """The policy with the largest E (Z - w)+, w in units: it counts from w rounded up."""
        last, criteria = max(math.ceil(w), 0), EXCESS.copy()
        criteria[BASE] = last - w
        return self._answer(robust(self.model, ADVERSARIAL).layout, criteria, last)

    def _answer(
        self,
        layout: ModelLayout,
        criteria: FloatArray,
        last: int,
        loss: FloatArray = NO_LOSS,
        deadline: bool = False,
    ) -> BudgetPolicy:
        """What nature does with budgets up to `last`, as a policy of the given model."""
        ssp, several = self.ssp, self.several
        risk_neutral = np.where(ssp.is_goal, -1, ssp.state_choices[:-1]).astype(np.int32)
        changes: list[tuple[Any, ...]] = [(several[:0], several[:0], several[:0])]
        if several.size:
            states, extra = np.unique(ssp.choice_state[several]), layout.node_of[ssp.n_states :]
            risk_neutral[states] = self._first_worst(layout.upper[None, ssp.n_states :])[0]
            if deadline and self.away.any():  # who is late stays so
                risk_neutral = _staying_away(ssp, self.away, self.stays)
            chosen, node, level = risk_neutral[None, states], layout.node_of[states], 1
            # Below, every run exceeds the budget, and the mean is all that counts.
            least = np.where(node < 0, NEVER, layout.nodes.unavoidable_cost[node] + 1)
            limited = layout.objective(criteria, limit=float(last))
            for values in node_values(layout, limited, max(LEVELS // layout.n, 1), loss):
                found = self._first_worst(np.where(extra < 0, np.nan, values[:, extra]))
                found[np.arange(level, level + len(found))[:, None] < least] = -1
                # Where the start cannot get with so much left, the choice stays.
                rows = np.concatenate([chosen[-1:], found])
                known = np.where(rows >= 0, np.arange(len(rows))[:, None], 0)
                chosen = np.take_along_axis(rows, np.maximum.accumulate(known), axis=0)
                before, where = np.nonzero(np.diff(chosen, axis=0))
                changes.append((states[where], level + before, chosen[before + 1, where]))
                level += len(found)
        state, budget, choice = map(np.concatenate, zip(*changes))
        return BudgetPolicy.trusted(
            ssp=ssp,
            budget=last,
            risk_neutral=risk_neutral,
            level=ssp.outcome_level,
            unit=ssp.cost_unit,
            deadline=deadline,
            **steps_of(state, budget, choice, risk_neutral),
        )

    def _first_worst(self, values: FloatArray) -> NDArray[np.int64]:
        """From values of the extra states, in rows, the first choice of every state that is worth
        most; -1 where nothing is known.
        """
        state, several = self.ssp.choice_state[self.several], len(self.several)
        _, first, owner = np.unique(state, return_index=True, return_inverse=True)
        most = np.fmax.reduceat(values, first, axis=1)[:, owner]
        place = np.where(values >= most, np.arange(several), several)
        found: NDArray[np.int64] = np.append(self.several, -1)[
            np.minimum.reduceat(place, first, axis=1)
        ]
        return found
