"""The runner: only the missing is computed, and no finished run is lost, whatever happens to
workers.
"""

import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest

import making
import tailpath
from forpecvar import runner
from forpecvar.claims import paper
from forpecvar.design import read_design, restricted, tasks
from forpecvar.report import write_report
from forpecvar.runner import prepare, processes, run_study
from forpecvar.store import Store, StoreError, StudyTask

TASKS = [
    StudyTask("gridworld", "5x5", method, "", "", n, 0.1)
    for n in (13, 7, 25)
    for method in ("quantile", "optimum")
]
FINE = [task for task in TASKS if task.atoms != 13]
STUDY = making.study_of(TASKS)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path, create=True) as opened:
        yield opened


def work_like(monkeypatch, perform):
    monkeypatch.setattr(runner, "perform", perform)


def one_thread():
    return ThreadPoolExecutor(1)


def one_process():
    return processes(1)


def test_every_run_is_stored_and_counted(store, monkeypatch):
    work_like(monkeypatch, making.instant)
    seen = []
    outcome = run_study(
        store, STUDY, one_thread, lambda done, share, now: seen.append((done, share))
    )
    assert (outcome.computed, outcome.found, outcome.others, outcome.failures) == (6, 0, 0, ())
    assert [done for done, _ in seen] == list(range(7))
    shares = [share for _, share in seen]
    assert (shares[0], shares[-1]) == (0.0, 1.0) and shares == sorted(shares)
    assert store.finished(STUDY.edition) == set(TASKS)


def test_only_the_missing_is_computed(store, monkeypatch):
    work_like(monkeypatch, making.instant)
    run_study(store, making.study_of(TASKS[:2]), one_thread)
    asked = []
    work_like(monkeypatch, lambda job: asked.append(job.task) or making.instant(job))
    assert run_study(store, STUDY, one_thread).computed == 4
    assert asked == TASKS[2:]
    work_like(monkeypatch, making.failing)
    outcome = run_study(
        store, STUDY, lambda: pytest.fail("nothing is missing, so nothing needs an executor")
    )
    assert (outcome.computed, outcome.found) == (0, 6)


def test_workers_compile_all_kernels_so_that_times_are_those_of_machine_code():
    with processes(1) as pool:
        assert pool.submit(making.compiles).result()


def test_another_program_version_computes_anew(store, monkeypatch):
    work_like(monkeypatch, making.instant)
    run_study(store, STUDY, one_thread)
    for module in (runner, making):
        monkeypatch.setattr(module, "program", lambda: "9.9+new")
    outcome = run_study(store, STUDY, one_thread)
    assert (outcome.computed, outcome.found, outcome.others) == (6, 0, 6)


def test_another_model_computes_anew(store, monkeypatch):
    work_like(monkeypatch, making.instant)
    run_study(store, STUDY, one_thread)
    other = replace(
        STUDY, models={("gridworld", "5x5"): tailpath.domains.gridworld("5x5", obstacle_cost=99)}
    )
    outcome = run_study(store, other, one_thread)
    assert (outcome.computed, outcome.found, outcome.others) == (6, 0, 6)


def test_a_failing_task_does_not_stop_the_others(store, monkeypatch):
    work_like(monkeypatch, making.failing)
    outcome = run_study(store, STUDY, one_thread)
    assert outcome.computed == 4
    assert [(failure.task, failure.reason) for failure in outcome.failures] == [
        (task, "ValueError: no luck with 13") for task in TASKS[:2]
    ]
    assert store.finished(STUDY.edition) == set(FINE)


def test_a_worker_with_another_program_is_refused(store, monkeypatch):
    work_like(monkeypatch, lambda job: making.run_of(job.task, program="0.0+old"))
    outcome = run_study(store, making.study_of(TASKS[:1]), one_thread)
    assert [failure.reason.split(":")[0] for failure in outcome.failures] == [
        "the worker has another program or model"
    ]
    assert store.runs() == []


def test_a_full_disk_is_no_failure_of_a_task(store, monkeypatch):
    work_like(monkeypatch, making.instant)

    def full(run):
        raise StoreError("database or disk is full")

    monkeypatch.setattr(store, "add", full)
    with pytest.raises(StoreError, match="disk is full"):
        run_study(store, STUDY, one_thread)


