"""Models with intervals that several tests ask: PRISM's robot and coin, and one branch."""

from __future__ import annotations

from fractions import Fraction

import tailpath as tp

#: PRISM's robot.prism with delta = 0.1, written out: state -> action -> next state -> probability.
ROBOT = {
    0: {"east": {1: 0.6, 0: 0.4}, "south": {3: 0.8, 1: 0.1, 4: 0.1}},
    1: {"east": {2: (0.8, 0.9), 1: (0.1, 0.2)}, "south": {4: (0.4, 0.6), 2: (0.4, 0.6)}},
    4: {"east": {5: 1}, "west": {3: 0.6, 4: 0.4}},
    5: {"north": {2: 0.9, 5: 0.1}, "west": {4: 1}},
}
#: One branch: nature gives q to a sure cost of 5, and 1 - q to a cost of 10 with 1/3, else 0.
BRANCH = [
    ("s", "go", "B", (0, 1), 0),
    ("s", "go", "A", (0, 1), 0),
    ("B", "on", "g", 1, 5),
    ("A", "on", "g", Fraction(1, 3), 10),
    ("A", "on", "g", Fraction(2, 3), 0),
]


def robot(goals: set[int]) -> tp.IntervalSSP:
    rows = [
        (s, a, t, p, 1)
        for s, actions in ROBOT.items()
        if s not in goals
        for a, to in actions.items()
        for t, p in to.items()
    ]
    return tp.IntervalSSP.from_outcomes(rows, 0, goals)


def coin(rounds: int, bias: float) -> tp.IntervalSSP:
    """The shared coin of Aspnes and Herlihy with two processes, of which one flips a coin that may
    be biased.

    States are the counter, and (program counter, coin) of each process.
    """
    last = 4 * (rounds + 1)
    start = (last // 2, (0, 0), (0, 0))
    rows, goals, known, open_ = [], [], {start}, [start]
    while open_:
        state = open_.pop()
        counter, processes = state[0], state[1:]
        if all(pc == 3 for pc, _ in processes):
            goals.append(state)
            continue
        for i, (pc, side) in enumerate(processes):
            away = bias if i == 0 else 0.0
            flip = (0.5 - away, 0.5 + away)
            decided = (3, 0) if counter <= 2 else (3, 1) if counter >= last - 2 else (0, side)
            moves = {
                0: [(counter, (1, 0), flip), (counter, (1, 1), flip)],
                1: [(counter + (1 if side else -1), (2, 0), 1)],
                2: [(counter, decided, 1)],
                3: [],
            }[pc]
            for after, process, p in moves:
                target = (
                    after,
                    *(process if j == i else other for j, other in enumerate(processes)),
                )
                rows.append((state, f"process {i}", target, p, 1))
                if target not in known:
                    known.add(target)
                    open_.append(target)
    return tp.IntervalSSP.from_outcomes(rows, start, goals)
