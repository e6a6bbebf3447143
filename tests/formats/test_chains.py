"""Model x policy as a DTMC in files of Storm and PRISM: our own reader and Storm find its law."""

import pytest

import tailpath as tp
from tailpath.errors import OptionError

MODEL = tp.read("river:4x4")
BEST = tp.solve_cvar_exact(MODEL, 0.05).policy(0.05)
#: The outcomes of the bus differ in cost, and two of them lead to the same state.
ROADS = tp.SSP.from_outcomes(
    [
        ("home", "bus", "stop", 0.25, 1.5),
        ("home", "bus", "stop", 0.25, 4),
        ("home", "bus", "work", 0.5, 10),
        ("stop", "walk", "work", 0.5, 2),
        ("stop", "walk", "stop", 0.5, 2),
    ],
    "home",
    ["work"],
)
ROUTE = {"home": "bus", "stop": "walk"}
CHAINS = {
    "budget": lambda: tp.unroll(MODEL, BEST),
    "costs on branches": lambda: tp.unroll(ROADS, ROUTE),
    "traps": lambda: tp.unroll(
        tp.SSP.from_outcomes(
            [("s", "a", "g", 0.5, 1), ("s", "a", "t", 0.5, 1), ("t", "a", "t", 1, 1)], "s", ["g"]
        ),
        {"s": "a", "t": "a"},
    ),
}


def law(ssp, alpha=1e-3):
    costs = tp.evaluate(ssp, [0 if not goal else -1 for goal in ssp.is_goal], alpha)
    return costs.costs.tolist(), costs.probabilities.tolist()


@pytest.mark.parametrize("suffix", ["drn", "drn.gz", "umb", "tra"])
@pytest.mark.parametrize("name", CHAINS)
def test_the_law_is_that_of_the_policy(name, suffix, tmp_path):
    chain = CHAINS[name]()
    tp.write(chain, tmp_path / f"c.{suffix}")
    read = tp.read(tmp_path / f"c.{suffix}")
    assert read.n_states == chain.n + 1 and read.n_choices == chain.n
    assert read.states == range(chain.n + 1) and read.goals == (chain.n,)
    alpha = 0.6 if name == "traps" else 1e-3
    costs, probabilities = law(read, alpha)
    policy = {"budget": BEST, "traps": {"s": "a", "t": "a"}}.get(name, ROUTE)
    expected = tp.evaluate(chain.ssp, policy, alpha)
    assert costs == expected.costs.tolist()
    assert probabilities == pytest.approx(expected.probabilities.tolist(), rel=1e-12)


@pytest.mark.parametrize("suffix", ["drn", "umb"])
def test_storm_takes_it_for_a_dtmc_of_the_same_law(suffix, tmp_path):
    model, checked = storm(CHAINS["costs on branches"](), tmp_path / f"c.{suffix}")
    assert "DTMC" in str(model.model_type).upper()

    mean = checked(model, 'R=? [F "goal"]')
    assert mean == pytest.approx(0.25 * 5.5 + 0.5 * 10 + 0.5 * 4, rel=1e-6)
    assert mean == pytest.approx(tp.evaluate(ROADS, ROUTE, 0.1).mean, rel=1e-6)


@pytest.mark.parametrize("suffix", ["drn", "umb"])
def test_storm_finds_the_law_of_the_best_policy(suffix, tmp_path):
    model, checked = storm(CHAINS["budget"](), tmp_path / f"c.{suffix}")
    costs = tp.evaluate(MODEL, BEST, 1e-3)
    for cost in (costs.costs[0], costs.var(0.3), costs.var(0.05)):
        found = checked(model, f'P=? [F{{"cost"}}<={cost:.0f} "goal"]')
        assert found == pytest.approx(costs.cdf(cost), rel=1e-6)


def storm(chain, path):
    """The chain as Storm reads it from a file, and how it is asked."""
    stormpy = pytest.importorskip("stormpy")
    from tests.validation.storm import checked

    tp.write(chain, path)
    build = {".drn": stormpy.build_model_from_drn, ".umb": stormpy.build_model_from_umb}
    return build[path.suffix](str(path)), checked


def test_a_dtmc_of_prism_has_no_choices(tmp_path):
    """Headers of states and transitions, then lines of source, target and number."""
    tp.write(CHAINS["traps"](), tmp_path / "c.tra")
    lines = [line.split() for line in (tmp_path / "c.tra").read_text().splitlines()[1:]]
    assert lines[0] == ["3", "4"]
    assert sorted(line[:3] for line in lines[1:]) == [
        ["0", "1", "0.5"],
        ["0", "2", "0.5"],
        ["1", "1", "1.0"],
        ["2", "2", "1.0"],
    ]
    sizes, *rewards = (tmp_path / "c.trew").read_text().splitlines()[1:]
    assert [sizes, *sorted(rewards)] == ["3 3", "0 1 1.0", "0 2 1.0", "1 1 1.0"]


@pytest.mark.parametrize("suffix", ["json", "npz", "csv"])
def test_other_formats_say_where_chains_go(suffix, tmp_path):
    with pytest.raises(OptionError, match=rf"c\.{suffix}: .* \.drn, .*\.umb"):
        tp.write(CHAINS["traps"](), tmp_path / f"c.{suffix}")


def test_what_is_neither_a_model_nor_a_chain_is_refused(tmp_path):
    with pytest.raises(OptionError, match="write takes a model or a chain, not"):
        tp.write(None, tmp_path / "c.drn")
