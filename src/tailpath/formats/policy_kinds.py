"""Each kind of policy as a header and arrays, and back, with every number checked against the model
before a kernel may use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tailpath.errors import FormatError, ModelError, OptionError, PolicyError, kind_of
from tailpath.formats.files import shorten
from tailpath.formats.headers import (
    ANYTHING,
    LIST,
    NUMBERS,
    OBJECT,
    TRUTH,
    UNIT,
    WHOLE,
    MemberKind,
    checked,
    decode_name,
    positive_fraction,
)
from tailpath.formats.writing import encode_name, encode_names, encode_unit
from tailpath.graph import Array
from tailpath.model.ssp import SSP, Name
from tailpath.policies.atoms import AtomPolicy, Grids
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import MarkovPolicy, MemoryPolicy, MixedPolicy
from tailpath.policies.policy import Decision, Policy

#: The arrays of the kinds that have some, each with its type and its axes.
_ATOMS = {
    "atoms": (np.float64, 1),
    "choice": (np.int32, 2),
    "xi_offset": (np.int64, 2),
    "xi": (np.float64, 1),
}
_GRIDS = {"own": (np.int8, 2), "of_state": (np.int32, 1)}
_STEPS = {
    "first": (np.int64, 1),
    "from_budget": (np.int64, 1),
    "choice": (np.int32, 1),
    "risk_neutral": (np.int32, 1),
    "level": (np.int64, 1),
}
#: Those of the model that the others number.
_CHOICES = {"state_choices": (np.int64, 1), "choice_action": (np.int32, 1)}
_OUTCOMES = {
    "choice_outcomes": (np.int64, 1),
    "outcome_target": (np.int32, 1),
    "outcome_cost": (np.float64, 1),
}
ARRAYS = {
    "atom": (*_ATOMS, *_CHOICES, *_OUTCOMES),
    "atom grids": (*_ATOMS, *_GRIDS, *_CHOICES, *_OUTCOMES),
    "budget steps": (*_STEPS, *_CHOICES),
}
#: What a header has, by kind, besides what all of them have.
_NAMED = {"states": ANYTHING, "actions": ANYTHING}
_DECISIONS = {"decisions": LIST.otherwise([]), "mixed": LIST.otherwise([])}
_BUDGET_UNIT = MemberKind(
    "a fraction 'p/q' or a positive number",
    lambda value: UNIT.fits(value) or (type(value) is float and value > 0),
)
_PLAIN_POLICIES = MemberKind(
    "a list of policies that are not mixtures",
    lambda value: (
        isinstance(value, list)
        and all(isinstance(each, dict) and each.get("kind") != "mixed" for each in value)
    ),
)
MEMBERS: dict[str, dict[str, MemberKind]] = {
    "markov": _DECISIONS,
    "atom": {"start_atom": WHOLE, **_NAMED},
    "atom grids": {"start_atom": WHOLE, **_NAMED},
    "budget steps": {
        "budget": WHOLE,
        "unit": _BUDGET_UNIT.otherwise(),
        "deadline": TRUTH.otherwise(False),
        **_NAMED,
    },
    "memory": {"start": ANYTHING, **_DECISIONS, "remember": LIST.otherwise([])},
    "mixed": {"weights": NUMBERS, "members": _PLAIN_POLICIES},
}
_COMMON = {
    **dict.fromkeys(("format", "version", "kind"), ANYTHING.otherwise()),
    **dict.fromkeys(("model", "arrays"), OBJECT.otherwise()),
}


@dataclass(frozen=True)
class Stored:
    """A policy ready to be written. `ssp` is the model whose numbering its arrays follow."""

    kind: str
    header: dict[str, Any]
    arrays: dict[str, Array] = field(default_factory=dict)
    ssp: SSP | None = None


def pack(policy: Policy) -> Stored:
    """The parts of a policy; one made of functions is refused."""
    if isinstance(policy, MarkovPolicy):
        decisions = {(state,): decision for state, decision in policy.decisions.items()}
        return Stored("markov", _decision_rows(decisions))
    if isinstance(policy, AtomPolicy):
        return _pack_atoms(policy)
    if isinstance(policy, BudgetPolicy):
        return _pack_budget(policy)
    if isinstance(policy, MemoryPolicy) and not any(
        callable(part) for part in (policy.start_, policy.action_, policy.remember_)
    ):
        return _pack_memory(policy)
    if isinstance(policy, MixedPolicy):
        return _pack_mixture(policy)
    if not isinstance(policy, Policy):
        raise OptionError(
            f"{kind_of(policy)} is not a policy yet; tailpath.policy(ssp, ...) makes one"
        )
    raise OptionError(
        f"{kind_of(policy)} made of functions cannot be saved; only policies made of tables can"
    )


def _pack_atoms(policy: AtomPolicy) -> Stored:
    arrays = _fields(policy, _ATOMS) | _fields(policy.ssp, (*_CHOICES, *_OUTCOMES))
    header = {"start_atom": int(policy.start_atom), **_names(policy.ssp)}
    grids = policy.grids
    if grids is None:
        return Stored("atom", header, arrays, policy.ssp)
    arrays |= {"own": grids.own.astype(np.int8), "of_state": grids.of_state}
    return Stored("atom grids", header, arrays, policy.ssp)


def _pack_budget(policy: BudgetPolicy) -> Stored:
    header = {
        "budget": int(policy.budget),
        "unit": policy.unit if isinstance(policy.unit, float) else encode_unit(policy.unit),
        **_names(policy.ssp),
    }
    header |= {"deadline": True} if policy.deadline else {}
    arrays = _fields(policy, _STEPS) | _fields(policy.ssp, _CHOICES)
    return Stored("budget steps", header, arrays, policy.ssp)


def _pack_memory(policy: Any) -> Stored:
    rows = [
        [encode_name(part) for part in (*key, memory)] for key, memory in policy.remember_.items()
    ]
    decisions = _decision_rows(policy.action_)
    header = {"start": encode_name(policy.start_), **decisions, "remember": rows}
    return Stored("memory", header)


def _pack_mixture(policy: MixedPolicy) -> Stored:
    """Each member's header in a list, and its arrays under names that begin with its number."""
    parts = [pack(member) for member in policy.members]
    headers = [{"kind": part.kind, **part.header} for part in parts]
    arrays = {
        f"{i}_{name}": array for i, part in enumerate(parts) for name, array in part.arrays.items()
    }
    models = [part.ssp for part in parts if part.ssp is not None]
    return Stored(
        "mixed",
        {"weights": list(policy.weights), "members": headers},
        arrays,
        models[0] if models else None,
    )


