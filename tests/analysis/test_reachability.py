"""Graph facts against brute force on random models, plain and compiled alike."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tailpath as tp
from tailpath.analysis import reachability
from tailpath.graph import Transitions
from tailpath.kernels.jit import interpreter
from tests import reference, strategies


@pytest.fixture(params=["plain", "compiled"])
def engine(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(interpreter, "compiles", request.param == "compiled")
    return str(request.param)


@settings(max_examples=100, deadline=None)
@given(model=strategies.any_models())
def test_sure_states_and_dead_ends(model: reference.Model) -> None:
    exact = reference.expected_optimum(model)
    ssp = reference.to_ssp(model)
    sure, safe = reachability.almost_sure_states(ssp)
    assert {ssp.states[s] for s in np.flatnonzero(sure)} == {
        s for s in ssp.states if exact[s] < math.inf
    }
    for k in range(ssp.n_choices):
        targets = ssp.outcome_target[ssp.choice_outcomes[k] : ssp.choice_outcomes[k + 1]]
        assert safe[k] == (sure[ssp.choice_state[k]] and all(sure[targets]))
    everything = {s: list(actions) for s, actions in model.choices.items()}
    reaching = set(reference._step_towards_goal(model, everything)) | model.goals
    assert {ssp.states[s] for s in np.flatnonzero(reachability.dead_ends(ssp))} == set(
        ssp.states
    ) - reaching


@settings(max_examples=60, deadline=None)
@given(model=strategies.any_models(max_states=3))
def test_every_policy_is_proper(model: reference.Model) -> None:
    """Against all deterministic policies: a state is missed by one of them exactly if some policy
    avoids the goals.
    """
    ssp = reference.to_ssp(model)
    states = list(model.choices)
    proper = True
    for actions in itertools.product(*(list(model.choices[s]) for s in states)):
        policy = tp.MarkovPolicy(dict(zip(states, actions, strict=True)))
        for start in states:
            proper &= (
                reference.unreached(reference.Model(model.choices, start, model.goals), policy) == 0
            )
    assert reachability.every_policy_is_proper(ssp) == proper


def test_components_of_a_known_graph(engine: str) -> None:
    # 0 -> 1 -> 2 -> 0 is a cycle that leads to 3; 3 loops on itself and leads outside.
    row_start, target = np.array([0, 1, 2, 4, 6]), np.array([1, 2, 0, 3, 3, 9], dtype=np.int32)
    none = np.zeros(len(target))
    component, count = Transitions(row_start, target, none, none, None).components()
    assert count == 2
    assert component.tolist() == [1, 1, 1, 0]


def test_free_components_are_closed_and_free(engine: str) -> None:
    rows = [
        ("a", "f", "b", 1, 0),
        ("b", "f", "a", 0.5, 0),
        ("b", "f", "b", 0.5, 0),
        ("b", "out", "c", 1, 0),
        ("c", "f", "c", 0.5, 0),
        ("c", "f", "g", 0.5, 0),
        ("d", "f", "d", 1, 0),
        ("d", "out", "a", 1, 2),
        ("e", "f", "e", 1, 1),
        ("e", "out", "g", 1, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    free = reachability.zero_cost_components(ssp, np.ones(ssp.n_choices, dtype=np.bool_))
    component = dict(zip(ssp.states, free.tolist(), strict=True))
    assert component["a"] == component["b"] >= 0
    assert component["d"] >= 0
    assert component["d"] != component["a"]
    # c leaks to the goal, e pays, g is a goal.
    assert (component["c"], component["e"], component["g"]) == (-1, -1, -1)


def test_plain_and_compiled_agree(engine: str) -> None:
    ssp = tp.domains.river(rows=10, columns=4)
    assert reachability.every_policy_is_proper(ssp) is False
    assert not reachability.dead_ends(ssp).any()
    sure, safe = reachability.almost_sure_states(ssp)
    assert sure.all()
    assert safe.all()
    # The waterfall's far side and the like: everything but what no policy visits.
    assert reachability.reachable_states(ssp)[ssp.start_index]
