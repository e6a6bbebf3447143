"""`tailpath.compare`: the table of the command line in Python, with one's own policies in it."""

import pickle

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError, PolicyError
from tailpath.texts import table

RIVER = tp.domains.river(rows=6, columns=4)


def test_own_policies_beside_the_optimum():
    best, plan, neutral = (
        tp.solve_cvar_exact(RIVER, 0.1),
        tp.solve_cvar_quantile(RIVER, tp.log_atoms(0.01, 5)),
        tp.solve_expected(RIVER),
    )
    mine = {
        "neutral": neutral.policy.decisions,
        "function": lambda state: neutral.policy.action(state),
        "planner": plan,
        "best": best,
    }
    found = tp.compare(RIVER, mine, [0.5, 0.1])
    assert [(line.alpha, line.method) for line in found.lines] == [
        (alpha, name)
        for alpha in (0.1, 0.5)
        for name in ("neutral", "function", "planner", "best", "optimum")
    ]
    for alpha in (0.1, 0.5):
        costs = tp.evaluate(RIVER, neutral, alpha)
        line = found["neutral", alpha]
        assert (line.predicted, line.gap, line.deployed, line.var, line.mean) == (
            None,
            None,
            costs.cvar(alpha),
            costs.var(alpha),
            costs.mean,
        )
        assert line.over == pytest.approx(costs.cvar(alpha) - best.cvar(alpha), abs=1e-9)
        assert found["function", alpha].deployed == line.deployed
        assert found["planner", alpha].predicted == plan.cvar(alpha)
        assert found["best", alpha].over == pytest.approx(0, abs=1e-9)
        low, high = found.bounds[alpha]
        assert low <= found["optimum", alpha].deployed * (1 + 1e-12) and found[
            "optimum", alpha
        ].deployed <= high * (1 + 1e-12)


def test_without_policies_it_is_the_table_of_the_command_line():
    found = tp.compare(RIVER, alphas=0.1, atoms=5)
    assert [line.method for line in found.lines] == ["expected", "quantile", "optimum"]
    assert found.notes[1].startswith("quantile: 5 atoms from 0.01, ")


def test_it_prints_indexes_and_travels():
    found = tp.compare(RIVER, {"mine": tp.solve_expected(RIVER)}, [0.1])
    assert repr(found) == "<Comparison 2 methods at 1 alpha>"
    assert str(found).splitlines()[0].split() == [
        "alpha",
        "method",
        "predicted",
        "deployed",
        "gap",
        "over",
        "over",
        "%",
        "VaR",
        "mean",
        "seconds",
    ]
    assert max(map(len, found.as_text(width=70).splitlines())) <= 70
    assert pickle.loads(pickle.dumps(found)) == found
    frame = found.to_pandas()
    assert list(frame["method"]) == ["mine", "optimum"] and np.isfinite(frame["deployed"]).all()
    with pytest.raises(KeyError):
        found["nobody", 0.1]


def test_what_is_refused():
    with pytest.raises(PolicyError, match=r"^the policy decides in 'x' and other states"):
        tp.compare(RIVER, {"mine": {"x": "y"}}, [0.1])
    with pytest.raises(OptionError, match=r"^a policy cannot be called 'optimum'"):
        tp.compare(RIVER, {"optimum": {}}, [0.1])
    with pytest.raises(OptionError, match=r"^give at least one alpha$"):
        tp.compare(RIVER, {}, [])


@pytest.mark.parametrize("width", [200, 60, 40, 24])
def test_tables_fit(width):
    rows = [["expected", 1234.56789, None], ["x", 0.000123456, 3]]
    lines = table(["method", "value", "steps"], rows, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert any("expected" in line for line in lines)


def test_a_policy_that_may_not_arrive_is_infinitely_far_from_the_optimum():
    rows = [("a", "go", "b", 0.5, 1), ("a", "go", "pit", 0.5, 1), ("a", "walk", "b", 1, 9)]
    ssp = tp.SSP.from_outcomes([*rows, ("pit", "stay", "pit", 1, 1)], "a", ["b"])
    found = tp.compare(ssp, {"mine": {"a": "go"}}, [0.1])
    assert found["mine", 0.1].over == np.inf
    assert found["optimum", 0.1].over == 0
    line = next(line for line in str(found).splitlines() if "mine" in line)
    assert line.split()[3:6] == ["inf", "-", "inf"]
