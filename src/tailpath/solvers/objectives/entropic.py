"""The least entropic risk, and the least EVaR, over all policies.

- *Entropic risk*: one stationary policy is best, by the exponential Bellman equation W(s) = min_a
  sum p exp(beta c) W(s') with W = 1 at the goal (`dp/exponential.py`), on the core of the model.
  Costs need no unit. From some beta on it is infinite under every policy.
- *EVaR* is the least of E(beta) + ln(1/alpha) / beta, with E the least entropic risk: a search over
  beta, and then, in turn, the best beta of the policy and the best policy of that beta. From below:
  E rises with beta, so that between l and r no policy has less than E(l) + ln(1/alpha) / r. From 0
  on, r is chosen as far away as that leaves a target, until E(l) alone is no less.
"""

from __future__ import annotations

import math
from bisect import bisect
from contextlib import suppress
from operator import itemgetter

import numpy as np

from tailpath.analysis.core import core_of
from tailpath.certify.exponentials import exponential_bounds
from tailpath.certify.rounding import AFTERWARDS
from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.graph import Array
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ssp import SSP
from tailpath.policies.kinds import MarkovPolicy
from tailpath.risk.entropic import Entropic
from tailpath.risk.evar import EVaR, Value, first_beta, least_over_beta, tried
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.unconstrained import Found

#: How far below the value a bound on EVaR is looked for, as a share of what EVaR is beyond the
#: mean, in how many steps at most, and the least share by which beta rises.
NEAR, MAX_STEPS, LEAST_STEP = 1e-4, 20_000, 1e-5
#: The first betas, by factors of 2 either way; how often policy and beta take turns then.
SPREAD, TURNS = 6, 20


class LeastRisks:
    """The least entropic risk at one beta after another, each search from what the last one found.

    Attributes
    ----------
    ssp : SSP
        The model, whose costs are 0 or more.
    mean : ExpectedSolution
        The least mean, which the risk at 0 is.
    """

    def __init__(self, ssp: SSP) -> None:
        self.ssp, self.mean, self.core = ssp, solve_expected(ssp), core_of(ssp)
        self.start = int(self.core.node_of[ssp.start_index])
        self._means = self.core.to_nodes(self.mean.value)
        self._first = self.core.core_choices(self.mean.choices)
        self._found = [(0.0, self._means, self._first)]

    def at(self, beta: float) -> tuple[float, float, float]:
        """The least risk, and bounds on it."""
        return self.solved(beta)[0]

    def solved(self, beta: float) -> tuple[tuple[float, float, float], Array]:
        """The same, and the rows of the core that attain it, -1 where it is infinite."""
        if beta == 0 or self.mean.bounds[1] == 0:
            return (self.mean.cost(), *self.mean.bounds), self._first
        rows, place = self.core.transitions, bisect(self._found, beta, key=itemgetter(0))
        _, before, first = self._found[place - 1]
        with np.errstate(over="ignore"):
            exponent, guess = beta * rows.cost, beta * before
        if not np.isfinite(exponent).all() or not np.isfinite(guess).all():
            raise OptionError(f"a beta of {beta:g} is too large for these costs")
        mean = self.core.to_nodes(self.mean.lower) * beta * (1 - AFTERWARDS)
        off = self.ssp.probability_error
        found, chosen = exponential_bounds(rows, exponent, guess, first, off, mean)
        if np.isfinite(found.value).all():
            self._found.insert(place, (beta, found.value / beta, chosen))
        ends = (float(side[self.start]) / beta for side in (found.value, found.lower, found.upper))
        value, low, high = ends
        low = max(low * (1 - AFTERWARDS), self.mean.bounds[0])
        return (value, low, high * (1 + AFTERWARDS)), chosen

    def policy(self, chosen: Array) -> MarkovPolicy:
        """The policy of some rows of the core."""
        known = self.core.choice[chosen[chosen >= 0]]
        return MarkovPolicy.from_choices(self.ssp, self.core.walks_to(known))

    def refusal(self, beta: float, certain: bool) -> OptionError:
        """Why nothing is answered at a beta, with one at which something is."""
        finite, infinite = beta, beta
        while math.isinf(self.at(finite)[0]):
            finite, infinite = finite / 2, finite
        for _ in range(10):
            middle = (finite + infinite) / 2
            finite, infinite = (
                (middle, infinite) if math.isfinite(self.at(middle)[0]) else (finite, middle)
            )
        less = f"take a beta of {finite:.3g} or less"
        if not certain:
            return OptionError(
                f"at a beta of {beta:g} doubles do not decide whether the risk is finite; {less}"
            )
        never = self.solved(beta)[1] < 0
        rows = self.core.transitions.joined()
        inside = never[rows.source] & np.append(never, False)[rows.target]
        component, cyclic = rows.only(inside).cycles()
        node = int(np.flatnonzero(cyclic[component])[0])
        state = self.ssp.states[int(np.flatnonzero(self.core.node_of == node)[0])]
        return OptionError(
            f"entropic({beta:.12g}) is infinite under every policy: from state {state!r} on, dear"
            f" runs do not get rare fast enough; {less}"
        )


