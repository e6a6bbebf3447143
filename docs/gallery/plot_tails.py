"""
The tails of several policies
=============================

P(Z > z) on a logarithmic scale: what differs far out is seen.
"""

import tailpath as tp

ssp = tp.domains.river(rows=30, columns=10)
policies = {
    "least mean": tp.solve_expected(ssp),
    "least CVaR at 0.01": tp.solve_cvar_exact(ssp, 0.01).policy(0.01),
}
costs = {name: tp.evaluate(ssp, policy, 1e-4) for name, policy in policies.items()}
axes = tp.plot_tails(costs, 0.01)
