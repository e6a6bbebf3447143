"""Intervals from what was counted: Clopper and Pearson's, all of them at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from tailpath.errors import ModelError

Name = Hashable
Key = tuple[Name, Name, Name, Any]


@dataclass(frozen=True)
class Counted:
    """How often each outcome `(state, action, next_state, cost)` was seen, and how often each choice `(state, action)` was tried."""

    seen: dict[Key, int]
    tried: dict[tuple[Name, Name], int]

    def share(self, state: Name, action: Name, next_state: Name, cost: Any) -> float:
        """The frequency of an outcome; 0 where its choice was never tried."""
        tried = self.tried[state, action]
        return self.seen[state, action, next_state, cost] / tried if tried else 0.0

    def alone(self, key: Key) -> bool:
        """Whether an outcome is the only one of its choice."""
        return self._outcomes[key[:2]] == 1

    @property
    def _outcomes(self) -> dict[tuple[Name, Name], int]:
        if "_known" not in self.__dict__:
            known: dict[tuple[Name, Name], int] = {}
            for key in self.seen:
                known[key[:2]] = known.get(key[:2], 0) + 1
            self.__dict__["_known"] = known
        found: dict[tuple[Name, Name], int] = self.__dict__["_known"]
        return found

    def words(self) -> tuple[str, ...]:
        """What was never seen, and what was never tried."""
        open_ = [key for key in self.seen if not self.alone(key)]
        untried = list(dict.fromkeys(key[:2] for key in open_ if self.tried[key[:2]] == 0))
        unseen = [key for key in open_ if self.seen[key] == 0 and self.tried[key[:2]] > 0]
        words = []
        if unseen:
            state, action, target, _ = unseen[0]
            words.append(f"{len(unseen)} outcomes were never seen, the first is state {state!r}, action {action!r} -> {target!r}")
        if untried:
            state, action = untried[0]
            words.append(f"{len(untried)} choices were never tried and may do anything, the first is state {state!r}, action {action!r}")
        return tuple(words)


def counted_rows(rows: Iterable[Any], goals: set[Name]) -> Counted:
    """Count rows `(state, action, next_state, count, cost)`, or steps seen `(state, action, cost, next_state)`."""
    seen: dict[Key, int] = {}
    tried: dict[tuple[Name, Name], int] = {}
    for number, row in enumerate(rows):
        try:
            state, action, next_state, count, cost = row if len(row) == 5 else (row[0], row[1], row[3], 1, row[2])
            key = state, action, next_state, cost
            hash(key)
        except (TypeError, ValueError, IndexError):
            raise ModelError(f"row {number} is {row!r}; expected (state, action, next_state, count, cost)") from None
        if state in goals:
            continue
        try:
            whole = int(count)
        except (TypeError, ValueError, OverflowError):
            whole = -1
        if whole < 0 or whole != count:
            raise ModelError(
                f"state {state!r}, action {action!r} -> {next_state!r} has count {count!r}, which is no whole number from 0 on"
            )
        seen[key] = seen.get(key, 0) + whole
        tried[state, action] = tried.get((state, action), 0) + whole
    return Counted(seen, tried)


def interval_of_counts(counted: Counted, confidence: float) -> dict[Key, tuple[float, float]]:
    """The interval of every outcome, so that all hold at once with this probability; an outcome alone in its choice is sure."""
    from scipy.stats import beta

    together = [key for key in counted.seen if not counted.alone(key)]
    half = (1 - confidence) / max(len(together), 1) / 2
    found = {}
    for key, k in counted.seen.items():
        n = counted.tried[key[:2]]
        if counted.alone(key):
            found[key] = (1.0, 1.0)
        elif n == 0:
            found[key] = (0.0, 1.0)
        else:
            low = float(beta.ppf(half, k, n - k + 1)) if k else 0.0
            high = float(beta.isf(half, k + 1, n - k)) if k < n else 1.0
            found[key] = (low, high)
    return found
