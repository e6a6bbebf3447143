"""Large text files are read by compiled loops, small ones line by line: both give the same model, or the same refusal."""

import random
import tracemalloc
import warnings

import pytest
from hypothesis import given

import tailpath as tp
from tailpath.formats import drn_scan, json_files
from tailpath.formats.prism_transitions import ExplicitFile
from tailpath.formats.table_text import Table
from tests.formats.models import awkward, by_choice, differences, many_numbers, read_both_ways, samples
from tests.fuzz.damage import damage
from tests.reference import to_ssp
from tests.strategies import any_models

SUFFIXES = ("drn", "tra", "csv", "json")


@pytest.fixture
def scans(monkeypatch):
    """Counts the files that the compiled loops have read, and those that they left to others."""
    counts = {"read": 0, "left": 0}

    def counting(function):
        def call(*arguments):
            found = function(*arguments)
            counts["left" if found is None else "read"] += 1
            return found

        return call

    monkeypatch.setattr("tailpath.formats.drn.scanned", counting(drn_scan.scanned))
    monkeypatch.setattr(json_files, "_scanned", counting(json_files._scanned))
    monkeypatch.setattr(ExplicitFile, "table", counting(ExplicitFile.table))
    monkeypatch.setattr(Table, "_scanned", counting(Table._scanned))
    return counts


def same(path, **options):
    """The model of a file, or the refusal; both ways must agree on it."""
    careful, quick = read_both_ways(path, **options)
    if isinstance(careful, str) or isinstance(quick, str):
        assert careful == quick
    else:
        assert differences(careful, quick) == []
        assert careful.outcome_probability.tobytes() == quick.outcome_probability.tobytes()
    return quick


def written(model, path):
    """Whether the format can hold a model."""
    try:
        tp.write(model, path)
    except tp.TailpathError:
        return False
    return True


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_we_write_is_read_by_the_loops(suffix, tmp_path, scans):
    n_read = 0
    for number, model in enumerate(samples().values()):
        path = tmp_path / f"m{number}.{suffix}"
        # In JSON a list of no outcomes is nothing to read.
        if written(model, path) and (suffix != "json" or model.n_outcomes):
            again = same(path)
            assert suffix == "csv" or differences(model, again) == []
            n_read += 1
    # The explicit files are scanned twice each, for transitions and rewards; the careful way asks first and is told there is nothing large.
    assert scans["read"] == n_read * (2 if suffix == "tra" else 1) and n_read > 3
    assert scans["left"] == (2 * n_read if suffix == "tra" else 0)


@given(model=any_models())
def test_random_models_are_read_alike(model, tmp_path_factory):
    for suffix in SUFFIXES:
        path = tmp_path_factory.mktemp("m") / f"m.{suffix}"
        if written(to_ssp(model), path):
            assert not isinstance(same(path), str)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files_are_read_alike(suffix, tmp_path, scans):
    rng = random.Random(f"both ways {suffix}")
    originals = []
    for model in [by_choice(), tp.read("river:4x3")] if suffix != "drn" else [awkward(), by_choice(), tp.read("river:4x3")]:
        folder = tmp_path / str(len(originals))
        folder.mkdir()
        if written(model, folder / f"m.{suffix}"):
            originals.append({path.name: path.read_bytes() for path in folder.iterdir()})
    place = tmp_path / "damaged"
    place.mkdir()
    accepted = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(400):
            files = dict(rng.choice(originals))
            victim = rng.choice(sorted(files))
            files[victim] = damage(files[victim], rng)
            for name, content in files.items():
                (place / name).write_bytes(content)
            accepted += not isinstance(same(place / f"m.{suffix}"), str)
    assert 20 < accepted < 380 and scans["read"] > 20 and scans["left"] > 20


