"""The readers of policies that need no tailpath, in Python and JavaScript: on runs drawn at random
they do what the policy does, with every kind of file.
"""

import json
import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tailpath as tp
from tailpath.formats.policy_kinds import MEMBERS

EXAMPLES = Path(__file__).parents[1] / "examples"
LEGS = [
    (f"place {k}", way, f"place {k + 1}", p, cost)
    for k in range(4)
    for way, p, cost in [
        ("motorway", 0.8, 1.25),
        ("motorway", 0.2, 3),
        ("road", 0.5, 2),
        ("road", 0.5, 2.1),
    ]
]
ROADS = tp.SSP.from_outcomes(LEGS, "place 0", ["place 4"])
RIVER = tp.domains.river(rows=4, columns=3)


def budget(ssp, alpha=0.3):
    return tp.solve_cvar_exact(ssp, alpha).policy(alpha)


def counting():
    """Remembers how many steps there were, and takes the road at the third."""
    decisions, remember = {}, {}
    for k in range(4):
        decisions[f"place {k}", k] = "road" if k == 2 else "motorway"
        for state, action, after, _, cost in LEGS[4 * k : 4 * k + 4]:
            remember[k, state, action, float(cost), after] = k + 1
    return tp.MemoryPolicy(0, decisions, remember)


POLICIES = {
    "budget steps": (ROADS, budget(ROADS)),
    "budget steps, cells": (RIVER, budget(RIVER)),
    "budget steps, rounded": (ROADS, tp.solve_cvar_exact(ROADS, 0.3, delta=0.5).policy(0.3)),
    "atom": (RIVER, tp.solve_cvar_quantile(RIVER, tp.log_atoms(0.01, 5)).policy(0.1)),
    "atom grids": (
        ROADS,
        tp.solve_cvar_quantile(
            ROADS, lambda state: tp.log_atoms(0.01, 4 if state == ROADS.start else 3)
        ).policy(0.2),
    ),
    "markov": (RIVER, tp.solve_expected(RIVER).policy),
    "memory": (ROADS, counting()),
}


def observed(ssp, policy, seed):
    """A run: what the policy does in each state, what that costs and where it leads."""
    random, runner = np.random.default_rng(seed), policy.start_run(seed=seed)
    state, steps = ssp.start, []
    while state not in ssp.goals and len(steps) < 60:
        action = runner.action(state)
        k = next(
            k
            for k in range(*ssp.state_choices[ssp.state_index(state) :][:2])
            if ssp.choice_name(k) == action
        )
        own = range(*ssp.choice_outcomes[k : k + 2])
        chances = ssp.outcome_probability[own]
        drawn = own[int(random.choice(len(own), p=chances / chances.sum()))]
        cost, after = float(ssp.outcome_cost[drawn]), ssp.states[int(ssp.outcome_target[drawn])]
        runner.observe(cost, after)
        steps.append((state, action, cost, after))
        state = after
    return steps


def document(policy, path):
    tp.write_policy(policy, path)
    return json.loads(path.read_text())


def in_python(policy, steps, seed=None):
    run, found = PLAIN["Run"](policy, seed), []
    for state, _, cost, after in steps:
        found.append(run.action(state))
        run.observe(cost, after)
    return found


PLAIN = runpy.run_path(str(EXAMPLES / "plain_policy_reader.py"))
#: Reads lines of a policy and its steps, and writes what it does in each.
PROGRAM = """
const { Run } = require(process.argv[1]);
for (const line of require("fs").readFileSync(0, "utf8").trim().split("\\n")) {
  const { policy, steps, seeds } = JSON.parse(line);
  console.log(JSON.stringify((seeds || [Math.random()]).map(seed => {
    const run = new Run(policy, () => seed);
    return steps.map(([state, , cost, after]) => {
      const action = run.action(state);
      run.observe(cost, after);
      return action;
    });
  })));
}
"""


def in_javascript(*cases):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js")
    lines = "\n".join(map(json.dumps, cases))
    reader = str(EXAMPLES / "policy_reader.js")
    done = subprocess.run(
        [node, "-e", PROGRAM, reader], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_kind_is_there():
    assert {kind.partition(",")[0] for kind in POLICIES} | {"mixed"} == set(MEMBERS)
    assert (
        "tailpath" not in (EXAMPLES / "plain_policy_reader.py").read_text().partition('"""\n\n')[2]
    )


@pytest.mark.parametrize("kind", POLICIES)
def test_the_reader_does_what_the_policy_does(kind, tmp_path):
    ssp, policy = POLICIES[kind]
    saved, cases = document(policy, tmp_path / "p.json"), []
    assert saved["kind"] == kind.partition(",")[0]
    for seed in range(20):
        steps = observed(ssp, policy, seed)
        assert in_python(saved, steps) == [action for _, action, _, _ in steps]
        cases.append({"policy": saved, "steps": steps})
    for case, (found,) in zip(cases, in_javascript(*cases)):
        assert found == [json.loads(json.dumps(step[1])) for step in case["steps"]]


def test_mixtures_follow_one_policy_to_the_end(tmp_path):
    members = tp.MarkovPolicy({f"place {k}": "road" for k in range(4)}), budget(ROADS)
    saved = document(tp.MixedPolicy(members, [0.3, 0.7]), tmp_path / "p.json")
    steps = observed(ROADS, members[1], 3)
    careful = [action for _, action, _, _ in steps]
    found = [in_python(saved, steps, seed) for seed in range(400)]
    assert all(actions in (careful, ["road"] * 4) for actions in found)
    assert 90 < found.count(["road"] * 4) < 150 and careful != ["road"] * 4
    case = {"policy": saved, "steps": steps, "seeds": [0.29, 0.31]}
    assert in_javascript(case) == [[["road"] * 4, careful]]


def test_a_mixed_decision_is_drawn(tmp_path):
    shares = {"motorway": 0.25, "road": 0.75}
    policy = tp.MarkovPolicy({f"place {k}": shares for k in range(4)})
    saved = document(policy, tmp_path / "p.json")
    steps = [("place 0", None, 2, "place 1")]
    drawn = [in_python(saved, steps, seed)[0] for seed in range(400)]
    assert 70 < drawn.count("motorway") < 130 and set(drawn) == set(shares)
    case = {"policy": saved, "steps": steps, "seeds": [0.24, 0.26]}
    assert in_javascript(case) == [[["motorway"], ["road"]]]


def test_nothing_is_left_to_do_at_the_goal(tmp_path):
    saved = document(budget(ROADS), tmp_path / "p.json")
    assert in_python(saved, [("place 4", None, 0, "place 4")]) == [None]
