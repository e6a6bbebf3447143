"""Gymnasium's tables: known values of its toy environments, and every trap of their rows."""

import types

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import FormatError, ModelError, OptionError, PolicyError
from tailpath.solvers.arrival import solve_arrival

gymnasium = pytest.importorskip("gymnasium", reason="the extra `gym` is not installed")


def environment(table, starts=None, **attributes):
    return types.SimpleNamespace(
        P=table,
        **({} if starts is None else {"initial_state_distrib": np.array(starts)}),
        **attributes,
    )


TABLE = {
    0: {0: [(0.5, 0, -1.0, False), (0.5, 1, -1.0, False)], 1: [(1.0, 2, -5.0, True)]},
    1: {0: [(0.25, 2, -2.0, True), (0.5, 2, -3.0, True), (0.25, 2, -2.0, True)]},
    2: {0: [(1.0, 0, -9.0, False)]},
}


# ---------------------------------------------------------------------- known values


def test_the_shortest_way_along_the_cliff_costs_13():
    ssp = tp.read("gym:CliffWalking-v1")
    solution = tp.solve_expected(ssp)
    assert solution.bounds == pytest.approx((13, 13), rel=1e-12)
    costs = tp.evaluate(ssp, solution.policy, alpha=0.01)
    assert costs.cvar(0.01) == 13 and costs.var(0.01) == 13


def test_the_slippery_cliff():
    solution = tp.solve_expected(tp.read("gym:CliffWalkingSlippery-v1"))
    assert solution.cost() == pytest.approx(64.70917590996, abs=5e-12)
    low, high = solution.bounds
    assert low <= 64.709175909965 and high >= 64.709175909955 and high - low < 1e-8


def lake(schedule):
    """Ends of any kind are priced, and all of them are goals."""
    return tp.read(
        gymnasium.make("FrozenLake-v1", is_slippery=True, reward_schedule=schedule), goal="all"
    )


def test_the_frozen_lake_is_crossed_with_14_in_17():
    safest = tp.solve_expected(lake((0, -1, 0)))
    assert safest.cost() == pytest.approx(3 / 17, abs=1e-12)
    # The same policy where arriving costs 1 and holes cost nothing pays the probability of
    # arriving.
    assert tp.evaluate(lake((-1, 0, 0)), safest.policy, alpha=0.5).mean == pytest.approx(
        14 / 17, abs=1e-12
    )


def test_the_lake_from_the_command_line_form():
    ssp = tp.read(
        "gym:FrozenLake-v1",
        constants={"is_slippery": "true", "reward_schedule": "[0, -1, 0]"},
        goal="all",
    )
    assert tp.solve_expected(ssp).cost() == pytest.approx(3 / 17, abs=1e-12)
    dry = tp.read(
        "gym:FrozenLake-v1",
        constants={"is_slippery": "False", "map_name": "8x8"},
        step_cost=1,
        cost_of={1: 0},
    )
    # The way to the goal takes fourteen moves, the last of which is free; the nearest hole is five
    # away, and no goal.
    assert tp.solve_expected(dry).cost() == 13


def test_the_taxi():
    ssp = tp.read("gym:Taxi-v4")
    assert ssp.start == "start" and ssp.goals == (
        0,
        85,
        410,
        475,
    ), "the taxi with the passenger at the four places"
    draw = ssp.state_choices[ssp.start_index]
    row = slice(*ssp.choice_outcomes[draw : draw + 2])
    assert len(ssp.outcome_target[row]) == 300 and set(ssp.outcome_cost[row].tolist()) == {0.0}
    assert np.allclose(ssp.outcome_probability[row], 1 / 300, rtol=1e-12)
    assert set(ssp.outcome_cost.tolist()) == {-20.0, 0.0, 1.0, 10.0}
    # One start: the shortest trip is counted by hand in Gymnasium itself.
    assert (
        tp.solve_expected(ssp).cost()
        == pytest.approx(mean_taxi_steps() - 21, rel=1e-12)
        == pytest.approx(-7.93)
    )


