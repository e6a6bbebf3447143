"""Storm as a witness: how it is asked."""

from __future__ import annotations

from fractions import Fraction

import stormpy


def checked(model, formula):
    """The value of a formula in the initial state."""
    result = stormpy.model_checking(
        model, stormpy.parse_properties(formula)[0], only_initial_states=True
    )
    return result.get_value(model.initial_states[0])


def rational(value) -> Fraction:
    return Fraction(str(value))
