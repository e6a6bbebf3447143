"""Numbers and sizes at the border of what a computer holds: each is one line of
refusal, at once.
"""

import gzip
import io
import json
import math
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import FormatError, ModelError, OptionError, PolicyError
from tests.formats.models import by_choice, read_both_ways
from tests.formats.policies import atom_policy

BOMBS = ["1e-99999999", "1e99999999", "-1e-99999999", "1E+999999999", "0.1e-9999999"]


def document(start="s", probability=1, cost=1):
    return {
        "format": "tailpath model",
        "version": 1,
        "start": start,
        "goals": ["g"],
        "outcomes": [[start, "a", "g", probability, cost]],
    }


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("column", ["probability", "cost"])
def test_exponents_are_bounded(bomb, column, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document(**{column: bomb})))
    with pytest.raises(
        FormatError, match=rf"m\.json: outcomes\[0\]: {column}: '.*' is (too small|no)"
    ):
        tp.read(path)
    path.write_text(json.dumps(document(**{column: "here"})).replace('"here"', bomb))
    with pytest.raises(FormatError, match=r"m\.json: the number .* is too (small|large)"):
        tp.read(path)
    cells = {"probability": "1", "cost": "1", column: bomb}
    rows = f"s,a,g,{cells['probability']},{cells['cost']}\n"
    (tmp_path / "m.csv").write_text(f"state,action,next_state,probability,cost\n{rows}")
    slow, fast = read_both_ways(tmp_path / "m.csv", start="s", goals=["g"])
    assert slow == fast and "m.csv:2: " in slow


@pytest.mark.parametrize("bomb", BOMBS)
def test_exponents_of_options_are_bounded(bomb):
    ssp = tp.read("river:5x3")
    with pytest.raises(OptionError):
        tp.give_up(ssp, bomb)
    with pytest.raises(OptionError):
        tp.within(ssp, 3, bomb)
    with pytest.raises(OptionError):
        tp.within(ssp, 3, 1, gamma=bomb)
    with pytest.raises(ModelError):
        tp.SSP.from_outcomes([("s", "a", "g", 1, bomb)], "s", ["g"])


def test_zeros_and_small_numbers_stay(tmp_path):
    (tmp_path / "m.csv").write_text(
        "state,action,next_state,probability,cost\ns,a,g,1,0.000e-999\n"
    )
    slow, fast = read_both_ways(tmp_path / "m.csv", start="s", goals=["g"])
    assert slow.outcome_cost.tolist() == fast.outcome_cost.tolist() == [0.0]
    with pytest.raises(
        OptionError, match="the price of giving up must be a finite number, not '1e400'"
    ):
        tp.give_up(by_choice(), "1e400")


@pytest.mark.parametrize("shape", ["(1000000000, 0)", "(999999999999999999, 0)", "(0, 1000000000)"])
def test_an_axis_takes_no_memory_that_the_file_has_not(shape, tmp_path):
    tp.write_policy(atom_policy(), tmp_path / "p.npz")
    header = f"{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    table = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    whole = io.BytesIO()
    with zipfile.ZipFile(tmp_path / "p.npz") as old, zipfile.ZipFile(whole, "w") as new:
        for name in old.namelist():
            new.writestr(name, table if name == "choice.npy" else old.read(name))
    (tmp_path / "q.npz").write_bytes(whole.getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(
            FormatError, match=r"q\.npz: member choice declares the shape .* but holds 0 bytes"
        ):
            tp.read_policy(tmp_path / "q.npz", by_choice())
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["states", "actions"])
@pytest.mark.parametrize("count", [2**63, 10**400])
def test_a_count_of_names_that_no_computer_holds(name, count, tmp_path):
    """In the header of an npz a number stands for names that are numbers from 0 on."""
    tp.write(by_choice(), tmp_path / "m.npz")
    with zipfile.ZipFile(tmp_path / "m.npz") as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    header = json.loads(bytes(np.load(tmp_path / "m.npz")["header"]))
    changed = io.BytesIO()
    np.save(changed, np.frombuffer(json.dumps({**header, name: count}).encode(), dtype=np.uint8))
    with zipfile.ZipFile(tmp_path / "n.npz", "w") as archive:
        for each, content in {**members, "header.npy": changed.getvalue()}.items():
            archive.writestr(each, content)
    with pytest.raises(FormatError, match=rf"n\.npz: .*{name}"):
        tp.read(tmp_path / "n.npz")


