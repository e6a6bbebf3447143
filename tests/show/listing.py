"""All runs of a policy on an acyclic model, listed in exact fractions, and policies of every kind
to list them of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

import tailpath as tp
from tests import strategies
from tests.reference import Model, to_ssp


@dataclass(frozen=True)
class Listed:
    """One run: steps `(state, memory, decision, action, cost, next_state)`, its probability and its
    cost.
    """

    steps: tuple[tuple[Any, ...], ...]
    probability: Fraction
    cost: Fraction


def all_runs(model: Model, policy: Any) -> list[Listed]:
    return list(
        _from(model, policy, model.start, policy.start(model.start), (), Fraction(1), Fraction(0))
    )


def _from(
    model: Model,
    policy: Any,
    state: Hashable,
    memory: Any,
    steps: tuple[Any, ...],
    probability: Fraction,
    cost: Fraction,
) -> Iterator[Listed]:
    if state in model.goals:
        yield Listed(steps, probability, cost)
        return
    decision = policy.action(state, memory)
    weights = decision if isinstance(decision, Mapping) else {decision: 1}
    for action, weight in weights.items():
        merged: dict[tuple[Any, Fraction], Fraction] = {}
        for target, p, c in model.choices[state][action]:
            merged[target, c] = merged.get((target, c), Fraction(0)) + p
        for (target, c), p in merged.items():
            after = (
                policy.remember(memory, state, action, float(c), target)
                if target not in model.goals
                else None
            )
            step = (state, memory, decision, action, c, target)
            yield from _from(
                model,
                policy,
                target,
                after,
                (*steps, step),
                probability * p * Fraction(weight),
                cost + c,
            )


@st.composite
def policies_of_every_kind(draw: st.DrawFn, model: Model) -> Any:
    """Markov, randomised, finite memory, history, atoms, budget, and a mixture by one coin."""
    ssp = to_ssp(model)
    kind = draw(st.sampled_from(["own", "history", "atoms", "budget", "mixed"]))
    if kind == "mixed":
        members = tuple(draw(strategies.deterministic_policies(model)) for _ in range(2))
        return tp.MixedPolicy(members, (0.25, 0.75))
    if kind == "own":
        return draw(strategies.policies(model))
    if kind == "history":
        table = {state: sorted(actions) for state, actions in model.choices.items()}
        return tp.HistoryPolicy(
            lambda history: table[history[-1]][len(history) // 3 % len(table[history[-1]])]
        )
    alpha = draw(st.sampled_from([0.5, 0.1, 0.02]))
    if kind == "atoms":
        return tp.solve_cvar_quantile(ssp, tp.log_atoms(alpha / 10, 6)).policy(alpha)
    return tp.solve_cvar_exact(ssp, alpha).policy(alpha)


def var_of(runs: list[Listed], alpha: float) -> Fraction:
    """min { z : P(Z > z) <= alpha }."""
    return min(
        z
        for z in {run.cost for run in runs}
        if sum(run.probability for run in runs if run.cost > z) <= Fraction(alpha)
    )


def excess_of(runs: list[Listed], threshold: Fraction) -> Fraction:
    return sum(
        (run.probability * max(run.cost - threshold, Fraction(0)) for run in runs), Fraction(0)
    )


def cvar_of(costs: list[tuple[Fraction, Fraction]], alpha: float) -> Fraction:
    """Of (cost, probability) pairs."""
    return min(
        z + sum((p * max(c - z, Fraction(0)) for c, p in costs), Fraction(0)) / Fraction(alpha)
        for z, _ in costs
    )


def data_of(text):
    """What the program of a page is given."""
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
        ).group(1)
    )
