"""The reduced model of one with negative costs, held against it in fractions.

c' = c + phi(s') - phi(s), and all else is the same. It is told which phi was found, and shares no
code with the search: any phi that is 0 at goals and leaves no cost below 0 will do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tailpath.errors import RefutedError
from tailpath.verify.chain import exact_costs, leading_to, same_but_costs

#: Where reduced costs are floats, each is the nearest to what it stands for.
NEAREST = Fraction(1, 2**53)


def check_reduction(ssp: Any, reduction: Any) -> str:
    """A line that says what was proved; a refusal names the outcome at fault."""
    reduced = reduction.ssp
    if not same_but_costs(reduced, ssp):
        raise RefutedError("the reduced model is not the model as given but for its costs")
    phi = [Fraction(int(level)) * reduction.unit for level in reduction.level.tolist()]
    goals = [state for state, goal in enumerate(ssp.is_goal.tolist()) if goal]
    for state in goals:
        if phi[state] != 0:
            raise RefutedError(
                f"the potential of goal {ssp.states[state]!r} is {float(phi[state])!r}, not 0"
            )
    moves = list(zip(ssp.choice_state[ssp.outcome_choice].tolist(), ssp.outcome_target.tolist()))
    arrives = leading_to(goals, moves)
    given, reduced_cost = exact_costs(ssp), exact_costs(reduced)
    for outcome, (source, target) in enumerate(moves):
        wanted = given[outcome] + phi[target] - phi[source]
        off = 0 if reduction.exact else wanted * NEAREST * 2
        if target in arrives and (wanted < 0 or abs(reduced_cost[outcome] - wanted) > off):
            name = f"state {ssp.states[source]!r} -> {ssp.states[target]!r}"
            raise RefutedError(
                f"the reduced cost of {name} is {float(reduced_cost[outcome])!r}, not"
                f" {float(wanted)!r}"
            )
        if reduced_cost[outcome] < 0:
            raise RefutedError(f"a reduced cost is negative: {float(reduced_cost[outcome])!r}")
    shift = float(phi[ssp.start_index])
    less = "with costs reduced to 0 or more, of which:"
    return f"every run that arrives costs {shift:.15g} more than {less}"


Pair = tuple[float, float]


def check_shifts(claims: Mapping[str, tuple[Pair, Pair]], shift: Fraction) -> list[str]:
    """Lines that say what follows for the costs as given: each claim, bounds on something, must
    hold if the bounds beside it hold for the reduced costs."""
    lines = []
    for what, (given, of_reduced) in claims.items():
        low, high = (math.inf if math.isinf(end) else Fraction(end) + shift for end in of_reduced)
        if not (given[0] <= low and high <= given[1]):
            raise RefutedError(f"{what} is not known to lie in [{given[0]!r}, {given[1]!r}]")
        lines.append(f"{what} lies in [{given[0]:.15g}, {given[1]:.15g}], with costs as given")
    return lines
