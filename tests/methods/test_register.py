"""The register of methods: a planner from outside is known to `solve` and `compare`."""

import importlib.metadata
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.methods import Option, find_method, method_names, register
from tailpath.methods.method import REGISTER
from tests.cli.running import refusal, run
from tests.methods import toy

MODEL = "textbook:counter-example"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(REGISTER, "added", {"toy": toy.TOY})


def test_solve_takes_it_with_its_options(capsys):
    record = run(
        capsys, "solve", MODEL, "--method", "toy", "--alpha", 0.5, "--which", 0, "--json"
    ).json
    assert (record["method"], record["which"]) == ("toy", 0)
    assert (
        record["predicted"]
        == record["deployed"]
        == pytest.approx(tp.evaluate(*policy_of(MODEL), 0.5).cvar(0.5))
    )
    assert "--which does not apply to --method exact, only to toy" in refusal(
        capsys, "solve", MODEL, "--alpha", 0.5, "--which", 0
    )
    assert "--which" in run(capsys, "solve", "--help").out


def test_compare_shows_it(capsys):
    for arguments in (["--method", "toy"], ["--all"]):
        record = run(capsys, "compare", MODEL, "--alpha", 0.5, *arguments, "--json").json
        (row,) = [row for row in record["rows"] if row["method"] == "toy"]
        assert row["deployed"] == pytest.approx(tp.evaluate(*policy_of(MODEL), 0.5).cvar(0.5))
        assert record["planners"]["toy"]["note"] == "choice 0 everywhere"


def policy_of(model):
    ssp = tp.read(model)
    return ssp, toy.plan(ssp, 0.5, progress=lambda steps, reached: None).policy(0.5)


def test_an_installed_package_brings_its_own(capsys, monkeypatch):
    monkeypatch.setattr(REGISTER, "added", {})
    point = EntryPoint("toy", "tests.methods.toy:TOY", REGISTER.group)
    broken = EntryPoint("broken", "tests.methods.toy:NOTHING", REGISTER.group)
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda *, group: [point, broken] if group == "tailpath.methods" else [],
    )
    assert {"toy", "broken"} <= set(method_names())
    assert find_method("toy") is toy.TOY
    with pytest.raises(
        OptionError, match=r"toy:NOTHING of the group tailpath\.methods cannot be loaded"
    ):
        find_method("broken")
    for arguments in (
        ["--help"],
        [MODEL, "--alpha", 0.5],
        [MODEL, "--alpha", 1, "--method", "toy"],
    ):
        assert run(capsys, "solve", *arguments).code == 0
    assert "NOTHING" in refusal(capsys, "solve", MODEL, "--method", "broken", "--alpha", 0.5)


def test_options_of_one_name_are_told_apart_by_method(capsys):
    """`quantile` has a --tolerance of its own, a number whose default is 0.001."""
    tolerance = Option("tolerance", str, "coarse", "How coarse.", "E")
    which = Option("which", int, 0, "Which choice.", "K")
    register(replace(toy.TOY, name="mine", options=(tolerance, which), plan=with_tolerance))
    text = " ".join(run(capsys, "solve", "--help").out.split())
    assert "With --method quantile, interpolation:" in text
    assert "Stop when a sweep moves no value by more than E. [default: 0.001]" in text
    assert "With --method mine: --tolerance E How coarse. [default: coarse]" in text
    asked = "solve", MODEL, "--alpha", 0.5, "--json", "--method"
    assert run(capsys, *asked, "mine", "--tolerance", "fine").json["which"] == "fine"
    assert run(capsys, *asked, "quantile", "--tolerance", 0.5).json["sweeps"] > 0
    assert "'fine' is not a valid float" in refusal(
        capsys, *asked, "quantile", "--tolerance", "fine"
    )


def with_tolerance(ssp, alpha, *, progress, tolerance, which=0):
    made = toy.plan(ssp, alpha, progress=progress, which=which)
    return replace(made, facts={**made.facts, "which": tolerance})


def test_the_help_of_a_method_has_its_options_only(capsys):
    text = run(capsys, "solve", "--method", "nested", "--help").out
    assert "--alpha" in text and "--tolerance" not in text and "--which" not in text


def test_a_method_cannot_take_an_option_of_the_command(capsys):
    verify = Option("verify", bool, False, "Look twice.")
    register(replace(toy.TOY, name="mine", options=(verify,)))
    message = refusal(capsys, "solve", MODEL, "--method", "mine", "--alpha", 0.5)
    assert "verify" in message and "mine" in message
    assert run(capsys, "solve", MODEL, "--alpha", 0.5, "--verify").code == 0
    assert run(capsys, "solve", "--help").code == 0


def test_names_are_unique_and_unknown_ones_are_refused():
    with pytest.raises(OptionError, match="a method named 'quantile' is already registered"):
        register(replace(toy.TOY, name="quantile"))
    with pytest.raises(OptionError, match="'CVaRVIQ' is already registered"):
        register(replace(toy.TOY, name="CVaRVIQ"))
    with pytest.raises(OptionError, match=r"no method 'optimal'; did you mean 'optimum'\?$"):
        find_method("optimal")
    with pytest.raises(OptionError, match="there is no method 'magic'; there are exact, "):
        find_method("magic")
    assert find_method("optimum") is find_method("exact")


def test_the_names_of_the_papers_work(capsys):
    assert find_method("CVaRVIQ") is find_method("cvarviq") is find_method("quantile")
    assert find_method("CVaRVILI") is find_method("interpolation")
    record = run(capsys, "solve", MODEL, "--method", "CVaRVIQ", "--alpha", 0.5, "--json").json
    assert record["method"] == "quantile"
    assert "ForPECVaR evaluates policies" in refusal(
        capsys, "solve", MODEL, "--method", "ForPECVaR", "--alpha", 0.5
    )
