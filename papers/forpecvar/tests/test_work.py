"""One task, computed: the numbers are those of the library, and the methods differ where they
should.
"""

from dataclasses import replace
from time import process_time

import pytest

import tailpath
from forpecvar import work
from forpecvar.store import ENGINES, StudyTask
from forpecvar.work import Times, WorkItem, fitting, timed


def perform(task):
    model = tailpath.read(f"{task.domain}:{task.problem}")
    return work.perform(WorkItem(task, model, simulated="quantile"))


GRID = StudyTask("gridworld", "5x5", "quantile", "", "", 7, 0.1)


def test_points_are_what_the_library_says():
    model, atoms = tailpath.domains.gridworld("5x5"), tailpath.log_atoms(0.1, 7)
    run = perform(GRID)
    plan = tailpath.solve_cvar_quantile(model, atoms, tolerance=1e-3)
    assert [point.alpha for point in run.points] == atoms.tolist()
    assert (run.answer.sweeps, run.answer.residual) == (plan.sweeps, plan.residual)
    for point in run.points:
        costs = tailpath.evaluate(model, plan.policy(point.alpha), point.alpha)
        assert point.predicted == plan.cvar(point.alpha)
        assert (point.deployed, point.var, point.mean) == (
            costs.cvar(point.alpha),
            costs.var(point.alpha),
            costs.mean,
        )
        assert point.expanded == costs.expanded > 0
    assert run.answer.plan_seconds > 0
    assert all(point.seconds > 0 for point in run.points)


def test_the_optimum_is_below_every_policy_and_above_every_prediction():
    best, plan = perform(StudyTask("gridworld", "5x5", "optimum", "", "", 7, 0.1)), perform(GRID)
    for optimum, point in zip(best.points, plan.points):
        assert optimum.predicted == pytest.approx(optimum.deployed, rel=1e-12)
        assert point.predicted <= optimum.deployed * (1 + 1e-12)
        assert point.deployed >= optimum.deployed * (1 - 1e-12)
    assert best.answer.sweeps is None


def test_linear_programs_are_counted(monkeypatch):
    task = StudyTask("river", "10x3", "interpolation", "", "lp", 7, 0.1)
    monkeypatch.setattr(work, "warm_up_worker", lambda *_: None)
    full, greedy = (perform(replace(task, inner=inner)) for inner in ("lp", "greedy"))
    choices = tailpath.domains.river(rows=10, columns=3).n_choices
    once_more = full.answer.sweeps + 1  # for the policy
    assert (full.answer.lps, greedy.answer.lps) == (choices * 7 * once_more, None)
    assert [point.predicted for point in greedy.points] == pytest.approx(
        [point.predicted for point in full.points], abs=1e-3
    )


def test_the_queue_is_timed_at_alpha0_for_planners_with_atoms():
    first, *others = perform(GRID).points
    model = tailpath.domains.gridworld("5x5")
    policy = tailpath.solve_cvar_quantile(model, tailpath.log_atoms(0.1, 7)).policy(0.1)
    costs = tailpath.evaluate(model, policy, 0.1, engine="queue")
    assert first.queue_expanded == costs.expanded and first.queue_seconds > first.seconds
    assert {point.queue_expanded for point in others} == {None}
    best = perform(StudyTask("gridworld", "5x5", "optimum", "", "", 7, 0.1))
    assert best.points[0].queue_seconds is None


def test_monte_carlo_is_seen_at_every_atom_beside_the_exact_value():
    task = StudyTask("gridworld", "5x5", "simulation", "", "", 7, 0.1)
    run = perform(task)
    atoms = tailpath.log_atoms(0.1, 7)
    assert run.points == ()
    assert [(row.engine, row.repetition, row.alpha) for row in run.simulations] == [
        (engine, k, y) for engine in ENGINES for k in range(5) for y in atoms.tolist()
    ]
    by_queue, compiled = (run.simulations[0].samples, run.simulations[-1].samples)
    assert by_queue > compiled
    assert len({row.seed for row in run.simulations}) == 5
    first, last = run.simulations[0], run.simulations[-len(atoms)]
    model = tailpath.domains.gridworld("5x5")
    policy = tailpath.solve_cvar_quantile(model, atoms, tolerance=1e-3).policy(0.1)
    # To the bit: the two engines add up in different orders, so each is asked for its own.
    for row, engine in ((first, "queue"), (last, "lattice")):
        costs = tailpath.evaluate(model, policy, 0.1, engine=engine)
        assert (row.engine, row.alpha, row.deployed) == (engine, 0.1, costs.cvar(0.1))
    assert last.deployed == perform(GRID).points[0].deployed
    costs = sorted(tailpath.simulate(model, policy, first.samples, first.seed), reverse=True)
    # The worst tenth of the sample, its last cost in part.
    whole, part = divmod(0.1 * first.samples, 1)
    tail = sum(costs[: int(whole)]) + part * costs[int(whole)]
    assert first.simulated == pytest.approx(tail / (0.1 * first.samples), rel=1e-9)
    few = costs[:1001]
    assert work.worst_means(few, [0.01, 0.3, 1.0]) == pytest.approx(
        [tailpath.estimate(few, alpha).cvar for alpha in (0.01, 0.3, 1.0)], rel=1e-9
    )


