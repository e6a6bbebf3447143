"""Worst runs against the list of all runs, blame against finite differences, in exact fractions;
single runs against the model.
"""

import math
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import ModelError, OptionError
from tailpath.policies.checks import decide
from tailpath.show.followed import Followed
from tests import strategies
from tests.reference import Model, to_ssp
from tests.show.listing import all_runs, excess_of, policies_of_every_kind, var_of

alphas = st.sampled_from([0.75, 0.5, 0.125, 0.01])


def told(run):
    """What a run and a listed run have in common."""
    return tuple(
        (step[0], step[-3], float(step[-2]), step[-1]) for step in getattr(run, "steps", run)
    )


@given(data=st.data(), alpha=alphas, k=st.integers(0, 8))
def test_worst_runs_are_the_most_probable_of_all_runs_beyond_var(data, alpha, k):
    model = data.draw(strategies.acyclic_models())
    policy = data.draw(policies_of_every_kind(model))
    listed = all_runs(model, policy)
    var = var_of(listed, alpha)
    beyond = sorted((run for run in listed if run.cost > var), key=lambda run: -run.probability)
    found = tp.worst_runs(to_ssp(model), policy, alpha, k)
    assert found.var == float(var)
    assert found.chance == pytest.approx(
        float(sum(run.probability for run in beyond)), rel=1e-12, abs=0
    )
    assert found.excess == pytest.approx(float(excess_of(listed, var)), rel=1e-12, abs=1e-300)
    assert len(found) == min(k, len(beyond))
    assert [run.probability for run in found] == pytest.approx(
        [float(run.probability) for run in beyond[:k]], rel=1e-9
    )
    exact = Counter()
    for run in beyond:
        exact[told(run), float(run.probability), float(run.cost)] += 1
    assert not Counter((told(run), run.probability, run.cost) for run in found) - exact


@given(data=st.data(), alpha=alphas)
def test_shares_and_setbacks_split_the_excess_of_all_runs(data, alpha):
    model = data.draw(strategies.acyclic_models())
    policy = data.draw(policies_of_every_kind(model))
    listed = all_runs(model, policy)
    var = var_of(listed, alpha)
    shares, setbacks = {}, {}
    safe = sum(run.probability for run in listed if run.cost <= var)
    for run in listed:
        paid = Fraction(0)
        for place, (state, _, _, action, cost, after) in enumerate(run.steps):
            key = (state, action, after, float(cost))
            shares[key] = shares.get(key, 0) + run.probability * (
                max(paid + cost - var, 0) - max(paid - var, 0)
            )
            if run.cost > var:
                move = excess_after(listed, run.steps[: place + 1], var) - excess_after(
                    listed, run.steps[:place], var
                )
                setbacks[key] = setbacks.get(key, 0) + run.probability * move / safe
            paid += cost
    found = {
        (row.state, row.action, row.next_state, row.cost): row
        for row in tp.worst_runs(to_ssp(model), policy, alpha, 0).blame
    }
    assert {key for key, share in shares.items() if share} <= found.keys()
    for key, row in found.items():
        assert row.share == pytest.approx(float(shares[key]), rel=1e-12, abs=1e-300)
        assert row.setback == pytest.approx(
            float(setbacks[key]), rel=1e-9, abs=1e-12 * float(var + 1)
        )


def excess_after(listed, prefix, var):
    """The expected excess of the runs that begin like this."""
    begun = [run for run in listed if run.steps[: len(prefix)] == prefix]
    return excess_of(begun, var) / sum(run.probability for run in begun)


@given(data=st.data(), alpha=alphas)
def test_slopes_are_finite_differences_of_the_excess(data, alpha):
    model = data.draw(strategies.acyclic_models())
    policy = data.draw(strategies.randomised_policies(model))
    listed = all_runs(model, policy)
    var = var_of(listed, alpha)
    # So small a step that no run crosses VaR; downwards, so that runs which cost exactly VaR stay
    # out of it.
    step = min([run.cost - var for run in listed if run.cost > var], default=Fraction(1)) / (
        2 * len(model.choices) + 2
    )
    for row in tp.worst_runs(to_ssp(model), policy, alpha, 0).blame:
        changed = {
            state: {
                action: [
                    (
                        t,
                        p,
                        c - step
                        if (state, action, t, float(c))
                        == (row.state, row.action, row.next_state, row.cost)
                        else c,
                    )
                    for t, p, c in outcomes
                ]
                for action, outcomes in actions.items()
            }
            for state, actions in model.choices.items()
        }
        lower = excess_of(all_runs(Model(changed, model.start, model.goals), policy), var)
        assert row.slope == pytest.approx(
            float((excess_of(listed, var) - lower) / step), rel=1e-12, abs=0
        )


