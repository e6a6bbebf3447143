"""Arriving for sure, whatever nature does, or with its help: decided on the graph, by two players.

An adversarial nature may use every outcome that is possible at all, and may withhold a set of
outcomes for ever if the others can take all of the probability: sum of their highs >= 1. So a state
is *almost sure* if some choice leads to such states only, and nature cannot keep it from coming
nearer to a goal for ever (a nested fixed point: the largest set from which its own states attract).
A cooperative nature withholds in our favour.

Sums of highs that floats cannot tell from 1 are added up as the decimals they stand for.
"""

from __future__ import annotations

import numpy as np

from tailpath.analysis.reachability import WAYS, all_outcomes, reachable_states
from tailpath.dp.backup import ADVERSARIAL, COOPERATIVE
from tailpath.errors import GoalUnreachableError, ModelError, OptionError
from tailpath.graph import BoolArray
from tailpath.model.checks import describe_choice
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP

NATURES = {"adversarial": ADVERSARIAL, "cooperative": COOPERATIVE}
#: Sums this close to 1 are added up exactly.
CLOSE = 1e-9


def nature_called(name: str) -> int:
    """The number of a nature."""
    if name not in NATURES:
        raise OptionError(f"nature is 'adversarial' or 'cooperative', not {name!r}")
    return NATURES[name]


def can_take_all(model: IntervalSSP, allowed: BoolArray) -> BoolArray:
    """By choice whether the allowed outcomes can take all of the probability: (n_choices,)."""
    ssp, rows = model.inside, model.inside.choice_outcomes
    part = ~all_outcomes(ssp, allowed)
    found = all_outcomes(ssp, allowed | (model.low == 0))
    total = ssp.transitions.sums(np.where(allowed, model.high, 0.0))
    found &= ~part | (total > 1 - CLOSE)
    for k in np.flatnonzero(part & found & (total < 1 + CLOSE)).tolist():
        each = slice(rows[k], rows[k + 1])
        found[k] = (
            sum((as_fraction(p) for p in model.high[each][allowed[each]].tolist()), as_fraction(0))
            >= 1
        )
    return found


def almost_sure_under_nature(model: IntervalSSP, nature: int) -> tuple[BoolArray, BoolArray]:
    """The states from which some policy surely arrives against, or with, this nature; and the
    choices that keep it so.
    """
    ssp, worst = model.inside, nature == ADVERSARIAL
    state, almost_sure = ssp.choice_state, np.ones(ssp.n_states, dtype=np.bool_)
    while True:
        stays = almost_sure[ssp.outcome_target]
        safe = almost_sure[state] & (
            all_outcomes(ssp, stays) if worst else can_take_all(model, stays)
        )
        # What must happen sometimes needs no look at nature; most models have nothing else.
        certain = stays & safe[ssp.outcome_choice] & (model.low > 0)
        number = np.where(ssp.is_goal, ssp.n_states, np.arange(ssp.n_states))
        reached = ssp.is_goal | (ssp.by_state.only(certain).renumber(number).steps() >= 0)
        while not reached[state[safe]].all():
            there = reached[ssp.outcome_target] & stays
            # Nature cannot avoid what is reached; or, if it helps, may go there.
            nearer = safe & (
                ~can_take_all(model, ~there)
                if nature == ADVERSARIAL
                else ~all_outcomes(ssp, ~there)
            )
            before = int(reached.sum())
            reached[state[nearer]] = True
            if int(reached.sum()) == before:
                break
        if np.array_equal(reached, almost_sure):
            return almost_sure, safe
        almost_sure = reached


def require_almost_sure(model: IntervalSSP, nature: int) -> tuple[BoolArray, BoolArray]:
    """`almost_sure_under_nature`, or an error that names the state and the outcome that nature can
    withhold.
    """
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
    steps = ssp.by_state.renumber(
        np.where(ssp.is_goal, ssp.n_states, np.arange(ssp.n_states))
    ).steps()
    held = held[np.argsort(steps[ssp.outcome_target[held]], kind="stable")]
    what = ""
    for outcome in held[:1].tolist():
        where = describe_choice(ssp, int(ssp.outcome_choice[outcome]))
        what = (
            f"; in {where}, nature can withhold the outcome"
            f" {ssp.states[int(ssp.outcome_target[outcome])]!r} for ever, whose low probability is"
            " 0"
        )
    raise GoalUnreachableError(
        f"{against}no policy surely reaches a goal from the start {ssp.start!r}{what}; {WAYS}"
    )


def refuse_zero_cost_cycles(model: IntervalSSP) -> None:
    """Refuse outcomes that cost nothing and go round: policy and nature would have to be solved
    together at every budget.
    """
    ssp = model.inside
    zero_cost = (ssp.outcome_cost == 0) & ~ssp.is_goal[ssp.outcome_target]
    component, cyclic = ssp.by_state.only(zero_cost).cycles()
    if not cyclic.any():
        return
    state = ssp.states[int(np.flatnonzero(cyclic[component])[0])]
    raise ModelError(
        f"from {state!r} outcomes that cost nothing lead back to it; models with intervals must not"
        " have such cycles"
    )
