"""Our JSON, as people write it and as they get it wrong."""

import json

import pytest

import tailpath as tp
from tailpath.formats import json_files
from tests.formats.models import by_choice, many_numbers

MODEL = """{
  "format": "tailpath model", "version": 1,
  "start": "a", "goals": ["g"],
  "outcomes": [
    ["a", "x", "g", 0.5, 1.0],
    ["a", "x", [1, "b, ]", [true]], "1/2", 1],
    [[1, "b, ]", [true]], null, "g", 1e0, "1/3"]
  ]
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("\n", "\r\n"),
        ("\n    [", "\n["),
        (", ", " , "),
        ('"x"', '"\\"x\\\\"'),
        ('"x"', '"outcomes"'),
        ('"x"', "7"),
        ('"x"', "1.0"),
        ('"x"', "true"),
        ("[1, ", "[1.0, "),
        ('"a", "goals"', '"a", "notes": ["\\"outcomes\\": ["], "goals"'),
        ('"start": "a"', '"start": "a", "states": ["a", [1, "b, ]", [true]], "g"]'),
        ('"outcomes": [', '"outcomes":['),
        ("0.5, 1.0],", "0.5, 1.0],\n"),
        ("0.5, 1.0],", "0.5, 1.0], "),
        ("\n}", ', "notes": []\n}'),
        ('"x"', '"Zürich"'),
        ('"x"', '"Z\\u00fcrich"'),
        ('"a"', '"東京 \u2028\x85\x7f"'),
        ('"start": "a"', '"start": "a", "notes": ["é"]'),
    ],
)
def test_what_may_be_written(old, new, tmp_path):
    text = MODEL.replace(old, new)
    (tmp_path / "m.json").write_text(text, newline="", encoding="utf-8")
    ssp, rows = tp.read(tmp_path / "m.json"), json.loads(text)["outcomes"]
    assert set(map(repr, ssp.states)) == {
        repr(named(row[column])) for row in rows for column in (0, 2)
    }
    assert list(map(repr, ssp.actions)) == list(dict.fromkeys(repr(named(row[1])) for row in rows))
    assert ssp.outcome_cost.tolist() == [1.0, 1.0, 1 / 3] and ssp.outcome_probability.tolist() == [
        0.5,
        0.5,
        1.0,
    ]


def named(value):
    """A list stands for a tuple."""
    return tuple(map(named, value)) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"start": "a"',
            '"start": "a", "states": ["a", [1, "b, ]", [1]], "g"]',
            'm.json: outcomes[1]: the names [1, "b, ]", [true]] and [1, "b, ]", [1]]',
        ),
        (
            '"start": "a"',
            '"start": "a", "states": 3',
            "m.json: outcomes[0]: 'a' is not among the states",
        ),
        ('"start": "a"', '"start": "a", "start": "a"', "m.json: the key 'start' is given twice"),
        (
            '"start": "a"',
            '"start": "a", "outcomes" : []',
            "m.json: the key 'outcomes' is given twice",
        ),
        ('"outcomes": [', '"geometry": {"outcomes": [', "m.json:10: "),
        (
            '"outcomes": [',
            '"a\\"outcomes": [',
            (
                "m.json: unknown member 'a\"outcomes'; known are format, version, start, goals,"
                " states, actions, cost_unit, geometry, notes, confidence, outcomes"
            ),
        ),
        ("]\n  ]\n}", "],\n  ]\n}", "m.json:"),
        ("0.5, 1.0],", "0.5, 1.0]", "m.json:6: "),
        ("0.5, 1.0],", "0.5, 1.0],,", "m.json:5: "),
        ("0.5, 1.0],", "0.5, 1.0], []", "m.json:6: "),
        ("0.5, 1.0],", "0.5, 1.0,],", "m.json:5: "),
        ("0.5, 1.0],", "0.5, 1.0]]", "m.json:6: "),
        (
            "0.5, 1.0],",
            "0.5],",
            (
                "m.json: outcomes[0] is ['a', 'x', 'g', 0.5]; expected [state, action, next state,"
                " probability, cost]"
            ),
        ),
        ("0.5, 1.0]", "0.5, NaN]", "m.json: NaN is not a number"),
        ("0.5, 1.0]", "0.5, 1.0 2]", "m.json:5: "),
        ("0.5, 1.0]", "0.5, 1:2]", "m.json:5: "),
        ("0.5, 1.0]", "05, 1.0]", "m.json:5: "),
        ("0.5, 1.0]", "0.5, {}]", "m.json: outcomes[0]: cost {} is not a number"),
        ("0.5, 1.0]", "0.5, [1}]", "m.json:5: "),
        ("0.5, 1.0]", '0.5, "x"]', "m.json: outcomes[0]: cost: 'x' is not a finite number"),
        ("0.5, 1.0]", "1e999, 1.0]", "m.json: the number 1e999 is too large"),
        ('"x"', '"x\ty"', "m.json:5: "),
        ('"x"', '"x\\', "m.json:5: "),
        ('"x"', "{}", "m.json: outcomes[0]: {} is not a name"),
        ("\n}", "}\n}", "m.json:9: "),
        (
            '"start": "a"',
            '"start": "a", "é": 1',
            (
                "m.json: unknown member 'é'; known are format, version, start, goals, states,"
                " actions, cost_unit, geometry, notes, confidence, outcomes"
            ),
        ),
        ("0.5, 1.0]", '0.5, "１"]', "m.json: outcomes[0]: cost: '１' is not a finite number"),
        ("0.5, 1.0]", "0.5, １]", "m.json:5: "),
    ],
)
def test_what_is_refused(old, new, said, tmp_path):
    (tmp_path / "m.json").write_text(MODEL.replace(old, new), newline="", encoding="utf-8")
    with pytest.raises(tp.TailpathError) as refusal:
        tp.read(tmp_path / "m.json")
    assert str(refusal.value).startswith(str(tmp_path / said))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (b"x", b"Z\xfcrich", 5),
        (b"x", b"\xed\xa0\x80", 5),
        (b'"start": "a"', b'"start": "a", "notes": ["\xff"]', 3),
        (b'{\n  "format"', b'\xef\xbb\xbf{\n  "format"', 0),
    ],
)
def test_texts_in_other_codes(old, new, line, tmp_path):
    """Refused with the line; a byte order mark is none of them."""
    (tmp_path / "m.json").write_bytes(MODEL.encode().replace(old, new, 1))
    if line == 0:
        assert tp.read(tmp_path / "m.json").n_states == 3
    else:
        with pytest.raises(tp.TailpathError, match=rf"m\.json:{line}: this is not UTF-8 text"):
            tp.read(tmp_path / "m.json")


def test_progress_is_told(tmp_path):
    told = []
    tp.write(many_numbers(3_000), tmp_path / "m.json")
    tp.read(tmp_path / "m.json", progress=lambda done, share: told.append((done, share)))
    assert len(told) > 1 and told[-1] == ((tmp_path / "m.json").stat().st_size, 1.0)


def test_large_files_are_told_of_other_formats(tmp_path, monkeypatch):
    tp.write(by_choice(), tmp_path / "m.json")
    monkeypatch.setattr(json_files, "LARGE_JSON", 200)
    with pytest.warns(tp.TailpathWarning, match=r"m\.json: 0 MB of JSON.*\.npz and \.umb"):
        tp.read(tmp_path / "m.json")
