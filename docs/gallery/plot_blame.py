"""
Where runs turn bad
===================

Setbacks: where the expected excess over VaR rises. ``worst.plot(ssp, "share")`` shows where it is
paid.
"""

import tailpath as tp

ssp = tp.domains.river(rows=10, columns=10)
worst = tp.worst_runs(ssp, tp.solve_expected(ssp), alpha=0.01)
axes = worst.plot(ssp)

# %%
# And where it is paid:

axes = worst.plot(ssp, "share")
