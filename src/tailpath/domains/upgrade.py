"""Upgrade: an item goes up by a star, stays, falls by one, or is destroyed; how careful is careful?

`docs/model.md` has the rules; the probabilities are those of "Star Force" of MapleStory, as of
2024, from 12 stars on. Left out are bonuses: a mini-game, events, and the sure success after two
falls in a row.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tailpath.domains.register import Domain
from tailpath.errors import OptionError
from tailpath.model.cost_units import exact_number
from tailpath.model.ssp import SSP
from tailpath.options import check_integer

#: Chances of a success and of destruction at each number of stars, in tenths of a percent.
CHANCES = {
    12: (400, 0),
    13: (350, 0),
    14: (300, 0),
    **dict.fromkeys((15, 16, 17), (300, 21)),
    **dict.fromkeys((18, 19), (300, 28)),
    **dict.fromkeys((20, 21), (300, 70)),
    22: (30, 194),
    23: (20, 294),
    24: (10, 396),
}
FIRST, LAST = 12, 25
#: From 16 stars on a failure costs a star, but not at 20.
FALLS = (16, 17, 18, 19, 21, 22, 23, 24)
PROTECTED = (15, 16)


def upgrade(target: int = 17, spare: Any = 20) -> SSP:
    """Bring an item from 12 stars to a target; states are stars.

    Parameters
    ----------
    target : int in 13 .. 25
        The stars to reach.
    spare : number, 0 or more
        The price of another item, in attempts.

    Returns
    -------
    SSP
        The model.

    Raises
    ------
    OptionError
        If an argument lies outside its range.

    Examples
    --------
    >>> tp.domains.upgrade(13)
    <SSP 2 states, 1 choice, 2 outcomes, start 12>
    """
    target = check_integer(target, "the target", FIRST + 1)
    if target > LAST:
        raise OptionError(f"the target must be at most {LAST} stars, not {target}")
    cost_of_spare = exact_number(spare, "the price of a spare item")
    rows: list[tuple[int, str, int, Fraction, Fraction]] = []
    for stars in range(FIRST, target):
        success, destroyed = (Fraction(chance, 1000) for chance in CHANCES[stars])
        failed, fallen = 1 - success - destroyed, stars - (stars in FALLS)
        one = Fraction(1)
        rows += [
            (stars, "try", stars + 1, success, one),
            (stars, "try", fallen, failed, one),
            (stars, "try", FIRST, destroyed, one + cost_of_spare),
        ]
        if stars in PROTECTED:
            rows.append((stars, "protect", stars + 1, success, 2 * one))
            rows.append((stars, "protect", fallen, failed + destroyed, 2 * one))
    return SSP.from_outcomes(rows, FIRST, [target])


def _to(text: str) -> SSP | None:
    return (
        upgrade(int(text))
        if text.isascii() and text.isdigit() and FIRST < int(text[:3]) <= LAST
        else None
    )


#: `upgrade:STARS`.
DOMAIN = Domain("upgrade", _to, f"write the stars to reach, {FIRST + 1} to {LAST}, e.g. upgrade:17")
