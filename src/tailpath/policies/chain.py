"""Model x policy = chain: the reachable pairs (state, memory) with costs on the arrows, and nothing else.

`unroll` builds it; for `AtomPolicy` this is the paper's CreateExtendedMDP (Algorithm 3), restricted to what can be reached. All goals are
one node, number n. Evaluation, expected cost, the heuristic and simulation look at the chain and know neither model nor policy.

    V_mean(x)  expected cost to go      `expected_cost`, with verified bounds; infinite where the goal may be missed
    V_min(x)   cheapest way to the goal `least_cost`, the admissible and consistent heuristic; infinite in traps
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import Bracket, expected_total
from tailpath.analysis.reachability import reachable_nodes, strong_components
from tailpath.errors import BudgetExceededError, ModelError, PolicyError
from tailpath.kernels.forward import cheapest_way
from tailpath.model.ragged import members_of, offsets_of, owners
from tailpath.model.ssp import SSP, FloatArray, Name
from tailpath.policies.atoms import nearest_atom
from tailpath.policies.kinds import AtomPolicy, MarkovPolicy, Policy

#: Pairs that `unroll` visits before it gives up on a policy whose memory does not end.
MOST_PAIRS = 5_000_000


@dataclass(frozen=True, eq=False)
class CostChain:
    """A Markov chain with costs on its arrows. Nodes 0 .. n-1 are transient or traps; node n is the goal.

    `state[x]` is the model's state behind node x and `label(x)` names the pair for messages. With a `unit`, `level` holds every cost as a
    whole number of it; without, `level` is None. `start` is n if the start is a goal. `outcome` is the model's outcome behind each arrow; a chain
    whose arrows are walks of several outcomes has none.
    """

    row_start: NDArray[np.int64]
    target: NDArray[np.int32]
    probability: FloatArray
    cost: FloatArray
    level: NDArray[np.int64] | None
    unit: Fraction | None
    start: int
    state: NDArray[np.int32]
    memory: tuple[Any, ...] | NDArray[Any] | None
    ssp: SSP
    outcome: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        return len(self.row_start) - 1

    @cached_property
    def source(self) -> NDArray[np.int32]:
        """The node each arrow leaves."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.row_start))

    def label(self, node: int) -> str:
        state = repr(self.ssp.states[int(self.state[node])])
        return f"state {state}" if self.memory is None else f"state {state} with memory {self.memory[node]!r}"

    @cached_property
    def least_cost(self) -> FloatArray:
        """V_min per node, n + 1 entries with 0 for the goal, in cost units if there is a unit; infinite where the goal is out of reach."""
        into = np.argsort(self.target, kind="stable").astype(np.int64)
        cost = self.cost if self.level is None else self.level.astype(np.float64)
        least = np.full(self.n + 1, np.inf)
        cheapest_way(offsets_of(self.target, self.n + 1), self.source[into], cost[into], least)
        least.flags.writeable = False
        return least

    @cached_property
    def arrives(self) -> NDArray[np.bool_]:
        """Whether the goal can be reached from a node at all."""
        return np.isfinite(self.least_cost[: self.n])

    @cached_property
    def unreached(self) -> Bracket:
        """The probability of never arriving, per node."""
        if self.arrives.all():
            zero = np.zeros(self.n)
            return Bracket(zero, zero, zero, "graph")
        row_start, target, probability, keep = self._among(self.arrives)
        edge = np.flatnonzero(self.arrives[self.source])
        lost = ~np.append(self.arrives, True)[self.target[edge]]
        position = np.cumsum(self.arrives) - 1
        rate = _sum_by(position[self.source[edge]], self.probability[edge] * lost, int(self.arrives.sum()))
        inner = expected_total(row_start, target, probability, rate, self.least_cost[:-1][self.arrives])
        return _widen(inner, keep, 1.0)

    @cached_property
    def expected_cost(self) -> Bracket:
        """V_mean per node with verified bounds; infinite where the goal may be missed."""
        proper = self.unreached.value == 0
        row_start, target, probability, keep = self._among(proper)
        edge = np.flatnonzero(proper[self.source])
        position = np.cumsum(proper) - 1
        rate = _sum_by(position[self.source[edge]], self.probability[edge] * self.cost[edge], int(proper.sum()))
        inner = expected_total(row_start, target, probability, rate, self.least_cost[:-1][proper])
        return _widen(inner, keep, np.inf)

    def _among(self, inside: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any], FloatArray, NDArray[np.bool_]]:
        """The chain cut to some nodes; everything else counts as absorbed."""
        count = int(inside.sum())
        position = np.where(inside, np.cumsum(inside) - 1, count)
        edge = np.flatnonzero(inside[self.source])
        target = np.append(position, count)[self.target[edge]].astype(np.int32)
        return offsets_of(position[self.source[edge]], count), target, self.probability[edge], inside

    def refuse_free_traps(self) -> None:
        """A trap that costs nothing has no total cost worth the name: an error that names its states."""
        trapped = np.flatnonzero(~self.arrives)
        if trapped.size == 0:
            return
        component, count = strong_components(self.row_start, self.target)
        inner = np.append(component, -1)[self.target] == component[self.source]
        leaves = np.bincount(component[self.source[~inner]], minlength=count) > 0
        paying = np.bincount(component[self.source[inner & (self.cost > 0)]], minlength=count) > 0
        bad = trapped[~leaves[component[trapped]] & ~paying[component[trapped]]]
        if bad.size:
            shown = ", ".join(self.label(int(node)) for node in bad[:5])
            raise PolicyError(f"the policy ends in a cycle that costs nothing and never reaches a goal: {shown}")


