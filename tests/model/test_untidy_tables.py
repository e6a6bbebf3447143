"""Tables as people have them: all faults at once by row, semicolons, decimal commas, percentages,
slips that are noted; alike in memory and in files.
"""

from fractions import Fraction

import pandas as pd
import pytest

import tailpath as tp
from tailpath.cli import main
from tailpath.errors import FormatError, ModelError, OptionError
from tailpath.model.ends import nearest

HEADER = "state,action,next_state,probability,cost\n"


def both(tmp_path, text):
    """A table as a DataFrame, and as a file."""
    path = tmp_path / "roads.csv"
    path.write_text(text)
    return pd.read_csv(path, dtype=object, keep_default_na=False), path


def refusals(tmp_path, text, **options):
    frame, path = both(tmp_path, text)
    with pytest.raises(ModelError) as in_memory:
        tp.read(frame, **options)
    with pytest.raises(FormatError) as in_file:
        tp.read(path, **options)
    assert "\n" not in str(in_memory.value) and "\n" not in str(in_file.value)
    return str(in_memory.value), str(in_file.value)


def test_all_cells_at_fault_are_told_at_once(tmp_path):
    text = HEADER + "a,x,b,0.5,1\na,x,c,half,1\nb,x,c,1,long\nb,y,c,1,2\nc,x,d,-1,-\n"
    memory, file = refusals(tmp_path, text)
    assert "row 1: 'half' is not a finite number (column probability)" in memory
    assert "row 2: 'long' is not" in memory and "row 4: '-' is not" in memory
    assert "roads.csv:3: 'half' is not a finite number (column probability)" in file
    assert "; line 4: 'long' is not" in file and "; line 6: '-' is not" in file


def test_equal_cells_are_told_together_and_many_are_counted(tmp_path):
    rows = "".join(f"s{k},x,g,1,{'x' if k % 2 else f'y{k}'}\n" for k in range(20))
    memory, file = refusals(tmp_path, HEADER + rows)
    assert "row 1: 'x' is not a finite number (column cost) (and row 3, row 5, row 7, ..)" in memory
    assert memory.endswith("; and 6 more") and file.endswith("; and 6 more")


def test_missing_cells_are_told_by_the_label_of_their_row():
    frame = pd.DataFrame({"from": ["a", "b"], "to": ["b", None], "time": [1.0, float("nan")]})
    frame.index = ["first", "second"]
    with pytest.raises(ModelError, match=r"row second: .*cannot be a name.*row second: nan is not"):
        tp.SSP.from_table(frame)


def test_ragged_rows_are_told_at_once(tmp_path):
    (tmp_path / "m.csv").write_text("from,to,time\na,b\nb,c,1\nc,d,1,2\n")
    with pytest.raises(
        FormatError, match=r"m\.csv:2: 2 columns, expected 3; line 4: 4 columns, expected 3"
    ):
        tp.read(tmp_path / "m.csv")


def test_choices_whose_probabilities_do_not_sum_to_one_are_told_at_once(tmp_path):
    text = HEADER + "a,x,g,0.5,1\na,y,g,1,1\nb,x,g,0.7,1\n"
    memory, file = refusals(tmp_path, text)
    assert "row 0: the probabilities of state 'a', action 'x' sum to 0.5, not 1" in memory
    assert "row 2: the probabilities of state 'b', action 'x' sum to 0.7, not 1" in memory
    assert "roads.csv:2: the probabilities" in file and "; line 4: the probabilities" in file


def test_a_slip_in_a_next_state_is_asked_about(tmp_path):
    text = HEADER + "home,bus,statoin,1,5\nstation,train,work,1,30\nhome,car,work,1,50\n"
    memory, file = refusals(tmp_path, text, goals=["work"])
    said = "state 'statoin' has no choices and is not a goal; did you mean 'station'?"
    assert memory == f"row 0: {said}" and file.endswith(f"roads.csv:2: {said}")
    for table in both(tmp_path, text):
        notes = tp.read(table).notes
        assert "the goal 'statoin' has no rows; did you mean 'station'?" in notes


def test_a_letter_for_a_digit_is_asked_about_and_the_true_goal_is_not(tmp_path):
    rows = "".join(f"Ort{k},x,Ort{k + 1},1,2\n" for k in range(29))
    rows += "Ort27,y,Ort29,1,5\nOrt18,y,Ort2O,1,3\n"
    said = "did you mean 'Ort20'?"
    for table in both(tmp_path, HEADER + rows):
        notes = [note for note in tp.read(table).notes if "did you mean" in note]
        assert notes == [f"the goal 'Ort2O' has no rows; {said}"]
    for refusal in refusals(tmp_path, HEADER + rows, goals=["Ort29"]):
        assert refusal.endswith(f"state 'Ort2O' has no choices and is not a goal; {said}")


