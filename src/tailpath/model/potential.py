"""Costs of any sign: the model as given, and that with costs of 0 or more that is solved instead.

Let phi(s) be the least cost of any way from s to a goal, over all outcomes that can happen. Then

    c'(s, a, s') = c + phi(s') - phi(s) >= 0,
    and on every run that arrives
    Z = Z' + phi(start)

since phi is 0 at goals. So every question about the total cost Z is answered for Z' and moved
by phi(start), the *shift*. Structure and probabilities are the same, and policies observe the costs
as given. This is the only place where the two models meet: a model whose costs are 0 or more is its
own reduced model, and is solved as if there were no signs.

- phi and c' are exact: whole numbers of a unit of the costs as they are written. Where c' has no
  unit coarse enough to count in, it is the nearest float, off by half a unit of its last place
  (`exact` is false, and bounds that are shifted are widened).
- No phi exists where a cycle has a negative cost and can be left for a goal: a run may gain
  without end. It is refused, by name.
- A state from which no goal can be reached has no phi. A run that gets there never arrives and
  costs infinity whatever it pays: such costs count by their size, so that nothing becomes free for
  ever.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import Array, BoolArray, FloatArray, IntArray, grouped
from tailpath.kernels.jit import frozen
from tailpath.kernels.potentials import correct_labels
from tailpath.model.cost_units import MAX_UNITS, in_costs, integer_costs

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP

#: Only this many steps of a longer cycle are named.
MAX_NAMED = 8
#: A reduced cost that is no more than the nearest float is off by less, relatively: by 2^-53
#: each, and so are their exact sums. It belongs to the data, as `probability_error` does, and
#: stands here because `certify` is built on models.
NEAREST = 2.0**-51


class Reduction(NamedTuple):
    """The reduced model, and the way back.

    `level` (n_states,) is phi of each state in whole units; 0 where no goal can be reached.
    """

    ssp: Any
    level: Array
    unit: Fraction
    exact: bool

    def of(self, state: int) -> Fraction:
        """phi of a state."""
        return int(self.level[state]) * self.unit

    @property
    def values(self) -> FloatArray:
        """phi of every state, to the nearest float."""
        return in_costs(self.level, self.unit)


def unmoved(model: Any) -> Reduction:
    """A model whose costs are 0 or more is its own reduced one."""
    return Reduction(model, np.broadcast_to(0, model.n_states), Fraction(1), True)


def reduction_of(ssp: SSP) -> Reduction:
    """Find phi, and the reduced model; refuse a cycle of negative cost."""
    level, unit = _in_integers(ssp)
    least, known = _least_costs(ssp, level)
    source, target = ssp.by_state.source, ssp.outcome_target
    more = np.where(known[target], level + least[target] - least[source], np.abs(level))
    factor = int(np.gcd.reduce(more)) or 1
    exact = int(more.max(initial=0)) <= MAX_UNITS * factor
    costs = in_costs(more, unit)
    own = factor * unit if exact else None
    reduced = replace(ssp, outcome_cost=costs, exact_unit=own, paid=ssp.outcome_cost)
    return Reduction(reduced, least, unit, exact)


def _in_integers(ssp: SSP) -> tuple[Array, Fraction]:
    """The costs in whole units, however small, as int64 if no sum can overflow."""
    if ssp.cost_unit is not None:
        return ssp.outcome_level, ssp.cost_unit
    level, unit = integer_costs(ssp.outcome_cost)
    small = max(map(abs, level), default=0) * (ssp.n_states + 1) < 2**61
    return np.array(level, dtype=np.int64 if small else object), unit


def _least_costs(ssp: SSP, level: Array) -> tuple[Array, BoolArray]:
    """phi of every state, in units, 0 where there is none; and where there is one."""
    source, n = ssp.by_state.source, ssp.n_states
    far = int(np.abs(level).max(initial=0)) * (n + 1) + 1
    least = np.where(ssp.is_goal, 0, np.array(far, dtype=level.dtype)).astype(level.dtype)
    edge = np.full(n, -1, dtype=np.int64)
    into, start = grouped(ssp.outcome_target, n)
    search = correct_labels if level.dtype != object else correct_labels.plain
    met = search(*frozen(start, into.astype(np.int64), source, level), least, edge)
    if met >= 0:
        raise ModelError(_round(ssp, edge, int(met)))
    known = ssp.is_goal | (edge >= 0)
    return np.where(known, least, 0), known


def _round(ssp: SSP, edge: IntArray, met: int) -> str:
    """The message about a cycle: its states and actions, its gain, and a remedy."""
    edges = [int(edge[met])]
    while int(ssp.outcome_target[edges[-1]]) != met:
        edges.append(int(edge[ssp.outcome_target[edges[-1]]]))
    level, unit = _in_integers(ssp)
    gained = -float(sum(map(int, level[edges])) * unit)
    source, choice = ssp.by_state.source[edges].tolist(), ssp.outcome_choice[edges].tolist()
    steps = [f"{ssp.states[s]!r} by {ssp.choice_name(k)!r}" for s, k in zip(source, choice)]
    shown = ", ".join(steps[:MAX_NAMED]) + (
        f", and {len(steps) - MAX_NAMED} more" if len(steps) > MAX_NAMED else ""
    )
    return (
        f"a cycle has a negative cost, so a run may gain without end: {shown}, and back to"
        f" {ssp.states[met]!r} gains {gained:.12g}; limit the steps with within(ssp, n) (--within"
        " N); or, if every policy arrives, give the gains as costs and ask for the largest:"
        " solve(ssp, measure, sense='max') (--maximise)"
    )


def refuse_signed(ssp: SSP, who: str) -> None:
    """Refuse negative costs, for something that cannot handle them."""
    if ssp.signed:
        raise ModelError(f"some costs are negative, and {who} needs costs of 0 or more")