STORM = """// Exported by storm
@type: MDP
@parameters

@reward_models
time energy
@nr_states
4
@model
state 0 [1, 0.1] init
//[x=1]
\taction 0 [0.5, 0.2]
\t\t1 : 0.25
\t\t2 : 3/4
\taction right [0, 1]
\t\t3 : 1

state 1 [2,0] "two words" trap
\taction __NOLABEL__
\t\t1 : 1
state 2
\taction 1 [7, 0]
\t\t0 : .5
\t\t3 : 5E-1
\taction right
\t\t3 : 1
state 3 [9, 9] goal "two words"
\taction 0 [9, 9]
\t\t3 : 1
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("\n", "\r\n"),
        ("3/4", "7.5e-1"),
        ("@type: MDP", "@type: DTMC"),
        ("state 1 ", "state 01 "),
        ("state 1 [2,0]", "state 1[2,0]"),
        ("state 1 [2,0]", "state 1 [2,0] [x]"),
        ("[2,0]", "[2,0][1]"),
        ("action right [0, 1]", "action right[0, 1]"),
        ("action right [0, 1]", "action right[0,1]"),
        ("1 : 0.25", "1:0.25"),
        ("1 : 0.25", "1 : 0.25 0.25"),
        ("1 : 0.25", "1 : 1e-00001\n\t\t1 : 0.15"),
        ("1 : 0.25", "9999999999 : 0.25"),
        ("1 : 0.25", "4 : 0.25"),
        ("1 : 0.25", "1\v: 0.25"),
        ("1 : 0.25", "\x1c1 : 0.25"),
        ("1 : 0.25", "1 : 0." + "0" * 800 + "1\n\t\t1 : 0.25"),
        ("//[x=1]", "//[x=\u00e4]"),
        ("trap", "tr\u00e4p"),
        ("@parameters\n", "@placeholders\n$p : 0.25\n@parameters\n"),
        ("4\n@model", "5\n@model"),
        ("@model", "@modell"),
        ("\taction right\n\t\t3 : 1\nstate 3", "\t\t3 : 1\nstate 3"),
    ],
)
def test_files_of_storm_are_read_alike(old, new, tmp_path):
    (tmp_path / "m.drn").write_text(STORM.replace(old, new), newline="")
    for cost in ("time", "energy"):
        same(tmp_path / "m.drn", cost=cost)
        same(tmp_path / "m.drn", cost=cost, goal="two words")


@pytest.mark.parametrize(
    "rows",
    [
        "0,a,1,0.5,1\n0,a,0,0.5,1\n",
        "0,a,1,0.5,1\r\n0,a,0,0.5,1\r\n\r\n",
        '"0","a, b","[1, 2]",0.5,1/3\n0,"a, b",0,0.5,1\n',
        '"say ""no""",a,0,0.5,1\n"say ""no""",a,1,0.5,1',
        "0,a,1, 0.5,1\n0,a,0,0.5 ,1\n",
        '0,a "b",1,1,1\n',
        '0,"a\nb",1,1,1\n',
        '0,"a"b,1,1,1\n',
        "0,a,1,1\n",
        "0,a,1,1,1,1\n",
        "\n0,a,1,1,1\n",
        "0,a,true,0.5,1\n0,a,1,0.5,1\n",
        f"0,{'a' * 140_000},1,1,1\n",
        "",
        # Names that are understood all at once, and what only looks like them.
        '"[1, 2]",0,"[1,3]",1,1\n"[1,3]",0,"[ 1, 4]",1,1\n"[1,3]",1,"[1, 3]",1,1\n',
        '"[1],[2]",0,"[[3]",1,1\n"[[3]",0,"[4]]",1,1\n',
        '"[""a]",0,"[b""]",1,1\n"[b""]",0,"[1],[2]",1,1\n',
        '"[1]",0,"[1",1,1\n"[1",0,"2]",1,1\n',
        '"[""[""]",0,"[1]",1,1\n',
        '"[1, true, null, ""x""]",0,"[1, 1, null, ""x""]",1,1\n',
        '"[1, true, null, ""x""]",0,"[2.5]",1,1\n',
        '"[{}]",0,"[1]",1,1\n',
        '"[1,\r2]",0,"[]",1,1\n',
        "-0,7, 1,1,1\n 1,7,2 ,1,1\n",
        "-0,7,0,0.5,1\n0,7,2,1,1\n-0,7,2,0.5,1\n",
        "01,7,2,1,1\n",
        '"1,2",7,3,1,1\n',
        f"{'9' * 30},7,{'8' * 30},1,1\n",
        f"{'9' * 5000},7,{'8' * 30},1,1\n",
        "1e5,7,1.0,1,1\n",
        "true,false,null,1,1\n",
        "3,2,5,1,1\n5,1,4,1,1\n",
        # Beyond ASCII.
        "Zürich,fährt,東京,1,1\n東京,\u00a0fährt\u2003,Genf,1,1\n東京,fährt\x85,Genf \u2028,1,1\n",
        '"Zürich, CH","[""é"", 1]","[""ü"", 2]",1,1\n',
        '"[""é"", 1]",a,"[""ü"", 2]",1,1\n',
        "0,a,1,０.5,1\n",
        "0,a,1,\u00a01\u00a0,1\n",
        "٣,1,٤,1,1\n",
        "0,\x7f,1,1,1\n",
    ],
)
def test_tables_are_read_alike(rows, tmp_path):
    for header in ("state,action,next_state,probability,cost", "idstatefrom,idaction,idstateto,probability,reward"):
        (tmp_path / "m.csv").write_text(f"{header}\n{rows}", newline="", encoding="utf-8")
        same(tmp_path / "m.csv")
        same(tmp_path / "m.csv", one_based=True)
    (tmp_path / "m.csv").write_text("to,goal,from,start,cost\nb,0,a,x,1\nc,1,b,,2\n")
    assert same(tmp_path / "m.csv").goals == ("c",)


