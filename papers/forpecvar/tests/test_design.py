"""The built-in design is the paper's: section 4 counts its points, and so do we. Others are
described by a file.
"""

import pathlib

import pytest
from tests.printed import blocks

import tailpath
from forpecvar.atoms import TARGET
from forpecvar.claims import paper
from forpecvar.design import LP_MODES, effort, read_design, restricted, tasks
from forpecvar.results import Results, _size
from forpecvar.store import StudyTask
from making import made, sliced
from tailpath.errors import OptionError

SIZES = {
    "gridworld": {"5x5": 25, "8x9": 72, "14x16": 224},
    "river": {"10x3": 30, "16x6": 96, "30x10": 300},
}


def test_the_paper_has_810_points_of_every_method_and_variant_and_18_simulations_of_each():
    everything = tasks(paper())
    for variant in ("improved", "published"):
        for method in ("quantile", "interpolation"):
            here = [
                task
                for task in everything
                if (task.method, task.variant, task.part) == (method, variant, "")
            ]
            assert (len(here), sum(task.atoms for task in here)) == (54, 810)
    printed = [task for task in everything if task.variant == "printed" and task.part == ""]
    assert ({task.method for task in printed}, sum(task.atoms for task in printed)) == (
        {"quantile"},
        810,
    )
    assert (
        sum(task.atoms for task in everything if task.method == "optimum" and task.part == "")
        == 810
    )
    simulations = [task for task in everything if task.method == "simulation"]
    assert len(simulations) == 2 * 18  # none of the variant for contrast
    assert {(task.domain, task.problem) for task in simulations} == {
        ("gridworld", "14x16"),
        ("river", "30x10"),
    }
    assert len(set(everything)) == len(everything)
    assert {(task.problem, task.atoms) for task in everything if task.part == "finer"} == {
        ("30x10", 49)
    }


def test_problems_have_the_paper_s_sizes():
    assert [problem.key for problem in paper().problems] == [
        (domain, name) for domain in SIZES for name in SIZES[domain]
    ]
    for problem in paper().problems:
        model, (domain, name) = problem.read(), problem.key
        assert model.n_states == SIZES[domain][name]
        assert [model.geometry.rows, model.geometry.columns] == [
            int(side) for side in name.split("x")
        ]


def test_the_footnote_of_the_paper():
    """Y for 7 atoms, and its part Y~ from alpha_target = 0.1 up, as claims and boxes take it."""
    for low, part in ((1e-2, [0.1, 0.22, 0.46, 1]), (1e-3, [0.1, 0.32, 1])):
        task = StudyTask("river", "10x3", "quantile", "", "", 7, low)
        points = Results([made(task)]).points("quantile", least=TARGET)
        assert [float(f"{point.alpha:.2g}") for (point,) in points] == part
    assert [float(f"{y:.2g}") for y in tailpath.log_atoms(1e-2, 7)] == [
        0.01,
        0.022,
        0.046,
        0.1,
        0.22,
        0.46,
        1,
    ]
    assert [float(f"{y:.2g}") for y in tailpath.log_atoms(1e-3, 7)] == [
        0.001,
        0.0032,
        0.01,
        0.032,
        0.1,
        0.32,
        1,
    ]


def test_linear_programs_run_everywhere_or_nowhere():
    for given, inner in (({}, "lp"), ({"lp": "full"}, "lp"), ({"lp": "none"}, "greedy")):
        found = [task for task in tasks(paper(), **given) if task.method == "interpolation"]
        assert {task.inner for task in found} == {inner}
    assert {len(tasks(paper(), lp=mode)) for mode in LP_MODES} == {6 * 54 + 12 + 36}


def test_restrictions():
    found = sliced(only=["gridworld/5x5"], atoms=[7], alpha0=[0.1])
    assert {(task.domain, task.problem, task.atoms, task.alpha0) for task in found} == {
        ("gridworld", "5x5", 7, 0.1)
    }
    assert sorted(task.method for task in found) == ["interpolation", "optimum", "quantile"]
    assert {task.problem for task in sliced(only=["river", "gridworld/8x9"])} == {
        "10x3",
        "16x6",
        "30x10",
        "8x9",
    }
    assert not any(task.method == "simulation" for task in sliced(simulation=False))
    assert {task.method for task in sliced(methods=["quantile"], simulation=False)} == {"quantile"}
    assert {task.variant for task in sliced(variants=["published"], methods=["quantile"])} == {
        "published"
    }


def test_what_the_paper_does_not_have_is_studied_all_the_same():
    found = sliced(only=["river/10x4"], atoms=[9], alpha0=[0.05], gamma=0.99)
    assert {(task.domain, task.problem, task.atoms, task.alpha0, task.gamma) for task in found} == {
        ("river", "10x4", 9, 0.05, 0.99)
    }
    assert {task.method for task in found} == {
        "quantile",
        "interpolation",
    }  # there is no discounted optimum