def _decision_rows(table: Mapping[Any, Decision]) -> dict[str, list[list[Any]]]:
    """Sure decisions and mixed ones in two tables: a list could be a tuple of an action's name as
    well as a distribution.
    """
    rows: dict[str, list[list[Any]]] = {"decisions": [], "mixed": []}
    for key, decision in table.items():
        names = [encode_name(part) for part in key]
        if isinstance(decision, Mapping):
            rows["mixed"].extend(
                [*names, encode_name(action), float(share)] for action, share in decision.items()
            )
        else:
            rows["decisions"].append([*names, encode_name(decision)])
    return rows


def _fields(thing: Any, names: Iterable[str]) -> dict[str, Array]:
    return {name: getattr(thing, name) for name in names}


def _names(ssp: SSP) -> dict[str, Any]:
    """The names that the numbers of a table stand for."""
    return {"states": encode_names(ssp.states), "actions": encode_names(ssp.actions)}


# ---------------------------------------------------------------------- reading


ArrayOf = Callable[[str, Any, int], Array]


@dataclass(frozen=True)
class PolicyReader:
    """The policy that a header and its arrays describe: `array(name, dtype, axes)` gives one of
    them, and `path` is what messages begin with.
    """

    header: Mapping[str, Any]
    array: ArrayOf
    path: str

    @classmethod
    def of(cls, header: dict[str, Any], array: ArrayOf, path: str) -> PolicyReader:
        kind = header.get("kind")
        if not isinstance(kind, str) or kind not in MEMBERS:
            what = f"unknown kind of policy {shorten(repr(kind))}; known are {', '.join(MEMBERS)}"
            raise FormatError(f"{path}: {what}")
        return cls(checked(header, {**_COMMON, **MEMBERS[kind]}, f"{path}: "), array, path)

    def policy(self, ssp: SSP) -> Policy:
        kind = self.header["kind"]
        if kind == "markov":
            decisions = self._decisions(1)
            return MarkovPolicy({state: decision for (state,), decision in decisions.items()})
        if kind == "memory":
            return MemoryPolicy(
                decode_name(self.header["start"], f"{self.path}: start"),
                self._decisions(2),
                self._table("remember", 5, "memory"),
            )
        if kind == "mixed":
            policies = tuple(each.policy(ssp) for each in self._members())
            return MixedPolicy(policies, tuple(self.header["weights"]))
        try:
            return self._of_numbers(ssp)
        except PolicyError as error:
            raise self._error(str(error)) from None

    def array_names(self) -> set[str]:
        if self.header["kind"] == "mixed":
            members = enumerate(self._members())
            return {f"{i}_{name}" for i, member in members for name in member.array_names()}
        return set(ARRAYS.get(self.header["kind"], ()))

    def _error(self, message: str) -> FormatError:
        return FormatError(f"{self.path}: {message}")

    def _members(self) -> list[PolicyReader]:
        def of_member(i: int, name: str, dtype: Any, axes: int) -> Array:
            return self.array(f"{i}_{name}", dtype, axes)

        return [
            PolicyReader.of(member, partial(of_member, i), f"{self.path}: members[{i}]")
            for i, member in enumerate(self.header["members"])
        ]

    # ------------------------------------------------------------------ tables of numbers

    def _of_numbers(self, ssp: SSP) -> Policy:
        """A policy whose numbers are those of the model."""
        header = self.header
        if header["kind"] == "budget steps":
            unit = positive_fraction(header["unit"]) or header["unit"]
            more = {"unit": unit, "deadline": header["deadline"], **self._arrays(_STEPS)}
            return BudgetPolicy(ssp, header["budget"], **more)
        arrays = self._arrays(_ATOMS)
        if header["kind"] == "atom grids":
            own, of_state = self._arrays(_GRIDS).values()
            if not np.isin(own, (0, 1)).all():
                raise self._error("own must hold only 0 and 1")
            arrays["grids"] = Grids(own.astype(np.bool_), of_state)
        return AtomPolicy(ssp, start_atom=header["start_atom"], **arrays)

    def _arrays(self, kinds: Mapping[str, tuple[Any, int]]) -> dict[str, Any]:
        return {name: self.array(name, *kind) for name, kind in kinds.items()}

    # ------------------------------------------------------------------ tables of names

    def _decisions(self, width: int) -> dict[tuple[Name, ...], Decision]:
        """The sure and the mixed decisions, by the names that stand before each."""
        table = self._table("decisions", width, "decision")
        mixed: dict[tuple[Name, ...], dict[Name, float]] = {}
        for location, key, (named, share) in self._rows("mixed", width, 2):
            action = decode_name(named, location)
            if type(share) not in (int, float) or not 0 <= share <= 1:
                raise FormatError(f"{location}: {shorten(repr(share))} is not a probability")
            if key in table or action in mixed.get(key, ()):
                raise FormatError(f"{location}: a second decision for {key!r}")
            mixed.setdefault(key, {})[action] = float(share)
        for key, shares in mixed.items():
            total = math.fsum(shares.values())
            if abs(total - 1) > 1e-9:
                raise self._error(f"the probabilities for {key!r} sum to {total:.12g}, not 1")
        return {**table, **mixed}

    def _table(self, member: str, width: int, what: str) -> dict[tuple[Name, ...], Name]:
        """The last name of each row by the names before it."""
        table: dict[tuple[Name, ...], Name] = {}
        for location, key, (value,) in self._rows(member, width, 1):
            if key in table:
                raise FormatError(f"{location}: a second {what} for {key!r}")
            table[key] = decode_name(value, location)
        return table

    def _rows(
        self, member: str, width: int, more: int
    ) -> Iterator[tuple[str, tuple[Name, ...], list[Any]]]:
        """Where each row of a table stands, the `width` names it begins with, and what follows."""
        for number, row in enumerate(self.header[member]):
            location = f"{self.path}: {member}[{number}]"
            if not isinstance(row, list) or len(row) != width + more:
                raise FormatError(
                    f"{location} must be a list of {width + more}, not {shorten(repr(row))}"
                )
            yield location, tuple(decode_name(part, location) for part in row[:width]), row[width:]


# ---------------------------------------------------------------------- does it fit the model?


def check_fit(policy: Policy, ssp: SSP, path: str) -> None:
    """Every name must be the model's; tables of numbers check themselves."""
    decisions: Iterable[tuple[Name, Decision]] = ()
    if isinstance(policy, MarkovPolicy):
        decisions = policy.decisions.items()
    elif isinstance(policy, MemoryPolicy):
        decisions = ((state, decision) for (state, _), decision in policy.action_.items())
    for state, decision in decisions:
        _check_names(ssp, state, decision, path)
    if isinstance(policy, MixedPolicy):
        for i, member in enumerate(policy.members):
            check_fit(member, ssp, f"{path}: members[{i}]")


def _check_names(ssp: SSP, state: Name, decision: Decision, path: str) -> None:
    try:
        index = ssp.state_index(state)
    except ModelError:
        raise PolicyError(
            f"{path}: the policy has a decision for state {state!r}, which is not in the model"
        ) from None
    for action in decision if isinstance(decision, Mapping) else (decision,):
        if ssp.choice_index(index, action) < 0:
            raise PolicyError(
                f"{path}: the policy takes {action!r} in state {state!r}, where the model has no"
                " such action"
            )