def least_entropic(ssp: SSP, goal: Entropic) -> Found:
    """The least entropic risk of any policy."""
    risks = LeastRisks(ssp)
    (value, low, high), chosen = risks.solved(goal.beta)
    if math.isinf(value):
        raise risks.refusal(goal.beta, math.isinf(low))
    policy = risks.mean.policy if goal.beta == 0 else risks.policy(chosen)
    return value, lambda: (low, high), policy


def least_evar(ssp: SSP, goal: EVaR) -> Found:
    """The least EVaR of any policy."""
    risks, penalty = LeastRisks(ssp), goal.penalty
    policy, mean = risks.mean.policy, risks.mean.cost()
    if penalty == 0 or risks.mean.bounds[1] == 0:
        return mean, lambda: risks.mean.bounds, policy
    costs = evaluate_for(ssp, policy, [goal])
    value, beta = goal(costs), first_beta(costs)
    with suppress(OptionError):  # a beta that is too large
        guesses = {beta * 2.0**k: risks.at(beta * 2.0**k)[0] for k in range(-SPREAD, SPREAD + 1)}
        beta = min(guesses, key=lambda guess: guesses[guess] + penalty / guess)
    found = least_over_beta(risks.at, penalty, beta).values()
    least, looked = _below(risks, penalty, min(known.plus(penalty).value for known in found))
    beta = min([*found, *looked], key=lambda known: known.plus(penalty).value).beta
    for _ in range(TURNS):
        other = risks.policy(risks.solved(beta)[1])
        theirs = evaluate_for(ssp, other, [goal])
        best = min(tried(theirs, goal), key=lambda known: known.plus(penalty).value)
        if best.plus(penalty).value >= value * (1 - SAME_VALUE):
            break
        policy, costs, value, beta = other, theirs, best.plus(penalty).value, best.beta

    def bounds() -> tuple[float, float]:
        high = goal.bounds_of(costs)[1]
        return min(least, high), high

    return value, bounds, policy


def _below(risks: LeastRisks, penalty: float, high: float) -> tuple[float, list[Value]]:
    """What no policy's EVaR is less than, by steps of beta from 0 to where the risk alone is no
    less; and the risks on the way.
    """
    mean, looked = risks.mean.bounds[0], []
    near = NEAR * max(high - mean, 0.0)
    low, beta, target = mean, 0.0, high - near
    while low < target:
        # As far as the target allows; a little further, the target pays for.
        allowed, least = penalty / (target - low), beta * (1 + LEAST_STEP)
        if least > allowed:
            target = low + penalty / least - near
        beta = max(allowed, least) * (1 - AFTERWARDS)
        looked.append(Value(beta, *risks.at(beta)))
        low = max(low, looked[-1].low)
        if len(looked) == MAX_STEPS:
            return mean, looked
    return target, looked
