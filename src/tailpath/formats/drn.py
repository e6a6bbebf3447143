"""Storm's DRN, `.drn`, and packed as `.drn.gz` or `.drn.xz`: Storm packs a tar file with the text as its one member.

    header sections, each at most once, then @model, then
      state <id> [state rewards] labels
        action <name> [choice rewards]
          <target> : <probability>

State and choice rewards both count on leaving the state. `init` marks the start; the goal is a label of the user's choice. DRN has no rewards
on branches. Where the outcomes of a choice differ in cost we write one auxiliary state per (target, cost): the outcome enters it free, and
its only choice pays the cost and goes on to the target. Probabilities stay as they are, the total cost has the same distribution, and our
own reader folds the auxiliary states back.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError
from tailpath.formats.costs import CostRule
from tailpath.formats.extras import MARK, Extras, action_words, extras_line
from tailpath.formats.files import read_bytes, read_text, shorten, unpacked, write_bytes
from tailpath.formats.labelled import Labelled, Lazy, Reward, marked, to_ssp
from tailpath.formats.reading import Reading
from tailpath.formats.tar import is_tar, tar_members, write_tar
from tailpath.formats.text import BLOCK, Numbers, lines_of
from tailpath.model.ssp import SSP

UNNAMED = "__NOLABEL__"
_STATE = re.compile(r"state\s+(\S+)\s*(?:\[([^\]]*)\])?(.*)")
_ACTION = re.compile(r"action\s+(\S+)\s*(?:\[([^\]]*)\])?")
_LABEL = re.compile(r'\s+|"([^"]+)"(?=["\s]|$)|([^\s"]+)(?=\s|$)')
_SECTIONS = ("@parameters", "@reward_models", "@nr_states", "@nr_choices")


def read(path: str, reading: Reading) -> SSP:
    """Read a DRN file."""
    rule = CostRule.from_options(1, reading)
    data = unpacked(path, read_bytes(path))
    if is_tar(data):
        members = tar_members(path, data)
        if len(members) != 1:
            raise FormatError(f"{path}: a packed DRN file holds one file, not {len(members)}")
        data = bytes(*members.values())
    return to_ssp(_folded(_Parser(path, read_text(path, data)).model()), reading, rule)


def writable_action(word: str) -> bool:
    """Storm ends an action's name at the first blank, and takes a bracket for rewards."""
    return word != UNNAMED and not word.startswith("[") and word.isprintable() and not any(c.isspace() for c in word)


