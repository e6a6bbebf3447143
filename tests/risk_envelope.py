"""CVaR of a discrete distribution in its three forms, each with its witness.

For costs z with probabilities p, and alpha the mass of the worst tail:

    primal     min over w of w + sum p (z - w)+ / alpha; witness: w, a VaR
    dual       max over xi of sum p xi z, with sum p xi = 1 and 0 <= xi <= 1 / alpha; witness: xi,
               the worst reweighting in the risk envelope
    sorting    the mean of the alpha worst costs, counted from the largest; witness: both

All three are equal; the dual is the form that CVaR Bellman operators take apart. The primal is
piecewise linear with corners at the costs, so it is tried at each; its least minimiser is VaR_alpha
= min { z : P(Z > z) <= alpha }. The dual is handed to the LP solver, which returns a vertex:
outcomes tied at the VaR may get different weights. Sorting gives them all the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tailpath.errors import OptionError
from tailpath.model.ssp import FloatArray

#: Probabilities may miss 1 by this much; they are then scaled.
NEARLY_ONE = 1e-9
#: Masses and objectives that differ by less than this, relatively, count as equal.
SAME = 1e-12


class Primal(NamedTuple):
    """The CVaR and the smallest w that attains it."""

    cvar: float
    threshold: float


class Dual(NamedTuple):
    """The CVaR and the weights xi, in the order of the costs, that attain it."""

    cvar: float
    xi: FloatArray


class Sorted(NamedTuple):
    """The CVaR, the VaR, and weights that treat equal costs alike."""

    cvar: float
    var: float
    xi: FloatArray


def cvar_primal(costs: ArrayLike, probabilities: ArrayLike, alpha: float) -> Primal:
    """min over w of w + E[(Z - w)+] / alpha, tried at every cost."""
    z, p = _checked(costs, probabilities, alpha)
    candidates = np.unique(z[p > 0])
    values = np.array([w + np.sum(p * np.maximum(z - w, 0.0)) / alpha for w in candidates])
    best = values.min()
    # Where the objective is flat, the smallest minimiser is the VaR.
    first = np.flatnonzero(values <= best + SAME * max(1.0, abs(best)))[0]
    return Primal(float(best), float(candidates[first]))


def cvar_dual(costs: ArrayLike, probabilities: ArrayLike, alpha: float) -> Dual:
    """max over the risk envelope of the reweighted mean, as a linear program."""
    from tailpath.external.linear_programs import TailPrograms

    z, p = _checked(costs, probabilities, alpha)
    possible = np.flatnonzero(p > 0)
    programs = TailPrograms()
    programs.load(z[possible], p[possible])
    value = programs.solve(alpha)
    xi = np.zeros(len(z))
    xi[possible] = programs.shares() / p[possible]
    return Dual(value, xi)


def cvar_sorted(costs: ArrayLike, probabilities: ArrayLike, alpha: float) -> Sorted:
    """The mean of the alpha worst costs: equal costs are one, and the one at the edge counts in
    part.
    """
    z, p = _checked(costs, probabilities, alpha)
    levels, level = np.unique(z, return_inverse=True)
    mass = np.bincount(level, weights=p, minlength=len(levels))
    above = np.concatenate((np.cumsum(mass[::-1])[::-1][1:], [0.0]))
    edge = int(np.flatnonzero((above <= alpha * (1 + SAME)) & (mass > 0))[0])
    weight = np.zeros(len(levels))
    weight[edge + 1 :] = 1 / alpha
    weight[edge] = max(1.0 - above[edge] / alpha, 0.0) / mass[edge]
    return Sorted(float(np.sum(weight * mass * levels)), float(levels[edge]), weight[level])


def _checked(
    costs: ArrayLike, probabilities: ArrayLike, alpha: float
) -> tuple[FloatArray, FloatArray]:
    z, p = np.array(costs, dtype=np.float64), np.array(probabilities, dtype=np.float64)
    if z.ndim != 1 or z.shape != p.shape or z.size == 0:
        raise OptionError(
            f"costs and probabilities must be two lists of one length, not of shapes {z.shape} and"
            f" {p.shape}"
        )
    for cost in z[~np.isfinite(z)][:1].tolist():
        raise OptionError(f"costs must be finite, not {cost!r}")
    for chance in p[~(p >= 0)][:1].tolist():
        raise OptionError(f"probabilities must be 0 or more, not {chance!r}")
    if not abs(p.sum() - 1) <= NEARLY_ONE * len(p):
        raise OptionError(f"the probabilities sum to {p.sum():.12g}, not 1")
    if not 0 < alpha <= 1:
        raise OptionError(f"alpha must lie in (0, 1], not {alpha!r}")
    return z, p / p.sum()