def test_of_names_as_close_the_most_used_is_meant():
    uses = {"Bern": 2, "Berlin": 9, "Kern": 7}
    assert nearest("Xern", uses) == "Kern" and nearest("bern", uses) == "Bern"
    assert nearest("Brelin", uses) == "Berlin" and nearest("Paris", uses) is None


def test_numbered_names_are_no_slips():
    table = {"from": ["city1", "city1"], "to": ["city2", "city3"], "time": [1, 2]}
    assert not any("did you mean" in note for note in tp.SSP.from_table(table).notes)


def test_a_negative_cost_among_many_is_noted(tmp_path):
    rows = "".join(f"s{k},x,s{k + 1},1,{-3 if k == 17 else 2}\n" for k in range(60))
    for table, where in zip(both(tmp_path, HEADER + rows), ("row 17", "line 19")):
        assert f"1 of 60 costs is negative ({where}: -3)" in tp.read(table).notes
    rows = "".join(f"s{k},x,s{k + 1},1,{2 - k % 4}\n" for k in range(60))
    for table in both(tmp_path, HEADER + rows):
        assert not any("negative" in note for note in tp.read(table).notes)


ROADS = """Von;Nach;Aktion;Wahrscheinlichkeit;Minuten;Maut
Köln;Bonn;Bahn;0,9;20,5;0
Köln;Bonn;Bahn;0,1;60;0
Köln;Deutz;Auto;100 %;7;2
Deutz;Bonn;Auto;1;30;1
"""
NAMES = ("Von", "Aktion", "Nach", "Wahrscheinlichkeit", "Minuten")


def test_german_headers_are_named_at_once_in_a_line_to_be_copied(tmp_path, capsys):
    path = tmp_path / "roads.csv"
    path.write_text(ROADS, encoding="utf-8")
    assert main(["info", str(path)]) == 2
    said = capsys.readouterr().err
    assert "Von, Nach, Aktion, Wahrscheinlichkeit, Minuten, Maut" in said
    assert (
        "by their cells these may be (columns={'state': 'Von', 'next_state': 'Nach', 'cost':"
        " 'Minuten', 'action': 'Aktion', 'probability': 'Wahrscheinlichkeit'}, --column state=Von"
        " --column next_state=Nach --column cost=Minuten --column action=Aktion"
        " --column probability=Wahrscheinlichkeit)"
    ) in said
    columns = dict(zip(("state", "action", "next_state", "probability", "cost"), NAMES))
    flags = [part for pair in columns.items() for part in ("--column", "=".join(pair))]
    assert main(["info", str(path), *flags]) == 0
    assert "7 to 60" in capsys.readouterr().out
    frame = pd.read_csv(path, sep=";", dtype=object)
    with pytest.raises(ModelError, match=r"no column .*state or the next_state or the cost"):
        tp.SSP.from_table(frame)
    in_memory, in_file = tp.SSP.from_table(frame, columns=columns), tp.read(path, columns=columns)
    assert in_memory.fingerprint == in_file.fingerprint


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        # No cell is shared: state, action, next state, in this order.
        (
            "Ort,Weg,Ziel,Zeit\na,x,b,3\na,y,b,4\n",
            "state=Ort --column next_state=Ziel",
        ),
        # One name is known, the other has most cells in common with it.
        ("from,Weg,Ziel,Zeit\na,x,b,3\nb,y,c,4\n", "next_state=Ziel --column cost=Zeit"),
        # 0.5 and 0.25 are no probabilities.
        (
            "Ort,Weg,Ziel,Anteil\na,x,b,0.5\nb,y,c,0.25\n",
            "next_state=Ziel --column cost=Anteil --column action=Weg)",
        ),
        # Of two, the second may be the action.
        ("Ort,Weg,Zeit\na,x,3\nb,y,4\n", "state=NAME --column next_state=NAME --column cost=NAME"),
        # Numbers may be states or anything else: nothing is proposed.
        ("u,v,w\n1,2,3\n2,3,1\n", "state=NAME --column next_state=NAME --column cost=NAME"),
        # Unless probabilities prove it.
        (
            "ort,weg,nach,anteil,dauer\n1,0,2,0.9,10\n1,0,3,0.1,30\n2,0,4,1,5\n3,0,4,1,5\n",
            "state=ort --column next_state=nach --column cost=dauer --column action=weg"
            " --column probability=anteil)",
        ),
        ("u,v,w\n", "state=NAME --column next_state=NAME --column cost=NAME"),
        ("u,u,w\na,b,1\n", "state=NAME --column next_state=NAME --column cost=NAME"),
    ],
)
def test_columns_are_proposed_by_their_cells(text, proposal, tmp_path):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(FormatError, match=r"no column for the") as refused:
        tp.read(tmp_path / "m.csv")
    assert proposal in str(refused.value)
    assert ("by their cells" in str(refused.value)) == ("NAME" not in proposal)


