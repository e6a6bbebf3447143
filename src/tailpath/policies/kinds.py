"""Policies as pure memory machines.

A policy is three pure functions over *names*:

    start(state)                                          -> the memory before the first step
    action(state, memory)                                 -> an action name, or {action name:
                                                          probability}
    remember(memory, state, action, cost, next_state)     -> the memory after the step

Memory is any hashable value. There is no hidden state, so a policy may be shared between threads
and processes, and any object with these three methods is a policy. The kinds below differ in what
they remember:

- `MarkovPolicy`: nothing; users, `solve_expected`
- `AtomPolicy`: the index of an atom y of the grid Y; `solve_cvar_quantile`,
  `solve_cvar_interpolation`
- `BudgetPolicy` (`budget.py`): the cost units still left of a budget; `solve_cvar_exact`,
  `solve_on_time`
- `MemoryPolicy`: whatever the user's controller remembers; users
- `HistoryPolicy`: the whole history (s0, a0, c0, s1, ...); users

`AtomPolicy` and `BudgetPolicy` hold their tables as arrays over the model's indices, for `unroll`
and the kernels to use directly.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import PolicyError
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress
from tailpath.policies.atoms import Grids, atom_borders, nearest_own
from tailpath.policies.checks import atom_tables, checked_choices
from tailpath.policies.running import Runs
from tailpath.texts import count

if TYPE_CHECKING:
    from tailpath.policies.table import Row

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
        """

    def action(self, state: Name, memory: Any) -> Any:
        """What to do.

        Parameters
        ----------
        state : hashable
            The name of the state.
        memory : hashable
            What the policy remembers.

        Returns
        -------
        hashable or mapping
            The name of an action, or `{action: probability}`.
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
        """


def _drawing() -> Any:
    """The pictures of policies. Imported here, because a picture is made of a chain, and a chain of
    a policy.
    """
    from tailpath.policies import drawing

    return drawing


