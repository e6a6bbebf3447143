"""UMB: costs per outcome without loss, and nothing believed that the bytes do not bear out."""

import gzip
import io
import json
import lzma
import tarfile

import numpy as np
import pytest
from hypothesis import given

import tailpath as tp
from tailpath.errors import FormatError
from tailpath.formats.archives import tar_members, write_tar
from tests.formats.models import awkward, differences, outcomes, samples
from tests.reference import to_ssp
from tests.strategies import any_models


@pytest.mark.parametrize("name", samples())
def test_a_model_survives_the_trip(name, tmp_path):
    model = samples()[name]
    tp.write(model, tmp_path / "m.umb")
    assert differences(model, tp.read(tmp_path / "m.umb")) == []


@given(model=any_models())
def test_any_model_survives_the_trip(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("trip") / "m.umb"
    ssp = to_ssp(model)
    tp.write(ssp, path)
    assert differences(ssp, tp.read(path)) == []


@pytest.fixture
def members(tmp_path):
    tp.write(awkward(), tmp_path / "m.umb")
    return {
        name: bytes(data)
        for name, data in tar_members(
            "", gzip.decompress((tmp_path / "m.umb").read_bytes())
        ).items()
    }


@pytest.fixture
def umb(tmp_path, members):
    """Write the archive with changed members and a changed index; `None` leaves a member out."""

    def write(changes=None, pack=gzip.compress, **index):
        content = {**members, **(changes or {})}
        document = json.loads(members["index.json"])
        for key, value in index.items():
            node = document
            *path, last = key.split("__")
            for part in path:
                node = node[part.replace("_", "-")]
            node[{"n_": "#"}.get(last[:2], "") + last.removeprefix("n_").replace("_", "-")] = value
        content["index.json"] = json.dumps(document).encode()
        (tmp_path / "m.umb").write_bytes(
            pack(write_tar({name: data for name, data in content.items() if data is not None}))
        )
        return tmp_path / "m.umb"

    return write


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_plain_and_packed(pack, umb):
    assert differences(awkward(), tp.read(umb(pack=pack))) == []


def test_without_our_comment_the_file_stands_for_itself(umb):
    ssp = tp.read(umb(model_data={}))
    assert ssp.states == range(awkward().n_states)
    assert ssp.outcome_cost.tolist() == awkward().outcome_cost.tolist()
    assert ssp.choice_name(0) == "a"


def test_one_to_one_mappings_may_be_absent(tmp_path):
    chain = tp.read("textbook:deterministic-chain")
    tp.write(chain, tmp_path / "m.umb")
    members = {
        name: bytes(data)
        for name, data in tar_members(
            "", gzip.decompress((tmp_path / "m.umb").read_bytes())
        ).items()
    }
    for name in ("state-to-choices.bin", "choice-to-branches.bin"):
        del members[name]
    (tmp_path / "m.umb").write_bytes(write_tar(members))
    assert differences(chain, tp.read(tmp_path / "m.umb")) == []
    # Nor are probabilities needed where every choice has one branch.
    document = json.loads(members["index.json"])
    del (
        document["transition-system"]["branch-probability-type"],
        members["branch-to-probability.bin"],
    )
    (tmp_path / "m.umb").write_bytes(
        write_tar({**members, "index.json": json.dumps(document).encode()})
    )
    assert differences(chain, tp.read(tmp_path / "m.umb")) == []


def test_rewards_of_states_choices_and_branches_add_up(umb, members):
    n_states, n_choices = awkward().n_states, len(members["choice-to-branches.bin"]) // 8 - 1
    folder = "annotations/rewards/cost"
    extra = {
        f"{folder}/states/values.bin": np.full(n_states, 0.1).tobytes(),
        f"{folder}/choices/values.bin": np.full(n_choices, 0.2).tobytes(),
    }
    kind = {"applies-to": ["states", "choices", "branches"], "type": {"type": "double"}}
    ssp = tp.read(umb(extra, annotations__rewards={"cost": kind}, model_data={}))
    wanted = [float(np.round(cost + 0.3, 10)) for cost in awkward().outcome_cost[1:]]
    assert ssp.outcome_cost[1:].tolist() == wanted


def test_the_choice_among_labels_and_rewards(umb):
    other = {"alias": "a long name", "applies-to": ["states"], "type": {"type": "bool"}}
    path = umb(annotations__aps={"x1": other})
    with pytest.raises(FormatError, match=r"no label 'goal'; .* among: a long name"):
        tp.read(path)
    with pytest.raises(FormatError, match="no state carries the goal label 'a long name'"):
        tp.read(path, goal="a long name")
    with pytest.raises(FormatError, match="no reward structure 'money'; choose with --cost NAME"):
        tp.read(umb(), cost="money")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"format_version": 7}, "format-version 7 is not known"),
        ({"transition_system": 3}, "transition-system must be an object"),
        ({"transition_system__time": "stochastic"}, "time is 'stochastic'"),
        ({"transition_system__n_players": 2}, "several players"),
        ({"transition_system__n_players": None}, "#players must be a whole number"),
        ({"transition_system__n_observations": 4}, "partially observable"),
        ({"transition_system__n_states": 10**15}, "#states must be a whole number below 2"),
        (
            {"transition_system__n_states": 2**30},
            r"state-to-choices\.bin: has \d+ bytes, expected 8589934600",
        ),
        (
            {"transition_system__n_choices": 2**30},
            r"choice-to-branches\.bin: has \d+ bytes, expected 8589934600",
        ),
        (
            {"transition_system__n_branches": 2**30},
            r"branch-to-target\.bin: has \d+ bytes, expected 8589934592",
        ),
        ({"transition_system__n_choice-actions": 2**30}, r"string-mapping\.bin: has \d+ bytes"),
        (
            {"transition_system__branch_probability_type": {"type": "string"}},
            "neither double nor double-interval",
        ),
        (
            {"transition_system__branch_probability_type": {"type": "double-interval"}},
            r"has \d+ bytes, expected \d+",
        ),
        ({"transition_system__branch_probability_type": None}, "the model has no probabilities"),
        ({"annotations": []}, "annotations must be an object"),
        (
            {"annotations__rewards": {"cost": {"type": {"type": "double"}}}},
            "must apply to states, choices or branches",
        ),
        (
            {"annotations__rewards": {"cost": {"applies-to": [["states"]]}}},
            "must apply to states, choices or branches",
        ),
        (
            {
                "annotations__rewards": {
                    "cost": {"applies-to": ["branches"], "type": {"type": "string"}}
                }
            },
            "neither double nor double-interval",
        ),
        (
            {
                "annotations__rewards": {
                    "lost": {"applies-to": ["branches"], "type": {"type": "double"}}
                }
            },
            "rewards/lost/.*is missing",
        ),
        (
            {"annotations__aps": {"a": {"alias": "x"}, "b": {"alias": "x"}}},
            "alias 'x' .* twice",
        ),
        ({"model_data": {"comment": "tailpath {"}}, "index.json: comment:1: Expecting"),
        ({"model_data": {"comment": 'tailpath {"states": 3}'}}, "states is 3, but the arrays have"),
    ],
)
def test_what_is_wrong_in_the_index(index, message, umb):
    path = umb(**index)
    with pytest.raises(FormatError, match=message) as caught:
        tp.read(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("member", "data", "message"),
    [
        ("branch-to-target.bin", None, "is missing"),
        ("branch-to-target.bin", b"123", "has 3 bytes, expected"),
        ("state-to-choices.bin", None, "is missing, but"),
        ("state-is-initial.bin", None, "no state is initial"),
        ("state-is-initial.bin", b"\xff" * 8, "has bits set beyond the"),
        ("annotations/aps/goal/states/values.bin", b"", "has 0 bytes, expected 8"),
        ("actions/choices/strings.bin", b"\xff\xfe", "must rise from 0 to 2"),
    ],
)
def test_what_is_wrong_in_a_member(member, data, message, umb):
    with pytest.raises(FormatError, match=message):
        tp.read(umb({member: data}))