def mean_taxi_steps():
    """Breadth-first search over the environment's own moves; the last move pays 20, and no step."""
    env = gymnasium.make("Taxi-v4").unwrapped
    back = {}
    front = set()
    for state, row in env.P.items():
        for ((_, target, reward, terminated),) in row.values():
            if reward == -10:
                continue
            if terminated:
                front.add(state)
            else:
                back.setdefault(target, set()).add(state)
    steps, n = dict.fromkeys(front, 1), 1
    while front:
        n += 1
        front = {s for t in front for s in back.get(t, ()) if s not in steps}
        steps.update(dict.fromkeys(front, n))
    return sum(p * steps[s] for s, p in enumerate(env.initial_state_distrib) if p)


# ---------------------------------------------------------------------- the rows


def test_terminated_outcomes_lead_to_their_own_state_and_terminal_rows_are_ignored():
    ssp = tp.read(environment(TABLE, [1, 0, 0]), goal="all")
    assert ssp.states == (0, 1, 2) and ssp.start == 0 and ssp.goals == (2,)
    rows = {(ssp.states[ssp.choice_state[k]], ssp.choice_name(k)): k for k in range(ssp.n_choices)}
    last = slice(*ssp.choice_outcomes[rows[1, 0] : rows[1, 0] + 2])
    assert ssp.outcome_cost[last].tolist() == [2.0, 3.0] and ssp.outcome_probability[
        last
    ].tolist() == [0.5, 0.5]
    assert ssp.outcome_cost[ssp.choice_outcomes[rows[0, 1]]] == 5
    assert "costs are minus the rewards" in ssp.notes and any(
        "untruncated" in note for note in ssp.notes
    )


def test_the_cliff_is_not_a_place():
    """State 47 ends the episode though its own row goes on, and nobody ever stands in the cliff."""
    ssp = tp.read("gym:CliffWalking-v1")
    assert ssp.states == (*range(37), 47) and all(type(name) is int for name in ssp.states)


def test_tables_may_be_lists_and_have_numpy_numbers():
    lists = [
        [[(np.float64(1.0), np.int64(1), np.float32(-1), np.False_)]],
        [[(1, np.int64(0), -1, np.True_)]],
    ]
    ssp = tp.read(environment(lists))
    assert ssp.states == (0, 1, "0 (goal)") and ssp.start == 0
    assert [type(name) for name in ssp.states] == [int, int, str]


def test_a_start_distribution_becomes_a_state():
    ssp = tp.read(environment(TABLE, [0.25, 0.75, 0]), goal="all")
    assert ssp.start == "start" and ssp.states[-1] == "start"
    assert tp.solve_expected(ssp).cost() == pytest.approx(0.25 * min(5, 2 + 2.5) + 0.75 * 2.5)


def test_names_that_are_taken():
    """A run may go on from a state in which another ends, and what it is called then may be taken,
    too.
    """
    table = {
        "a": {0: [(0.5, "b", -1, False), (0.5, "b", -1, True)]},
        "b": {0: [(1, "b (goal)", -1, False)]},
    }
    ssp = tp.read(environment({**table, "b (goal)": {0: [(1, "a", -1, True)]}}))
    assert ssp.states == ("a", "b", "b (goal)", "b (goal)'", "a (goal)") and ssp.goals == (
        "b (goal)'",
        "a (goal)",
    )
    both = environment({0: {0: [(0.5, 1, 1.0, True), (0.5, 1, 0.0, True)]}})
    assert set(tp.read(both).states) == {0, 1, "1 (dead end)"} and tp.read(both).goals == (1,)
    assert tp.read(environment(TABLE, [0.5, 0.5, 0], start=0), goal="all").start == "start"


def test_arriving_is_no_surprise():
    """A policy followed in the environment itself, to a goal and into a hole."""
    env = gymnasium.make("CliffWalking-v1")
    runner = tp.solve_cvar_exact(tp.read(env), 0.05).policy(0.05).start_run()
    state, ended = env.reset(seed=0)[0], False
    while not ended:
        state, reward, ended, _, _ = env.step(runner.action(state))
        assert runner.observe(-reward, state) is None
    assert state == 47 and runner.state == 47 and runner.steps == 13
    with pytest.raises(PolicyError, match="the run has arrived in 47"):
        runner.action(state)
    lake = tp.read("gym:FrozenLake-v1")
    fallen = tp.policy(lake, np.full(16, 2)).start_run()
    fallen.action(4)
    assert fallen.observe(1, 5) is None and fallen.action(5) == "stay"


