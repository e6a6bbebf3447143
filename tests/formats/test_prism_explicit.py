"""PRISM's explicit files, with all their companions."""

import gzip

import pytest

import tailpath as tp
from tailpath.errors import FormatError
from tests.formats.models import by_choice, differences, outcomes, samples

FILES = {
    "m.tra": (
        """# a model of three states
3 4 5
0 0 1 0.5 go
0 0 2 1/2 go

0 1 2 1 wait
1 0 1 1
2 0 2 1
"""
    ),
    "m.lab": '0="init" 1="deadlock" 2="goal" 3="two words"\n0: 0\n# nothing\n2: 2 3\n',
    "m.srew": '# Reward structure "time"\n# State rewards\n3 2\n0 0.1\n2 9\n',
    "m.trew": '# Reward structure "time"\n3 4 3\n0 0 1 0.2\n0 1 2 4\n1 0 1 2\n',
    "m.sta": "(x,ready)\n0:(0,true)\n1:(-1,false)\n2:(7,true)\n",
}


@pytest.fixture
def prism(tmp_path):
    def write(**changes):
        for name, text in FILES.items():
            suffix = name[2:]
            if changes.get(suffix, "") is None:
                (tmp_path / name).unlink(missing_ok=True)
            else:
                (tmp_path / name).write_text(changes.get(suffix, text))
        return tmp_path / "m.tra"

    return write


def test_all_companions(prism):
    ssp = tp.read(prism())
    assert (
        ssp.states == ((0, True), (-1, False), (7, True))
        and ssp.start == (0, True)
        and ssp.goals == ((7, True),)
    )
    assert outcomes(ssp) == {
        ((0, True), "go"): [("(-1, False)", 0.5, 0.3), ("(7, True)", 0.5, 0.1)],
        ((0, True), "wait"): [("(7, True)", 1.0, 4.1)],
        ((-1, False), 0): [("(-1, False)", 1.0, 2.0)],
    }
    assert tp.read(prism(), goal="two words", cost="time").goals == ((7, True),)


def test_a_chain(prism):
    ssp = tp.read(
        prism(
            tra="2 3\n0 0 .5\n0 1 0.5\n1 1 1\n",
            lab='0="init" 1="goal"\n0: 0\n1: 1\n',
            srew=None,
            trew="2 1\n0 0 3\n",
            sta=None,
        )
    )
    assert outcomes(ssp) == {(0, 0): [("0", 0.5, 3.0), ("1", 0.5, 0.0)]}


def test_missing_companions(prism):
    with pytest.raises(
        FormatError,
        match=r"no label 'goal'; choose the goal with --goal LABEL \(goal=\) among: init",
    ):
        tp.read(prism(lab=None))
    with pytest.raises(FormatError, match="no reward structures"):
        tp.read(prism(srew=None, trew=None))
    assert (
        tp.read(prism(srew=None, trew=None, sta=None), step_cost=2).outcome_cost.tolist() == [2] * 4
    )
    # Without labels the start is state 0.
    assert tp.read(prism(lab=None, sta=None), goal="init", step_cost=1).goals == (0,)


def test_several_reward_structures(prism, tmp_path):
    path = prism(srew=None, trew=None)
    (tmp_path / "m1.srew").write_text('# Reward structure "time"\n3 1\n0 5\n')
    (tmp_path / "m2.trew").write_text("3 4 1\n0 0 1 7\n")
    with pytest.raises(FormatError, match="among: time, 2"):
        tp.read(path)
    assert tp.read(path, cost="time").outcome_cost.tolist() == [5, 5, 5, 0]
    assert tp.read(path, cost="2").outcome_cost.tolist() == [7, 0, 0, 0]


def test_rows_in_any_order(prism):
    tra = "3 4 5\n2 0 2 1\n0 1 2 1 wait\n0 0 1 0.5 go\n1 0 1 1\n0 0 2 0.5 go\n"
    assert outcomes(tp.read(prism(tra=tra))) == outcomes(tp.read(prism()))


