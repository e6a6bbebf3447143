"""The Canadian traveller: roads may be closed, and one sees whether they are when one stands before
them. `docs/lazy.md` has the rules.

The state is what was seen so far, so that there are about 3^k of them for k unsure roads: the model
is given by functions, with bounds. Every run needs at least the way on which all roads not seen yet
are open, and the way on which they are all closed surely gets there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tailpath import SSP
from tailpath.domains import Domain
from tailpath.errors import ModelError, OptionError

#: States up to which such a model is listed.
MOST_LISTED = 200_000
#: How likely roads of a map are closed; the lengths of roads, and of those around it.
CHANCES, LENGTHS, AROUND = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), (1, 2, 3, 4), 4

Name = Hashable
Road = tuple[Any, Any]


class Seen(NamedTuple):
    """Where the traveller is, and which unsure roads were seen open and closed: road i is bit i."""

    place: Name
    open: int
    closed: int


class RoadMap:
    """Roads of which some may turn out to be closed: a model given by functions, with bounds.

    Parameters
    ----------
    roads : mapping
        `{(a, b): length}`, both ways.
    unsure : mapping
        `{(a, b): chance that it is closed}`, independently; all others are open.
    start, goal : hashable
        Places.

    Raises
    ------
    ModelError
        If a road that may be closed is none of the roads, or the goal cannot be reached on those
        that are surely open.

    Examples
    --------
    >>> roads = {("camp", "base"): 9, ("camp", "pass"): 2, ("pass", "base"): 3}
    >>> rover = tailpath_cases.RoadMap(roads, {("pass", "base"): 0.2}, "camp", "base")
    >>> tp.solve_cvar_lazy(rover, 0.5).policy().action(rover.start)
    'pass'
    """

    def __init__(
        self, roads: Mapping[Road, Any], unsure: Mapping[Road, Any], start: Name, goal: Name
    ) -> None:
        for road in unsure:
            if road not in roads:
                raise ModelError(f"{road!r} may be closed, but there is no such road")
        self.roads, self.unsure, self.goal = dict(roads), dict(unsure), goal
        bit = {road: 1 << number for number, road in enumerate(self.unsure)}
        self._ways: dict[Any, dict[Any, tuple[Any, int]]] = {start: {}, goal: {}}
        for (a, b), length in self.roads.items():
            self._ways.setdefault(a, {})[b] = length, bit.get((a, b), 0)
            self._ways.setdefault(b, {})[a] = length, bit.get((a, b), 0)
        self._to_goal = cache(self._distances)
        self.actions, self.outcomes, self.is_goal = self._actions, self._outcomes, self._is_goal
        self.least, self.surely = self._least, self._surely
        if start not in self._to_goal((1 << len(bit)) - 1):
            raise ModelError(f"no road that is surely open leads from {start!r} to {goal!r}")
        (_, self.start), *more = self._arrivals(start, 0, 0)
        if more:
            raise ModelError(
                f"the start {start!r} has unsure roads, which are seen there:"
                " begin at a place before"
            )

    def _actions(self, state: Seen) -> Sequence[Name]:
        """The places to go to."""
        return [to for to, (_, bit) in self._ways[state.place].items() if not bit & state.closed]

    def _outcomes(self, state: Seen, action: Name) -> list[tuple[Any, Seen, Any]]:
        """What may be seen on arrival."""
        length, _ = self._ways[state.place][action]
        if action == self.goal:
            return [(1, Seen(self.goal, 0, 0), length)]
        seen = self._arrivals(action, state.open, state.closed)
        return [(share, target, length) for share, target in seen]

    def _is_goal(self, state: Seen) -> bool:
        """Whether the traveller has arrived."""
        return state.place == self.goal

    def _least(self, state: Seen) -> Any:
        """The way if all roads not seen yet are open."""
        return self._to_goal(state.closed)[state.place]

    def _surely(self, state: Seen) -> Any:
        """The way if all roads not seen yet are closed."""
        return self._to_goal(((1 << len(self.unsure)) - 1) & ~state.open).get(state.place)

    def _arrivals(self, place: Name, is_open: int, closed: int) -> list[tuple[Any, Seen]]:
        """What is known at a place on arrival, with probabilities."""
        chances = list(self.unsure.values())
        here = (bit for _, bit in self._ways[place].values())
        new = [bit for bit in here if bit & ~(is_open | closed)]
        found = []
        for ways in product((False, True), repeat=len(new)):
            share, is_closed = 1.0, 0
            for bit, one in zip(new, ways):
                chance = chances[bit.bit_length() - 1]
                share *= chance if one else 1 - chance
                is_closed |= bit * one
            target = Seen(place, is_open | (sum(new) - is_closed), closed | is_closed)
            found.append((share, target))
        return found

    def _distances(self, closed: int) -> dict[Name, Any]:
        """How far places are from the goal without the roads of some bits."""
        found, waiting = {self.goal: 0}, [(0, 0, self.goal)]
        count = 0
        while waiting:
            far, _, place = heappop(waiting)
            if far > found[place]:
                continue
            for to, (length, bit) in self._ways[place].items():
                if not bit & closed and (to not in found or far + length < found[to]):
                    found[to] = far + length
                    count += 1
                    heappush(waiting, (far + length, count, to))
        return found

    def plot(self, state: Seen | None = None, ax: Any = None, places: Any = None) -> Any:
        """Draw the map: what is open, what is closed, and what is not known yet.

        Parameters
        ----------
        state : Seen, optional
            What was seen; by default nothing but the start.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of pyplot.
        places : mapping, optional
            `{place: (x, y)}`; by default places are pairs `(row, column)`.

        Returns
        -------
        matplotlib Axes
            The axes.

        Examples
        --------
        >>> roads = tailpath_cases.canadian_traveller(rows=3, columns=3, unsure=2)
        >>> len(roads.plot().get_lines())
        14
        """
        if ax is None:
            from matplotlib.pyplot import subplots

            _, ax = subplots(figsize=(5.0, 5.0), layout="constrained")
        state = state or self.start
        at = places or {place: (place[1], -place[0]) for place in self._ways}
        for a, b in self.roads:
            _, bit = self._ways[a][b]
            ends = zip(at[a], at[b])
            if bit & ~state.open == 0:
                ax.plot(*ends, "-", color="black", linewidth=2.5)
            else:
                ax.plot(*ends, ":", color="black", linewidth=1.2)
            if bit & state.closed:
                middle = [sum(pair) / 2 for pair in zip(at[a], at[b])]
                ax.plot(*middle, "x", color="#d55e00", markersize=9)
        ax.plot(*at[state.place], "o", color="#0072b2", markersize=11)
        ax.plot(*at[self.goal], "*", color="#009e73", markersize=15)
        ax.set_aspect("equal")
        ax.axis("off")
        return ax


def canadian_traveller(*, rows: int, columns: int, unsure: int, seed: int = 1) -> RoadMap:
    """Build a map of roads on a grid, from its upper left to its lower right corner.

    Places are named `(row, column)`. Roads have lengths from 1 to 4; those around the map are
    always open and 4 long.

    Parameters
    ----------
    rows, columns : int, 2 or more
        The size.
    unsure : int, 0 or more
        How many of the roads inside may be closed, with a chance of 0.1 to 0.6 each.
    seed : int, 0 or more
        Draws lengths, roads and chances.

    Returns
    -------
    RoadMap
        The model; `solve_cvar_lazy` takes it.

    Raises
    ------
    OptionError
        If a number lies outside its range.

    Examples
    --------
    >>> roads = tailpath_cases.canadian_traveller(rows=8, columns=8, unsure=30)
    >>> roads.start
    Seen(place=(0, 0), open=0, closed=0)
    """
    rows, columns = _whole(rows, "rows", 2), _whole(columns, "columns", 2)
    count, draws = _whole(unsure, "unsure"), random.Random(_whole(seed, "the seed"))
    roads: dict[Road, Any] = {}
    inside: list[Road] = []
    for row, column in product(range(rows), range(columns)):
        for to in ((row + 1, column), (row, column + 1)):
            if to[0] < rows and to[1] < columns:
                around = row == to[0] in (0, rows - 1) or column == to[1] in (0, columns - 1)
                length = draws.choice(LENGTHS)
                roads[(row, column), to] = AROUND if around else length
                inside += [] if around else [((row, column), to)]
    if count > len(inside):
        raise OptionError(f"{count} roads are too many: the map has {len(inside)} inside")
    closed = {road: draws.choice(CHANCES) for road in draws.sample(inside, count)}
    return RoadMap(roads, closed, (0, 0), (rows - 1, columns - 1))


def _whole(value: Any, what: str, least: int = 0) -> int:
    if not (isinstance(value, (int, float, np.integer)) and value >= least and value % 1 == 0):
        raise OptionError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def named(text: str) -> RoadMap | None:
    """The map of `ROWSxCOLUMNS`, with half as many unsure roads as places less two, or of
    `ROWSxCOLUMNS-UNSURE`, or of `ROWSxCOLUMNS-UNSURE-SEED`.
    """
    found = re.fullmatch(r"(\d{1,3})x(\d{1,3})(?:-(\d{1,6}))?(?:-(\d{1,9}))?", text)
    if found is None:
        return None
    rows, columns = int(found[1]), int(found[2])
    unsure = max(rows * columns // 2 - 2, 0) if found[3] is None else int(found[3])
    seed = int(found[4] or 1)
    return canadian_traveller(rows=rows, columns=columns, unsure=unsure, seed=seed)


def _listed(text: str) -> SSP | None:
    roads = named(text)
    return None if roads is None else SSP.from_functions(roads, limit=MOST_LISTED)


#: `ctp:8x8`.
DOMAIN = Domain(
    "ctp",
    _listed,
    "write the size as ROWSxCOLUMNS, e.g. ctp:8x8",
    implicit=named,
)
