"""Which changes of the source no test notices: `python -m tests.mutation`."""

import os

# Before numpy is imported: threads do not survive a fork.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
