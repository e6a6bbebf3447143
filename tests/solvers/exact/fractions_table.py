"""The recursion over budgets in fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tests.reference import Model, State, expected_optimum, sure_choices

ZERO = Fraction(0)
END = ("end",)


class ExactTable:
    """E[(Z - w)+], and what else is wanted, by budget in exact rationals: one small expected-cost
    problem per level.

    At a level the outcomes that cost something, or arrive, end the small problem at the price of
    what follows; free ones go on within it. Its optimum over policies that surely arrive is the
    next row, zero-cost cycles and all.
    """

    def __init__(self, model: Model, excess_price: Fraction, mean_price: Fraction = ZERO) -> None:
        self.model, self.excess_price, self.mean_price = model, excess_price, mean_price
        self.neutral = expected_optimum(model)
        self.safe = sure_choices(model)
        self.price: dict[tuple[State, Fraction], Fraction] = {}
        self.mean: dict[tuple[State, Fraction], Fraction] = {}

    def price_of(self, state: State, w: Fraction) -> Fraction:
        if w <= 0:
            return self.mean_price * self.neutral[state] + self.excess_price * (
                self.neutral[state] - w
            )
        return ZERO if state in self.model.goals else self.price[state, w]

    def mean_of(self, state: State, w: Fraction) -> Fraction:
        return (
            self.neutral[state]
            if w <= 0
            else ZERO
            if state in self.model.goals
            else self.mean[state, w]
        )

    def raise_to(self, w: Fraction) -> None:
        """Fill level w; all lower levels must be there. Among actions that are exactly as good the
        mean decides.
        """

        def level(actions: dict[State, list[Any]], own: Fraction, later: Any) -> Model:
            return Model(
                {
                    s: {
                        a: [
                            (t, p, ZERO)
                            if c == 0 and t not in self.model.goals
                            else (END, p, own * c + later(t, w - c))
                            for t, p, c in self.model.choices[s][a]
                        ]
                        for a in acts
                    }
                    for s, acts in actions.items()
                },
                next(iter(actions)),
                frozenset([END]),
            )

        first = level(self.safe, self.mean_price, self.price_of)
        value = expected_optimum(first)
        tied = {
            s: [
                a
                for a, outcomes in actions.items()
                if sum((p * (c + value[t]) for t, p, c in outcomes), ZERO) == value[s]
            ]
            for s, actions in first.choices.items()
        }
        means = expected_optimum(level(tied, Fraction(1), self.mean_of))
        for s in self.safe:
            self.price[s, w], self.mean[s, w] = value[s], means[s]
