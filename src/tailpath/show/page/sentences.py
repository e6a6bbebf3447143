"""In words what differs between the policies, and why: every number is one of the library's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import Policy
from tailpath.policies.unrolling import unroll
from tailpath.policies.visits import Visits
from tailpath.policies.words import decision_in_words
from tailpath.show.differences import Parting, differences
from tailpath.show.runs import WorstRuns
from tailpath.texts import name as name_in_words

if TYPE_CHECKING:
    from tailpath.show.page.data import Case

#: Differences below this part of a cost are none.
SAME = 1e-9


def sentences(ssp: SSP, alpha: float, average: Case, published: Case, best: Case, predicted: float) -> list[str]:
    """Paragraphs for one alpha."""
    told = [*_terrain(ssp), _costs(alpha, average, best)]
    parted = differences(ssp, average.policy, best.policy, alpha)
    if len(parted):
        told += [_parting(ssp, alpha, parted[0]), *_why(ssp, average, best)]
    else:
        told.append("At this alpha the average-best policy is optimal: the two never decide differently.")
    told.append(_published(alpha, published, best, predicted))
    return told


def _terrain(ssp: SSP) -> list[str]:
    """What the kinds of cells of a map do: for those who have never seen it."""
    if ssp.geometry is None:
        return []
    parts = []
    kinds = np.array(ssp.geometry.kind, dtype=object)
    for kind in sorted({each for each in ssp.geometry.kind if each and each != "goal"}):
        outcome = np.flatnonzero((kinds[ssp.choice_state] == kind)[ssp.outcome_choice])
        target, price = set(ssp.outcome_target[outcome].tolist()), ssp.outcome_cost[outcome]
        cost = f"{price.min():g}" if price.min() == price.max() else f"{price.min():g} to {price.max():g}"
        if len(target) == 1:
            where = target.pop()
            known = "the start" if where == ssp.start_index else "the goal" if ssp.is_goal[where] else name_in_words(ssp.states[where])
            what = f"every move leads to {known}"
        elif (ssp.outcome_probability[outcome] == 1).all():
            what = "moves are sure"
        else:
            what = "moves may end elsewhere"
        parts.append(f"on {kind} {what} (cost {cost})")
    return [f"The map: {'; '.join(parts)}. A run begins at {name_in_words(ssp.start)}."]


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _costs(alpha: float, average: Case, best: Case) -> str:
    mean, tail = average.costs.mean, average.costs.cvar(alpha)
    safe_mean, safe_tail = best.costs.mean, best.costs.cvar(alpha)
    text = f"The average-best policy costs {mean:.4g} on average, and {tail:.4g} on average in its worst {_percent(alpha)} of runs. "
    if tail - safe_tail <= SAME * tail:
        return text + "No policy does better in the worst runs."
    return text + (
        f"The optimal policy for this alpha costs {safe_tail:.4g} there: {tail - safe_tail:.3g} less. "
        f"The price is {safe_mean - mean:.3g} more on average: {safe_mean:.4g}."
    )


def _parting(ssp: SSP, alpha: float, first: Parting) -> str:
    where = name_in_words(first.state)
    kind = _kind(ssp, ssp.state_index(first.state))
    remembers = f", with {first.second_memory} of its budget" if "left" in first.second_memory else ""
    text = (
        f"They first part ways at {where}{kind}, in {_percent(first.probability)} of all runs: "
        f"the average-best policy does {decision_in_words(first.first_action)}, "
        f"the optimal one {decision_in_words(first.second_action)}{remembers}. "
    )
    if first.first_cvar is not None and first.second_cvar is not None:
        text += (
            f"From there the first costs {first.first_mean:.4g} on average and {first.first_cvar:.4g} in the worst {_percent(alpha)}, "
            f"the second {first.second_mean:.4g} and {first.second_cvar:.4g}."
        )
    return text


def _kind(ssp: SSP, state: int) -> str:
    return f" ({ssp.geometry.kind[state]})" if ssp.geometry is not None and ssp.geometry.kind[state] else ""


def _why(ssp: SSP, average: Case, best: Case) -> list[str]:
    told = []
    for title, case in (("the average-best", average), ("the optimal", best)):
        if case.worst is not None and case.worst.blame:
            told.append(_turning(ssp, title, case.worst))
    if ssp.geometry is not None and len(set(ssp.geometry.kind)) > 2:
        told.append(_ground(ssp, average.policy, best.policy))
    if isinstance(best.policy, BudgetPolicy):
        unit = float(best.policy.unit)
        told.append(
            f"The optimal policy starts with a budget of {best.policy.budget * unit:g}, its VaR, and looks at what is left of it: as long as the "
            "budget may hold it avoids whatever could break it; once it is spent, nothing is left to protect, and it does what is best on "
            "average."
        )
    return told


def _turning(ssp: SSP, title: str, worst: WorstRuns) -> str:
    """Where the runs of a policy turn bad: by kind of cell where there are kinds, and the first outcome."""
    setbacks = sum(max(row.setback, 0.0) for row in worst.blame)
    text = f"Runs of {title} policy that cost more than {worst.var:g}, its VaR, have a probability of {worst.chance:.3g}. "
    if ssp.geometry is not None:
        by_kind: dict[str, float] = {}
        for row in worst.blame:
            kind = ssp.geometry.kind[ssp.state_index(row.next_state)]
            by_kind[kind] = by_kind.get(kind, 0.0) + row.setback / worst.excess
        kind, share = max(by_kind.items(), key=lambda entry: entry[1])
        if share > 0.2 and kind:
            text += f"On balance {_percent(min(share, 1.0))} of their excess comes from steps that end on {kind}. "
    top = max(worst.blame, key=lambda row: row.setback)
    return text + (
        f"What hurts most: at {name_in_words(top.state)}, {name_in_words(top.action)} ends in {name_in_words(top.next_state)} "
        f"({_percent(top.setback / setbacks)} of all setbacks)."
    )


def _ground(ssp: SSP, average: Policy, best: Policy) -> str:
    """How many steps each policy spends on each kind of cell."""
    assert ssp.geometry is not None
    kinds = sorted({kind for kind in ssp.geometry.kind if kind and kind != "goal"})
    told = []
    for policy in (average, best):
        chain = unroll(ssp, policy)
        visits = Visits(chain).expected
        of = np.array(ssp.geometry.kind, dtype=object)[chain.state]
        told.append({kind: float(visits[of == kind].sum()) for kind in kinds})
    parts = [f"{told[0][kind]:.3g} and {told[1][kind]:.3g} on {kind}" for kind in kinds if max(told[0][kind], told[1][kind]) >= 0.005]
    return "Steps on average, of the average-best and of the optimal policy: " + "; ".join(parts) + "."


def _published(alpha: float, published: Case, best: Case, predicted: float) -> str:
    delivered = published.costs.cvar(alpha)
    over = delivered - best.costs.cvar(alpha)
    text = f"The published planner (CVaRVIQ) predicts {predicted:.4g} in the worst {_percent(alpha)} and delivers {delivered:.4g}"
    return text + (", no more than the optimal policy." if over <= SAME * delivered else f": {over:.3g} above the optimum.")