class _Parser:
    """One pass over the lines."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = enumerate(lines_of(text), start=1)
        self.numbers = Numbers(path)
        self.header: dict[str, tuple[str, int]] = {}
        self.placeholders: dict[str, float] = {}
        self.extras = Extras()
        self.state_choices: list[int] = []
        self.choice_branches: list[int] = []
        self.target: list[NDArray[np.int64]] = []
        self.probability: list[NDArray[np.float64]] = []
        self.choice_action: list[int] = []
        self.actions: dict[str, int] = {}
        self.labels: dict[str, list[int]] = {}
        self.state_rewards: list[tuple[float, ...]] = []
        self.choice_rewards: list[tuple[float, ...]] = []
        self.reward_lists: dict[str, tuple[float, ...]] = {}
        self.rows: list[str] = []
        self.row_lines: list[int] = []
        self.n_flushed = 0
        self.choice_open = False
        self.farthest = (-1, 0)

    def model(self) -> Labelled:
        self._read_header()
        self._read_body()
        n_states, n_choices = len(self.state_choices), len(self.choice_branches)
        self._compare("@nr_states", n_states)
        if "@nr_choices" in self.header:
            self._compare("@nr_choices", n_choices)
        target = np.concatenate(self.target)
        if self.farthest[0] >= n_states:
            raise self._fail(self.farthest[1], f"state {self.farthest[0]} lies outside 0..{n_states - 1}")
        labels = marked(self.labels, n_states)
        return Labelled(
            where=self.path,
            state_choices=np.array([*self.state_choices, n_choices], dtype=np.int64),
            choice_branches=np.array([*self.choice_branches, len(target)], dtype=np.int64),
            target=target,
            probability=np.concatenate(self.probability),
            choice_action=np.array(self.choice_action, dtype=np.int64),
            actions=list(self.actions),
            labels=labels,
            rewards=self._structures(),
            initial=labels["init"] if "init" in labels else np.zeros(n_states, dtype=np.bool_),
            can_write_action=writable_action,
            extras=self.extras,
        )

    def _structures(self) -> Lazy[Reward]:
        """The reward structures; those that the header does not name are called rew0, rew1 and so on, as Storm does."""
        text, line = self.header.get("@reward_models", ("", 0))
        names = text.split()
        if len(set(names)) < len(names):
            raise self._fail(line, f"a reward model is named twice in {shorten(text)!r}")
        width = max(map(len, self.reward_lists.values()), default=0)
        position = {name: at for at, name in enumerate(names + [f"rew{at}" for at in range(len(names), width)])}

        def column(rows: list[tuple[float, ...]], at: int) -> NDArray[np.float64]:
            return np.fromiter((row[at] if at < len(row) else 0.0 for row in rows), np.float64, len(rows))

        return Lazy(position, lambda name: Reward(column(self.state_rewards, position[name]), column(self.choice_rewards, position[name])))

    def _fail(self, line: int, message: str) -> FormatError:
        return FormatError(f"{self.path}:{line}: {message}")

    def _compare(self, section: str, found: int) -> None:
        text, line = self.header[section]
        if self.numbers.whole(text, line) != found:
            raise self._fail(line, f"{section} says {text.strip()}, the file has {found}")

    # ------------------------------------------------------------------ header

    def _read_header(self) -> None:
        """Read up to `@model`."""
        line = 0
        for line, raw in self.lines:
            text = raw.strip()
            if text == "@placeholders":
                line, text = self._read_placeholders(line)
            if text.startswith(f"//{MARK} "):
                self.extras = Extras.parse(text[len(MARK) + 3 :], f"{self.path}:{line}")
            elif not text or text.startswith("//"):
                continue
            elif text == "@model":
                for section in ("@type", "@nr_states"):
                    if section not in self.header:
                        raise self._fail(line, f"the section {section} is missing")
                return
            elif text in _SECTIONS:
                self._section(text, next(self.lines, (0, ""))[1].strip(), line)
            elif text.startswith(("@type:", "@value_type:")):
                name, _, value = text.partition(":")
                self._section(name, value.strip(), line)
            else:
                raise self._fail(line, f"unknown header line {shorten(text)!r}")
        raise self._fail(line, "the section @model is missing")

    def _section(self, name: str, value: str, line: int) -> None:
        if name in self.header:
            raise self._fail(line, f"a second section {name}")
        self.header[name] = (value, line)
        if name == "@type" and value.upper() not in ("MDP", "DTMC"):
            raise self._fail(line, f"the type {shorten(value)!r} is neither MDP nor DTMC")
        if name == "@value_type" and value not in ("double", "rational"):
            raise self._fail(line, f"the value type {shorten(value)!r} is neither double nor rational")
        if name == "@parameters" and value:
            raise self._fail(line, "a model with parameters has no numbers yet: instantiate it first")

    def _read_placeholders(self, line: int) -> tuple[int, str]:
        """Read `$name : value` up to the next section, whose line is returned."""
        for line, raw in self.lines:
            text = raw.strip()
            if text.startswith("@"):
                return line, text
            name, colon, value = text.partition(":")
            if not colon or not name.startswith("$"):
                raise self._fail(line, "expected a placeholder '$name : value'")
            self.placeholders[name.strip()] = self.numbers.number(value, line)
        return line, ""

    # ------------------------------------------------------------------ body

    def _read_body(self) -> None:
        rows, at = self.rows, self.row_lines
        for line, raw in self.lines:
            text = raw.strip()
            if text[:1].isdigit():
                if not self.choice_open:
                    self._new_choice(None, (), line)
                rows.append(text)
                at.append(line)
            elif text.startswith("state"):
                if len(rows) >= BLOCK:
                    self._flush()
                self._read_state(text, line)
            elif text.startswith("action"):
                self._read_action(text, line)
            elif text and not text.startswith("//"):
                raise self._fail(line, f"expected a state, an action or a transition, not {shorten(text)!r}")
        self._flush()

    def _flush(self) -> None:
        """Turn the transitions held as text into numbers."""
        parts = [text.partition(":") for text in self.rows]
        for (_, colon, _), line in zip(parts, self.row_lines):
            if not colon:
                raise self._fail(line, "expected 'target : probability'")
        target = self.numbers.wholes([part[0].rstrip() for part in parts], self.row_lines)
        values = [part[2].strip() for part in parts]
        if self.placeholders:
            probability = np.array([self._value(value, line) for value, line in zip(values, self.row_lines)])
        else:
            probability = self.numbers.numbers(values, self.row_lines)
        if target.size and target.max() > self.farthest[0]:
            self.farthest = (int(target.max()), self.row_lines[int(target.argmax())])
        self.target.append(target)
        self.probability.append(probability)
        self.n_flushed += len(self.rows)
        self.rows.clear()
        self.row_lines.clear()

    def _read_state(self, text: str, line: int) -> None:
        match = _STATE.fullmatch(text)
        if match is None:
            raise self._fail(line, f"expected 'state <id> [rewards] labels', not {shorten(text)!r}")
        state = len(self.state_choices)
        if self.numbers.whole(match[1], line) != state:
            raise self._fail(line, f"expected state {state}, not {shorten(match[1])}: states are numbered without gaps")
        self.state_choices.append(len(self.choice_branches))
        self.state_rewards.append(self._rewards(match[2], line))
        self.choice_open = False
        rest, position = match[3], 0
        if rest.startswith("["):
            raise self._fail(line, "the rewards have no end")
        while position < len(rest):
            label = _LABEL.match(rest, position)
            if label is None:
                raise self._fail(line, f"cannot read the labels {shorten(rest.strip())!r}")
            position = label.end()
            if label[1] or label[2]:
                self.labels.setdefault(label[1] or label[2], []).append(state)

    def _read_action(self, text: str, line: int) -> None:
        match = _ACTION.fullmatch(text)
        if match is None:
            raise self._fail(line, f"expected 'action <name> [rewards]', not {shorten(text)!r}")
        self._new_choice(match[1], self._rewards(match[2], line), line)

    def _new_choice(self, name: str | None, rewards: tuple[float, ...], line: int) -> None:
        if not self.state_choices:
            raise self._fail(line, "an action or a transition before the first state")
        position = len(self.choice_branches) - self.state_choices[-1]
        if position and self.header["@type"][0].upper() == "DTMC":
            raise self._fail(line, "a state of a DTMC has one action")
        self.choice_branches.append(self.n_flushed + len(self.rows))
        self.choice_rewards.append(rewards)
        self.choice_open = True
        # Storm writes the position where a choice has no name.
        unnamed = name is None or name == UNNAMED or (name == str(position) and self.extras.actions is None)
        self.choice_action.append(-1 if unnamed or name is None else self.actions.setdefault(name, len(self.actions)))

    def _rewards(self, text: str | None, line: int) -> tuple[float, ...]:
        if text is None:
            return ()
        if text not in self.reward_lists:
            self.reward_lists[text] = tuple(self._value(part, line) for part in text.split(","))
        return self.reward_lists[text]

    def _value(self, text: str, line: int) -> float:
        if "$" in text:
            if text.strip() not in self.placeholders:
                raise self._fail(line, f"unknown placeholder {shorten(text.strip())!r}")
            return self.placeholders[text.strip()]
        return self.numbers.number(text, line)


# ---------------------------------------------------------------------- auxiliary states


def _folded(model: Labelled) -> Labelled:
    """Undo the auxiliary states of our own writer, which are the last states of the file."""
    count = model.extras.auxiliary
    if count == 0:
        return model
    n_states = model.n_states - count
    message = f"{model.where}: the {MARK} line speaks of {count} auxiliary states, which the file does not have as we write them"
    if n_states < 1 or len(model.rewards) != 1:
        raise FormatError(message)
    name, reward = next(iter(model.rewards.items()))
    if reward.choice is None:
        raise FormatError(message)
    n_choices = int(model.state_choices[n_states])
    n_branches = int(model.choice_branches[n_choices])
    onward, paid_at_once, paid = model.target[n_branches:], reward.choice[:n_choices], reward.choice[n_choices:]
    if not (len(paid) == len(onward) == count and (np.diff(model.state_choices[n_states:]) == 1).all() and (onward < n_states).all()):
        raise FormatError(message)
    target = model.target[:n_branches]
    through = target >= n_states
    branch = np.zeros(n_branches)
    branch[through] = paid[target[through] - n_states]
    return replace(
        model,
        state_choices=model.state_choices[: n_states + 1],
        choice_branches=model.choice_branches[: n_choices + 1],
        target=np.where(through, onward[np.where(through, target - n_states, 0)], target),
        probability=model.probability[:n_branches],
        choice_action=model.choice_action[:n_choices],
        labels=Lazy(model.labels, lambda label: model.labels[label][:n_states]),
        rewards=Lazy([name], lambda _: Reward(choice=paid_at_once, branch=branch)),
        initial=model.initial[:n_states],
    )


# ---------------------------------------------------------------------- writing


def write(ssp: SSP, path: str) -> None:
    """Write a DRN file, packed if its name ends with `.gz` or `.xz`. Labels are `init` and `goal`, the reward structure is `cost`."""
    data = ("\n".join(_lines(ssp)) + "\n").encode("utf-8", "backslashreplace")
    if path.lower().endswith(".gz"):
        data = gzip.compress(write_tar({"model.drn": data}), compresslevel=6, mtime=0)
    elif path.lower().endswith(".xz"):
        import lzma

        data = lzma.compress(write_tar({"model.drn": data}))
    write_bytes(path, data)


def _lines(ssp: SSP) -> Iterator[str]:
    target, choice_cost, extra = _without_branch_costs(ssp)
    words = action_words(ssp, writable_action)
    yield "// Written by tailpath"
    yield f"//{extras_line(ssp, len(extra))}"
    yield "@type: MDP\n@value_type: double\n@parameters\n\n@reward_models\ncost\n@nr_states"
    n_goals = int(np.count_nonzero(ssp.is_goal))
    yield f"{ssp.n_states + len(extra)}\n@nr_choices\n{ssp.n_choices + n_goals + len(extra)}\n@model"
    probability = ssp.outcome_probability.tolist()
    choices, outcomes = ssp.state_choices.tolist(), ssp.choice_outcomes.tolist()
    is_goal = ssp.is_goal.tolist()
    for state in range(ssp.n_states):
        labels = (" init" if state == ssp.start_index else "") + (" goal" if is_goal[state] else "")
        yield f"state {state} [0]{labels}"
        if is_goal[state]:
            yield f"\taction {UNNAMED} [0]\n\t\t{state} : 1"
        for choice in range(choices[state], choices[state + 1]):
            yield f"\taction {words[choice]} [{choice_cost[choice]!r}]"
            for outcome in range(outcomes[choice], outcomes[choice + 1]):
                yield f"\t\t{target[outcome]} : {probability[outcome]!r}"
    for number, (onward, cost) in enumerate(extra):
        yield f"state {ssp.n_states + number} [0]\n\taction {UNNAMED} [{cost!r}]\n\t\t{onward} : 1"


def _without_branch_costs(ssp: SSP) -> tuple[list[int], list[float], list[tuple[int, float]]]:
    """Targets, choice costs and auxiliary states (target, cost) that carry the same total costs."""
    first = ssp.choice_outcomes[:-1]
    low, high = np.minimum.reduceat(ssp.outcome_cost, first), np.maximum.reduceat(ssp.outcome_cost, first)
    mixed = low != high
    detour = np.flatnonzero(mixed[ssp.outcome_choice] & (ssp.outcome_cost != 0))
    extra: dict[tuple[int, float], int] = {}
    target = ssp.outcome_target.tolist()
    for outcome, pair in zip(detour.tolist(), zip(ssp.outcome_target[detour].tolist(), ssp.outcome_cost[detour].tolist())):
        target[outcome] = extra.setdefault(pair, ssp.n_states + len(extra))
    return target, np.where(mixed, 0.0, low).tolist(), list(extra)
