"""Where two policies first part ways, how probable that is, and what each choice costs from there.

Both policies are followed side by side for as long as they decide alike: over pairs of nodes of
their two chains, from the pair of starts. A pair at which they decide differently is where they
part. The probability of parting there is the expected number of visits of a node without edges,
found with all others by one linear system. From there each policy goes its own way: the expected
cost to go and the CVaR of the cost to go are those of its own chain. Partings at the same state
between the same decisions are one row, whatever was remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tailpath.analysis.reachability import dead_ends
from tailpath.evaluation.following import Drawing, Follower
from tailpath.graph import Transitions, grouped, members
from tailpath.model.records import Series, Shown
from tailpath.model.ssp import SSP, FloatArray, Name
from tailpath.options import check_alpha, takes_alpha, takes_model
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.policy import Policy
from tailpath.show.decisions import (
    action_of,
    budgets_in_words,
    decision_in_words,
    memory_in_words,
)
from tailpath.show.followed import Followed
from tailpath.show.sampled import tail_mean, walked_from
from tailpath.show.visits import cvar_to_go, expected_visits
from tailpath.texts import Content, Table, count, number

#: Choices with their probabilities.
Decision = Sequence[tuple[int, float]]
#: Action weights that differ by no more than this are the same decision.
SAME_WEIGHT = 1e-12


class Parting(NamedTuple):
    """Where two policies part: the state, what each remembers and does, the probability, and mean
    and CVaR of the cost to go of each.
    """

    state: Name
    first_memory: str
    first_action: Any
    second_memory: str
    second_action: Any
    probability: float
    first_mean: float
    second_mean: float
    first_cvar: float | None
    second_cvar: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Shown, Series[Parting]):
    """The partings of two policies as a sequence, the likeliest first.

    Attributes
    ----------
    partings : tuple of Parting
        Named tuples: `state`, `probability`, and for each policy `first_memory`, `first_action`,
        `first_mean`, `first_cvar`, `second_memory` and so on.
    alpha : float
        The mass of the worst tail.
    means, cvars : tuple of float
        Of the two policies, from the start.
    names : tuple of str
        What tables call the two.
    simulated : int
        The simulated runs that the partings come from, where a policy reaches too many pairs of
        state and memory to follow them all; otherwise 0.

    Examples
    --------
    >>> found = tp.differences(ssp, {"home": "road"}, {"home": "train"}, 0.1)
    >>> found.means, found.cvars
    ((24.0, 30.0), (60.0, 30.0))
    """

    partings: tuple[Parting, ...]
    alpha: float
    means: tuple[float, float]
    cvars: tuple[float, float]
    names: tuple[str, str] = ("first", "second")
    simulated: int = 0

    @property
    def probability(self) -> float:
        """The probability that the two ever decide differently."""
        return min(sum(parting.probability for parting in self.partings), 1.0)

    def _content(self, most: int) -> Content:
        at = number(self.alpha)
        content: list[Table | str] = [
            Table(
                ["policy", "mean", f"CVaR at {at}"], list(zip(self.names, self.means, self.cvars))
            )
        ]
        if not len(self):
            return [*content, "the two policies never decide differently"]
        headers = [
            "state",
            "probability",
            "policy",
            "action",
            "memory",
            "mean to go",
            f"CVaR to go at {at}",
        ]
        rows = [row for part in self[:most] for row in self._rows(part)]
        content += [
            f"they part with probability {number(self.probability)}",
            Table(headers, rows).in_use(),
        ]
        if len(self) > most:
            content.append(f"the {most} likeliest of {len(self)} places")
        if self.simulated:
            content.append(f"places are estimated from {self.simulated:,} simulated runs")
        return content

    def _rows(self, part: Parting) -> list[list[Any]]:
        """Two lines: what the first does, and what the second does."""
        one, other = decision_in_words(part.first_action), decision_in_words(part.second_action)
        first = [one, part.first_memory, part.first_mean, part.first_cvar]
        second = [other, part.second_memory, part.second_mean, part.second_cvar]
        return [
            [part.state, number(part.probability), self.names[0], *first],
            ["", "", self.names[1], *second],
        ]

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {field: [getattr(part, field) for part in self] for field in Parting._fields}

    def __repr__(self) -> str:
        return (
            f"<Differences in {count(len(self), 'place')}, met with probability"
            f" {self.probability:.4g}>"
        )


@takes_model
@takes_alpha
def differences(ssp: SSP, first: Policy, second: Policy, alpha: float = 0.05) -> Differences:
    """Find where two policies first decide differently.

    Parameters
    ----------
    ssp : SSP
        The model.
    first, second : Policy, or anything that `tailpath.policy` takes
        The policies.
    alpha : float in (0, 1]
        The mass of the worst tail of the costs to go.

    Returns
    -------
    Differences
        A sequence of partings, the likeliest first: state, what each remembers and does, the
        probability, and mean and CVaR of the cost to go of each.

    Raises
    ------
    PolicyError
        If a policy does not fit the model.

    Examples
    --------
    >>> found = tp.differences(ssp, {"home": "road"}, {"home": "train"}, 0.1)
    >>> found
    <Differences in 1 place, met with probability 1>
    >>> found[0].first_action, found[0].first_cvar, found[0].second_cvar
    ('road', 60.0, 30.0)
    """
    alpha = check_alpha(alpha)
    return parted(Followed(ssp, first, alpha), Followed(ssp, second, alpha), alpha)


def parted(one: Followed, other: Followed, alpha: float, to_go: bool = True) -> Differences:
    """Where two policies part, given what each reaches; CVaRs to go take longest, and may be left
    out.
    """
    runs = one.simulated or other.simulated
    rows = (
        _simulated_partings(one, other, alpha, runs)
        if runs
        else _exact_partings(one, other, alpha if to_go else None)
    )
    rows.sort(
        key=lambda row: (
            -round(row.probability, 9),
            repr(row.state),
            decision_in_words(row.first_action),
        )
    )
    costs = one.costs, other.costs
    means, cvars = (costs[0].mean, costs[1].mean), (costs[0].cvar(alpha), costs[1].cvar(alpha))
    return Differences(tuple(rows), alpha, means, cvars, simulated=runs)


def _parting(
    sides: tuple[Followed, Followed],
    state: int,
    decisions: Sequence[Decision],
    memories: Sequence[list[Any]],
    probability: float,
    means: Sequence[float],
    cvars: Sequence[float | None],
) -> Parting:
    first, second = (
        (_told(side.policy, state, own), action_of(side.ssp, decision))
        for side, own, decision in zip(sides, memories, decisions)
    )
    name, (one, other), tails = sides[0].ssp.states[state], means, (cvars[0], cvars[1])
    return Parting(name, *first, *second, min(probability, 1.0), one, other, *tails)


def _told(policy: Policy, state: int, memories: list[Any]) -> str:
    """Memories in one state, in words."""
    if isinstance(policy, BudgetPolicy):
        return budgets_in_words(policy, state, min(memories), max(memories))
    content = list(dict.fromkeys(memory_in_words(policy, m, state) for m in memories))
    return content[0] if len(content) == 1 else f"{content[0]}, or {len(content) - 1} more"


def _exact_partings(one: Followed, other: Followed, alpha: float | None) -> list[Parting]:
    pairs = _partings(one, other)
    number: dict[tuple[Any, ...], int] = {}
    groups = [
        number.setdefault(
            (int(one.chain.state[x]), tuple(one.decision(x)), tuple(other.decision(y))), len(number)
        )
        for x, y in pairs
    ]
    nodes, weight = (
        np.array(list(pairs), dtype=np.int64).reshape(-1, 2),
        np.array(list(pairs.values())),
    )
    group, count = np.array(groups, dtype=np.int64), len(number)
    total = np.bincount(group, weight, count)
    means, cvars = [], []
    for side, node in zip((one, other), nodes.T):
        means.append(
            np.bincount(group, weight * side.chain.expected_cost.value[node], count) / total
        )
        cvar = np.full(count, np.nan)
        if alpha is not None:
            cvar = cvar_to_go(side.chain, node, group, weight, count, alpha)
        cvars.append([None if np.isnan(each) else each for each in cvar.tolist()])
    order, start = grouped(group, count)
    rows = []
    for k, (state, *decisions) in enumerate(number):
        own = nodes[order[start[k] : start[k + 1]]]
        memories = list(one.memories[own[:, 0]]), list(other.memories[own[:, 1]])
        to_go = [float(each[k]) for each in means], [each[k] for each in cvars]
        rows.append(_parting((one, other), state, decisions, memories, float(total[k]), *to_go))
    return rows


def _simulated_partings(one: Followed, other: Followed, alpha: float, runs: int) -> list[Parting]:
    """The places where two policies part in simulated runs. Both follow the same run until they
    part; each then goes on alone.
    """
    ssp = one.ssp
    drawing, sides = Drawing(ssp), [Follower(ssp, each.policy) for each in (one, other)]
    state = np.full(runs, ssp.start_index, dtype=np.int64)
    memory = [side.begin(runs) for side in sides]
    ends, found = dead_ends(ssp) | ssp.is_goal, dict[tuple[int, int, int], list[int]]()
    going = np.flatnonzero(~ends[state])
    while going.size:
        here = state[going]
        first, second = (side.choices(here, known[going]) for side, known in zip(sides, memory))
        for k in np.flatnonzero(first != second).tolist():
            place = int(here[k]), int(first[k]), int(second[k])
            found.setdefault(place, []).append(int(going[k]))
        going, here = going[first == second], here[first == second]
        outcome = drawing.outcomes(first[first == second])
        for side, known in zip(sides, memory):
            known[going] = side.after(known[going], here, outcome)
        state[going] = ssp.outcome_target[outcome]
        going = going[~ends[state[going]]]
    parted = np.array([run for own in found.values() for run in own], dtype=np.int64)
    to_go = [
        walked_from(ssp, side, state[parted], known[parted], drawing).total
        for side, known in zip(sides, memory)
    ]
    rows, begin = [], 0
    for (where, *choices), own in found.items():
        costs = [each[begin : begin + len(own)] for each in to_go]
        begin += len(own)
        decisions = [[(choice, 1.0)] for choice in choices]
        memories = [known[own].tolist() for known in memory]
        means = [float(each.mean()) for each in costs]
        cvars = [tail_mean(each, alpha) for each in costs]
        share = len(own) / runs
        rows.append(_parting((one, other), where, decisions, memories, share, means, cvars))
    return rows


def _partings(one: Followed, other: Followed) -> dict[tuple[int, int], float]:
    """The pairs of nodes at which the two part, with their probabilities."""
    start = (one.chain.start, other.chain.start)
    if start[0] >= one.chain.n:
        return {}
    number, queue = {start: 0}, [start]
    edges: list[tuple[int, int, float]] = []
    parting = []
    for pair in queue:
        if not _alike(one.decision(pair[0]), other.decision(pair[1])):
            parting.append(pair)
            continue
        for target, p in _steps(one.chain, other.chain, *pair):
            if target[0] < one.chain.n:
                if target not in number:
                    number[target] = len(number)
                    queue.append(target)
                edges.append((number[pair], number[target], p))
    visits = _visits(edges, len(number), {number[pair] for pair in parting})
    return {pair: float(visits[number[pair]]) for pair in parting if visits[number[pair]] > 0}


def _alike(one: Decision, other: Decision) -> bool:
    known = dict(other)
    return dict(one).keys() == known.keys() and all(
        abs(weight - known[choice]) <= SAME_WEIGHT for choice, weight in one
    )


def _steps(one: CostChain, other: CostChain, x: int, y: int) -> list[tuple[tuple[int, int], float]]:
    """The pairs after one step of two nodes that decide alike."""
    assert one.outcome is not None
    assert other.outcome is not None
    after = {
        int(other.outcome[edge]): int(other.target[edge]) for edge in members(other.row_start, y)
    }
    return [
        ((int(one.target[edge]), after[int(one.outcome[edge])]), float(one.probability[edge]))
        for edge in members(one.row_start, x)
    ]


def _visits(edges: list[tuple[int, int, float]], count: int, parting: set[int]) -> FloatArray:
    """The expected visits from node 0. Where runs cycle for ever without parting, the cycle counts
    as left.
    """
    source, target, probability = np.array(edges).reshape(-1, 3).T
    steps = Transitions.from_edges(source.astype(np.int64), count, target, probability, probability)
    parts = np.isin(np.arange(count), list(parting))
    ahead = parts | (steps.renumber(np.where(parts, count, np.arange(count))).steps() >= 0)
    selected = steps.only(ahead[steps.source] & ahead[steps.target])
    begin = np.zeros(count)
    begin[0] = 1.0
    return expected_visits(selected, begin)
