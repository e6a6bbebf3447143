"""Random small problems and policies for property tests, as `tests.reference.Model` and the
package's policies.

- `proper_models()`: every policy is proper: each outcome list has a way forward, along a hidden
  order of the states
- `solvable_models()`: some policy surely arrives from the start; others may not; dead ends may be
  around, but can be avoided
- `any_models()`: anything goes: the start itself may be trapped
- `acyclic_models()`: no state is met twice, so that all runs can be listed

All have costs per outcome, costs of zero, parallel outcomes, cycles and rational cost units. With
`dyadic=True` every probability is a multiple of 1/16, hence exact as a float; otherwise also
thirds, sevenths and so on, whose floats sum to 1 only nearly. Policies of `randomised_policies` and
`memory_policies` mix actions with dyadic probabilities given as floats.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tailpath.policies.kinds import MarkovPolicy, MemoryPolicy
from tests.reference import Model, State

UNITS = [
    Fraction(1),
    Fraction(1, 2),
    Fraction(1, 10),
    Fraction(1, 3),
    Fraction(5, 7),
    Fraction(100),
]
GRAIN = 16

alphas = st.one_of(
    st.sampled_from([1.0, 0.5, 0.05, 1e-3, 1e-9]),
    st.floats(min_value=1e-6, max_value=1.0, exclude_min=True),
)


@st.composite
def proper_models(
    draw: st.DrawFn, max_states: int = 5, dyadic: bool = False, zero_costs: bool = True
) -> Model:
    names = _names(draw, max_states)
    least = 0 if zero_costs else 1
    choices = {}
    for i, state in enumerate(names):
        forward = [*names[i + 1 :], *_goals(names)]
        choices[state] = _choices(draw, forward, [*names, *_goals(names)], least, dyadic)
    return _finished(draw, choices, draw(st.sampled_from(UNITS)), names[0], _goals(names))


@st.composite
def solvable_models(draw: st.DrawFn, max_states: int = 5, dyadic: bool = False) -> Model:
    names = _names(draw, max_states)
    goals = _goals(names)
    traps = ["t0", "t1"][: draw(st.integers(0, 2))]
    choices = {}
    for i, state in enumerate(names):
        choices[state] = _choices(draw, [*names[i + 1 :], *goals], [*names, *goals], 0, dyadic)
        # Further actions need no way forward, and may end in a trap.
        extra = _choices(
            draw, [*names, *goals, *traps], [*names, *goals, *traps], 0, dyadic, least_actions=0
        )
        choices[state].update({f"x{k}": outcomes for k, outcomes in enumerate(extra.values())})
    for trap in traps:
        choices[trap] = _choices(draw, traps, traps, 0, dyadic)
    return _finished(draw, choices, draw(st.sampled_from(UNITS)), names[0], goals)


@st.composite
def any_models(draw: st.DrawFn, max_states: int = 5, dyadic: bool = False) -> Model:
    names = _names(draw, max_states)
    everywhere = [*names, *_goals(names)]
    choices = {state: _choices(draw, everywhere, everywhere, 0, dyadic) for state in names}
    return _finished(
        draw, choices, draw(st.sampled_from(UNITS)), draw(st.sampled_from(names)), _goals(names)
    )


@st.composite
def acyclic_models(draw: st.DrawFn, max_states: int = 4, dyadic: bool = True) -> Model:
    names = _names(draw, max_states)
    goals = _goals(names)
    choices = {}
    for i, state in enumerate(names):
        forward = [*names[i + 1 :], *goals]
        choices[state] = _choices(draw, forward, forward, 0, dyadic)
    return _finished(draw, choices, draw(st.sampled_from(UNITS)), names[0], goals)


# ---------------------------------------------------------------------- policies


@st.composite
def deterministic_policies(draw: st.DrawFn, model: Model) -> MarkovPolicy:
    return MarkovPolicy(
        {state: draw(st.sampled_from(sorted(actions))) for state, actions in model.choices.items()}
    )


@st.composite
def randomised_policies(draw: st.DrawFn, model: Model) -> MarkovPolicy:
    return MarkovPolicy(
        {state: _decision(draw, sorted(actions)) for state, actions in model.choices.items()}
    )


@st.composite
def memory_policies(draw: st.DrawFn, model: Model, max_memory: int = 3) -> MemoryPolicy:
    """A finite-memory controller made of tables, which may look at the cost paid."""
    memories = range(draw(st.integers(1, max_memory)))
    action = {
        (state, m): _decision(draw, sorted(actions))
        for state, actions in model.choices.items()
        for m in memories
    }
    steps = {(s, a, float(c), t) for s, a, t, _, c in model.rows()}
    remember = {
        (m, *step): draw(st.sampled_from(memories))
        for step in sorted(steps, key=repr)
        for m in memories
    }
    return MemoryPolicy(0, action, remember)


def policies(model: Model) -> st.SearchStrategy[Any]:
    return st.one_of(
        deterministic_policies(model), randomised_policies(model), memory_policies(model)
    )


# ---------------------------------------------------------------------- parts


def _names(draw: st.DrawFn, max_states: int) -> list[State]:
    return [f"s{i}" for i in range(draw(st.integers(1, max_states)))]


def _goals(names: list[State]) -> list[State]:
    return ["g0", "g1"] if len(names) % 2 else ["g0"]


def _choices(
    draw: st.DrawFn,
    forward: list[State],
    everywhere: list[State],
    least: int,
    dyadic: bool,
    least_actions: int = 1,
) -> dict[str, list[tuple[State, Fraction, int]]]:
    """Up to three actions with up to four outcomes; the first of each goes forward. Costs are whole
    numbers of a unit chosen later.
    """
    choices = {}
    for k in range(draw(st.integers(least_actions, 3))):
        n = draw(st.integers(1, 4))
        targets = [
            draw(st.sampled_from(forward)),
            *(draw(st.sampled_from(everywhere)) for _ in range(n - 1)),
        ]
        costs = draw(st.lists(st.integers(least, 5), min_size=n, max_size=n))
        choices[f"a{k}"] = list(zip(targets, _chances(draw, n, dyadic), costs, strict=True))
    return choices


def _chances(draw: st.DrawFn, n: int, dyadic: bool) -> list[Fraction]:
    """Positive probabilities that sum to exactly 1."""
    if dyadic or draw(st.booleans()):
        cuts = sorted(
            draw(st.lists(st.integers(1, GRAIN - 1), min_size=n - 1, max_size=n - 1, unique=True))
        )
        return [
            Fraction(high - low, GRAIN)
            for low, high in zip([0, *cuts], [*cuts, GRAIN], strict=True)
        ]
    weights = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    return [Fraction(weight, sum(weights)) for weight in weights]


def _finished(
    draw: st.DrawFn,
    choices: dict[State, dict[str, list[tuple[State, Fraction, int]]]],
    unit: Fraction,
    start: State,
    goals: list[State],
) -> Model:
    """Name the costs; half the time make one cost of the whole model large, so that levels lie far
    apart.
    """
    factor = draw(st.sampled_from([1, 1, 7]))
    return Model(
        {
            state: {
                action: [(t, p, c * unit * (factor if c == 5 else 1)) for t, p, c in outcomes]
                for action, outcomes in actions.items()
            }
            for state, actions in choices.items()
        },
        start,
        frozenset(goals),
    )


def _decision(draw: st.DrawFn, actions: list[str]) -> Any:
    """One action, or a mixture of two with dyadic probabilities."""
    if len(actions) == 1 or draw(st.booleans()):
        return draw(st.sampled_from(actions))
    first, second = draw(st.lists(st.sampled_from(actions), min_size=2, max_size=2, unique=True))
    share = draw(st.integers(1, GRAIN - 1)) / GRAIN
    return {first: share, second: 1 - share}


def random_rows(draw: random.Random) -> tuple[Any, Any, Any]:
    """A graph of any kind with weights on its edges; node n is outside, and a few nodes may never
    get there.
    """
    n = draw.randint(1, 12)
    rows = [[draw.randint(0, n) for _ in range(draw.randint(1, 4))] for _ in range(n)]
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    target = np.array([to for row in rows for to in row], dtype=np.int32)
    return start, target, np.array([draw.random() for _ in target])