@pytest.mark.kill
def test_a_killed_worker_loses_no_finished_run(store, monkeypatch):
    work_like(monkeypatch, making.slow)
    seen = []

    def kill_after_the_first(done, share, now):
        seen.append(done)
        if seen == [0, 1]:
            for child in multiprocessing.active_children():
                os.kill(child.pid, signal.SIGKILL)

    opened = []
    outcome = run_study(
        store, STUDY, lambda: opened.append(1) or one_process(), kill_after_the_first
    )
    assert (outcome.computed, outcome.failures, len(opened)) == (6, (), 2)
    assert [run.task for run in store.runs()][:1] == TASKS[:1]
    assert len(store.runs()) == 6


def test_a_deadly_task_does_not_take_the_others_with_it(store, monkeypatch):
    work_like(monkeypatch, making.deadly)
    outcome = run_study(store, STUDY, one_process)
    assert store.finished(STUDY.edition) == set(FINE)
    assert {failure.task for failure in outcome.failures} == set(TASKS) - set(FINE)
    assert all("ended abruptly" in failure.reason for failure in outcome.failures)
    assert outcome.computed == 4


def test_no_process_survives_an_interrupt(store, monkeypatch):
    work_like(monkeypatch, making.slow)
    before = set(multiprocessing.active_children())
    started = []

    def interrupt(done, share, now):
        started.extend(set(multiprocessing.active_children()) - before)
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(store, STUDY, one_process, interrupt)
    deadline = time.monotonic() + 30
    for child in started:
        # The pool's own thread may have collected the process and not yet noted that it did: until
        # then nobody else can tell that it has ended.
        while child.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not child.is_alive()
    assert len(store.runs()) == 1


OWN = """
methods = ["quantile", "toy", "optimum"]
variants = ["improved", "published"]
atoms = [5]
alpha0 = [0.05]
import = ["tests.methods.toy"]
[[problems]]
name = "roads/short"
model = "road.json"
"""


def test_a_model_and_a_planner_of_ones_own(tmp_path):
    """The model travels with the task; the planner is imported where it runs."""
    tailpath.write(tailpath.domains.gridworld("5x5", obstacle_cost=30), tmp_path / "road.json")
    (tmp_path / "my.toml").write_text(OWN)
    design = read_design(tmp_path / "my.toml")
    study = prepare(design, tasks(design))
    (tmp_path / "road.json").unlink()
    with Store(tmp_path / "here", create=True) as store:
        outcome = run_study(store, study, partial(processes, 1))
        found = sorted((one.task.method, one.task.variant) for one in store.runs())
    assert (outcome.computed, outcome.failures) == (4, ())
    assert found == [
        ("optimum", ""),
        ("quantile", "improved"),
        ("quantile", "published"),
        ("toy", ""),
    ]
    write_report(tmp_path / "here")


def test_the_program_is_known_by_its_source(monkeypatch, tmp_path):
    from forpecvar import work as module

    for name in ("kernels", "cli"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "work.py").write_text("x = 1\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    names = [module.program.__wrapped__()]
    for changed in ("cli/work.py", "kernels/work.py"):
        (tmp_path / changed).write_text("x = 2\n")
        names.append(module.program.__wrapped__())
    (tmp_path / "kernels" / "work.py").write_bytes(
        b"x = 2\r\n"
    )  # the same file, checked out elsewhere
    names.append(module.program.__wrapped__())
    assert [a == b for a, b in pairwise(names)] == [True, False, True]


def test_a_model_is_known_by_its_numbers_and_its_start():
    model = tailpath.domains.gridworld("5x5")
    moved = replace(model, start_index=model.start_index - 1)
    dearer = tailpath.domains.gridworld("5x5", obstacle_cost=99)
    study = prepare(restricted(paper(), only=["gridworld/5x5", "river/10x3"]), [])
    marks = study.edition.fingerprints
    assert model.fingerprint == marks["gridworld", "5x5"]
    assert (
        len({model.fingerprint, moved.fingerprint, dearer.fingerprint, marks["river", "10x3"]}) == 4
    )
