"""Run what is missing, and store each run the moment it is finished.

Tasks go to a pool of processes; finished runs come out in any order, and this process alone writes
them. If a pool breaks (a worker was killed or ran out of memory), a fresh one gets the rest. If
that makes no progress, the tasks left run one at a time, each in a pool of its own, so that the one
to blame does not take the others with it. A task that fails is reported and stops no other.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from forpecvar.design import Design, effort, simulated_method
from forpecvar.store import Edition, Run, Store, StudyTask
from forpecvar.work import WorkItem, perform, program
from forpecvar.worker import start_worker
from tailpath import SSP

#: Executors that may break one after the other without a single run finished between them, before
#: tasks run one at a time.
FRUITLESS = 2

#: Told after every run: how many are done, their part of the effort, and what is next.
Progress = Callable[[int, float, str], None]
OpenExecutor = Callable[[], AbstractContextManager[Executor]]


@dataclass(frozen=True)
class Failure:
    task: StudyTask
    reason: str


@dataclass(frozen=True)
class Summary:
    """What happened: tasks computed now, found in the store, and failed; stored runs of other
    programs or models, which were left alone.
    """

    computed: int
    found: int
    others: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True, eq=False)
class Study:
    """A design made ready to run: its tasks, and its models, which travel to the
    workers with them.
    """

    design: Design
    tasks: Sequence[StudyTask]
    models: Mapping[tuple[str, str], SSP]

    @property
    def edition(self) -> Edition:
        """The edition that this program would write."""
        marks = {key: model.fingerprint for key, model in self.models.items()}
        return Edition(program(), marks, self.design.gamma, self.design.tolerance)


def prepare(design: Design, tasks: Sequence[StudyTask]) -> Study:
    return Study(design, tasks, {problem.key: problem.read() for problem in design.problems})


def run_study(
    store: Store,
    study: Study,
    open_executor: OpenExecutor,
    progress: Progress = lambda done, share, now: None,
) -> Summary:
    """Compute the tasks that the store does not have."""
    edition, tasks = study.edition, study.tasks
    found = store.finished(edition)
    missing = [task for task in tasks if task not in found]
    failures = (
        _Campaign(store, study, edition, missing, progress).run(open_executor) if missing else []
    )
    computed = len(missing) - len(failures)
    return Summary(computed, len(tasks) - len(missing), store.others(edition), tuple(failures))


class _Campaign:
    """The tasks left and done, while they run."""

    def __init__(
        self,
        store: Store,
        study: Study,
        edition: Edition,
        missing: Sequence[StudyTask],
        progress: Progress,
    ) -> None:
        self.store, self.study = store, study
        self.edition, self.progress = edition, progress
        self.left = dict.fromkeys(missing)
        self.all = sum(map(effort, missing))
        self.done = 0
        self.failures: list[Failure] = []

    def run(self, open_executor: OpenExecutor) -> list[Failure]:
        breaks = 0
        while self.left and breaks < FRUITLESS:
            before = len(self.left)
            with open_executor() as executor:
                self._run_on(executor, list(self.left))
            breaks = 0 if len(self.left) < before else breaks + 1
        for task in list(self.left):
            with open_executor() as executor:
                self._run_on(executor, [task])
            if task in self.left:
                self._fail(task, "its worker ended abruptly: killed, or out of memory")
        return self.failures

    def _run_on(self, executor: Executor, tasks: Sequence[StudyTask]) -> None:
        """Give tasks to an executor and take in what it finishes. It may break at any time; what it
        has not finished is left.
        """
        futures = {}
        try:
            for task in tasks:
                model, design = self.study.models[task.domain, task.problem], self.study.design
                simulated = simulated_method(design)
                job = WorkItem(task, model, design.repetitions, simulated, design.imports)
                futures[executor.submit(perform, job)] = task
        except BrokenExecutor:
            pass  # what was handed over tells its own story below
        self._report()
        for future in as_completed(futures):
            task = futures.pop(future)
            try:
                run = future.result()
            except (BrokenExecutor, CancelledError):
                continue
            except Exception as error:
                self._fail(task, f"{type(error).__name__}: {error}")
            else:
                self._take(task, run)
            self._report()

    def _take(self, task: StudyTask, run: Run) -> None:
        answer = run.answer
        if not self.edition.holds(task, answer.program, answer.fingerprint):
            self._fail(
                task,
                f"the worker has another program or model: {answer.program}, expected"
                f" {self.edition.program}",
            )
            return
        self.store.add(run)
        del self.left[task]
        self.done += 1

    def _report(self) -> None:
        share = 1 - sum(map(effort, self.left)) / self.all
        self.progress(self.done, share, str(next(iter(self.left), "")))

    def _fail(self, task: StudyTask, reason: str) -> None:
        del self.left[task]
        self.failures.append(Failure(task, " ".join(reason.split())))


@contextmanager
def processes(workers: int | None) -> Iterator[Executor]:
    """A pool of processes, one core each, as many as there are cores if not told. After an error,
    an interrupt included, no process is left behind.
    """
    before = set(multiprocessing.active_children())
    # Spawned, because a forked copy of a process with threads and compiled code may hang.
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=start_worker
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    pool.shutdown()
