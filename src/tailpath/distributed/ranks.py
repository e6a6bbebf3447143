"""Ranks, and what passes between them: the only module that imports MPI.

A rank works on its own nodes and on *ghosts*, copies of the nodes of others that its rows lead to.
A `Halo` knows who needs what; its lists are made once. All else is small: a best value, a largest
error, whether anything moved.

A job is a set of ranks with checkpoints, from which a sweep over budgets can be resumed. A
checkpoint is one file for each rank; when all have been written, rank 0 moves a file `complete`
into place that names them, and only then those that it named before go.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pathlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn, TypeVar

import numpy as np

from tailpath.dp.budget_model import Changes, new_changes
from tailpath.errors import FormatError, LimitExceededError, OptionError
from tailpath.formats.archives import Archive, write_archive
from tailpath.formats.files import load_json, read_text, write_text
from tailpath.graph import Array

Result = TypeVar("Result")
MISSING = "one model over several ranks needs mpi4py and an MPI: pip install 'tailpath[mpi]'"
#: What a program ends with where one rank has failed.
FAILED = 1


def world() -> Any:
    """All ranks of this job, a communicator of mpi4py."""
    try:  # importing it starts MPI, which nobody else wants
        return importlib.import_module("mpi4py.MPI").COMM_WORLD
    except (ImportError, RuntimeError) as error:
        raise OptionError(f"{MISSING} ({error})") from None


class Alone:
    """One rank in a process of its own, without MPI: what it gathers is its own."""

    rank, size = 0, 1

    def allgather(self, mine: Any) -> list[Any]:
        return [mine]

    def alltoall(self, mine: list[Any]) -> list[Any]:
        return mine

    def bcast(self, mine: Any) -> Any:
        return mine

    def Barrier(self) -> None:
        pass


def largest(comm: Any, value: float) -> float:
    """The largest of a number of every rank."""
    return float(max(comm.allgather(float(value))))


def anywhere(comm: Any, holds: Any) -> bool:
    """Whether something holds on some rank, or for a member of an array there."""
    return any(comm.allgather(bool(np.any(holds))))


def joined(comm: Any, array: Array) -> Array:
    """The arrays of all ranks, one after the other."""
    return np.concatenate(comm.allgather(array))


def together(comm: Any, work: Callable[[], Result], about: str = "") -> Result:
    """What a rank finds. Where it fails, the other ranks would wait for ever, so that it says why
    in one line and ends the job; `about` says what it has in memory.
    """
    try:
        return work()
    except LimitExceededError:  # all ranks have agreed on it
        raise
    except BaseException as error:
        if comm.size == 1:
            raise
        _end(comm, error, about)


def _end(comm: Any, error: BaseException, about: str) -> NoReturn:
    what = type(error).__name__
    if isinstance(error, MemoryError):
        what = f"out of memory with {about or 'its part'}, which is too large; take more ranks"
    text = f"{what}: {error}" if str(error) else what
    print(f"tailpath: rank {comm.rank} of {comm.size}: {text}", file=sys.__stderr__, flush=True)
    comm.Abort(FAILED)
    raise SystemExit(FAILED)


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
        """Bring the ghosts of values by node, (..., n), up to date."""
        for index, here in self._received(values):
            values[..., index] = here

    def repeat(self, step: Callable[[Array], None], values: Array, times: int) -> bool:
        """Take a step on values by node, (n,), and bring ghosts up to date, until nothing changes
        on any rank; whether so many times were enough."""
        for _ in range(times):
            before = values.copy()
            step(values)
            self.exchange(values)
            if not anywhere(self.comm, values != before):
                return True
        return False

    def gather_least(self, values: Array) -> None:
        """Lower values of own nodes to the least of what other ranks have for their ghosts."""
        back = replace(self, send=self.receive, receive=self.send)
        for node, here in back._received(values):
            np.minimum.at(values, node, here)


# ---------------------------------------------------------------------- jobs and checkpoints

#: Seconds between two checkpoints unless the caller says otherwise.
SECONDS = 60.0
#: The arrays of `Work` that change.
CHANGING = "value", "origin", "constant", "active", "next_node", "n_active", "choice", "residual"


@dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints of a job are stored, and how many seconds lie between two of them."""

    folder: pathlib.Path
    seconds: float = SECONDS