@given(data=st.data(), alpha=alphas)
def test_worst_runs_of_models_with_circles(data, alpha):
    """Runs that go round are endless in number; the k found must be possible, beyond VaR,
    different, and as probable as any simple search finds.
    """
    model = data.draw(strategies.proper_models(max_states=3, dyadic=True))
    policy = data.draw(strategies.policies(model))
    ssp = to_ssp(model)
    found = tp.worst_runs(ssp, policy, alpha, 4)
    costs = tp.evaluate(ssp, policy, alpha)
    assert found.excess == pytest.approx(
        (costs.cvar(alpha) - costs.var(alpha)) * alpha, rel=1e-9, abs=1e-12 * costs.mean
    )
    assert sum(row.setback for row in found.blame) == pytest.approx(
        found.excess, rel=1e-9, abs=1e-12 * costs.mean
    )
    best = sorted(
        slow_search(
            model,
            policy,
            Fraction(found.var).limit_denominator(10**6),
            least=found[-1].probability if len(found) else 1.0,
        )
    )
    assert [run.probability for run in found] == pytest.approx(best[::-1][: len(found)], rel=1e-9)
    assert len({told(run) for run in found}) == len(found)


def slow_search(model, policy, var, least, most_steps=60):
    """The probabilities of all runs beyond VaR that are at least as probable as `least`, by trying
    everything.
    """
    floor = Fraction(least) * (1 - Fraction(1, 10**9))
    waiting = [(model.start, policy.start(model.start), Fraction(1), Fraction(0), 0)]
    while waiting:
        state, memory, probability, cost, steps = waiting.pop()
        if state in model.goals:
            if cost > var:
                yield float(probability)
            continue
        if steps == most_steps:
            continue
        decision = policy.action(state, memory)
        merged = {}
        for action, weight in (decision if isinstance(decision, dict) else {decision: 1}).items():
            for t, p, c in model.choices[state][action]:
                merged[action, t, c] = merged.get((action, t, c), 0) + p * Fraction(weight)
        for (action, t, c), p in merged.items():
            if probability * p >= floor:
                waiting.append(
                    (
                        t,
                        policy.remember(memory, state, action, float(c), t),
                        probability * p,
                        cost + c,
                        steps + 1,
                    )
                )


TRAP = tp.SSP.from_outcomes(
    [
        ("a", "go", "b", 0.5, 1),
        ("a", "go", "goal", 0.5, 1),
        ("b", "go", "goal", 0.75, 2),
        ("b", "go", "pit", 0.25, 1),
        ("pit", "sit", "pit", 1, 1),
    ],
    "a",
    ["goal"],
)
TRAPPED = tp.MarkovPolicy({"a": "go", "b": "go", "pit": "sit"})


def test_a_run_that_never_arrives_ends_where_the_goal_is_out_of_reach():
    found = tp.worst_runs(TRAP, TRAPPED, 0.1, 3)
    assert (found.var, found.excess, found.blame) == (math.inf, math.inf, ())
    assert found.chance == 0.125
    assert [(run.cost, run.probability, len(run)) for run in found] == [(math.inf, 0.125, 2)]
    finite = tp.worst_runs(TRAP, TRAPPED, 0.5, 3)
    assert finite.var == 1
    assert [(run.cost, run.probability) for run in finite] == [(3, 0.375), (math.inf, 0.125)]


def test_a_run_from_a_dead_end_has_no_steps():
    ssp = tp.SSP.from_outcomes([("d", "stay", "d", 1, 1), ("s", "go", "g", 1, 1)], "d", ["g"])
    found = tp.worst_runs(ssp, tp.MarkovPolicy({"d": "stay", "s": "go"}), 0.1)
    (run,) = found
    assert (run.steps, run.cost, run.probability) == ((), math.inf, 1.0)
    assert "worst run 1: probability 1, never arrives" in str(found)
    assert str(run).splitlines()[0] == "probability 1, never arrives"
    none = tp.worst_runs(ssp, tp.MarkovPolicy({"d": "stay", "s": "go"}), 0.1, k=0)
    assert re.search("expected excess over VaR +inf", str(none))