GERMAN = "from;action;to;p;time\nKöln;Bahn;Bonn;0,25;20,5\nKöln;Bahn;Bonn;75 %;18\n"


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_semicolons_decimal_commas_and_percentages_are_read(separator, tmp_path):
    (tmp_path / "m.csv").write_text(GERMAN.replace(";", separator), encoding="utf-8")
    ssp = tp.read(tmp_path / "m.csv")
    assert ssp.outcome_probability.tolist() == [0.25, 0.75]
    assert ssp.outcome_cost.tolist() == [20.5, 18] and ssp.cost_unit == Fraction(1, 2)


def test_quoted_semicolons_and_decimal_commas_in_many_rows(tmp_path):
    rows = "".join(f'{k};"go; on";{k + 1};1,0;{k % 7},5\n' for k in range(3_000))
    (tmp_path / "m.csv").write_text("from;action;to;p;time\n" + rows)
    found = tp.read(tmp_path / "m.csv")
    assert found.actions == ("go; on",) and found.outcome_cost[:2].tolist() == [0.5, 1.5]


def test_texts_with_decimal_commas_in_memory():
    table = {"from": ["a", "b"], "to": ["b", "c"], "time": ["0,5", "1,250"]}
    assert tp.SSP.from_table(table).outcome_cost.tolist() == [0.5, 1.25]


@pytest.mark.parametrize("cells", [["1,234", "2,000"], ["0,5", "1.5"]])
def test_commas_that_may_mean_something_else_are_refused(cells):
    with pytest.raises(ModelError, match=f"row 0: '{cells[0]}' is not a finite number"):
        tp.SSP.from_table({"from": ["a", "b"], "to": ["b", "c"], "time": cells})


def test_percentages_without_a_sign_are_asked_about(tmp_path):
    text = HEADER + "a,x,g,60,1\na,x,b,40,1\nb,x,g,100,1\n"
    for said in refusals(tmp_path, text):
        assert "sum to 100, not 1: if they are percentages, write 5%" in said


def test_all_columns_that_are_missing_are_listed():
    """Probabilities need a column of actions; no name is guessed."""
    table = {"Von": ["a"], "Nach": ["b"], "p": [1.0], "Minuten": [20]}
    with pytest.raises(ModelError, match="the state or the action or the next_state or the cost"):
        tp.SSP.from_table(table)
    with pytest.raises(ModelError, match=r"\(columns=\{'next_state': 'NAME'\}, "):
        tp.SSP.from_table({"from": ["a", "b"], "Aktion": ["Bahn", "Bus"], "time": [3, 9]})


def test_float32_costs_stand_for_their_decimals():
    frame = pd.DataFrame({"from": ["a"], "to": ["b"], "time": [0.1]}).astype({"time": "float32"})
    assert tp.SSP.from_table(frame).outcome_cost.tolist() == [0.1]


def test_cells_and_sums_at_fault_are_told_together():
    """One number that cannot be read does not hide a negative probability, or a sum."""
    table = {
        "from": ["A", "A", "B", "B", "B"],
        "to": ["B", "B", "C", "C", "C"],
        "road": ["r1", "r1", "r2", "r2", "r3"],
        "p": [0.5, 0.4, 0.9, -0.1, 1],
        "minutes": [1, 2, 3, 4, "five"],
    }
    with pytest.raises(ModelError) as found:
        tp.SSP.from_table(table)
    for fact in ("row 4: 'five'", "row 3: ", "probability -0.1", "row 0: ", "sum to 0.9, not 1"):
        assert fact in str(found.value)


def test_two_costs_are_answered():
    with pytest.raises(OptionError, match=r"one column .*cost: .*weighted\s+sum"):
        tp.SSP.from_table({"from": ["A"], "to": ["B"]}, columns={"cost": ["minutes", "toll"]})
    table = {"from": ["A"], "to": ["B"], "minutes": [3], "toll": [1]}
    for cost in (["minutes", "toll"], "minutes,toll", "minutes + toll"):
        with pytest.raises(OptionError, match=r"one column .*cost: .*weighted\s+sum"):
            tp.read(table, cost=cost)
