"""The sweep over budgets: least values by (node, remaining budget), one level of integer cost units
after the other.

`U(s, w)` is the least value of node s with budget w, say the least E[(Z - w)+]:

    U(s, w) = min over choices of  sum p U(t, w - c),        and a closed form for w <= 0.

*Criteria* say what is counted; row i is (base, slope, to_go, per_step). With the budget spent, w <=
0, a node is worth

    base + slope * (-w) + to_go * V*(s),        and `per_step` times the expected cost of a choice
                                                is added at every step,

so (0, 1, 1, 0) is the excess E[(Z - w)+], (1, 0, 0, 0) the probability of a cost of w or more, and
(0, 0, 1, 1) the expected cost. Arriving with budget left is worth 0, or what `loss[w, i]` says.
Three ways to choose:

- *Least*: the least value of criterion 0; within a relative `tie`, that of criterion 1. All others
  are carried along for the choice taken.
- *Extreme*: the least value of criterion 0, where nature hands out what is not known of the
  probabilities (`Spread`); all others are the least values with what it handed out there. The goal
  is then a node like others, since what arrives is served in its turn.
- *Priced*: the least `criterion 0 + price * criterion 1`, for several prices side by side.

**Store.** A level w needs the levels w - c, so values live in a window of rows, one for each of the
last levels, more than the largest cost. Those of levels v <= 0 are rows like all others. The index
of node s at level v is `(v - origin) * n + s`, and an outcome is one number, `offset = target -
cost * n`, added to the first index of its level: nothing wraps, and no cost is compared with the
budget. When the window is full, its last rows move to its beginning. Outcomes that arrive, or cost
more than any budget asked, need no row: they are a `constant` of their choice, which changes from
level to level.

**Order.** Nodes come in blocks such that zero-cost outcomes only lead back. The nodes of a plain
block do not need one another at the same level; those of a joint block do, and are solved together
(`joint.py`). Of a plain block only the nodes *active* are looked at. Up to a budget of
`certain_cost(s)` every run exceeds the budget, the risk-neutral policy is best, and the closed form
of a spent budget still holds, since slope + per_step = to_go: it is put down from level `begin(s)`
on, the first that somebody reads. And at level w only nodes with `least + w <= cutoff` can matter,
where `least` is the least cost at which the start can reach them; the cutoff falls as better values
are found.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import CERTAIN, NO_SPREAD, Spread, extreme_value, row_value, served_value
from tailpath.dp.joint import Joint, joint_backup, joint_optimum, joint_values
from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import TINY

Array = NDArray[Any]
#: The columns of criteria.
BASE, SLOPE, TO_GO, PER_STEP = range(4)
#: A level that no budget gets to.
NEVER = 2**62
#: What can be counted: E[(Z - w)+], the probability of a cost of w or more, and the expected cost.
#: They may be added up.
EXCESS, LATE = np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
MEAN = np.array([0.0, 0.0, 1.0, 1.0])


class Rows(NamedTuple):
    """Node -> choices -> outcomes that need a row. Shapes: (nodes + 1,), (choices + 1,),
    (outcomes,), (outcomes,). `cost` (choices,) is what each choice costs on average.
    """

    node_choices: Array
    outcome_start: Array
    offset: Array
    probability: Array
    cost: Array


class Ends(NamedTuple):
    """Outcomes that need no row, by choice: `cost[start[e] : start[e + 1]]` are those of
    `choice[e]`, and `cost_to_go` is V* behind each. The choices of node s that have any are
    `of_node[s] : of_node[s + 1]`.
    """

    of_node: Array
    choice: Array
    start: Array
    cost: Array
    probability: Array
    cost_to_go: Array


class Nodes(NamedTuple):
    """By block where its nodes begin and whether they are solved together; by node `least`,
    `certain_cost` and `begin`, and V* in units.
    """

    block_start: Array
    block_joint: Array
    least: Array
    certain_cost: Array
    begin: Array
    value: Array


class Model(NamedTuple):
    """A model laid out for budgets up to some limit; where probabilities are intervals, those of
    `rows` are the low ones.
    """

    rows: Rows
    ends: Ends
    nodes: Nodes
    joint: Joint
    spread: Spread = NO_SPREAD
    nature: int = CERTAIN


class Objective(NamedTuple):
    """What is minimised at the start, `weight * w + price * U`, with U the value of criterion 0.

    Levels matter up to `limit`, and until `weight * w + floor` exceeds the best value found.
    `prices` are those of the priced way, none for the least.
    """

    criteria: Array
    prices: Array
    start: int
    weight: float
    price: float
    floor: float
    limit: float
    tie: float


class Work(NamedTuple):
    """What a sweep works on, from level 0 on, where it is filled.

    Values by criterion, position and price, the level of their first row, and how many rows before
    its own a level needs; constants by criterion and choice, and scratch by choice; the level at
    which the constants of a node change next; the active nodes of each block, where its next one
    stands, and how many are active; the choice of every node.
    """

    value: Array
    origin: Array
    reach: int
    constant: Array
    worth: Array
    due: Array
    active: Array
    entered: Array
    n_active: Array
    choice: Array


def work_on(nodes: Nodes, constants: tuple[int, int], reach: int, rows: int) -> Work:
    """Arrays for a sweep from level 0 on, with so many rows of values for each criterion and the
    shape of `constants`.
    """
    n, blocks = len(nodes.least), len(nodes.block_joint)
    return Work(
        value=np.empty(constants[0] * rows * n),
        origin=np.empty(1, dtype=np.int64),
        reach=reach,
        constant=np.empty(constants),
        worth=np.empty(constants[1]),
        due=np.empty(n, dtype=np.int64),
        active=np.empty(n, dtype=np.int32),
        entered=np.empty(blocks, dtype=np.int64),
        n_active=np.empty(blocks, dtype=np.int64),
        choice=np.empty(n, dtype=np.int64),
    )


class Changes(NamedTuple):
    """Where the choice of a node changes, in the order in which this is found: the node, the first
    budget with the new choice, the choice.
    """

    node: Array
    budget: Array
    choice: Array


@kernel
def begin_levels(model: Model, criteria: Array, n_prices: int, work: Work) -> None:
    """Level 0 and all below it, where the budget is spent; every node begins with its first
    choice.
    """
    nodes, rows = model.nodes, model.rows
    reach, n = work.reach, len(model.nodes.least)
    size = len(work.value) // (len(criteria) * n_prices)
    for i in range(len(criteria)):
        base, slope = criteria[i, BASE], criteria[i, SLOPE]
        to_go = criteria[i, TO_GO]
        for row in range(reach):
            for node in range(n):
                worth = base - slope * (row + 1 - reach) + to_go * nodes.value[node]
                for lane in range(n_prices):
                    work.value[(i * size + row * n + node) * n_prices + lane] = worth
        for choice in range(len(rows.cost)):
            work.constant[i, choice] = criteria[i, PER_STEP] * rows.cost[choice]
    work.origin[0] = 1 - reach
    for node in range(len(rows.node_choices) - 1):
        work.due[node], work.choice[node] = 0, rows.node_choices[node]
    for block in range(len(nodes.block_joint)):
        work.entered[block], work.n_active[block] = nodes.block_start[block], 0


@kernel(inline=True)
def set_constants(
    model: Model, criteria: Array, loss: Array, w: int, span: tuple[int, int], work: Work
) -> int:
    """What the choices of active nodes are worth at budget w without the outcomes that have a row,
    where that is due; returns when it is due next.
    """
    of_node, of_choice, start, cost, probability, cost_to_go = model.ends
    own, constant = model.rows.cost, work.constant
    active, due = work.active, work.due
    changes_every_level, next_update = len(loss) > 0, NEVER
    for i in range(len(criteria)):
        changes_every_level |= criteria[i, SLOPE] != 0.0
    for position in range(span[0], span[1]):
        node = active[position]
        if due[node] <= w:
            then = NEVER
            for e in range(of_node[node], of_node[node + 1]):
                choice = of_choice[e]
                for i in range(len(criteria)):
                    base, slope = criteria[i, BASE], criteria[i, SLOPE]
                    to_go = criteria[i, TO_GO]
                    total = criteria[i, PER_STEP] * own[choice]
                    for k in range(start[e], start[e + 1]):
                        remaining = w - cost[k]
                        if remaining <= 0:
                            behind = base - slope * remaining + to_go * cost_to_go[k]
                            total += probability[k] * behind
                            then = min(then, w + 1 if changes_every_level else cost[k] + 1)
                        elif len(loss) > 0:
                            total += probability[k] * loss[remaining, i]
                            then = w + 1
                    constant[i, choice] = total
            due[node] = then
        next_update = min(next_update, due[node])
    return next_update


@kernel
def backup_least(
    rows: Rows,
    nodes: Nodes,
    objective: Objective,
    span: tuple[int, int, int],
    level: tuple[int, int, int],
    work: Work,
    out: Changes,
) -> tuple[int, float]:
    """The active nodes of a plain block at one level, the least way; returns how many changes there
    are then, and the most that ties gave away, relatively. Arrays are taken out of their groups
    before the loops, which counts; and it is a function of its own, with registers of its own.
    """
    node_choices, outcome_start, offset, probability, _ = rows
    certain_cost, to_go = nodes.certain_cost, nodes.value
    value, constant = work.value, work.constant
    worth, active = work.worth, work.active
    chosen = work.choice
    criteria, tie = objective.criteria, objective.tie
    out_node, out_budget, out_choice = out
    (begin, end, at), (w, base, size) = span, level
    given_away = 0.0
    for k in range(np.uint64(begin), np.uint64(end)):
        node, position = np.uint64(active[k]), base + active[k]
        first, last = np.uint64(node_choices[node]), np.uint64(node_choices[node + np.uint64(1)])
        if w <= certain_cost[node]:
            for i in range(len(criteria)):
                value[i * size + position] = (
                    criteria[i, BASE] - criteria[i, SLOPE] * w + criteria[i, TO_GO] * to_go[node]
                )
            continue
        picked: Any = first
        least, rival = np.inf, np.inf  # the least value, and the least but one
        for choice in range(first, last):
            total = constant[0, choice] + row_value(
                outcome_start, offset, probability, choice, base, value
            )
            worth[choice - first] = total
            rival = min(rival, max(least, total))
            picked = choice if total < least else picked
            least = min(least, total)
        if tie > 0.0 and rival <= least * (1 + tie):
            second, highest = np.inf, least * (1 + tie)
            for choice in range(first, last):
                if worth[choice - first] <= highest:
                    total = constant[1, choice] + row_value(
                        outcome_start, offset, probability, choice, size + base, value
                    )
                    picked = choice if total < second else picked
                    second = min(second, total)
            if least > TINY:
                given_away = max(given_away, worth[picked - first] / least - 1.0)
            least = worth[picked - first]
        value[np.uint64(position)] = least if least > TINY else 0.0
        for i in range(1, len(criteria)):
            total = constant[i, picked] + row_value(
                outcome_start, offset, probability, picked, i * size + base, value
            )
            value[np.uint64(i * size + position)] = total if total > TINY else 0.0
        if chosen[node] != np.int64(picked):
            chosen[node] = np.int64(picked)
            out_node[at] = node
            out_budget[at] = w
            out_choice[at] = picked
            at += 1
    return at, given_away


@kernel
def backup_robust(
    model: Model,
    objective: Objective,
    nature: int,
    span: tuple[int, int, int],
    level: tuple[int, int, int],
    work: Work,
    out: Changes,
) -> tuple[int, float]:
    """The active nodes of a plain block at one level, the extreme way. Returns how many changes
    there are then, and the most that the value of an outcome served last exceeds that of its row,
    as a factor: what rounding of the shares counts for.
    """
    node_choices, outcome_start, offset, probability, _ = model.rows
    certain_cost, to_go = model.nodes.certain_cost, model.nodes.value
    criteria = objective.criteria
    value, constant = work.value, work.constant
    chosen = work.choice
    out_node, out_budget, out_choice = out
    worst, count = 0.0, len(criteria)
    (begin, end, at), (w, base, size) = span, level
    for k in range(begin, end):
        node = np.int64(work.active[k])
        picked, least = np.int64(node_choices[node]), np.inf
        if w <= certain_cost[node]:
            for i in range(count):
                value[i * size + base + node] = (
                    criteria[i, BASE] - criteria[i, SLOPE] * w + criteria[i, TO_GO] * to_go[node]
                )
            continue
        for i in range(1, count):
            value[i * size + base + node] = np.inf
        for choice in range(node_choices[node], node_choices[node + 1]):
            successors, marginal = extreme_value(
                outcome_start, offset, probability, model.spread, nature, choice, base, value
            )
            total = constant[0, choice] + successors
            if marginal > worst * total and total > TINY:
                worst = marginal / total
            picked = np.int64(choice) if total < least else picked
            least = min(least, total)
            for i in range(1, count):
                successors, marginal, _ = served_value(
                    outcome_start,
                    offset,
                    probability,
                    model.spread,
                    nature,
                    choice,
                    i * size + base,
                    value,
                )
                total = constant[i, choice] + successors
                if marginal > worst * total and total > TINY:
                    worst = marginal / total
                value[i * size + base + node] = min(
                    value[i * size + base + node], total if total > TINY else 0.0
                )
        value[base + node] = least if least > TINY else 0.0
        if chosen[node] != picked:
            chosen[node] = picked
            out_node[at] = node
            out_budget[at] = w
            out_choice[at] = picked
            at += 1
    return at, worst


@kernel
def backup_priced(
    model: Model,
    objective: Objective,
    span: tuple[int, int],
    level: tuple[int, int, int],
    work: Work,
) -> None:
    """The active nodes of a plain block at one level, the priced way. Loops over prices alone, on
    few arrays, are what becomes vectors.
    """
    node_choices, outcome_start, offset, probability, _ = model.rows
    certain_cost, to_go = model.nodes.certain_cost, model.nodes.value
    criteria, prices = objective.criteria, objective.prices
    constant, active = work.constant, work.active
    count = len(objective.prices)
    w, base, size = level
    value = work.value.reshape((2, size, count))
    scratch = np.empty((5, count))
    mean, risk = scratch[0], scratch[1]
    least, best_mean = scratch[2], scratch[3]
    best_risk = scratch[4]
    for j in range(span[0], span[1]):
        node = np.int64(active[j])
        for i in range(count):
            least[i] = np.inf
        if w <= certain_cost[node]:
            for i in range(count):
                best_mean[i] = (
                    criteria[0, BASE] - criteria[0, SLOPE] * w + criteria[0, TO_GO] * to_go[node]
                )
                best_risk[i] = (
                    criteria[1, BASE] - criteria[1, SLOPE] * w + criteria[1, TO_GO] * to_go[node]
                )
        else:
            for choice in range(node_choices[node], node_choices[node + 1]):
                for i in range(count):
                    mean[i] = constant[0, choice]
                for i in range(count):
                    risk[i] = constant[1, choice]
                for k in range(outcome_start[choice], outcome_start[choice + 1]):
                    p, position = probability[k], base + offset[k]
                    for i in range(count):
                        mean[i] += p * value[0, position, i]
                    for i in range(count):
                        risk[i] += p * value[1, position, i]
                for i in range(count):
                    total = mean[i] + prices[i] * risk[i]
                    if total < least[i]:
                        least[i] = total
                        best_mean[i] = mean[i]
                        best_risk[i] = risk[i]
        for i in range(count):
            value[0, base + node, i] = best_mean[i]
        for i in range(count):
            value[1, base + node, i] = best_risk[i] if best_risk[i] > TINY else 0.0


@kernel
def backup_jointly(
    model: Model, objective: Objective, block: int, level: tuple[int, int, int], work: Work
) -> tuple[float, float, float]:
    """A joint block at one level: first criterion 0, then, among choices that tie, criterion 1.
    Returns what `joint_optimum` returns, and the most that a tie gives away at a visit, relatively.
    """
    choices, first = model.rows.node_choices, model.nodes.block_start[block]
    last = model.nodes.block_start[block + 1]
    criteria, tie = objective.criteria, objective.tie
    _, base, size = level
    offset, count = choices[first], choices[last] - choices[first]
    gain, allowed = np.empty((len(criteria), count)), np.ones(count, dtype=np.bool_)
    value, given_away = np.empty(last - first), 0.0
    for i in range(len(criteria)):
        for k in range(count):
            gain[i, k] = work.constant[i, offset + k] + row_value(
                *model.rows[1:4], offset + k, i * size + base, work.value
            )
    error, residual = joint_optimum(
        model.joint, choices, first, last, gain[0], allowed, work.choice, value
    )
    if tie > 0:
        least = value.copy()
        for i in range(last - first):
            for choice in range(choices[first + i], choices[first + i + 1]):
                total = joint_backup(model.joint, choice, gain[0, choice - offset], value)
                allowed[choice - offset] = choice == work.choice[first + i] or total <= value[i] * (
                    1 + tie
                )
        joint_optimum(model.joint, choices, first, last, gain[1], allowed, work.choice, value)
        for i in range(last - first):
            choice = work.choice[first + i]
            total = joint_backup(model.joint, choice, gain[0, choice - offset], least)
            if least[i] > TINY:
                given_away = max(given_away, total / least[i] - 1.0)
    for i in range(len(criteria)):
        joint_values(model.joint, choices, first, last, work.choice, gain[i], value)
        for k in range(last - first):
            work.value[i * size + base + first + k] = value[k] if value[k] > TINY else 0.0
    return error, residual, given_away


@kernel(inline=True)
def cutoff_of(objective: Objective, best: float) -> float:
    """No level, and no node at a level, beyond this can matter; a little more than the exact bound,
    to be safe from rounding.
    """
    if objective.weight == 0:
        return objective.limit
    return min(objective.limit, (best - objective.floor) / objective.weight * (1 + 1e-12))


@kernel(inline=True)
def update_active(nodes: Nodes, block: int, w: int, slack: float, work: Work) -> int:
    """Bring the list of active nodes of a plain block up to date at budget w: the start can reach
    them for `slack` or less.

    Those of block b are `active[block_start[b] :][: n_active[b]]`; nodes before `entered[b]` have
    begun. Returns where they end.
    """
    first, last = nodes.block_start[block], nodes.block_start[block + 1]
    active, least = work.active, nodes.least
    begin = nodes.begin
    end, node = first, work.entered[block]
    for k in range(first, first + work.n_active[block]):
        if least[active[k]] <= slack:
            active[end] = active[k]
            end += 1
    while node < last and begin[node] <= w:
        if least[node] <= slack:
            active[end] = node
            end += 1
        node += 1
    work.entered[block], work.n_active[block] = node, end - first
    return int(end)


@kernel
def move_window(n: int, blocks: int, work: Work) -> None:
    """Bring the rows that later levels need to the beginning of the window, of each of some blocks
    of values.
    """
    rows = len(work.value) // (n * blocks)
    for block in range(blocks):
        first = block * rows * n
        for k in range(work.reach * n):
            work.value[first + k] = work.value[first + (rows - work.reach) * n + k]
    work.origin[0] += rows - work.reach


def _sweep(joints: bool, priced: bool, nature: int) -> Any:
    """The flags are constants of the closure: the compiler leaves out the branches not taken, and
    keeps each version by its flags.
    """

    def sweep(
        model: Model,
        objective: Objective,
        loss: Array,
        levels: tuple[int, int, int],
        best: float,
        work: Work,
        out: Changes,
        out_value: Array,
    ) -> tuple[int, int, float, float, float, float]:
        nodes, criteria = model.nodes, objective.criteria
        count = max(len(objective.prices), 1)
        n, (first, last, at) = len(nodes.least), levels
        size = len(work.value) // (len(criteria) * count)
        due = np.zeros(len(nodes.block_joint), dtype=np.int64)
        error, residual = 0.0, 0.0
        given_away = 0.0
        w, start = first, objective.start
        if first == 0:
            begin_levels(model, criteria, count, work)
            for i in range(len(criteria)):
                spent = criteria[i, BASE] + criteria[i, TO_GO] * nodes.value[start]
                for price in range(count):
                    out_value[0, i * count + price] = spent
            best, w = min(best, objective.price * out_value[0, 0]), 1
        while w <= last and w <= cutoff_of(objective, best) and at + n <= len(out.node):
            slack = cutoff_of(objective, best) - w
            if (w - work.origin[0]) * n >= size:
                move_window(n * count, len(criteria), work)
            base = (w - work.origin[0]) * n
            level = w, base, size
            for block in range(len(nodes.block_joint)):
                begin, end = nodes.block_start[block], nodes.block_start[block + 1]
                if joints and nodes.block_joint[block]:
                    end = end if nodes.least[begin] <= slack else begin
                    before = work.choice[begin:end].copy()
                    for node in range(begin, end):
                        work.active[node] = node
                    if due[block] <= w:
                        due[block] = set_constants(model, criteria, loss, w, (begin, end), work)
                    if end > begin:
                        found = backup_jointly(model, objective, block, level, work)
                        error, residual = max(error, found[0]), max(residual, found[1])
                        given_away = max(given_away, found[2])
                    for node in range(begin, end):
                        if work.choice[node] != before[node - begin]:
                            out.node[at], out.budget[at] = node, w
                            out.choice[at] = work.choice[node]
                            at += 1
                    continue
                entered = work.entered[block]
                end = update_active(nodes, block, w, slack, work)
                if due[block] <= w or work.entered[block] > entered:
                    due[block] = set_constants(model, criteria, loss, w, (begin, end), work)
                if nature != CERTAIN:
                    at, worst = backup_robust(
                        model, objective, nature, (begin, end, at), level, work, out
                    )
                    error = max(error, worst)
                elif priced:
                    backup_priced(model, objective, (begin, end), level, work)
                else:
                    at, given = backup_least(
                        model.rows, nodes, objective, (begin, end, at), level, work, out
                    )
                    given_away = max(given_away, given)
            for i in range(len(criteria)):
                for price in range(count):
                    out_value[w - first, i * count + price] = work.value[
                        (i * size + base + start) * count + price
                    ]
            best = min(best, objective.weight * w + objective.price * out_value[w - first, 0])
            w += 1
        return w, at, best, error, residual, given_away

    return kernel(sweep)


_compiled = cache(_sweep)


def sweep(
    model: Model,
    objective: Objective,
    loss: Array,
    levels: tuple[int, int, int],
    best: float,
    work: Work,
    out: Changes,
    out_value: Array,
) -> tuple[int, int, float, float, float, float]:
    """Raise the budget from the first of `levels` to the second, or until nothing beyond can matter
    or there is no room for more changes. From level 0, where all is a closed form, a table begins.

    Changes of choice are appended to `out` from the third of `levels` on, and `out_value[w -
    first]` gets the values at the start, by criterion and price. Returns the first level not done,
    how many changes there are, the best value found, the worst error bound and relative gain left
    of joint blocks, and the most that a tie gave away, relatively; where probabilities are
    intervals, the worst factor of `backup_robust` in place of the error bound.
    """
    joints = len(model.joint.inner_target) > 0
    compiled = _compiled(joints, len(objective.prices) > 0, model.nature)
    found: tuple[int, int, float, float, float, float] = compiled(
        model, objective, loss, levels, best, work, out, out_value
    )
    return found
