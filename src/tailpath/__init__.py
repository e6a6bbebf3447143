"""Exact tail risk for stochastic shortest paths: VaR and CVaR of any policy, and the optimum.

Costs are minimised. `alpha` in (0, 1] is the mass of the worst tail: CVaR at 0.05 is the mean of
the worst 5 % of all runs. A run starts at the start of the model and ends at a goal; its total
cost is Z.

Each name is loaded when it is first used: that keeps `tailpath --help` and `tailpath info` free of
the numerical libraries they do not need.

Examples
--------
The examples of all docstrings go on from this one: two ways to work, and the costs of the first.

>>> import tailpath as tp
>>> ssp = tp.SSP.from_outcomes([("home", "road", "work", 0.9, 20),
...                             ("home", "road", "work", 0.1, 60),
...                             ("home", "train", "work", 1, 30)], "home", ["work"])
>>> costs = tp.evaluate(ssp, {"home": "road"}, 0.05)
>>> costs.mean, costs.cvar(0.1)
(24.0, 60.0)
>>> tp.solve_cvar_exact(ssp, 0.1).cvar(0.1)
30.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tailpath.version import __version__

if TYPE_CHECKING:
    from tailpath import domains as domains
    from tailpath import methods as methods
    from tailpath.errors import TailpathError as TailpathError
    from tailpath.errors import TailpathWarning as TailpathWarning
    from tailpath.evaluation.band import CostBand as CostBand
    from tailpath.evaluation.distribution import CostDistribution as CostDistribution
    from tailpath.evaluation.evaluate import evaluate as evaluate
    from tailpath.evaluation.simulation import Estimate as Estimate
    from tailpath.evaluation.simulation import estimate as estimate
    from tailpath.evaluation.simulation import simulate as simulate
    from tailpath.formats import read as read
    from tailpath.formats import write as write
    from tailpath.formats.policy_files import read_policy as read_policy
    from tailpath.formats.policy_files import write_policy as write_policy
    from tailpath.methods.comparison import compare as compare
    from tailpath.model.clock import clock as clock
    from tailpath.model.durations import durations as durations
    from tailpath.model.endings import give_up as give_up
    from tailpath.model.endings import within as within
    from tailpath.model.interval import IntervalSSP as IntervalSSP
    from tailpath.model.ssp import SSP as SSP
    from tailpath.pictures.distributions import plot_tails as plot_tails
    from tailpath.pictures.progress import show_progress as show_progress
    from tailpath.policies.atoms import log_atoms as log_atoms
    from tailpath.policies.budget import BudgetPolicy as BudgetPolicy
    from tailpath.policies.chain import CostChain as CostChain
    from tailpath.policies.given import policy as policy
    from tailpath.policies.kinds import AtomPolicy as AtomPolicy
    from tailpath.policies.kinds import HistoryPolicy as HistoryPolicy
    from tailpath.policies.kinds import MarkovPolicy as MarkovPolicy
    from tailpath.policies.kinds import MemoryPolicy as MemoryPolicy
    from tailpath.policies.kinds import Policy as Policy
    from tailpath.policies.mixed import MixedPolicy as MixedPolicy
    from tailpath.policies.unrolling import unroll as unroll
    from tailpath.risk.cvar import CVaR as CVaR
    from tailpath.risk.late import Late as Late
    from tailpath.risk.loss import Loss as Loss
    from tailpath.risk.mean import Mean as Mean
    from tailpath.risk.shortfall import Shortfall as Shortfall
    from tailpath.risk.var import VaR as VaR
    from tailpath.show.differences import differences as differences
    from tailpath.show.runs import trace as trace
    from tailpath.show.runs import worst_runs as worst_runs
    from tailpath.solvers.arrival import given_arrival as given_arrival
    from tailpath.solvers.arrival import solve_arrival as solve_arrival
    from tailpath.solvers.exact.solver import solve_cvar_exact as solve_cvar_exact
    from tailpath.solvers.expectation import solve_expected as solve_expected
    from tailpath.solvers.improvement import improve as improve
    from tailpath.solvers.objectives.frontier import frontier as frontier
    from tailpath.solvers.objectives.on_time import solve_on_time as solve_on_time
    from tailpath.solvers.objectives.solve import solve as solve
    from tailpath.solvers.published.interpolation import solve_cvar_interpolation as solve_cvar_interpolation
    from tailpath.solvers.published.quantile import solve_cvar_quantile as solve_cvar_quantile

_HOME = {
    "plot_tails": "tailpath.pictures.distributions",
    "show_progress": "tailpath.pictures.progress",
    "SSP": "tailpath.model.ssp",
    "IntervalSSP": "tailpath.model.interval",
    "CostBand": "tailpath.evaluation.band",
    "policy": "tailpath.policies.given",
    "Policy": "tailpath.policies.kinds",
    "MarkovPolicy": "tailpath.policies.kinds",
    "AtomPolicy": "tailpath.policies.kinds",
    "BudgetPolicy": "tailpath.policies.budget",
    "MemoryPolicy": "tailpath.policies.kinds",
    "HistoryPolicy": "tailpath.policies.kinds",
    "CostChain": "tailpath.policies.chain",
    "CostDistribution": "tailpath.evaluation.distribution",
    "TailpathError": "tailpath.errors",
    "TailpathWarning": "tailpath.errors",
    "read": "tailpath.formats",
    "write": "tailpath.formats",
    "read_policy": "tailpath.formats.policy_files",
    "write_policy": "tailpath.formats.policy_files",
    "log_atoms": "tailpath.policies.atoms",
    "solve_expected": "tailpath.solvers.expectation",
    "solve_cvar_quantile": "tailpath.solvers.published.quantile",
    "solve_cvar_interpolation": "tailpath.solvers.published.interpolation",
    "solve_cvar_exact": "tailpath.solvers.exact.solver",
    "compare": "tailpath.methods.comparison",
    "clock": "tailpath.model.clock",
    "durations": "tailpath.model.durations",
    "give_up": "tailpath.model.endings",
    "within": "tailpath.model.endings",
    "given_arrival": "tailpath.solvers.arrival",
    "solve_arrival": "tailpath.solvers.arrival",
    "improve": "tailpath.solvers.improvement",
    "unroll": "tailpath.policies.unrolling",
    "evaluate": "tailpath.evaluation.evaluate",
    "simulate": "tailpath.evaluation.simulation",
    "trace": "tailpath.show.runs",
    "worst_runs": "tailpath.show.runs",
    "differences": "tailpath.show.differences",
    "estimate": "tailpath.evaluation.simulation",
    "Estimate": "tailpath.evaluation.simulation",
    "CVaR": "tailpath.risk.cvar",
    "Late": "tailpath.risk.late",
    "Loss": "tailpath.risk.loss",
    "Mean": "tailpath.risk.mean",
    "Shortfall": "tailpath.risk.shortfall",
    "VaR": "tailpath.risk.var",
    "MixedPolicy": "tailpath.policies.mixed",
    "solve": "tailpath.solvers.objectives.solve",
    "solve_on_time": "tailpath.solvers.objectives.on_time",
    "frontier": "tailpath.solvers.objectives.frontier",
}

__all__ = ["__version__", "domains", "methods", *_HOME]


def __getattr__(name: str) -> Any:
    if name in ("domains", "methods"):
        return importlib.import_module(f"tailpath.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'tailpath' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