def test_numbers_that_lie(umb, members):
    target = np.frombuffer(members["branch-to-target.bin"], dtype="<u8").copy()
    target[0] = 2**63
    with pytest.raises(
        FormatError, match=r"branch-to-target\.bin: has the state 9223372036854775808, outside"
    ):
        tp.read(umb({"branch-to-target.bin": target.tobytes()}))
    offsets = np.frombuffer(members["choice-to-branches.bin"], dtype="<u8").copy()
    offsets[1] = 2**62
    with pytest.raises(FormatError, match="must rise from 0 to"):
        tp.read(umb({"choice-to-branches.bin": offsets.tobytes()}))
    with pytest.raises(FormatError, match="has probability nan"):
        tp.read(umb({"branch-to-probability.bin": np.full(len(target), np.nan).tobytes()}))
    actions = np.full(len(offsets) - 1, 99, dtype="<u4")
    with pytest.raises(FormatError, match="has the action 99, outside"):
        tp.read(umb({"actions/choices/values.bin": actions.tobytes()}))


def tar_with(*entries):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for entry in entries:
            archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    return buffer.getvalue()


def entry(name, kind=tarfile.REGTYPE, size=0, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


def test_strange_archives(tmp_path):
    path = tmp_path / "m.umb"
    sparse = entry("index.json")
    sparse.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.map": "0,0",
        "GNU.sparse.size": str(2**40),
    }
    cases = {
        "empty": (b"", "not a tar archive"),
        "foreign": (write_tar({"other": b""}), "member index.json is missing"),
        "text": (b"index.json" * 200, "not a tar archive"),
        "link": (
            tar_with(entry("index.json", tarfile.SYMTYPE, link="/etc/passwd")),
            "is not a plain file",
        ),
        "device": (tar_with(entry("index.json", tarfile.CHRTYPE)), "is not a plain file"),
        "twice": (tar_with(entry("index.json"), entry("index.json")), "is given twice"),
        "sparse": (tar_with(sparse), "is not a plain file"),
        "cut": (
            tar_with(entry("index.json", size=5000))[:2000],
            "ends beyond the end of the file|not a tar archive",
        ),
        "bomb": (
            gzip.compress(tar_with(entry("index.json", size=100 * 2**20))),
            "unpacks to more than",
        ),
        "nested": (write_tar({"index.json": b"[" * 100_000}), "nested too deeply"),
    }
    for data, message in cases.values():
        path.write_bytes(data)
        with pytest.raises(FormatError, match=message):
            tp.read(path)


def test_folders_in_the_archive_do_no_harm(tmp_path, members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(entry("annotations", tarfile.DIRTYPE))
        for name, data in members.items():
            archive.addfile(entry(f"./{name}", size=len(data)), io.BytesIO(data))
    (tmp_path / "m.umb").write_bytes(buffer.getvalue())
    assert outcomes(tp.read(tmp_path / "m.umb")) == outcomes(awkward())
