"""A real Dask scheduler with two real workers, each a process of its own."""

import json
import os
import pathlib
import subprocess
import sys
import time
from functools import partial

import pytest

import making
import tailpath
from forpecvar import runner
from forpecvar.design import read_design, tasks
from forpecvar.report import write_report
from forpecvar.runner import cluster, prepare, processes, run_study
from forpecvar.store import Store
from tailpath.errors import OptionError

pytest.importorskip("distributed")
pytestmark = pytest.mark.cluster
HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
TINY = making.sliced(only=["gridworld/5x5", "river/10x3"], atoms=[7], alpha0=[0.1], lp="none")
WAIT = 60


def start(folder, module, *arguments):
    """Start a part of the cluster, with its output in a file."""
    # Workers run this source, and must be able to import what tests give them to do.
    places = [ROOT, ROOT / "src", HERE, HERE.parent / "src"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    with (folder / f"{module}.log").open("ab") as log:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.{module}",
            "--scheduler-file",
            folder / "scheduler.json",
            *arguments,
        ]
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """The address of a scheduler, and the processes: itself and two workers."""
    folder = tmp_path_factory.mktemp("dask")
    parts = [
        start(folder, "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    ]
    try:
        parts += [
            start(folder, "dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard")
            for _ in range(2)
        ]
        yield wait_for_workers(folder / "scheduler.json", 2), parts
    finally:
        for part in parts:
            part.kill()
            part.wait()


def wait_for_workers(file, count):
    from distributed import Client

    end = time.monotonic() + WAIT
    while not file.exists() or not file.read_text():
        assert time.monotonic() < end, "the scheduler did not start"
        time.sleep(0.05)
    address = json.loads(file.read_text())["address"]
    with Client(address, timeout=WAIT, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=WAIT)
    return address


def test_a_cluster_gives_the_rows_of_this_machine(dask, tmp_path):
    address, _ = dask
    found = []
    for name, open_executor in (
        ("cluster", partial(cluster, address)),
        ("here", partial(processes, 1)),
    ):
        with Store(tmp_path / name, create=True) as store:
            outcome = run_study(store, making.study_of(TINY), open_executor)
            assert (outcome.computed, outcome.failures) == (len(TINY), ())
            found.append({run.task: making.without_times(run) for run in store.runs()})
    assert found[0] == found[1]


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


def test_a_model_and_a_planner_of_one_s_own_on_processes_and_on_a_cluster(dask, tmp_path):
    """The model travels with the task; the planner is imported where it runs."""
    address, _ = dask
    tailpath.write(tailpath.domains.gridworld("5x5", obstacle_cost=30), tmp_path / "road.json")
    (tmp_path / "my.toml").write_text(OWN)
    design = read_design(tmp_path / "my.toml")
    study = prepare(design, tasks(design))
    (tmp_path / "road.json").unlink()
    found = []
    for name, open_executor in (
        ("cluster", partial(cluster, address)),
        ("here", partial(processes, 1)),
    ):
        with Store(tmp_path / name, create=True) as store:
            outcome = run_study(store, study, open_executor)
            assert (outcome.computed, outcome.failures) == (4, ())
            found.append(
                sorted(
                    (making.without_times(one) for one in store.runs()),
                    key=lambda one: str(one.task),
                )
            )
        write_report(tmp_path / name)
    assert [(one.task.method, one.task.variant) for one in found[0]] == [
        *(("optimum", ""), ("quantile", "improved"), ("quantile", "published"), ("toy", ""))
    ]
    assert [one.points for one in found[0]] == [one.points for one in found[1]]


def test_what_is_lost_of_a_cluster_loses_no_finished_run(dask, tmp_path, monkeypatch):
    """First a worker is killed, and the other does the rest; then the scheduler, and the study ends
    with an error.
    """
    address, (scheduler, worker, _) = dask
    monkeypatch.setattr(runner, "perform", making.slow)
    chosen = making.sliced(only=["gridworld/5x5"], atoms=[7], lp="none")
    stored_at_death = []

    def kill(part, done, share, now):
        if done and part.poll() is None:
            stored_at_death.append(done)
            part.kill()

    with Store(tmp_path / "worker", create=True) as store:
        outcome = run_study(
            store,
            making.study_of(chosen),
            partial(cluster, address, patience=1),
            partial(kill, worker),
        )
        assert (outcome.computed, outcome.failures) == (len(chosen), ())
        assert {run.task for run in store.runs()} == set(chosen)
    with Store(tmp_path / "scheduler", create=True) as store:
        with pytest.raises(OptionError, match="no Dask scheduler answers"):
            run_study(
                store,
                making.study_of(chosen),
                partial(cluster, address, patience=1),
                partial(kill, scheduler),
            )
        assert 0 < len(store.runs()) < len(chosen)
    assert all(0 < count < len(chosen) for count in stored_at_death)


def test_a_study_without_workers_ends_with_a_message(tmp_path, monkeypatch):
    """The only worker is killed; and there is none from the beginning."""
    parts = [
        start(tmp_path, "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    ]
    monkeypatch.setattr(runner, "perform", making.slow)
    chosen = making.sliced(only=["gridworld/5x5"], atoms=[7], lp="none")
    try:
        parts.append(
            start(tmp_path, "dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard")
        )
        address = wait_for_workers(tmp_path / "scheduler.json", 1)

        def kill(done, share, now):
            if done:
                parts[1].kill()

        with Store(tmp_path / "store", create=True) as store:
            for progress in (kill, lambda done, share, now: None):
                with pytest.raises(
                    OptionError,
                    match=(
                        "has no workers; start some and run the study again: what is finished is"
                        " stored"
                    ),
                ):
                    run_study(
                        store,
                        making.study_of(chosen),
                        partial(cluster, address, patience=2),
                        progress,
                    )
            assert 0 < len(store.runs()) < len(chosen)
    finally:
        for part in parts:
            part.kill()
            part.wait()
