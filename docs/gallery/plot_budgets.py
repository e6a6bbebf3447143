"""
A policy that looks at its budget
=================================

The policy with the least CVaR at 0.1 on a River of ten by ten, at six budgets left.
"""

import tailpath as tp

ssp = tp.domains.river(rows=10, columns=10)
policy = tp.solve_cvar_exact(ssp, 0.1).policy(0.1)
axes = policy.plot(ssp, [20, 14, 10, 6, 3, 0])
