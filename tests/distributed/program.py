"""What the ranks of a test run: `python -m tests.distributed.program WHAT [FOLDER]`.

Rank 0 prints one line of JSON. What must agree with one process is asserted here; what must agree
between numbers of ranks is printed.
"""

import json
import os
import pathlib
import signal
import sys

import numpy as np
from mpi4py import MPI

import tailpath as tp
from tailpath.distributed import fill
from tailpath.distributed.checkpoints import Checkpoints
from tailpath.distributed.generate import gridworld_part, river_part, sparse_part
from tailpath.distributed.job import Job
from tailpath.distributed.part import Part, whole_of

COMM = MPI.COMM_WORLD
#: Free moves in a row, and a zero-cost cycle, b - a - b, that leaks.
FREE = [
    ("a", "x", "b", 0.5, 0), ("a", "x", "c", 0.5, 1), ("b", "y", "c", 1, 0),
    ("c", "z", "d", 0.25, 0),
    ("c", "z", "a", 0.75, 2), ("d", "q", "g", 0.5, 0), ("d", "q", "b", 0.5, 3),
    ("d", "r", "g", 1, 2),
]  # fmt: skip
CYCLE = [*FREE, ("b", "w", "a", 0.5, 0), ("b", "w", "c", 0.5, 1)]
#: No step is cheaper than 3, so that three levels go with one exchange.
DEAR = [
    ("s", "a", "t", 0.5, 3),
    ("s", "a", "s", 0.5, 7),
    ("t", "b", "g", 0.5, 4),
    ("t", "b", "s", 0.5, 5),
]


def scattered(n: int, parts: int) -> tp.SSP:
    """A walk whose numbers jump, so that in so many parts every neighbour is on another rank."""
    number = np.argsort(np.argsort(np.arange(n) % parts, kind="stable")).tolist()
    rows = [
        (k, "creep", k, 0, 0) for k in range(n) if k != number[-1]
    ]  # left out, but for the order of numbers
    for back, here, on in zip([None, *number], number, number[1:]):
        rows.append((here, "creep", on, 1, 3))
        if back is not None:
            rows += [(here, "go", on, 0.7, 1), (here, "go", back, 0.3, 2)]
    return tp.SSP.from_outcomes(rows, number[0], [number[-1]])


def models() -> dict[str, tp.SSP]:
    return {
        "river": tp.domains.river(rows=10, columns=5),
        "grid": tp.domains.gridworld("8x9"),
        "sparse": whole_of(MPI.COMM_SELF, sparse_part(300, 0, 1)),
        "free": tp.SSP.from_outcomes(FREE, "a", ["g"]),
        "dear": tp.SSP.from_outcomes(DEAR, "s", ["g"]),
        "scattered 2": scattered(20, 2),
        "scattered 4": scattered(20, 4),
    }


def every_other(layout, ranks, objective):
    """The neighbours of a node are on other ranks."""
    return np.arange(layout.n) % ranks


def one_alone(layout, ranks, objective):
    """Rank 0 has all but one node, the last rank that one, and those between nothing."""
    owner = np.zeros(layout.n, dtype=np.int64)
    owner[-1] = ranks - 1
    return owner


def found_by(solution, policy):
    """All numbers of a solution and its policy, as text that keeps every bit."""
    arrays = solution.budgets, solution.steps, solution.excess, np.array(list(solution.error_bound))
    arrays += policy.first, policy.from_budget, policy.choice, policy.risk_neutral
    return [np.ascontiguousarray(each).tobytes().hex() for each in arrays]


def whole() -> dict[str, object]:
    """Models that every rank has: all is that of one process."""
    some = {**models(), "cycle": tp.SSP.from_outcomes(CYCLE, "a", ["g"])}
    for name, ssp in some.items():
        for options in ({}, {"lexicographic": True}):
            one = tp.solve_cvar_exact(ssp, 0.05, **options)
            for share in (None, every_other, one_alone):
                many = tp.solve_cvar_exact(ssp, 0.05, comm=Job(COMM, rank_of=share), **options)
                same = found_by(one, one.largest) == found_by(many, many.largest)
                assert same and one.bounds(0.05) == many.bounds(0.05), (name, options, share)
        one, many = tp.solve_on_time(ssp, 20), tp.solve_on_time(ssp, 20, comm=COMM)
        assert one.lateness.tolist() == many.lateness.tolist() and one.error == many.error, name
        for each in ("first", "from_budget", "choice"):
            assert np.array_equal(getattr(one.latest, each), getattr(many.latest, each)), name
    return {"checked": len(some)}