def _sum_by(group: NDArray[Any], weights: FloatArray, count: int) -> FloatArray:
    return np.bincount(group, weights=weights, minlength=count).astype(np.float64)


def _widen(inner: Bracket, keep: NDArray[np.bool_], outside: float) -> Bracket:
    """Values on some nodes to values on all."""
    full = [np.full(len(keep), outside) for _ in range(3)]
    for array, part in zip(full, (inner.value, inner.lower, inner.upper)):
        array[keep] = part
    return Bracket(full[0], full[1], full[2], inner.method)


def unroll(ssp: SSP, policy: Policy, *, max_nodes: int = MOST_PAIRS) -> CostChain:
    """The chain of a policy on a model: reachable pairs only. `max_nodes` stops a policy whose memory never ends."""
    if isinstance(policy, MarkovPolicy):
        return _unroll_markov(ssp, policy)
    if isinstance(policy, AtomPolicy) and same_layout(policy.ssp, ssp):
        return _unroll_atoms(ssp, policy)
    return _unroll_any(ssp, policy, max_nodes)


def same_layout(made_for: SSP, ssp: SSP) -> bool:
    """Whether tables of choice and outcome numbers made for one model mean the same on another; names decide where they do not."""
    if made_for is ssp:
        return True
    arrays = ("state_choices", "choice_outcomes", "outcome_target", "choice_action")
    same_numbers = all(np.array_equal(getattr(made_for, name), getattr(ssp, name)) for name in arrays)
    return same_numbers and list(made_for.states) == list(ssp.states) and list(made_for.actions) == list(ssp.actions)


def decide(ssp: SSP, policy: Policy, state: int, memory: Any) -> list[tuple[int, float]]:
    """What a policy does at a state (by index): pairs (choice, probability), checked."""
    name = ssp.states[state]
    return _checked_decision(ssp, state, policy.action(name, memory))


def _checked_decision(ssp: SSP, state: int, decision: Any) -> list[tuple[int, float]]:
    weights: Mapping[Name, float] = decision if isinstance(decision, Mapping) else {decision: 1.0}
    name = ssp.states[state]
    pairs = []
    for action, weight in weights.items():
        choice = ssp.choice_index(state, action)
        if choice < 0:
            known = ", ".join(repr(ssp.choice_name(k)) for k in range(ssp.state_choices[state], ssp.state_choices[state + 1]))
            raise PolicyError(f"the policy takes action {action!r} in state {name!r}, which only has {known}")
        if not 0 <= weight <= 1 + 1e-9:
            raise PolicyError(f"the policy takes action {action!r} in state {name!r} with probability {weight!r}")
        if weight > 0:
            pairs.append((choice, float(weight)))
    total = sum(weight for _, weight in pairs)
    if abs(total - 1) > 1e-9 * max(len(pairs), 1):
        raise PolicyError(f"the action probabilities of the policy in state {name!r} sum to {total:.12g}, not 1")
    return [(choice, weight / total) for choice, weight in pairs] if len(pairs) > 1 else pairs