def test_the_memory_for_runs_is_bounded(monkeypatch):
    ssp = tp.SSP.from_outcomes([("s", "go", "s", 0.5, 1), ("s", "go", "g", 0.5, 1)], "s", ["g"])
    policy = tp.MarkovPolicy({"s": "go"})
    monkeypatch.setattr("tailpath.show.runs.MAX_STORED", 1_000)
    assert len(tp.worst_runs(ssp, policy, 0.5, k=20)) == 20
    with pytest.raises(
        OptionError,
        match=r"the first \d+ runs have more than 1000 steps together; ask for fewer \(k=\)",
    ):
        tp.worst_runs(ssp, policy, 0.5, k=10**7)


def test_a_sure_cost_has_no_worst_runs():
    ssp = tp.SSP.from_outcomes([("a", "go", "goal", 1, 3)], "a", ["goal"])
    found = tp.worst_runs(ssp, tp.MarkovPolicy({"a": "go"}), 0.5, 3)
    assert (list(found), found.excess, found.chance, found.blame) == ([], 0, 0, ())
    assert "no run costs more than VaR: the worst 50 % all cost 3; a larger alpha" in str(found)


def test_a_start_at_the_goal():
    ssp = tp.SSP.from_outcomes([("a", "go", "goal", 1, 3)], "goal", ["goal"])
    policy = tp.MarkovPolicy({"a": "go"})
    assert list(tp.worst_runs(ssp, policy, 0.5, 3)) == []
    assert list(tp.trace(ssp, policy, 0)) == []
    assert tp.trace(ssp, policy, 0).cost == 0


def test_many_equally_probable_runs_do_not_hold_up_the_search():
    ssp = tp.domains.gridworld("14x16")
    found = tp.worst_runs(ssp, tp.solve_expected(ssp).policy, 1e-6, 20)
    assert len(found) == 20
    assert all(run.cost > found.var for run in found)
    assert sorted((run.probability for run in found), reverse=True) == pytest.approx(
        [run.probability for run in found], rel=1e-8
    )


def test_costs_without_a_unit_are_refused_in_one_line():
    ssp = replace(TRAP, outcome_cost=TRAP.outcome_cost**math.pi, exact_unit=None)
    assert ssp.cost_unit is None
    with pytest.raises(ModelError, match="common unit"):
        tp.worst_runs(ssp, TRAPPED, 0.5, 1)


def test_a_tail_too_long_for_a_table_is_told_from_simulated_runs():
    ssp = tp.SSP.from_outcomes(
        [("a", "go", "a", 0.5, 1), ("a", "go", "goal", 0.5, 10**7)], "a", ["goal"]
    )
    with pytest.warns(tp.TailpathWarning, match="simulated runs"):
        found = tp.worst_runs(ssp, tp.MarkovPolicy({"a": "go"}), 0.05, 1)
    assert found.simulated > 0 and len(found) == 0 and found.typical.cost > found.var
    assert found.var == 10**7 + 4 and found.chance == pytest.approx(1 / 32)
    assert found.excess == pytest.approx(1 / 16)  # sum of 2^-k for k > 4


def test_a_simulated_run_is_as_probable_as_its_draws_of_actions():
    rows = [
        (*step, 0.5, cost)
        for action in ("go", "on")
        for step, cost in ((("a", action, "a"), 1), (("a", action, "goal"), 10**7))
    ]
    ssp = tp.SSP.from_outcomes(rows, "a", ["goal"])
    with pytest.warns(tp.TailpathWarning, match="simulated runs"):
        found = tp.worst_runs(ssp, {"a": {"go": 0.25, "on": 0.75}}, 0.05, 1)
    weight = {"go": 0.25, "on": 0.75}
    assert found.typical.probability == pytest.approx(
        math.prod(0.5 * weight[step.action] for step in found.typical)
    )


# ---------------------------------------------------------------------- one run


