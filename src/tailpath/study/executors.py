"""Where tasks run: processes of this machine, or the workers of a Dask cluster. Both are a
`concurrent.futures.Executor`.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
)
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from tailpath.errors import OptionError

CONNECT_SECONDS = 10
MONITOR_SECONDS = 1.0


@contextmanager
def processes(workers: int) -> Iterator[Executor]:
    """A pool of processes, one core each. After an error, an interrupt included, no process is left
    behind.
    """
    if workers < 1:
        raise OptionError(f"the number of workers must be 1 or more, not {workers}")
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
        raise OptionError("a cluster needs Dask: pip install 'tailpath[cluster]'") from None
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
