"""
A policy on a map
=================

Black arrows are where the policy can be; faint ones are decisions that it never has to take.
"""

import tailpath as tp

ssp = tp.domains.gridworld("14x16")
axes = tp.solve_expected(ssp).policy.plot(ssp)
