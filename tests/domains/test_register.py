"""A domain from outside: known to `read` and to the commands as ours are, registered by a call or
by an entry point.
"""

import importlib.metadata
import re

import pytest

import tailpath as tp
from tailpath.cli import main
from tailpath.domains import register as public_register
from tailpath.domains.register import ADDRESSES, REGISTER, Domain, register
from tailpath.errors import OptionError


def steps(length):
    """A walk of so many steps, each of which may have to be repeated."""
    rows = [(s, "go", s + 1, 0.5, 1) for s in range(length)] + [
        (s, "go", s, 0.5, 1) for s in range(length)
    ]
    return tp.SSP.from_outcomes(rows, 0, [length])


TOY = Domain(
    "toy",
    lambda text: steps(int(text)) if re.fullmatch("[1-9]", text) else None,
    "write the number of steps, e.g. toy:3",
    from_text=lambda text: steps(text.count("x")),
    policies={"walk": lambda ssp: dict.fromkeys(range(ssp.n_states - 1), "go")},
)


@pytest.fixture(params=["a call", "an entry point"])
def toy(request, monkeypatch):
    """The toy domain, made known in one of the two ways; gone after the test."""
    if request.param == "a call":
        public_register(TOY)
        yield
        del REGISTER.added["toy"]
        return
    point = importlib.metadata.EntryPoint(
        "toy", "tests.domains.test_register:TOY", "tailpath.domains"
    )
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: [point] if group == point.group else []
    )
    yield


def test_read_knows_it(toy, tmp_path):
    assert tp.read("toy:3").n_states == 4
    (tmp_path / "map").write_text("xx")
    assert tp.read(f"toy:{tmp_path / 'map'}").n_states == 3
    with pytest.raises(OptionError, match=r"toy:many: write the number of steps, e\.g\. toy:3"):
        tp.read("toy:many")
    with pytest.raises(
        OptionError, match="the option goal does not apply to toy:, which takes no options"
    ):
        tp.read("toy:3", goal="x")


def test_the_commands_know_it(toy, capsys):
    assert main(["info", "toy:3"]) == 0
    assert "4" in capsys.readouterr().out
    assert main(["solve", "toy:3", "--method", "expected"]) == 0
    assert "least expected cost  6" in capsys.readouterr().out
    assert main(["compare", "toy:3", "--alpha", "1"]) == 0
    assert "CVaR of toy:3" in capsys.readouterr().out


def test_its_policies_are_known(capsys):
    public_register(TOY)
    try:
        ssp = tp.read("toy:3")
        policy = tp.read_policy("toy:walk", ssp)
        assert tp.evaluate(ssp, policy, 1.0).mean == tp.solve_expected(ssp).cost()
        assert main(["evaluate", "toy:3", "toy:walk", "--alpha", "1"]) == 0
        assert capsys.readouterr().out
        with pytest.raises(OptionError, match="toy:run: no such policy; there is toy:walk"):
            tp.read_policy("toy:run", ssp)
    finally:
        del REGISTER.added["toy"]
    with pytest.raises(OptionError, match="river:walk: no such policy; there is none"):
        tp.read_policy("river:walk", ssp)


def test_without_it_the_scheme_is_unknown():
    with pytest.raises(
        OptionError,
        match=r"toy:3: unknown format; .* known schemes are gym:, gridworld:, river:",
    ):
        tp.read("toy:3")


@pytest.mark.parametrize("scheme", ["", "t", "Toy", "to y", "töy", "1toy"])
def test_a_scheme_is_a_word(scheme):
    with pytest.raises(OptionError, match="must be a word of lower-case letters"):
        Domain(scheme, TOY.build, TOY.expects)


@pytest.mark.parametrize("scheme", [*ADDRESSES, "gym"])
def test_our_own_schemes_are_taken(scheme):
    with pytest.raises(OptionError, match=f"a domain named {scheme!r} is already registered"):
        register(Domain(scheme, TOY.build, TOY.expects))


def test_its_policies_are_read(toy):
    ssp = tp.read("toy:3")
    assert [tp.read_policy("toy:walk", ssp).action(state) for state in range(3)] == ["go"] * 3


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("tests.domains.nowhere:TOY", "cannot be loaded"),
        ("tests.domains.test_register:steps", r"is not a tailpath\.domains\.Domain"),
    ],
)
def test_an_entry_point_that_leads_nowhere(place, message, monkeypatch):
    point = importlib.metadata.EntryPoint("toy", place, "tailpath.domains")
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: [point] if group == point.group else []
    )
    with pytest.raises(OptionError, match=message):
        tp.read("toy:3")