def test_tables_of_agents_have_entries_for_ends():
    lake, random = tp.read("gym:FrozenLake-v1"), np.random.default_rng(3)
    q = random.random((16, 4))
    greedy = tp.policy(lake, q, minimise=False)
    assert (
        greedy
        == tp.policy(lake, q.argmax(axis=1))
        == tp.policy(lake, dict(enumerate(q.argmax(axis=1).tolist())))
    )
    assert greedy.decisions[5] == "stay" and greedy.decisions[4] == int(q[4].argmax())


# ---------------------------------------------------------------------- maps


def test_grids_have_maps():
    lake, cliff = (
        tp.read("gym:FrozenLake-v1", goal="all", step_cost=1).geometry,
        tp.read("gym:CliffWalking-v1").geometry,
    )
    assert (lake.rows, lake.columns, lake.kind[5], lake.kind[15], lake.kind[0]) == (
        4,
        4,
        "hole",
        "goal",
        "floor",
    )
    assert (cliff.rows, cliff.columns) == (4, 12) and (
        cliff.row[-1],
        cliff.column[-1],
        cliff.kind[-1],
    ) == (3, 11, "goal")
    assert tp.read("gym:Taxi-v4").geometry is None, (
        "its states are more than places, and its desc is a drawing"
    )
    lava = environment(TABLE, desc=["SLG"])
    assert tp.read(lava, goal="all").geometry.kind == ("floor", "lava", "goal")
    assert tp.read(environment(TABLE, shape=(1, 3)), goal="all").geometry.kind == (
        "floor",
        "floor",
        "goal",
    )
    assert tp.read(environment(TABLE, desc=[["S", "L"], ["G"]])).geometry is None
    assert tp.read(environment(TABLE), geometry=(3, 1), goal="all").geometry.row == (0, 1, 2)


# ---------------------------------------------------------------------- costs


def test_options_choose_the_costs():
    def costs(**options):
        return sorted(set(tp.read(environment(TABLE), goal="all", **options).outcome_cost.tolist()))

    assert costs() == [1, 2, 3, 5]
    assert costs(step_cost=7) == [7]
    assert costs(cost_of={-2: 20}) == [1, 3, 5, 20]
    assert costs(cost_of={-2: 0}, step_cost=1) == [0, 1]


def test_negated_rewards_are_costs():
    table = {0: {0: [(1, 1, 4.0, True)]}}
    assert tp.read(environment(table), negate_reward=True).outcome_cost.tolist() == [4]


def test_rewards_are_taken_as_they_are():
    table = {0: {0: [(0.5, 1, 20.0, True), (0.5, 0, -1.0, False)], 1: [(1, 1, 20.0, True)]}}
    ssp = tp.read(environment(table))
    assert (
        sorted(ssp.outcome_cost.tolist()) == [-20, -20, 1]
        and "costs are minus the rewards" in ssp.notes
    )
    assert tp.solve_expected(ssp).cost() == -20
    assert tp.read(environment(table), rewards=True) == ssp


@pytest.mark.parametrize("reward", [19.0, 0.0])
def test_a_bonus_may_vary(reward):
    table = {0: {0: [(0.5, 1, 20.0, True), (0.5, 0, -1.0, False)], 1: [(1, 1, reward, True)]}}
    assert tp.solve_expected(tp.read(environment(table), goal="all")).cost() == -19
    assert set(tp.read(environment(table)).states) == {0, 1, "1 (dead end)"}


def test_a_reward_on_the_way_that_can_be_had_again_and_again_is_refused_when_it_matters():
    ssp = tp.read(environment({0: {0: [(0.5, 1, -1.0, True), (0.5, 0, 3.0, False)]}}))
    with pytest.raises(
        ModelError, match=r"^a cycle has a negative cost.*: 0 by 0, and back to 0 gains 3;"
    ):
        tp.solve_expected(ssp)
    assert tp.solve_expected(tp.within(ssp, 2, otherwise=0)).cost() == 0.5 * 1 + 0.5 * (
        -3 + 0.5 * 1 + 0.5 * -3
    )


