"""Pictures show what they are given: arrows where decisions lead, marks where VaR and CVaR are, and
room for everything.
"""

import io

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.pictures.distributions import MethodCurve, plot_comparison
from tailpath.pictures.states import plot_states
from tests import textbook

RIVER = tp.domains.river(rows=6, columns=5)
BEST = tp.solve_cvar_exact(RIVER, 0.01)
NEUTRAL = tp.solve_expected(RIVER).policy
ROADS = tp.SSP.from_outcomes(
    [
        ("home", "fast", "town", 0.9, 1),
        ("home", "fast", "jam", 0.1, 1),
        ("jam", "wait", "town", 1, 9),
        ("town", "on", "$work$", 1, 2),
    ],
    "home",
    ["$work$"],
)


def arrows(axes):
    """{(column, row): (right, down)} of the arrows on a map."""
    [quiver] = [artist for artist in axes.collections if type(artist).__name__ == "Quiver"]
    return {
        (x - 0.5, y - 0.5): (u, v) for (x, y), u, v in zip(quiver.get_offsets(), quiver.U, quiver.V)
    }


MOVE = {"N": (0, -1), "S": (0, 1), "E": (1, 0), "W": (-1, 0)}


@pytest.mark.parametrize("name", ["$a$", r"$\bad{$", "$x$ and $"])
def test_dollar_signs_of_names_are_no_mathematics(name):
    costs = tp.evaluate(ROADS, {"home": "fast", "jam": "wait", "town": "on"}, 0.1)
    curves = [MethodCurve(name, "deployed", [0.1, 1.0], [3.0, 2.0])]
    states = plot_states(ROADS, title=name)
    pictures = [tp.plot_tails({name: costs}, 0.1), plot_comparison(curves, title=name), states]
    for axes in pictures:
        axes.figure.savefig(
            io.BytesIO(), format="png"
        )  # mathematics that is none would be an error here
    labels = [axes.get_legend_handles_labels()[1][0] for axes in pictures[:2]]
    shown = name.replace("$", r"\$")
    assert labels == [
        f"{shown}: VaR {costs.var(0.1):.5g}, CVaR {costs.cvar(0.1):.5g}",
        f"{shown}, deployed",
    ]
    assert pictures[1].get_title() == states.get_title() == shown


def test_arrows_point_where_decisions_lead():
    found = arrows(NEUTRAL.plot(RIVER))
    for (column, row), move in found.items():
        assert move == pytest.approx(MOVE[NEUTRAL.action((int(row), int(column)))])
    assert (0, 4) in found


def test_arrows_at_a_budget():
    policy = BEST.policy(0.01)
    for budget in (0, 3, policy.budget * float(policy.unit)):
        left = round(budget / float(policy.unit))
        for (column, row), move in arrows(policy.plot(RIVER, budget)).items():
            action = policy.action((int(row), int(column)), left)
            inside = 0 <= row + MOVE[action][1] < 6 and 0 <= column + MOVE[action][0] < 5
            assert not inside or move == pytest.approx(MOVE[action])


def test_a_sheet_of_budgets(tmp_path):
    policy = BEST.policy(0.01)
    axes = policy.plot(RIVER, [0, 2, 4, 6])
    assert [ax.get_title() for ax in axes] == ["budget spent", "2 left", "4 left", "6 left"]
    axes[0].figure.savefig(tmp_path / "sheet.pdf")


def test_budgets_that_are_none():
    with pytest.raises(OptionError, match="does not look at the budget"):
        NEUTRAL.plot(RIVER, 3)
    with pytest.raises(OptionError, match=r"multiple of 0\.5"):
        BEST.policy(0.01).plot(RIVER, 0.3)


def test_a_graph_names_states_and_actions(tmp_path):
    axes = tp.solve_expected(ROADS).policy.plot(ROADS)
    texts = [text.get_text() for text in axes.texts]
    assert {"home", "jam", "fast", r"\$work\$"} <= set(texts)
    axes.figure.savefig(tmp_path / "graph.png")


def test_of_a_large_graph_what_is_met_is_drawn():
    rows = [
        row
        for k in range(2000)
        for row in ((k, "on", k + 1, 0.5, 1), (k, "on", 2000, 0.5, 1), (k, "away", 2001 + k, 1, 9))
    ]
    ssp = tp.SSP.from_outcomes(
        [*rows, *((2001 + k, "back", k, 1, 1) for k in range(2000))], 0, [2000]
    )
    ax = tp.solve_expected(ssp).policy.plot(ssp)
    shown = {text.get_text() for text in ax.texts}
    assert {"0", "1", "2", "2000", "on"} <= shown and not {"2001", "1000", "away"} & shown
    assert "most of 4001" in ax.get_title()
    assert "2000" in {
        text.get_text() for text in tp.worst_runs(ssp, tp.solve_expected(ssp), 0.05).plot(ssp).texts
    }


def test_a_run_is_drawn_through_its_states():
    run = tp.trace(RIVER, NEUTRAL, seed=1)
    ax = run.plot(RIVER)
    steps = {(step.state, step.next_state) for step in run if step.state != step.next_state}
    drawn = {
        tuple(int(v) for v in (*text.xyann, *text.xy))
        for text in ax.texts
        if hasattr(text, "xyann")
    }
    assert drawn == {(c, r, d, s) for (r, c), (s, d) in steps}
    assert ax.get_title() == f"cost {run.cost:g} in {len(run)} steps"


