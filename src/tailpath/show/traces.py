"""One run and the worst runs: what they hold, and how they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import OptionError
from tailpath.model.records import Series, Shown
from tailpath.model.ssp import SSP, Name
from tailpath.pictures.states import plot_run, plot_states
from tailpath.pictures.style import Axes
from tailpath.show.beyond import Blame
from tailpath.show.display import shown_states
from tailpath.texts import Content, Table, count, name, number

#: Of a run that is too long to be told: its first steps, and the states it is in most often.
BEGINNING, MET_MOST = 10, 5


class Step(NamedTuple):
    """One step of a run. `memory` is what the policy remembers before it, in words."""

    state: Name
    memory: str
    action: Name
    cost: float
    next_state: Name


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Shown, Series[Step]):
    """One run, as the sequence of its steps.

    Attributes
    ----------
    steps : tuple of Step
        Named tuples `state`, `memory` (before the step, in words), `action`, `cost`, `next_state`.
    cost : float
        The total cost; infinite if the run came to where the goal is out of reach.
    probability : float
        The probability of this very run.

    Examples
    --------
    >>> run = tp.trace(ssp, {"home": "train"}, seed=0)
    >>> run.cost, run.probability, [step.action for step in run]
    (30.0, 1.0, ['train'])
    """

    steps: tuple[Step, ...]
    cost: float
    probability: float

    def plot(self, ssp: SSP, ax: Axes | None = None) -> Axes:
        """Draw the run on the map of the model, or on a graph.

        Parameters
        ----------
        ssp : SSP
            The model.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, without a window.

        Returns
        -------
        matplotlib Axes
            A circle marks the start and a square the end; what is passed often is bold, and
            where the run dwells is a disk with how many times.
            `.figure.savefig("run.pdf")` saves it, and a notebook shows it.

        Examples
        --------
        >>> tp.trace(ssp, {"home": "train"}, seed=0).plot(ssp).get_title()
        'cost 30 in 1 step'
        """
        names = [ssp.start, *(step.next_state for step in self.steps)]
        visited = [ssp.state_index(name) for name in names]
        met = np.bincount(visited, minlength=ssp.n_states).astype(np.float64)
        states, _ = shown_states(ssp, met)
        return plot_run(
            ssp, visited, ax, f"cost {self.cost:g} in {count(len(self), 'step')}", states
        )

    @property
    def met(self) -> list[tuple[Name, int]]:
        """The states that the run is in, with how many times, the most often first."""
        return Counter(step.state for step in self.steps).most_common()

    @property
    def _summary(self) -> dict[str, Any]:
        """A long run by its length, its beginning and the states it is in most often."""
        return {
            "cost": self.cost,
            "length": len(self),
            "beginning": [step._asdict() for step in self[:BEGINNING]],
            "states": len(self.met),
            "met_most": [{"state": state, "times": times} for state, times in self.met[:MET_MOST]],
        }

    def _content(self, most: int) -> Content:
        cost = "never arrives" if self.cost == float("inf") else f"cost {number(self.cost)}"
        chance = number(self.probability) if self.probability else "less than 1e-300"
        title = f"probability {chance}, {cost}"
        shown = sum(len(same) for same in self._in_groups()[:most])
        more = [f"the first {shown} of {len(self)} steps"] if shown < len(self) else []
        return [self._table(title, most), *more]

    def _in_groups(self) -> list[list[Step]]:
        """The steps; those that do the same over and over are one row."""
        each = groupby(self.steps, lambda step: (step.state, step.action, step[3:]))
        return [list(same) for _, same in each]

    def _table(self, title: str, most: int) -> Table:
        """The first rows, and what was paid after each."""
        headers = ["state", "memory", "action", "cost", "next state", "times", "paid so far"]
        rows: list[list[Any]] = []
        paid = 0.0
        for same in self._in_groups()[:most]:
            state, memory, action, cost, after = same[0]
            paid += len(same) * cost
            times = len(same) if len(same) > 1 else ""
            rows.append([state, memory, action, cost, after, times, float(number(paid, 12))])
        return Table(headers, rows, title).in_use()

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {field: [getattr(step, field) for step in self] for field in Step._fields}

    def __repr__(self) -> str:
        return (
            f"<Trace {count(len(self), 'step')}, cost {self.cost:g}, probability"
            f" {self.probability:.4g}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class WorstRuns(Shown, Series[Trace]):
    """The most probable runs that cost more than VaR, as a sequence, the likeliest first.

    Attributes
    ----------
    runs : tuple of Trace
        The runs.
    alpha : float
        The mass of the worst tail.
    var, cvar : float
        VaR and CVaR of the policy.
    chance : float
        The probability of all runs that cost more than VaR.
    excess : float
        E[(Z - VaR)+]; infinite where the goal may be missed.
    blame : tuple of Blame
        The excess split by outcome: named tuples `state`, `action`, `next_state`, `cost`, `share`
        (where it is paid), `slope` (what one more unit of cost would add) and `setback` (where runs
        turn bad). Empty where the goal may be missed.
    typical : Trace, optional
        Where runs were asked for and those found are together less than a thousandth of all runs
        beyond VaR: one of these, drawn at random by their probabilities, the same every time. Its
        probability is 0 where it underflows.
    asked : int
        How many runs were asked for.
    simulated : int
        The simulated runs that `typical` and `blame` come from, where there are too many pairs of
        state and memory to look at every run; otherwise 0. A setback is then not a number.

    Examples
    --------
    >>> worst = tp.worst_runs(ssp, {"home": "road"}, 0.2)
    >>> worst.var, worst.chance, worst.blame[0].cost
    (20.0, 0.1, 60.0)
    """

    runs: tuple[Trace, ...]
    alpha: float
    var: float
    cvar: float
    chance: float
    excess: float
    blame: tuple[Blame, ...]
    typical: Trace | None = None
    asked: int = 0
    simulated: int = 0

    def plot(self, ssp: SSP, column: str = "setback", ax: Axes | None = None) -> Axes:
        """Draw the blame on the map of the model, or on a graph.

        Parameters
        ----------
        ssp : SSP
            The model.
        column : {"setback", "share"}
            Where runs turn bad, or where the excess is paid.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, without a window.

        Returns
        -------
        matplotlib Axes
            `.figure.savefig("blame.pdf")` saves it, and a notebook shows it.

        Raises
        ------
        OptionError
            If the column is another.

        Examples
        --------
        >>> tp.worst_runs(ssp, {"home": "road"}, 0.2).plot(ssp, "share")
        <Axes: >
        """
        if column not in ("setback", "share"):
            raise OptionError(f"column must be 'setback' or 'share', not {column!r}")
        if column == "setback" and self.simulated:
            raise OptionError("setbacks are not known from simulated runs; plot 'share'")
        heat = np.zeros(ssp.n_states)
        for row in self.blame:
            heat[ssp.state_index(row.state)] += max(getattr(row, column), 0.0)
        label = "where runs turn bad" if column == "setback" else "where the excess is paid"
        states, note = shown_states(ssp, heat)
        return plot_states(
            ssp, heat=heat, ax=ax, title=note, heat_label=f"expected excess: {label}", states=states
        )

    def _content(self, most: int) -> Content:
        at = number(self.alpha)
        facts = [
            (f"VaR at {at}", self.var),
            (f"CVaR at {at}", self.cvar),
            ("probability of more than VaR", self.chance),
            ("expected excess over VaR", self.excess),
        ]
        content: list[Table | str] = [Table((), facts)]
        if len(self) and self.typical is not None:
            part = number(sum(run.probability for run in self), 2)
            every = number(self.chance, 3)
            content += self._shape(
                f"the most probable runs have {part} of {every}, which all runs beyond VaR have"
            )
        elif len(self):
            table, *more = self[0]._content(most)
            assert isinstance(table, Table)
            content += [Table(table.headers, table.rows, f"worst run 1: {table.title}"), *more]
        if len(self) > 1 or (len(self) and self.typical is not None):
            content += [self._in_lines(), "all steps: .runs[0], .runs[1], .. or --steps"]
        if not len(self):
            content += self._without_runs()
        if self.blame and not self.simulated:
            content += self._blamed("where runs turn bad", "setback", most)
        if self.blame:
            content += self._blamed("where the excess is paid", "share", most)
        return content

    def _in_lines(self) -> Table:
        """A line for each run, so that several do not fill a screen."""
        rows = [
            (rank, run.probability, run.cost, len(run), self._lost(run))
            for rank, run in enumerate(self, 1)
        ]
        return Table(
            ["run", "probability", "cost", "steps", "turns bad most"],
            rows,
            "the most probable runs beyond VaR",
        )

    def _lost(self, run: Trace) -> str:
        """The step of a run after which it is worst off, compared with before: by its share in
        `blame`, which is for all runs, or else by its cost.
        """
        turns = {row[:4]: row.setback / row.slope for row in self.blame}

        def how_bad(step: Step) -> tuple[float, float]:
            return turns.get((step.state, step.action, step.next_state, step.cost), 0.0), step.cost

        worst = max(run, key=how_bad)
        step = f"{name(worst.state)}, {name(worst.action)} -> {name(worst.next_state)}"
        return f"{step}: {number(worst.cost)}"

    def _without_runs(self) -> Content:
        """Why no run is told; where each is too improbable, the shape of one."""
        if self.chance == 0:
            worst = f"the worst {number(100 * self.alpha)} % all cost {number(self.var)}"
            return [f"no run costs more than VaR: {worst}; a larger alpha may tell runs apart"]
        if self.typical is None and self.asked == 0:
            return ["no runs requested"]
        why = "runs beyond VaR are so long that their probabilities underflow"
        if self.simulated:
            why = (
                "there are too many pairs of state and memory to look at every run; what follows is"
                f" estimated from {self.simulated:,} simulated runs"
            )
            if self.typical is None:
                why += ", none of which costs more than VaR"
        return [why] if self.typical is None else self._shape(why)

    def _shape(self, why: str) -> Content:
        """What a typical run is like, and why it is told."""
        assert self.typical is not None
        run, met = self.typical, self.typical.met
        again = [f"{name(state)} ({times} times)" for state, times in met[:MET_MOST] if times > 1]
        shape = (
            f"a typical run beyond VaR: cost {number(run.cost)} in {count(len(run), 'step')}"
            f" through {count(len(met), 'state')}"
        )
        often = f", most often in {', '.join(again)}" if again else ""
        return [f"{why}\n{shape}{often}", run._table("its beginning", BEGINNING)]

    def _blamed(self, title: str, column: str, most: int) -> Content:
        """The outcomes with the largest part in the excess, and why these may be more than all of
        it.
        """
        rows = sorted(
            (row for row in self.blame if getattr(row, column) > 0),
            key=lambda row: -getattr(row, column),
        )[:most]
        part = [getattr(row, column) for row in rows]
        cells = [[*row[:4], own, round(100 * own / self.excess, 1)] for row, own in zip(rows, part)]
        table = Table(["state", "action", "next state", "cost", "excess", "%"], cells, title)
        lucky = sum(getattr(row, column) < 0 for row in self.blame)
        if sum(cell[-1] for cell in cells) <= 100 or not lucky:
            return [table]
        others = "1 outcome that makes" if lucky == 1 else f"{lucky} outcomes that make"
        return [
            table,
            (
                f"more than 100 % in all: {others} the same runs better, though not enough, count"
                " against these"
            ),
        ]

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """The steps of all runs; `blame` is a tuple of rows that a DataFrame takes as it is."""
        steps = [(rank, run.probability, step) for rank, run in enumerate(self, 1) for step in run]
        each = {field: [getattr(step, field) for _, _, step in steps] for field in Step._fields}
        return {
            "run": [rank for rank, _, _ in steps],
            "probability": [chance for _, chance, _ in steps],
            **each,
        }

    def __repr__(self) -> str:
        alone = self.typical is not None and not len(self)
        runs, one = "runs" if alone else count(len(self), "run"), ", .typical is one of them"
        return (
            f"<WorstRuns at alpha {self.alpha:g}: {runs} beyond VaR {self.var:g}, of"
            f" {self.chance:.4g} in all{one if alone else ''}>"
        )
