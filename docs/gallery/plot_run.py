"""
One run
=======

A run of the policy that is best on average, drawn by a seed. A circle marks the start and a square
the end; what is passed often is bold.
"""

import tailpath as tp

ssp = tp.domains.river(rows=10, columns=10)
run = tp.trace(ssp, tp.solve_expected(ssp), seed=1)
axes = run.plot(ssp)

# %%
# The most probable run beyond VaR at 0.01:

worst = tp.worst_runs(ssp, tp.solve_expected(ssp), alpha=0.01, k=1)
axes = worst[0].plot(ssp)
