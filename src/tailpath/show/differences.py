"""Where two policies first part ways, how probable that is, and what each choice costs from there.

Both policies are followed side by side for as long as they decide alike: over pairs of nodes of
their two chains, from the pair of starts. A pair at which they decide differently is where they
part. The probability of parting there is the expected number of visits of a node without edges,
found with all others by one linear system. From there each policy goes its own way: the expected
cost to go and the CVaR of the cost to go are those of its own chain. Partings at the same state
between the same decisions are told as one, whatever was remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tailpath.analysis.reachability import dead_ends
from tailpath.errors import LimitExceededError
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import IntArray, Transitions, grouped, members
from tailpath.model.records import Series, Shown
from tailpath.model.ssp import SSP, FloatArray, Name
from tailpath.options import check_invertible_alpha, takes_alpha, takes_model
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.checks import decide
from tailpath.policies.given import as_policy
from tailpath.policies.policy import Policy
from tailpath.policies.unrolling import unroll
from tailpath.policies.visits import cvar_to_go
from tailpath.show.beyond import expected_visits
from tailpath.show.decisions import (
    MAX_TABLE_PAIRS,
    action_of,
    budgets_in_words,
    decision_in_words,
    memory_in_words,
)
from tailpath.show.sampled import (
    Drawing,
    Follower,
    onwards,
    tail_mean,
    told_as_estimated,
    walks,
)
from tailpath.texts import Content, Table, count, number

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


class _Side:
    """One of the two policies, with its chain and decisions."""

    def __init__(self, ssp: SSP, policy: Policy, alpha: float) -> None:
        self.ssp, self.policy = ssp, as_policy(ssp, policy, alpha=alpha)
        self.alpha = alpha
        self.known: dict[int, dict[int, float]] = {}
        self.costs = evaluate(ssp, self.policy, alpha)

    @cached_property
    def chain(self) -> CostChain:
        return unroll(self.ssp, self.policy, max_nodes=MAX_TABLE_PAIRS)

    def memory(self, node: int) -> Any:
        return None if self.chain.memory is None else self.chain.memory[node]

    def decision(self, node: int) -> dict[int, float]:
        if node not in self.known:
            self.known[node] = dict(
                decide(self.ssp, self.policy, int(self.chain.state[node]), self.memory(node))
            )
        return self.known[node]

    def words(self, nodes: list[int]) -> str:
        """What is remembered at some nodes of one state."""
        return self.told(int(self.chain.state[nodes[0]]), [self.memory(node) for node in nodes])

    def told(self, state: int, memories: list[Any]) -> str:
        """Memories in one state, in words."""
        if isinstance(self.policy, BudgetPolicy):
            return budgets_in_words(self.policy, state, min(memories), max(memories))
        content = list(dict.fromkeys(memory_in_words(self.policy, m, state) for m in memories))
        return content[0] if len(content) == 1 else f"{content[0]}, or {len(content) - 1} more"

    def to_go(
        self, node: IntArray, group: IntArray, weight: FloatArray, count: int
    ) -> tuple[list[float], list[float | None]]:
        """Mean and CVaR of the cost to go for mixtures of nodes, one for each group; None where
        that CVaR is not known.
        """
        own = weight * self.chain.expected_cost.value[node]
        mean = np.bincount(group, own, count) / np.bincount(group, weight, count)
        cvar = cvar_to_go(self.chain, node, group, weight, count, self.alpha)
        return mean.tolist(), [None if np.isnan(each) else each for each in cvar.tolist()]


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
    alpha = check_invertible_alpha(alpha)
    one, other = _Side(ssp, first, alpha), _Side(ssp, second, alpha)
    costs = one.costs, other.costs
    totals = alpha, (costs[0].mean, costs[1].mean), (costs[0].cvar(alpha), costs[1].cvar(alpha))
    try:
        rows, runs = _exact_partings(one, other), 0
    except LimitExceededError:
        rows, runs = _simulated_partings(one, other)
    rows.sort(
        key=lambda row: (
            -round(row.probability, 9),
            repr(row.state),
            decision_in_words(row.first_action),
        )
    )
    return Differences(tuple(rows), *totals, simulated=runs)


def _exact_partings(one: _Side, other: _Side) -> list[Parting]:
    ssp, parted = one.ssp, _partings(one, other)
    number: dict[tuple[Any, ...], int] = {}  # of what is told as one: the state, and both decisions
    groups = [
        number.setdefault(
            (
                int(one.chain.state[x]),
                tuple(one.decision(x).items()),
                tuple(other.decision(y).items()),
            ),
            len(number),
        )
        for x, y in parted
    ]
    nodes, weight = np.array(list(parted), dtype=np.int64).reshape(-1, 2), list(parted.values())
    group, count = np.array(groups, dtype=np.int64), len(number)
    first_mean, first_cvar = one.to_go(nodes[:, 0], group, np.array(weight), count)
    second_mean, second_cvar = other.to_go(nodes[:, 1], group, np.array(weight), count)
    order, start = grouped(group, count)
    rows = []
    for k, (state, first_choice, second_choice) in enumerate(number):
        own = order[start[k] : start[k + 1]].tolist()
        rows.append(
            Parting(
                ssp.states[state],
                one.words(nodes[own, 0].tolist()),
                action_of(ssp, list(first_choice)),
                other.words(nodes[own, 1].tolist()),
                action_of(ssp, list(second_choice)),
                min(sum(weight[pair] for pair in own), 1.0),
                first_mean[k],
                second_mean[k],
                first_cvar[k],
                second_cvar[k],
            )
        )
    return rows


def _simulated_partings(one: _Side, other: _Side) -> tuple[list[Parting], int]:
    """The places where two policies part in simulated runs, and how many runs there were. Both
    follow the same run until they part; each then goes on alone.
    """
    ssp, runs = one.ssp, walks(one.ssp, one.policy).runs
    told_as_estimated(runs)
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
        onwards(ssp, side, state[parted], known[parted], drawing)
        for side, known in zip(sides, memory)
    ]
    rows, begin = [], 0
    for (where, one_choice, other_choice), own in found.items():
        costs = [each[begin : begin + len(own)] for each in to_go]
        begin += len(own)
        rows.append(
            Parting(
                ssp.states[where],
                one.told(where, memory[0][own].tolist()),
                ssp.choice_name(one_choice),
                other.told(where, memory[1][own].tolist()),
                ssp.choice_name(other_choice),
                len(own) / runs,
                float(costs[0].mean()),
                float(costs[1].mean()),
                tail_mean(costs[0], one.alpha),
                tail_mean(costs[1], one.alpha),
            )
        )
    return rows, runs


def _partings(one: _Side, other: _Side) -> dict[tuple[int, int], float]:
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


def _alike(one: dict[int, float], other: dict[int, float]) -> bool:
    return one.keys() == other.keys() and all(
        abs(weight - other[choice]) <= SAME_WEIGHT for choice, weight in one.items()
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
