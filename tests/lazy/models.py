"""Models given by functions, unlike each other, small enough to be listed, and what is true of
them: bounds of every kind between nothing and perfect.
"""

import itertools
import random
from fractions import Fraction

import tailpath as tp


class Rows:
    """A model made of a dictionary `{state: {action: [(probability, target, cost)]}}`."""

    def __init__(self, start, choices, goals=("goal",)):
        self.start, self.choices, self.goals = start, choices, set(goals)

    def actions(self, state):
        return list(self.choices[state])

    def outcomes(self, state, action):
        return self.choices[state][action]

    def is_goal(self, state):
        return state in self.goals


def shares(rnd, count):
    cuts = sorted(rnd.sample(range(1, 20), count - 1))
    return [(b - a) / 20 for a, b in itertools.pairwise([0, *cuts, 20])]


def any_graph(rnd, zero_costs=True):
    """Every action has a way forward, along the numbers of states; others may lead anywhere."""
    n, unit = rnd.randint(2, 14), rnd.choice([1, Fraction(1, 10), 5, Fraction(1, 3)])
    choices = {}
    for state in range(n):
        choices[state] = {}
        for action in range(rnd.randint(1, 3)):
            forward = rnd.choice([*range(state + 1, n), "goal"])
            targets = [
                forward,
                *(rnd.choice([*range(n), "goal"]) for _ in range(rnd.randint(0, 3))),
            ]
            levels = [rnd.randint(0 if zero_costs else 1, 6) for _ in targets]
            rows = zip(shares(rnd, len(targets)), targets, levels)
            choices[state][f"a{action}"] = [(p, t, level * unit) for p, t, level in rows]
    return Rows(0, choices)


def with_traps(rnd):
    """A graph with dead ends that can be avoided."""
    model = any_graph(rnd, zero_costs=False)
    n = len(model.choices)
    for actions in model.choices.values():
        if rnd.random() < 0.4:
            cost = actions["a0"][0][2]
            actions["risk"] = [(0.5, "trap", cost), (0.5, rnd.choice([*range(n), "goal"]), 0)]
    model.choices["trap"] = {"wait": [(1, "trap", model.choices[0]["a0"][0][2])]}
    return model


def grid(rnd):
    """A walk with slips on cells of two kinds."""
    rows, columns = rnd.randint(2, 5), rnd.randint(2, 5)
    dear = {(r, c): rnd.choice([1, 1, 4]) for r in range(rows) for c in range(columns)}
    goal, steps = (rows - 1, columns - 1), [(1, 0), (0, 1), (-1, 0), (0, -1)]
    slip = rnd.choice([0.05, 0.1, 0.2])

    def to(cell, step):
        row, column = cell[0] + step[0], cell[1] + step[1]
        return min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)

    choices = {
        cell: {
            "ESWN"[k]: [
                (1 - 2 * slip, to(cell, steps[k]), dear[cell]),
                (slip, to(cell, steps[(k + 1) % 4]), dear[cell]),
                (slip, to(cell, steps[(k + 3) % 4]), dear[cell]),
            ]
            for k in range(4)
        }
        for cell in dear
        if cell != goal
    }
    return Rows((0, 0), choices, [goal])


def roads(rnd):
    """Roads that may turn out closed where one stands before them: the state is what was seen."""
    n = rnd.randint(3, 5)
    length = {(i, j): rnd.randint(1, 9) for i in range(n) for j in range(i + 1, n)}
    unsure = rnd.sample(sorted(length), min(3, len(length)))
    closed = {road: rnd.choice([0.1, 0.3, 0.5]) for road in unsure}
    sure = {(i, i + 1): 12 for i in range(n - 1)}  # a slow way that is always open

    def arrived(node, known):
        new = [road for road in unsure if node in road and road not in dict(known)]
        for bits in itertools.product((True, False), repeat=len(new)):
            p = 1.0
            for road, is_open in zip(new, bits):
                p *= 1 - closed[road] if is_open else closed[road]
            yield p, (node, tuple(sorted((*known, *zip(new, bits)))))

    def choices_of(state):
        node, known = state
        ways = {}
        for road, cost in [*length.items(), *((road, 12) for road in sure)]:
            if node in road and (cost == 12 or dict(known).get(road, True)):
                to = road[0] + road[1] - node
                ways[f"{road}{cost}"] = (
                    [(1, "goal", cost)]
                    if to == n - 1
                    else [(p, t, cost) for p, t in arrived(to, known)]
                )
        return ways

    return listed((0, ()), choices_of)


