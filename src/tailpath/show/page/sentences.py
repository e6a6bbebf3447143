"""In words what differs between the policies, and why: every number is one of the library's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Context
from typing import TYPE_CHECKING, Any

import numpy as np

from tailpath.graph import members
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.show.decisions import amount, decision_in_words
from tailpath.show.differences import Parting, parted
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
    """Short lines for one alpha: the first of the cases is the average-best policy, the last the
    optimum. Those that tell the two apart come first.
    """
    (_, average), *others, (_, best) = cases.items()
    found = [_costs(alpha, average, best, unit)]
    places = parted(average.of, best.of, alpha, to_go=False)
    if len(places):
        found += [_parting(places[0]), *_why(ssp, average, best)]
    else:
        found.append(
            "At this alpha the average-best policy is optimal: the two never decide differently."
        )
    more = [_other(alpha, name, case, best, predicted[name], unit) for name, case in others]
    return [*found, *_terrain(ssp), *more]


def headline(ssp: SSP, alpha: float, average: Case, best: Case, unit: str) -> dict[str, Any]:
    """What to do and what it buys, in a few words, and the three numbers to remember: what can be
    promised, the worst runs, and the mean.
    """
    costs, policy, worst = best.of.costs, best.of.policy, _percent(alpha)
    tail, others = costs.cvar(alpha), average.of.costs.cvar(alpha)
    first = ""
    if not ssp.is_goal[ssp.start_index] and len(members(ssp.state_choices, ssp.start_index)) > 1:
        taken = policy.action(ssp.start, policy.start(ssp.start))
        first = f"First step: {decision_in_words(taken)}. "
    if above(others, tail):
        text = (
            f"In the worst {worst} of runs, that costs {_amount(tail, unit)} on average; what is"
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
        target, costs = np.unique(ssp.outcome_target[outcome]), ssp.outcome_cost[outcome]
        what = "moves may end elsewhere"
        if len(target) == 1:
            where = int(target[0])
            known = "the start" if where == ssp.start_index else name_in_words(ssp.states[where])
            what = f"every move leads to {'the goal' if ssp.is_goal[where] else known}"
        elif (ssp.outcome_probability[outcome] == 1).all():
            what = "moves are certain"
        cost = " to ".join(f"{each:g}" for each in sorted({costs.min(), costs.max()}))
        parts.append(f"on {kind} cells {what} (cost {cost})")
    return [f"The map: {'; '.join(parts)}. A run begins at {name_in_words(ssp.start)}."]


def _number(value: float, digits: int = 3) -> str:
    """Of nine digits, halves away from 0, as `draw.js` rounds: words and tables agree."""
    rounding = Context(digits, ROUND_HALF_UP)
    return f"{float(rounding.create_decimal(f'{value:.9g}')):.{digits}g}"


def _percent(share: float) -> str:
    return f"{_number(100 * share)} %"


def _amount(cost: float, unit: str, digits: int = 4) -> str:
    return amount(_number(cost, digits), unit)


def above(cost: float, best: float) -> float:
    """How far a cost lies above the least one; 0 where floats cannot tell them apart."""
    return cost - best if cost - best > SAME * abs(best) else 0.0


def _costs(alpha: float, average: Case, best: Case, unit: str) -> str:
    mean, tail = average.of.costs.mean, average.of.costs.cvar(alpha)
    text = (
        f"The average-best policy costs {_amount(mean, unit)} on average, and"
        f" {_amount(tail, unit)} in its worst {_percent(alpha)} of runs. "
    )
    safe_mean, safe_tail = best.of.costs.mean, best.of.costs.cvar(alpha)
    saved = above(tail, safe_tail)
    if not saved:
        return text + "No policy does better in the worst runs."
    return (
        text + f"The optimal one costs {_amount(safe_tail, unit)} there:"
        f" {_amount(saved, unit, 3)} less. On average it costs {_amount(safe_mean, unit)}."
    )


def _parting(first: Parting) -> str:
    left = f" ({first.second_memory})" if "left" in first.second_memory else ""
    return (
        f"They part at {name_in_words(first.state)}, in {_percent(first.probability)} of runs:"
        f" best on average is {decision_in_words(first.first_action)}, optimal"
        f" {decision_in_words(first.second_action)}{left}."
    )


def _why(ssp: SSP, average: Case, best: Case) -> Iterator[str]:
    for title, case in (("average-best", average), ("optimal", best)):
        worst = case.worst
        if worst is not None and worst.blame and not worst.simulated:
            top = max(worst.blame, key=lambda row: row.setback)
            part = top.setback / sum(max(row.setback, 0.0) for row in worst.blame)
            yield (
                f"Runs of the {title} policy turn bad most at {name_in_words(top.state)}:"
                f" {name_in_words(top.action)} ends in {name_in_words(top.next_state)}"
                f" ({_percent(part)} of all setbacks)."
            )
    if isinstance(best.of.policy, BudgetPolicy):
        budget = float(best.of.policy.left(ssp.start_index, best.of.policy.budget))
        yield (
            f"The optimal policy starts with a budget of {budget:g}, its VaR, and avoids what could"
            " break it; once it is spent, it does what is best on average."
        )


def _other(
    alpha: float, name: str, case: Case, best: Case, predicted: float | None, unit: str
) -> str:
    """A policy that somebody asked for: what its planner predicts, if it does, what it delivers,
    and how far that is from the optimum.
    """
    costs = case.of.costs
    if costs.unreached > 0:
        return (
            f"The policy {name} misses the goal with probability {_number(costs.unreached)}, so its"
            " mean and its CVaR are infinite."
        )
    delivered, worst = _amount(costs.cvar(alpha), unit), _percent(alpha)
    text = (
        f"costs {_amount(costs.mean, unit)} on average, and {delivered} in its worst {worst}"
        if predicted is None
        else f"predicts {_amount(predicted, unit)} in the worst {worst} and costs {delivered} there"
    )
    over = above(costs.cvar(alpha), best.of.costs.cvar(alpha))
    how = f": {_amount(over, unit, 3)} above" if over else ", no more than"
    return f"The policy {name} {text}{how} the {'optimum' if over else 'optimal policy'}."
