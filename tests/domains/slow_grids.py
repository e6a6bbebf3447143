"""The two domains once more, cell by cell and in fractions, straight from the text that defines
them.
"""

from collections import defaultdict
from fractions import Fraction as F

DIRECTION = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}


def slow_gridworld(rows: list[str], success=F(95, 100), obstacle_cost=F(100)):
    """{(state, action): {(next_state, cost): probability}}, start, goal."""
    m, n = len(rows), len(rows[0])
    cells = {(r, c): rows[r][c] for r in range(m) for c in range(n)}
    (start,) = [cell for cell, letter in cells.items() if letter == "S"]
    (goal,) = [cell for cell, letter in cells.items() if letter == "G"]
    outcomes = {}
    for (r, c), letter in cells.items():
        if letter == "G":
            continue
        for action in DIRECTION:
            result = outcomes[(r, c), action] = defaultdict(F)
            if letter == "#":
                result[goal, obstacle_cost] = F(1)
                continue
            for direction, (down, right) in DIRECTION.items():
                chance = success if direction == action else (1 - success) / 3
                target = (r + down, c + right)
                if target not in cells:
                    target = (r, c)
                if chance:
                    result[target, F(1)] += chance
    return outcomes, start, goal


def slow_river(m: int, n: int):
    start, goal = (m - 2, 0), (m - 1, n - 1)
    river_cost = {"N": F(2), "E": F(1), "W": F(1), "S": F(1, 2)}

    def clip(r, c):
        return min(max(r, 0), m - 1), min(max(c, 0), n - 1)

    outcomes = {}
    for r in range(m):
        for c in range(n):
            if (r, c) == goal:
                continue
            bank, bridge = c in (0, n - 1), r == 0
            waterfall = r == m - 1 and not bank
            for action, (down, right) in DIRECTION.items():
                result = outcomes[(r, c), action] = defaultdict(F)
                if bank or bridge:
                    result[clip(r + down, c + right), F(1)] = F(1)
                elif waterfall:
                    result[start, F(1)] = F(1)
                else:
                    for moves, chance1 in ((1, F(8, 10)), (0, F(2, 10))):
                        for falls, chance2 in ((1, F(2, 10)), (0, F(8, 10))):
                            target = clip(r + moves * down + falls, c + moves * right)
                            result[target, river_cost[action]] += chance1 * chance2
    return outcomes, start, goal


def outcomes_of(ssp):
    """A model in the same form; a merged outcome appears once, or the comparison of
    lengths fails.
    """
    found = {}
    for s, state in enumerate(ssp.states):
        for k in range(ssp.state_choices[s], ssp.state_choices[s + 1]):
            span = range(ssp.choice_outcomes[k], ssp.choice_outcomes[k + 1])
            pairs = [
                (
                    (ssp.states[ssp.outcome_target[o]], int(ssp.outcome_level[o]) * ssp.cost_unit),
                    float(ssp.outcome_probability[o]),
                )
                for o in span
            ]
            assert len({key for key, _ in pairs}) == len(pairs), "the same outcome twice"
            found[state, ssp.choice_name(k)] = dict(pairs)
    return found


def in_floats(outcomes):
    return {
        key: {outcome: float(p) for outcome, p in result.items()}
        for key, result in outcomes.items()
    }