@pytest.mark.parametrize(
    "data",
    [
        b"from,to,cost\nZ\xfcrich,Genf,1\n",
        b"from,to,cost\nZ\xc3\xbcrich,Genf,1\n",
        b"from,to,cost,\xff\nZ\xc3\xbcrich,Genf,1,1\n",
        "from,to,cost,fährt\nZürich,Genf,1,1\n".encode(),
        "\ufefffrom,to,cost\nZürich,Genf,1\n".encode(),
        b"from,to,cost\nA,B,\xe2\x80\n",
        b"from,to,cost\n\xed\xa0\x80,B,1\n",
        b"from,to,price\nA,B\xff,1\n",
        b"from,to,cost,note\nA,B,1,\xff\n",
    ],
)
def test_tables_in_utf_8_and_in_others_are_read_alike(data, tmp_path):
    (tmp_path / "m.csv").write_bytes(data)
    found = same(tmp_path / "m.csv")
    assert isinstance(found, str) == ("Zürich".encode() not in data or b"\xff" in data)


@pytest.mark.parametrize(
    ("tra", "trew"),
    [
        ("2 2 3\n0 0 0 0.5 a\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n1 0 1 1\n0 0 1 0.5 a\n0 0 0 0.5 a\n\n \n", "2 2 2\n0 0 1 3\n0 0 0 1/2\n"),
        ("2 2 3\n0 0 0 0.5 a\n\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 a\n0 0 1 0.5 b\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 4\n0 0 0 0.5 a\n0 0 1 0.25 a\n0 0 1 0.25 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n", "2 1\n0 1 3\n"),
        ("2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n", "2 2\n0 1 3\n0 1 3\n"),
        ("2 3\n0 0 0.5\n0 5 0.5\n1 1 1\n", "2 1\n0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 a\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n1 0 0 3\n"),
        ("2 2 3\n0 0 0.5:0 0.5:1 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 a # x\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 x\n"),
    ],
)
def test_explicit_files_are_read_alike(tra, trew, tmp_path):
    (tmp_path / "m.tra").write_text(tra)
    (tmp_path / "m.trew").write_text(trew)
    (tmp_path / "m.lab").write_text('0="init" 1="goal"\n0: 0\n1: 1\n')
    same(tmp_path / "m.tra")


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
    ("old", "new", "scanned"),
    [
        ("", "", True),
        ("\n", "\r\n", True),
        ("\n    [", "\n[", True),
        (", ", " , ", True),
        ('"x"', '"\\"x\\\\"', True),
        ('"x"', '"outcomes"', True),
        ('"x"', "7", True),
        ('"x"', "1.0", True),
        ('"x"', "true", True),
        ("[1, ", "[1.0, ", True),
        ('"a", "goals"', '"a", "notes": ["\\"outcomes\\": ["], "goals"', True),
        ('"start": "a"', '"start": "a", "states": ["a", [1, "b, ]", [true]], "g"]', True),
        ('"start": "a"', '"start": "a", "states": ["a", [1, "b, ]", [1]], "g"]', False),
        ('"start": "a"', '"start": "a", "states": 3', False),
        ('"start": "a"', '"start": "a", "start": "a"', False),
        ('"start": "a"', '"start": "a", "outcomes" : []', False),
        ('"outcomes": [', '"geometry": {"outcomes": [', False),
        ('"outcomes": [', '"a\\"outcomes": [', False),
        ('"outcomes": [', '"outcomes":[', False),
        ("]\n  ]\n}", "],\n  ]\n}", False),
        ("0.5, 1.0],", "0.5, 1.0]", False),
        ("0.5, 1.0],", "0.5, 1.0],,", False),
        ("0.5, 1.0],", "0.5, 1.0], []", False),
        ("0.5, 1.0],", "0.5, 1.0,],", False),
        ("0.5, 1.0],", "0.5, 1.0]]", False),
        ("0.5, 1.0],", "0.5],", False),
        ("0.5, 1.0],", "0.5, 1.0],\n", False),
        ("0.5, 1.0],", "0.5, 1.0], ", True),
        ("0.5, 1.0]", "0.5, NaN]", False),
        ("0.5, 1.0]", "0.5, 1.0 2]", False),
        ("0.5, 1.0]", "0.5, 1:2]", False),
        ("0.5, 1.0]", "05, 1.0]", False),
        ("0.5, 1.0]", "0.5, {}]", False),
        ("0.5, 1.0]", "0.5, [1}]", False),
        ("0.5, 1.0]", "0.5, -1.0]", True),
        ("0.5, 1.0]", '0.5, "x"]', False),
        ("0.5, 1.0]", "1e999, 1.0]", False),
        ('"x"', '"x\ty"', False),
        ('"x"', '"x\\', False),
        ('"x"', "{}", False),
        ("\n}", ', "notes": []\n}', False),
        ("\n}", "}\n}", False),
        ('"x"', '"Zürich"', True),
        ('"x"', '"Z\\u00fcrich"', True),
        ('"a"', '"東京 \u2028\x85\x7f"', True),
        ('"start": "a"', '"start": "a", "notes": ["é"]', True),
        ('"start": "a"', '"start": "a", "é": 1', False),
        ("0.5, 1.0]", '0.5, "１"]', False),
        ("0.5, 1.0]", "0.5, １]", False),
    ],
)
def test_outcomes_in_json_are_read_alike(old, new, scanned, tmp_path, scans):
    (tmp_path / "m.json").write_text(MODEL.replace(old, new), newline="", encoding="utf-8")
    same(tmp_path / "m.json")
    assert scans == {"read": int(scanned), "left": int(not scanned)}


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        (b"x", "Zürich".encode("latin-1"), 0),
        (b"x", b"\xed\xa0\x80", 0),
        (b"[1, ", b"[\xc2\xa01, ", 1),
        (b'"start": "a"', b'"start": "a", "notes": ["\xff"]', 0),
        (b'{\n  "format"', b'\xef\xbb\xbf{\n  "format"', 0),
    ],
)
def test_bytes_that_are_not_utf_8_are_left_to_the_careful_reader(old, new, left, tmp_path, scans):
    data = MODEL.encode()
    assert old in data
    (tmp_path / "m.json").write_bytes(data.replace(old, new, 1))
    same(tmp_path / "m.json")
    assert scans == {"read": 0, "left": left}


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_names_beyond_ascii_are_read_by_the_loops(suffix, tmp_path, scans):
    """The cities of a map, as they are spelled there; progress is told on the way."""
    cities = [f"Zürich {k}" if k % 3 else f"東京-{k} \u2028é" for k in range(2_000)]
    rows = [(city, "gehen" if k % 2 else "фразу", cities[k + 1], 1, 1 + k % 7) for k, city in enumerate(cities[:-1])]
    model = tp.SSP.from_outcomes(rows, start=cities[0], goals=[cities[-1]])
    path, told = tmp_path / f"m.{suffix}", []
    tp.write(model, path)
    again = tp.read(path, compiled=True, progress=lambda steps, share: told.append(share))
    # A table has no place for notes, nor for the unit where decimals say it.
    assert differences(model, again, notes=suffix == "json") == ["exact_unit"] * (suffix == "csv") and told[-1] == 1.0
    assert differences(again, same(path)) == []
    assert scans == {"read": 2, "left": 0}


