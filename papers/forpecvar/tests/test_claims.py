"""Claims and tables, on runs made by hand: every number has been worked out beside the program."""

import csv
from dataclasses import replace

import pytest

from forpecvar import atoms, claims, tables
from forpecvar.claims import Finding
from forpecvar.report import judged_claims
from forpecvar.results import Results, quotient
from forpecvar.store import AtomPoint, StudyTask
from making import made, run_of, simulation, sliced
from tailpath import log_atoms


@pytest.fixture(scope="module")
def whole():
    """A complete study in which everything is as simple as can be."""
    return Results([made(task) for task in sliced()])


def test_verdicts_go_by_the_part_of_the_cases():
    parts = (1.0, 0.99, 0.9, 0.89, 1 / 3, 0.33, 0.0)
    assert [Finding("", part).verdict for part in parts] == [
        *("holds", "mostly", "mostly", "in part", "in part", "differs", "differs")
    ]


def test_a_complete_study_judges_every_claim(whole):
    found = judged_claims(whole)
    assert [len(claims) for claims in found.values()] == [7, 4, 6, 5], (
        "the boxes have no outliers: none of none is no verdict"
    )
    first = found["CVaRVILI and CVaRVIQ"]
    assert (
        first["Predicted and deployed values of both planners"].ours
        == "810 of each, and the optimum at 810 of the same points"
    )


def test_a_slice_is_judged_as_a_slice():
    few = Results([made(task) for task in sliced(only=["gridworld/5x5"], atoms=[7], alpha0=[0.1])])
    says = [says for section in judged_claims(few).values() for says in section]
    assert "Points near alpha0 are further off than points near 1, in general" in says
    assert not any(
        "River" in text or text.startswith(("With more atoms", "Predicted and deployed"))
        for text in says
    )
    without = Results([made(task) for task in sliced(lp="none")])
    says = [says for section in judged_claims(without).values() for says in section]
    assert not any(
        "CVaRVILI and CVaRVIQ differ" in text or "faster" in text or "two policies" in text
        for text in says
    )
    own = Results(
        [
            made(replace(task, domain="own", problem="road"))
            for task in sliced(only=["gridworld/5x5"])
        ]
    )
    assert judged_claims(own) == {}
    assert judged_claims(Results([])) == {}


def test_linear_programs_are_preferred_to_the_closed_form():
    task = StudyTask("gridworld", "5x5", "interpolation", "", "lp", 7, 0.1)
    for order in (("lp", "greedy"), ("greedy", "lp")):
        results = Results([made(replace(task, inner=inner)) for inner in order])
        assert results.get("interpolation", ("gridworld", "5x5"), 7, 0.1).task.inner == "lp"


# ---------------------------------------------------------------------- both planners


def two_planners(*differences, inner="lp"):
    base = StudyTask("gridworld", "5x5", "quantile", "", "", 7, 0.1)
    values = range(len(differences))
    one = [AtomPoint(0.1 + 0.1 * k, 5.0, 10.0, 8.0, 5.0, 0.001, 0.001, 0.001, 10) for k in values]
    other = [
        AtomPoint(
            0.1 + 0.1 * k, 5.0 + 1e-9, 10.0 + differences[k], 8.0, 5.0, 0.001, 0.001, 0.001, 10
        )
        for k in values
    ]
    return [
        run_of(base, points=one),
        run_of(
            replace(base, method="interpolation", inner=inner),
            points=other,
            plan_seconds=25.0,
            plan_least=25.0,
        ),
    ]


def test_differences_are_counted_below_each_limit():
    results = Results(two_planners(0.0, 5e-4, 5e-3, 0.05))
    claim = claims.close_policies(results)
    assert claim.ours.startswith("50.00 %, 75.00 %, 100.00 % of 4 (largest difference 0.05)")
    assert claim.verdict == "in part"
    assert claims.equal_predictions(results).verdict == "holds"
    rows = tables.planner_differences(results).rows
    assert [row[3:6] for row in rows if row[0] == "deployed values"] == [[50.0, 75.0, 100.0]]