# ---------------------------------------------------------------------- ends that are no goals


def chances(env, sweeps=20_000):
    """The largest probability of arriving, by value iteration on the environment's own table."""
    table, chance = env.unwrapped.P, np.zeros(env.observation_space.n)
    for _ in range(sweeps):
        after = np.array(
            [
                max(
                    sum(p * (r if end else chance[t]) for p, t, r, end in row)
                    for row in rows.values()
                )
                for rows in table.values()
            ]
        )
        if np.max(np.abs(after - chance)) < 1e-15:
            return after
        chance = after
    raise AssertionError("value iteration has not settled")


def steps_given_arrival(env, chance, sweeps=200_000):
    """The least expected steps of the runs that arrive, among policies that arrive as surely as
    any.
    """
    table, steps = env.unwrapped.P, np.zeros(len(chance))
    for _ in range(sweeps):
        after = steps.copy()
        for state, rows in table.items():
            if chance[state] == 0:
                continue
            found = []
            for row in rows.values():
                share = [p * (r if end else chance[t]) for p, t, r, end in row]
                if sum(share) >= chance[state] * (1 - 1e-9):
                    on = sum(
                        s * (0 if end else steps[t])
                        for s, (p, t, r, end) in zip(share, row, strict=True)
                    )
                    found.append(1 + on / sum(share))
            after[state] = min(found)
        if np.max(np.abs(after - steps)) < 1e-12:
            return after
        steps = after
    raise AssertionError("value iteration has not settled")


@pytest.mark.parametrize("size", ["4x4", "8x8"])
@pytest.mark.parametrize("slippery", [True, False])
def test_the_lake_as_shipped(size, slippery):
    env = gymnasium.make("FrozenLake-v1", map_name=size, is_slippery=slippery)
    ssp = tp.read(env)
    assert ssp.states == tuple(range(16 if size == "4x4" else 64)) and ssp.goals == (
        ssp.states[-1],
    )
    assert set(ssp.outcome_cost.tolist()) == {1.0}
    chance = chances(env)
    assert solve_arrival(ssp).probability() == pytest.approx(chance[0], rel=1e-9)
    assert tp.solve_expected(tp.given_arrival(ssp)).cost() == pytest.approx(
        steps_given_arrival(env, chance)[0], rel=1e-7
    )


def test_the_lake_at_a_price():
    """CVaR with giving up, against the recursion over budgets written with loops on the
    environment's own table.
    """
    env, price, alpha, most = gymnasium.make("FrozenLake-v1", map_name="4x4"), 30, 0.1, 160
    table, hole = env.unwrapped.P, 16

    def after(values, row, arrival=0.0):
        """The expected value after a step; `values` has an entry for every state, and one for the
        hole.
        """
        return sum(
            p * (arrival if end and r else values[hole if end else t]) for p, t, r, end in row
        )

    mean = np.zeros(17)  # at no budget the mean counts
    for _ in range(20_000):
        mean = np.array(
            [min(price, *(1 + after(mean, row) for row in table[s].values())) for s in range(16)]
            + [price]
        )
    excess = [mean]
    for w in range(1, most + 1):
        ways = [[after(excess[-1], row) for row in table[s].values()] for s in range(16)]
        excess.append(
            np.array([min(max(price - w, 0), *row) for row in ways] + [max(price - w, 0)])
        )
    wanted = min(w + values[0] / alpha for w, values in enumerate(excess))
    found = tp.solve_cvar_exact(tp.give_up(tp.read(env), price), alpha)
    assert found.cvar(alpha) == pytest.approx(wanted, rel=1e-9)


