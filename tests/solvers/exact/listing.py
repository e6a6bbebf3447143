"""Models with few enough policies to list them all, and what each of these costs."""

from __future__ import annotations

import itertools
from fractions import Fraction

from hypothesis import strategies as st

from tests.reference import Model, State

ZERO = Fraction(0)


@st.composite
def acyclic_models(draw: st.DrawFn) -> Model:
    """Three layers of two states, two actions, two outcomes each: few enough policies to try them
    all.
    """
    layers = [["s0"], ["s1", "t1"], ["s2", "t2"], ["g"]]
    chances = st.sampled_from([Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(3, 8)])
    costs = st.integers(0, 4).map(Fraction)
    choices: dict[State, dict[str, list[tuple[State, Fraction, Fraction]]]] = {}
    for here, there in itertools.pairwise(layers):
        for state in here:
            choices[state] = {}
            for action in "ab":
                p = draw(chances)
                choices[state][action] = [
                    (draw(st.sampled_from(there)), q, draw(costs)) for q in (p, 1 - p)
                ]
    return Model(choices, "s0", frozenset("g"))


def all_distributions(model: Model, state: State) -> set[frozenset[tuple[Fraction, Fraction]]]:
    """The distribution of the total cost of every deterministic history-dependent policy."""
    if state in model.goals:
        return {frozenset([(ZERO, Fraction(1))])}
    found = set()
    for outcomes in model.choices[state].values():
        for ways in itertools.product(*(all_distributions(model, t) for t, _, _ in outcomes)):
            total: dict[Fraction, Fraction] = {}
            for (_, p, c), way in zip(outcomes, ways, strict=True):
                for z, q in way:
                    total[z + c] = total.get(z + c, ZERO) + p * q
            found.add(frozenset(total.items()))
    return found


def cvar_by_sorting(
    distribution: frozenset[tuple[Fraction, Fraction]], alpha: Fraction
) -> Fraction:
    left, total = alpha, ZERO
    for z, p in sorted(distribution, reverse=True):
        total += z * min(p, left)
        left -= min(p, left)
    return total / alpha
