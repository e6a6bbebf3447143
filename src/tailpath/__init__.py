"""Exact tail risk for stochastic shortest paths: the public names, each loaded when it is first used.

Loading late keeps `tailpath --help` and `tailpath info` free of the numerical libraries they do not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tailpath.version import __version__

if TYPE_CHECKING:
    from tailpath import domains as domains
    from tailpath.atoms import log_atoms as log_atoms
    from tailpath.chain import CostChain as CostChain
    from tailpath.chain import unroll as unroll
    from tailpath.distribution import CostDistribution as CostDistribution
    from tailpath.errors import TailpathError as TailpathError
    from tailpath.errors import TailpathWarning as TailpathWarning
    from tailpath.evaluation import evaluate as evaluate
    from tailpath.evaluation.simulation import Estimate as Estimate
    from tailpath.evaluation.simulation import estimate as estimate
    from tailpath.evaluation.simulation import simulate as simulate
    from tailpath.formats import read as read
    from tailpath.formats import write as write
    from tailpath.formats.policy_files import read_policy as read_policy
    from tailpath.formats.policy_files import write_policy as write_policy
    from tailpath.improvement import improve as improve
    from tailpath.model import SSP as SSP
    from tailpath.policies import AtomPolicy as AtomPolicy
    from tailpath.policies import BudgetPolicy as BudgetPolicy
    from tailpath.policies import HistoryPolicy as HistoryPolicy
    from tailpath.policies import MarkovPolicy as MarkovPolicy
    from tailpath.policies import MemoryPolicy as MemoryPolicy
    from tailpath.policies import Policy as Policy
    from tailpath.solvers.cvar_exact import solve_cvar_exact as solve_cvar_exact
    from tailpath.solvers.cvar_interpolation import solve_cvar_interpolation as solve_cvar_interpolation
    from tailpath.solvers.cvar_quantile import solve_cvar_quantile as solve_cvar_quantile
    from tailpath.solvers.expectation import solve_expected as solve_expected

_HOME = {
    "SSP": "tailpath.model",
    "Policy": "tailpath.policies",
    "MarkovPolicy": "tailpath.policies",
    "AtomPolicy": "tailpath.policies",
    "BudgetPolicy": "tailpath.policies",
    "MemoryPolicy": "tailpath.policies",
    "HistoryPolicy": "tailpath.policies",
    "CostChain": "tailpath.chain",
    "CostDistribution": "tailpath.distribution",
    "TailpathError": "tailpath.errors",
    "TailpathWarning": "tailpath.errors",
    "read": "tailpath.formats",
    "write": "tailpath.formats",
    "read_policy": "tailpath.formats.policy_files",
    "write_policy": "tailpath.formats.policy_files",
    "log_atoms": "tailpath.atoms",
    "solve_expected": "tailpath.solvers.expectation",
    "solve_cvar_quantile": "tailpath.solvers.cvar_quantile",
    "solve_cvar_interpolation": "tailpath.solvers.cvar_interpolation",
    "solve_cvar_exact": "tailpath.solvers.cvar_exact",
    "improve": "tailpath.improvement",
    "unroll": "tailpath.chain",
    "evaluate": "tailpath.evaluation",
    "simulate": "tailpath.evaluation.simulation",
    "estimate": "tailpath.evaluation.simulation",
    "Estimate": "tailpath.evaluation.simulation",
}

__all__ = ["__version__", "domains", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "domains":
        return importlib.import_module("tailpath.domains")
    if name not in _HOME:
        raise AttributeError(f"module 'tailpath' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