def test_a_variant_for_contrast_is_set_beside_the_published_one_and_judged_by_no_claim():
    """The formula to the letter: 1.2 times the optimum where the published planner has 1.1;
    CVaRVILI is the published one's.
    """
    chosen = sliced(
        only=["gridworld/5x5"],
        atoms=[7],
        alpha0=[0.1],
        variants=("improved", "published", "printed"),
    )
    results = Results(
        [made(task, excess=1.2 if task.variant == "printed" else 1.1) for task in chosen]
    )
    assert (results.variants, results.judged) == (
        ["improved", "published", "printed"],
        ["improved", "published"],
    )
    table = tables.variants(results)
    row = dict(zip(table.headers, table.rows[0]))
    assert [row[f"{name} above optimum, mean %"] for name in results.variants] == pytest.approx(
        [10, 10, 20]
    )
    assert [row[f"{name} worse than improved at"] for name in ("published", "printed")] == [0, 7]
    assert [row[f"{name} better than improved at"] for name in ("published", "printed")] == [0, 0]
    differing = {(row[0], row[1]): row[-1] for row in tables.planner_differences(results).rows}
    assert differing["deployed values", "printed"] == pytest.approx(0.1 * 100)
    assert (
        differing["deployed values", "published"] == differing["predicted values", "printed"] == 0
    )
    assert Results([made(task) for task in chosen if task.variant == "printed"]).judged == []


def test_the_ratio_of_planning_times():
    claim, most = (claims.faster(Results(two_planners(0.0)), most) for most in (None, 100.0))
    assert (claim.ours, claim.verdict) == ("50 to 50 times with 7 atoms", "holds")
    assert (most.ours, most.verdict) == ("more than 100 times in 0 of 1 settings", "holds")
    assert claims.faster(Results(two_planners(0.0)), 40.0).verdict == "differs"
    assert claims.faster(Results(two_planners(0.0, inner="greedy"))) is None


def test_times_that_a_clock_cannot_tell_apart_are_the_same():
    assert claims.rising_times([[1, 2, 2.1], [1, 0.95, 2], [3, 2, 4]]) == (
        "2 of 3 series",
        pytest.approx(2 / 3),
    )
    assert claims.rising_times([[1, 1.05, 1], [1, 2]]) == (
        "1 of 1 series (1 flat ones left out)",
        1.0,
    )


def test_times_that_do_not_rise_are_seen(whole):
    assert claims.atoms_take_time(whole).ours.startswith("CVaRVIQ: 18 of 18 series")
    flat = Results([made(task, plan_seconds=1.0, plan_least=1.0) for task in sliced()])
    assert claims.atoms_take_time(flat).verdict == "differs"
    assert claims.alpha0_matters_less(flat).verdict == "differs"
    assert claims.alpha0_matters_less(whole).verdict == "holds"


# ---------------------------------------------------------------------- atoms and alpha0


def test_more_atoms_compares_at_common_atoms():
    def study(ratios, excesses):
        chosen = sliced(only=["gridworld/5x5"], alpha0=[0.1])
        by_atoms = dict(zip((7, 13, 25), zip(ratios, excesses)))
        return Results([made(task, *by_atoms[task.atoms]) for task in chosen])

    good = atoms.more_atoms(study((0.7, 0.8, 0.9), (1.3, 1.2, 1.1)))
    assert good.verdict == "holds"
    assert good.ours.startswith(
        "predicted rises at 7 of 7 common atoms; deployed falls at every step at 7 of 7"
    )
    bad = atoms.more_atoms(study((0.7, 0.8, 0.9), (1.1, 1.3, 1.0)))
    assert (
        "deployed falls at every step at 0 of 7, from the coarsest to the finest grid at 7 of 7"
        in bad.ours
    )
    assert (bad.verdict, bad.remark[:60]) == (
        "differs",
        "The largest rise of a deployed value with more atoms is 20. No"[:60],
    )


def test_boxes_have_as_many_points_as_the_paper_says(whole):
    def predicted_by_deployed(n, low, least=0.0):
        points = whole.points("quantile", domain="river", atoms=n, alpha0=low, least=least)
        return quotient(points, "prediction")

    low = 1e-3
    assert [predicted_by_deployed(n, low).size for n in (7, 13, 25)] == [21, 39, 75]
    assert predicted_by_deployed(7, 1e-2, atoms.TARGET).size == 3 * 4
    assert predicted_by_deployed(7, 1e-3, atoms.TARGET).size == 3 * 3
    assert predicted_by_deployed(7, low) == pytest.approx(0.9 / 1.1)
    points = whole.points("quantile", "optimum", domain="river", atoms=7, alpha0=low)
    assert quotient(points, "deployed") == pytest.approx(1.1)


