"""What the graph of a model alone decides: where a goal can be reached, with certainty or at all,
and which choices keep it so.

- A state is *almost sure* if some policy reaches a goal from it with probability 1; a choice is
  *safe* if all its outcomes are. Every finite expected cost lives on such states and choices.
- A *dead end* is a state from which no policy reaches a goal at all.
- Every policy is proper exactly if no policy can avoid the goals for ever, that is, if no set of
  states without goals can be kept by a suitable choice in each.
- A *zero-cost component* is a maximal set of states in which a run can stay for ever and visit all
  of them, at no cost: an end component of the choices whose every outcome costs nothing. Inside it
  any state is as good as any other, and a value iteration from below may be fooled by it.

Probabilities only matter by being positive, so all of this is exact.

On a model with intervals an adversarial *nature* may use every outcome that is possible at all, and
may withhold a set of outcomes for ever if the others can take all of the probability: sum of their
highs >= 1. So a state is almost sure if some choice leads to such states only, and nature cannot
keep it from coming nearer to a goal for ever (a nested fixed point: the largest set from which its
own states attract). A cooperative nature withholds in our favour. Sums of highs that floats cannot
tell from 1 are added up as the decimals they stand for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import ADVERSARIAL, COOPERATIVE
from tailpath.errors import GoalUnreachableError, ModelError, OptionError
from tailpath.graph import Array, BoolArray, Transitions
from tailpath.kernels import graph
from tailpath.model.checks import describe_choice
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP

#: What to do where arriving is not sure.
WAYS = (
    "allow giving up at a cost (give_up, --give-up C), condition on arriving (given_arrival,"
    " --given-arrival), or limit the number of steps (within, --within N)"
)
NATURES = {"adversarial": ADVERSARIAL, "cooperative": COOPERATIVE}
#: Sums this close to 1 are added up exactly.
ADDED_EXACTLY_WITHIN = 1e-9


def until(ssp: SSP, ends: BoolArray) -> Transitions:
    """The outcomes with a row for each state; all ends are one node outside, number n_states."""
    return ssp.by_state.renumber(np.where(ends, ssp.n_states, np.arange(ssp.n_states)))


def until_goals(ssp: SSP) -> Transitions:
    return until(ssp, ssp.is_goal)


def all_outcomes(ssp: SSP, holds: BoolArray) -> BoolArray:
    """By choice whether something holds for all of its outcomes: (n_choices,)."""
    if ssp.n_choices == 0:
        return np.zeros(0, dtype=np.bool_)
    return np.asarray(np.logical_and.reduceat(holds, ssp.choice_outcomes[:-1]))


def reachable_states(ssp: SSP) -> BoolArray:
    return ssp.by_state.reachable(ssp.start_index)


def _backward(ssp: SSP) -> tuple[Array, ...]:
    """What leads into each state, for searches against the edges."""
    into = ssp.transitions.transpose(ssp.n_states)
    return into.row_start, into.target, ssp.choice_state


def dead_ends(ssp: SSP) -> BoolArray:
    """The states from which no policy reaches a goal with positive probability."""
    reached = ssp.is_goal.copy()
    graph.backward_reach(*_backward(ssp), np.ones(ssp.n_choices, dtype=np.bool_), reached)
    return ~reached


@found_once
def almost_sure_states(ssp: SSP) -> tuple[BoolArray, BoolArray]:
    """The almost sure states, and the safe choices."""
    return _almost_sure_by(ssp, np.ones(ssp.n_choices, dtype=np.bool_))


def surely_zero_cost_states(ssp: SSP) -> BoolArray:
    """The states from which some policy is certain to reach a goal at no cost at all."""
    return _almost_sure_by(ssp, all_outcomes(ssp, ssp.outcome_cost == 0))[0]


def _almost_sure_by(ssp: SSP, allowed: BoolArray) -> tuple[BoolArray, BoolArray]:
    """The same by allowed choices alone."""
    into = _backward(ssp)
    almost_sure, safe = np.ones(ssp.n_states, dtype=np.bool_), allowed
    while True:
        reached = ssp.is_goal.copy()
        graph.backward_reach(*into, safe, reached)
        if np.array_equal(reached, almost_sure):
            return almost_sure, safe
        almost_sure = reached
        safe = all_outcomes(ssp, almost_sure[ssp.outcome_target])
        safe &= almost_sure[ssp.choice_state] & allowed


def every_policy_is_proper(ssp: SSP) -> bool:
    """Whether no policy, from any state, can fail to reach a goal with probability 1."""
    return not bool(kept_away(ssp, ~ssp.is_goal)[0].any())


def kept_away(ssp: SSP, inside: BoolArray) -> tuple[BoolArray, BoolArray]:
    """The states, of some that are no goals, in which a policy can stay for ever, and the choices
    that keep it there.
    """
    inside, allowed = inside.copy(), np.ones(ssp.n_choices, dtype=np.bool_)
    graph.close_under_choices(*_backward(ssp), inside, allowed)
    return inside, allowed


def require_almost_sure_start(ssp: SSP) -> tuple[BoolArray, BoolArray]:
    """`almost_sure_states`, or an error that names the states that trap the start."""
    almost_sure, safe = almost_sure_states(ssp)
    if not almost_sure[ssp.start_index]:
        traps = np.flatnonzero(dead_ends(ssp) & reachable_states(ssp))
        shown = ", ".join(repr(ssp.states[s]) for s in traps[:5].tolist())
        more = f" and {traps.size - 5} more" if traps.size > 5 else ""
        raise GoalUnreachableError(
            f"from the start {ssp.start!r} no policy is certain to reach a goal, so every expected"
            f" cost is infinite; the dead ends are {shown}{more}; {WAYS}"
        )
    return almost_sure, safe


def zero_cost_components(ssp: SSP, choice_allowed: BoolArray) -> NDArray[np.int32]:
    """The zero-cost component of each state, or -1: split into strong components, drop choices that
    leave theirs, repeat until nothing changes.
    """
    component = np.full(ssp.n_states, -1, dtype=np.int32)
    zero_cost = all_outcomes(ssp, ssp.outcome_cost == 0) & choice_allowed
    by_state = ssp.by_state
    while zero_cost.any():
        label, _ = by_state.only(zero_cost[ssp.outcome_choice]).components()
        mask = zero_cost & all_outcomes(ssp, by_state.within(label))
        if np.array_equal(mask, zero_cost):
            inside = np.unique(ssp.choice_state[zero_cost])
            component[inside] = np.unique(label[inside], return_inverse=True)[1]
            break
        zero_cost = mask
    return component


def nature_called(name: str) -> int:
    if name not in NATURES:
        raise OptionError(f"nature must be 'adversarial' or 'cooperative', not {name!r}")
    return NATURES[name]


def can_take_all(model: IntervalSSP, allowed: BoolArray) -> BoolArray:
    """By choice whether the allowed outcomes can take all of the probability: (n_choices,)."""
    ssp, rows = model.inside, model.inside.choice_outcomes
    part = ~all_outcomes(ssp, allowed)
    found = all_outcomes(ssp, allowed | (model.low == 0))
    total = ssp.transitions.sums(np.where(allowed, model.high, 0.0))
    found &= ~part | (total > 1 - ADDED_EXACTLY_WITHIN)
    for k in np.flatnonzero(part & found & (total < 1 + ADDED_EXACTLY_WITHIN)).tolist():
        each = slice(rows[k], rows[k + 1])
        found[k] = (
            sum((as_fraction(p) for p in model.high[each][allowed[each]].tolist()), as_fraction(0))
            >= 1
        )
    return found


def almost_sure_under_nature(model: IntervalSSP, nature: int) -> tuple[BoolArray, BoolArray]:
    """The almost sure states against, or with, this nature, and the choices that keep it so."""
    ssp, worst = model.inside, nature == ADVERSARIAL
    state, almost_sure = ssp.choice_state, np.ones(ssp.n_states, dtype=np.bool_)
    while True:
        stays = almost_sure[ssp.outcome_target]
        safe = almost_sure[state] & (
            all_outcomes(ssp, stays) if worst else can_take_all(model, stays)
        )
        # What must happen sometimes needs no look at nature; most models have nothing else.
        certain = stays & safe[ssp.outcome_choice] & (model.low > 0)
        reached = ssp.is_goal | (until_goals(ssp).only(certain).steps() >= 0)
        while not reached[state[safe]].all():
            there = reached[ssp.outcome_target] & stays
            # Nature cannot avoid what is reached; or, if it helps, may go there.
            nearer = safe & (~can_take_all(model, ~there) if worst else ~all_outcomes(ssp, ~there))
            before = int(reached.sum())
            reached[state[nearer]] = True
            if int(reached.sum()) == before:
                break
        if np.array_equal(reached, almost_sure):
            return almost_sure, safe
        almost_sure = reached


def require_almost_sure(model: IntervalSSP, nature: int) -> tuple[BoolArray, BoolArray]:
    """The same, or an error that names an outcome that nature can withhold."""
    almost_sure, safe = almost_sure_under_nature(model, nature)
    ssp = model.inside
    if almost_sure[ssp.start_index]:
        return almost_sure, safe
    against = (
        "against an adversarial nature " if nature == ADVERSARIAL else "even with nature's help "
    )
    helped, source = almost_sure_under_nature(model, COOPERATIVE)[0], ssp.by_state.source
    held = np.flatnonzero(
        reachable_states(ssp)[source]
        & ~almost_sure[source]
        & helped[ssp.outcome_target]
        & (model.low == 0)
    )
    # An outcome that is withheld comes nearer to a goal than where it is withheld.
    steps = until_goals(ssp).steps()
    held = held[np.argsort(steps[ssp.outcome_target[held]], kind="stable")]
    what = ""
    for outcome in held[:1].tolist():
        where = describe_choice(ssp, int(ssp.outcome_choice[outcome]))
        what = (
            f"; in {where}, the lowest probability of the outcome"
            f" {ssp.states[int(ssp.outcome_target[outcome])]!r} is 0, so nature can withhold it"
            " for ever"
        )
    raise GoalUnreachableError(
        f"{against}no policy is certain to reach a goal from the start {ssp.start!r}{what}; {WAYS}"
    )


def refuse_zero_cost_cycles(ssp: SSP, rule: str) -> None:
    """Policy and nature would have to be solved together at every budget. The rule ends the
    message.
    """
    zero_cost = (ssp.outcome_cost == 0) & ~ssp.is_goal[ssp.outcome_target]
    component, cyclic = ssp.by_state.only(zero_cost).cycles()
    if not cyclic.any():
        return
    state = ssp.states[int(np.flatnonzero(cyclic[component])[0])]
    raise ModelError(f"from {state!r} zero-cost outcomes lead back to it; {rule} zero-cost cycles")