DRN = """@type: MDP
@parameters

@reward_models
a
@nr_states
2
@nr_choices
2
@model
state 0 [1.7e308] init
	action 0 [1e308]
		1 : 1
state 1 [0] goal
	action 0 [0]
		1 : 1
"""


def test_a_sum_beyond_the_floats_is_refused(tmp_path):
    (tmp_path / "m.drn").write_text(DRN)
    slow, fast = read_both_ways(tmp_path / "m.drn")
    assert slow == fast and slow.endswith("m.drn: state 0, choice 0 -> 1 costs inf")


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_costs_of_other_programs_are_numbers(value, ours, tmp_path):
    """A UMB file may hold any float, and one that is not ours tells no unit: it was looked for
    among them.
    """
    path = tmp_path / "m.umb"
    tp.write(tp.SSP.from_outcomes([("s", "a", "g", 1, 7.25)], "s", ["g"]), path)
    tar, cost = gzip.decompress(path.read_bytes()), struct.pack("<d", 7.25)
    assert cost in tar and b'"comment"' in tar
    tar = tar.replace(cost, struct.pack("<d", value))
    path.write_bytes(gzip.compress(tar if ours else tar.replace(b"tailpath {", b"somebody {")))
    with pytest.raises(FormatError, match=rf"m\.umb: state 0, choice 0 -> 1 costs {value}"):
        tp.read(path)


@pytest.mark.parametrize("expression", ["-log(0,2)", "log(0-1,2)", "pow(10,400)"])
def test_costs_of_programs_are_numbers(expression, tmp_path):
    pytest.importorskip("stormpy")
    (tmp_path / "m.pm").write_text(
        "mdp module m x : [0..1] init 0; [a] x=0 -> (x'=1); [b] x=1 -> (x'=1); endmodule "
        f'rewards "c" x=0 : {expression}; endrewards label "goal" = x=1;'
    )
    with pytest.raises(FormatError, match=r"m\.pm: state 0, choice 0 -> 1 costs (inf|nan)"):
        tp.read(tmp_path / "m.pm")


@pytest.mark.parametrize("share", [5e-324, 1e-320])
def test_a_policy_has_no_probabilities_that_vanish(share, tmp_path):
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "s", 0.5, 1), ("s", "b", "g", 1, 3)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    header = {"format": "tailpath policy", "version": 1, "kind": "markov"}
    mixed = [["s", "a", share], ["s", "b", 1.0]]
    (tmp_path / "p.json").write_text(json.dumps({**header, "decisions": [], "mixed": mixed}))
    policy = tp.read_policy(tmp_path / "p.json", ssp)
    with pytest.raises(
        PolicyError, match=rf"action 'a' in state 's' with probability {share}, too small"
    ):
        tp.evaluate(ssp, policy, 0.5)


def test_rewards_beyond_the_floats_are_refused():
    P, huge = np.array([[[0.0, 1.0], [0.0, 1.0]]]), 10**400
    with pytest.raises(ModelError, match="must be an array of numbers"):
        tp.SSP.from_arrays(P, rewards=[[-huge], [0]], goals=[1], start=0)
    with pytest.raises(FormatError, match="state 0, action 0: expected"):
        tp.read({0: {0: [(1.0, 1, -huge, True)]}, 1: {0: [(1.0, 1, 0, True)]}}, goal="all")


@pytest.mark.parametrize("suffix", ["json", "npz", "csv", "drn", "tra", "umb"])
@pytest.mark.parametrize("start", [None, "null", "None", True, ""])
def test_a_start_of_any_name_survives_the_trip(start, suffix, tmp_path):
    tp.write(
        tp.SSP.from_outcomes([(start, "a", "g", 1, 1)], start, ["g"]), tmp_path / f"m.{suffix}"
    )
    again = tp.read(tmp_path / f"m.{suffix}").start
    assert (again, type(again)) == (start, type(start))


@pytest.mark.parametrize("suffix", ["json", "npz", "drn", "drn.gz", "tra", "umb", "csv"])
def test_long_names_of_wide_letters_can_be_written(suffix, tmp_path):
    """80 letters of three bytes each are a name for a file, and so is what is written before it is
    complete.
    """
    path = tmp_path / f"{'漢' * 80}.{suffix}"
    ssp = tp.SSP.from_outcomes([("漢" * 80, "行" * 80, "目" * 80, 1, 3)], "漢" * 80, ["目" * 80])
    tp.write(ssp, path)
    again = tp.read(path)
    assert again.states[again.start_index] == "漢" * 80 and again.outcome_cost.tolist() == [3.0]
    assert {each.name.partition(".")[0] for each in tmp_path.iterdir()} == {"漢" * 80}
