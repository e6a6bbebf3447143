"""In words what differs between the policies, and why: every number is one of the library's."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context
from typing import TYPE_CHECKING, Any

import numpy as np

from tailpath.graph import members
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.show.decisions import decision_in_words
from tailpath.show.differences import Parting, parted
from tailpath.show.traces import WorstRuns
from tailpath.texts import name as name_in_words

if TYPE_CHECKING:
    from tailpath.show.page.data import Case

#: Differences below this part of a cost are none.
SAME = 1e-9


def sentences(
    ssp: SSP,
    alpha: float,
    cases: Mapping[str, Case],
    predicted: Mapping[str, float | None],
    unit: str,
) -> list[str]:
    """Paragraphs for one alpha: the first of the cases is the average-best policy, the last the
    optimum.
    """
    (_, average), *others, (_, best) = cases.items()
    found = [*_terrain(ssp), _costs(alpha, average, best, unit)]
    more = [_other(alpha, name, case, best, predicted[name], unit) for name, case in others]
    places = parted(average.of, best.of, alpha)
    if len(places):
        found += [_parting(ssp, alpha, places[0]), *_why(ssp, average, best)]
    else:
        found.append(
            "At this alpha the average-best policy is optimal: the two never decide differently."
        )
    return found + more


def headline(ssp: SSP, alpha: float, average: Case, best: Case, unit: str) -> dict[str, Any]:
    """What to do and what it buys, in a few words, and the three numbers to remember: what can be
    promised, the worst runs, and the mean.
    """
    costs, worst = best.of.costs, _percent(alpha)
    tail, others = costs.cvar(alpha), average.of.costs.cvar(alpha)
    first = ""
    if not ssp.is_goal[ssp.start_index] and len(members(ssp.state_choices, ssp.start_index)) > 1:
        taken = best.of.policy.action(ssp.start, best.of.policy.start(ssp.start))
        first = f"Begin with {decision_in_words(taken)}. "
    if above(others, tail):
        text = (
            f"In the worst {worst} of runs that costs {_amount(tail, unit)} on average; what is"
            f" best on average costs {_amount(others, unit)} there. The price:"
            f" {_amount(costs.mean - average.of.costs.mean, unit, 3)} more on average."
        )
    else:
        text = (
            f"What is best on average is also best in the worst {worst} of runs, which cost"
            f" {_amount(tail, unit)} on average."
        )
    kept = f"promise for {_percent(1 - alpha)}: at most this"
    return {
        "sentence": first + text,
        "numbers": [
            (costs.var(alpha), kept if alpha < 1 else "the least that a run costs"),
            (tail, f"on average in the worst {worst}"),
            (costs.mean, "on average over all runs"),
        ],
    }


def _terrain(ssp: SSP) -> list[str]:
    """What the kinds of cells of a map do: for those who have never seen it."""
    if ssp.geometry is None:
        return []
    parts = []
    kinds = np.array(ssp.geometry.kind, dtype=object)
    for kind in sorted({each for each in ssp.geometry.kind if each and each != "goal"}):
        outcome = np.flatnonzero((kinds[ssp.choice_state] == kind)[ssp.outcome_choice])
        if not outcome.size:  # goals of another kind
            continue
        target, costs = set(ssp.outcome_target[outcome].tolist()), ssp.outcome_cost[outcome]
        cost = (
            f"{costs.min():g}"
            if costs.min() == costs.max()
            else f"{costs.min():g} to {costs.max():g}"
        )
        if len(target) == 1:
            where = target.pop()
            known = (
                "the start"
                if where == ssp.start_index
                else "the goal"
                if ssp.is_goal[where]
                else name_in_words(ssp.states[where])
            )
            what = f"every move leads to {known}"
        elif (ssp.outcome_probability[outcome] == 1).all():
            what = "moves are sure"
        else:
            what = "moves may end elsewhere"
        parts.append(f"on {kind} {what} (cost {cost})")
    return [f"The map: {'; '.join(parts)}. A run begins at {name_in_words(ssp.start)}."]


def _number(value: float, digits: int = 3) -> str:
    """Of nine digits, halves away from 0, as `draw.js` rounds: words and tables agree."""
    rounding = Context(digits, ROUND_HALF_UP)
    return f"{float(rounding.create_decimal(f'{value:.9g}')):.{digits}g}"


def _percent(share: float) -> str:
    return f"{_number(100 * share)} %"


def _amount(cost: float, unit: str, digits: int = 4) -> str:
    return f"{_number(cost, digits)} {unit}".rstrip()


def above(cost: float, best: float) -> float:
    """How far a cost lies above the least one; 0 where floats cannot tell them apart."""
    return cost - best if cost - best > SAME * abs(best) else 0.0


def _costs(alpha: float, average: Case, best: Case, unit: str) -> str:
    mean, tail = average.of.costs.mean, average.of.costs.cvar(alpha)
    safe_mean, safe_tail = best.of.costs.mean, best.of.costs.cvar(alpha)
    text = (
        f"The average-best policy costs {_amount(mean, unit)} on average, "
        f"and {_amount(tail, unit)} on average in its worst {_percent(alpha)} of runs. "
    )
    saved = above(tail, safe_tail)
    if not saved:
        return text + "No policy does better in the worst runs."
    return (
        text + f"The optimal policy for this alpha costs {_amount(safe_tail, unit)} there:"
        f" {_amount(saved, unit, 3)} less. The price is"
        f" {_amount(safe_mean - mean, unit, 3)} more on average: {_amount(safe_mean, unit)}."
    )


def _parting(ssp: SSP, alpha: float, first: Parting) -> str:
    where = name_in_words(first.state)
    kind = _kind(ssp, ssp.state_index(first.state))
    remembers = (
        f", with {first.second_memory} of its budget" if "left" in first.second_memory else ""
    )
    text = (
        f"They first part ways at {where}{kind}, in {_percent(first.probability)} of all runs: "
        f"the average-best policy does {decision_in_words(first.first_action)}, "
        f"the optimal one {decision_in_words(first.second_action)}{remembers}. "
    )
    if first.first_cvar is not None and first.second_cvar is not None:
        text += (
            f"From there the first costs {_number(first.first_mean, 4)} on average and"
            f" {_number(first.first_cvar, 4)} in the worst {_percent(alpha)}, the second"
            f" {_number(first.second_mean, 4)} and {_number(first.second_cvar, 4)}."
        )
    return text


def _kind(ssp: SSP, state: int) -> str:
    return (
        f" ({ssp.geometry.kind[state]})"
        if ssp.geometry is not None and ssp.geometry.kind[state]
        else ""
    )


def _why(ssp: SSP, average: Case, best: Case) -> list[str]:
    found = []
    for title, case in (("the average-best", average), ("the optimal", best)):
        if case.worst is not None and case.worst.blame and not case.worst.simulated:
            found.append(_turning(ssp, title, case.worst))
    if ssp.geometry is not None and len(set(ssp.geometry.kind)) > 2:
        found.append(_ground(ssp, average, best))
    if isinstance(best.of.policy, BudgetPolicy):
        budget = float(best.of.policy.left(ssp.start_index, best.of.policy.budget))
        found.append(
            f"The optimal policy starts with a budget of {budget:g}, its VaR, and looks at what is"
            " left of it: while the budget can still be kept, the policy avoids whatever could"
            " break it; once it is spent, nothing is left to protect, and it does what is best on"
            " average."
        )
    return found


def _turning(ssp: SSP, title: str, worst: WorstRuns) -> str:
    """Where the runs of a policy turn bad: by kind of cell where there are kinds, and the first
    outcome.
    """
    setbacks = sum(max(row.setback, 0.0) for row in worst.blame)
    text = (
        f"Runs of {title} policy that cost more than {worst.var:g}, its VaR, have a probability of"
        f" {_number(worst.chance)}. "
    )
    if ssp.geometry is not None:
        by_kind: dict[str, float] = {}
        for row in worst.blame:
            kind = ssp.geometry.kind[ssp.state_index(row.next_state)]
            by_kind[kind] = by_kind.get(kind, 0.0) + row.setback / worst.excess
        kind, share = max(by_kind.items(), key=lambda entry: entry[1])
        if share > 0.2 and kind:
            text += (
                f"On balance {_percent(min(share, 1.0))} of their excess comes from steps that end"
                f" on {kind}. "
            )
    top = max(worst.blame, key=lambda row: row.setback)
    return (
        text
        + f"What hurts most: at {name_in_words(top.state)}, {name_in_words(top.action)} ends in"
        f" {name_in_words(top.next_state)} ({_percent(top.setback / setbacks)} of all setbacks)."
    )


def _ground(ssp: SSP, average: Case, best: Case) -> str:
    """How many steps each policy spends on each kind of cell."""
    assert ssp.geometry is not None
    kinds = sorted({kind for kind in ssp.geometry.kind if kind and kind != "goal"})
    of = np.array(ssp.geometry.kind, dtype=object)
    steps = [
        {kind: float(case.of.visits[of == kind].sum()) for kind in kinds}
        for case in (average, best)
    ]
    parts = [
        f"{_number(steps[0][kind])} and {_number(steps[1][kind])} on {kind}"
        for kind in kinds
        if max(steps[0][kind], steps[1][kind]) >= 0.005
    ]
    return (
        "Steps on average, of the average-best and of the optimal policy: " + "; ".join(parts) + "."
    )


def _other(
    alpha: float, name: str, case: Case, best: Case, predicted: float | None, unit: str
) -> str:
    """A policy that somebody asked for: what its planner predicts, if it does, what it delivers,
    and how far that is from the optimum.
    """
    missed = case.of.costs.unreached
    if missed > 0:
        return (
            f"The policy {name} misses the goal with probability {_number(missed)}, so its mean"
            " and its CVaR are infinite."
        )
    delivered = case.of.costs.cvar(alpha)
    over = above(delivered, best.of.costs.cvar(alpha))
    prediction = (
        ""
        if predicted is None
        else f" predicts {_amount(predicted, unit)} in the worst {_percent(alpha)} and"
    )
    text = (
        f"The policy {name}{prediction} costs {_amount(delivered, unit)} there"
        if prediction
        else (
            f"The policy {name} costs {_amount(case.of.costs.mean, unit)} on average, and"
            f" {_amount(delivered, unit)} in its worst {_percent(alpha)}"
        )
    )
    return text + (
        ", no more than the optimal policy."
        if not over
        else f": {_amount(over, unit, 3)} above the optimum."
    )
