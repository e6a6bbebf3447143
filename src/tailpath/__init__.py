"""Exact tail risk for stochastic shortest paths: VaR and CVaR of any policy, and the optimum.

Costs are minimised. `alpha` in (0, 1] is the mass of the worst tail: CVaR at 0.05 is the mean of
the worst 5 % of all runs. A run starts at the start of the model and ends at a goal; its total
cost is Z.

Each name is loaded when it is first used: that keeps `tailpath --help` and `tailpath info` free of
the numerical libraries they do not need.

Examples
--------
The examples of all docstrings continue this one: two ways to work, and the costs of the first.

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
from typing import Any

from tailpath.registers import public_names as _homes
from tailpath.version import __version__ as __version__

#: What commands are called in Python, where it is something else.
_COMMANDS = {
    "explain": "tp.worst_runs(ssp, policy, alpha)",
    "diff": "tp.differences(ssp, first, second, alpha)",
    "convert": "tp.write(tp.read(path), path)",
    "info": "tp.read(path)",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return ["__version__", *_homes()]
    if name not in _homes():
        hint = f"; use {_COMMANDS[name]}" if name in _COMMANDS else ""
        raise AttributeError(f"module 'tailpath' has no attribute {name!r}{hint}")
    home = _homes()[name]
    if home == "tailpath":
        return importlib.import_module(f"tailpath.{name}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(["__version__", *_homes()])