def test_the_gap_near_alpha0_is_seen():
    task = StudyTask("river", "10x3", "quantile", "", "", 7, 0.1)

    def run(ratios):
        return Results(
            [
                run_of(
                    task,
                    points=[
                        AtomPoint(y, r * 10, 10.0, 8.0, 5.0, 1e-3, 1e-3, 1e-3, 9)
                        for y, r in zip(log_atoms(0.1, 7).tolist(), ratios)
                    ],
                )
            ]
        )

    assert atoms.worse_near_alpha0(run([0.5, 0.6, 0.7, 1, 1, 1, 1])).ours.endswith(
        "mean distance 50.0% at alpha0, 0.00% at alpha = 1; 0 runs are left out, where no value is"
        " off by more than 1e-3"
    )
    assert atoms.worse_near_alpha0(run([1, 1, 1, 1, 0.7, 0.6, 0.5])).verdict == "differs"


def grids(values):
    """CVaRVIQ on the largest Gridworld with 25 atoms; `values[alpha0]` is what deployed values are
    multiplied by.
    """
    chosen = [
        task
        for task in sliced(only=["gridworld/14x16", "river/30x10"], atoms=[25])
        if task.method in ("quantile", "optimum")
    ]
    return Results([made(task, excess=values[task.alpha0]) for task in chosen])


def test_a_smaller_alpha0_is_compared_at_the_same_alpha():
    helps, hurts = (
        grids({1e-3: 1.1, 1e-2: 1.2, 1e-1: 1.3}),
        grids({1e-3: 1.3, 1e-2: 1.2, 1e-1: 1.1}),
    )
    assert (atoms.grid_alpha0(helps).verdict, atoms.grid_alpha0(hurts).verdict) == (
        "holds",
        "differs",
    )
    assert (atoms.river_alpha0(helps).verdict, atoms.river_alpha0(hurts).verdict) == (
        "differs",
        "holds",
    )
    assert atoms.grid_alpha0(helps).ours == (
        "at alpha = 0.01: 1100.000 (alpha0 = 0.001), 1200.000 (alpha0 = 0.01);"
        " at alpha = 0.1: 110.000 (alpha0 = 0.001), 120.000 (alpha0 = 0.01), 130.000 (alpha0 = 0.1)"
    )
    assert "within 30.00 % of the optimum" in atoms.grid_alpha0(hurts).remark
    assert atoms.target_is_worst(helps).verdict == "holds"
    assert atoms.target_is_worst(hurts).verdict == "differs"
    assert atoms.best_quartile(helps).ours == "alpha0 = 0.001 (gridworld), alpha0 = 0.001 (river)"


# ---------------------------------------------------------------------- evaluation


def test_the_longest_evaluation_and_where_it_is(whole):
    found = claims.greatest(whole, "queue_least")
    assert len(found) == 12
    assert {(setting.atoms, setting.alpha0) for _, setting in found.values()} == {(25, 1e-3)}
    assert claims.longest_where(whole).verdict == "holds"
    assert claims.grid_takes_longer(whole).verdict == "differs"  # equal, and so not longer
    rows = tables.evaluation_times(whole).rows
    assert rows[2][:4] == ["CVaRVILI", "Gridworld 14×16", 3244.18, 25.0]


def test_evaluation_times_are_judged_and_nodes_and_the_compiled_engine_told(whole):
    claim = claims.evaluation_time(whole)
    assert claim.ours == (
        "with falling alpha0 the time rises in 12 of 12 series, the expanded nodes in 0 of 12"
        " (the compiled engine's time in 12 of 12 series); with rising |Y| the time rises in 12 of"
        " 12 series, the expanded nodes in 12 of 12 (the compiled engine's time in 12 of 12 series)"
    )
    assert claim.verdict == "holds"
    flat = Results([made(task, queue=1.0) for task in sliced()])
    assert claims.evaluation_time(flat).verdict == "differs"
    assert claims.longest_where(flat).verdict == "holds"  # of equal ones the last


