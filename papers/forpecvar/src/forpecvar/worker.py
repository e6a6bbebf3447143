"""What a worker does first, before it imports anything of tailpath, which reads its environment."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def start_worker() -> None:
    """Settle a fresh worker: kernels are compiled in the warm-up, none runs as it is written; one
    thread; a quiet end at Ctrl-C, and no life after the study that started it.
    """
    os.environ |= {"TAILPATH_COMPILE": "1", "NUMBA_NUM_THREADS": "1"}
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A pool's worker waits for tasks for ever if the study is killed: nobody is left to tell
        # it.
        parent.join()
        os._exit(1)