def parts() -> dict[str, object]:
    """Models in parts: found by so many ranks, to be compared with other numbers of them."""
    found = {}
    for name, ssp in models().items():
        part = Part.of(ssp, COMM.rank, COMM.size)
        best = tp.solve_cvar_exact(part, 0.05, comm=COMM)
        policy = best.largest.gather(ssp)
        late, mean = tp.solve_on_time(part, 20, comm=COMM), tp.solve_expected(part, comm=COMM)
        one, least = tp.solve_cvar_exact(ssp, 0.05), tp.solve_expected(ssp)
        low, high = best.bounds(0.05)
        assert low <= one.bounds(0.05)[1] and one.bounds(0.05)[0] <= high, name
        assert abs(best.cvar(0.05) / one.cvar(0.05) - 1) < 1e-11, name
        assert mean.bounds[0] <= least.bounds[1] and least.bounds[0] <= mean.bounds[1], name
        assert abs(tp.evaluate(ssp, policy, 0.05).cvar(0.05) / best.cvar(0.05) - 1) < 1e-11, name
        costs, integer_costs = best.policy(0.05).evaluate(0.05), tp.evaluate(ssp, policy, 0.05)
        assert costs.var() == integer_costs.var(0.05) == best.var(0.05), name
        assert abs(costs.cvar() / integer_costs.cvar(0.05) - 1) < 1e-12, name
        assert abs(costs.mean / integer_costs.mean - 1) < 1e-12, name
        low, high = costs.bounds()
        assert low <= integer_costs.bounds(0.05)[1] and integer_costs.bounds(0.05)[0] <= high, name
        assert low <= integer_costs.cvar(0.05) <= high and high - low < 1e-9 * high, name
        runs = best.policy(0.05).simulate(4000, seed=3)
        spread = 5 * runs.std() / np.sqrt(len(runs)) + 1e-9
        assert abs(runs.mean() - costs.mean) <= spread, (name, runs.mean(), costs.mean)
        assert (
            abs((runs > costs.var()).mean() - costs.tail[round(costs.var() / costs.unit)]) < 0.02
        ), name
        assert late.lateness.tolist() == tp.solve_on_time(ssp, 20).lateness.tolist(), name
        values = [
            np.concatenate(COMM.allgather(each)).tobytes().hex()
            for each in (mean.value, mean.lower, mean.upper)
        ]
        found[name] = [
            *found_by(best, policy),
            *values,
            runs.sum(),
            late.latest.gather(ssp).from_budget.tolist(),
        ]
    return found


def made() -> dict[str, object]:
    """Generated in parts: the models do not depend on how many there are."""
    ranks = COMM.rank, COMM.size
    some = (
        gridworld_part(7, 5, *ranks, share=0.2),
        river_part(6, 4, *ranks),
        sparse_part(9000, *ranks),
    )
    names = "outcome_target", "outcome_probability", "outcome_cost", "state_choices"
    wholes = [whole_of(COMM, part) for part in some]
    river = tp.domains.river(rows=6, columns=4)
    assert all(np.array_equal(getattr(wholes[1], name), getattr(river, name)) for name in names)
    return {
        "sums": [
            [float(np.asarray(getattr(each, name)).sum()) for name in names] for each in wholes
        ]
    }


def resumed(folder: str, killed_at: str) -> dict[str, object]:
    """Rank 1 is killed at a level, if it is not -1; otherwise the job goes on where it was."""
    level, advance = int(killed_at), fill.Filling.advance

    def dying(self, loss):
        if self.w == level and COMM.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        advance(self, loss)

    fill.Filling.advance = dying
    job = Job(COMM, Checkpoints(pathlib.Path(folder), levels=3))
    ssp = tp.domains.gridworld("14x16")
    best = tp.solve_cvar_exact(Part.of(ssp, COMM.rank, COMM.size), 0.01, comm=job)
    return {"found": found_by(best, best.largest.gather(ssp))}


def too_large() -> dict[str, object]:
    """The part of rank 1 does not fit."""

    def advance(self, loss):
        if COMM.rank == 1:
            raise MemoryError("Unable to allocate 1. TiB")

    fill.Filling.advance = advance
    tp.solve_cvar_exact(river_part(10, 5, COMM.rank, COMM.size), 0.05, comm=COMM)
    return {}


if __name__ == "__main__":
    result = globals()[sys.argv[1]](*sys.argv[2:])
    if COMM.rank == 0:
        print(json.dumps(result))
