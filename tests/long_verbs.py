"""Source of a script in which every verb runs long enough to be interrupted."""

from __future__ import annotations

#: Every verb that runs for long, on models that take it some hundredths of a second.
VERBS = """
import os
import random
import signal
import tempfile
import threading
import time

import tailpath as tp

def model(n, most):
    draw = random.Random(1)
    return tp.SSP.from_outcomes(
        [
            (state, action, min(target, n), 0.25, draw.randint(most // 2, most))
            for state in range(n)
            for action in range(3)
            for target in (state + 1, state + 2, max(state - 1, 0), draw.randint(0, n))
        ],
        start=0,
        goals=[n],
    )

SMALL, MIDDLE, LARGE = model(20, 20), model(150, 80), model(4000, 10)
POLICY = tp.solve_cvar_exact(MIDDLE, 0.01).policy(0.01)
CHOICES, ATOMS = tp.solve_expected(LARGE).policy, tp.solve_cvar_quantile(MIDDLE).policy(0.3)
LIMIT = tp.solve(SMALL, tp.CVaR(0.1)).value
INTERVALS = tp.IntervalSSP.around(model(60, 80), 0.02)
FOLDER = tempfile.TemporaryDirectory()

def files():
    found = []
    for suffix in ("npz", "json", "csv"):
        tp.write(LARGE, f"{FOLDER.name}/m.{suffix}")
        found.append(tp.read(f"{FOLDER.name}/m.{suffix}").n_outcomes)
    return found, sorted(os.listdir(FOLDER.name))

VERBS = {
    "solve_cvar_exact": lambda: tp.solve_cvar_exact(MIDDLE, 0.001).cvar(0.001),
    "its table": lambda: tp.solve_cvar_exact(MIDDLE, 0.01, lexicographic=True).mean(0.01),
    "intervals": lambda: tp.solve_cvar_exact(INTERVALS, 0.1).cvar(0.1),
    "frontier": lambda: tp.frontier(SMALL, tp.CVaR(0.1)).risk.tolist(),
    "solve": lambda: tp.solve(SMALL, tp.Mean(), [tp.CVaR(0.1) <= LIMIT * 1.0001]).bounds,
    "solve_on_time": lambda: tp.solve_on_time(MIDDLE, 9000).probability(9000),
    "solve_expected": lambda: tp.solve_expected(model(2000, 10)).bounds,
    "solve_cvar_quantile": lambda: tp.solve_cvar_quantile(MIDDLE).cvar(0.1),
    "solve_cvar_interpolation": lambda: tp.solve_cvar_interpolation(
        MIDDLE, inner="greedy"
    ).cvar(0.1),
    "evaluate": lambda: tp.evaluate(MIDDLE, POLICY, 0.0001).cvar(0.0001),
    "evaluate a table": lambda: tp.evaluate(LARGE, CHOICES, 0.01).cvar(0.01),
    "evaluate atoms": lambda: tp.evaluate(MIDDLE, ATOMS, 0.001).cvar(0.001),
    "bounds": lambda: tp.evaluate(MIDDLE, POLICY, 0.0001).bounds(0.0001),
    "simulate": lambda: tp.simulate(MIDDLE, POLICY, 50_000, 1).sum(),
    "simulate a function": lambda: tp.simulate(
        SMALL, tp.HistoryPolicy(lambda passed: 0), 500, 1
    ).sum(),
    "files": lambda: files(),
}
"""