def test_ice_slips_to_either_side():
    """Where moves are equally probable the arrow points to their middle, and where that is no way
    the action is named.
    """
    rows = [((1, 1), "up", target, 1 / 3, 1) for target in ((1, 0), (0, 1), (1, 2))]
    rows += [((1, 0), "side", target, 0.5, 1) for target in ((0, 0), (2, 0))]
    rows += [(cell, "wait", "home", 1, 1) for cell in ((0, 1), (1, 2), (0, 0), (2, 0))]
    cells = {(r, c): (r, c) for r in range(3) for c in range(3)}
    ssp = tp.SSP.from_outcomes(rows, (1, 1), ["home"], geometry=cells)
    ax = tp.solve_expected(ssp).policy.plot(ssp)
    arrows = ax.collections[0]
    assert arrows.U.tolist() == pytest.approx([0]) and arrows.V.tolist() == pytest.approx([-1])
    assert [text.get_text() for text in ax.texts] == ["side"]


def test_blame_as_a_heat_map():
    found = tp.worst_runs(RIVER, NEUTRAL, 0.05, 1)
    for column in ("setback", "share"):
        grid = found.plot(RIVER, column).images[0].get_array()
        assert grid.sum() == pytest.approx(sum(max(getattr(row, column), 0) for row in found.blame))
    with pytest.raises(OptionError, match="setback"):
        found.plot(RIVER, "guilt")
    graph = tp.worst_runs(ROADS, tp.solve_expected(ROADS).policy, 0.5, 1).plot(ROADS)
    assert graph.collections[0].get_array().sum() > 0


def test_tails_of_several_policies():
    costs = {
        "neutral": tp.evaluate(RIVER, NEUTRAL, 0.001),
        "best": tp.evaluate(RIVER, BEST.policy(0.01), 0.001),
    }
    axes = tp.plot_tails(costs, 0.01)
    steps = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    for line, found in zip(steps, costs.values()):
        assert line.get_ydata()[1:] == pytest.approx(found.tails)
    assert axes.get_yscale() == "log"
    assert [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()] == [
        "neutral",
        "best",
    ]
    assert len({line.get_linestyle() for line in steps}) == 2, "told apart without colour"


def test_the_frontier():
    frontier = tp.frontier(RIVER, tp.CVaR(0.05))
    axes = frontier.plot()
    assert (axes.get_xlabel(), axes.get_ylabel()) == (str(tp.CVaR(0.05)), "expected cost")
    marked = axes.lines[-1]
    assert set(marked.get_xdata()) <= set(frontier.risk.tolist())
    assert [text.get_text() for text in axes.texts] == ["safest", "least mean"]
    alone = tp.frontier(tp.domains.river(rows=10, columns=3), "late(6)")
    assert [text.get_text() for text in alone.plot().texts] == ["safest, and least mean"]


def test_two_distributions_on_one_axes_do_not_cut_each_other_off():
    wide, narrow = tp.evaluate(RIVER, NEUTRAL, 0.001), tp.evaluate(RIVER, BEST.policy(0.01), 0.01)
    for first, second in ((wide, narrow), (narrow, wide)):
        axes = second.plot(ax=first.plot())
        assert axes.get_xlim()[1] >= max(wide.costs[-1], narrow.costs[-1])
        assert axes.get_ylim()[1] >= max(wide.probabilities.max(), narrow.probabilities.max())


def test_ten_thousand_costs_are_gathered_in_bins():
    geometric = textbook.geometric(0.001)
    costs = tp.evaluate(geometric.ssp, geometric.policy, 1e-4)
    axes = costs.plot()
    heights = np.array(
        [bar.get_height() for bar in axes.patches if bar.get_width() < 100 and bar.get_height() < 1]
    )
    assert heights.sum() == pytest.approx(1 - 1e-4 / 50, abs=1e-7)
    assert "probability of each" in axes.get_ylabel()


def test_notebooks_show_our_own_figures():
    assert tp.evaluate(RIVER, NEUTRAL, 0.1).plot()._repr_png_().startswith(b"\x89PNG")


def test_a_histogram_shows_the_tail_that_was_asked_for():
    """Evaluated for the worst 5 %, a distribution is known up to VaR; its picture goes on, and its
    numbers stay.
    """
    costs = tp.evaluate(RIVER, NEUTRAL, 0.05)
    ax = costs.plot()
    right = max(
        bar.get_x() + bar.get_width()
        for bar in ax.patches
        if hasattr(bar, "get_width") and bar.get_height() > 0
    )
    assert right > costs.cvar(0.05) > costs.var(0.05)
    assert f"VaR {costs.var(0.05):.6g}" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_histogram_of_a_policy_that_may_not_arrive_shows_what_does():
    """What is known reaches a hundred times as far as anything can be seen."""
    rows = [("a", "go", "b", 0.5, 1), ("a", "go", "pit", 0.25, 1), ("a", "go", "a", 0.25, 1)]
    ssp = tp.SSP.from_outcomes([*rows, ("pit", "stay", "pit", 1, 1)], "a", ["b"])
    costs = tp.evaluate(ssp, {"a": "go"}, 0.05)
    ax = costs.plot()
    assert ax.get_xlim()[1] < 10 < costs.costs[-1]
    beyond = next(t.get_text() for t in ax.get_legend().get_texts() if "beyond" in t.get_text())
    assert beyond == "beyond 5: probability 0.334, never arriving 0.333"


def test_a_run_that_dwells_says_how_often():
    rows = [("a", "go", "a", 0.5, 1), ("a", "go", "b", 0.5, 1), ("b", "on", "c", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["c"])
    run = next(run for seed in range(99) if len(run := tp.trace(ssp, {"a": "go"}, seed)) > 3)
    told = [text.get_text() for text in run.plot(ssp).texts]
    assert f"×{len(run) - 1}" in told and sum(text.startswith("×") for text in told) == 1