class PassCheckpoints:
    """The checkpoints of one pass over the levels, which goes on from the last complete one."""

    def __init__(self, where: Checkpoints, filling: Any) -> None:
        self.where, self.filling = where, filling
        self.comm = filling.part.halo.comm
        self.last, self.turn = time.monotonic(), 0
        self.name = self._name()
        self._resume()

    def _name(self) -> str:
        """What tells this pass from others: the parts, what is minimised, up to which level."""
        part, digest = self.filling.part, hashlib.sha256()
        columns = part.number, part.node_choices, part.outcome_start, part.target, part.level
        for array in (
            *columns,
            part.probability,
            part.nodes.value,
            self.filling.objective.criteria,
        ):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr(tuple(self.filling.objective)[1:]).encode())
        every = self.comm.allgather(digest.hexdigest())
        return hashlib.sha256("".join(every).encode()).hexdigest()[:16]

    def _file(self, turn: int, rank: int) -> pathlib.Path:
        return self.where.folder / f"{self.name}-{turn}-rank-{rank}-of-{self.comm.size}.npz"

    @property
    def _complete(self) -> pathlib.Path:
        return self.where.folder / f"{self.name}-complete.json"

    def save_now_and_then(self) -> None:
        """Write a checkpoint if it is time, which rank 0 decides."""
        if self.comm.bcast(time.monotonic() - self.last > self.where.seconds):
            self.save()

    def save(self) -> None:
        self.turn += 1
        self.where.folder.mkdir(parents=True, exist_ok=True)
        filling = self.filling
        arrays = {name: getattr(filling.work, name) for name in CHANGING}
        columns = [np.concatenate(column) for column in zip(*filling.changes)]
        arrays |= {f"changes_{i}": column for i, column in enumerate(columns)}
        arrays |= {"values": np.stack(filling.values), "state": np.array([filling.w, filling.best])}
        write_archive(str(self._file(self.turn, self.comm.rank)), arrays)
        self.comm.Barrier()
        if self.comm.rank == 0:
            text = json.dumps({"turn": self.turn, "level": filling.w, "ranks": self.comm.size})
            write_text(self._complete, text)
        self.comm.Barrier()
        self._file(self.turn - 1, self.comm.rank).unlink(missing_ok=True)
        self.last = time.monotonic()

    def _resume(self) -> None:
        known = self._complete.exists() if self.comm.rank == 0 else None
        if not self.comm.bcast(known):
            return
        found = load_json(read_text(str(self._complete)), str(self._complete))
        self.turn = int(found.get("turn", 0))
        mine = self._file(self.turn, self.comm.rank)
        try:
            self._take_over(Archive(str(mine)))
        except (FormatError, ValueError) as error:
            raise FormatError(f"{mine}: {error}; remove the folder to begin anew") from None

    def _take_over(self, found: Archive) -> None:
        filling = self.filling
        for name in CHANGING:
            array = getattr(filling.work, name)
            array[...] = found.array(name, array.dtype, array.ndim)
        if found.has("changes_0"):
            kinds = [column.dtype for column in new_changes(0)]
            columns = (found.array(f"changes_{i}", kind) for i, kind in enumerate(kinds))
            filling.changes[:] = [Changes(*columns)]
        filling.values[:] = list(found.array("values", np.float64, 2))
        w, filling.best = found.array("state", np.float64).tolist()
        filling.w = int(w)


@dataclass(frozen=True)
class Job:
    """Ranks, and what else they agree on; given instead of a communicator.

    Parameters
    ----------
    comm : communicator of mpi4py, or Alone
        The ranks.
    checkpoints : Checkpoints, optional
        Where the sweep over budgets can go on if it is killed.
    """

    comm: Any
    checkpoints: Checkpoints | None = None

    @classmethod
    def of(cls, comm: Any) -> Job:
        """The job of a communicator, or of this process alone; a job is itself."""
        if isinstance(comm, cls):
            return comm
        if comm is None:
            return cls(Alone())
        if not hasattr(comm, "allgather") or not hasattr(comm, "Irecv"):
            raise OptionError(f"comm must be a communicator of mpi4py, not {comm!r}")
        return cls(comm)

    def saving(self, folder: str | pathlib.Path, seconds: float = SECONDS) -> Job:
        return Job(self.comm, Checkpoints(pathlib.Path(folder), seconds))


def job_of_all(folder: str | None, seconds: float | None) -> Job:
    """All ranks of this program; with a folder, what they do is saved there now and then."""
    job = Job(world())
    return job if folder is None else job.saving(folder, SECONDS if seconds is None else seconds)
