"""All that is found of a model in parts, by any number of ranks or without MPI."""

from unittest import mock

import numpy as np

import tailpath as tp
from tailpath.distributed.policies import PartMarkovPolicy
from tailpath.solvers.exact import solver
from tests.distributed.models import bits, late_bits, table_bits

ALPHA, DEADLINE = 0.1, 20


def in_parts(ssp, part, comm=None) -> dict[str, object]:
    """Everything about a model in parts: bits, and the costs of three policies."""
    best = tp.solve_cvar_exact(part, ALPHA, comm=comm)
    late, mean = tp.solve_on_time(part, DEADLINE, comm=comm), tp.solve_expected(part, comm=comm)
    sides = [joined(comm, side) for side in (mean.value, mean.lower, mean.upper)]
    with mock.patch.object(solver, "WORTH_SKIPPING", 0.0):
        skipping = tp.solve_cvar_exact(part, ALPHA, comm=comm)
    mixed = PartMarkovPolicy(mean.policy.comm, part, mixture(part, mean.choices))
    return {
        "table": table_bits(best, best.largest.gather(ssp)),
        "skipping": table_bits(skipping, skipping.largest.gather(ssp)),
        "skipping cvar": [skipping.cvar(ALPHA), *skipping.bounds(ALPHA)],
        "late": late_bits(late, late.latest.gather(ssp)),
        "late asked": asked(late),
        "expected": bits(*sides, mean.policy.gather(ssp).choices_for(ssp)),
        "cvar": [best.cvar(ALPHA), best.var(ALPHA), *best.bounds(ALPHA)],
        "mean": [mean.cost(), *mean.bounds],
        "policies": [followed(each) for each in (best.policy(ALPHA), mean.policy, mixed)],
    }


def in_one_process(ssp) -> dict[str, object]:
    """The same about the whole model, without parts; policies are left out."""
    best, late = tp.solve_cvar_exact(ssp, ALPHA), tp.solve_on_time(ssp, DEADLINE)
    with mock.patch.object(solver, "WORTH_SKIPPING", 0.0):
        skipping = tp.solve_cvar_exact(ssp, ALPHA)
    mean = tp.solve_expected(ssp)
    return {
        "table": table_bits(best, best.largest),
        "skipping": table_bits(skipping, skipping.largest),
        "skipping cvar": [skipping.cvar(ALPHA), *skipping.bounds(ALPHA)],
        "late": late_bits(late, late.latest),
        "late asked": asked(late),
        "expected": bits(mean.value, mean.lower, mean.upper, mean.policy.choices_for(ssp)),
        "cvar": [best.cvar(ALPHA), best.var(ALPHA), *best.bounds(ALPHA)],
        "mean": [mean.cost(), *mean.bounds],
    }


def asked(late) -> list[object]:
    """What a solution for deadlines answers."""
    answers = [late.late(12), late.probability(DEADLINE), *late.late_bounds(12), *late.bounds(7)]
    return [*answers, late.policy(12).budget, repr(late)]


def joined(comm, mine):
    return mine if comm is None else np.concatenate(comm.allgather(mine))


def mixture(part, choices) -> np.ndarray:
    """Weights of the choices of a part: half for the one given, and some of the others get some."""
    length = np.diff(part.state_choices)
    state = np.repeat(np.arange(len(length)), length)
    place = np.arange(len(state)) - part.state_choices[:-1][state]
    weight = 0.125 * ((7 * (part.first + state) + 3 * place) % 3)
    weight[choices[~part.is_goal]] += 1.0
    return weight / np.bincount(state, weights=weight, minlength=len(length))[state]


def followed(policy) -> list[float]:
    """The costs of a policy in parts."""
    costs = policy.evaluate(ALPHA)
    return [costs.var(ALPHA), costs.cvar(ALPHA), costs.mean, *costs.bounds(ALPHA)]