class Kind(Record, Runs):
    """What the kinds below have besides the three functions."""

    def table(
        self,
        ssp: SSP,
        alpha: float = 0.05,
        most: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> list[Row]:
        """What the policy does, as rows that pandas takes.

        Parameters
        ----------
        ssp : SSP
            The model.
        alpha : float in (0, 1]
            The mass of the worst tail of the cost to go.
        most : int, optional
            The most rows; by default all.
        progress : callable, optional
            `progress(levels, share)` is called now and then with the levels of cost that are done,
            and their share.

        Returns
        -------
        list of Row
            Named tuples, the likeliest first: `state`, `memory` in words, `action`, `probability`
            of ever being there, and `mean` and `cvar` of the cost from there.

        Examples
        --------
        >>> tp.solve_expected(ssp).policy.table(ssp)
        [Row(state='home', memory='', action='road', probability=1.0, mean=24.0, cvar=60.0)]
        """
        # Here, because a table is made of a chain, and a chain of a policy.
        from tailpath.policies.table import decision_table

        return decision_table(ssp, self, alpha, most, progress)  # type: ignore[arg-type]

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
        """
        if isinstance(budget, Sequence):
            return _drawing().draw_sheet(ssp, self, budget)
        return _drawing().draw_policy(ssp, self, budget, ax)

    def _repr_html_(self) -> str:
        card: str = _drawing().policy_card(self)
        return card


@dataclass(frozen=True, eq=False, repr=False)
class MarkovPolicy(Kind):
    """One decision per state.

    Parameters
    ----------
    decisions : mapping
        `{state: action}` or `{state: {action: probability}}`, by names. States never visited may be
        left out.
    made_for : tuple, optional
        The model behind `from_choices` and its choices, for speed. It neither keeps the model alive
        nor travels with the policy.

    Raises
    ------
    PolicyError
        If `decisions` is no mapping; `tailpath.policy` takes arrays and much else.

    Examples
    --------
    >>> tp.evaluate(ssp, tp.MarkovPolicy({"home": {"road": 0.5, "train": 0.5}}), 0.1).mean
    27.0
    """

    decisions: Mapping[Name, Decision]
    #: The model behind `from_choices` and its choices, for speed. It neither keeps the model alive
    #: nor travels with the policy.
    made_for: tuple[Callable[[], SSP | None], NDArray[Any]] | None = field(
        default=None, kw_only=True, compare=False
    )

    def __getstate__(self) -> dict[str, Any]:
        return {"decisions": self.decisions}

    def __post_init__(self) -> None:
        if not isinstance(self.decisions, Mapping):
            kind = type(self.decisions).__name__
            raise PolicyError(
                f"a MarkovPolicy is made of a mapping of states to actions, not of a {kind};"
                " tailpath.policy(ssp, ...) takes it"
            )
        object.__setattr__(self, "decisions", dict(self.decisions))

    def __repr__(self) -> str:
        return f"<MarkovPolicy {count(len(self.decisions), 'decision')}>"

    def choices_for(self, ssp: SSP) -> NDArray[Any] | None:
        """The choice indices behind the names, if the policy was made for this very model.

        Parameters
        ----------
        ssp : SSP
            The model.

        Returns
        -------
        array of int, shape (n_states,), or None
            The choice of each state, -1 where there is none.
        """
        made = None if self.made_for is None else self.made_for[0]()
        if made is None or self.made_for is None:
            return None
        # The reduced model of one with negative costs has the same choices.
        reduction = vars(made).get("reduction")
        return (
            self.made_for[1]
            if made is ssp or (reduction is not None and reduction.ssp is ssp)
            else None
        )

    def start(self, state: Name) -> None:
        """Nothing is remembered.

        Parameters
        ----------
        state
            As of `Policy.start`.

        Returns
        -------
        None
            Always.
        """

    def action(self, state: Name, memory: None = None) -> Decision:
        """The decision of a state.

        Parameters
        ----------
        state : hashable
            The name of the state.
        memory : None, optional
            Not looked at.

        Returns
        -------
        hashable or mapping
            The name of an action, or `{action: probability}`.

        Raises
        ------
        PolicyError
            If there is none.
        """
        if state not in self.decisions:
            raise PolicyError(f"the policy has no action for state {state!r}")
        return self.decisions[state]

    def remember(
        self, memory: None, state: Name, action: Name, cost: float, next_state: Name
    ) -> None:
        """Nothing is remembered.

        Parameters
        ----------
        memory, state, action, cost, next_state
            As of `Policy.remember`.

        Returns
        -------
        None
            Always.
        """

    @classmethod
    def from_choices(cls, ssp: SSP, choices: NDArray[Any]) -> MarkovPolicy:
        """Make a policy from one choice index per state.

        Parameters
        ----------
        ssp : SSP
            The model.
        choices : array of int, shape (n_states,)
            The choice of each state; -1 where the state is a goal or has no decision.

        Returns
        -------
        MarkovPolicy
            The policy.

        Raises
        ------
        PolicyError
            If a choice is not one of its state.

        Examples
        --------
        >>> tp.MarkovPolicy.from_choices(ssp, [1, -1]).decisions
        {'home': 'train'}
        """
        choices = checked_choices(choices, ssp)
        decisions = {
            ssp.states[s]: ssp.choice_name(k) for s, k in enumerate(choices.tolist()) if k >= 0
        }
        return cls(decisions, made_for=(weakref.ref(ssp), choices))


@dataclass(frozen=True, eq=False, repr=False)
class AtomPolicy(Kind):
    """The policy of CVaRVILI and CVaRVIQ: decisions over (state, atom), and what moves the atom.

    After outcome o of the chosen choice, y becomes the atom nearest in log distance to `y * xi`
    (the process y_t = y_{t-1} xi of the paper). Made by `solve_cvar_quantile` and
    `solve_cvar_interpolation`.

    Parameters
    ----------
    ssp : SSP
        The model whose numbers of states, choices and outcomes the arrays use.
    atoms : array of float64, shape (n_atoms,)
        Tail masses y in (0, 1], rising to 1.
    choice : array of int32, shape (n_states, n_atoms)
        The choice at each state and atom; -1 at goals and dead ends.
    xi_offset : array of int64, shape (n_states, n_atoms)
        Where in `xi` the factors of the outcomes of that choice stand, in the model's order.
    xi : array of float64
        The risk factors.
    start_atom : int
        The index of the atom at the start.
    grids : Grids, optional
        Which atoms belong to which state, where every state has its own: y becomes the nearest of
        those of the next state, and at others there is no choice.

    Raises
    ------
    PolicyError
        If the tables do not fit the model.

    Examples
    --------
    >>> tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1]).policy(0.1)
    <AtomPolicy 2 states, 3 atoms, start at y = 0.1>
    """

    ssp: SSP
    atoms: NDArray[np.float64]
    choice: NDArray[np.int32]
    xi_offset: NDArray[np.int64]
    xi: NDArray[np.float64]
    start_atom: int
    grids: Grids | None = None

    def __post_init__(self) -> None:
        self._become(
            atom_tables(
                self.ssp,
                self.atoms,
                self.choice,
                self.xi_offset,
                self.xi,
                self.start_atom,
                self.grids,
            )
        )

    def __repr__(self) -> str:
        return (
            f"<AtomPolicy {self.choice.shape[0]} states, {len(self.atoms)} atoms, start at y ="
            f" {self.atoms[self.start_atom]:g}>"
        )

    @cached_property
    def borders(self) -> NDArray[np.float64]:
        """Up to where each atom, but the last, is the nearest: an array, shape (n_atoms - 1,)."""
        return atom_borders(self.atoms)

    def start(self, state: Name) -> int:
        """The index of the first atom.

        Parameters
        ----------
        state
            As of `Policy.start`.

        Returns
        -------
        int
            The index of an atom.
        """
        return (
            self._nearest(state, self.atoms[self.start_atom])
            if self.grids is not None
            else self.start_atom
        )

    def _nearest(self, state: Name, y: float) -> int:
        """The atom of a state that is nearest to y."""
        return int(nearest_own(self.atoms, self.grids, self.ssp.state_index(state), y))

    def action(self, state: Name, memory: int = AT_START) -> Name:
        """The action at a state and an atom.

        Parameters
        ----------
        state : hashable
            The name of the state.
        memory : int, optional
            The index of an atom; by default the first.

        Returns
        -------
        hashable
            The name of an action.

        Raises
        ------
        PolicyError
            If there is none.
        """
        memory = self.start(state) if memory is AT_START else memory
        choice = int(self.choice[self.ssp.state_index(state), memory])
        if choice < 0:
            raise PolicyError(
                f"the policy has no action for state {state!r} at y = {self.atoms[memory]:g}"
            )
        return self.ssp.choice_name(choice)

    def remember(
        self, memory: int, state: Name, action: Name, cost: float, next_state: Name
    ) -> int:
        """The index of the atom after a step.

        Parameters
        ----------
        memory, state, action, cost, next_state
            As of `Policy.remember`; the memory is the index of an atom.

        Returns
        -------
        int
            The index of an atom.

        Raises
        ------
        PolicyError
            If the model has no such outcome, or the policy did not choose the action.
        """
        ssp = self.ssp
        source, target = ssp.state_index(state), ssp.state_index(next_state)
        choice = int(self.choice[source, memory])
        if choice < 0 or ssp.choice_name(choice) != action:
            raise PolicyError(
                f"the policy did not choose {action!r} in state {state!r} at y ="
                f" {self.atoms[memory]:g}"
            )
        for outcome in range(
            int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1])
        ):
            if ssp.outcome_target[outcome] == target and ssp.observed[outcome] == cost:
                return self._moved(memory, source, outcome)
        raise PolicyError(
            f"state {state!r}, action {action!r} has no outcome {next_state!r} at cost {cost!r}"
        )

    def _moved(self, memory: int, state: int, outcome: int) -> int:
        """The atom after an outcome of the choice at a state."""
        factor = self.xi[
            self.xi_offset[state, memory]
            + outcome
            - int(self.ssp.choice_outcomes[self.choice[state, memory]])
        ]
        return int(
            nearest_own(
                self.atoms,
                self.grids,
                self.ssp.outcome_target[outcome],
                self.atoms[memory] * factor,
            )
        )

    def remember_roughly(
        self, memory: int, state: Name, action: Name, cost: Fraction, next_state: Name
    ) -> int:
        """The atom after a step that the model did not foresee.

        Parameters
        ----------
        memory, state, action, cost, next_state
            As of `Policy.remember`; the memory is the index of an atom.

        Returns
        -------
        int
            As after the outcome of nearest cost that leads to the same state; of two as near, the
            dearer. The same atom where none does.
        """
        ssp = self.ssp
        source = ssp.state_index(state)
        choice = int(self.choice[source, memory])
        outcomes = range(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1]))
        near = [o for o in outcomes if ssp.states[int(ssp.outcome_target[o])] == next_state]
        if not near:
            return (
                self._nearest(next_state, self.atoms[memory]) if self.grids is not None else memory
            )
        nearest = min(
            near,
            key=lambda o: (
                abs(float(ssp.outcome_cost[o]) - float(cost)),
                -float(ssp.outcome_cost[o]),
            ),
        )
        return self._moved(memory, source, nearest)


@dataclass(frozen=True, eq=False, repr=False)
class MemoryPolicy(Kind):
    """Any finite-memory controller, from its three functions or tables.

    Only a policy made of tables can be saved.

    Parameters
    ----------
    start_ : callable or hashable
        A function of the state, or the first memory itself.
    action_ : callable or mapping
        A function of state and memory, or a mapping keyed by `(state, memory)`; of actions, or of
        `{action: probability}`.
    remember_ : callable or mapping
        A function of memory, state, action, cost and next state, or a mapping keyed by these five.

    Examples
    --------
    >>> tries = tp.read("textbook:geometric")
    >>> counting = tp.MemoryPolicy(0, lambda state, n: "try", lambda n, *step: min(n + 1, 2))
    >>> tp.evaluate(tries, counting, 0.1).mean
    4.0
    """

    start_: Any
    action_: Any
    remember_: Any

    def __repr__(self) -> str:
        if callable(self.action_):
            return f"<MemoryPolicy of {_function(self.action_)}>"
        return (
            f"<MemoryPolicy {count(len(self.action_), 'decision')}, start"
            f" {'by function' if callable(self.start_) else repr(self.start_)}>"
        )

    def start(self, state: Name) -> Any:
        """The first memory.

        Parameters
        ----------
        state
            As of `Policy.start`.

        Returns
        -------
        hashable
            The memory.
        """
        return self.start_(state) if callable(self.start_) else self.start_

    def action(self, state: Name, memory: Any = AT_START) -> Decision:
        """The decision at a state with a memory.

        Parameters
        ----------
        state, memory
            As of `Policy.action`; the memory is by default the first.

        Returns
        -------
        hashable or mapping
            The name of an action, or `{action: probability}`.

        Raises
        ------
        PolicyError
            If the table has none.
        """
        memory = self.start(state) if memory is AT_START else memory
        if callable(self.action_):
            called: Decision = self.action_(state, memory)
            return called
        if (state, memory) not in self.action_:
            raise PolicyError(
                f"the policy has no action for state {state!r} with memory {memory!r}"
            )
        found: Decision = self.action_[state, memory]
        return found

    def remember(
        self, memory: Any, state: Name, action: Name, cost: float, next_state: Name
    ) -> Any:
        """The memory after a step.

        Parameters
        ----------
        memory, state, action, cost, next_state
            As of `Policy.remember`.

        Returns
        -------
        hashable
            The new memory.

        Raises
        ------
        PolicyError
            If the table has none.
        """
        if callable(self.remember_):
            return self.remember_(memory, state, action, cost, next_state)
        key = (memory, state, action, cost, next_state)
        if key not in self.remember_:
            raise PolicyError(f"the policy does not say what to remember after {key!r}")
        return self.remember_[key]

    def remember_roughly(
        self, memory: Any, state: Name, action: Name, cost: Fraction, next_state: Name
    ) -> Any:
        """The memory after a step that the model did not foresee.

        Parameters
        ----------
        memory, state, action, cost, next_state
            As of `Policy.remember`.

        Returns
        -------
        hashable
            As after the step of nearest cost that is in the table; the same memory where there is
            none.
        """
        near = [
            key
            for key in self.remember_
            if (*key[:3], key[4]) == (memory, state, action, next_state)
        ]
        return (
            self.remember_[min(near, key=lambda key: (abs(key[3] - float(cost)), -key[3]))]
            if near
            else memory
        )


@dataclass(frozen=True, eq=False, repr=False)
class HistoryPolicy(Kind):
    """A policy of the whole history.

    Parameters
    ----------
    function : callable
        `function((s0, a0, c0, s1, a1, c1, ..., s))` gives the name of an action or
        `{action: probability}`.

    Examples
    --------
    >>> tp.evaluate(ssp, tp.HistoryPolicy(lambda history: "road"), 0.1).cvar(0.1)
    60.0
    """

    function: Callable[[tuple[Any, ...]], Decision]

    def __repr__(self) -> str:
        return f"<HistoryPolicy of {_function(self.function)}>"

    def start(self, state: Name) -> tuple[Any, ...]:
        """The history of the start alone.

        Parameters
        ----------
        state
            As of `Policy.start`.

        Returns
        -------
        tuple
            `(state,)`.
        """
        return (state,)

    def action(self, state: Name, memory: tuple[Any, ...] = AT_START) -> Decision:
        """What the function says to a history.

        Parameters
        ----------
        state, memory
            As of `Policy.action`; the memory is the history, by default one that begins here.

        Returns
        -------
        hashable or mapping
            The name of an action, or `{action: probability}`.
        """
        return self.function(self.start(state) if memory is AT_START else memory)

    def remember(
        self, memory: tuple[Any, ...], state: Name, action: Name, cost: float, next_state: Name
    ) -> tuple[Any, ...]:
        """The history with one step more.

        Parameters
        ----------
        memory, state, action, cost, next_state
            As of `Policy.remember`; the memory is the history.

        Returns
        -------
        tuple
            The history, `(s0, a0, c0, s1, ...)`.
        """
        return (*memory, action, cost, next_state)


def _function(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