def test_short_calls_are_repeated_and_the_median_counts(monkeypatch):
    clock = iter([0.0, 0.05, 1.0, 1.02, 2.0, 2.04, 3.0, 9.0])
    monkeypatch.setattr(work, "process_time", lambda: next(clock))
    calls = []
    assert timed(lambda: calls.append(1) or len(calls), 3) == (
        3,
        pytest.approx(Times(0.04, 0.02, 0.05, 3)),
    )
    assert timed(lambda: "long", 3) == ("long", Times(6.0, 6.0, 6.0, 1))


def test_calls_come_in_bursts_so_that_no_disturbance_meets_all(monkeypatch):
    made = []
    monkeypatch.setattr(work, "process_time", lambda: 0.0)
    monkeypatch.setattr(work, "sleep", lambda seconds: made.append(f"rest {seconds:g}"))
    timed(lambda: made.append("call"))
    burst = ["call"] * 5
    assert made == [*burst, "rest 0.15", *burst, "rest 0.15", *burst]


def test_monte_carlo_gets_the_time_asked_for_and_no_more():
    """`simulate` walks in a thread of its own: its time counts, too."""
    model = tailpath.domains.gridworld("14x16")
    policy = tailpath.solve_expected(model).policy

    def call(n):
        return tailpath.simulate(model, policy, n, 0, threads=1)

    call(100_000)  # compiled
    samples, set_up = fitting(call, 0.05)
    began = process_time()
    assert len(call(samples)) == samples
    assert 0.0125 < process_time() - began - set_up < 0.2


def test_samples_fit_the_time_beyond_the_set_up(monkeypatch):
    monkeypatch.setattr(
        work, "timed", lambda call, calls=0: (None, Times(*[0.5 + 0.001 * call()] * 3, 1))
    )
    samples, set_up = fitting(lambda n: n, 0.25)
    assert (samples, set_up) == (250, 0.5)


def test_a_disturbed_call_does_not_cut_the_samples(monkeypatch):
    """Two of three calls take a second more; medians would leave a single sample."""

    def disturbed(call, calls=0):
        least = 0.5 + 0.001 * call()
        return None, Times(least + 1, least, least + 1, 3)

    monkeypatch.setattr(work, "timed", disturbed)
    assert fitting(lambda n: n, 0.25) == (250, 0.5)


def test_the_name_of_a_program_knows_what_computes_and_nothing_else():
    """A comment, a docstring or another layout is the same program; another number is not."""
    plain = 'def f(x):\n    """Once."""\n    return 2 * x\n'
    same = (
        '"""A module."""\n# why\ndef f(\n    x,\n):\n    "Twice."\n    return (2 * x)  # doubled\n'
    )
    assert work.meaning(plain) == work.meaning(same)
    assert work.meaning(plain) != work.meaning(plain.replace("2 *", "3 *"))
    assert work.meaning(plain) != work.meaning(plain.replace("return 2 * x", "return '2 * x'"))


def test_a_planner_of_one_s_own_is_computed():
    from tests.methods import toy

    task = StudyTask("river", "10x3", "toy", "", "", 7, 0.5)
    model = tailpath.read("river:10x3")
    run = work.perform(WorkItem(task, model, imports=("tests.methods.toy",)))
    policy = toy.plan(model, 0.5, progress=lambda *_: None).policy(0.5)
    assert [point.predicted for point in run.points] == [
        tailpath.evaluate(model, policy, point.alpha).cvar(point.alpha) for point in run.points
    ]


@pytest.mark.filterwarnings("error::tailpath.TailpathWarning", "error:alpha is the mass")
def test_atoms_near_1_are_no_reason_to_warn():
    """With 49 atoms from 1e-3 one is 0.87 and one 0.93, which looks like a confidence."""
    assert any(0.9 <= atom < 1 for atom in tailpath.log_atoms(0.1, 49))
    assert len(perform(replace(GRID, atoms=49)).points) == 49
