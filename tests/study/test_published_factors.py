"""Why River differs from the paper: the published factors xi = F(VaR) / y (its equation 9) against the shared mass.

At a tie at the VaR the published formula gives all the mass there to every successor, so that sum P xi exceeds 1. The policy then believes in
larger tails than it has. With these factors the paper's observation on River comes out; with the mass shared it does not.
"""

from dataclasses import replace

import numpy as np
import pytest

import tailpath


def published(model, plan):
    """The policy tables with F(VaR) / y, worked out successor by successor from the planner's values."""
    atoms, width = plan.atoms, np.diff(plan.atoms, prepend=0.0)
    slope = np.diff(plan.value * atoms, prepend=0.0, axis=1) / width  # VaR of each state on each step between atoms
    offset, runs, count = np.zeros_like(plan.xi_offset), [], 0
    for state, atom in np.argwhere(plan.choice >= 0):
        choice = plan.choice[state, atom]
        offset[state, atom] = count
        for outcome in range(model.choice_outcomes[choice], model.choice_outcomes[choice + 1]):
            reached = model.outcome_cost[outcome] + slope[model.outcome_target[outcome]]
            runs.append(width[reached >= plan.var[state, atom] - 1e-9].sum() / atoms[atom])
            count += 1
    return {"xi_offset": offset, "xi": np.array(runs)}


def total_factors(model, plan, tables):
    """sum P xi for every state and atom with a choice."""
    found = []
    for state, atom in np.argwhere(plan.choice >= 0):
        outcomes = slice(*model.choice_outcomes[plan.choice[state, atom] : plan.choice[state, atom] + 2])
        first = tables["xi_offset"][state, atom]
        probability = model.outcome_probability[outcomes]
        found.append(float(probability @ tables["xi"][first : first + len(probability)]))
    return np.array(found)


@pytest.fixture(scope="module")
def exact():
    """Exact CVaR at 1e-2 on River 30x10 with 25 atoms, by alpha0: with the mass shared, and with the published factors."""
    model = tailpath.domains.river(rows=30, columns=10)
    found = {}
    for alpha0 in (1e-3, 1e-2):
        plan = tailpath.solve_cvar_quantile(model, tailpath.log_atoms(alpha0, 25), tolerance=1e-3)
        shared, tables = plan.policy(1e-2), published(model, plan)
        totals = total_factors(model, plan, tables), total_factors(model, plan, {"xi_offset": plan.xi_offset, "xi": plan.xi})
        values = (tailpath.evaluate(model, policy, 1e-2).cvar(1e-2) for policy in (shared, replace(shared, **tables)))
        found[alpha0] = (*values, totals)
    return found


def test_published_factors_exceed_the_whole(exact):
    for _, _, (published_totals, shared_totals) in exact.values():
        assert published_totals.max() > 1.1
        assert published_totals.min() > 1 - 1e-9
        assert shared_totals == pytest.approx(1.0, abs=1e-9)


def test_only_with_them_a_smaller_alpha0_does_not_help_on_river(exact):
    shared = {alpha0: values[0] for alpha0, values in exact.items()}
    literal = {alpha0: values[1] for alpha0, values in exact.items()}
    assert shared[1e-3] < shared[1e-2]
    assert literal[1e-3] > literal[1e-2]
    assert all(shared[alpha0] < literal[alpha0] for alpha0 in exact)
