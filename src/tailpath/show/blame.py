"""What is to blame for the excess E[(Z - VaR)+]: three numbers for every outcome of the model, each
exact.

    share     where the excess is paid. The excess of a run is what it pays after its cost has
              passed VaR (of the outcome that passes it, the part beyond); summed over the runs, by
              outcome. The shares sum to the excess.
    slope     what one unit of cost more on this outcome would add to the excess: the expected
              number of times it happens in runs beyond VaR.
    setback   where runs turn bad. Each outcome moves the expected excess of its run, up or down;
              summed over the runs that end beyond VaR, and divided by the probability of the
              others, the moves sum to the excess, too. A setback below 0 is good luck that was not
              enough.

With the notation of `beyond.py`, an outcome (x, y, p, c) has, summed over r and, with V_mean, past
the threshold:

    share = visits p ((c - r)+)
    slope = visits p chance(y, r - c)
    setback = visits p chance(y, r - c) (excess(y, r - c) - excess(x, r))
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailpath.model.ssp import FloatArray, Name
from tailpath.show.beyond import Beyond


class Blame(NamedTuple):
    """The part of one outcome in the excess; `share` and `setback`, over all outcomes, each sum to
    the excess.
    """

    state: Name
    action: Name
    next_state: Name
    cost: float
    share: float
    slope: float
    setback: float


def blame_of(beyond: Beyond) -> tuple[Blame, ...]:
    """The outcomes that have a part in the excess, the one with the greatest share first. The goal
    must be reached almost surely.
    """
    chain, ssp = beyond.chain, beyond.chain.ssp
    outcome = chain.outcome
    assert outcome is not None
    assert chain.unit is not None
    share, slope, setback = (np.zeros(len(chain.target)) for _ in range(3))
    level, target = beyond.level, chain.target
    source, mean = chain.source, beyond.mean
    visits, past = beyond.visits
    for r in range(beyond.threshold + 1):
        met = beyond.met(r)
        remaining, after = r - level[met], target[met]
        flow = visits[r, source[met]] * chain.probability[met]
        bad = flow * beyond.after(beyond.chance, np.ones(chain.n + 1), r, met)
        ahead = np.where(
            remaining >= 0, beyond.excess[np.maximum(remaining, 0), after], mean[after] - remaining
        )
        share[met] += flow * np.maximum(-remaining, 0)
        slope[met] += bad
        setback[met] += bad * (ahead - beyond.excess[r, source[met]])
    flow = past[source] * chain.probability
    share += flow * level
    slope += flow
    setback += flow * (level + mean[target] - mean[source])
    safe = 1 - beyond.chance[beyond.threshold, chain.start]
    unit = float(chain.unit)

    def by_outcome(values: FloatArray) -> FloatArray:
        return np.asarray(
            np.bincount(outcome, weights=values, minlength=ssp.n_outcomes), dtype=np.float64
        )

    total = [by_outcome(share) * unit, by_outcome(slope), by_outcome(setback) * (unit / safe)]
    part = np.flatnonzero(total[1] > 0)
    part = part[np.argsort(-total[0][part], kind="stable")]
    return tuple(
        Blame(
            ssp.states[int(ssp.choice_state[ssp.outcome_choice[o]])],
            ssp.choice_name(int(ssp.outcome_choice[o])),
            ssp.states[int(ssp.outcome_target[o])],
            float(ssp.observed[o]),
            *(float(values[o]) for values in total),
        )
        for o in part.tolist()
    )
