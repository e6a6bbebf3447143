"""Evaluation of a `BudgetPolicy` without the product of states and budgets.

At accumulated level g the budget left is w - g, so the pair (state, g) already determines the
action: the search runs over the model's own states, level by level, and each state picks its choice
by the level. From g = w on the policy is risk-neutral and Markov, so V_mean of its Markov part
completes every open node, and what is in a dead end of it never arrives. The search therefore goes
on to g = w at least.

This needs the model's own cost levels as the policy's memory, and no cycle of zero-cost steps.
Otherwise the policy is unrolled like any other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import until_goals
from tailpath.dp.bounds import Bounds
from tailpath.dp.expected import variances
from tailpath.dp.forward import RowSteps
from tailpath.dp.ring import SearchSpace
from tailpath.errors import PolicyError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import (
    Moments,
    OpenMass,
    Request,
    SearchResult,
    summarise,
    truncation_bound,
)
from tailpath.evaluation.lattice import NO_HEURISTIC, Lattice, LatticeSearch
from tailpath.graph import BoolArray, FloatArray, IntArray, members_of, offsets_from_lengths
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import ROUNDOFF
from tailpath.model.checks import same_numbering
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.checks import no_action
from tailpath.policies.unrolling import chain_of_choices

#: Below every budget, and above.
ALWAYS, NEVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def without_spare_budget(policy: BudgetPolicy) -> BudgetPolicy:
    """The same decisions with as little budget as they need: none below all steps."""
    first = int(np.min(policy.from_budget, initial=policy.budget + 1))
    spare = {"budget": policy.budget - first + 1, "from_budget": policy.from_budget - first + 1}
    return policy if first == 1 else policy.trusted(**policy.__getstate__() | spare)


def evaluate_budget(request: Request, policy: BudgetPolicy) -> CostDistribution | str:
    """The distribution of the total cost, or why it cannot be found in this way."""
    ssp = request.ssp
    if not same_numbering(policy.ssp, ssp):
        return "the policy was made for another model, and is followed by names"
    if policy.unit != ssp.cost_unit or not np.array_equal(policy.level, ssp.outcome_level):
        return "the policy counts its budget in other costs than the model's own"
    states, choices = _reachable(ssp, policy)
    taken = choices[ssp.outcome_choice]
    ordered = zero_cost_order(ssp, policy.level, taken)
    if ordered is None:
        return "steps that cost nothing form a cycle, which is solved in the unrolled chain"
    try:
        risk_neutral = chain_of_choices(ssp, np.where(states, policy.risk_neutral, -1))
    except PolicyError:
        return "a state has no action for a budget that is spent"
    cannot_arrive = np.zeros(ssp.n_states, dtype=np.bool_)
    if not risk_neutral.all_arrive:
        # Mass where nothing leads to a goal that the policy may ever do would go round until the
        # budget is spent, however large it is.
        cannot_arrive = until_goals(ssp).only(taken).steps() < 0
    inner = states & ~ssp.is_goal
    lattice = _lay_out(ssp, policy, (inner, choices, cannot_arrive), ordered, risk_neutral)
    search = LatticeSearch(lattice, request)
    stop_reason = search.run()
    if search.state["no_action"] >= 0:
        raise no_action(ssp, int(lattice.node[search.state["no_action"]]))
    found = search.result(ssp.probability_error)
    if found.truncated.mass.size and not risk_neutral.all_arrive:
        return "what is too small to be followed may miss the goal"
    cost_to_go = _by_state(ssp, risk_neutral, risk_neutral.expected_cost)
    found = _with_worst_cost_to_go(
        found, cost_to_go, policy.budget + search.statistics.max_jump, ssp
    )
    spent = search.bucket >= policy.budget
    if not spent:
        # With budget left nobody knows what is still to pay.
        nothing = np.zeros_like(cost_to_go.value)
        cost_to_go = Bounds(
            cost_to_go.value, nothing, np.full_like(nothing, np.inf), "nothing known"
        )
    moments = _moments_if_missed(ssp, risk_neutral, found, lattice, spent)
    if moments is None:
        moments = _moments(request, risk_neutral, found, cost_to_go)
    return summarise(request, found, cost_to_go, moments, stop_reason)


def zero_cost_order(
    ssp: SSP, level: IntArray, taken: BoolArray
) -> tuple[NDArray[np.int32], int] | None:
    """A rank of every state that falls along zero-cost outcomes taken, and the most of them in a
    row; None if they form a cycle.
    """
    zero = (level == 0) & taken & ~ssp.is_goal[ssp.outcome_target]
    if not zero.any():
        return np.zeros(ssp.n_states, dtype=np.int32), 0
    return ssp.by_state.only(zero).acyclic_order()


def _reachable(ssp: SSP, policy: BudgetPolicy) -> tuple[BoolArray, BoolArray]:
    """What a policy can do whatever its budget: the states it gets to, and the choices it may take
    there.
    """
    taken = np.zeros(ssp.n_choices + 1, dtype=np.bool_)
    taken[policy.risk_neutral] = True
    taken[policy.choice[policy.from_budget <= policy.budget]] = True
    taken = taken[:-1]  # -1 is no choice
    states = ssp.by_state.only(taken[ssp.outcome_choice]).reachable(ssp.start_index)
    return states, taken & states[ssp.choice_state]


def _lay_out(
    ssp: SSP,
    policy: BudgetPolicy,
    used: tuple[BoolArray, BoolArray, BoolArray],
    ordered: tuple[NDArray[np.int32], int],
    risk_neutral: CostChain,
) -> Lattice:
    """Every state inside is a node, and a row is a choice."""
    (inner, choices, cannot_arrive), (rank, depth) = used, ordered
    # Zero-cost outcomes lead to lower ranks, so higher ranks come first.
    order = np.argsort(-rank, kind="stable") if depth else np.arange(ssp.n_states)
    order = order[inner[order]]
    n = len(order)
    position = np.full(ssp.n_states, n, dtype=np.int64)
    position[order] = np.arange(n)
    dead_end = np.zeros(ssp.n_states, dtype=np.bool_)
    dead_end[risk_neutral.state[~risk_neutral.arrives]] = True
    choice = np.flatnonzero(choices)
    outcomes = ssp.choice_outcomes, ssp.outcome_target, ssp.outcome_level, ssp.outcome_probability
    return Lattice(
        SearchSpace(*frozen(*outcomes, choice, position, NO_HEURISTIC)),
        np.append(order, ssp.n_states),
        int(position[ssp.start_index]),
        depth,
        _steps(policy, choice, order, dead_end[order], cannot_arrive[order]),
        policy.budget,
        dead_end_row=not risk_neutral.all_arrive,
    )


def _steps(
    policy: BudgetPolicy,
    choice: IntArray,
    order: IntArray,
    dead_end: BoolArray,
    cannot_arrive: BoolArray,
) -> RowSteps:
    """The steps of these states as rows of these choices: first the risk-neutral one.

    In a dead end the row after the last, which leads nowhere, comes before it, for a budget that is
    spent; where no choice leads to a goal any more, for every budget.
    """
    row = np.full(policy.ssp.n_choices + 1, -1, dtype=np.int64)  # -1 is no choice
    row[choice] = np.arange(len(choice))
    member, first = members_of(policy.first, order)
    start = offsets_from_lengths(np.diff(first) + 1 + dead_end)
    from_budget, rows = np.full(start[-1], ALWAYS), np.full(start[-1], len(choice))
    risk_neutral = start[:-1] + dead_end
    from_budget[risk_neutral[dead_end]] = 1
    rows[risk_neutral] = row[policy.risk_neutral[order]]
    own = np.repeat(risk_neutral + 1 - first[:-1], np.diff(first)) + np.arange(len(member))
    from_budget[own], rows[own] = policy.from_budget[member], row[policy.choice[member]]
    later = np.repeat(cannot_arrive, np.diff(start))
    later[start[:-1]] = False
    from_budget[later] = NEVER
    return RowSteps(start[1:] - 1, from_budget, rows, np.empty_like(first[1:]))


def _by_state(ssp: SSP, risk_neutral: CostChain, found: Bounds) -> Bounds:
    """Values of the risk-neutral chain per state, and 0 at the goal."""
    nowhere = np.append(np.where(ssp.is_goal, 0.0, np.inf), 0.0)

    def scatter(values: FloatArray) -> FloatArray:
        by_state = nowhere.copy()
        by_state[risk_neutral.state] = values
        return by_state

    return found.each(scatter)


def _with_worst_cost_to_go(
    found: SearchResult, cost_to_go: Bounds, most: int, ssp: SSP
) -> SearchResult:
    """What was truncated pays until the budget is spent, `most` units, and then as much as
    anywhere.
    """
    truncated = found.truncated
    if truncated.mass.size == 0:
        return found
    assert ssp.cost_unit is not None
    spent = float(most * ssp.cost_unit) - found.last
    then = float(np.max(cost_to_go.upper, where=np.isfinite(cost_to_go.upper), initial=0.0))
    goal = np.full(len(truncated.mass), ssp.n_states + 1)  # nothing is added to that
    return replace(
        found,
        truncated=OpenMass(goal, np.maximum(truncated.overshoot, spent) + then, truncated.mass),
    )


def _moments(
    request: Request, risk_neutral: CostChain, found: SearchResult, cost_to_go: Bounds
) -> Moments:
    """From the head and the open nodes, where all of them arrive: sums of non-negative terms."""
    node, overshoot, mass = found.open
    slack = found.relative_error + found.cost_error + (len(found.costs) + len(mass) + 10) * ROUNDOFF
    mean, deviation = found.mean(cost_to_go.value), None
    if request.deviation:
        variance_to_go = np.zeros(request.ssp.n_states + 1)
        variance_to_go[risk_neutral.state] = variances(risk_neutral, risk_neutral.expected_cost)
        total = found.last + overshoot + cost_to_go.value[node]
        squared = (total - mean) ** 2 + variance_to_go[node]
        variance = np.sum(found.probabilities * (found.costs - mean) ** 2)
        deviation = float(np.sqrt(variance + np.sum(mass * squared)))
    more = truncation_bound(found.truncated, found.last + found.truncated.overshoot)
    low = found.mean(cost_to_go.lower) * (1 - slack)
    high = found.mean(cost_to_go.upper) * (1 + slack) + more
    return Moments((mean + more, low, high), deviation)


def _moments_if_missed(
    ssp: SSP, risk_neutral: CostChain, found: SearchResult, lattice: Lattice, spent: bool
) -> Moments | None:
    """Where the goal may be missed; None where all arrive. With budget left nobody knows whether
    what is open does.
    """
    mass = found.open.mass
    missed = least = np.zeros_like(mass)
    most = missed if spent else np.ones_like(mass)
    if spent and not risk_neutral.all_arrive:
        may_miss = _by_state(ssp, risk_neutral, risk_neutral.unreached)
        missed, least, most = (
            values[found.open.node] for values in (may_miss.value, may_miss.lower, may_miss.upper)
        )
    unreached = found.dead_end_mass + float(np.sum(mass * missed))
    if unreached == 0 and missed.any():
        unreached = float(np.nextafter(0.0, 1.0))
    if unreached == 0:
        return None
    error_bound = found.relative_error + (len(mass) + 8) * ROUNDOFF
    bounds = (
        (found.dead_end_mass + float(np.sum(mass * least))) * (1 - error_bound),
        (found.dead_end_mass + float(np.sum(mass * most))) * (1 + error_bound)
        + truncation_bound(found.truncated, 1.0)
        + len(mass) * 1e-320,  # products that fall below what floats hold with all digits
    )
    stuck = _dead_end_label(ssp, risk_neutral, found.open.node[missed > 0], lattice)
    return Moments((np.inf, np.inf, np.inf), np.inf, unreached, bounds, stuck)


def _dead_end_label(ssp: SSP, risk_neutral: CostChain, may_miss: IntArray, lattice: Lattice) -> str:
    """A state where the goal is out of reach once the budget is spent: one that was entered, or
    ahead of those open.
    """
    steps = lattice.steps
    dead = lattice.node[:-1][steps.row[steps.at_step] == len(lattice.space.row)]
    if dead.size == 0:
        start = int(np.flatnonzero(risk_neutral.state == may_miss[0])[0])
        reached = risk_neutral.reachable(start)
        dead = risk_neutral.state[reached & ~risk_neutral.arrives]
    return f"state {ssp.states[int(dead[0])]!r} with memory 0"
