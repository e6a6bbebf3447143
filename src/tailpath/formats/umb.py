"""UMB, the unified Markov binary format of PRISM, Storm and Modest: `.umb`, a tar file, plain or
packed with gzip or xz.

`index.json` describes the model; the arrays are members of their own, little-endian:

    state-to-choices.bin, choice-to-branches.bin    where those of each begin, uint64
    branch-to-target.bin, branch-to-probability.bin uint64; double, or an interval
    state-is-initial.bin, annotations/aps/<id>/states/values.bin    bitsets, the lowest bit first
    annotations/rewards/<id>/<states|choices|branches>/values.bin   double
    actions/choices/{values.bin, string-mapping.bin, strings.bin}   names of choices

A mapping that is absent is one to one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.archives import packed_tar, tar_members, unpacked
from tailpath.formats.files import load_json, read_bytes, shorten, write_bytes
from tailpath.formats.headers import OBJECT, SIZE, member_of
from tailpath.formats.labelled import LabelledMDP, Labels, Reward, Rewards, to_ssp
from tailpath.formats.outgoing import Outgoing, outgoing
from tailpath.formats.registry import Reading
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, BoolArray, FloatArray, IntArray
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.version import __version__

_ENTITIES = ("states", "choices", "branches")
LowAndHigh = tuple[FloatArray | None, FloatArray]


def read(path: str, reading: Reading) -> Any:
    return to_ssp(UmbReader(path, read_bytes(path)).model(), reading)


def writable_action(word: str) -> bool:
    """Names are UTF-8, which half a surrogate pair is not."""
    return word.encode("utf-8", "ignore").decode() == word


class UmbReader:
    """The members of the archive, each compared with the sizes in the index before it is used."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.members = tar_members(path, unpacked(path, data))
        if "index.json" not in self.members:
            raise FormatError(f"{path}: member index.json is missing")
        try:
            text = bytes(self.members["index.json"]).decode("utf-8")
        except UnicodeDecodeError:
            raise self._error("index.json", "this is not UTF-8 text") from None
        self.location = f"{path}: member index.json: "
        found = {"the index": load_json(text, self.location[:-2])}
        self.index = member_of(found, "the index", OBJECT, self.location)
        self.system = member_of(self.index, "transition-system", OBJECT, self.location)
        self._check_kind()
        self.sizes = {entity: self._size(f"#{entity}") for entity in _ENTITIES}

    def model(self) -> LabelledMDP:
        n_states, n_choices, n_branches = (self.sizes[entity] for entity in _ENTITIES)
        # From the branches up: where a mapping is absent, its size is that of one that has been
        # compared with the bytes of a member.
        target = self._array("branch-to-target.bin", "<u8", n_branches)
        choice_branches = self._offsets("choice-to-branches.bin", n_choices, n_branches)
        state_choices = self._offsets("state-to-choices.bin", n_states, n_choices)
        if target.size and target.max() >= n_states:
            raise self._error(
                "branch-to-target.bin", f"has the state {target.max()}, outside 0..{n_states - 1}"
            )
        choice_action, actions = self._actions(n_choices)
        low, probability = self._probability(choice_branches)
        return LabelledMDP(
            path=self.path,
            state_choices=state_choices,
            choice_branches=choice_branches,
            target=target.astype(np.int64),
            probability=probability,
            low=low,
            choice_action=choice_action,
            actions=actions,
            labels=self._labels(),
            rewards=self._rewards(),
            initial=self._bits("state-is-initial.bin", n_states),
            can_write_action=writable_action,
            extras=self._extras(),
        )

    # ------------------------------------------------------------------ index

    def _error(self, member: str, message: str) -> FormatError:
        return FormatError(f"{self.path}: member {shorten(member)}: {message}")

    def _size(self, key: str) -> int:
        return int(member_of(self.system, key, SIZE, self.location))

    def _check_kind(self) -> None:
        version, time = self.index.get("format-version"), self.system.get("time")
        observed = self.system.get("#observations", 0) != 0
        for wrong, message in (
            (
                type(version) is not int or version not in (0, 1),
                f"format-version {shorten(repr(version))} is not known; versions 0 and 1 are read",
            ),
            (
                time != "discrete",
                f"time is {shorten(repr(time))}; only models in discrete time are read",
            ),
            (self._size("#players") > 1, "games of several players are not supported"),
            (observed, "POMDPs (partially observable models) are not supported"),
        ):
            if wrong:
                raise self._error("index.json", message)

    def _extras(self) -> Extras:
        comment = self.index.get("model-data", {})
        comment = comment.get("comment") if isinstance(comment, dict) else None
        if isinstance(comment, str) and comment.startswith(f"{MARK} "):
            return Extras.parse(
                comment[len(MARK) + 1 :], f"{self.path}: member index.json: comment"
            )
        return Extras()

    def _annotations(self, group: str) -> dict[str, tuple[str, dict[str, Any]]]:
        """Annotations of a group by the name that users know, with their identifier."""
        groups = member_of(self.index, "annotations", OBJECT.otherwise({}), self.location)
        found: dict[str, tuple[str, dict[str, Any]]] = {}
        every = member_of(groups, group, OBJECT.otherwise({}), f"{self.location}annotations.")
        for identifier in every:
            annotation = member_of(every, identifier, OBJECT, f"{self.location}{group}.")
            alias = annotation.get("alias", identifier)
            if not isinstance(alias, str) or alias in found:
                raise self._error(
                    "index.json",
                    f"annotations.{group}: the alias {shorten(repr(alias))} is used twice, or is"
                    " not a string",
                )
            found[alias] = (identifier, annotation)
        return found

    # ------------------------------------------------------------------ members

    def _array(self, member: str, dtype: str, count: int) -> Array:
        data = self.members.get(member)
        if data is None:
            if count == 0:
                return np.zeros(0, dtype=dtype)
            raise self._error(member, "is missing")
        size = np.dtype(dtype).itemsize * count
        if len(data) != size:
            raise self._error(member, f"has {len(data)} bytes, expected {size}")
        return np.frombuffer(data, dtype=dtype)

    def _offsets(self, member: str, count: int, end: int) -> IntArray:
        if member not in self.members:
            if count != end:
                raise self._error(
                    member, f"is missing, but {count} entries do not map one to one to {end}"
                )
            return np.arange(count + 1, dtype=np.int64)
        offsets = self._array(member, "<u8", count + 1)
        if offsets[0] != 0 or offsets[-1] != end or (offsets[1:] < offsets[:-1]).any():
            raise self._error(member, f"must rise from 0 to {end}")
        return offsets.astype(np.int64)

    def _bits(self, member: str, count: int) -> BoolArray:
        if member not in self.members:
            return np.zeros(count, dtype=np.bool_)
        data = self._array(member, "u1", -(-count // 64) * 8)
        bits = np.unpackbits(data, bitorder="little").astype(np.bool_)
        if bits[count:].any():
            raise self._error(member, f"has bits set beyond the {count} entries")
        return bits[:count]

    def _low_and_high(self, member: str, kind: Any, count: int) -> LowAndHigh:
        """Doubles, or the low and high ends of intervals; without these, None for the low ones."""
        kind = member_of({"a type": kind}, "a type", OBJECT, self.location)
        for ends, name in enumerate(("double", "double-interval"), start=1):
            if kind.get("type") == name and kind.get("size", 64 * ends) == 64 * ends:
                values = self._array(member, "<f8", ends * count).astype(np.float64)
                return (values[::2].copy() if ends == 2 else None), values[ends - 1 :: ends].copy()
        raise self._error(
            "index.json",
            f"the type {shorten(repr(kind))} of {shorten(member)} is neither double nor"
            " double-interval with 64 bits per number",
        )

    def _points(self, member: str, kind: Any, count: int) -> FloatArray:
        """Numbers, which a model of intervals may write as intervals of no width."""
        low, high = self._low_and_high(member, kind, count)
        if low is not None and (low != high).any():
            at = int(np.flatnonzero(low != high)[0])
            found = f"entry {at} is the interval [{low[at]:g}, {high[at]:g}]"
            raise self._error(member, f"{found}; probabilities may be intervals, rewards may not")
        return high

    def _probability(self, choice_branches: IntArray) -> LowAndHigh:
        kind = self.system.get("branch-probability-type")
        if kind is None:
            if (np.diff(choice_branches) > 1).any():
                raise self._error("index.json", "the model has no probabilities")
            return None, np.ones(int(choice_branches[-1]))
        return self._low_and_high("branch-to-probability.bin", kind, self.sizes["branches"])

    def _labels(self) -> Labels:
        return {
            alias: partial(
                self._bits, f"annotations/aps/{identifier}/states/values.bin", self.sizes["states"]
            )
            for alias, (identifier, _) in self._annotations("aps").items()
        }

    def _rewards(self) -> Rewards:
        found = self._annotations("rewards")
        return {alias: partial(self._reward, alias, *found[alias]) for alias in found}

    def _reward(self, alias: str, identifier: str, annotation: Mapping[str, Any]) -> Reward:
        applies = annotation.get("applies-to")
        known = isinstance(applies, list) and all(entity in _ENTITIES for entity in applies)
        if not known or not applies:
            raise self._error(
                "index.json",
                f"the reward {shorten(alias)!r} must apply to states, choices or branches",
            )
        arrays = {}
        for entity in applies:
            member = f"annotations/rewards/{identifier}/{entity}/values.bin"
            arrays[entity] = self._points(member, annotation.get("type"), self.sizes[entity])
        return Reward(*map(arrays.get, _ENTITIES))

    def _actions(self, n_choices: int) -> tuple[IntArray, list[str]]:
        """The action of each choice; choices whose action has no name, or an empty one, are
        unnamed.
        """
        n_actions = self._size("#choice-actions")
        folder = "actions/choices/"
        unnamed = np.full(n_choices, -1, dtype=np.int64)
        if n_actions == 0 or f"{folder}string-mapping.bin" not in self.members:
            return unnamed, []
        values = np.zeros(n_choices, dtype=np.int64)
        if f"{folder}values.bin" in self.members:
            values = self._array(f"{folder}values.bin", "<u4", n_choices).astype(np.int64)
        if values.size and values.max() >= n_actions:
            raise self._error(
                f"{folder}values.bin", f"has the action {values.max()}, outside 0..{n_actions - 1}"
            )
        strings = bytes(self.members.get(f"{folder}strings.bin", b""))
        offsets = self._offsets(f"{folder}string-mapping.bin", n_actions, len(strings)).tolist()
        try:
            names = [strings[begin:end].decode("utf-8") for begin, end in pairwise(offsets)]
        except UnicodeDecodeError:
            raise self._error(f"{folder}strings.bin", "this is not UTF-8 text") from None
        number = {
            name: index for index, name in enumerate(dict.fromkeys(name for name in names if name))
        }
        table = np.array([number.get(name, -1) for name in names], dtype=np.int64)
        return table[values], list(number)


# ---------------------------------------------------------------------- writing


def write(model: SSP | IntervalSSP, path: str, *, dtmc: bool = False) -> None:
    """Write a UMB file, packed with gzip. The goal is the proposition `goal`, the costs are the
    reward `cost`; goals have a loop.
    """
    found = outgoing(model, writable_action, branch_costs=not dtmc)
    entity, costs = "choices", found.choice_cost
    if (found.cost != np.repeat(costs, np.diff(found.choice_branches))).any():
        entity, costs = "branches", found.cost
    actions, position, action = np.unique(
        found.choice_action, return_index=True, return_inverse=True
    )
    order = np.argsort(position)  # as they first appear
    strings = [found.word(each).encode() for each in actions[order].tolist()]
    arrays: dict[str, tuple[Any, str]] = {
        "state-to-choices": (found.state_choices, "<u8"),
        "choice-to-branches": (found.choice_branches, "<u8"),
        "branch-to-target": (found.target, "<u8"),
        "branch-to-probability": (found.shares, "<f8"),
        "actions/choices/values": (np.argsort(order)[action], "<u4"),
        "actions/choices/string-mapping": (np.cumsum([0, *map(len, strings)]), "<u8"),
        f"annotations/rewards/cost/{entity}/values": (costs, "<f8"),
    }
    members = {
        "index.json": json.dumps(_index(found, len(strings), entity, dtmc), indent=1).encode(),
        **{f"{name}.bin": array.astype(kind).tobytes() for name, (array, kind) in arrays.items()},
        "state-is-initial.bin": _bitset(found, "init"),
        "actions/choices/strings.bin": b"".join(strings),
        "annotations/aps/goal/states/values.bin": _bitset(found, "goal"),
    }
    write_bytes(path, packed_tar(members, "gz"))


def _bitset(model: Outgoing, label: str) -> bytes:
    mask = np.zeros(-(-model.n_states // 64) * 64, dtype=np.bool_)
    mask[[state for state, labels in model.labels.items() if label in labels]] = True
    return np.packbits(mask, bitorder="little").tobytes()


def _index(model: Outgoing, n_actions: int, entity: str, dtmc: bool) -> dict[str, Any]:
    double = {"type": "double", "size": 64}
    ends = model.shares.shape[1]
    return {
        "format-version": 1,
        "format-revision": 0,
        "model-data": {"comment": model.line},
        "file-data": {"tool": "tailpath", "tool-version": __version__},
        "transition-system": {
            "time": "discrete",
            "#players": int(not dtmc),
            "#states": model.n_states,
            "#initial-states": 1,
            "#choices": model.n_choices,
            "#choice-actions": n_actions,
            "#branches": len(model.target),
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": {
                "type": "double-interval" if ends > 1 else "double",
                "size": 64 * ends,
            },
        },
        "annotations": {
            "aps": {
                "goal": {
                    "alias": "goal",
                    "applies-to": ["states"],
                    "type": {"type": "bool", "size": 1},
                }
            },
            "rewards": {"cost": {"alias": "cost", "applies-to": [entity], "type": double}},
        },
    }
