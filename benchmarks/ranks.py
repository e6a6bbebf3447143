"""One model over ranks: `mpiexec -n 2 python -m benchmarks.ranks river:500x2000`.

By rank: states, ghosts, seconds on the clock (and of the processor, without and with waiting for
others) to make the part, for V* and for the table at alpha 0.01, peak memory, and what was sent, in
messages and bytes, each against what docs/scale.md predicts: 8 bytes for each node that another
rank needs, per sweep and per level. Weak scaling is a grid with twice the rows on twice the ranks,
strong scaling the same grid.
"""

from __future__ import annotations

import resource
import sys
import time
from types import SimpleNamespace
from typing import Any

import tailpath as tp
from tailpath.distributed.expected import solve_part_expected
from tailpath.distributed.fill import fill_part
from tailpath.distributed.layout import lay_out_part
from tailpath.distributed.part import Part
from tailpath.distributed.ranks import world
from tailpath.distributed.search import graph_of
from tailpath.distributed.solving import sure_budgets
from tailpath.dp.budget_model import EXCESS
from tailpath.dp.sweeps import EVALUATIONS, PLAIN_ROUNDS, SLOW_EVALUATIONS

ALPHA = 0.01


#: What all ranks call together.
COLLECTIVE = "allgather", "alltoall", "bcast", "Bcast", "Barrier"


class Waiting:
    """The communicator, and the processor seconds of its calls: MPI spins while it waits."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.size, self.seconds = comm, comm.rank, comm.size, 0.0

    def timed(self, call: Any) -> Any:
        def waited(*arguments: Any) -> Any:
            begin = time.process_time()
            found = call(*arguments)
            self.seconds += time.process_time() - begin
            return found

        return waited

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.comm, name)
        return self.timed(found) if name in COLLECTIVE else found

    def Irecv(self, *arguments: Any) -> Any:
        return SimpleNamespace(Wait=self.timed(self.comm.Irecv(*arguments).Wait))

    def Isend(self, *arguments: Any) -> Any:
        return SimpleNamespace(Wait=self.timed(self.comm.Isend(*arguments).Wait))


class Clock:
    """Seconds since the last look: on the clock, of the processor, and of it without waiting."""

    def __init__(self, comm: Waiting) -> None:
        self.comm = comm
        self.before = self._now()

    def _now(self) -> tuple[float, float, float]:
        processor = time.process_time()
        return time.perf_counter(), processor - self.comm.seconds, processor

    def __str__(self) -> str:
        last, self.before = self.before, self._now()
        clock, working, processor = (now - then for now, then in zip(self.before, last))
        return f"{clock:.2f} s ({working:.2f}, {processor:.2f})"


def measured(name: str, comm: Waiting) -> list[str]:
    """What a rank has to say about a model."""
    clock = Clock(comm)
    part = Part.here(tp.read(name), comm)
    said = [f"{len(part.is_goal)} states", f"made in {clock}"]
    expected = solve_part_expected(graph_of(comm, part))
    graph, rounds = expected.graph, expected.rounds
    said.append(f"V* in {clock}, {rounds} rounds")
    needed = sum(map(len, graph.halo.send))
    messages = sum(len(each) > 0 for each in graph.halo.send)
    # At most; the searches for distances send some more.
    sweeps = swept(rounds)
    said.append(f"sent {_sent(graph.halo.sent)}, {messages * sweeps}, {8 * needed * sweeps}")
    layout = lay_out_part(expected, sure_budgets(expected))
    said.append(f"laid out in {clock}")
    before = list(graph.halo.sent)
    found = fill_part(layout, layout.objective(EXCESS, weight=1.0, price=1 / ALPHA))
    levels = len(found.values) - 1
    said.append(f"{levels} levels in {clock}")
    sent = [now - then for now, then in zip(graph.halo.sent, before)]
    said.append(f"sent {_sent(sent)}, {levels * len(graph.halo.ranks)}, {8 * needed * levels}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [*said, f"{graph.n - graph.own} ghosts", f"{memory:.2f} GB"]


def swept(rounds: int) -> int:
    """How many sweeps so many rounds of value iteration are."""
    quick, slow = min(rounds, PLAIN_ROUNDS) - 1, max(rounds - PLAIN_ROUNDS, 0)
    return rounds + quick * EVALUATIONS + slow * (SLOW_EVALUATIONS + 2)


def _sent(sent: list[int]) -> str:
    return f"{sent[0]} messages, {sent[1]} bytes; predicted"


def main(name: str) -> None:
    """Rank 0 prints what all have to say."""
    comm = Waiting(world())
    measured("river:20x20", comm)  # so that everything is loaded
    for rank, said in enumerate(comm.allgather(measured(name, comm))):
        if comm.rank == 0:
            print(f"{name}, rank {rank} of {comm.size}: " + "; ".join(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
