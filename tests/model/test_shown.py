"""Results print as tables, show themselves in notebooks, and become DataFrames and LaTeX, all in
the same way.
"""

import re

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import PolicyError

ROWS = [
    ("home", "road", "work", 0.9, 20),
    ("home", "road", "jam & co", 0.1, 20),
    ("jam & co", "wait", "work", 1, 40),
]
SSP = tp.SSP.from_outcomes([*ROWS, ("home", "train", "work", 1, 30)], "home", ["work"])
ROAD = {"home": "road"}
LIMITED = tp.solve(SSP, "mean", "late(30) <= 0.05")

RESULTS = {
    "solve": (
        LIMITED,
        [
            "least mean",
            "late(30)",
            "0.05",
            "mixture of 2 policies, weights 0.5, 0.5",
            "percentage point",
        ],
        ["measure", "limit", "value"],
    ),
    "compare": (
        tp.compare(SSP, {"mine": ROAD}, [0.5, 0.1]),
        ["deployed", "mine", "optimum"],
        ["alpha", "method", "predicted", "deployed"],
    ),
    "frontier": (
        tp.frontier(SSP, "cvar(0.1)"),
        ["corner", "cvar(0.1)", "mean"],
        ["corner", "risk", "mean", "before", "policies"],
    ),
    "worst_runs": (
        tp.worst_runs(SSP, ROAD, 0.2),
        ["VaR at 0.2", "worst run 1: probability 0.1, cost 60", "where runs turn bad"],
        ["run", "probability", "state", "memory", "action", "cost", "next_state"],
    ),
    "trace": (
        tp.trace(SSP, ROAD, seed=0),
        ["paid so far", "probability 0.9, cost 20"],
        ["state", "memory", "action", "cost", "next_state"],
    ),
    "differences": (
        tp.differences(SSP, ROAD, {"home": "train"}, 0.1),
        ["they part with probability 1", "train"],
        ["state", "first_memory"],
    ),
}


@pytest.mark.parametrize("verb", RESULTS)
def test_results_show_themselves(verb):
    result, words, columns = RESULTS[verb]
    text, shown = str(result), result._repr_html_()
    for word in words:
        assert word in text
        assert word.replace("&", "&amp;") in re.sub(r"</?(td|tr|th)[^>]*>", " ", shown)
    assert result.as_text(40) and max(map(len, result.as_text(60).splitlines())) <= 60
    assert "<table>" in shown and "jam & co" not in shown
    frame = result.to_pandas()
    assert list(frame.columns)[: len(columns)] == columns and len(frame)


def test_the_numbers_are_those_of_the_result():
    frontier, compared = RESULTS["frontier"][0], RESULTS["compare"][0]
    assert frontier.to_pandas()["mean"].tolist() == [corner.mean for corner in frontier]
    assert compared.to_pandas()["deployed"].tolist() == [line.deployed for line in compared.lines]
    assert dict(zip(*LIMITED.to_pandas()[["measure", "value"]].T.values)) == {
        "mean": LIMITED.value,
        "late(30)": LIMITED.risk("late(30)"),
    }
    runs = tp.worst_runs(SSP, ROAD, 0.2).to_pandas()
    assert runs["cost"].sum() == 60 and runs["next_state"].tolist() == ["jam & co", "work"]


def test_long_results_are_cut_and_say_so():
    ssp = tp.domains.river(rows=6, columns=5)
    frontier = tp.frontier(ssp, "cvar(0.05)")
    assert "5 of 11 corners" in frontier.as_text(most=5) and "of 11" not in str(frontier)
    assert [row.split()[0] for row in frontier.as_text(most=5).splitlines()[2:7]] == [
        "1",
        "3",
        "6",
        "8",
        "11",
    ]
    run = tp.trace(ssp, tp.solve_expected(ssp), seed=3)
    assert f"the first 2 of {len(run)} steps" in run.as_text(most=2)
    assert len(frontier.to_pandas()) == len(frontier)


# ---------------------------------------------------------------------- one way to ask an action,
# one rule for .policy


def policies():
    exact, plan = tp.solve_cvar_exact(SSP, 0.1), tp.solve_cvar_quantile(SSP, [0.1, 0.5, 1])
    road, train = tp.policy(SSP, {"home": "road"}), tp.policy(SSP, {"home": "train"})
    return {
        "markov": (train, "train"),
        "budget": (exact.policy(0.1), "train"),
        "late": (tp.solve_on_time(SSP, 20).policy(20), "road"),
        "atom": (plan.policy(0.1), "train"),
        "memory": (
            tp.MemoryPolicy(
                lambda state: None,
                lambda state, memory: "road" if memory is None else "wait",
                lambda *step: 1,
            ),
            "road",
        ),
        "history": (
            tp.HistoryPolicy(lambda history: "road" if len(history) == 1 else "wait"),
            "road",
        ),
        "mixed": (tp.MixedPolicy([road, train], [0.25, 0.75]), {"road": 0.25, "train": 0.75}),
    }


@pytest.mark.parametrize("kind", policies())
def test_every_policy_says_what_it_does_first(kind):
    policy, wanted = policies()[kind]
    assert policy.action("home") == wanted == policy.action("home", policy.start("home"))


def test_in_a_product_too():
    product = tp.within(SSP, 5)
    for policy, wanted in policies().values():
        assert tp.policy(product, policy).action(product.start) == wanted


def test_policy_is_a_property_of_one_answer_and_a_method_of_many():
    """And a method takes the alpha or the deadline it was solved with, if none is given."""
    one = [
        tp.solve_expected(SSP),
        LIMITED,
        *tp.frontier(SSP, "cvar(0.1)"),
    ]
    assert all(isinstance(solution.policy, tp.Policy) for solution in one)
    exact, on_time, plan = (
        tp.solve_cvar_exact(SSP, 0.1),
        tp.solve_on_time(SSP, 20),
        tp.solve_cvar_quantile(SSP, [0.1, 0.5, 1]),
    )
    assert exact.policy() == exact.policy(0.1) and on_time.policy() == on_time.policy(20)
    assert isinstance(plan.policy(0.1), tp.Policy)


def test_solutions_are_written(tmp_path):
    path = tmp_path / "p.json"
    for solution in (
        tp.solve_expected(SSP),
        tp.solve_cvar_exact(SSP, 0.1),
        tp.solve_on_time(SSP, 20),
        tp.solve(SSP, "cvar(0.1)"),
    ):
        tp.write_policy(solution, path)
        assert tp.read_policy(path, SSP) == tp.policy(SSP, solution)
    plan = tp.solve_cvar_quantile(SSP, [0.1, 0.5, 1])
    tp.write_policy(plan, path, alpha=0.5)
    assert (
        np.array_equal(tp.read_policy(path, SSP).atoms, plan.atoms)
        and tp.read_policy(path, SSP).start_atom == 1
    )
    with pytest.raises(PolicyError, match="a policy for every alpha; give alpha="):
        tp.write_policy(plan, path)
