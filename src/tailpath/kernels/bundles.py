"""Choices whose segments (`kernels.segments`) have one order, in bundles.

Choices of a node often have the same targets at the same costs, with other probabilities: to the
neighbours of a cell, for example. The order of the segments is then the same for all of them. A
*bundle* is a row of consecutive choices of a node with (nearly) the same pairs of target and cost,
its *runs*.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.kernels.jit import Array, kernel


class Bundles(NamedTuple):
    """The bundles of each node, their choices and their runs.

    `position[o]` is the run of outcome o within its bundle; `run_probability` has the probability
    of every run for each choice, from `choice_start` on.
    """

    node_bundles: Array
    bundle_choices: Array
    bundle_runs: Array
    run_target: Array
    run_cost: Array
    position: Array
    choice_start: Array
    run_probability: Array


@kernel
def make_bundles(
    node_choices: Array, choice_outcomes: Array, target: Array, cost: Array, out: Bundles
) -> tuple[int, int]:
    """Put choices into bundles; returns how many bundles and runs there are. `out` is long
    enough for one bundle a choice, one run an outcome.

    A choice joins the bundle before it unless more than a third of the runs would then be foreign
    to it or to the others.
    """
    bundles, fewest = 0, 0
    runs: Any = np.int64(0)
    end: Any = np.int64(0)
    out.node_bundles[0], out.bundle_runs[0] = 0, 0
    for node in range(len(node_choices) - 1):
        for choice in range(node_choices[node], node_choices[node + 1]):
            first, last = choice_outcomes[choice], choice_outcomes[choice + 1]
            begin = out.bundle_runs[bundles - 1] if choice > node_choices[node] else runs
            fewest = min(fewest, last - first)
            if 2 * (runs - begin) <= 3 * fewest:
                end = _match(begin, runs, first, last, target, cost, out)
            if 2 * (max(end, runs) - begin) > 3 * fewest:
                begin = runs
                end = _match(begin, begin, first, last, target, cost, out)
            if begin == runs:
                out.bundle_choices[bundles] = choice
                bundles += 1
                fewest = last - first
            runs = end
            out.bundle_runs[bundles] = runs
        out.node_bundles[node + 1] = bundles
    out.bundle_choices[bundles] = node_choices[len(node_choices) - 1]
    return bundles, runs


@kernel
def _match(
    begin: int, end: int, first: int, last: int, target: Array, cost: Array, out: Bundles
) -> int:
    """Find the outcomes first .. last - 1 among the runs begin .. end - 1, adding those that are
    missing; returns the new end.

    Choices with very many outcomes are compared in order only.
    """
    found = end
    for outcome in range(first, last):
        run = begin + (outcome - first) if last - first > 64 else begin
        stop = min(run + 1, end) if last - first > 64 else end
        while run < stop and not (
            out.run_target[run] == target[outcome] and out.run_cost[run] == cost[outcome]
        ):
            run += 1
        if run >= stop:
            run = found
            out.run_target[run], out.run_cost[run] = target[outcome], cost[outcome]
            found += 1
        out.position[outcome] = run - begin
    return found