@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_trace_is_a_run_of_the_model_and_the_policy(data, seed):
    model = data.draw(strategies.acyclic_models())
    policy = data.draw(policies_of_every_kind(model))
    ssp = to_ssp(model)
    run = tp.trace(ssp, policy, seed)
    assert run == tp.trace(ssp, policy, seed)
    exact = {told(listed): listed for listed in all_runs(model, policy)}
    assert run.cost == float(exact[told(run)].cost)
    assert run.probability == pytest.approx(float(exact[told(run)].probability), rel=1e-12)


def test_traces_come_as_often_as_they_are_probable():
    ssp = tp.SSP.from_outcomes(
        [("a", "go", "b", 0.25, 1), ("a", "go", "goal", 0.75, 2), ("b", "go", "goal", 1, 0)],
        "a",
        ["goal"],
    )
    policy = tp.MarkovPolicy({"a": "go", "b": "go"})
    long = sum(len(tp.trace(ssp, policy, seed)) == 2 for seed in range(2000))
    assert abs(long - 500) < 5 * math.sqrt(2000 * 0.25 * 0.75)


def test_a_trace_ends_where_no_policy_arrives():
    runs = [tp.trace(TRAP, TRAPPED, seed) for seed in range(50)]
    assert {run.cost for run in runs} == {1, 3, math.inf}
    assert {run[-1].next_state for run in runs if math.isinf(run.cost)} == {"pit"}


def test_runs_are_plain_data():
    import pickle

    run = tp.trace(TRAP, TRAPPED, 1)
    assert pickle.loads(pickle.dumps(run)) == run
    found = tp.worst_runs(TRAP, TRAPPED, 0.1, 3)
    assert pickle.loads(pickle.dumps(found)) == found
    assert repr(run).startswith("<Trace")


def test_pandas_takes_runs_and_blame():
    pandas = pytest.importorskip("pandas")
    ssp = tp.domains.river(rows=5, columns=4)
    found = tp.worst_runs(ssp, tp.solve_expected(ssp).policy, 0.1, 2)
    assert list(pandas.DataFrame(found[0]).columns) == [
        "state",
        "memory",
        "action",
        "cost",
        "next_state",
    ]
    frame = pandas.DataFrame(found.blame)
    assert frame["share"].sum() == pytest.approx(found.excess)


def wandering(n=30):
    """A walk without drift: its bad runs take thousands of steps, so that none has a probability
    that a double can hold.
    """
    rows = [(i, "go", j, 0.5, 1) for i in range(n) for j in (i + 1, max(i - 1, 0))]
    return tp.SSP.from_outcomes(rows, 0, [n])


def test_runs_too_improbable_to_be_told_are_said_to_be_so_and_one_is_drawn():
    ssp = wandering()
    found = tp.worst_runs(ssp, dict.fromkeys(ssp.states[:-1], "go"), 0.05)
    assert len(found) == 0 and found.chance == pytest.approx(0.05, rel=0.01) and found.var > 1100
    run = found.typical
    assert run.cost == sum(step.cost for step in run) == len(run) > found.var
    assert (
        run[0].state == 0
        and run[-1].next_state == 30
        and all(a.next_state == b.state for a, b in zip(run.steps, run.steps[1:]))
    )
    assert ".typical is one" in repr(found)
    assert str(run).startswith(f"probability less than 1e-300, cost {run.cost:g}\n")
    again = tp.worst_runs(ssp, dict.fromkeys(ssp.states[:-1], "go"), 0.05)
    assert again.typical.steps == run.steps
    assert tp.worst_runs(ssp, dict.fromkeys(ssp.states[:-1], "go"), 0.05, 0).typical is None


def test_a_typical_run_is_drawn_from_the_law_of_the_runs_beyond_var():
    """Three ways to be bad, of 0.1, 0.2 and 0.3: over many seeds each as often as its
    share of 0.6.
    """
    from tailpath.policies.unrolling import unroll
    from tailpath.show.beyond import Beyond
    from tailpath.show.runs import typical_run

    ssp = tp.SSP.from_outcomes(
        [("s", "go", "g", p, c) for p, c in ((0.4, 1), (0.1, 5), (0.2, 6), (0.3, 7))], "s", ["g"]
    )
    beyond = Beyond(unroll(ssp, tp.MarkovPolicy({"s": "go"})), 1)
    drawn = Counter(float(beyond.level[typical_run(beyond, seed)[0]]) for seed in range(3000))
    assert set(drawn) == {5, 6, 7}
    for level, share in ((5, 1 / 6), (6, 2 / 6), (7, 3 / 6)):
        assert drawn[level] / 3000 == pytest.approx(share, abs=0.045)  # five standard deviations


