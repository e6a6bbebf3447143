"""What the sweep over budgets (`budgets.py`) reads, works on and hands over: the criteria, a model
laid out for it, the objective, its arrays and its results.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailpath.dp.backup import CERTAIN, NO_SLACK, Rows, Slack
from tailpath.dp.joint import Joint
from tailpath.kernels.jit import Array

#: The columns of criteria.
BASE, SLOPE, TO_GO, PER_STEP = range(4)
#: What can be counted: E[(Z - w)+], the probability of a cost of w or more, and the expected cost.
#: They may be added up.
EXCESS, LATE = np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
MEAN = np.array([0.0, 0.0, 1.0, 1.0])
#: Arriving with budget left is worth 0.
NO_LOSS = np.zeros((0, 0))
#: A level that no budget gets to.
NEVER = 2**62


class TerminalOutcomes(NamedTuple):
    """Outcomes that need no stored value, since they arrive or exceed every budget, by choice:
    `outcome_start[e] : outcome_start[e + 1]` are those of `choice[e]`, and `cost_to_go` is V*
    behind each. The choices of node s that have any are `node_start[s] : node_start[s + 1]`.
    """

    node_start: Array
    choice: Array
    outcome_start: Array
    cost: Array
    probability: Array
    cost_to_go: Array


class Nodes(NamedTuple):
    """The n nodes in the order of the sweep, and their B blocks. Costs are in units."""

    block_start: Array  # int64 (B + 1,)
    block_joint: Array  # bool (B,): whether the nodes of the block are solved together
    cost_from_start: Array  # int64 (n,): the least cost at which the start gets there
    unavoidable_cost: Array  # int64 (n,): no run costs less; up to it a closed form holds
    first_level: Array  # int64 (n,): the first level whose value is read
    value: Array  # float64 (n,): V*


class BudgetModel(NamedTuple):
    """A model laid out for budgets up to some limit: choices by node, with outcomes whose values
    are stored, the `target` of each being its offset (`budgets.py`), and all other outcomes. Where
    probabilities are intervals, those of `rows` are the low ones.
    """

    rows: Rows
    terminal: TerminalOutcomes
    nodes: Nodes
    joint: Joint
    slack: Slack = NO_SLACK
    nature: int = CERTAIN


class Objective(NamedTuple):
    """What is minimised at the start, `weight * w + price * U`, with U the value of criterion 0.

    Levels matter up to `limit`, and until `weight * w + floor` exceeds the best value found.
    `prices` are those of a scalarised sweep, none for any other. Where choices are `held`, nothing
    is minimised: they are those of some table (`Changes`).
    """

    criteria: Array
    prices: Array
    start: int
    weight: float
    price: float
    floor: float
    limit: float
    tie: float
    held: bool = False


class Work(NamedTuple):
    """The arrays of a sweep, which `begin_sweep` fills and every level overwrites. Numbers that
    change are arrays of one entry.
    """

    value: Array  # float64 (criteria * window rows * n * prices,): the window, see `budgets.py`
    origin: Array  # int64 (1,): the level of the first row of the window
    reach: int  # how many rows below its own a level reads
    constant: Array  # float64 (criteria, choices): what needs no stored value
    q_value: Array  # float64 (choices,): scratch, the choices of one node
    next_update: Array  # int64 (n,): the level at which the constants of a node change next
    active: Array  # int32 (n,): the active nodes of each block, from the block's first place on
    next_node: Array  # int64 (blocks,): the next node of a block to become active
    n_active: Array  # int64 (blocks,)
    choice: Array  # int64 (n,): the present choice of every node
    residual: Array  # float64 (1,): by how much joint blocks miss their backup at most, relatively
    marginal: Array  # float64 (1,): against nature, the most that the last outcome with free mass
    # is worth, as a multiple of its row


def new_work(nodes: Nodes, constants: tuple[int, int], reach: int, rows: int) -> Work:
    """Arrays for a sweep from level 0 on, with so many rows of values for each criterion and the
    shape of `constants`.
    """
    n, blocks = len(nodes.cost_from_start), len(nodes.block_joint)
    return Work(
        value=np.empty(constants[0] * rows * n),
        origin=np.empty(1, dtype=np.int64),
        reach=reach,
        constant=np.empty(constants),
        q_value=np.empty(constants[1]),
        next_update=np.empty(n, dtype=np.int64),
        active=np.empty(n, dtype=np.int32),
        next_node=np.empty(blocks, dtype=np.int64),
        n_active=np.empty(blocks, dtype=np.int64),
        choice=np.empty(n, dtype=np.int64),
        residual=np.zeros(1),
        marginal=np.zeros(1),
    )


class Level(NamedTuple):
    """The values of one budget: the index of the first one of criterion 0, and how far those of the
    next criterion lie behind it.
    """

    budget: int
    start: int
    stride: int


class Changes(NamedTuple):
    """Where the choice of a node changes, in the order in which this is found: the node, the first
    budget with the new choice, the choice.
    """

    node: Array
    budget: Array
    choice: Array

    def between(self, first: int, end: int | None = None) -> Changes:
        """Some of them, as views."""
        return Changes(*(column[first:end] for column in self))


def new_changes(size: int) -> Changes:
    """Room for so many changes."""
    return Changes(*(np.empty(size, dtype=kind) for kind in (np.int32, np.int64, np.int32)))


#: No choice is held.
NOTHING_HELD = new_changes(0)
