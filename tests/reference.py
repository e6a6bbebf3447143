"""The same questions answered slowly, in exact rational arithmetic, by code that shares nothing
with the package.

A `Model` is plain Python: for each state that is no goal, for each action, a list of outcomes
`(next_state, probability, cost)`, all numbers `Fraction`. Policies are the package's own memory
machines (`start`, `action`, `remember` over names), since any object with these three functions is
one; costs reach `remember` as floats, as they do in the package.

Everything here is written to be obviously right. Sizes of a handful of states are meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tailpath.model.ssp import SSP

State = Hashable
Action = Hashable
Outcome = tuple[State, Fraction, Fraction]
Extended = Fraction | float  # a Fraction, or math.inf
ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Model:
    choices: Mapping[State, Mapping[Action, Sequence[Outcome]]]
    start: State
    goals: frozenset[State]

    def rows(self) -> list[tuple[State, Action, State, Fraction, Fraction]]:
        """As `SSP.from_outcomes` takes them."""
        return [
            (s, a, t, p, c)
            for s, actions in self.choices.items()
            for a, outcomes in actions.items()
            for t, p, c in outcomes
        ]


def to_ssp(model: Model) -> SSP:
    return SSP.from_outcomes(model.rows(), model.start, model.goals)


def from_ssp(ssp: SSP) -> Model:
    """The exact values of the model's numbers: costs as multiples of the cost unit, probabilities
    as the binary fractions they are.

    Floats such as 1/3 sum to 1 only nearly; such rows are scaled to sum to 1, and are then off by
    about 1e-16. Dyadic rows stay exact.
    """
    choices: dict[State, dict[Action, list[Outcome]]] = {}
    for s, state in enumerate(ssp.states):
        for k in range(ssp.state_choices[s], ssp.state_choices[s + 1]):
            span = range(ssp.choice_outcomes[k], ssp.choice_outcomes[k + 1])
            chance = [Fraction(float(ssp.outcome_probability[o])) for o in span]
            choices.setdefault(state, {})[ssp.choice_name(k)] = [
                (
                    ssp.states[ssp.outcome_target[o]],
                    p / sum(chance),
                    int(ssp.outcome_level[o]) * ssp.cost_unit,
                )
                for o, p in zip(span, chance, strict=True)
            ]
    return Model(choices, ssp.start, frozenset(ssp.goals))


# ---------------------------------------------------------------------- linear equations


def solve(
    unknowns: Sequence[Any], equation: Callable[[Any], tuple[Mapping[Any, Fraction], Fraction]]
) -> dict[Any, Fraction]:
    """Solve x[u] = sum of factor[v] * x[v] + constant, for all unknowns u, with `equation(u) =
    (factor, constant)`. Gauss and Jordan.
    """
    position = {u: i for i, u in enumerate(unknowns)}
    n = len(unknowns)
    table = [[ZERO] * (n + 1) for _ in range(n)]
    for i, u in enumerate(unknowns):
        factor, constant = equation(u)
        table[i][i] += 1
        for v, f in factor.items():
            table[i][position[v]] -= f
        table[i][n] = constant
    for i in range(n):
        pivot = next(r for r in range(i, n) if table[r][i] != 0)
        table[i], table[pivot] = table[pivot], table[i]
        lead = table[i][i]
        own = [(column, entry / lead) for column, entry in enumerate(table[i]) if entry]
        for column, entry in own:
            table[i][column] = entry
        for r in range(n):
            factor = table[r][i]
            if r != i and factor:
                for column, entry in own:
                    table[r][column] -= factor * entry
    return {u: table[i][n] for u, i in position.items()}


# ---------------------------------------------------------------------- the best expected cost


def expected_optimum(model: Model) -> dict[State, Extended]:
    """The least expected cost of reaching a goal from each state, over all policies that surely do;
    infinite where there is none.

    Policy iteration from a proper policy, changing an action only for a strict gain: then every
    policy met is proper, also with outcomes that cost nothing, and the last one is no worse than
    any proper policy.
    """
    keep = sure_choices(model)
    policy = {s: _step_towards_goal(model, keep)[s] for s in keep}
    while True:
        value = _value_of(model, policy)
        changed = False
        for s in keep:
            gain = {
                a: sum((p * (c + value[t]) for t, p, c in model.choices[s][a]), ZERO)
                for a in keep[s]
            }
            best = min(gain, key=lambda a: gain[a])
            if gain[best] < value[s]:
                policy[s], changed = best, True
        if not changed:
            states = {*model.choices, *model.goals, *(t for _, _, t, _, _ in model.rows())}
            return {s: value.get(s, math.inf) for s in states}


def sure_choices(model: Model) -> dict[State, list[Action]]:
    """The states (goals apart) from which some policy surely reaches a goal, with the actions that
    keep it so.
    """
    keep = {s: list(actions) for s, actions in model.choices.items() if s not in model.goals}
    while True:
        # Drop states that cannot reach a goal at all by the actions left, then actions that may
        # lead to a dropped state; repeat.
        reaching = set(_step_towards_goal(model, keep))
        inside = reaching | model.goals
        smaller = {
            s: [a for a in keep[s] if all(t in inside for t, _, _ in model.choices[s][a])]
            for s in keep
            if s in reaching
        }
        smaller = {s: actions for s, actions in smaller.items() if actions}
        if smaller == keep:
            return keep
        keep = smaller


def _step_towards_goal(model: Model, keep: Mapping[State, Sequence[Action]]) -> dict[State, Action]:
    """For each state that can reach a goal by the actions kept, an action that may
    bring it closer.
    """
    closer: dict[State, Action] = {}
    reached = set(model.goals)
    while True:
        layer = {
            s: a
            for s, actions in keep.items()
            if s not in reached
            for a in actions
            if any(t in reached for t, _, _ in model.choices[s][a])
        }
        if not layer:
            return closer
        closer.update(layer)
        reached |= set(layer)


def _value_of(model: Model, policy: Mapping[State, Action]) -> dict[State, Fraction]:
    """The expected cost of a proper policy that never leaves its own states."""

    def equation(s: State) -> tuple[dict[State, Fraction], Fraction]:
        factor: dict[State, Fraction] = {}
        for t, p, _ in model.choices[s][policy[s]]:
            if t not in model.goals:
                factor[t] = factor.get(t, ZERO) + p
        return factor, sum((p * c for _, p, c in model.choices[s][policy[s]]), ZERO)

    return {**solve(list(policy), equation), **dict.fromkeys(model.goals, ZERO)}


# ---------------------------------------------------------------------- a policy's own chain


@dataclass(frozen=True)
class Chain:
    """Model x policy over the reachable pairs (state, memory). Pairs at a goal have no outcomes."""

    start: tuple[State, Any]
    outcomes: Mapping[tuple[State, Any], Sequence[tuple[tuple[State, Any], Fraction, Fraction]]]
    goals: frozenset[tuple[State, Any]]

    def reaching(self) -> set[tuple[State, Any]]:
        """The pairs from which a goal can be reached."""
        found = set(self.goals)
        while True:
            more = {
                x
                for x, outcomes in self.outcomes.items()
                if x not in found and any(y in found for y, _, _ in outcomes)
            }
            if not more:
                return found
            found |= more


def unroll(model: Model, policy: Any, most_pairs: int = 2_000) -> Chain:
    start = (model.start, policy.start(model.start))
    outcomes: dict[tuple[State, Any], list[tuple[tuple[State, Any], Fraction, Fraction]]] = {}
    goals, waiting = set(), [start]
    while waiting:
        pair = waiting.pop()
        if pair in outcomes:
            continue
        if len(outcomes) > most_pairs:
            raise ValueError("the policy remembers too much to be unrolled")
        state, memory = pair
        outcomes[pair] = []
        if state in model.goals:
            goals.add(pair)
            continue
        decision = policy.action(state, memory)
        weights = decision if isinstance(decision, Mapping) else {decision: 1}
        for action, weight in weights.items():
            for target, p, cost in model.choices[state][action]:
                after = (target, policy.remember(memory, state, action, float(cost), target))
                if weight:
                    outcomes[pair].append((after, p * Fraction(weight), cost))
                    waiting.append(after)
    return Chain(start, outcomes, frozenset(goals))


def arrival_probability(chain: Chain) -> dict[Any, Fraction]:
    """The probability of ever reaching a goal, from each pair."""
    inner = [x for x in chain.reaching() if x not in chain.goals]

    def equation(x: Any) -> tuple[dict[Any, Fraction], Fraction]:
        factor: dict[Any, Fraction] = {}
        for y, p, _ in chain.outcomes[x]:
            if y in inner_set:
                factor[y] = factor.get(y, ZERO) + p
        return factor, sum((p for y, p, _ in chain.outcomes[x] if y in chain.goals), ZERO)

    inner_set = set(inner)
    found = solve(inner, equation)
    return {x: ONE if x in chain.goals else found.get(x, ZERO) for x in chain.outcomes}


def unreached(model: Model, policy: Any) -> Fraction:
    """The probability of never arriving."""
    chain = unroll(model, policy)
    return 1 - arrival_probability(chain)[chain.start]


def chain_means(chain: Chain) -> dict[Any, Extended]:
    """The expected cost to the goal from each pair; infinite where arrival is not sure."""
    sure = [x for x, p in arrival_probability(chain).items() if p == 1 and x not in chain.goals]

    def equation(x: Any) -> tuple[dict[Any, Fraction], Fraction]:
        factor: dict[Any, Fraction] = {}
        for y, p, _ in chain.outcomes[x]:
            if y not in chain.goals:
                factor[y] = factor.get(y, ZERO) + p
        return factor, sum((p * c for _, p, c in chain.outcomes[x]), ZERO)

    found = solve(sure, equation)
    return {x: ZERO if x in chain.goals else found.get(x, math.inf) for x in chain.outcomes}


def expected_cost(model: Model, policy: Any) -> Extended:
    """The expected total cost of a policy, infinite if it may never arrive."""
    chain = unroll(model, policy)
    return chain_means(chain)[chain.start]


# ---------------------------------------------------------------------- the whole distribution


@dataclass(frozen=True)
class Distribution:
    """The total cost Z of a policy: exact up to some cost, and exact in what is left.

    `head` lists (cost, probability) in rising order, and nothing below its last cost is missing.
    `open` is the mass still on its way: (cost so far, expected cost to come, probability); its cost
    so far exceeds the last cost of the head. `unreached` never arrives.
    """

    head: tuple[tuple[Fraction, Fraction], ...]
    open: tuple[tuple[Fraction, Extended, Fraction], ...]
    mean: Extended
    unreached: Fraction

    def tail(self, x: Any) -> Fraction:
        """P(Z > x) for x up to the last cost of the head."""
        return 1 - sum((p for z, p in self.head if z <= x), ZERO)

    def cdf(self, x: Any) -> Fraction:
        return 1 - self.tail(x)

    def var(self, alpha: Any) -> Extended:
        """min { z : P(Z > z) <= alpha } over possible costs z."""
        alpha = Fraction(alpha)
        if alpha < self.unreached or self.unreached == 1:
            return math.inf
        tail = ONE
        for z, p in self.head:
            tail -= p
            if tail <= alpha:
                return z
        raise ValueError("the head is too short for this alpha")

    def cvar(self, alpha: Any) -> Extended:
        if self.unreached:
            return math.inf
        x = self.var(alpha)
        above = [(z - x) * p for z, p in self.head if z > x] + [
            (z + rest - x) * p for z, rest, p in self.open
        ]
        return x + sum(above, ZERO) / Fraction(alpha)


def cost_distribution(
    model: Model, policy: Any, until_tail: Any, most_levels: int = 20_000
) -> Distribution:
    """The distribution of the total cost, expanded cost by cost until P(Z > cost) <= until_tail.

    Where a mass of `until_tail` never arrives and costs have no end, no finite head is enough: that
    ends in an error.
    """
    until_tail = Fraction(until_tail)
    chain = unroll(model, policy)
    means = chain_means(chain)
    arriving = arrival_probability(chain)
    lost = 1 - arriving[chain.start]
    if until_tail < lost:
        raise ValueError(f"a mass of {lost} never arrives; the tail cannot fall to {until_tail}")
    if lost == 1:
        return Distribution((), (), math.inf, ONE)
    waiting: dict[Fraction, dict[Any, Fraction]] = {ZERO: {chain.start: ONE}}
    head: list[tuple[Fraction, Fraction]] = []
    tail, levels = ONE, 0
    while tail > until_tail or not head:
        level, levels = min(waiting), levels + 1
        if levels > most_levels:
            raise ValueError(f"after {most_levels} different costs the tail is still {float(tail)}")
        visits = _visits_at_level(
            chain, {x: p for x, p in waiting.pop(level).items() if arriving[x] > 0}, arriving
        )
        arrived = sum((p for x, p in visits.items() if x in chain.goals), ZERO)
        if arrived:
            head.append((level, arrived))
            tail -= arrived
        for x, mass in visits.items():
            for y, p, cost in chain.outcomes[x]:
                if cost:
                    later = waiting.setdefault(level + cost, {})
                    later[y] = later.get(y, ZERO) + mass * p
    left = [
        (cost, means[x], p) for cost, masses in sorted(waiting.items()) for x, p in masses.items()
    ]
    return Distribution(tuple(head), tuple(left), means[chain.start], lost)


def _visits_at_level(
    chain: Chain, mass: Mapping[Any, Fraction], arriving: Mapping[Any, Fraction]
) -> dict[Any, Fraction]:
    """The expected number of visits to each pair while the cost stays the same: outcomes that cost
    nothing are followed to their end.

    Pairs that never arrive are left out; without them a cycle of free outcomes always leaks, and
    the equations have one solution.
    """
    pairs, waiting = [], list(mass)
    while waiting:
        x = waiting.pop()
        if x not in pairs:
            pairs.append(x)
            waiting += [y for y, _, cost in chain.outcomes[x] if cost == 0 and arriving[y] > 0]
    into: dict[Any, dict[Any, Fraction]] = {x: {} for x in pairs}
    for x in pairs:
        for y, p, cost in chain.outcomes[x]:
            if cost == 0 and y in into:
                into[y][x] = into[y].get(x, ZERO) + p
    if not any(into.values()):
        return dict(mass)
    return solve(pairs, lambda y: (into[y], mass.get(y, ZERO)))
