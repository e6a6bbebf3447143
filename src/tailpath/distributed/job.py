"""A job over several ranks: who takes part, and where its checkpoints are."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tailpath.distributed.checkpoints import SECONDS, Checkpoints
from tailpath.distributed.ranks import Alone
from tailpath.errors import OptionError


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
