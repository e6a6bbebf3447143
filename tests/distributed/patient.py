"""A communicator whose ranks sleep while they wait: MPI spins, which on a machine with fewer cores
than ranks takes the time of those who work.
"""

import time
from typing import Any

#: Looked at so often, at first and later.
SHORT, LONG = 5e-5, 1e-2
#: What all ranks call together.
COLLECTIVE = "allgather", "alltoall", "bcast", "Bcast", "Barrier"


class Patient:
    """What the communicator does, after all ranks have come to do it."""

    def __init__(self, comm: Any) -> None:
        self._comm, self.rank, self.size = comm, comm.rank, comm.size

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._comm, name)
        if name not in COLLECTIVE:
            return found

        def after_all_came(*arguments: Any, **options: Any) -> Any:
            Request(self._comm.Ibarrier()).Wait()
            return found(*arguments, **options)

        return after_all_came

    def Irecv(self, *arguments: Any) -> Any:
        return Request(self._comm.Irecv(*arguments))

    def Isend(self, *arguments: Any) -> Any:
        return Request(self._comm.Isend(*arguments))


class Request:
    """A message under way."""

    def __init__(self, request: Any) -> None:
        self._request = request

    def Wait(self) -> None:
        pause = SHORT
        while not self._request.Test():
            time.sleep(pause)
            pause = min(2 * pause, LONG)