def test_within_is_the_time_limit_of_gymnasium():
    """A policy simulated in the environment under its own TimeLimit, 10^6 times on the table,
    arrives as often as the product says.
    """
    env = gymnasium.make("FrozenLake-v1", map_name="4x4", max_episode_steps=25)
    ssp = tp.read(env)
    assert any("stops after 25 steps" in note for note in ssp.notes)
    policy = tp.solve_expected(tp.given_arrival(ssp)).policy
    pi = np.array([policy.decisions.get(state, 0) for state in range(16)])
    late = tp.evaluate(tp.within(ssp, env.spec.max_episode_steps), pi, alpha=0.5).unreached
    n = 1_000_000
    random = np.random.default_rng(7)
    table = env.unwrapped.P
    rows = {s: table[s][int(pi[s])] for s in range(16)}
    state, arrived = np.zeros(n, dtype=int), np.zeros(n, dtype=bool)
    going = np.ones(n, dtype=bool)
    for _ in range(25):
        draw = random.random(n)
        for s in range(16):
            here = going & (state == s)
            edges = np.cumsum([p for p, _, _, _ in rows[s]])
            slot = np.minimum(np.searchsorted(edges, draw[here], side="right"), len(edges) - 1)
            place = np.flatnonzero(here)
            state[place] = (
                np.array([t for _, t, _, _ in rows[s]])[slot] + 100
            )  # entered in this step
            arrived[place] |= np.array([end and r > 0 for _, _, r, end in rows[s]])[slot]
            going[place] &= ~np.array([end for _, _, _, end in rows[s]])[slot]
        state %= 100
    rate = 1 - arrived.mean()
    assert abs(rate - late) < 3.3 * np.sqrt(late * (1 - late) / n)
    # And the environment itself, a few times.
    few, seen = 2000, 0
    for run in range(few):
        observation, _ = env.reset(seed=run)
        ended = False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(int(pi[observation]))
            ended = terminated or truncated
        seen += reward > 0
    assert abs((1 - seen / few) - late) < 4 * np.sqrt(late * (1 - late) / few)


def test_goals_can_be_said_otherwise():
    lake = "gym:FrozenLake-v1"
    assert (
        tp.read(lake).n_states
        == tp.read(lake, goal="best").n_states
        == tp.read(lake, goal="1").n_states
    )
    assert tp.read(lake, goal="all", step_cost=1).goals == (5, 7, 11, 12, 15)
    assert tp.read(lake, goal="0", step_cost=1).goals == (
        5,
        7,
        11,
        12,
    ), "one may look for the holes"
    with pytest.raises(
        FormatError,
        match=r"goal must be best, all or the reward of a final step, one of 0, 1, not 'x'",
    ):
        tp.read(lake, goal="x")


@pytest.mark.parametrize(
    "options", [{}, {"step_cost": 1}, {"negate_reward": True}, {"cost_of": {1: 0}, "step_cost": 2}]
)
def test_no_option_turns_a_hole_into_a_goal(options):
    ssp = tp.read("gym:FrozenLake-v1", **options)
    assert solve_arrival(ssp).probability() == pytest.approx(14 / 17, rel=1e-12)
    assert any("one that ends with 0 is lost" in note for note in ssp.notes)


def test_every_assumption_about_the_lake_is_noted():
    assert tp.read("gym:FrozenLake-v1").notes == (
        (
            "a run that ends with a reward of 1 has arrived, one that ends with 0 is lost"
            " (goal='all', --goal all: every end counts)"
        ),
        (
            "no step before the end has a reward, so every step costs 1 (step_cost=, --step-cost),"
            " and the reward of 1 for arriving is left out"
        ),
        (
            "time limits are not part of the table: total costs are untruncated; the environment"
            " stops after 100 steps, which within(ssp, 100) or --within 100 honours"
        ),
    )


def test_a_table_alone():
    env = gymnasium.make("CliffWalking-v1")
    ssp = tp.read(env.unwrapped.P, start=36)
    assert tp.solve_expected(ssp).cost() == 13
    assert tp.solve_expected(tp.read("gym:CliffWalking-v1", start="35")).cost() == 1
    with pytest.raises(FormatError, match=r"the table has no state 99 to start from"):
        tp.read(env.unwrapped.P, start=99)


