"""All that is found of a model in parts, by any number of ranks or without MPI."""

import numpy as np

import tailpath as tp
from tailpath.distributed.expected import solve_part_expected
from tailpath.distributed.ranks import ranks_of
from tailpath.distributed.search import graph_of
from tests.distributed.models import bits, table_bits

ALPHA = 0.1


def in_parts(ssp, part, comm=None) -> dict[str, object]:
    """Numbers about a model in parts, each with its bounds; what its policies cost; and the bits of
    all that, which the same ranks find again."""
    best = tp.solve_cvar_exact(part, ALPHA, comm=comm)
    sides = [joined(comm, side).tolist() for side in expected_costs(part, comm)]
    return {
        "bounded": bounded(best, sides),
        "costs": followed(best.policy(ALPHA)),
        "bits": [table_bits(best, best.largest.gather(ssp)), bits(*sides)],
    }


def expected_costs(part, comm):
    """V* of the states of a part, and its bounds."""
    found = solve_part_expected(graph_of(ranks_of(comm), part))
    own = found.graph.own
    columns = np.zeros((3, len(part.is_goal)))
    sides = found.bounds.value, found.bounds.lower, found.bounds.upper
    columns[:, found.graph.state[:own] - part.first] = [side[:own] for side in sides]
    return columns


def in_one_process(ssp) -> dict[str, object]:
    """The same numbers of the whole model, without parts."""
    best, mean = tp.solve_cvar_exact(ssp, ALPHA), tp.solve_expected(ssp)
    sides = [side.tolist() for side in (mean.value, mean.lower, mean.upper)]
    return {"bounded": bounded(best, sides)}


def bounded(best, values) -> dict[str, list[list[float]]]:
    """Numbers, lower and upper bounds: of CVaR, the table at the start, and V* of all states."""
    table = best.sides.found
    return {
        "cvar": [[best.cvar(ALPHA)], *([side] for side in best.bounds(ALPHA))],
        "table": listed(best.excess, table.low, table.high[:, 0]),
        "values": values,
    }


def listed(*columns) -> list[list[float]]:
    return [column.tolist() for column in columns]


def check_agree(found, wanted) -> None:
    """What each side proves holds of what the other has found."""
    for kind, one in found.items():
        other = wanted[kind]
        for (value, _, _), (_, low, high) in ((one, other), (other, one)):
            assert value and (len(value) == len(low) or kind == "table")
            rows = zip(value, low, high)
            assert all(below <= here <= above for here, below, above in rows), kind


def check_policy(found) -> None:
    """The policy delivers the CVaR that was promised."""
    _, cvar, _, *bounds = found["costs"]
    _, (low,), (high,) = found["bounded"]["cvar"]
    assert low <= bounds[1] and bounds[0] <= high
    assert low <= cvar * (1 + 1e-12)


def joined(comm, mine):
    return mine if comm is None else np.concatenate(comm.allgather(mine))


def followed(policy) -> list[float]:
    """The costs of a policy in parts."""
    costs = policy.evaluate(ALPHA)
    return [costs.var(ALPHA), costs.cvar(ALPHA), costs.mean, *costs.bounds(ALPHA)]
