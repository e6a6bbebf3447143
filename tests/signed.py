"""Models with negative costs and no negative cycle, beside those with costs of 0 or more.

Any numbers psi(s), 0 at goals, turn a model with costs c of 0 or more into one with costs
c + psi(s) - psi(s'), on which every run that arrives costs psi(start) more. So whatever
`tests/reference.py` says of the first holds, moved, for the second; and these psi are others than
those that the package finds.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

import tailpath as tp
from tests.reference import Model, State

ZERO = Fraction(0)


def turned(model: Model, psi: Mapping[State, Fraction]) -> Model:
    """The model with costs moved by the potential."""
    choices = {
        s: {
            a: [(t, p, c + psi.get(s, ZERO) - psi.get(t, ZERO)) for t, p, c in outcomes]
            for a, outcomes in actions.items()
        }
        for s, actions in model.choices.items()
    }
    return Model(choices, model.start, model.goals)


def potentials(model: Model) -> st.SearchStrategy[dict[State, Fraction]]:
    """Numbers for all states but goals, most of them far from 0."""
    states = sorted(
        {*model.choices, *(t for _, _, t, _, _ in model.rows())} - model.goals, key=repr
    )
    return st.fixed_dictionaries(
        {state: st.integers(-12, 12).map(lambda n: Fraction(n, 2)) for state in states}
    )


@st.composite
def signed_models(
    draw: st.DrawFn, models: st.SearchStrategy[Model]
) -> tuple[Model, Model, Fraction]:
    """The model with costs of 0 or more, that with negative costs, and what its runs cost more."""
    plain = draw(models)
    psi = draw(potentials(plain))
    found = turned(plain, psi)
    if all(c >= 0 for *_, c in found.rows()):  # then one more gain, at the end of every run
        found = turned(found, dict.fromkeys(psi, Fraction(-50)))
        psi = {state: value - 50 for state, value in psi.items()}
    assume(any(c < 0 for *_, c in found.rows()))
    return plain, found, psi.get(plain.start, ZERO)


def gambler() -> tp.SSP:
    """Start with 1 to 7, each as likely; with 1 to 6 bet up to all of it (won with 0.68, up to 7)
    or quit; the end pays it, and -1 at 0.
    """
    rows: list[Any] = [("start", "draw", s, Fraction(1, 7), 0) for s in range(1, 8)]
    for s in range(1, 8):
        rows.append((s, "quit", "end", 1, -s))
        for x in range(1, s + 1) if s < 7 else ():
            rows += [
                (s, f"bet {x}", min(7, s + x), Fraction(68, 100), 0),
                (s, f"bet {x}", s - x, Fraction(32, 100), 0),
            ]
    return tp.SSP.from_outcomes([*rows, (0, "broke", "end", 1, 1)], "start", ["end"])


#: CVaR of the gambler at each alpha, and 7 more.
GAMBLER = {
    1: 0.9747767159,
    0.9: 1.0830852399,
    0.7: 1.3925381656,
    0.4: 2.4369417898,
    0.2: 4.8738835796,
    0.1: 6.0,
}


def trader() -> tp.SSP:
    """Three days; on each hold, or sell for what it is worth, which goes up or down by the day."""
    rows: list[Any] = []
    for day, worth in itertools.product(range(3), range(-2, 3)):
        rows.append(((day, worth), "sell", "sold", 1, -5 - worth))
        ends = [
            ((day + 1, worth + step), p, Fraction(1, 10))
            for step, p in ((1, Fraction(1, 2)), (-1, Fraction(1, 4)), (0, Fraction(1, 4)))
        ]
        rows += [
            (
                (day, worth),
                "hold",
                to if day < 2 and abs(to[1]) <= 2 else "sold",
                p,
                fee if day < 2 else -4 - worth,
            )
            for to, p, fee in ends
        ]
    return tp.SSP.from_outcomes(rows, (0, 0), ["sold"])
