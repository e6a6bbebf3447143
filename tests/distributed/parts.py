"""All that is found of a model in parts, by any number of ranks or without MPI."""

import numpy as np

import tailpath as tp
from tests.distributed.models import bits, late_bits, table_bits

ALPHA, DEADLINE = 0.1, 20


def in_parts(ssp, part, comm=None) -> dict[str, object]:
    """Numbers about a model in parts, each with its bounds; what its policies cost; and the bits of
    all that, which the same ranks find again."""
    best = tp.solve_cvar_exact(part, ALPHA, comm=comm)
    late, mean = tp.solve_on_time(part, DEADLINE, comm=comm), tp.solve_expected(part, comm=comm)
    sides = [joined(comm, side).tolist() for side in (mean.value, mean.lower, mean.upper)]
    policies = best.policy(ALPHA), mean.policy
    tables = table_bits(best, best.largest.gather(ssp)), late_bits(late, late.largest.gather(ssp))
    return {
        "bounded": bounded(best, late, sides, mean),
        "costs": [followed(each) for each in policies],
        "bits": [*tables, bits(*sides, mean.policy.gather(ssp).choices_for(ssp))],
    }


def in_one_process(ssp) -> dict[str, object]:
    """The same numbers of the whole model, without parts."""
    best, late = tp.solve_cvar_exact(ssp, ALPHA), tp.solve_on_time(ssp, DEADLINE)
    mean = tp.solve_expected(ssp)
    sides = [side.tolist() for side in (mean.value, mean.lower, mean.upper)]
    return {"bounded": bounded(best, late, sides, mean)}


def bounded(best, late, values, mean) -> dict[str, list[list[float]]]:
    """Numbers, lower and upper bounds: of CVaR, the tables at the start, V* of all states, and
    lateness."""
    table, lateness = best.sides.found, late.sides.found
    return {
        "cvar": [[best.cvar(ALPHA)], *([side] for side in best.bounds(ALPHA))],
        "table": listed(best.excess, table.low, table.high[:, 0]),
        "late": listed(late.lateness, lateness.low[1:], lateness.high[1:, 0]),
        "asked": [[late.late(12)], *([side] for side in late.late_bounds(12))],
        "values": values,
        "mean": [[mean.cost()], *([side] for side in mean.bounds)],
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


def check_policies(found) -> None:
    """Policies deliver what was promised for them: the first CVaR, the second the mean."""
    promised, costs = found["bounded"], found["costs"]
    (_, cvar, _, *bounds), (_, (low,), (high,)) = costs[0], promised["cvar"]
    assert low <= bounds[1] and bounds[0] <= high
    assert low <= cvar * (1 + 1e-12)
    _, (low,), (high,) = promised["mean"]
    assert low * (1 - 1e-12) <= costs[1][2] <= high * (1 + 1e-12)


def joined(comm, mine):
    return mine if comm is None else np.concatenate(comm.allgather(mine))


def followed(policy) -> list[float]:
    """The costs of a policy in parts."""
    costs = policy.evaluate(ALPHA)
    return [costs.var(ALPHA), costs.cvar(ALPHA), costs.mean, *costs.bounds(ALPHA)]
