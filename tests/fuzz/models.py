"""Random models with extreme numbers, against exact arithmetic: no bound may be violated, and the
checker must accept every result, and refuse it when it was tampered with (`tampering.py`).

- probabilities: sixteenths; weights from 1e-290 to 1; loops that stay for 10^6 steps; rows that
  miss 1 by rounding
- costs: small whole numbers, free moves (cycles, too), units such as 1/7, costs without a unit,
  costs from 1e-9 to 1e300
- policies: one action per state, mixtures, finite memories, steps of a budget, the policies of the
  exact solver
- how: both engines, both heuristics, any alpha; and the same again, cut short after a few nodes
"""

from __future__ import annotations

import itertools
import random
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import tailpath as tp
from tailpath.errors import GoalUnreachableError, LimitExceededError, ModelError, OptionError
from tailpath.model.border import prepare
from tailpath.solvers.exact.solver import solve_prepared
from tailpath.verify.chain import exact_chain
from tailpath.verify.distribution import check_distribution, enclose, probability
from tests.fuzz import tampering

#: Processor seconds for one model: of a busy machine it has a share only.
LONGEST = 10.0
ALPHAS = (1.0, 0.5, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-6)


#: Said of free cycles that are left less often than doubles can say: refused by name, not computed.
FREE_FOR_TOO_LONG = "is left with a probability too small to compute with"


