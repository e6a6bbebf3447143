"""Sepsis: treat a patient in intensive care, four hours at a time, with the data of ICU-Sepsis.

The files of the package `icu_sepsis` are read, but none of its code is run;
`docs/tutorials/sepsis.md` says what is in them.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath import SSP
from tailpath.domains import Domain
from tailpath.errors import FormatError, OptionError
from tailpath.formats import parse_number
from tailpath_cases.files import folder_of

FloatArray = NDArray[np.float64]

PATIENTS, ACTIONS = 713, 25
#: The states after the patients'; the package numbers the first two of them.
DIED, SURVIVED = 713, 714
ADMISSION = 715
DRAW, STAY = 25, 26


class _Data(NamedTuple):
    """The package's arrays: admissible (713, 25), moves (713, 25, 716), start (716,),
    clinicians (713, 25)."""

    admissible: NDArray[np.bool_]
    moves: FloatArray
    start: FloatArray
    clinicians: FloatArray


@lru_cache(maxsize=1)
def _data() -> _Data:
    folder = folder_of("icu_sepsis") / "envs" / "assets"
    try:
        lines = (folder / "admissible_actions.txt").read_text(encoding="utf-8").splitlines()[1:]
        admissible = np.zeros((PATIENTS, ACTIONS), dtype=np.bool_)
        for state, line in enumerate(lines[:PATIENTS]):
            admissible[state, [int(word) for word in line.split()]] = True
        with np.load(folder / "dynamics.npz", allow_pickle=False) as stored:
            moves, start, policy = (stored[key] for key in ("tx_mat", "d_0", "expert_policy"))
        data = _Data(admissible, moves[:PATIENTS], start, policy[:PATIENTS])
    except (OSError, KeyError, ValueError, IndexError) as error:
        raise OptionError(f"sepsis: the files of icu_sepsis are not as expected: {error}") from None
    if data.moves.shape != (PATIENTS, ACTIONS, DIED + 3) or not admissible.any(axis=1).all():
        raise OptionError(
            "sepsis: icu_sepsis has transitions of an unexpected shape, or a state"
            f" without actions: {moves.shape}"
        )
    return data


def sepsis(death: Any = None) -> SSP:
    """Bring a patient with sepsis through intensive care; states are the package's numbers.

    Parameters
    ----------
    death : number, 0 or more, optional
        What a death costs, in steps of four hours; such a run ends. Without it `died` is a dead
        end, so that only the chance to survive is left to ask for (`solve_arrival`).

    Returns
    -------
    SSP
        The model.

    Raises
    ------
    OptionError
        If the price is not such a number, or the files of `icu_sepsis` are not as expected.

    Examples
    --------
    >>> tp.solve_arrival(tailpath_cases.sepsis())
    <Arrival 0.875142 from 'admission'>
    """
    cost_of_death = None if death is None else _cost_of_death(death)
    data = _data()
    state, action = np.nonzero(data.admissible)
    row, target = np.nonzero(data.moves[state, action])
    first = np.flatnonzero(data.start)
    cost = np.ones(len(row))
    if cost_of_death is not None:
        cost[target == DIED] += float(cost_of_death)
    # After the patients' choices, who has died may have to stay; then comes the draw of a patient.
    stays = int(cost_of_death is None)
    given = [*np.bincount(state, minlength=PATIENTS), stays, 0, 1]
    outcomes = [*np.bincount(row), *[1] * stays, len(first)]
    goals = (DIED, SURVIVED)[stays:]
    return SSP(
        state_choices=np.cumsum([0, *given]),
        choice_outcomes=np.cumsum([0, *outcomes]),
        choice_action=np.array([*action, *[STAY] * stays, DRAW], dtype=np.int32),
        outcome_target=np.array([*target, *[DIED] * stays, *first], dtype=np.int32),
        outcome_probability=np.concatenate(
            (data.moves[state[row], action[row], target], np.ones(stays), data.start[first])
        ),
        outcome_cost=np.concatenate((cost, np.ones(stays), np.zeros(len(first)))),
        is_goal=np.isin(np.arange(ADMISSION + 1), goals),
        start_index=ADMISSION,
        states=(*range(PATIENTS), "died", "survived", "admission"),
        actions=(*range(ACTIONS), "draw", "stay"),
        exact_unit=None if cost_of_death is None else Fraction(1, cost_of_death.denominator),
        notes=("a step is four hours and costs 1", _ending(cost_of_death)),
    )


def _ending(cost_of_death: Fraction | None) -> str:
    if cost_of_death is None:
        return "a patient who has died never arrives; sepsis:100 prices a death at 100 steps"
    return f"a death costs {float(cost_of_death):g} steps and ends the run"


def _cost_of_death(death: Any) -> Fraction:
    """A number, or the text of one, as the rational that it stands for."""
    text = str(death)
    try:
        price = parse_number(text, "the price of a death")
    except FormatError:
        raise OptionError(f"the price of a death must be a number, not {death!r}") from None
    if not 0 <= price <= 10**9:
        raise OptionError(f"the price of a death must lie in 0 .. 10^9, not {death!r}")
    return Fraction(text if "/" in text else repr(price))


def clinicians(ssp: SSP) -> dict[int, dict[int, float]]:
    """The clinicians' policy: the probability of each action in every state.

    Actions that were too rare to be admissible are counted as the mean of those that are.
    """
    data = _data()
    share = np.where(data.admissible, data.clinicians, 0.0)
    seldom = (data.clinicians.sum(axis=1) - share.sum(axis=1)) / data.admissible.sum(axis=1)
    share = np.where(data.admissible, share + seldom[:, None], 0.0)
    share /= share.sum(axis=1, keepdims=True)
    given = [np.flatnonzero(row).tolist() for row in share]
    return {s: {a: float(share[s, a]) for a in given[s]} for s in range(PATIENTS)}


def _build(text: str) -> SSP | None:
    try:
        cost_of_death = _cost_of_death(text) if text else None
    except OptionError:
        return None
    return sepsis(cost_of_death)


#: `sepsis:` and `sepsis:PRICE`.
DOMAIN = Domain(
    "sepsis",
    _build,
    "write nothing after the colon, or the price of a death in steps of 4 hours, e.g. sepsis:100",
    about=lambda text: "ICU-Sepsis: four hours of treatment at a time, counted in MIMIC-III",
    policies={"clinicians": clinicians},
)