def test_progress_of_json(tmp_path):
    told = []
    tp.write(many_numbers(2_000), tmp_path / "m.json", progress=lambda steps, share: told.append(share))
    assert told[-1] == 1.0
    tp.read(tmp_path / "m.json", progress=lambda steps, share: told.append(share), compiled=True)
    assert told[-1] == 1.0 and len(told) > 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_all_digits_of_all_numbers_come_back(suffix, tmp_path):
    model, path = many_numbers(4_000), tmp_path / f"m.{suffix}"
    tp.write(model, path)
    assert differences(model, tp.read(path, compiled=True), notes=suffix != "csv") == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_memory_is_at_most_four_times_the_file(suffix, tmp_path):
    path = tmp_path / f"m.{suffix}"
    tp.write(tp.domains.gridworld("\n".join(["." * 80] * 59 + ["G" + "." * 78 + "S"])), path)
    tp.read(path, compiled=True)  # so that compiling is not counted
    tracemalloc.start()
    try:
        tp.read(path, compiled=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * sum(file.stat().st_size for file in tmp_path.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES[:-1])
@pytest.mark.parametrize("compiled", [True, False])
def test_progress_is_told_both_ways(suffix, compiled, tmp_path):
    model, path = many_numbers(2_000 if compiled else 30_000), tmp_path / f"m.{suffix}"
    told = []
    tp.write(model, path, progress=lambda steps, share: told.append((steps, share)))
    assert told[-1] == (model.n_outcomes, 1.0) and all(0 < share <= 1 for _, share in told)
    told.clear()
    tp.read(path, compiled=compiled, progress=lambda steps, share: told.append((steps, share)))
    assert told and all(0 < share <= 1 for _, share in told)
    if compiled:
        assert told[0] == (path.stat().st_size, 1.0)


def test_a_write_that_is_interrupted_leaves_nothing_behind(tmp_path):
    def interrupt(steps, share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tp.write(by_choice(), tmp_path / "m.drn", progress=interrupt)
    assert list(tmp_path.iterdir()) == []
