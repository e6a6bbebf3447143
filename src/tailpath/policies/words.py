"""Decisions and memories as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailpath.policies.atom_policy import AtomPolicy
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import HistoryPolicy, MarkovPolicy
from tailpath.policies.mixed import MixedPolicy
from tailpath.texts import name as name_in_words


def decision_in_words(decision: Any) -> str:
    """An action, or a mixture: `go 0.25, jump 0.75`."""
    if isinstance(decision, Mapping):
        return ", ".join(
            f"{name_in_words(action)} {weight:.4g}" for action, weight in decision.items()
        )
    return name_in_words(decision)


def memory_in_words(policy: Any, memory: Any, state: int) -> str:
    """What a policy remembers in a state: nothing, the budget left, the atom, or what it is."""
    if isinstance(policy, MarkovPolicy) or memory is None:
        return ""
    if isinstance(policy, BudgetPolicy):
        return budgets_in_words(policy, state, memory, memory)
    if isinstance(policy, AtomPolicy):
        return f"y = {policy.atoms[memory]:.4g}"
    if isinstance(policy, HistoryPolicy):
        return "after " + ", ".join(map(name_in_words, memory[:-1])) if len(memory) > 1 else ""
    if isinstance(policy, MixedPolicy):
        # Each of the policies that the coin may have chosen, and what it remembers.
        remembered = [
            (f"policy {number + 1}", memory_in_words(policy.members[number], own, state))
            for number, _, own in memory
        ]
        return "; or ".join(", ".join(filter(None, each)) for each in remembered)
    return name_in_words(memory)


def budgets_in_words(policy: BudgetPolicy, state: int, low: int, high: int) -> str:
    """Budgets left in a state, given in units: `spent`, `12 left`, `8 to 12 left`; of a deadline
    what may be spent and still keeps it.
    """
    if high <= 0:
        return "budget spent"
    least, most = (
        f"{float(policy.left(state, max(units, policy.deadline))):g}" for units in (low, high)
    )
    return f"{most} left" if low == high else f"{least} to {most} left"
