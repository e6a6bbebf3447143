"""A job over several ranks: who takes part, and its checkpoints, from which a sweep over budgets
can go on. Every rank writes its part, and all or none of them count.

A checkpoint is one file for each rank, written under another name and then moved. When all have
been, rank 0 moves a file `complete` into place that names them. What it named before goes only
then, so that at every moment one complete checkpoint is there, or none yet. The same job, started
again, goes on from it; values, changes and everything else are read as they were: the same bits.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailpath.distributed.ranks import Alone
from tailpath.dp.budget_model import Changes
from tailpath.errors import FormatError, OptionError

#: Seconds between two checkpoints unless the caller says otherwise.
SECONDS = 60.0
#: The arrays of `Work` that change.
CHANGING = "value", "origin", "constant", "active", "next_node", "n_active", "choice"
#: And what a pass found so far, beside the level.
SUMMARY = "best", "error", "residual", "given_away"


@dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints of a job are stored, and how many seconds lie between two of them, or, if
    `levels` is given, how many exchanges."""

    folder: pathlib.Path
    seconds: float = SECONDS
    levels: int | None = None

    def of_pass(self, filling: Any) -> PassCheckpoints:
        """Those of one pass over the levels, which goes on where the last complete one was made."""
        found = PassCheckpoints(self, filling)
        found.resume()
        return found


class PassCheckpoints:
    """The checkpoints of one pass over the levels."""

    def __init__(self, where: Checkpoints, filling: Any) -> None:
        self.where, self.filling = where, filling
        self.comm = filling.part.halo.comm
        self.last, self.turn = time.monotonic(), 0
        self.count = 0
        self.name = self._name()

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
        self.count += 1
        if self.where.levels is not None:
            due = self.count % self.where.levels == 0
        else:
            due = self.comm.bcast(time.monotonic() - self.last > self.where.seconds)
        if due:
            self.save()

    def save(self) -> None:
        """Write a checkpoint, all ranks together."""
        self.turn += 1
        self.where.folder.mkdir(parents=True, exist_ok=True)
        filling = self.filling
        arrays = {name: getattr(filling.work, name) for name in CHANGING}
        columns = [np.concatenate(column) for column in zip(*filling.changes)]
        state = [filling.w, *(getattr(filling, name) for name in SUMMARY)]
        arrays |= {f"changes_{i}": column for i, column in enumerate(columns)}
        arrays |= {"values": np.stack(filling.values), "state": np.array(state, dtype=np.float64)}
        mine = self._file(self.turn, self.comm.rank)
        _move_into_place(mine, lambda stream: np.savez(stream, **arrays))
        self.comm.Barrier()
        if self.comm.rank == 0:
            text = json.dumps({"turn": self.turn, "level": filling.w, "ranks": self.comm.size})
            _move_into_place(self._complete, lambda stream: stream.write(text.encode()))
        self.comm.Barrier()
        self._file(self.turn - 1, self.comm.rank).unlink(missing_ok=True)
        self.last = time.monotonic()

    def resume(self) -> None:
        """Go on from the last complete checkpoint, if there is one."""
        known = self._complete.exists() if self.comm.rank == 0 else None
        if not self.comm.bcast(known):
            return
        text = self._complete.read_text(encoding="utf-8") if self.comm.rank == 0 else None
        self.turn = int(json.loads(self.comm.bcast(text))["turn"])
        mine, filling = self._file(self.turn, self.comm.rank), self.filling
        try:
            with np.load(mine) as found:
                for name in CHANGING:
                    getattr(filling.work, name)[...] = found[name]
                if "changes_0" in found:
                    filling.changes[:] = [Changes(*(found[f"changes_{i}"] for i in range(3)))]
                filling.values[:] = list(found["values"])
                w, *summary = found["state"].tolist()
                for name, value in zip(SUMMARY, summary, strict=True):
                    setattr(filling, name, value)
        except (OSError, KeyError, ValueError) as error:
            raise FormatError(f"{mine}: {error}; remove the folder to begin anew") from None
        filling.w = int(w)


def _move_into_place(path: pathlib.Path, write: Any) -> None:
    """Write a file so that it is complete or not there at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with open(unfinished, "wb") as stream:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(unfinished, path)


@dataclass(frozen=True)
class Job:
    """Ranks, and what else they agree on; given instead of a communicator.

    Parameters
    ----------
    comm : communicator of mpi4py, or Alone
        The ranks.
    checkpoints : Checkpoints, optional
        Where the sweep over budgets can go on if it is killed.
    rank_of : callable, optional
        `rank_of(layout, ranks, objective)` shares out the nodes of a layout that every rank has.
    """

    comm: Any
    checkpoints: Checkpoints | None = None
    rank_of: Callable[..., Any] | None = None

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
        """The same job with checkpoints."""
        return Job(self.comm, Checkpoints(pathlib.Path(folder), seconds), self.rank_of)
