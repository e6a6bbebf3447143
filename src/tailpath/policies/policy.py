"""Policies as pure memory machines: three pure functions over *names*. Memory is any hashable
value. There is no hidden state, so a policy may be shared between threads and processes, and any
object with these three methods is a policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from tailpath.kernels.jit import Array
from tailpath.kernels.unrolling import Memories
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress, takes_alpha
from tailpath.policies.running import Runner, known_state, outcomes_to

Decision = Name | Mapping[Name, float]


class _AtStart:
    def __repr__(self) -> str:
        return "at the start"


#: The memory with which a run begins, where no other is given; any value, None too, may be a
#: memory.
AT_START: Any = _AtStart()


@runtime_checkable
class Policy(Protocol):
    """Anything with these three pure functions of names: `start`, `action` and `remember`.

    There is no hidden state, so a policy may be shared between threads and processes.
    `MarkovPolicy`, `AtomPolicy`, `BudgetPolicy`, `MemoryPolicy`, `HistoryPolicy` and `MixedPolicy`
    are policies, and so is any object that has the three.

    Examples
    --------
    >>> class Patient:
    ...     def start(self, state): return 0
    ...     def action(self, state, memory): return "train"
    ...     def remember(self, memory, state, action, cost, next_state): return 0
    >>> tp.evaluate(ssp, Patient(), 0.1).mean
    30.0
    """

    def start(self, state: Name) -> Any:
        """The memory before the first step.

        Parameters
        ----------
        state : hashable
            The name of the state where the run begins.

        Returns
        -------
        hashable
            The memory.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).policy().start("home")
        3
        """

    def action(self, state: Name, memory: Any) -> Any:
        """What to do.

        Parameters
        ----------
        state : hashable
            The name of the state.
        memory : hashable
            What the policy remembers; for the kinds of the package by default its first memory.

        Returns
        -------
        hashable or mapping
            The name of an action, or `{action: probability}`.

        Raises
        ------
        PolicyError
            If the policy has no action there.

        Examples
        --------
        >>> tp.MarkovPolicy({"home": "road"}).action("home", None)
        'road'
        >>> tp.solve_cvar_exact(ssp, 0.1).policy().action("home", 3)
        'train'
        """

    def remember(
        self, memory: Any, state: Name, action: Name, cost: float, next_state: Name
    ) -> Any:
        """The memory after a step.

        Parameters
        ----------
        memory : hashable
            What the policy remembered before.
        state : hashable
            The name of the state.
        action : hashable
            The name of the action that was taken.
        cost : float
            What the step cost.
        next_state : hashable
            The name of the state it led to.

        Returns
        -------
        hashable
            The new memory.

        Raises
        ------
        PolicyError
            If the policy knows no such step.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).policy().remember(3, "home", "train", 30, "work")
        0
        """


def _display() -> Any:
    """Tables and pictures of policies, by name: they are built on all that policies are for."""
    return import_module("tailpath.show.display")


@takes_alpha
class Kind(Record, Policy):
    """What the package's own kinds have besides the three functions."""

    #: Whether the memory grows with every step, so that no chain has all of it.
    endless = False
    #: Pairs (probability, policy) that a coin at the start draws from.
    drawn: tuple[tuple[float, Policy], ...] = ()
    #: The policy itself, if it decides by the budget that is left.
    by_budget: Any = None

    def _choices_on(self, ssp: SSP) -> tuple[Array, int, Memories | None] | None:
        """One choice per state and memory, as kernels follow them, and the first memory, if the
        policy has that; choices have the shape (n_states, n_memories), -1 where there is none.
        """
        return None

    def action(self, state: Name, memory: Any = AT_START) -> Any:
        return self._decision(state, self.start(state) if memory is AT_START else memory)

    def _decision(self, state: Name, memory: Any) -> Decision:
        raise NotImplementedError

    def start_run(self, *, seed: int | None = None) -> Runner:
        """Begin a run in the world, where costs and states are observed.

        Parameters
        ----------
        seed : int, optional
            For policies that draw their actions.

        Returns
        -------
        Runner
            `runner.action(state)` says what to do, `runner.observe(cost, next_state)` takes note of
            what happened, and `runner.surprises` lists what the model did not foresee.

        Examples
        --------
        >>> runner = tp.solve_expected(ssp).policy.start_run()
        >>> runner.action("home")
        'road'
        >>> runner.observe(20, "work")
        >>> runner
        <Runner in 'work' after 1 step and a cost of 20, 0 surprises>
        """
        return Runner(self, seed)

    def remember_roughly(
        self, memory: Any, state: Name, action: Name, cost: Fraction, next_state: Name
    ) -> Any:
        """The memory after a step that the model did not foresee.

        Parameters
        ----------
        memory, state, action : hashable
            As of `Policy.remember`; no action where the run is suddenly in another state.
        cost : Fraction
            What the step cost.
        next_state : hashable
            The name of the state it led to.

        Returns
        -------
        hashable
            As after the foreseen step of nearest cost that leads to the same state, or else the
            same memory; a budget is charged exactly.
        """
        costs = [] if action is None else self._costs_to(memory, state, action, next_state)
        if not costs:
            return memory
        # Of two costs as near, the dearer.
        nearest = min(costs, key=lambda known: (abs(known - float(cost)), -known))
        return self.remember(memory, state, action, nearest, next_state)

    def _costs_to(
        self, memory: Any, state: Name, action: Name, next_state: Name
    ) -> Iterable[float]:
        """The costs of the foreseen steps to a state."""
        ssp: SSP | None = getattr(self, "ssp", None)
        target = None if ssp is None else known_state(ssp, next_state)
        if ssp is None or target is None:
            return ()
        return outcomes_to(ssp, ssp.choice_index(ssp.state_index(state), action), target)

    def _moved_to(self, ssp: SSP) -> Policy:
        return self

    def _is_for(self, ssp: SSP) -> bool:
        """Whether the policy decides by the names of this model, where that was made of another;
        one with tables does if these were made for it.
        """
        own: SSP | None = getattr(self, "ssp", None)
        return own is None or own.start == ssp.start

    def table(
        self,
        ssp: SSP,
        alpha: float = 0.05,
        most: int | None = None,
        *,
        state: Name | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """What the policy does, as a list of rows that is also a table, a file or a flow chart.

        Where the policy reaches too many pairs of state and memory to follow them all, the
        numbers are estimated from simulated runs, and a warning says so.

        Parameters
        ----------
        ssp : SSP
            The model.
        alpha : float in (0, 1]
            The mass of the worst tail of the cost to go.
        most : int, optional
            The most rows; by default all.
        state : hashable, optional
            Only the rows of this state.
        progress : callable, optional
            `progress(levels, share)` is called now and then with the levels of cost that are done,
            and their share.

        Returns
        -------
        Decisions
            A list of named tuples, the most visited first: `state`, `memory` in words, `action`,
            `visits`, how often a run is there on average, `mean` and `cvar` of the cost from
            there, and `next_states` with their probabilities. `to_pandas()`,
            `to_csv()`, `to_mermaid()` and `to_dot()` are other forms of it, `write(path)` a file.

        Examples
        --------
        >>> row = tp.solve_expected(ssp).policy.table(ssp)[0]
        >>> row.state, row.action, row.visits, row.mean, row.cvar, row.next_states
        ('home', 'road', 1.0, 24.0, 60.0, {'work': 1.0})
        """
        return _display().decision_table(ssp, self, alpha, most, progress, state)

    def plot(self, ssp: SSP, budget: float | Sequence[float] | None = None, ax: Any = None) -> Any:
        """Draw the decisions on the map of the model, or on a graph.

        Parameters
        ----------
        ssp : SSP
            The model.
        budget : float or sequence of float, optional
            The cost still allowed, for a policy that looks at it; without one, in each state the
            decision taken there most often. Several make a sheet.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, without a window.

        Returns
        -------
        matplotlib Axes, or a list of them
            A list for several budgets.

        Raises
        ------
        OptionError
            If the policy does not look at a budget, or the graph has too many states to be drawn.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).policy().plot(ssp, 30).get_title()
        '30 left'
        """
        if isinstance(budget, Sequence):
            return _display().draw_sheet(ssp, self, budget)
        return _display().draw_policy(ssp, self, budget, ax)

    def _repr_html_(self) -> str:
        card: str = _display().policy_card(self)
        return card


_UNKNOWN = Kind()  # type: ignore[abstract]


def known(policy: Any) -> Kind:
    """What a policy says of itself beside its three functions: nothing, unless it is of a kind."""
    return policy if isinstance(policy, Kind) else _UNKNOWN


def on_model(policy: Policy, ssp: SSP) -> Policy:
    """A policy on a model with other costs; a budget falls as before."""
    return policy._moved_to(ssp) if isinstance(policy, Kind) else policy
