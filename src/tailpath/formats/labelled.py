"""A labelled MDP, as in PRISM and Storm: choices by state, branches by choice, labels and reward
structures; and the stochastic shortest path problem made from it, by the rules of
`docs/formats.md`.

What is a branch here, as in UMB, is a transition in the files of DRN and PRISM, and becomes an
outcome of the problem. Rewards of states, choices and branches all count on leaving the state. The
loop that a dead end gets has the smallest positive cost of the model, so that it does not refine
the cost unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.files import shorten
from tailpath.formats.outcomes import (
    cost_rule,
    exact_sum,
    loop_cost,
    model_of,
    refuse_improbable,
)
from tailpath.formats.registry import Reading
from tailpath.formats.writing import MARK, Extras, written_actions
from tailpath.graph import Array, BoolArray, FloatArray, IntArray, first_of, owners
from tailpath.model.cost_units import fraction_unit
from tailpath.model.endings import fresh_name
from tailpath.model.outcomes import CostRule, OutcomeColumns
from tailpath.model.ssp import Name
from tailpath.texts import did_you_mean


@dataclass(frozen=True)
class Reward:
    """One reward structure: a number per state, per choice, per branch, each optional."""

    state: FloatArray | None = None
    choice: FloatArray | None = None
    branch: FloatArray | None = None


#: Arrays by name, each made on demand: there may be as many labels as states.
Labels = Mapping[str, Callable[[], BoolArray]]
Rewards = Mapping[str, Callable[[], Reward]]


def labels_of_codes(members: Mapping[str, Sequence[int]], codes: Array) -> Labels:
    """Labels by the codes that carry them, where each state has a code, (n,)."""
    return {label: partial(np.isin, codes, carried) for label, carried in members.items()}


@dataclass(frozen=True)
class LabelledMDP:
    """A labelled MDP as read from a file. `choice_action` numbers `actions`; -1 is a choice without
    a name. Where probabilities are intervals, `low` has their low ends and `probability` the high
    ones. Runs begin in the states that are `initial`; without it, in those with the label `init`.
    """

    path: str
    state_choices: Array
    choice_branches: Array
    target: Array
    probability: FloatArray
    choice_action: Array
    actions: Sequence[str]
    labels: Labels
    rewards: Rewards
    can_write_action: Callable[[str], bool] = bool
    states: Sequence[Name] | None = None
    initial: BoolArray | None = None
    low: FloatArray | None = None
    extras: Extras = field(default_factory=Extras)

    @property
    def n_states(self) -> int:
        return len(self.state_choices) - 1


# ---------------------------------------------------------------------- the problem of it


DEFAULT_GOAL = "goal"


def to_ssp(model: LabelledMDP, reading: Reading, more: Sequence[str] = ()) -> Any:
    """Choose goal and cost, make goals absorbing, and hand the rest to `SSP`, or to
    `IntervalSSP`. Rewards are taken as costs, as PRISM and Storm minimise them. `more` has further
    notes.
    """
    rule = cost_rule(1, reading)
    model = _without_auxiliary_states(model)
    is_goal = _goal(model, reading.goal)
    starts = _starts(model, reading.start)
    actions, rows, notes = _without_goal_rows(model, is_goal, reading.cost, rule)
    n_states, extras = model.n_states, model.extras
    dead_ends = np.flatnonzero(~is_goal & (np.bincount(rows.state, minlength=n_states) == 0))
    if dead_ends.size:
        rows = rows.extended(dead_ends, 0, dead_ends, loop_cost(rows.cost), 1.0)
        actions = actions or range(1)
        notes.append(
            f"dead ends (states without transitions) were given a loop: {dead_ends.size}, the"
            f" first is state {dead_ends[0]}"
        )
    start = int(starts[0])
    states = model.states or extras.names("states", n_states) or range(n_states)
    own = extras.fields(n_states)
    del model  # its arrays need not wait for those of the SSP
    if starts.size > 1:
        rows = rows.extended(n_states, len(actions), starts, 0.0, 1 / starts.size)
        states = (*states, fresh_name("start", states))
        actions = (*actions, fresh_name("draw", actions))
        own["geometry"] = None
        is_goal, start = np.append(is_goal, False), n_states
        notes.append(f"the start is drawn among {starts.size} states, at no cost")
    # Our own files state the unit if there is one; in others it may only be implied.
    if not extras.location and (unit := fraction_unit(np.unique(rows.cost).tolist())) is not None:
        own["exact_unit"] = unit
        notes.append(f"costs are taken as whole multiples of {unit}, which decimals cannot express")
    names: dict[str, Any] = {"states": states, "actions": actions}
    own["notes"] = (*own["notes"], *notes, *more)
    return model_of(rows, {"is_goal": is_goal, "start_index": start, **names, **own})


def _without_goal_rows(
    model: LabelledMDP, is_goal: BoolArray, cost: str | None, rule: CostRule
) -> tuple[Sequence[Name], OutcomeColumns, list[str]]:
    """The actions; the rows of all states but the goals, without impossible branches and with their
    costs; and notes.
    """
    choice_state, branch_choice = (
        owners(offsets, np.int32) for offsets in (model.state_choices, model.choice_branches)
    )
    state = choice_state[branch_choice]
    costs = _costs(model, cost, rule, choice_state, branch_choice)
    used = ~is_goal[state]
    notes = _left_out(model, state, used, costs if rule.step_cost is None else None)

    def choice_named(choice: int) -> str:
        owner = int(choice_state[choice])
        return f"state {owner}, choice {choice - int(model.state_choices[owner])}"

    def named(branch: int) -> str:
        return f"{choice_named(int(branch_choice[branch]))} -> {int(model.target[branch])}"

    refuse_improbable(model.probability, model.path, named)
    used &= model.probability != 0
    for branch in first_of(used & ~np.isfinite(costs)):  # such as a sum beyond the floats
        raise FormatError(f"{model.path}: {named(branch)} costs {costs[branch]:g}")
    mask = ~is_goal[choice_state]
    for choice in first_of(mask & (np.bincount(branch_choice[used], minlength=len(mask)) == 0)):
        raise FormatError(f"{model.path}: {choice_named(choice)} has no outcomes")
    actions, action = _named_choices(model, choice_state, mask)
    rank = np.cumsum(mask, dtype=np.int32) - 1
    rows = OutcomeColumns(
        state[used],
        action[rank[branch_choice[used]]],
        model.target[used],
        costs[used],
        tuple(each[used] for each in (model.low, model.probability) if each is not None),
    )
    return actions, rows, notes


def _left_out(
    model: LabelledMDP, state: Array, used: BoolArray, costs: FloatArray | None
) -> list[str]:
    """Notes on the branches of goals, which are not used."""
    notes = []
    of_goals = np.flatnonzero(~used)
    of_goals = of_goals[model.probability[of_goals] > 0]
    away = np.count_nonzero(model.target[of_goals] != state[of_goals])
    if away:
        notes.append(f"transitions out of goals are left out ({away} of them)")
    paid = 0 if costs is None else np.count_nonzero(costs[of_goals])
    if paid:
        notes.append(f"rewards on goals are left out (of {paid} transitions)")
    return notes


def _goal(model: LabelledMDP, goal: str | None) -> BoolArray:
    name = DEFAULT_GOAL if goal is None else goal
    if name not in model.labels:
        raise FormatError(
            f"{model.path}: no label {name!r}; choose the goal with --goal LABEL (goal=) among:"
            f" {_list(model.labels)}"
        )
    mask = model.labels[name]()
    if not mask.any():
        raise FormatError(f"{model.path}: no state carries the goal label {name!r}")
    return mask


def _starts(model: LabelledMDP, start: Any) -> IntArray:
    """The states where runs begin: those marked initial, or those chosen by label or number."""
    if start is None:
        is_initial = model.initial
        if is_initial is None and "init" in model.labels:
            is_initial = model.labels["init"]()
        initial = np.flatnonzero(False if is_initial is None else is_initial)
        if initial.size == 0:
            raise FormatError(
                f"{model.path}: no state is initial; choose where runs begin with --start LABEL"
                " (start=)"
            )
        return initial
    if isinstance(start, str) and start in model.labels:
        chosen = np.flatnonzero(model.labels[start]())
        if chosen.size == 0:
            raise FormatError(f"{model.path}: no state carries the label {start!r} of the start")
        return chosen
    digits = str(start)
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else -1
    if not 0 <= number < model.n_states:
        what = f"no label {start!r}" + (", and no state of this number" if number >= 0 else "")
        among = f"{_list(model.labels)}, or 0..{model.n_states - 1}"
        near = did_you_mean(start, model.labels)
        raise FormatError(
            f"{model.path}: {what}{near}; choose the start with --start LABEL (start=) among:"
            f" {among}"
        )
    return np.array([number], dtype=np.int64)


def _costs(
    model: LabelledMDP,
    cost: str | None,
    rule: CostRule,
    choice_state: Array,
    branch_choice: Array,
) -> FloatArray:
    if cost is None and rule.ignores_rewards:
        return rule.apply(np.zeros(len(branch_choice)))
    if cost is None and not model.rewards:
        raise FormatError(
            f"{model.path}: no reward structures; give the cost of a step with --step-cost COST"
            " (step_cost=)"
        )
    name = next(iter(model.rewards)) if cost is None else cost
    several = cost is None and len(model.rewards) > 1
    if several or name not in model.rewards:
        what = "choose the cost with" if several else f"no reward structure {name!r}; choose with"
        raise FormatError(f"{model.path}: {what} --cost NAME (cost=) among: {_list(model.rewards)}")
    reward = model.rewards[name]()
    of_choice = exact_sum(
        np.zeros(len(choice_state)),
        None if reward.state is None else reward.state[choice_state],
        reward.choice,
    )
    return rule.apply(exact_sum(of_choice[branch_choice], reward.branch))


def _list(names: Iterable[str]) -> str:
    names = list(names)
    return (
        ", ".join(shorten(name) for name in names[:40]) + (", ..." if len(names) > 40 else "")
        or "(none)"
    )


def _named_choices(
    model: LabelledMDP, choice_state: Array, mask: BoolArray
) -> tuple[Sequence[Name], Array]:
    """The action names, and the number of the action of each choice that is left.

    Unnamed choices go by their position in the state; a name that a state repeats is counted: a,
    a#2, a#3.
    """
    action = np.asarray(model.choice_action, dtype=np.int64)[mask]
    own = model.extras.names("actions")
    if own is not None:
        return own, _own_actions(model, own, action, choice_state[mask])
    state = choice_state[mask]
    position = (np.arange(len(choice_state)) - model.state_choices[:-1][choice_state])[mask]
    key = state.astype(np.int64) * (len(model.actions) + 1) + action
    order = np.argsort(key, kind="stable")
    ranked, count = key[order], np.empty(len(key), dtype=np.int64)
    count[order] = np.arange(len(key)) - np.searchsorted(ranked, ranked)
    count = np.where(action < 0, position, count)
    width = int(count.max(initial=0)) + 1
    kinds, number = np.unique((action + 1) * width + count, return_inverse=True)
    names: dict[Name, None] = {}
    for kind in kinds.tolist():
        which, nth = kind // width - 1, kind % width
        name: Name = (
            nth
            if which < 0
            else model.actions[which]
            if nth == 0
            else f"{model.actions[which]}#{nth + 1}"
        )
        while name in names:
            name = f"{name}'"
        names[name] = None
    listed, plain = tuple(names), range(len(names))
    return plain if listed == tuple(plain) else listed, number.astype(np.int32)


def _own_actions(model: LabelledMDP, own: Sequence[Name], action: Array, state: Array) -> Array:
    """The numbers of the actions that our own writer named."""
    if (action < 0).any():
        raise FormatError(
            f"{model.path}: a choice without a name, but the {MARK} line names the actions"
        )
    if isinstance(own, range):  # the declared number is no reason to build a table of that size
        number = {
            word: int(word)
            for word in model.actions
            if word.isascii() and word.isdigit() and int(word[:18]) < len(own)
        }
    else:
        number = written_actions(own, model.can_write_action)
    for which in np.unique(action).tolist():
        if model.actions[which] not in number:
            raise FormatError(
                f"{model.path}: the action {shorten(model.actions[which])!r} is not among those of"
                f" the {MARK} line"
            )
    pairs = np.sort(state.astype(np.int64) * len(model.actions) + action, kind="stable")
    if (np.diff(pairs) == 0).any():
        raise FormatError(f"{model.path}: a state repeats an action of the {MARK} line")
    table = np.array([number.get(word, -1) for word in model.actions], dtype=np.int32)
    return np.asarray(table[action])


# ---------------------------------------------------------------------- auxiliary states


def _without_auxiliary_states(model: LabelledMDP) -> LabelledMDP:
    """Undo the auxiliary states of our own writers (`outgoing.py`), the last states of the file."""
    count = model.extras.auxiliary
    if count == 0:
        return model
    n_states = model.n_states - count
    message = (
        f"{model.path}: the {MARK} line declares {count} auxiliary states, which the file does"
        " not have"
    )
    if n_states < 1 or len(model.rewards) != 1:
        raise FormatError(message)
    ((name, made),) = model.rewards.items()
    reward = made()
    n_choices = int(model.state_choices[n_states])
    n_branches = int(model.choice_branches[n_choices])
    paid = reward.branch if reward.choice is None else reward.choice
    auxiliary_target = model.target[n_branches:]
    if paid is None or not (
        len(auxiliary_target) == count
        and (np.diff(model.state_choices[n_states:]) == 1).all()
        and (np.diff(model.choice_branches[n_choices:]) == 1).all()
        and (auxiliary_target < n_states).all()
    ):
        raise FormatError(message)
    target, branch_cost = model.target[:n_branches].copy(), np.zeros(n_branches)
    if reward.branch is not None:
        branch_cost += reward.branch[:n_branches]
    is_auxiliary = target >= n_states
    auxiliary = target[is_auxiliary] - n_states
    target[is_auxiliary] = auxiliary_target[auxiliary]
    branch_cost[is_auxiliary] = paid[-count:][auxiliary]
    choice_cost = None if reward.choice is None else reward.choice[:n_choices]
    return replace(
        model,
        state_choices=model.state_choices[: n_states + 1],
        choice_branches=model.choice_branches[: n_choices + 1],
        target=target,
        probability=model.probability[:n_branches],
        low=None if model.low is None else model.low[:n_branches],
        choice_action=model.choice_action[:n_choices],
        labels={label: partial(_first, mask, n_states) for label, mask in model.labels.items()},
        rewards={name: lambda: Reward(choice=choice_cost, branch=branch_cost)},
    )


def _first(mask: Callable[[], BoolArray], n_states: int) -> BoolArray:
    return mask()[:n_states]