def test_monte_carlo_errors_are_averaged_over_repetitions():
    task = StudyTask("river", "30x10", "simulation", "", "", 7, 0.1)
    one = [
        simulation(0.1, 11.0),
        simulation(1.0, 10.0),
        simulation(0.1, 10.0, repetition=1),
        simulation(1.0, 10.5, repetition=1),
    ]
    other = [
        simulation(0.1, 7.0),
        simulation(1.0, 10.0),
        simulation(0.1, 10.0, repetition=1),
        simulation(1.0, 10.0, repetition=1),
    ]
    results = Results(
        [
            run_of(task, points=(), simulations=both(one)),
            run_of(replace(task, atoms=13), points=(), simulations=both(other)),
        ]
    )
    # Repetition 0: 1 and 3; repetition 1: 0 and 0.
    assert claims.simulation_errors(results, "river", False) == pytest.approx((1.0, 1.0, 1.5))
    # Repetition 0: 1, 0, 3, 0; repetition 1: 0, 0.5, 0, 0.
    assert claims.simulation_errors(results, "river", True) == pytest.approx((0.5625, 0.25, 1.75))
    assert claims.simulation_errors(results, "gridworld", True) is None
    # In the time of the compiled engine all are twice as far off.
    assert claims.simulation_errors(results, "river", False, "lattice") == pytest.approx((2, 2, 3))
    claim = claims.simulation_error("river", results)
    assert claim.ours.count("2 of 2 settings are off by more than 0.001 at alpha0 on average") == 2
    assert claim.verdict == "holds"
    near = [replace(row, simulated=row.deployed + 0.0019) for row in one[:1]] + one[2:3]
    results = Results(
        [
            run_of(replace(task, atoms=n), points=(), simulations=both(rows))
            for n, rows in ((7, near), (13, other))
        ]
    )
    # 0.00095 on average over the repetitions; of the compiled engine twice that.
    claim = claims.simulation_error("river", results)
    assert "1 of 2 settings are off" in claim.ours and "2 of 2 settings are off" in claim.ours
    assert claim.verdict == "in part"


def both(rows):
    """The rows, and those of the compiled engine, twice as far off."""
    return [
        *rows,
        *(
            replace(row, engine="lattice", simulated=2 * row.simulated - row.deployed)
            for row in rows
        ),
    ]


# ---------------------------------------------------------------------- tables


def test_gaps_are_percentages_of_the_right_value(whole):
    row = tables.gaps(whole).rows[0]
    assert row[:4] == ["gridworld", 7, 1e-3, 21]
    assert row[4:] == pytest.approx([100 * (1 - 0.9 / 1.1)] * 2 + [10.0] * 2 + [10.0] * 2)


def test_alpha0_at_a_tenth_of_the_target_is_set_against_the_target():
    rows = tables.alpha0_choice(grids({1e-3: 1.1, 1e-2: 1.2, 1e-1: 1.3})).rows
    assert [row[:3] for row in rows] == [[1e-2, 25, 2], [1e-1, 25, 2]]
    assert rows[0][3:] == pytest.approx(
        [20, 10, 20, 10, 100 * (1 - 0.9 / 1.2), 100 * (1 - 0.9 / 1.1)]
    )
    assert rows[1][3:] == pytest.approx(
        [30, 20, 30, 20, 100 * (1 - 0.9 / 1.3), 100 * (1 - 0.9 / 1.2)]
    )


def test_checks_would_show_a_policy_that_beats_the_optimum():
    chosen = sliced(only=["gridworld/5x5"], atoms=[7], alpha0=[0.1])
    rows = tables.checks(Results([made(task, ratio=1.2, excess=0.8) for task in chosen])).rows
    assert [row[3] for row in rows] == pytest.approx([0.0, -0.2, 0.2, -0.2, 0.2])


def test_tables_escape_bars_and_keep_all_digits_in_files(tmp_path):
    table = tables.CaptionedTable(
        "name", "caption", [{"|Y|": 7, "x": 1 / 3}, {"|Y|": None, "x": "a|b"}]
    )
    assert table.markdown() == "| \\|Y\\| | x |\n| --- | --- |\n| 7 | 0.3333 |\n| – | a\\|b |"
    table.write(tmp_path)
    assert [*csv.reader((tmp_path / "name.csv").open())] == [
        ["|Y|", "x"],
        ["7", repr(1 / 3)],
        ["", "a|b"],
    ]
