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


def test_options_of_one_name_are_told_apart_by_method(capsys):
    """`quantile` has a --tolerance of its own, whose default is 0.001."""
    tolerance = Option("tolerance", float, 0.5, "How coarse.", "E")
    register(replace(toy.TOY, name="mine", options=(tolerance,)))
    text = " ".join(run(capsys, "solve", "--help").out.split())
    assert "Stop when a sweep moves no value by more than E. [default: 0.001]" in text
    assert "mine: How coarse. [default: 0.5]" in text
    assert "quantile: How a policy shares" in text and "[default: vertex]" in text


def test_options_of_one_name_have_values_of_one_type():
    tolerance = Option("tolerance", int, 1, "Tolerance in grams.", "E")
    with pytest.raises(
        OptionError, match=r"option tolerance of the method mine .* that of the method quantile"
    ):
        register(replace(toy.TOY, name="mine", options=(tolerance,)))
    assert "mine" not in method_names()


def test_names_are_unique_and_unknown_ones_are_refused():
    with pytest.raises(OptionError, match="a method named 'quantile' is already registered"):
        register(replace(toy.TOY, name="quantile"))
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
