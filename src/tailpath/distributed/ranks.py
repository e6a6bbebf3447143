"""Ranks, and their messages: the only module that imports MPI.

A rank works on its own nodes and on *ghosts*, copies of the nodes of others that its rows lead to.
A `Halo` knows who needs what; its lists are made once. All else is small: a best value, a largest
error, whether anything moved.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tailpath.errors import LimitExceededError, OptionError
from tailpath.graph import Array

Result = TypeVar("Result")
MISSING = "one model over several ranks needs mpi4py and an MPI: pip install 'tailpath[mpi]'"
#: The exit code if one rank has failed.
FAILED = 1


def world() -> Any:
    """All ranks of this job, a communicator of mpi4py."""
    try:  # importing it starts MPI, which must not happen elsewhere
        return importlib.import_module("mpi4py.MPI").COMM_WORLD
    except (ImportError, RuntimeError) as error:
        raise OptionError(f"{MISSING} ({error})") from None


class Alone:
    """One rank in a process of its own, without MPI: it gathers only its own values."""

    rank, size = 0, 1

    def allgather(self, mine: Any) -> list[Any]:
        return [mine]

    def alltoall(self, mine: list[Any]) -> list[Any]:
        return mine


def ranks_of(comm: Any) -> Any:
    """The communicator that was given, or this process alone."""
    if comm is not None and not hasattr(comm, "allgather"):
        raise OptionError(f"comm must be a communicator of mpi4py, not {comm!r}")
    return Alone() if comm is None else comm


def largest(comm: Any, value: float) -> float:
    """The largest value of all ranks."""
    return float(max(comm.allgather(float(value))))


def anywhere(comm: Any, holds: Any) -> bool:
    """Whether something holds on some rank, or for a member of an array there."""
    return any(comm.allgather(bool(np.any(holds))))


def joined(comm: Any, array: Array) -> Array:
    """The arrays of all ranks, one after the other."""
    return np.concatenate(comm.allgather(array))


def together(comm: Any, work: Callable[[], Result], about: str = "") -> Result:
    """The result of `work`. If it fails, the other ranks would wait for ever, so this one prints
    why in one line and ends the job; `about` describes what it has in memory.
    """
    try:
        return work()
    except LimitExceededError:  # all ranks have agreed on it
        raise
    except BaseException as error:
        if comm.size == 1:
            raise
        what = type(error).__name__
        if isinstance(error, MemoryError):
            what = f"out of memory for {about or 'its part'}; use more ranks"
        text = f"{what}: {error}" if str(error) else what
        print(f"tailpath: rank {comm.rank} of {comm.size}: {text}", file=sys.__stderr__, flush=True)
        comm.Abort(FAILED)
        raise SystemExit(FAILED) from error


@dataclass(frozen=True, eq=False)
class Halo:
    """Who needs what: `send[i]` are indices of own nodes that rank `ranks[i]` has ghosts of, and
    `receive[i]` those of the ghosts here of nodes of that rank, both in the same order. `sent`
    counts the messages and bytes that have left this rank, those of its parts among them.
    """

    comm: Any
    ranks: tuple[int, ...]
    send: tuple[Array, ...]
    receive: tuple[Array, ...]
    sent: list[int] = field(default_factory=lambda: [0, 0])

    @classmethod
    def of(cls, comm: Any, owner: Array, number: Array, first: int, find: Any) -> Halo:
        """The ghosts here are nodes `number` (g,), rising, of ranks `owner` (g,), at indices from
        `first` on; `find(numbers)` has the indices of own nodes that others ask for."""
        wanted = [np.asarray(number[owner == rank], dtype=np.int64) for rank in range(comm.size)]
        index = [first + np.flatnonzero(owner == rank) for rank in range(comm.size)]
        asked = comm.alltoall(wanted)
        some = [rank for rank in range(comm.size) if len(asked[rank]) or len(wanted[rank])]
        send = tuple(np.asarray(find(asked[rank]), dtype=np.int64) for rank in some)
        return cls(comm, tuple(some), send, tuple(index[rank] for rank in some))

    @cached_property
    def boundary(self) -> Array:
        """The indices of own nodes that others have ghosts of, rising."""
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *self.send]))

    def _received(self, values: Array) -> list[tuple[Array, Array]]:
        """Send what others need of values by node, (..., n), and wait for what is needed here:
        indices here, and what came for them.
        """
        shape, kind = values.shape[:-1], values.dtype
        incoming = [np.empty((*shape, len(index)), kind) for index in self.receive]
        asked = [(rank, here) for rank, here in zip(self.ranks, incoming) if here.size]
        requests = [self.comm.Irecv(here, rank) for rank, here in asked]
        # Which must stay until all have arrived.
        outgoing = [np.ascontiguousarray(values[..., index]) for index in self.send]
        for rank, there in zip(self.ranks, outgoing):
            if there.size:
                requests.append(self.comm.Isend(there, rank))
                self.sent[0] += 1
                self.sent[1] += there.nbytes
        for request in requests:
            request.Wait()
        return list(zip(self.receive, incoming))

    def exchange(self, values: Array) -> None:
        """Update the ghosts of values by node, (..., n)."""
        for index, here in self._received(values):
            values[..., index] = here

    def gather_least(self, values: Array) -> None:
        """Lower values of own nodes to the least of what other ranks have for their ghosts."""
        back = replace(self, send=self.receive, receive=self.send)
        for node, here in back._received(values):
            np.minimum.at(values, node, here)