@pytest.mark.parametrize(
    ("suffix", "old", "new", "message"),
    [
        ("tra", "3 4 5", "3 4", r"m\.tra:3: '0 0 1 0.5 go' has 5 words, expected 3 or 4"),
        ("tra", "3 4 5", "3", r"m\.tra:2: the header '3' must have 2 or 3 numbers"),
        ("tra", "3 4 5", "4000 4 5", r"m\.tra:2: the header says 4000 states, the file has 3"),
        ("trew", "3 4 3", "3 5 3", r"m\.trew:2: the header says 5 choices, the file has 4"),
        ("sta", "(-1,false)", "(-1,false,3)", r"m\.sta:3: 3 values, but 2 variables are declared"),
        ("sta", "(x,ready)", "x", r"m\.sta:1: expected the variables"),
        ("tra", "2 0 2 1\n", "2 0 2 -3\n", "state 2, choice 0 -> 2 has probability -3"),
        ("tra", "3 4 5", "999999999999 4 5", "the header says 999999999999 states, the file has 3"),
        ("tra", "3 4 5", "3 5 5", "the header says 5 choices, the file has 4"),
        ("tra", "3 4 5", "3 4 6", "the header says 6 transitions, the file has 5"),
        (
            "tra",
            "0 1 2 1 wait",
            "0 2 2 1 wait",
            r"m\.tra:6: choice 2 of state 0, but there is no choice 1",
        ),
        ("tra", "0 1 2 1 wait", "0 1 9 1 wait", r"m\.tra:6: state 9 lies outside 0\.\.2"),
        (
            "tra",
            "0 0 2 1/2 go",
            "0 0 2 1/2 stop",
            r"m\.tra:4: choice 0 of state 0 has two action names",
        ),
        ("tra", "0 0 2 1/2 go", "0 0 2 nan go", r"m\.tra:4: 'nan' is not a finite number"),
        ("tra", "0 0 2 1/2 go", "0 -0 2 0.5 go", r"m\.tra:4: '-0' is not a whole number"),
        ("tra", "0 0 2 1/2 go", "0 0 2 0.4 go", "sum to 0.9, not 1"),
        ("lab", '0="init"', "0=init", r"m\.lab:1: expected a list such as"),
        (
            "lab",
            '1="deadlock"',
            '0="deadlock"',
            r'm\.lab:1: the label 0="deadlock" is declared twice',
        ),
        ("lab", "2: 2 3", "2: 2 4", r"m\.lab:4: label '4' is not declared"),
        (
            "lab",
            "2: 2 3",
            "7: 2 3",
            r"m\.lab:4: expected 'state: label label' with a state below 3",
        ),
        ("lab", "0: 0\n", "", "no state is initial; choose where runs begin with --start LABEL"),
        ("srew", "3 2", "4 2", r"m\.srew:3: the header says 4 states, the file has 3"),
        ("srew", "3 2", "3 9", r"m\.srew:3: the header says 9 rewards, the file has 2"),
        ("srew", "2 9", "0 9", r"m\.srew:5: a second reward for the same state"),
        ("srew", "2 9", "3 9", r"m\.srew:5: a reward for a state that the model does not have"),
        ("trew", "3 4 3", "3 3", r"m\.trew:2: the header '3 3' must have 3 numbers"),
        (
            "trew",
            "0 1 2 4",
            "0 1 1 4",
            r"m\.trew:4: a reward for a transition that the model does not have",
        ),
        (
            "trew",
            "0 1 2 4",
            "0 7 2 4",
            r"m\.trew:4: a reward for a transition that the model does not have",
        ),
        (
            "trew",
            "0 1 2 4",
            "8 0 2 4",
            r"m\.trew:4: a reward for a transition that the model does not have",
        ),
        ("trew", "0 1 2 4", "0 0 1 4", r"m\.trew:4: a second reward for the same transition"),
        ("trew", "0 1 2 4", "0 1 2 4 5", r"m\.trew:4: '0 1 2 4 5' has 5 words, expected 4"),
        ("sta", "2:(7,true)", "2:7", r"m\.sta:4: expected 'state:\(value,...\)'"),
        (
            "sta",
            "2:(7,true)",
            "0:(7,true)",
            r"m\.sta:4: state 0 lies outside 0\.\.2 or is described twice",
        ),
        ("sta", "2:(7,true)\n", "", r"m\.sta: describes 2 of 3 states"),
        ("sta", "2:(7,true)", "2:(0,true)", r"two states are named \(0, True\)"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(suffix, old, new, message, prism):
    text = FILES[f"m.{suffix}"]
    assert old in text
    with pytest.raises(FormatError, match=message):
        tp.read(prism(**{suffix: text.replace(old, new, 1)}))


@pytest.mark.parametrize(
    "name", ["by choice", "gridworld", "river", "start is goal", "only a goal", "range"]
)
def test_a_model_survives_the_trip(name, tmp_path):
    model = samples()[name]
    tp.write(model, tmp_path / "m.tra")
    assert differences(model, tp.read(tmp_path / "m.tra")) == []


def test_without_our_line_the_companions_carry_the_model(tmp_path):
    tp.write(by_choice(), tmp_path / "m.tra")
    lines = (tmp_path / "m.tra").read_text().split("\n")
    (tmp_path / "m.tra").write_text("\n".join(lines[1:]))
    assert outcomes(tp.read(tmp_path / "m.tra")) == outcomes(by_choice())


def test_costs_per_outcome_are_those_of_auxiliary_states(tmp_path):
    """Our reader takes them out again; without our line they pay."""
    model = tp.read("textbook:lottery")
    tp.write(model, tmp_path / "m.tra")
    assert differences(model, tp.read(tmp_path / "m.tra")) == []
    lines = (tmp_path / "m.tra").read_text().split("\n")
    (tmp_path / "m.tra").write_text("\n".join(lines[1:]))
    plain = tp.read(tmp_path / "m.tra")
    assert plain.n_states > model.n_states
    costs = [tp.solve_cvar_exact(each, 0.01).cvar(0.01) for each in (plain, model)]
    assert costs[0] == costs[1]


def test_auxiliary_states_that_the_file_does_not_have(tmp_path):
    tp.write(tp.read("textbook:lottery"), tmp_path / "m.tra")
    text = (tmp_path / "m.tra").read_text()
    count = text.partition('"auxiliary": ')[2].partition("}")[0].partition(",")[0]
    (tmp_path / "m.tra").write_text(text.replace(f'"auxiliary": {count}', '"auxiliary": 99', 1))
    with pytest.raises(FormatError, match="99 auxiliary states, which the file does not have"):
        tp.read(tmp_path / "m.tra")


def test_an_older_companion_is_not_taken_for_ours(tmp_path):
    (tmp_path / "m.srew").write_text("4 1\n0 100\n")
    tp.write(by_choice(), tmp_path / "m.tra")
    assert differences(tp.read(tmp_path / "m.tra"), by_choice()) == []


# ---------------------------------------------------------------------- as PRISM and Storm write
# them


def test_an_isolated_state_is_a_dead_end(prism):
    """PRISM writes one where a state has neither transitions nor a way in."""
    ssp = tp.read(
        prism(tra=FILES["m.tra"].replace("3 4 5", "4 4 5"), srew=None, trew=None, sta=None),
        step_cost=1,
    )
    assert ssp.n_states == 4 and any(
        "a loop: 1, the first is state 3" in note for note in ssp.notes
    )


def test_only_line_feeds_end_a_line(prism):
    """A vertical tab is a blank: what stands behind it belongs to the same line."""
    with pytest.raises(FormatError, match=r"m\.tra:2: .* has 10 words, expected 4 or 5"):
        tp.read(prism(tra="3 4 5\n0 0 1 0.5 go\v0 0 2 0.5 go\n0 1 2 1 wait\n1 0 1 1\n2 0 2 1\n"))


def test_a_row_per_line_is_refused(prism):
    """As `prism -exportrows` writes it."""
    with pytest.raises(FormatError, match=r"m\.tra:2: '0 0.5:1 1/2:2 go' .*-exportrows"):
        tp.read(prism(tra="3 4 5\n0 0.5:1 1/2:2 go\n0 1:2 wait\n1 1:1 \n2 1:2 \n"))


def test_the_header_and_the_labels_of_storm(prism):
    """Storm names the type of the model instead of its sizes."""
    tra = FILES["m.tra"].replace("3 4 5", "mdp")
    lab = "#DECLARATION\ninit deadlock goal\n#END\n0 init\n2 goal\n"
    assert outcomes(tp.read(prism(tra=tra, lab=lab))) == outcomes(tp.read(prism()))
    with pytest.raises(FormatError, match=r"m\.lab:5: label 'gaol' is not declared"):
        tp.read(prism(tra=tra, lab=lab.replace("2 goal", "2 gaol")))


def test_packed_files(prism, tmp_path):
    plain = tp.read(prism())
    for path in sorted(tmp_path.iterdir()):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert differences(tp.read(tmp_path / "m.tra.gz"), plain) == []
    with pytest.raises(FormatError, match=r"packed explicit files .* write \.tra"):
        tp.write(plain, tmp_path / "n.tra.gz")


def test_several_starts_are_drawn(prism):
    lab = FILES["m.lab"].replace("0: 0", "0: 0\n1: 0")
    ssp = tp.read(prism(lab=lab))
    assert ssp.start == "start" and "the start is drawn among 2 states, at no cost" in ssp.notes
    assert outcomes(ssp)["start", "draw"] == [("(-1, False)", 0.5, 0.0), ("(0, True)", 0.5, 0.0)]
    assert tp.read(prism(lab=lab), start="two words").start == (7, True)
    assert (
        tp.read(prism(lab=lab), start="1").start
        == tp.read(prism(lab=lab), start=1).start
        == (-1, False)
    )
    for start in ("nowhere", "9", 9, -1):
        with pytest.raises(FormatError, match="choose the start with --start LABEL"):
            tp.read(prism(lab=lab), start=start)


def test_rewards_on_goals_are_noted(prism):
    assert any(
        note.startswith("rewards on goals are left out (of 1 ") for note in tp.read(prism()).notes
    )
