"""Run what is missing, and store each run the moment it is finished.

Tasks go to an executor, processes of this machine or the workers of a Dask cluster; finished runs
come out in any order, and this process alone writes them. If an executor breaks (a worker process
was killed or ran out of memory), a fresh one gets the rest. If that makes no progress, the tasks
left run one at a time, each on an executor of its own, so that the one to blame does not take the
others with it. A task that fails is reported and does not stop the others.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from forpecvar.design import Design, effort, simulated_method
from forpecvar.store import Edition, Run, Store, StudyTask
from forpecvar.work import WorkItem, perform, program
from tailpath import SSP
from tailpath.errors import OptionError

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


CONNECT_SECONDS = 10
MONITOR_SECONDS = 1.0


# ---------------------------------------------------------------------- executors


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


@contextmanager
def cluster(address: str, patience: float = CONNECT_SECONDS) -> Iterator[Executor]:
    """The workers of a running Dask scheduler, e.g. at tcp://host:8786; they need this version of
    the package.

    A scheduler that does not answer, or has no workers, for `patience` seconds is taken for none.
    """
    try:
        from distributed import Client
    except ImportError:
        raise OptionError("a cluster needs Dask: pip install distributed") from None
    with _quiet("distributed", "tornado"):
        try:
            client = Client(address, timeout=patience, set_as_default=False)
        except (OSError, ValueError) as error:
            raise OptionError(f"no Dask scheduler answers at {address}: {error}") from None
        with client, client.get_executor() as executor:
            try:
                client.wait_for_workers(1, timeout=patience)
            except TimeoutError:
                raise OptionError(
                    f"the Dask scheduler at {address} has no workers; start some and run the study"
                    " again: what is finished is stored"
                ) from None
            watched = WatchedExecutor(
                executor, partial(_lost, client, patience, [time.monotonic()])
            )
            try:
                yield watched
            finally:
                watched.finished.set()


def _lost(client: Any, patience: float, last_seen: list[float]) -> bool:
    """Whether the scheduler has gone, or has had no workers for a while; `last_seen` holds when it
    last had one.
    """
    if client.status in ("closing", "closed"):
        return True
    with suppress(OSError, TimeoutError):  # it may go while it is asked
        if client.nthreads():
            last_seen[0] = time.monotonic()
    return time.monotonic() - last_seen[0] > patience


class WatchedExecutor(Executor):
    """Hands tasks on to another executor, and breaks when that has gone: Dask would leave its
    futures open for ever.
    """

    def __init__(self, inner: Executor, gone: Callable[[], bool]) -> None:
        self.inner, self.gone = inner, gone
        self.finished = threading.Event()
        self._open: set[Future[Any]] = set()
        threading.Thread(target=self._watch, daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future = self.inner.submit(fn, *args, **options)
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        return future

    def _watch(self) -> None:
        while not self.finished.wait(MONITOR_SECONDS):
            if self.gone():
                # To leave it would otherwise wait for workers that never come.
                self.inner.shutdown(wait=False)
                for future in list(self._open):
                    with suppress(InvalidStateError):  # finished at the last moment
                        future.set_exception(BrokenExecutor("the cluster is gone"))


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Keep libraries from writing to the terminal; what matters comes as an exception."""
    known = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in names]
    loggers = [logging.getLogger(name) for name in known]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def start_worker() -> None:
    """Settle a fresh worker: one thread per worker, a quiet end at Ctrl-C, and no life after the
    study that started it.
    """
    os.environ["NUMBA_NUM_THREADS"] = (
        "1"  # read when the compiler is first imported, which has not happened yet
    )
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A pool's worker waits for tasks for ever if the study is killed: nobody is left to tell
        # it.
        parent.join()
        os._exit(1)
