"""Alphas as people give them: computed, in single precision, as percentages, as confidence."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError, TailpathError, TailpathWarning
from tests.cli.running import run

ROWS = [
    ("home", "train", "work", 1.0, 30.0),
    ("home", "road", "work", 0.95, 20.0),
    ("home", "road", "work", 0.05, 60.0),
]
SSP = tp.SSP.from_outcomes(ROWS, "home", ["work"])
RIVER = tp.domains.river(rows=5, columns=4)


@pytest.mark.parametrize("made", [0.05, 1 - 0.95, np.float32(0.05)])
@pytest.mark.parametrize(
    "asked", [0.05, 1 - 0.95, 0.05 * (1 - 5e-10), np.float32(0.05), np.float16(0.05)]
)
def test_alphas_that_agree_are_the_same(made, asked):
    best = tp.solve_cvar_exact(SSP, made)
    assert best.cvar(asked) == pytest.approx(30) and best.var(asked) == 30
    assert (
        best.bounds(asked) == pytest.approx((30, 30))
        and best.policy(asked).budget == best.policy(made).budget
    )
    costs = tp.evaluate(SSP, {"home": "road"}, made)
    assert costs.cvar(asked) == pytest.approx(60) and costs.bounds(asked)[0] <= 60 <= costs.bounds(
        asked
    )[1] * (1 + 1e-9)
    assert tp.compare(SSP, {"road": {"home": "road"}}, made)[
        "road", asked
    ].deployed == pytest.approx(60)
    both = tp.CVaR(made) + tp.CVaR(asked)
    assert tp.solve(SSP, both).value == pytest.approx(60)


def test_alphas_that_differ_are_told_apart():
    best, costs = tp.solve_cvar_exact(SSP, 0.05), tp.evaluate(SSP, {"home": "road"}, 0.05)
    with pytest.raises(OptionError, match=r"made for alpha >= 0.05"):
        best.cvar(0.05 * (1 - 1e-8))
    with pytest.raises(OptionError, match=r"alpha >= 0.05"):
        costs.cvar(0.05 * (1 - 1e-8))


def test_confidence_is_told_from_tail_mass_in_python(tmp_path):
    best, costs = tp.solve_cvar_exact(SSP, 0.05), tp.evaluate(SSP, {"home": "road"}, 0.05)
    note = "alpha is the mass of the worst tail; for 95 % confidence say 0.05"
    for verb in (
        lambda: tp.solve_cvar_exact(SSP, 0.95),
        lambda: tp.evaluate(SSP, {"home": "road"}, alpha=0.95),
        lambda: tp.compare(SSP, None, [0.05, 0.95], methods=["expected"]),
        lambda: tp.worst_runs(SSP, {"home": "road"}, 0.95),
        lambda: tp.differences(SSP, {"home": "road"}, {"home": "train"}, 0.95),
        lambda: tp.solve(SSP, tp.CVaR(0.95)),
        lambda: tp.solve(SSP, "cvar(95%)", ["late(30) <= 1"]),
        lambda: tp.solve(SSP, "mean", ["cvar(0.95) <= 100"]),
        lambda: tp.frontier(SSP, tp.CVaR(0.95)),
        lambda: tp.evaluate(SSP, {"home": "road"}, "95%"),
        lambda: tp.page(SSP, alphas=[0.05, 0.95]),
        lambda: tp.policy(SSP, best, alpha=0.95),
        lambda: tp.write_policy(best, tmp_path / "best.json", alpha=np.float32(0.95)),
        lambda: tp.estimate(np.arange(1000.0), 0.95),
        lambda: tp.plot_tails({"road": costs}, 0.95),
        lambda: tp.solve_cvar_quantile(SSP, [0.1, 1]).policy(0.95),
        lambda: tp.solve_cvar_quantile(SSP, [0.1, 1]).cvar(0.95),
        lambda: tp.solve(SSP, "mean").risk("cvar(0.95)"),
        lambda: tp.policy(SSP, {"home": "road"}).table(SSP, 0.95),
        *(partial(verb, 0.95) for verb in (best.policy, best.cvar, best.bounds)),
        *(partial(verb, 0.95) for verb in (costs.cvar, costs.var, costs.bounds, costs.plot)),
    ):
        with pytest.warns(TailpathWarning, match=note) as found:
            verb()
        assert [one.filename for one in found] == [__file__]  # once, and at the user's line


@pytest.mark.parametrize(
    ("verb", "match"),
    [
        (
            lambda: tp.solve_cvar_quantile(RIVER, factors="printed"),
            "more than the whole tail",
        ),
        (lambda: tp.solve_cvar_quantile(RIVER, max_sweeps=2), "no convergence within 2 sweeps"),
        (lambda: tp.solve_cvar_exact(RIVER, 0.05, delta=1), "more than the least cost of a step"),
    ],
)
def test_warnings_are_given_at_the_line_of_the_user(verb, match):
    with pytest.warns(TailpathWarning, match=match) as found:
        verb()
    assert {one.filename for one in found} == {__file__}


def test_confidence_is_answered_by_a_sentence():
    sentence = "the mass of the worst tail, instead of confidence=: alpha = 1 - confidence"
    for verb in (tp.solve_cvar_exact, tp.evaluate, tp.compare, tp.worst_runs, tp.differences):
        with pytest.raises(OptionError, match=sentence):
            verb(SSP, confidence=0.95)
    for verb in (partial(tp.solve, SSP, "cvar"), partial(tp.frontier, SSP, "cvar"), tp.CVaR):
        with pytest.raises(OptionError, match=sentence):
            verb(confidence=0.95)
    costs = tp.evaluate(SSP, {"home": "road"}, 0.05)
    for verb in (costs.cvar, costs.var, costs.bounds, tp.solve_cvar_exact(SSP, 0.05).policy):
        with pytest.raises(OptionError, match=sentence):
            verb(confidence=0.95)


def test_alpha_may_be_a_percentage_in_python():
    assert tp.solve_cvar_exact(SSP, "5%").cvar(0.05) == tp.solve_cvar_exact(SSP, 0.05).cvar("5%")
    assert {line.alpha for line in tp.compare(SSP, alphas="5%", methods=[]).lines} == {0.05}
    with pytest.raises(OptionError, match=r"in \(0, 1\], not '500%'"):
        tp.evaluate(SSP, {"home": "road"}, "500%")


def test_an_option_that_no_method_has_is_refused():
    with pytest.raises(OptionError, match="no option 'alpha'; did you mean 'alphas'"):
        tp.compare(SSP, alpha=0.05)
    with pytest.raises(OptionError, match="no option 'atom'; did you mean 'atoms'"):
        tp.compare(SSP, atom=9)


def test_alpha_may_be_a_percentage_on_the_command_line(capsys, tmp_path):
    tp.write(SSP, tmp_path / "roads.json")
    given, plain = (
        run(capsys, "solve", tmp_path / "roads.json", "--alpha", alpha, "--json")
        for alpha in ("5%", 0.05)
    )
    assert given.code == 0 and {**given.json, "seconds": 0} == {**plain.json, "seconds": 0}
    assert "is not a number" in run(capsys, "solve", tmp_path / "roads.json", "--alpha", "x%").err
    assert (
        run(capsys, "solve", tmp_path / "roads.json", "--alpha", "95%").err.count(
            "for 95 % confidence"
        )
        == 1
    )
    several = run(capsys, "compare", tmp_path / "roads.json", "--alpha", "5%", "10%", "--json")
    assert {line["alpha"] for line in several.json["optimum_bounds"]} == {0.05, 0.1}
    asked = run(capsys, "solve", tmp_path / "roads.json", "--minimise", "cvar(0.95)")
    assert asked.code == 0 and asked.err.count("for 95 % confidence") == 1


MORE = [
    ("s", "a", "g", 0.5, 1),
    ("s", "a", "t", 0.5, 2),
    ("s", "b", "g", 1, 3),
    ("t", "a", "g", 1, 1),
]
PLAIN = tp.SSP.from_outcomes(MORE, "s", ["g"])
OPEN = tp.IntervalSSP.around(PLAIN, 0.5)
ASKED = {
    "an interval's deadline is a number": lambda: tp.solve_on_time(OPEN, math.nan),
    "an interval's deadline is no giant": lambda: tp.solve_on_time(OPEN, 10**400),
    "no plans are compared on intervals": lambda: tp.compare(OPEN, {"p": dict.fromkeys("st", "a")}),
    "a limit below all": lambda: tp.solve(PLAIN, "mean", [tp.CVaR(0.5) <= -math.inf]),
    "a weight that no float tells": lambda: tp.solve(PLAIN, tp.Mean() + 1e-100 * tp.CVaR(0.5)),
    "a discount is a number": lambda: tp.solve_expected(PLAIN, gamma="x"),
    "a discount of None": lambda: tp.evaluate(PLAIN, dict.fromkeys("st", "a"), 0.5, gamma=None),
    "no choice of this number": lambda: OPEN.narrowed(99),
    "no choice below 0": lambda: OPEN.narrowed(-1),
    "a share of a width": lambda: OPEN.narrowed(0, 2),
    "a margin is a number": lambda: tp.IntervalSSP.around(PLAIN, "x"),
    "a confidence is a number": lambda: tp.IntervalSSP.from_counts(
        [("s", "a", "g", 3, 1), ("s", "a", "s", 2, 1)], "s", ["g"], "high"
    ),
    "a table without states": lambda: tp.read({}),
    "actions where values are meant": lambda: tp.policy(
        PLAIN, dict.fromkeys("st", "a"), minimise=True
    ),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_what_makes_no_sense_is_refused_in_words(ask):
    with pytest.raises(tp.TailpathError):
        ask()


def test_a_percentage_without_its_sign_is_answered_by_a_hint(capsys):
    with pytest.raises(OptionError, match=r"alpha must lie in \(0, 1\], not 5; 5 % is 0.05$"):
        tp.CVaR(5)
    with pytest.raises(OptionError, match=r"not 95; for 95 % confidence say 0.05$"):
        tp.CVaR(95)
    with pytest.raises(OptionError, match=r"not 120$"):
        tp.CVaR(120)
    found = run(capsys, "solve", "river:5x4", "--alpha", "5")
    assert found.code == 2 and "5 does not lie in (0, 1]; 5 % is 0.05" in found.err


def test_refusals_name_kinds_with_their_article():
    refused = {
        "cannot make a policy of an int": lambda: tp.policy(SSP, 7),
        "cannot read an object": lambda: tp.read(object()),
        "not as an SSP": lambda: tp.compare(SSP, SSP),
        "not as a list": lambda: tp.compare(SSP, [1]),
    }
    for words, verb in refused.items():
        with pytest.raises(TailpathError, match=words):
            verb()