def test_likely_runs_that_are_few_of_all_come_with_a_typical_one():
    """A step back and forth in every cell: the likeliest run stays where it began."""
    n = 12
    rows = [(i, "go", i + 1, 0.4, 1) for i in range(n)]
    rows += [(i, "go", max(i - 1, 0), 0.35, 1) for i in range(n)]
    rows += [(i, "go", i, 0.25, 1) for i in range(n)]
    ssp = tp.SSP.from_outcomes(rows, 0, [n])
    found = tp.worst_runs(ssp, dict.fromkeys(range(n), "go"), 0.05)
    assert len(found) == 5
    assert sum(run.probability for run in found) < 1e-3 * found.chance
    assert found.typical.cost > found.var and found.typical.steps not in [r.steps for r in found]
    text = str(found)
    assert "which all runs beyond VaR have" in text and "a typical run beyond VaR" in text
    assert text.index("a typical run") < text.index("the most probable runs beyond VaR")
    assert "worst run 1" not in text
    table = text[text.index("the most probable runs beyond VaR") :].split("\n\n")[0].splitlines()
    assert len(table) == 3 + len(found)  # a line each
    first = found[0]
    wanted = ["1", f"{first.probability:.6g}", f"{first.cost:g}", str(len(first))]
    assert table[3].split()[:4] == wanted


def test_of_several_runs_the_first_is_told_and_each_has_a_line():
    rows = [(i, "go", i + 1, p, c) for i in range(4) for p, c in ((0.9, 1), (0.1, 7 + i))]
    ssp = tp.SSP.from_outcomes(rows, 0, [4])
    text = str(found := tp.worst_runs(ssp, dict.fromkeys(range(4), "go"), 0.3, 3))
    assert found.typical is None and text.count("paid so far") == 1
    lines = text.splitlines()
    (header,) = (k for k, line in enumerate(lines) if line.endswith("turns bad most"))
    for rank, run in enumerate(found):
        # Each of them is late by one detour; the step with it is where it turned bad.
        (late,) = (step for step in run if step.cost > 1)
        wanted = f"{rank + 1} {run.probability:.6g} {run.cost:g} 4"
        wanted += f" {late.state}, go -> {late.next_state}: {late.cost:g}"
        assert lines[header + 2 + rank].split() == wanted.split()


def test_a_typical_run_that_is_everywhere_once_is_most_often_nowhere():
    rows = [(i, "go", i + 1, 1 / 8, cost) for i in range(12) for cost in range(1, 9)]
    ssp = tp.SSP.from_outcomes(rows, 0, [12])
    text = str(tp.worst_runs(ssp, dict.fromkeys(range(12), "go"), 0.05))
    assert "a typical run beyond VaR" in text and "in 12 steps through 12 states\n" in text
    assert "most often in" not in text


def test_the_same_step_again_and_again_is_one_row():
    rows = [("a", "go", "a", 0.5, 2), ("a", "go", "b", 0.5, 2), ("b", "on", "c", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["c"])
    found = tp.worst_runs(ssp, {"a": "go"}, 0.1, 1)
    assert found.typical is None  # half of the runs beyond VaR are this one
    (run,) = found
    assert run.cost == 11 and len(run) == 6
    assert [row.split() for row in str(run).splitlines()[1:]] == [
        ["state", "action", "cost", "next", "state", "times", "paid", "so", "far"],
        ["-----", "------", "----", "----------", "-----", "-----------"],
        ["a", "go", "2", "a", "4", "8"],
        ["a", "go", "2", "b", "10"],
        ["b", "on", "1", "c", "11"],
    ]


@given(data=st.data())
def test_what_is_taken_at_a_node_is_what_the_policy_says(data):
    """The transitions of a chain know it, and where one of several is drawn the policy is asked."""
    model = data.draw(strategies.acyclic_models())
    ssp, policy = to_ssp(model), data.draw(policies_of_every_kind(model))
    followed = Followed(ssp, policy)
    for node, state in enumerate(followed.chain.state.tolist()):
        said = decide(ssp, followed.policy, state, followed.memories[node])
        assert followed.decision(node) == said
        assert (followed.sole[node] >= 0) == (len(said) == 1)
