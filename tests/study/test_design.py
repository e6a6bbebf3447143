"""The design is the paper's: section 5 counts its points, and so do we."""

import pytest

import tailpath
from tailpath.errors import OptionError
from tailpath.study.design import ALPHA0, ATOMS, FINE_ATOMS, LP_MODES, PROBLEMS, build, effort, largest, tasks


def test_the_paper_has_810_points_and_18_simulations():
    everything = tasks()
    for method in ("quantile", "interpolation", "optimum"):
        assert sum(task.atoms for task in everything if task.method == method and task.atoms != FINE_ATOMS) == 810
    simulations = [task for task in everything if task.method == "simulation"]
    assert len(simulations) == 18
    assert {(task.domain, task.problem) for task in simulations} == {("gridworld", "14x16"), ("river", "30x10")}
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize(("domain", "problem"), [(domain, problem) for domain in PROBLEMS for problem in PROBLEMS[domain]])
def test_problems_have_the_paper_s_sizes(domain, problem):
    model = build(domain, problem)
    assert model.n_states == PROBLEMS[domain][problem]
    rows, columns = (int(side) for side in problem.split("x"))
    assert (model.geometry.rows, model.geometry.columns) == (rows, columns)


def test_the_footnote_of_the_paper():
    """Y for 7 atoms, and its part from alpha_target = 0.1 up."""
    assert [float(f"{y:.2g}") for y in tailpath.log_atoms(1e-2, 7)] == [0.01, 0.022, 0.046, 0.1, 0.22, 0.46, 1]
    assert [float(f"{y:.2g}") for y in tailpath.log_atoms(1e-3, 7)] == [0.001, 0.0032, 0.01, 0.032, 0.1, 0.32, 1]


def test_linear_programs_run_where_they_are_few():
    by_default = {(task.problem, task.atoms): task.inner for task in tasks() if task.method == "interpolation"}
    assert {key for key, inner in by_default.items() if inner == "lp"} == {("5x5", 7), ("8x9", 7), ("10x3", 7), ("16x6", 7)}
    assert set(by_default.values()) == {"lp", "sampled"}
    assert {task.inner for task in tasks(lp="full") if task.method == "interpolation"} == {"lp"}
    assert {task.inner for task in tasks(lp="none") if task.method == "interpolation"} == {"greedy"}
    assert {len(tasks(lp=mode)) for mode in LP_MODES} == {186}


def test_restrictions():
    found = tasks(only=["gridworld/5x5"], atoms=[7], alpha0=[0.1])
    assert {(task.domain, task.problem, task.atoms, task.alpha0) for task in found} == {("gridworld", "5x5", 7, 0.1)}
    assert sorted(task.method for task in found) == ["interpolation", "optimum", "quantile"]
    assert {task.problem for task in tasks(only=["river", "gridworld/8x9"])} == {"10x3", "16x6", "30x10", "8x9"}
    assert not any(task.method == "simulation" for task in tasks(simulation=False))
    assert {task.atoms for task in tasks(atoms=[FINE_ATOMS])} == {FINE_ATOMS}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"only": ["gridworld/6x6"]}, "the study has no problem 'gridworld/6x6'; it has gridworld/5x5, "),
        ({"atoms": [8]}, "the study has no atoms 8; it has 7, 13, 25, 49"),
        ({"alpha0": [0.2]}, "the study has no alpha0 0.2; it has 0.001, 0.01, 0.1"),
        ({"lp": "some"}, "unknown choice of linear programs 'some'"),
    ],
)
def test_what_the_study_does_not_have(given, text):
    with pytest.raises(OptionError) as caught:
        tasks(**given)
    assert str(caught.value).startswith(text)


def test_the_longest_come_first():
    efforts = [effort(task) for task in tasks()]
    assert efforts == sorted(efforts, reverse=True)
    assert efforts[-1] > 0
    assert [largest(domain) for domain in PROBLEMS] == ["14x16", "30x10"]
    assert (ATOMS, ALPHA0) == ((7, 13, 25), (1e-3, 1e-2, 1e-1))
