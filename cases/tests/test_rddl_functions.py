"""RDDL problems as functions: the same optimum as of the problem listed, and problems that listing
refuses.
"""

import pytest
from tests.cli.running import run

import tailpath as tp
from tailpath.errors import FormatError

TRAFFIC = "rddl:CrossingTraffic_MDP_ippc2011/"


@pytest.mark.parametrize(
    "name",
    [f"{TRAFFIC}1", "rddl:Navigation_MDP_ippc2011/1", "rddl:TriangleTireworld_MDP_ippc2014/1"],
)
def test_the_bracket_holds_the_optimum_of_the_problem_listed(name):
    horizon = {"horizon": 5}
    ssp = tp.read(name, constants=horizon)
    model = tp.formats.read_implicit(name, horizon)
    exact = tp.solve_cvar_exact(ssp, 0.2).cvar(0.2)
    if "Tireworld" in name:  # there rewards are positive: 100 less the total in all steps
        total = [note for note in ssp.notes if "the total reward is" in note]
        assert total
        exact += 5 * 100 - 100
    found = tp.solve_cvar_lazy(model, 0.2, gap=1e-6)
    assert found.bounds() == pytest.approx((exact, exact), abs=1e-5)


def test_a_run_has_arrived_where_nothing_more_is_paid():
    """In the goal, which the robot does not leave: whatever the obstacles do."""
    model = tp.formats.read_implicit(f"{TRAFFIC}1")
    found = tp.solve_cvar_lazy(model, 0.2, gap=0.01)
    ends = [s for s in found.search.expansion.found if model.is_goal(s) and s.step < 40]
    assert ends
    assert all(
        cost > 0
        for s in found.search.expansion.expanded[:20]
        for a in model.actions(s)
        for _, t, cost in model.outcomes(s, a)
    )


def test_a_problem_that_cannot_be_listed_gets_a_bracket():
    model = tp.formats.read_implicit(f"{TRAFFIC}5")
    found = tp.solve_cvar_lazy(model, 0.5, max_states=300)
    low, high = found.bounds()
    assert 2 <= low < high <= 40 * (1 + 1e-9)
    assert "surely" in found.assumed


def test_what_has_no_functions_is_refused():
    with pytest.raises(FormatError, match="needs a horizon"):
        tp.formats.read_implicit(f"{TRAFFIC}1", {"horizon": "none"})
    with pytest.raises(FormatError, match="the reward depends on"):
        tp.formats.read_implicit("rddl:SysAdmin_MDP_ippc2011/1")


def test_constants_of_the_command_line(capsys):
    arguments = ("solve", f"{TRAFFIC}1", "--alpha", 0.2, "--lazy", "--json")
    result = run(capsys, *arguments, "--const", "horizon=5", "--gap", 1e-6)
    assert result.code == 0, result
    model = tp.formats.read_implicit(f"{TRAFFIC}1", {"horizon": 5})
    assert result.json["bounds"] == list(tp.solve_cvar_lazy(model, 0.2, gap=1e-6).bounds())
