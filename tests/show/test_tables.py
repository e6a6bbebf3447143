"""The table of decisions and the partings of two policies, against the list of all runs."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.show.decisions import decision_in_words, decision_table, memory_in_words
from tests import reference, strategies
from tests.reference import Model, to_ssp
from tests.show.listing import all_runs, cvar_of, policies_of_every_kind

ALPHA = 0.25


def is_in(row, policy, step):
    """Whether a step of a listed run is one that a row of the table tells about."""
    state, memory, decision, *_ = step
    if state != row.state or decision_in_words(decision) != decision_in_words(row.action):
        return False
    if not isinstance(policy, tp.BudgetPolicy):
        return (
            memory_in_words(policy, memory, 0) == row.memory
        )  # where no cost is negative the state does not matter
    if row.memory == "budget spent":
        return memory == 0
    bounds = [float(word) for word in row.memory.removesuffix(" left").split(" to ")]
    return bounds[0] * (1 - 1e-5) <= float(memory * policy.unit) <= bounds[-1] * (1 + 1e-5)


def to_go(runs, happens):
    """(cost to go, probability) of runs, from every time on that something happens."""
    found = []
    for run in runs:
        for place, step in enumerate(run.steps):
            if happens(step):
                found.append(
                    (sum((later[4] for later in run.steps[place:]), Fraction(0)), run.probability)
                )
    return found


def check_to_go(costs, probability, mean, cvar):
    total = sum(p for _, p in costs)
    assert probability == pytest.approx(float(total), rel=1e-9)
    given_there = [(c, p / total) for c, p in costs]
    assert mean == pytest.approx(float(sum(c * p for c, p in given_there)), rel=1e-9)
    assert cvar == pytest.approx(float(cvar_of(given_there, ALPHA)), rel=1e-9)


@given(data=st.data())
def test_tables_of_every_kind_of_policy(data):
    model = data.draw(strategies.acyclic_models())
    policy = data.draw(policies_of_every_kind(model))
    runs = all_runs(model, policy)
    table = policy.table(to_ssp(model), ALPHA)
    for row in table:
        check_to_go(to_go(runs, lambda step, row=row: is_in(row, policy, step)), *row[3:6])
    for run in runs:
        for step in run.steps:
            assert sum(is_in(row, policy, step) for row in table) == 1
    assert table == sorted(table, key=lambda row: (-round(row.visits, 9), -row.mean))
    few = policy.table(to_ssp(model), ALPHA, most=2)
    assert len(few) == min(2, len(table))
    for row in few:
        assert any(same_row(row, other) for other in table)


def same_row(row, other):
    return row[:3] == other[:3] and row[3:6] == pytest.approx(other[3:6], rel=1e-12)


@given(data=st.data())
def test_tables_of_models_with_circles(data):
    model = data.draw(strategies.any_models(max_states=4))
    policy = data.draw(strategies.policies(model))
    chain = reference.unroll(model, policy)
    means = reference.chain_means(chain)
    rows = {(row.state, row.memory): row for row in decision_table(to_ssp(model), policy, ALPHA)}
    ssp = to_ssp(model)
    told = {
        (state, memory_in_words(policy, memory, ssp.state_index(state))): (state, memory)
        for state, memory in chain.outcomes
        if state not in model.goals
    }
    assert rows.keys() == told.keys()
    for key, pair in told.items():
        assert rows[key].visits == pytest.approx(float(visits(chain, pair)), rel=1e-9)
        assert rows[key].mean == pytest.approx(float(means[pair]), rel=1e-9)
        if math.isinf(means[pair]):
            assert rows[key].cvar == math.inf
        elif isinstance(policy, tp.MarkovPolicy):
            from_there = reference.cost_distribution(
                Model(model.choices, pair[0], model.goals), policy, ALPHA
            )
            assert rows[key].cvar == pytest.approx(float(from_there.cvar(ALPHA)), rel=1e-9)


def visits(chain, wanted):
    """The expected visits of a pair: the probability of getting there, and of getting back again
    and again; where runs surely get back, once.
    """
    back = sum(p * hitting(chain, y, wanted) for y, p, _ in chain.outcomes[wanted])
    return hitting(chain, chain.start, wanted) / (1 - back if back < 1 else 1)


def hitting(chain, start, wanted):
    """The probability of ever being at a pair: equations over those that can get there."""
    if start == wanted:
        return 1
    reaching = {wanted}
    while True:
        more = {
            x
            for x, outcomes in chain.outcomes.items()
            if x not in reaching and any(y in reaching for y, _, _ in outcomes)
        }
        if not more:
            break
        reaching |= more
    inner = [x for x in reaching if x != wanted]

    def equation(x):
        factor = {}
        for y, p, _ in chain.outcomes[x]:
            if y in reaching and y != wanted:
                factor[y] = factor.get(y, 0) + p
        return factor, sum((p for y, p, _ in chain.outcomes[x] if y == wanted), Fraction(0))

    return reference.solve(inner, equation).get(start, 0)


def test_a_table_of_the_river():
    ssp = tp.domains.river(rows=5, columns=4)
    best = tp.solve_cvar_exact(ssp, 0.01).policy(0.01)
    first = best.table(ssp, 0.01)[0]
    assert (first.state, first.visits) == ((3, 0), 1)
    assert first.cvar == pytest.approx(tp.solve_cvar_exact(ssp, 0.01).cvar(0.01))


def test_pandas_takes_a_table():
    pandas = pytest.importorskip("pandas")
    ssp = tp.domains.river(rows=4, columns=3)
    frame = pandas.DataFrame(tp.solve_expected(ssp).policy.table(ssp))
    columns = ["state", "memory", "action", "visits", "mean", "cvar", "next_states"]
    assert list(frame.columns) == columns


def test_a_start_at_the_goal_has_an_empty_table():
    ssp = tp.SSP.from_outcomes([("a", "go", "goal", 1, 3)], "goal", ["goal"])
    assert tp.MarkovPolicy({"a": "go"}).table(ssp) == []


# ---------------------------------------------------------------------- two policies


@given(data=st.data())
def test_partings_of_two_policies(data):
    model = data.draw(strategies.acyclic_models())
    first, second = (
        data.draw(policies_of_every_kind(model)),
        data.draw(policies_of_every_kind(model)),
    )
    found = tp.differences(to_ssp(model), first, second, ALPHA)
    wanted = {}
    for run in all_runs(model, first):
        memory = second.start(model.start)
        for place, (state, _, decision, action, cost, after) in enumerate(run.steps):
            other = second.action(state, memory)
            if mixture(decision) != mixture(other):
                key = (state, decision_in_words(decision), decision_in_words(other))
                rest = sum((later[4] for later in run.steps[place:]), Fraction(0))
                wanted.setdefault(key, []).append((rest, run.probability))
                break
            if after not in model.goals:
                memory = second.remember(memory, state, action, float(cost), after)
    assert len(found) == len(wanted)
    for row in found:
        key = (row.state, decision_in_words(row.first_action), decision_in_words(row.second_action))
        check_to_go(wanted[key], row.probability, row.first_mean, row.first_cvar)
    assert found.means == pytest.approx(
        [float(reference.expected_cost(model, policy)) for policy in (first, second)], rel=1e-9
    )
    # Seen from the other side, the same places.
    mirrored = tp.differences(to_ssp(model), second, first, ALPHA)
    assert len(mirrored) == len(found)
    for row in mirrored:
        twin = next(
            r
            for r in found
            if (r.state, r.first_action, r.second_action)
            == (row.state, row.second_action, row.first_action)
        )
        assert (row.probability, row.first_mean, row.first_cvar) == pytest.approx(
            (twin.probability, twin.second_mean, twin.second_cvar), rel=1e-9
        )


def mixture(decision):
    return (
        {action: weight for action, weight in decision.items() if weight}
        if isinstance(decision, dict)
        else {decision: 1}
    )


def test_a_policy_does_not_differ_from_itself():
    ssp = tp.domains.river(rows=5, columns=4)
    policy = tp.solve_expected(ssp).policy
    same = tp.differences(ssp, policy, policy, 0.1)
    assert list(same) == []
    assert same.probability == 0


def test_policies_that_circle_side_by_side_never_part():
    ssp = tp.SSP.from_outcomes(
        [("a", "go", "b", 1, 1), ("b", "go", "a", 1, 1), ("b", "out", "goal", 1, 1)], "a", ["goal"]
    )
    circling = tp.MarkovPolicy({"a": "go", "b": "go"})
    assert tp.differences(ssp, circling, circling).probability == 0
    [parting] = tp.differences(ssp, circling, tp.MarkovPolicy({"a": "go", "b": "out"}))
    assert (parting.state, parting.first_action, parting.second_action, parting.probability) == (
        "b",
        "go",
        "out",
        1,
    )
    assert (parting.first_mean, parting.second_mean) == (math.inf, 1)


def test_of_a_deadline_of_45_there_are_45_left(tmp_path, capsys):
    """A run that costs exactly 45 is on time, so that the budget is a unit more; people are told
    what may be spent.
    """
    rows = [
        ("home", "road", "work", 0.9, 20),
        ("home", "road", "work", 0.1, 60),
        ("home", "train", "station", 1, 30),
    ]
    ssp = tp.SSP.from_outcomes([*rows, ("station", "walk", "work", 1, 15)], "home", ["work"])
    found = tp.solve_on_time(ssp, 45)
    assert found.probability(45) == 1
    assert [(row.state, row.memory) for row in found.policy(45).table(ssp)] == [
        ("home", "45 left"),
        ("station", "15 left"),
    ]
    assert [step.memory for step in tp.trace(ssp, found, seed=0)] == ["45 left", "15 left"]
    assert tp.frontier(ssp, "late(45)")[0].policy.table(ssp)[0].memory == "45 left"
    tp.write_policy(found, tmp_path / "p.json")
    again = tp.read_policy(tmp_path / "p.json", ssp)
    assert again == found.policy(45) and again.table(ssp)[1].memory == "15 left"
    assert found.policy(45).plot(ssp, 45).get_title() == "45 left"
    with pytest.raises(tp.TailpathError, match="from 0 to 45, not 50"):
        found.policy(45).plot(ssp, 50)
    assert tp.solve_cvar_exact(ssp, 0.1).policy(0.1).table(ssp)[0].memory == "45 left", (
        "as of any other budget"
    )


def test_charts_label_only_arrows_that_have_something_to_say():
    rows = [("a", "go", "b", 0.5, 1), ("a", "go", "c", 0.5, 1), ("b", "on", "c", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["c"])
    table = tp.MarkovPolicy({"a": "go", "b": "on"}).table(ssp)
    arrows = [line.strip() for line in table.to_dot().splitlines() if "->" in line]
    assert arrows == [
        "s0 -> a0;",
        'a0 -> s1 [label="0.5"];',
        'a0 -> s2 [label="0.5"];',
        "s1 -> a1;",
        "a1 -> s2;",
    ]
    assert "||" not in table.to_mermaid()


def test_a_table_tells_how_far_it_has_come(monkeypatch):
    """Where levels of cost are swept."""
    monkeypatch.setattr("tailpath.show.visits.AT_A_TIME", 2**12)
    ssp = tp.domains.gridworld("14x16")
    policy = tp.solve_cvar_exact(ssp, 0.01).policy(0.01)
    told = []
    rows = policy.table(ssp, progress=lambda steps, share: told.append((steps, share)))
    assert rows == policy.table(ssp)
    shares = [share for _, share in told]
    assert len(told) >= 3 and shares == sorted(shares) and all(0 <= share <= 1 for share in shares)