def test_a_wrapped_environment():
    wrapped = gymnasium.wrappers.TimeLimit(gymnasium.make("CliffWalking-v1"), 500)
    assert tp.solve_expected(tp.read(wrapped)).cost() == 13


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Blackjack-v1", r"no transition table \.P.*confidence=.*from_functions"),
        ("CartPole-v1", r"no transition table \.P"),
        ("Taxi-v3", "Taxi-v4"),
        ("NoSuchThing-v0", "doesn't exist"),
        ("", "gym:"),
        ("no_such_module_:X-v0", "gym:"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_environments_without_a_table(name, message):
    with pytest.raises(FormatError, match=message):
        tp.read(f"gym:{name}")


def test_an_environment_in_memory_without_a_table_is_answered_by_two_ways():
    with pytest.raises(
        FormatError, match=r"^CartPoleEnv: .*no transition table \.P.*confidence=.*from_functions"
    ):
        tp.read(gymnasium.make("CartPole-v1"))


def test_arguments_that_the_environment_does_not_take():
    with pytest.raises(FormatError, match=r"gym:FrozenLake-v1: .*wings"):
        tp.read("gym:FrozenLake-v1", constants={"wings": 2})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({0: {0: [(1, 1, -1, False)]}}, "state 1 is entered but has no row"),
        ({0: {0: []}}, "state 0, action 0 has no outcomes"),
        ({0: {0: 5}}, "expected a list of outcomes"),
        ({0: {0: [(1, 1, -1)]}}, r"expected \(probability, next state, reward, terminated\)"),
        ({0: {0: [(1, 1, float("nan"), True)]}}, r"expected \(probability"),
        ({0: {0: [("1", 1, -1, True)]}}, r"expected \(probability"),
        ({0: {0: [(1, 0, -1, False)]}}, "there is no goal"),
        ({0: {0: [(0.5, 0, -1, True)]}}, "sum to 0.5"),
        ({0: {0: [(-0.5, 0, -1, True), (1.5, 0, -1, True)]}}, "has probability -0.5"),
        ({0: {0: [(0, 0, -1, True)], 1: [(1, 0, -1, True)]}}, "state 0, action 0 has no outcomes"),
    ],
)
def test_broken_tables(table, message):
    with pytest.raises(tp.TailpathError, match=message):
        tp.read(environment(table))


@pytest.mark.parametrize("starts", [[0.5, 0.2, 0.2], [-1, 2, 0], [np.nan, 1, 0], [[1, 0, 0]]])
def test_starts_that_are_no_distribution(starts):
    with pytest.raises(FormatError, match="start distribution is not a probability distribution"):
        tp.read(environment(TABLE, starts))


def test_constants_are_for_names_only():
    with pytest.raises(FormatError, match="already made"):
        tp.read(environment(TABLE), constants={"a": 1})
    with pytest.raises(OptionError, match="the option cost does not apply to Gymnasium"):
        tp.read(environment(TABLE), cost="x")


def test_what_a_wrapper_does_is_not_in_the_table():
    doubled = gymnasium.wrappers.TransformReward(
        gymnasium.make("CliffWalking-v1"), lambda reward: 2 * reward
    )
    assert (
        "the effect of the wrapper TransformReward is not part of the table: it is left out"
        in tp.read(doubled).notes
    )
    limited = gymnasium.wrappers.TimeLimit(gymnasium.make("CliffWalking-v1"), 50)
    assert not any("wrapper" in note for note in tp.read(limited).notes)


def test_actions_have_names_where_they_are_asked_for():
    """Numbers unless names are given; those of known environments are known."""
    lake = tp.read("gym:FrozenLake-v1")
    assert set(lake.actions) == {0, 1, 2, 3, "stay"}
    known = tp.read("gym:FrozenLake-v1", actions="known")
    assert known.renamed(actions={"left": 0, "down": 1, "right": 2, "up": 3}) == lake
    given = tp.read("gym:CliffWalking-v1", actions=["N", "E", "S", "W"])
    assert (
        set(given.actions)
        == set("NESW")
        == set(tp.read("gym:CliffWalking-v1", actions="N, E, S, W").actions)
    )
    with pytest.raises(FormatError, match="FrozenLake, CliffWalking, Taxi"):
        tp.read({0: {0: [(1.0, 0, 1.0, True)]}}, actions="known")
