"""The risk-neutral optimum and the least CVaR, checked from below and from above; and costs of any
sign, held against the reduced model.

*Below.* If L <= r + P L holds for every choice, L lies below the expected cost of every policy that
arrives. With it, U(s, w) = L(s) - w for w <= 0 and U(s, w) <= min over choices of the sum of P
U(s', w - c) for w > 0 bound E[(Z - w)+] of every policy, and so w + U / alpha its CVaR. *Above.*
The policy claimed is followed exactly, and costs what it costs. *Reduced.* c' = c + phi(s') -
phi(s), and all else is the same: any phi that is 0 at goals and leaves no cost below 0 will do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tailpath.errors import OptionError, RefutedError
from tailpath.verify.chain import (
    GOAL,
    LARGEST_EXACT,
    ONE,
    IntegerRow,
    ahead,
    decimal,
    enclosed_totals,
    exact_costs,
    leading_to,
    rate,
    rows_of,
    same_but_costs,
    solved,
)
from tailpath.verify.distribution import (
    Proof,
    enclose,
    proved_within,
    refuse_outside,
    relative_width,
)
from tailpath.verify.excess import prove_below

#: Where reduced costs are floats, each is the nearest to what it stands for.
NEAREST = Fraction(1, 2**53)
Pair = tuple[float, float]
#: The share by which the value of the last policy is lowered to lie below every policy, and the
#: share that a better choice must save.
LOWERED = 10**60
BETTER = 10**40


def check_reduction(ssp: Any, reduction: Any) -> str:
    """A line that says what was proved; a refusal names the outcome at fault."""
    reduced = reduction.ssp
    if not same_but_costs(reduced, ssp):
        raise RefutedError("the reduced model differs from the model as given in more than costs")
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


def check_border(border: Any, found: Proof, claims: Mapping[str, tuple[Pair, Pair]]) -> Proof:
    """What was proved of the model that was solved, and what follows for the one as given."""
    if not border.moves:
        return found
    proved = check_reduction(border.given, border.given.reduction)
    return Proof((proved, *found.proved, *check_shifts(claims, border.shift)), found.width)


def check_expected(solution: Any) -> Proof:
    """Hold `lower <= V* <= upper` against the model as given, in every state."""
    ssp = solution.ssp
    model, more = ssp.reduced, [Fraction(0)] * ssp.n_states
    if ssp.signed:
        if solution.gamma != 1:
            raise OptionError("the checker does not support a discount of negative costs")
        check_reduction(ssp, ssp.reduction)
        more = [ssp.reduction.of(state) for state in range(ssp.n_states)]
    low, high, unit = risk_neutral_bounds(model, solution.choices.tolist(), decimal(solution.gamma))
    scale = Fraction(unit, ONE)
    for state, (below, above) in enumerate(zip(low, high)):
        claim = (float(solution.lower[state]), float(solution.upper[state]))
        if below is None or above is None:
            if claim != (math.inf, math.inf):
                raise RefutedError(
                    f"state {ssp.states[state]!r} has no choice, and yet an expected cost in"
                    f" [{claim[0]!r}, {claim[1]!r}]"
                )
            continue
        least, most = below * scale + more[state], above * scale + more[state]
        if not (claim[0] <= most and claim[0] <= claim[1]):
            raise RefutedError(
                f"the least expected cost from {ssp.states[state]!r} is at most {float(most)!r},"
                f" below the claim {claim[0]!r}"
            )
        proved_within(f"the least expected cost from {ssp.states[state]!r}", (least, most), claim)
        refuse_outside(f"the value of {ssp.states[state]!r}", float(solution.value[state]), claim)
    start = ssp.start_index
    low_start, high_start = float(solution.lower[start]), float(solution.upper[start])
    line = (
        f"the least expected cost lies in [{low_start:.15g}, {high_start:.15g}], and likewise from"
        f" all {ssp.n_states} states"
    )
    return Proof((line,), relative_width(low_start, high_start))


def check_optimum(solution: Any, alpha: float) -> Proof:
    """Hold the bounds on the least CVaR at alpha, and the policy that is said to attain it, against
    the model as given.
    """
    ssp = solution.largest.ssp
    low, high = own_bounds(solution, alpha)
    policy, unit = solution.policy(alpha), solution.largest.unit
    truth = enclose(ssp, policy, round(Fraction(solution.var(alpha)) / unit) * unit)
    if truth.tail_exceeds(Fraction(alpha)) and math.isfinite(high):
        # Masses that floats cannot tell from alpha: the VaR lies beyond, but not beyond the CVaR.
        truth = enclose(ssp, policy, Fraction(high))
    if truth.missed[1]:
        raise RefutedError("the policy that is claimed to attain the least CVaR may miss the goal")
    attained = truth.cvar(Fraction(alpha))[1]
    if attained > high:  # exact, and high may be infinite
        raise RefutedError(
            f"the policy has a CVaR of {float(attained)!r} at alpha {alpha:g}, more than the"
            f" bound claimed, {high!r}"
        )
    least, most, unit = risk_neutral_bounds(ssp, solution.largest.risk_neutral.tolist())
    # No CVaR lies below the mean. A bound beyond that is one of the costs as they are, or rounded
    # down.
    if Fraction(low) > Fraction(least[ssp.start_index] or 0, ONE) * unit:
        below = solution if solution.floor is None else solution.floor
        if below is not solution:
            least, most, unit = risk_neutral_bounds(
                below.largest.ssp, below.largest.risk_neutral.tolist()
            )
            _cheaper(below.largest.ssp, ssp)
        prove_below(below.largest.ssp, least, most, Fraction(low) / unit, Fraction(alpha))
    proved = (
        f"no policy has a CVaR below {low:.15g} at alpha {alpha:g}",
        f"the policy given has a CVaR of at most {high:.15g} at alpha {alpha:g}",
    )
    return Proof(proved, relative_width(low, high))


def own_bounds(solution: Any, alpha: float) -> tuple[float, float]:
    """The bounds that a solution claims for the least CVaR; refuses a value outside of them."""
    low, high = solution.bounds(alpha)
    refuse_outside("the least CVaR", solution.cvar(alpha), (low, high))
    return low, high


def _cheaper(below: Any, ssp: Any) -> None:
    """Hold a model with costs rounded down against the model as given: it must be the same but for
    costs, of which none is higher.
    """
    if not same_but_costs(below, ssp) or below.start_index != ssp.start_index:
        raise RefutedError("the model rounded down differs from the given one in more than costs")
    if any(rounded > cost for rounded, cost in zip(exact_costs(below), exact_costs(ssp))):
        raise RefutedError("a cost that is claimed to be rounded down is higher than the model's")


def risk_neutral_bounds(
    ssp: Any, choices: list[int], gamma: Fraction = Fraction(1)
) -> tuple[list[int | None], list[int | None], Fraction]:
    """Bounds on V* per state, in units of 2^-BITS cost units, from a policy that claims to attain
    it; None where it has no choice.

    With a discount every step but one to a goal is the last one with probability 1 - gamma.
    """
    in_integers, unit = rows_of(ssp)
    goal = ssp.is_goal.tolist()
    on, in_all = gamma.numerator, gamma.denominator
    states = [s for s in range(ssp.n_states) if choices[s] >= 0 and not goal[s]]
    if gamma == 1:
        for state in _surely_arriving(ssp, in_integers) - set(states):
            raise RefutedError(
                f"state {ssp.states[state]!r} is claimed to have no policy that is certain to"
                " arrive, but it has one"
            )
    position = {s: i for i, s in enumerate(states)}

    def row(choice: int) -> IntegerRow | None:
        denominator, edges = in_integers[choice]
        if any(not goal[to] and to not in position for to, _, _ in edges):
            return None
        ends = [(GOAL, w * (in_all - on), cost) for _, w, cost in edges if on < in_all]
        return denominator * in_all, [
            *((GOAL if goal[to] else position[to], w * on, cost) for to, w, cost in edges),
            *ends,
        ]

    options = [
        {k: r for k in range(*ssp.state_choices[s : s + 2].tolist()) if (r := row(k)) is not None}
        for s in states
    ]
    if not all(choices[s] in of for s, of in zip(states, options)):
        raise RefutedError("the risk-neutral policy leads to a state for which it has no choice")
    rows = [of[choices[s]] for s, of in zip(states, options)]
    every = [list(of.values()) for of in options]
    bounds = _lowered(rows, every)
    if bounds is None:
        if len(rows) > LARGEST_EXACT:
            raise OptionError(
                "the checker cannot prove a lower bound on the least expected cost of this model"
            )
        bounds = [(math.floor(v * ONE), math.ceil(v * ONE)) for v in _optimum(rows, every)]
    least: list[int | None] = [0 if g else None for g in goal]
    most: list[int | None] = list(least)
    for s, (low, high) in zip(states, bounds):
        least[s], most[s] = low, high
    return least, most, unit


def _surely_arriving(ssp: Any, rows: list[IntegerRow]) -> set[int]:
    """The states that are no goals and from which some policy surely arrives: what is left when
    whoever cannot arrive inside is taken away.
    """
    goal, owner = ssp.is_goal.tolist(), ssp.choice_state.tolist()
    remaining = {s for s in range(ssp.n_states) if not goal[s]}
    while True:
        inside = [
            (state, [GOAL if goal[to] else to for to, _, _ in edges])
            for state, (_, edges) in zip(owner, rows)
            if state in remaining and all(goal[to] or to in remaining for to, _, _ in edges)
        ]
        reached = leading_to([GOAL], ((state, to) for state, ends in inside for to in ends))
        if reached - {GOAL} == remaining:
            return remaining
        remaining = reached - {GOAL}


def _backup(row: IntegerRow, value: list[Any]) -> Fraction:
    return rate(row) + Fraction(sum(w * value[to] for to, w, _ in row[1] if to != GOAL), row[0])


def _optimum(rows: list[IntegerRow], options: list[list[IntegerRow]]) -> list[Fraction]:
    """Policy iteration in rationals: the last value is the optimum."""
    rows = list(rows)
    while True:
        value = solved(rows, [rate(r) for r in rows])
        moved = False
        for node, choices in enumerate(options):
            best = min(choices, key=lambda r: _backup(r, value))
            if _backup(best, value) < _backup(rows[node], value):
                rows[node], moved = best, True
        if not moved:
            return value


def _lowered(
    rows: list[IntegerRow], options: list[list[IntegerRow]]
) -> list[tuple[int, int]] | None:
    """Policy iteration in enclosures; the last value, a little lowered, must lie below its own
    backup. None where that cannot be shown.
    """
    rows = list(rows)
    for _ in range(50):
        bounds = enclosed_totals(rows, [rate(r) for r in rows])
        high = [high for _, high in bounds]
        moved = False
        for node, choices in enumerate(options):
            best = min(choices, key=lambda r: ahead(r, high, ONE))
            if ahead(best, high, ONE) * BETTER < bounds[node][0] * (BETTER - 1):
                rows[node], moved = best, True
        if not moved:
            break
    least = [low * (LOWERED - 1) // LOWERED for low, _ in bounds]
    if any(
        least[node] > ahead(row, least, ONE)
        for node, choices in enumerate(options)
        for row in choices
    ):
        return None
    return [(low, high) for low, (_, high) in zip(least, bounds)]