def tried(number: int, attempt: Callable[[int], Iterator[str]]) -> tuple[str | None, Counter[str]]:
    """The fault of a model, if it has one, and how many claims of which kind were checked."""
    import numba  # noqa: F401  time may not be over in the middle of this

    claims: Counter[str] = Counter()
    try:
        with warnings.catch_warnings(), at_most(LONGEST):
            warnings.simplefilter("ignore")
            claims.update(attempt(number))
    except TimeoutError:
        claims["left after a while"] += 1
    except Exception as error:
        if not (isinstance(error, ModelError) and FREE_FOR_TOO_LONG in str(error)):
            return traceback.format_exc(limit=-3), claims
        claims["free cycles refused"] += 1
    return None, claims


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends what takes longer, with a TimeoutError: exact arithmetic may take its time over numbers
    of thousands of digits.
    """

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(
        signal.ITIMER_PROF, seconds, 1.0
    )  # again, where the first one falls into a destructor
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(number: int) -> Iterator[str]:
    """Draw a model and look at everything that is said about it; yields what was checked."""
    draw, hand = random.Random(number), random.Random(f"tampering {number}")
    ssp = model(draw)
    alpha = draw.choice(ALPHAS)
    solvable = True
    try:
        expected = tp.solve_expected(ssp)
        yield from checked("expected", expected.verify)
        yield from tampering.one_of(hand, tampering.expected(expected))
    except GoalUnreachableError:
        solvable = False
    except ModelError as error:
        assert "too large to compute with" in str(error), error
        yield "refused"
        return
    given = policy(draw, ssp)
    if (
        solvable
        and ssp.cost_unit is not None
        and float(max(ssp.outcome_cost)) <= 1e4 * float(ssp.cost_unit)
    ):
        try:
            # With and without closed forms for budgets that every run exceeds.
            best = solve_prepared(prepare(ssp), alpha, skip=number % 2 == 0, max_bytes=2**26)
            yield from checked("optimum", best.verify)
            yield from tampering.one_of(hand, tampering.optimum(best, alpha))
            given = draw.choice([given, best.policy(alpha)])
        except LimitExceededError:
            yield "optimum out of memory"
        except ModelError as error:
            assert "too large to compute with" in str(error), error
            yield "optimum refused"
    yield from evaluated(draw, hand, ssp, given, alpha)


def evaluated(
    draw: random.Random, hand: random.Random, ssp: tp.SSP, given: Any, alpha: float
) -> Iterator[str]:
    engine = draw.choice(["lattice", "queue"]) if ssp.cost_unit is not None else "queue"
    options = {"engine": engine, "heuristic": draw.choice(["min", "zero"]), "max_nodes": 3_000}
    try:
        found = tp.evaluate(ssp, given, alpha, **options)
    except LimitExceededError as error:
        yield from cut_short(ssp, given, alpha, error.bounds)
        return
    except tp.TailpathError as error:
        assert "costs nothing and never reaches a goal" in str(error), error
        yield "free trap"
        return
    if found.unreached > 0:
        assert found.mean == found.cvar(alpha) == float("inf")
        yield "may miss the goal"
        return
    for a in (alpha, *(a for a in ALPHAS if a > alpha)):
        low, high = found.bounds(a)
        assert low <= found.cvar(a) <= high, (a, low, found.cvar(a), high)
        assert found.cvar(a) >= found.mean, (a, found.cvar(a), found.mean)
    yield from checked("distribution", lambda: check_distribution(found, ssp, given, 5_000))
    yield from tampering.one_of(
        hand,
        tampering.distribution(
            found, lambda changed: check_distribution(changed, ssp, given, 5_000)
        ),
    )
    yield from tampering.one_of(
        draw,
        tampering.decision(
            ssp, found, given, alpha, lambda other: check_distribution(found, ssp, other, 5_000)
        ),
    )
    try:
        tp.evaluate(
            ssp, given, alpha, **{**options, "max_nodes": draw.randrange(max(found.expanded, 1))}
        )
    except LimitExceededError as error:
        yield from cut_short(ssp, given, alpha, error.bounds)


def checked(what: str, verify: Any) -> Iterator[str]:
    """A claim that the checker accepts, or that is beyond it."""
    try:
        verify()
        yield what
    except OptionError:
        yield f"{what} beyond the checker"


def cut_short(ssp: tp.SSP, given: Any, alpha: float, bounds: tuple[float, float]) -> Iterator[str]:
    """Bounds of a search that was cut short, against the exact CVaR where few costs lead to it."""
    try:
        chain = exact_chain(ssp, given, 3_000)
        last = chain.unit
        for _ in range(14):
            truth = enclose(ssp, given, last, 3_000)
            if truth.missed[0]:
                assert bounds[1] == float("inf"), bounds
                yield "cut short on the way to nowhere"
                return
            if probability(truth.tail[1]) <= Fraction(alpha):
                low, high = truth.cvar(Fraction(alpha))
                assert bounds[0] <= high, (bounds, float(low), float(high))
                assert low <= bounds[1], (bounds, float(low), float(high))
                yield "cut short"
                return
            last *= 4
    except OptionError:
        pass
    yield "cut short beyond the checker"


# ---------------------------------------------------------------------- what is drawn


def model(draw: random.Random) -> tp.SSP:
    """Up to six states; the first row of every state leads on, so that most policies arrive."""
    n = draw.randint(1, 6)
    cost = costs(draw)
    leads_on = draw.random() < 0.9
    rows = []
    for state in range(n):
        for action in range(draw.randint(1, 3)):
            k = draw.randint(1, 4)
            targets = [
                draw.randint(state + 1, n) if leads_on else draw.randint(0, n),
                *(draw.randint(0, n) for _ in range(k - 1)),
            ]
            for target, p in zip(targets, chances(draw, k)):
                rows.append((state, action, target, p, cost()))
    return tp.SSP.from_outcomes(rows, 0, [n])


def chances(draw: random.Random, k: int) -> list[Any]:
    kind = draw.randrange(5)
    if k == 1:
        return [1]
    if kind == 0:
        cuts = sorted(draw.sample(range(1, 16), k - 1))
        return [(b - a) / 16 for a, b in zip([0, *cuts], [*cuts, 16])]
    if kind == 1:
        weights = [draw.randint(1, 9) for _ in range(k)]
        return [Fraction(w, sum(weights)) for w in weights]
    if kind == 2:
        rest = [draw.random() * 10.0 ** -draw.choice([1, 3, 6]) / k for _ in range(k - 1)]
        return [*rest, 1 - sum(rest)] if draw.random() < 0.3 else [1 - sum(rest), *rest]
    if kind == 3:
        tiny = [10.0 ** -draw.choice([12, 30, 100, 200, 290]) for _ in range(k - 1)]
        return [1.0, *tiny]
    weights = [draw.random() for _ in range(k)]
    return [w / sum(weights) * (1 + 2e-16 * draw.randint(-4, 4)) for w in weights]


def costs(draw: random.Random) -> Any:
    kind = draw.randrange(6)
    if kind == 0:
        return lambda: draw.choice([0, 0, 1, 2, 5])
    if kind == 1:
        unit = draw.choice([Fraction(1, 7), Fraction(1, 10), Fraction(3, 2), Fraction(100)])
        return lambda: unit * draw.choice([0, 1, 1, 2, 3, 50])
    if kind == 2:
        return lambda: draw.choice([1.3, 0.1, 1e-8, 3.141592653589793, 2.0])
    if kind == 3:
        return lambda: draw.choice([1, 2, 1e300, 1e150, 7])
    if kind == 4:
        return lambda: draw.choice([1, 1, 2, 1000, 10**6])
    return lambda: draw.choice([0, 0, 0, 1])


def policy(draw: random.Random, ssp: tp.SSP) -> Any:
    """One action per state, a mixture, a memory of two, or steps of a budget."""
    actions = {
        s: [ssp.choice_name(k) for k in range(ssp.state_choices[i], ssp.state_choices[i + 1])]
        for i, s in enumerate(ssp.states)
    }
    open_states = {s: names for s, names in actions.items() if names}

    def decision(names: list[Any]) -> Any:
        if len(names) == 1 or draw.random() < 0.6:
            return draw.choice(names)
        one, two = draw.sample(names, 2)
        share = draw.choice([0.5, 0.25, 0.1, 1e-6])
        return {one: share, two: 1 - share}

    if draw.random() < 0.6:
        return tp.MarkovPolicy({s: decision(names) for s, names in open_states.items()})
    if ssp.cost_unit is not None and draw.random() < 0.5:
        return steps(draw, ssp)
    table = {(s, m): decision(names) for s, names in open_states.items() for m in (0, 1)}
    return tp.MemoryPolicy(0, lambda s, m: table[s, m], lambda m, s, a, c, t: (m + (c > 1)) % 2)


def steps(draw: random.Random, ssp: tp.SSP) -> tp.BudgetPolicy:
    """A policy by budget with any choice at any budget, and a budget that may lie
    beyond its table.
    """
    own = [range(int(first), int(end)) for first, end in itertools.pairwise(ssp.state_choices)]
    width = draw.choice([1, 2, 9, 60])
    table = [
        [draw.choice([-1, *choices]) if draw.random() < 0.4 else -1 for _ in range(width)]
        for choices in own
    ]
    made = tp.BudgetPolicy.from_table(
        ssp, table, [draw.choice(choices) if choices else -1 for choices in own]
    )
    return made.with_budget(draw.choice([made.budget, made.budget, 10**4, 2**61]))