def _from_rows(
    ssp: SSP,
    row: NDArray[Any],
    outcome: NDArray[Any],
    weight: FloatArray | None,
    target: NDArray[Any],
    start: int,
    state: NDArray[Any],
    memory: NDArray[Any] | None,
) -> CostChain:
    """Cut rows over all conceivable nodes (goal = the last number) to those reachable from the start."""
    n_all = len(state)
    row_start = offsets_of(row, n_all)
    reached = reachable_nodes(row_start, target, start) if start < n_all else np.zeros(n_all, dtype=np.bool_)
    return _cut(ssp, row_start, row, outcome, weight, target, start, state, memory, reached)


def _cut(
    ssp: SSP,
    row_start: NDArray[Any],
    row: NDArray[Any],
    outcome: NDArray[Any],
    weight: FloatArray | None,
    target: NDArray[Any],
    start: int,
    state: NDArray[Any],
    memory: NDArray[Any] | None,
    reached: NDArray[np.bool_],
) -> CostChain:
    """The chain on the nodes kept; a kept node without a row is a state that the policy reaches and does not know."""
    n_all = len(state)
    for node in np.flatnonzero(reached & (np.diff(row_start) == 0))[:1].tolist():
        raise PolicyError(f"the policy has no action for state {ssp.states[int(state[node])]!r}, which it can reach")
    number = np.where(reached, np.cumsum(reached) - 1, int(reached.sum()))
    count = int(reached.sum())
    edge = reached[row]
    probability = ssp.outcome_probability[outcome[edge]]
    return CostChain(
        row_start=offsets_of(number[row[edge]], count),
        target=np.append(number, count)[target[edge]].astype(np.int32),
        probability=probability if weight is None else probability * weight[edge],
        cost=ssp.outcome_cost[outcome[edge]],
        level=None if ssp.cost_unit is None else ssp.outcome_level[outcome[edge]],
        unit=ssp.cost_unit,
        start=int(number[start]) if start < n_all else count,
        state=state[reached].astype(np.int32),
        memory=None if memory is None else memory[reached],
        ssp=ssp,
        outcome=outcome[edge].astype(np.int64),
    )


def _unroll_markov(ssp: SSP, policy: MarkovPolicy) -> CostChain:
    choices = policy.choices_for(ssp)
    if choices is not None:
        state = np.flatnonzero(choices >= 0)
        choice, weight = choices[state].astype(np.int64), None
    else:
        rows: list[tuple[int, int, float]] = []
        for name, decision in policy.decisions.items():
            index = ssp.state_index(name)
            if not ssp.is_goal[index]:
                rows.extend((index, k, w) for k, w in _checked_decision(ssp, index, decision))
        rows.sort(key=lambda r: r[0])
        state = np.array([r[0] for r in rows], dtype=np.int64)
        choice = np.array([r[1] for r in rows], dtype=np.int64)
        weight = np.array([r[2] for r in rows]) if any(r[2] != 1.0 for r in rows) else None
    outcome, rows_start = members_of(ssp.choice_outcomes, choice)
    position = owners(rows_start)
    # Goals are node n_states here; a goal as start likewise.
    goal_or_state = np.where(ssp.is_goal, ssp.n_states, np.arange(ssp.n_states))
    return _from_rows(
        ssp,
        state[position],
        outcome,
        None if weight is None else weight[position],
        goal_or_state[ssp.outcome_target[outcome]],
        int(goal_or_state[ssp.start_index]),
        np.arange(ssp.n_states),
        None,
    )


def chain_of_choices(ssp: SSP, choices: NDArray[Any]) -> CostChain:
    """The chain of one choice per state on *every* state that has one, reachable or not; a state without (-1) must not be a successor."""
    state = np.flatnonzero(choices >= 0)
    outcome, rows_start = members_of(ssp.choice_outcomes, choices[state])
    position = owners(rows_start)
    row = state[position]
    target = np.where(ssp.is_goal, ssp.n_states, np.arange(ssp.n_states))[ssp.outcome_target[outcome]]
    kept = np.zeros(ssp.n_states, dtype=np.bool_)
    kept[row] = True
    kept[target[target < ssp.n_states]] = True
    return _cut(ssp, offsets_of(row, ssp.n_states), row, outcome, None, target, ssp.n_states, np.arange(ssp.n_states), None, kept)


