"""The gambler's numbers, and answers that a constant on arriving shifts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import InfeasibleError
from tests.signed import GAMBLER, gambler

F = Fraction


def constant_added(ssp: tp.SSP, by: float) -> tp.SSP:
    """The model with a constant added to all outcomes that arrive."""
    rows = zip(
        *(
            ssp.to_pandas()[column]
            for column in ("state", "action", "next_state", "probability", "cost")
        )
    )
    goals = set(ssp.goals)
    return tp.SSP.from_outcomes(
        [(s, a, t, p, F(repr(c)) + (F(by) if t in goals else 0)) for s, a, t, p, c in rows],
        ssp.start,
        ssp.goals,
    )


def test_the_gambler() -> None:
    ssp = gambler()
    best = tp.solve_cvar_exact(ssp, 0.1)
    for alpha, value in GAMBLER.items():
        assert best.cvar(alpha) == pytest.approx(value - 7, abs=6e-11)
        assert tp.evaluate(ssp, best.policy(alpha), alpha).cvar(alpha) == pytest.approx(
            value - 7, abs=6e-11
        )
        assert tp.solve(ssp, tp.CVaR(alpha)).value == pytest.approx(value - 7, abs=6e-11)
    assert tp.solve_expected(ssp).cost() == pytest.approx(GAMBLER[1] - 7, abs=6e-11)
    line = tp.compare(ssp, alphas=[0.1], methods=["expected", "quantile"])["optimum", 0.1]
    assert line.deployed == -1 and line.over == 0
    with pytest.raises(
        InfeasibleError, match=r"^no policy keeps cvar\(0.1\) <= -2: cvar\(0.1\) is at least -1$"
    ) as caught:
        tp.solve(ssp, "mean", ["cvar(0.1) <= -2"])
    assert caught.value.least == pytest.approx(-1)


@pytest.mark.parametrize("by", [-3, 5, F(1, 4), 0.1])
def test_a_constant_on_arriving_shifts_every_answer(by: Any) -> None:
    ssp, exact = gambler(), F(repr(by)) if isinstance(by, float) else F(by)
    more, other = float(exact), constant_added(gambler(), exact)
    close = {"rel": 1e-13, "abs": 1e-13}
    for alpha in (1.0, 0.4, 0.1):
        one, two = tp.solve_cvar_exact(ssp, 0.1), tp.solve_cvar_exact(other, 0.1)
        assert two.cvar(alpha) == pytest.approx(one.cvar(alpha) + more, **close) and two.var(
            alpha
        ) == pytest.approx(one.var(alpha) + more, **close)
        assert two.bounds(alpha) == pytest.approx(
            np.add(one.bounds(alpha), more), **close
        ) and two.mean(alpha) == pytest.approx(one.mean(alpha) + more, **close)
        assert tp.solve(other, tp.VaR(alpha)).value == pytest.approx(
            tp.solve(ssp, tp.VaR(alpha)).value + more, **close
        )
    assert tp.solve_expected(other).value[:7] == pytest.approx(
        tp.solve_expected(ssp).value[:7] + more, **close
    )
    policy = tp.solve_expected(ssp).policy
    first, second = tp.evaluate(ssp, policy, 0.01), tp.evaluate(other, policy, 0.01)
    assert (
        second.costs == pytest.approx(first.costs + more, **close)
        and second.probabilities.tolist() == first.probabilities.tolist()
    )
    assert second.mean == pytest.approx(first.mean + more, **close) and second.std == pytest.approx(
        first.std
    )
    np.testing.assert_allclose(
        tp.simulate(other, policy, 100, 5),
        tp.simulate(ssp, policy, 100, 5) + more,
        rtol=1e-13,
        atol=1e-13,
    )
    for t in (-7, -3, 0):
        assert tp.solve_on_time(other, 1 + more).probability(float(t + exact)) == tp.solve_on_time(
            ssp, 1
        ).probability(t)
        assert tp.solve(other, tp.Late(float(t + exact))).value == tp.solve(ssp, tp.Late(t)).value
        assert tp.solve(other, tp.Shortfall(float(t + exact))).value == pytest.approx(
            tp.solve(ssp, tp.Shortfall(t)).value, **close
        )
        points = [(t, 0), (t, 1), (t + 2, 4)]
        losses = (tp.Loss([(float(x + at), y) for x, y in points], 2) for at in (0, exact))
        assert (
            len(
                {
                    round(tp.solve(model, loss).value, 12)
                    for model, loss in zip((ssp, other), losses)
                }
            )
            == 1
        )
    one, two = tp.frontier(ssp, "cvar(0.1)"), tp.frontier(other, "cvar(0.1)")
    np.testing.assert_allclose([two.mean, two.risk], np.add([one.mean, one.risk], more), rtol=1e-12)
    before, after = tp.worst_runs(ssp, policy, 0.5), tp.worst_runs(other, policy, 0.5)
    assert [[(step.state, step.action) for step in run] for run in after] == [
        [(step.state, step.action) for step in run] for run in before
    ]
    np.testing.assert_allclose(
        [row[4:] for row in after.blame], [row[4:] for row in before.blame], atol=1e-12
    )
    cautious = (
        tp.solve_cvar_exact(ssp, 0.1).policy(0.1),
        tp.solve_cvar_exact(other, 0.1).policy(0.1),
    )
    left, right = (
        tp.differences(ssp, policy, cautious[0], 0.1),
        tp.differences(other, policy, cautious[1], 0.1),
    )
    assert [part.first_mean + more for part in left] == pytest.approx(
        [part.first_mean for part in right], **close
    )
    assert [part.second_cvar + more for part in left] == pytest.approx(
        [part.second_cvar for part in right], **close
    )
    rows = cautious[0].table(ssp), cautious[1].table(other)
    assert [(row.state, row.mean + more, row.cvar + more) for row in rows[0]] == [
        (row.state, pytest.approx(row.mean, **close), pytest.approx(row.cvar, **close))
        for row in rows[1]
    ]
