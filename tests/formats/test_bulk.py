"""Text files are read many lines at a time; read line by line they give the same model, or the same
refusal.
"""

import random
import tracemalloc
import warnings

import pytest
from hypothesis import given

import tailpath as tp
from tailpath.formats import drn
from tailpath.formats.writing import in_blocks as in_pieces
from tests.formats.models import (
    awkward,
    by_choice,
    differences,
    in_blocks,
    many_numbers,
    read_both_ways,
    samples,
)
from tests.fuzz.damage import damage
from tests.reference import to_ssp
from tests.strategies import any_models

SUFFIXES = ("drn", "tra", "csv")


def same(path, **options):
    """The model of a file, or the refusal; both ways must agree on it."""
    by_line, at_once = read_both_ways(path, **options)
    if isinstance(by_line, str) or isinstance(at_once, str):
        assert by_line == at_once
    else:
        assert differences(by_line, at_once) == []
        assert by_line.outcome_probability.tobytes() == at_once.outcome_probability.tobytes()
    return at_once


def written(model, path):
    """Whether the format can hold a model."""
    try:
        tp.write(model, path)
    except tp.TailpathError:
        return False
    return True


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_we_write_is_read_alike(suffix, tmp_path):
    n_read = 0
    for number, model in enumerate(samples().values()):
        path = tmp_path / f"m{number}.{suffix}"
        if written(model, path):
            again = same(path)
            assert suffix == "csv" or differences(model, again) == []
            n_read += 1
    assert n_read > 3


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("size", [2_000, 5_000, 50_000])
def test_blocks_of_any_size_give_the_same_model(suffix, size, tmp_path):
    for model in (many_numbers(300), tp.read("river:20x9"), tp.read("gridworld:14x16")):
        path = tmp_path / f"m.{suffix}"
        tp.write(model, path)
        if suffix == "drn":  # as Storm writes it, with comments
            head, model_line, body = path.read_text().partition("@model\n")
            path.write_text(head + model_line + body.replace("\taction", "//[x=1]\n\n\taction"))
        assert path.stat().st_size > 2 * size or size == 50_000
        found = same(path)
        with in_blocks(size):
            assert differences(found, tp.read(path)) == []


