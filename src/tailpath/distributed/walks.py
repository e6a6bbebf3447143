"""Runs of a policy on a model in parts: each walks from rank to rank.

The numbers of a step are drawn for all runs from the seed and the step alone, so that the runs do
not depend on how many ranks there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.search import PartGraph
from tailpath.kernels.steps import Steps, step_choices

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def walk_runs(graph: PartGraph, steps: Steps, runs: int, seed: int) -> FloatArray:
    """The total costs of so many runs, (runs,), on every rank; all ranks call this."""
    comm, unit = graph.comm, float(graph.part.unit)
    paid = np.zeros(runs, dtype=np.int64)
    run = np.arange(runs if graph.start >= 0 else 0)
    node = np.full(len(run), max(graph.start, 0))
    done, step = np.zeros(runs, dtype=np.int64), 0
    while sum(comm.allgather(len(run))):
        drawn = np.random.default_rng([seed, step]).random(runs)[run]
        outcome = _outcomes(graph, rows_taken(steps, node, steps.budget - paid[run]), drawn)
        paid[run] += graph.level[outcome]
        target = graph.decisions.target[outcome]
        arrived = target == graph.n
        done[run[arrived]] = paid[run[arrived]]
        run, node = _moved(graph, run[~arrived], target[~arrived], paid)
        step += 1
    return np.asarray(np.sum(comm.allgather(done), axis=0) * unit, dtype=np.float64)


def rows_taken(steps: Steps, node: IntArray, budget: IntArray) -> IntArray:
    """What is chosen at own nodes with so much budget."""
    row = np.empty(len(node), dtype=np.int64)
    step_choices(steps, node, budget, row)
    return row


def _outcomes(graph: PartGraph, row: IntArray, drawn: FloatArray) -> IntArray:
    """The outcome of each row that a number in [0, 1) stands for."""
    decisions = graph.decisions
    outcome = decisions.choice_outcomes[row].astype(np.int64)
    last, draw = decisions.choice_outcomes[row + 1] - 1, drawn.copy()
    going = np.arange(len(row))
    while len(going):
        chance = decisions.probability[outcome[going]]
        on = (draw[going] >= chance) & (outcome[going] < last[going])
        draw[going] -= np.where(on, chance, 0.0)
        going = going[on]
        outcome[going] += 1
    return outcome


def _moved(
    graph: PartGraph, run: IntArray, target: Array, paid: IntArray
) -> tuple[IntArray, IntArray]:
    """Runs and their nodes after a step: those that left for another rank are handed over."""
    away, halo = target >= graph.own, graph.halo
    sent: list[Any] = [None] * graph.comm.size
    for rank, ghosts in zip(halo.ranks, halo.receive):
        here = np.flatnonzero(away & np.isin(target, ghosts))
        sent[rank] = run[here], np.searchsorted(ghosts, target[here]), paid[run[here]]
    got = graph.comm.alltoall(sent)
    runs, nodes = [run[~away]], [target[~away].astype(np.int64)]
    for rank, send in zip(halo.ranks, halo.send):
        if got[rank] is not None:
            number, index, cost = got[rank]
            paid[number] = cost
            runs.append(number)
            nodes.append(send[index])
    return np.concatenate(runs), np.concatenate(nodes)
