"""ICU-Sepsis: the published numbers, and the package's own environment as a witness."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tailpath as tp
from tailpath.cli import main
from tailpath.errors import OptionError
from tailpath_cases import sepsis
from tailpath_cases.files import folder_of


@pytest.fixture(scope="module")
def model():
    return tp.read("sepsis:")


@pytest.fixture(scope="module")
def stored():
    """The arrays of the package, read another way."""
    folder = folder_of("icu_sepsis") / "envs" / "assets"
    with np.load(folder / "dynamics.npz") as data:
        return {key: data[key] for key in ("tx_mat", "d_0", "expert_policy")}


def survival(policy, stored):
    """The chance to survive under probabilities of all 25 actions, as a linear system of its own:
    inadmissible actions act as the package says."""
    moves = np.einsum("sa,sat->st", policy[:713], stored["tx_mat"][:713])
    chance = np.linalg.solve(np.eye(713) - moves[:, :713], moves[:, 714])
    return float(stored["d_0"][:713] @ chance)


def test_sizes(model):
    assert (model.n_states, model.start, model.goals) == (716, "admission", ("survived",))
    assert {a for a in model.actions if isinstance(a, int)} == set(range(25))


def test_the_published_chances_to_survive(model, stored):
    found = tp.solve_arrival(model)
    assert found.probability() == pytest.approx(0.88, abs=0.005)
    low, high = found.bounds
    # A step has up to 712 outcomes, each charged three roundings, and a stay takes some ten steps.
    assert high - low < 2e-12
    # Value iteration over all 25 actions of all states, until nothing moves.
    chance = np.zeros(716)
    chance[714] = 1.0
    for _ in range(350):  # of which a stay is longer with less than 1e-11
        chance[:713] = (stored["tx_mat"][:713] @ chance).max(axis=1)
    assert found.probability() == pytest.approx(float(stored["d_0"] @ chance), rel=1e-9)


def test_the_clinicians_are_the_published_ones(model, stored):
    policy = tp.read_policy("sepsis:clinicians", model)
    found = 1 - tp.evaluate(model, policy, 1.0).unreached
    assert found == pytest.approx(0.78, abs=0.005)
    assert found == pytest.approx(survival(stored["expert_policy"], stored), rel=1e-9)


def test_the_published_lengths_of_stay(model):
    """9.22 steps for the clinicians, as sampled by the authors, and 10.99 for the optimum."""
    free = sepsis(death=0)
    policy = tp.read_policy("sepsis:clinicians", free)
    assert tp.evaluate(free, policy, 1.0).mean == pytest.approx(9.22, abs=0.05)
    surest = tp.solve_on_time(model, float("inf")).policy(float("inf"))
    assert tp.evaluate(free, surest, 1.0).mean == pytest.approx(10.99, abs=0.05)


def test_a_death_that_is_priced():
    """A price far above every stay: the mean is that of survival, but for the days."""
    priced = sepsis(death=10**6)
    assert priced.goals == ("died", "survived")
    found = tp.solve_expected(priced)
    died = 1 - tp.solve_arrival(sepsis()).probability()
    assert found.cost() == pytest.approx(died * 10**6, rel=1e-3)
    assert sepsis("0.5").cost_unit == 0.5
    careful = tp.solve_cvar_exact(sepsis(100), alpha=0.05)
    policy = tp.read_policy("sepsis:clinicians", sepsis(100))
    assert careful.cvar(0.05) < tp.evaluate(sepsis(100), policy, 0.05).cvar(0.05)


def test_what_the_tutorial_says_of_tails():
    """docs/tutorials/sepsis.md: a tail of deaths alone lets more patients die."""
    priced = sepsis(death=300)
    best = tp.solve_cvar_exact(priced, alpha=0.05)
    surest = tp.solve_on_time(sepsis(), float("inf")).policy(float("inf"))
    policies = {0.2: best.policy(0.2), 0.05: best.policy(0.05), "surest": surest}
    found = {name: tp.evaluate(priced, policy, 0.05) for name, policy in policies.items()}
    assert found[0.2].cvar(0.2) == pytest.approx(best.cvar(0.2), rel=1e-9)
    deaths = {name: 1 - costs.cdf(300) for name, costs in found.items()}
    assert deaths["surest"] == pytest.approx(1 - tp.solve_arrival(sepsis()).probability(), abs=1e-9)
    assert deaths["surest"] == pytest.approx(0.125, abs=0.0005)
    assert 14.5 < 1 / (deaths[0.05] - deaths["surest"]) < 15.5
    around = tp.IntervalSSP.around(sepsis(), 0.1)
    chances = [
        tp.solve_on_time(around, 500, nature=nature).probability(500)
        for nature in ("adversarial", "cooperative")
    ]
    assert chances == pytest.approx([0.836, 0.907], abs=0.0005)


@pytest.mark.parametrize("text", ["-1", "dear", "nan", "1e99"])
def test_prices_that_are_none(text):
    with pytest.raises(OptionError, match="nothing after the colon, or the price of a death"):
        tp.read(f"sepsis:{text}")
    with pytest.raises(OptionError, match="the price of a death must"):
        sepsis(text)


def test_on_the_command_line(capsys):
    assert main(["info", "sepsis:"]) == 0
    said = capsys.readouterr()
    assert "716" in said.out and "no: with probability 0.875142 at most" in said.out
    assert main(["evaluate", "sepsis:100", "sepsis:clinicians", "--alpha", "0.05"]) == 0
    assert capsys.readouterr().out
    assert main(["evaluate", "sepsis:100", "sepsis:nurses", "--alpha", "0.05"]) == 2
    said = capsys.readouterr().err
    assert "sepsis:nurses: no such policy; there is sepsis:clinicians" in said


def test_the_package_is_not_run(tmp_path):
    """It greets on standard error and registers environments; its files are all that is read."""
    code = "import sys, tailpath as tp; tp.read('sepsis:'); print('icu_sepsis' in sys.modules)"
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=env,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