@given(model=any_models())
def test_random_models_are_read_alike(model, tmp_path_factory):
    for suffix in SUFFIXES:
        path = tmp_path_factory.mktemp("m") / f"m.{suffix}"
        if written(to_ssp(model), path):
            assert not isinstance(same(path), str)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files_are_read_alike(suffix, tmp_path):
    rng = random.Random(f"both ways {suffix}")
    originals = []
    for model in (
        [by_choice(), tp.read("river:4x3")]
        if suffix != "drn"
        else [awkward(), by_choice(), tp.read("river:4x3")]
    ):
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
    assert 20 < accepted < 380


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
        ("1 : 0.25", "0x1 : 0.25"),
        ("1 : 0.25", "+1 : 0.25"),
        ("1 : 0.25", "-0 : 0.25"),
        ("1 : 0.25", "01 : 0.25"),
        ("1 : 0.25", "1 : nan"),
        ("1 : 0.25", "1 : 0x1p-2"),
        ("1 : 0.25", "1 : +0.25"),
        ("1 : 0.25", "1 : 0.25\n\n \t\n\r\n"),
        ("1 : 0.25", "1 : 0.25\r\r"),
        ("1 : 0.25", "1 : 0.125\r1 : 0.125"),
        ("1 : 0.25", "\u0661 : 0.25"),
        ("1 : 0.25", "1\u00a0: 0.25"),
        ("1 : 0.25", "1 : 0.25\u00a0"),
        ("1 : 0.25", "4294967297 : 0.25"),
        ("//[x=1]", "//[x=\u00e4]"),
        ("//[x=1]", "/[x=1]"),
        ("//[x=1]", "   // two words"),
        ("state 1 ", "state\t1\t"),
        ("state 1 ", "  state 1 "),
        ("state 1 ", "states 1 "),
        ("state 1 ", "state +1 "),
        ("state 1 ", "state 1\u2003"),
        ("state 2\n", "state 2 \n"),
        ("state 2\n", "state 2"),
        ("action right", "actions right"),
        ("action right", "action\u00a0right"),
        ("action right", 'action "r\u00efght"'),
        ("action right", "action 1"),
        ("action right", "action 01"),
        ("action right", "action \u0661"),
        ("@nr_states\n4", "@nr_states\n0x4"),
        ("trap", "tr\u00e4p"),
        ("4\n@model", "5\n@model"),
        ("@model", "@modell"),
        ("\taction right\n\t\t3 : 1\nstate 3", "\t\t3 : 1\nstate 3"),
    ],
)
def test_files_of_storm_are_read_alike(old, new, tmp_path):
    (tmp_path / "m.drn").write_text(STORM.replace(old, new), newline="", encoding="utf-8")
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
        '0,"a"",1,1,1\n',
        '0,"a""b",1,1,1\n0,"a""",2,1,1\n',
        '"",a,1,1,1\n',
        '0,a,"1,1,1\n',
        '0,"a",1,1,1"\n',
        '0, "a",1,1,1\n',
        '0,"a" ,1,1,1\n',
        '"0,"a,1,1,1\n',
        '""0"",a,1,1,1\n',
        '0,a,"1\r\n",1,1\n',
        "0,a,1,1,1\r1,a,2,1,1\n",
        "0,a,1,1,1\r\n\r\n1,a,2,1,1\r\n",
        "# comment\n0,a,1,1,1\n",
        "0,a,1,1,1\n,,,,\n",
        "0,a,1,0x1,1\n",
        "0,a,1,nan,1\n",
        "0,a,1,1,inf\n",
        "0,a,1,NULL,1\n",
        "NULL,NA,n/a,1,1\n",
        "0,a,1,+1.0,1_0\n",
        "0x10,a,1,1,1\n",
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
    for header in (
        "state,action,next_state,probability,cost",
        "idstatefrom,idaction,idstateto,probability,reward",
    ):
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
        "from,to,cost\n\ufeffZürich,Genf,1\n".encode(),
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
        ("2 3\n\ufeff0 0 0.5\n0 1 0.5\n1 1 1\n", "2 1\n\ufeff0 1 3\n"),
        ("2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n", "2 2\n0 1 3\n0 1 3\n"),
        ("2 3\n0 0 0.5\n0 5 0.5\n1 1 1\n", "2 1\n0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 a\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n1 0 0 3\n"),
        ("2 2 3\n0 0 0.5:0 0.5:1 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 f\u00e4hrt\n0 0 1 0.5 f\u00e4hrt\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 a\u00a0\n0 0 1 0.5\u2003a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 a\u00a0b\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ('2 2 3\n0 0 0 0.5 "a\n0 0 1 0.5 "a\n1 0 1 1\n', "2 2 1\n0 0 1 3\n"),
        ("2 2 3\r\n0 0 0 0.5 a\r\n0 0 1 0.5 a\r\n1 0 1 1\r\n", "2 2 1\r\n0 0 1 3\r\n"),
        (
            "# x\n2 2 3\n0 0 0 0.5 a\n# 0 1 1\n0 0 1 0.5 a\n1 0 1 1\n",
            '# Reward structure "c"\n2 2 1\n0 0 1 3\n# end\n',
        ),
        ("2 2 3\n0 0x0 0 0.5 a\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 0x1 3\n"),
        ("2 2 3\n0 0 0 0.5  a\n0 0 1 0.5 a\n1 0 1 1 \n", "2 2 1\n0 0 1  3\n"),
        ("2 2 3\n0\t0 0 0.5 a\n0 0 1\t0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1\t3\n"),
        ("2 2 3\n 0 0 0 0.5 a\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n-0 0 0 0.5 a\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n0 0 0 1/2 a\n0 0 1 5e-1 a\n1 0 1 1\n", "2 2 1\n0 0 1 1/3\n"),
        ("2 2 3\n0 0 0 0.5 a\r0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 a\n0 0 3000000000 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 3\n"),
        ("2 2 3\n0 0 0 0.5 a # x\n0 0 1 0.5 a\n1 0 1 1\n", "2 2 1\n0 0 1 x\n"),
    ],
)
def test_explicit_files_are_read_alike(tra, trew, tmp_path):
    (tmp_path / "m.tra").write_text(tra, newline="", encoding="utf-8")
    (tmp_path / "m.trew").write_text(trew, newline="", encoding="utf-8")
    (tmp_path / "m.lab").write_text('0="init" 1="goal"\n0: 0\n1: 1\n')
    same(tmp_path / "m.tra")


def test_names_beyond_ascii(tmp_path):
    """The cities of a map, as they are spelled there; progress is told on the way."""
    cities = [f"Zürich {k}" if k % 3 else f"東京-{k} \u2028é" for k in range(2_000)]
    rows = [
        (city, "gehen" if k % 2 else "фразу", cities[k + 1], 1, 1 + k % 7)
        for k, city in enumerate(cities[:-1])
    ]
    model = tp.SSP.from_outcomes(rows, start=cities[0], goals=[cities[-1]])
    path, told = tmp_path / "m.csv", []
    tp.write(model, path)
    again = tp.read(path, progress=lambda steps, share: told.append(share))
    # A table has no place for notes, nor for the unit where decimals say it.
    assert differences(model, again, notes=False) == ["exact_unit"] and told
    assert differences(again, same(path)) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_all_digits_of_all_numbers_come_back(suffix, tmp_path):
    model, path = many_numbers(4_000), tmp_path / f"m.{suffix}"
    tp.write(model, path)
    assert differences(model, tp.read(path), notes=suffix != "csv") == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_memory_is_at_most_four_times_the_file(suffix, tmp_path):
    path = tmp_path / f"m.{suffix}"
    tp.write(tp.domains.gridworld("\n".join(["." * 80] * 59 + ["G" + "." * 78 + "S"])), path)
    tp.read(path)  # so that imports are not counted
    tracemalloc.start()
    try:
        tp.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * sum(file.stat().st_size for file in tmp_path.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_progress_is_told(suffix, tmp_path):
    model, path = many_numbers(30_000), tmp_path / f"m.{suffix}"
    told = []
    tp.write(model, path)
    tp.read(path, progress=lambda steps, share: told.append((steps, share)))
    assert told and all(0 < share <= 1 for _, share in told)


def test_a_write_that_is_interrupted_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupt(lines):
        yield from in_pieces(lines)
        raise KeyboardInterrupt

    monkeypatch.setattr(drn, "in_blocks", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tp.write(by_choice(), tmp_path / "m.drn")
    assert list(tmp_path.iterdir()) == []