def tireworld(rnd):
    """Flat tyres, spares at some places, and giving up for those who have none."""
    n = rnd.randint(3, 6)
    spare = {i: rnd.random() < 0.5 for i in range(n)}

    def choices_of(state):
        place, flat, taken = state
        if flat:
            ways = {"call": [(1, (place, False, taken), 30)]}
            if spare[place] and place not in taken:
                ways["change"] = [(1, (place, False, (*taken, place)), 1)]
            return ways
        ways = {}
        for step in (1, 2):
            to = min(place + step, n)
            if to == n:
                ways[f"drive {step}"] = [(1, "goal", 2 * step)]
            else:
                p = 0.2 * step
                ways[f"drive {step}"] = [(p, (to, True, taken), 2), (1 - p, (to, False, taken), 2)]
        return ways

    return listed((0, False, ()), choices_of)


def lottery(rnd):
    """A corridor, and at its end a choice between prizes with about the same mean."""
    ways = {}
    for k in range(rnd.randint(2, 4)):
        p = rnd.choice([0.5, 0.1, 0.01, 0.2])
        ways[f"ticket {k}"] = [(p, "goal", round(20 / p)), (1 - p, "goal", rnd.randint(0, 3))]
    ways["fee"] = [(1, "goal", rnd.choice([20, 22, 30]))]
    length = rnd.randint(1, 6)
    choices = {k: {"on": [(1, k + 1, 3)]} for k in range(length)}
    return Rows(0, {**choices, length: ways})


def ties(rnd):
    """Actions that are all as good, some of them free and in circles."""
    n = rnd.randint(2, 6)
    choices = {}
    for k in range(n):
        to = "goal" if k == n - 1 else k + 1
        choices[k] = {"left": [(0.5, to, 1), (0.5, to, 3)], "right": [(0.5, to, 3), (0.5, to, 1)]}
        choices[k]["around"] = [(1, rnd.randrange(n), 0)]
        choices[k]["stay"] = [(0.5, k, 0), (0.5, to, rnd.randint(2, 4))]
    return Rows(0, choices)


def listed(start, choices_of):
    """All states of a model that is described by one function."""
    choices, waiting = {}, [start]
    for state in waiting:
        if state == "goal" or state in choices:
            continue
        choices[state] = choices_of(state)
        waiting += [t for rows in choices[state].values() for _, t, _ in rows]
    return Rows(start, choices)


KINDS = [any_graph, with_traps, grid, roads, tireworld, lottery, ties]


def model_of(seed):
    rnd = random.Random(seed)
    return KINDS[seed % len(KINDS)](rnd), rnd


# ---------------------------------------------------------------------- what is true of them


def least_costs(model, outer):
    """By state the least (`outer` min) or the guaranteed (max) cost over outcomes."""
    value = dict.fromkeys(model.choices, 0.0 if outer is min else float("inf"))
    for _ in range(4 * len(value) + 4):
        for state, actions in model.choices.items():
            value[state] = min(
                outer(c + value.get(t, 0.0) for p, t, c in rows if p) for rows in actions.values()
            )
    return value


def truth(model, ssp):
    """Perfect bounds of all four kinds, by name."""
    expected = tp.solve_expected(ssp)
    index = {state: ssp.state_index(state) for state in model.choices if state in ssp.states}
    return {
        "heuristic": {state: expected.lower[k] for state, k in index.items()},
        "upper": {state: expected.upper[k] for state, k in index.items()},
        "least": least_costs(model, min),
        "surely": least_costs(model, max),
    }


def bounds_from(rnd, known):
    """Some of the bounds, from far off to perfect, as functions."""
    given = {}
    for name in known:
        if rnd.random() < 0.5:
            low = name in ("heuristic", "least")
            factor = rnd.choice([1, 1, 0.5, 0.9] if low else [1, 1, 1.5, 3])
            given[name] = lambda state, own=known[name], factor=factor: own[state] * factor
    return given