def _unroll_atoms(ssp: SSP, policy: AtomPolicy) -> CostChain:
    """CreateExtendedMDP: pair (s, i) is node s * N + i; y moves to the atom nearest to y * xi."""
    n_atoms = len(policy.atoms)
    flat_choice = policy.choice.reshape(-1)
    node = np.flatnonzero(flat_choice >= 0)
    outcome, rows_start = members_of(ssp.choice_outcomes, flat_choice[node])
    position = owners(rows_start)
    row = node[position]
    within = outcome - ssp.choice_outcomes[flat_choice[row]]
    factor = policy.xi[policy.xi_offset.reshape(-1)[row] + within]
    atom = nearest_atom(policy.atoms, policy.atoms[row % n_atoms] * factor)
    target = ssp.outcome_target[outcome].astype(np.int64)
    goal = ssp.n_states * n_atoms
    return _from_rows(
        ssp,
        row,
        outcome,
        None,
        np.where(ssp.is_goal[target], goal, target * n_atoms + atom),
        goal if ssp.is_goal[ssp.start_index] else ssp.start_index * n_atoms + policy.start_atom,
        np.repeat(np.arange(ssp.n_states), n_atoms),
        np.tile(np.arange(n_atoms), ssp.n_states),
    )


def successors(ssp: SSP, policy: Policy, state: int, memory: Any) -> Iterator[tuple[int, Any, int, float]]:
    """One step of any policy from a pair: `(next state index, next memory, outcome, probability)` for every outcome."""
    name = ssp.states[state]
    for choice, weight in decide(ssp, policy, state, memory):
        action = ssp.choice_name(choice)
        for outcome in range(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1])):
            target = int(ssp.outcome_target[outcome])
            cost = float(ssp.outcome_cost[outcome])
            after = None if ssp.is_goal[target] else policy.remember(memory, name, action, cost, ssp.states[target])
            yield target, after, outcome, weight * float(ssp.outcome_probability[outcome])


def _unroll_any(ssp: SSP, policy: Policy, max_nodes: int) -> CostChain:
    """Breadth-first over (state, memory), calling the policy's own functions."""
    if ssp.is_goal[ssp.start_index]:
        pairs: dict[tuple[int, Any], int] = {}
    else:
        pairs = {(ssp.start_index, policy.start(ssp.start)): 0}
    row_start, target, probability, outcomes = [0], [], [], []
    queue = list(pairs)
    for state, memory in queue:
        for next_state, after, outcome, p in successors(ssp, policy, state, memory):
            if ssp.is_goal[next_state]:
                target.append(-1)
            else:
                pair = (next_state, after)
                try:
                    if pair not in pairs:
                        pairs[pair] = len(pairs)
                        queue.append(pair)
                except TypeError:
                    raise PolicyError(f"the policy's memory {after!r} cannot be hashed") from None
                target.append(pairs[pair])
            probability.append(p)
            outcomes.append(outcome)
        if len(pairs) > max_nodes:
            raise BudgetExceededError(
                f"the policy reaches more than {max_nodes} pairs of state and memory; does its memory end?", (0.0, float("inf"))
            )
        row_start.append(len(target))
    outcome_array = np.array(outcomes, dtype=np.int64)
    targets = np.array(target, dtype=np.int64)
    if len(pairs) >= np.iinfo(np.int32).max:
        raise ModelError("the chain has more than 2^31 nodes")
    return CostChain(
        row_start=np.array(row_start, dtype=np.int64),
        target=np.where(targets < 0, len(pairs), targets).astype(np.int32),
        probability=np.array(probability, dtype=np.float64),
        cost=ssp.outcome_cost[outcome_array],
        level=None if ssp.cost_unit is None else ssp.outcome_level[outcome_array],
        unit=ssp.cost_unit,
        start=0,
        state=np.array([state for state, _ in pairs], dtype=np.int32),
        memory=tuple(memory for _, memory in pairs),
        ssp=ssp,
        outcome=outcome_array,
    )