def test_any_model_is_a_problem(tmp_path):
    path = tmp_path / "road.json"
    tailpath.write(tailpath.read("textbook:lottery"), path)
    design = restricted(paper(), models=[str(path), "textbook:geometric"], atoms=[5])
    assert [problem.key for problem in design.problems] == [
        ("own", "road"),
        ("textbook", "geometric"),
    ]
    assert design.problems[0].read() == tailpath.read(path)
    assert {task.atoms for task in tasks(design)} == {5}


DESIGN = """
title = "Mine"
methods = ["quantile", "expected"]
atoms = [3]
alpha0 = [0.5]
tolerance = 1e-6
[[problems]]
name = "roads/short"
model = "road.json"
[[problems]]
name = "lottery"
model = "textbook:lottery"
"""


def test_a_design_of_one_s_own(tmp_path):
    tailpath.write(tailpath.read("textbook:lottery"), tmp_path / "road.json")
    (tmp_path / "mine.toml").write_text(DESIGN)
    design = read_design(tmp_path / "mine.toml")
    assert (design.title, design.variants, design.tolerance) == ("Mine", ("improved",), 1e-6)
    assert [problem.key for problem in design.problems] == [("roads", "short"), ("own", "lottery")]
    assert design.problems[0].read() == design.problems[1].read()
    assert [(task.method, task.variant, task.tolerance) for task in tasks(design)] == [
        *(("quantile", "improved", 1e-6), ("expected", "", 1e-6)) * 2
    ]


def test_the_design_of_the_page_is_read(tmp_path, monkeypatch):
    page = (pathlib.Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (shown,) = (block.text for block in blocks(page) if block.language == "toml")
    (tmp_path / "my.toml").write_text(shown, encoding="utf-8")
    (tmp_path / "my_planners.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "roads.csv").write_text(
        "from,action,to,p,time\nhome,highway,work,0.9,20\nhome,highway,work,0.1,60\n"
        "home,back road,work,1,30\n"
    )
    design = read_design(tmp_path / "my.toml")
    assert [problem.key for problem in design.problems] == [("roads", "short"), ("river", "10x4")]
    assert design.problems[0].read().start == "home" and tasks(design)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("title = ", "titel = "), "unknown key 'titel'; there are problems, title, "),
        (("atoms = [3]", "atoms = 3"), "atoms = 3 is not a list of int"),
        (("atoms = [3]", "atoms = [-3]"), "atoms = [-3] is not a list of int"),
        (("atoms = [3]", "atoms = [3"), "mine.toml: "),
        (('model = "road.json"', ""), "problem 1 has no model"),
        (('"lottery"', '"roads/short"'), "the study has two problems roads/short"),
        (('"expected"', '"magic"'), "there is no method 'magic'"),
        (("alpha0 = [0.5]", "alpha0 = [2]"), "alpha0 must lie in (0, 1], not 2"),
        (
            ("tolerance = 1e-6", 'import = ["no.such.module"]'),
            "the module 'no.such.module' of the study's design cannot be imported",
        ),
    ],
)
def test_designs_that_are_refused(tmp_path, change, text):
    (tmp_path / "mine.toml").write_text(DESIGN.replace(*change))
    with pytest.raises(OptionError) as caught:
        read_design(tmp_path / "mine.toml")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_design_without_problems(tmp_path):
    (tmp_path / "empty.toml").write_text("title = 'nothing'\n")
    with pytest.raises(OptionError, match="a study needs problems"):
        read_design(tmp_path / "empty.toml")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"only": ["desert"]}, "the study has no problem 'desert'; it has gridworld/5x5, "),
        ({"alpha0": [1.0]}, "cannot place 7 different atoms between alpha0 = 1 and 1"),
        ({"lp": "some"}, "unknown choice of linear programs 'some'"),
    ],
)
def test_what_the_study_does_not_have(given, text):
    with pytest.raises(OptionError) as caught:
        sliced(**given)
    assert str(caught.value).startswith(text)


def test_the_longest_come_first():
    efforts = [effort(task) for task in tasks(paper())]
    assert efforts == sorted(efforts, reverse=True)
    assert efforts[-1] > 0
    assert (paper().atoms, paper().alpha0) == ((7, 13, 25), (1e-3, 1e-2, 1e-1))


def test_a_variant_that_nobody_named_is_not_demanded():
    """The paper's design has planners as published; other methods have no variants, unless somebody
    asks for one.
    """
    assert restricted(paper(), methods=["nested"]).variants == ("improved",)
    assert restricted(paper(), methods=["quantile"]).variants == paper().variants
    with pytest.raises(OptionError, match="no method of the study has a variant 'published'"):
        restricted(paper(), methods=["nested"], variants=["published"])


def test_the_largest_problem_is_the_largest():
    """Whatever the order of the names: 30x10 has more states than 5x5."""
    assert sorted([("river", "30x10"), ("river", "5x5"), ("river", "8x9")], key=_size)[-1] == (
        "river",
        "30x10",
    )
