"""Where a policy gets to, and what is still to come from there.

*Ever being there.* With N(x) the expected visits of a node from the start and G(x, y) those of y
from x, the probabilities f that a group A of nodes is first entered at each of its members satisfy

    N(y) = sum over x in A of f(x) G(x, y)        for y in A

and their sum is the probability of ever being in A. For one node this is N(x) / G(x, x). A closed
class, which no run leaves again, counts as one node without edges: who is in it meets all of it.

*Risk to go.* E(x, w) = E[(cost to go - w)+] from node x satisfies E(x, w) = sum P E(y, w - c), with
V_mean(x) - w for w <= 0, and CVaR is the least w + E / alpha, for a mixture of nodes as for one. No
w above the best value found can win, which ends the search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.dp.budget_model import EXCESS
from tailpath.dp.budgets import node_values
from tailpath.dp.entries import first_entries, mark_behind, pull, push
from tailpath.dp.layout_builders import chain_layout
from tailpath.graph import Array, FloatArray, Transitions, members_of, offsets_of, owners, positions
from tailpath.kernels.inverse import Factors, inverse_diagonal
from tailpath.kernels.jit import frozen
from tailpath.model.border import prepare
from tailpath.options import Progress
from tailpath.policies.chain import CostChain

#: Nodes that are done at a time.
BATCH = 256
#: Edges times levels beyond which a risk to go is not worth its time: about a minute.
MAX_WORK = 20_000_000_000
#: Values that are computed at a time.
AT_A_TIME = 2**20
#: What every level takes beside its edges, in edges; and the most values that are stored of the
#: levels still needed.
EACH_LEVEL, MAX_VALUES = 1_000, 2**27
_NONE, _FIRST = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
#: The factors of nothing.
NO_FACTORS = Factors(*frozen(_FIRST, _NONE, np.zeros(0), _FIRST, _NONE, np.zeros(0), np.zeros(0)))


class Visits:
    """The expected visits of the nodes of a chain, and the probabilities of ever being there.

    Nodes to which no cycle leads are taken in their order, those after cycles are solved for.
    `falling` is a number for each node that no edge raises: nodes then stand close to those that
    they lead to.
    """

    def __init__(self, chain: CostChain, falling: Array | None = None) -> None:
        self.node, cut = _without_closed_classes(chain, falling)
        component, cyclic = cut.cycles()
        self.rows, self.returning = (
            tuple(frozen(cut.row_start, cut.target, cut.probability)),
            cyclic[component],
        )
        after_cycle = self.returning.copy()
        mark_behind(*self.rows[:2], after_cycle)
        self.is_after_cycle = next(frozen(after_cycle))
        self.after_cycle = np.flatnonzero(after_cycle)
        self.visits = np.zeros(cut.n)
        self.visits[self.node[chain.start]] = 1.0
        push(*self.rows, self.is_after_cycle, self.visits)
        count, position = len(self.after_cycle), positions(after_cycle)
        # Where most of these lie on cycles, their order helps little, and all of their own visits
        # are found at once.
        self.cyclic = bool(2 * np.count_nonzero(self.returning) > count > 0)
        edges = after_cycle[cut.source]
        if count:
            self.factors = equations(
                position[cut.source[edges]],
                position[cut.target[edges]],
                cut.probability[edges],
                count,
                ordered=True,
                diagonal=self.cyclic,
            )
            entered = self.visits[self.after_cycle]
            self.visits[self.after_cycle] = self.factors.solve(entered, trans="T")

    @property
    def expected(self) -> FloatArray:
        """The expected visits of every node; in a closed class, the probability of entering it."""
        return np.asarray(self.visits[self.node])

    def first(self, group: Array, progress: Progress | None = None) -> FloatArray:
        """For every node, the probability that its group is entered, and first at this node.
        `group` is a number per node, -1 for none. `progress` gets the number of nodes done, and
        their share.
        """
        # One member of each group per node of the cut chain; the others of a closed class add
        # nothing.
        among = np.flatnonzero(group >= 0)
        (numbers, position), index = np.unique(
            np.stack([group, self.node])[:, among], axis=1, return_index=True
        )
        member = among[index]
        entry = self.visits[position]
        bounds = offsets_of(numbers, int(group.max(initial=-1)) + 1)
        size = np.diff(bounds)

        def having(nodes: Array) -> Array:
            return np.bincount(numbers, weights=nodes[position], minlength=len(size))

        asked = np.flatnonzero((size > 1) | (having(self.returning) > 0))
        factors = diagonal_factors(self.factors) if self.cyclic and len(asked) else None
        one_by_one = having(self.is_after_cycle) < (1 if factors is None else 2)
        number, own = np.full(len(self.visits), -1), np.zeros(0)
        number[self.after_cycle] = np.arange(len(self.after_cycle))
        if factors is not None:
            number[self.after_cycle], own = self.factors.perm_c, own_visits(factors)
        flags = np.zeros((2, len(number)), dtype=np.bool_)
        scratch = (np.zeros(len(number)), *np.zeros((2, len(own))), *flags)
        done = 0
        for groups in _batches(asked, size):
            simple = one_by_one[groups]
            if simple.any():
                first_entries(
                    self.rows,
                    *frozen(self.visits),
                    (*frozen(number, own), factors or NO_FACTORS),
                    tuple(frozen(groups[simple], bounds, position)),
                    scratch,
                    entry,
                )
            if not simple.all():
                self._correct(entry, groups[~simple], bounds, position)
            done += int(size[groups].sum())
            if progress is not None:
                progress(done, done / int(size[asked].sum()))
        found = np.zeros(len(group))
        found[member] = np.maximum(entry, 0.0)
        return found

    def _correct(self, entry: FloatArray, groups: Array, bounds: Array, position: Array) -> None:
        """Solve N = f G within each of some groups."""
        columns, _ = members_of(bounds, groups)
        seen = np.zeros((len(columns), len(self.visits)))
        seen[np.arange(len(columns)), position[columns]] = 1.0
        seen[:, self.after_cycle] = self.factors.solve(seen[:, self.after_cycle].T).T
        pull(*self.rows, self.is_after_cycle, seen.reshape(-1))
        done = 0
        for g in groups.tolist():
            inside = position[bounds[g] : bounds[g + 1]]
            green = seen[done : done + len(inside), inside]
            entry[bounds[g] : bounds[g + 1]] = np.linalg.solve(green, self.visits[inside])
            done += len(inside)


def _batches(groups: Array, size: Array) -> list[Array]:
    """Groups in turn, each batch with about `BATCH` members."""
    if groups.size == 0:
        return []
    turn = np.cumsum(size[groups]) // BATCH
    return np.split(groups, np.flatnonzero(np.diff(turn)) + 1)


def _without_closed_classes(chain: CostChain, falling: Array | None) -> tuple[Array, Transitions]:
    """The chain with each closed class as one node without edges, in an order that follows the
    edges between components, and the number there of every node.
    """
    component, closed = chain.closed()
    inside = closed[component]
    _, first = np.unique(component, return_index=True)
    representative = np.where(inside, first[component], np.arange(chain.n))
    selected = np.unique(representative)
    number = np.zeros(chain.n, dtype=np.int64)
    keys = [component] if falling is None else [component, falling]
    order = np.lexsort([-key[selected] for key in keys])
    number[selected[order]] = np.arange(len(selected))
    node = number[representative]
    return node, chain.only(~inside[chain.source] & (chain.target < chain.n)).collapse(
        node, len(selected)
    )


def cvar_to_go(
    chain: CostChain,
    node: Array,
    group: Array,
    weight: FloatArray,
    count: int,
    alpha: float,
    progress: Progress | None = None,
) -> FloatArray:
    """The CVaR of the cost to go for each of `count` groups: a run starts at `node[i]` with weight
    `weight[i]` among those of group `group[i]`.

    Infinite where the goal may be missed; not a number for a group without weight, a chain without
    a cost unit, or too many levels. Where some cost is negative, the nodes of a group are of one
    state.
    """
    border = prepare(chain.ssp)
    if border.moves:
        more = np.zeros(count)
        more[group] = border.potential[chain.state[node]]
        return cvar_to_go(chain.reduced, node, group, weight, count, alpha) + more
    result = np.full(count, np.nan)
    selected = weight > 0
    node, group = node[selected], group[selected]
    weight = weight[selected]
    if chain.level is None or chain.unit is None or node.size == 0:
        return result
    unit = float(chain.unit)
    mean = np.append(chain.expected_cost.value, 0.0) / unit
    total = np.bincount(group, weights=weight, minlength=count)
    share = weight / total[group]

    def of_groups(excess: FloatArray) -> FloatArray:
        return np.bincount(group, weights=share * excess[node], minlength=count).astype(np.float64)

    best = of_groups(mean) / alpha
    wanted = np.isfinite(best) & (total > 0)
    result[(total > 0) & ~wanted] = np.inf
    inside = np.isfinite(mean[:-1])  # they lead to one another, and to the goal
    if chain.level.max(initial=0) * chain.n > MAX_VALUES or not wanted.any():
        return result
    rows = chain.restrict(inside).renumber(positions(inside))
    layout, order = chain_layout(rows, mean[:-1][inside])
    node_of, excess = np.flatnonzero(inside)[order], np.zeros(chain.n + 1)
    w, needed = 0, min(float(best[wanted].max()), AT_A_TIME // len(order))
    for values, _ in node_values(layout, layout.objective(EXCESS), int(needed) + 1):
        for row in values:
            w += 1
            excess[node_of] = row
            best = np.minimum(best, w + of_groups(excess) / alpha)
            if w >= best[wanted].max():
                result[wanted] = best[wanted] * unit
                return result
        if progress is not None:
            progress(w, min(w / float(best[wanted].max()), 1.0))
        if w * (len(chain.target) + EACH_LEVEL) > MAX_WORK:
            break
    return result


def zero_cost_walks(chain: CostChain, trans: str = "N") -> Any:
    """A function that follows the zero-cost edges of a chain to their end: it solves x = constant +
    F x, F these edges (or their transpose). Traps are not followed.
    """
    assert chain.level is not None
    arrives = np.append(chain.arrives, False)
    zero_cost = chain.only((chain.level == 0) & arrives[chain.target] & arrives[chain.source])
    if len(zero_cost.target) == 0:
        return lambda constant: constant
    factors = equations(zero_cost.source, zero_cost.target, zero_cost.probability, chain.n)
    return lambda constant: factors.solve(np.asarray(constant, dtype=np.float64), trans=trans)


def equations(
    source: Array,
    target: Array,
    probability: FloatArray,
    n: int,
    ordered: bool = False,
    diagonal: bool = False,
) -> Any:
    """The factors of I - P for n nodes: `solve(constant)`, or with `trans="T"` for the transpose.

    `ordered`: the numbers follow the edges, so that hardly anything fills up. `diagonal`: the
    factors keep to the diagonal, for `diagonal_factors`. A singular matrix is a RuntimeError.
    """
    import scipy.sparse.linalg

    edges = scipy.sparse.csc_array((probability, (source, target)), shape=(n, n))
    matrix = (scipy.sparse.eye_array(n, format="csc") - edges).tocsc()
    if diagonal:
        return scipy.sparse.linalg.splu(
            matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    return scipy.sparse.linalg.splu(matrix, permc_spec="NATURAL" if ordered else "COLAMD")


def diagonal_factors(factors: Any) -> Factors | None:
    """The factors by rows and columns; None where they do not keep to the diagonal."""
    if not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    pivot = factors.U.diagonal()
    below, right = _off_diagonal(factors.L), _off_diagonal(factors.U.tocsr())
    upper = right[2] / np.repeat(pivot, np.diff(right[0]))
    return Factors(*frozen(*below, *right[:2], upper, pivot))


def own_visits(factors: Factors) -> FloatArray:
    """The diagonal of the inverse of I - P, (n,), in the order of the factors."""
    diagonal = np.zeros(len(factors.pivot))
    scratch = (
        np.zeros(len(diagonal), dtype=np.int8),
        np.zeros(len(diagonal)),
        np.zeros(len(factors.below)),
        np.zeros(len(factors.right)),
    )
    inverse_diagonal(factors, *scratch, diagonal)
    return diagonal


def _off_diagonal(part: Any) -> tuple[Array, Array, Array]:
    """Where the rows or columns of a factor begin, and positions and values behind the diagonal."""
    part.sort_indices()
    owner = owners(part.indptr)
    mask = part.indices > owner
    return offsets_of(owner[mask], len(part.indptr) - 1), part.indices[mask], part.data[mask]
